"""Several files as one capture: their packets in the order of time, numbered as if they had been one file.

Theory of operation. Each file has its own reader, which hands its packets not to a decoder but to a queue.
The file whose first waiting packet is the earliest goes on, as long as it is; that is all, so packets of one
file are never put in another order, whatever their times say. Among packets of the same time that of the file
named first comes first. All go to one decoder and get a number in that order.

A rotated set is a thousand files of which one is read at a time. So each file is opened once to see when its
first packet was, and closed again if there are more than `MAX_MERGE_OPEN`; it is read from when its time has
come. Beyond that many at the same time there would be no bound on memory: that is refused.

What a file's reader has to say of it waits in the queue, too, until the packets before it have their numbers.
"""

import heapq
from typing import Final

from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.records import CaptureReader
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.source import CaptureSource
from amqpscope.errors import CaptureError
from amqpscope.limits import MAX_MERGE_OPEN, MAX_TIME
from dissectors.wire import i64

__all__ = ["Merge"]

_BLOCK: Final = 128 * 1024  # of a file at a time, since of many files at a time
_PROBE: Final = 8 * 1024  # to see the first packet


class Waiting:
    """What a file gave and has not been handed on: a note, a loss of packets, or a `WaitingPacket`.

    number: of its packet in the file. code: of the note, "capture/dropped" of a loss, "" of a packet.
    """

    def __init__(self, number: i64, time: i64, code: str, detail: str) -> None:
        self.number = number
        self.time = time
        self.code = code
        self.detail = detail
        # Packets that were lost before this one, or at the end.
        self.lost: i64 = 0


class WaitingPacket(Waiting):
    """A packet as `PacketDecoder.packet` takes it."""

    def __init__(
        self, number: i64, time: i64, link_type: i64, buf: bytes, start: i64, end: i64, wire_length: i64
    ) -> None:
        super().__init__(number, time, "", "")
        self.link_type = link_type
        self.buf = buf
        self.start = start
        self.end = end
        self.wire_length = wire_length


class MergedFile(SegmentSink):
    """One file of several: what was read of it and waits, and how its packets are numbered among all."""

    def __init__(self, source: CaptureSource, index: int) -> None:
        super().__init__()
        self.source = source
        self.index = index
        self.reader: CaptureReader | None = None
        self.waiting: list[Waiting] = []
        self.ahead: list[Waiting] = []  # notes on the packet that comes next
        self.lost: i64 = 0  # packets before the one that comes next
        self.at: i64 = 0  # of the first that waits
        self.last: i64 = 0  # number in the file of the last packet that came
        self.taken: i64 = 0  # number in the file of the last packet that went on
        self.number: i64 = 0  # and its number among all
        self.ended = False
        self.counted = False  # among the files that are open
        self.outer: SegmentSink | None = None  # takes the secrets of the file, whatever waits

    def packet(self, one: WaitingPacket) -> None:
        """The next packet."""
        one.lost = self.lost
        self.lost = 0
        self.waiting.append(one)
        self.last = one.number
        if self.ahead:
            self.waiting += self.ahead
            self.ahead = []

    def note(self, code: str, packet: i64, time: i64, detail: str) -> None:
        detail = f"{self.source.name}: {detail}"
        one = Waiting(packet, time, code, detail)
        if packet > self.last:
            self.ahead.append(one)
        else:
            self.waiting.append(one)

    def secrets(self, octets: bytes) -> None:
        if self.outer is not None:
            self.outer.secrets(octets)

    def dropped(self, packet: i64, time: i64, count: i64) -> None:
        if packet > 0:
            self.lost += count
        else:
            one = Waiting(0, time, "capture/dropped", "")
            one.lost = count
            self.waiting.append(one)

    def read(self, octets: int) -> None:
        """Something more of the file, up to so many octets, or find that it has ended."""
        if self.reader is None:
            self.reader = self.source.start(self, PacketQueue(self))
        reader = self.reader
        block = self.source.read(octets)
        if block:
            reader.feed(block)
            return
        reader.finish()
        if self.source.growing:
            self.note("capture/growing", reader.number, 0, self.source.growing)
        if self.source.damage:
            self.note(self.source.damage_code, reader.number, 0, self.source.damage)
        self.waiting += self.ahead
        self.ahead = []
        self.source.close()
        self.ended = True

    def until_packet(self, octets: int) -> i64:
        """Read until a packet waits or the file has ended; the time of the first, 0 if there is none."""
        while True:
            for one in self.waiting[self.at :]:
                if isinstance(one, WaitingPacket):
                    return one.time
            if self.ended:
                return 0
            self.read(octets)

    def restart(self) -> None:
        """Close the file, to begin it again later."""
        self.source.close()
        self.reader = None
        self.waiting = []
        self.ahead = []
        self.lost = 0
        self.last = 0


