"""Chunks of packets' blocks into pcapng files: one, or a set of which each takes so much.

Theory of operation. A file begins with the section header and what is known of the interfaces; one that is
announced later is described before its first packet is written. Numbers of interfaces in the file are
given in the order of description. It ends with what came, and was lost, on each.

A chunk goes into a file as it is, by one write, if all of it surely fits and nothing is to be said of its
packets; only otherwise its blocks are looked at, one by one. A comment is put into its packet's block here,
since it may still come while the packet is in hand.
"""

from typing import Final

from amqpscope.capture.recording.blocks import (
    PACKET_MIN,
    decryption_secrets,
    plain,
    section_header,
    with_options,
)
from amqpscope.capture.recording.chunk import Chunk
from amqpscope.capture.recording.comments import Comments
from amqpscope.capture.recording.interfaces import Interfaces
from amqpscope.capture.recording.output import OutputFiles, Rotation
from amqpscope.limits import MAX_COMMENT
from dissectors.wire import i64, u32le

__all__ = ["PcapngFiles"]

_UNBOUNDED: Final = 1 << 62


class PcapngFiles:
    """Files at `path`, `-` being standard output. All here raises CaptureError if they cannot be written.

    application: what says of itself to have written them. rotation: a set of files instead of one. later: not
    even one file is opened before its first packet is there. interfaces, comments: the capture's; others add
    to them.

    begun: a file is. remark: said at the head of each one that is begun from now on.
    """

    def __init__(
        self,
        path: str,
        application: str,
        rotation: Rotation | None,
        later: bool,
        interfaces: Interfaces,
        comments: Comments,
    ) -> None:
        self.begun = False
        self.remark = ""
        self._files = OutputFiles(path, rotation, later)
        self._application = application
        # Secrets that came before the file that is to have them.
        self._secrets: list[bytes] = []
        self._later = later
        self._interfaces = interfaces
        self._comments = comments
        # What a file takes.
        self._rotating = rotation is not None
        self._most_octets: i64 = _UNBOUNDED
        self._most_packets: i64 = _UNBOUNDED
        self._duration: i64 = _UNBOUNDED
        if rotation is not None:
            self._most_octets = rotation.size or _UNBOUNDED
            self._most_packets = rotation.packets or _UNBOUNDED
            self._duration = rotation.duration or _UNBOUNDED
        # Of the file that is open.
        self._descriptions = 0  # interfaces that are described in it
        self._octets: i64 = 0
        self._packets: i64 = 0
        self._time: i64 = 0  # of its first packet
        self._first: i64 = 0  # the number of that
        self._lost: dict[int, int] = {}  # by place of the interface
        self._fitting_packets: i64 = 0  # second result of _fitting

    @property
    def names(self) -> list[str]:
        """Names of the files that were written and are there; standard output has none."""
        return list(self._files.names)

    @property
    def first(self) -> int:
        """The number, in the capture, of the first packet of the file that is open; 0: not known yet."""
        return int(self._first)

    @property
    def pipe(self) -> bool:
        """What is written is read at once, and cannot be found again."""
        return self._files.pipe

    def begin(self, time: int, number: int) -> None:
        """Begin the file, or the next one, whose first packet has that time and number; 0: not known yet."""
        if self._rotating or self._later:
            self._files.begin(time)
        self.begun = True
        self._descriptions = 0
        self._octets = 0
        self._packets = 0
        self._time = time
        self._first = number
        self._lost = {}
        remarks = [self.remark] if self.remark else []
        if number > 1:
            remarks.append(f"packet 1 of this file is packet {number} of the capture")
        self._write(section_header(self._application, plain("; ".join(remarks), MAX_COMMENT)))
        for block in self._secrets:
            self._write(block)
        self._secrets = []

    def embed(self, lines: bytes) -> None:
        """Write TLS secrets, lines of a key log: before the packets in hand, which they decrypt."""
        block = decryption_secrets(lines)
        if self.begun:
            self._write(block)
        else:
            self._secrets.append(block)

    def put(self, chunk: Chunk, stop: i64) -> None:
        """Write the blocks of a chunk that end at `stop` or before it, in as many files as they take."""
        while chunk.start < stop:
            if not self.begun:
                self.begin(chunk.time, chunk.first)
            descriptions = self._interfaces.descriptions(self._descriptions)
            extra: i64 = len(descriptions)
            until: i64 = stop
            number: i64 = chunk.next if stop == chunk.end else chunk.next - 1
            octets = bytes(memoryview(chunk.octets)[chunk.start : stop])
            if self._rotating and not self._fits(chunk, number, stop - chunk.start + extra):
                size: i64 = self._fitting(octets, chunk.first, extra)
                if size == 0:
                    self.begin(_time_of(octets, 0), chunk.first)
                    continue
                if size < len(octets):
                    octets = octets[:size]
                    until = chunk.start + size
                    number = chunk.first + self._fitting_packets
            self._packets += number - chunk.first
            if chunk.lossy:
                self._count_lost(octets)
            if chunk.commented:
                octets = self._with_comments(octets, chunk.first)
            self._descriptions = self._interfaces.count
            self._write(descriptions + octets if descriptions else octets)
            chunk.first = number
            chunk.start = until

    def describe(self) -> None:
        """Describe the interfaces that the file does not know yet."""
        octets = self._interfaces.descriptions(self._descriptions)
        if octets:
            self._descriptions = self._interfaces.count
            self._write(octets)

    def finish(self, start: int, end: int, received: list[int], dropped: list[int]) -> None:
        """The last file's end: the capture began at `start` and ended at `end`, in nanoseconds since 1970.

        received, dropped: packets of each interface since the start, as far as they are known.
        """
        self.describe()
        # A file that begins later than the capture tells of its own time only.
        later = self._first > 1
        if later:
            start = self._time
        if start <= 0:
            start = end
        in_file = self._lost if later else None
        remarks = self._comments.take_late()
        self._write(self._interfaces.statistics(start, end, received, dropped, remarks, in_file))

    def end(self) -> None:
        """Close the file that is open, if one is."""
        self._files.end()

    def _write(self, octets: bytes) -> None:
        self._octets += len(octets)
        self._files.write(octets)

    def _count_lost(self, octets: bytes) -> None:
        """Remember what these blocks say of packets that were lost."""
        at: i64 = 0
        while at < len(octets):
            size: i64 = u32le(octets, at + 4)
            padded: i64 = (u32le(octets, at + 20) + 3) & ~3
            if size > PACKET_MIN + padded:  # the only option that was put there
                place: int = u32le(octets, at + 8)
                low: int = u32le(octets, at + 32 + padded)
                high: int = u32le(octets, at + 36 + padded)
                self._lost[place] = self._lost.get(place, 0) + (high << 32) + low
            at += size

    def _fits(self, chunk: Chunk, number: i64, size: i64) -> bool:
        """Whether a chunk's packets before `number`, `size` octets, surely fit into the file."""
        return (
            self._octets + size + self._comments.octets <= self._most_octets
            and self._packets + number - chunk.first <= self._most_packets
            and chunk.latest - self._time < self._duration
        )

    def _fitting(self, octets: bytes, number: i64, extra: i64) -> i64:
        """How many of these octets, blocks of packets from `number` on, fit into the file behind `extra`.

        `_fitting_packets`: how many packets. Into a file without packets at least one fits.
        """
        at: i64 = 0
        packets: i64 = 0
        taken: i64 = self._octets + extra
        while at < len(octets):
            size: i64 = u32le(octets, at + 4)
            taken += size
            taken += self._comments.octets_of(number)
            time = _time_of(octets, at)
            if self._packets + packets > 0:
                if (
                    taken > self._most_octets
                    or self._packets + packets >= self._most_packets
                    or time - self._time >= self._duration
                ):
                    break
            at += size
            packets += 1
            number += 1
        self._fitting_packets = packets
        return at

    def _with_comments(self, octets: bytes, number: i64) -> bytes:
        """Blocks of packets, from `number` on, with what is to be said of them."""
        pieces: list[bytes] = []
        at: i64 = 0
        done: i64 = 0
        while at < len(octets):
            size: i64 = u32le(octets, at + 4)
            options = self._comments.take(number)
            if options is not None:
                pieces.append(octets[done:at])
                pieces.append(with_options(octets, at, options))
                done = at + size
            at += size
            number += 1
        pieces.append(octets[done:])
        return b"".join(pieces)


def _time_of(octets: bytes, at: i64) -> i64:
    """The time of the packet whose block is there."""
    return (u32le(octets, at + 12) << 32) | u32le(octets, at + 16)