class PacketQueue(PacketDecoder):
    """Takes a reader's packets and keeps them."""

    def __init__(self, part: MergedFile) -> None:
        super().__init__(part)
        self.part = part

    def packet(
        self, number: i64, time: i64, link_type: i64, buf: bytes, start: i64, end: i64, wire_length: i64
    ) -> None:
        self.part.packet(WaitingPacket(number, time, link_type, buf, start, end, wire_length))


class Merge:
    """Reads several files as one capture, whose segments and notes go to a sink.

    `begin`, then `advance` until it is False. `number`: packets so far. `delivering`: in the middle of
    handing on. Both raise CaptureError when a file cannot be read or is no capture.
    """

    def __init__(self, sources: list[CaptureSource], sink: SegmentSink) -> None:
        self.sink = sink
        self.decoder = PacketDecoder(sink)
        self.number: i64 = 0
        self.delivering = False
        self._parts = [MergedFile(source, index) for index, source in enumerate(sources)]
        for part in self._parts:
            part.outer = sink
        self._open = 0
        # Time of the first packet that waits, and the file's place among all: of files that are not over.
        self._order: list[tuple[int, int]] = []

    def begin(self) -> None:
        """Look into every file."""
        for part in self._parts:
            self._order.append((part.until_packet(_PROBE), part.index))
            if len(self._parts) > MAX_MERGE_OPEN and part.source.again and not part.ended:
                part.restart()
            else:
                self._count(part)
        heapq.heapify(self._order)

    def advance(self) -> bool:
        """Hand on packets up to where something more has to be read, and read it. False when all is done."""
        while self._order:
            _, index = heapq.heappop(self._order)
            part = self._parts[index]
            if part.reader is None:
                self._count(part)
                part.until_packet(_BLOCK)
            until: i64 = MAX_TIME
            if self._order:
                until = self._order[0][0]
                if self._order[0][1] < index:
                    until -= 1
            self.delivering = True
            time = self._hand_on(part, until)
            self.delivering = False
            if time >= 0:
                heapq.heappush(self._order, (time, index))
            elif not part.ended:
                heapq.heappush(self._order, (part.until_packet(_BLOCK), index))
                return True
            else:
                self._open -= part.counted
        self.decoder.finish()
        return False

    def origin(self, number: i64) -> tuple[str, int]:
        """Of the packet that is handed on now: the file that it is from, and its number there."""
        for part in self._parts:
            if part.number == number and part.taken > 0:
                return part.source.name, int(part.taken)
        return "", 0

    def _count(self, part: MergedFile) -> None:
        """A file is open and something of it waits."""
        part.counted = not part.ended
        self._open += part.counted
        if self._open > MAX_MERGE_OPEN:
            raise CaptureError(
                f"{part.source.name}: more than {MAX_MERGE_OPEN} files overlap in time; merge fewer files"
            )

    def _hand_on(self, part: MergedFile, until: i64) -> i64:
        """What waits of a file, up to the first packet later than `until`: its time, -1 if none is left."""
        decoder = self.decoder
        waiting = part.waiting
        at: i64 = part.at
        while at < len(waiting):
            one = waiting[at]
            if not isinstance(one, WaitingPacket):
                if one.lost > 0:
                    self.sink.dropped(0, one.time, one.lost)
                else:
                    self.sink.note(one.code, self._numbered(part, one.number), one.time, one.detail)
                at += 1
                continue
            if one.time > until:
                part.at = at
                return one.time
            # Of some packets nothing but their number is handed on.
            self.number += one.number - part.taken
            part.taken = one.number
            part.number = self.number
            at += 1
            if one.lost > 0:
                self.sink.dropped(self.number, one.time, one.lost)
            decoder.packet(self.number, one.time, one.link_type, one.buf, one.start, one.end, one.wire_length)
        part.waiting = []
        part.at = 0
        return -1

    def _numbered(self, part: MergedFile, number: i64) -> i64:
        """The number among all of the file's packet `number`, the last one or one close to it; 0 stays 0."""
        if number == 0:
            return 0
        return max(part.number + number - part.taken, 0)
