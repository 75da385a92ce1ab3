"""Packets into pcapng files, with what was found in them as comments.

Theory of operation. A packet becomes the block that it will be in the file at once, by one call that writes
it into a chunk of memory. Chunks stay in hand for a while, since what is to be said of a packet is often
known only from later ones: a comment that comes in time is put into its packet's block, one
that comes too late into the newest packet's, with the number of the one that it is about. `flush` writes what
has been in hand for `RECORDING_HOLD`, and earlier what is too much; the newest packet of all stays, so that
there always is one to take a comment. (But not for a pipe, whose reader waits for it: there a comment that
comes later goes to the next packet.)

A flight recorder writes nothing until it is triggered. Until then it forgets what is older than it has to
keep, or too much; from then on it is as the others, and begins with what it has kept.

How blocks become files, and when the next one begins, is for `pcapng_files` to know.

Nothing but `flush`, `trigger` and `finish` raises: an error in writing is kept until then and reported once.
The recorder takes no more packets after it.
"""

from struct import Struct
from typing import Final

from amqpscope.capture.recorder import Packet, PacketRecorder
from amqpscope.capture.recording.blocks import ENHANCED_PACKET, PACKET_MIN
from amqpscope.capture.recording.chunk import Chunk
from amqpscope.capture.recording.comments import Comments
from amqpscope.capture.recording.held_chunks import HeldChunks
from amqpscope.capture.recording.interfaces import Interfaces
from amqpscope.capture.recording.output import Rotation
from amqpscope.capture.recording.pcapng_files import PcapngFiles
from amqpscope.errors import CaptureError
from amqpscope.limits import (
    MAX_PACKET,
    MAX_TIME,
    RECORDING_BEFORE,
    RECORDING_HOLD,
    RECORDING_HOLD_OCTETS,
    RECORDING_LATE,
    RECORDING_SPAN,
)
from dissectors.wire import i64

__all__ = ["PcapngRecorder"]

_HIGHEST_WORD: Final = 0xFFFFFFFF
_MAX_FORMS: Final = 2048  # shapes of blocks remembered: of packets below 8 KiB, and some larger ones
_NEVER: Final = -1


class PcapngRecorder(PacketRecorder):
    """Records packets in files at `path`, `-` being standard output. Raises CaptureError if that cannot be.

    application: what says of itself to have written the file. start: when the capture began, nanoseconds
    since 1970; 0: with its first packet. rotation: a set of files instead of one. before: a flight recorder,
    which keeps the last so many nanoseconds, in at most `before_octets` of memory, and writes nothing until
    `trigger`. remark: said at the head of each file.

    `packets`: taken. `unrecorded`: of them not recorded, because of too many interfaces. `failed`: an error
    has ended the recording.
    """

    def __init__(
        self,
        path: str,
        application: str,
        start: int = 0,
        rotation: Rotation | None = None,
        before: int = 0,
        before_octets: int = RECORDING_BEFORE,
        remark: str = "",
    ) -> None:
        self.packets: i64 = 0
        self.unrecorded: i64 = 0
        self.failed = False
        self._interfaces = Interfaces()
        self._comments = Comments()
        self._files = PcapngFiles(path, application, rotation, before > 0, self._interfaces, self._comments)
        self._files.remark = remark
        self._start = start
        self._writing = before <= 0
        self._before: i64 = before
        self._closed = False
        self._error = ""
        # Packets in hand.
        self._held = HeldChunks(
            before_octets if before > 0 else RECORDING_HOLD_OCTETS, max(before // 100, RECORDING_SPAN)
        )
        self._newest: i64 = 0  # time of the last packet
        self._first_time: i64 = _NEVER
        self._forms: dict[int, Struct] = {}
        self._interface: i64 = _NEVER  # the last packet's
        self._link_type: i64 = _NEVER
        self._place: i64 = 0
        self._cut: i64 = _NEVER  # time of the last packet that was forgotten to keep memory bounded
        if self._writing and rotation is None:
            try:
                self._files.begin(0, 0)
            except CaptureError as error:
                self._fail(error)
            self._tell()

    @property
    def held(self) -> int:
        """Octets of memory that packets in hand take."""
        return int(self._held.octets)

    @property
    def files(self) -> list[str]:
        """Names of the files that were written and are there; standard output has none."""
        return self._files.names

    def number_in_file(self, packet: int) -> int:
        """The number that a packet of the capture has in the only file, or 0: there are several, or no such
        packet in it, or some before it are not in it.
        """
        first = self._files.first
        if len(self.files) != 1 or self.unrecorded or not 0 < first <= packet:
            return 0
        return packet - first + 1

    def interface(self, index: int, name: str, link_type: int, description: str, filter: str) -> None:
        """What is known of interface `index`. To be reported before its packets, to be written before
        them."""
        self._interfaces.tell(index, name, link_type, description, filter)

    def packet(self, packet: Packet) -> None:
        if self._closed:
            return
        self.packets += 1
        number: i64 = packet.number
        time: i64 = packet.time
        interface: i64 = packet.interface
        link_type: i64 = packet.link_type
        start: i64 = packet.start
        wire: i64 = packet.wire
        if interface != self._interface or link_type != self._link_type:
            if not self._choose(interface, link_type):
                self.unrecorded += 1
                return
        captured: i64 = packet.end - start
        if captured > MAX_PACKET:  # Wireshark takes no larger ones
            captured = MAX_PACKET
        if wire < captured:
            wire = captured
        elif wire > _HIGHEST_WORD:
            wire = _HIGHEST_WORD
        if time < 0:
            time = 0
        elif time > MAX_TIME:
            time = MAX_TIME
        padded: i64 = (captured + 3) & ~3
        size: i64 = PACKET_MIN + padded
        options = b""
        if len(self._interfaces.lost) > 0:
            options = self._interfaces.lost_before(interface)
            size += len(options)
        chunk = self._held.newest
        if number != chunk.next or chunk.room - chunk.end < size or time > chunk.until or time < chunk.time:
            chunk = self._begin_chunk(number, time, size)
        at: i64 = chunk.end
        form = self._forms.get(padded)
        if form is None:
            form = self._form(padded)
        form.pack_into(
            chunk.octets,
            at,
            ENHANCED_PACKET,
            size,
            self._place,
            time >> 32,
            time & 0xFFFFFFFF,
            captured,
            wire,
            packet.buf[start : start + captured],
            size,
        )
        if len(options) > 0:
            chunk.lossy = True
            # They go before the second length.
            chunk.octets[at + 28 + padded : at + size] = (
                options + chunk.octets[at + 28 + padded : at + 32 + padded]
            )
        chunk.last = at
        chunk.end = at + size
        chunk.next = number + 1
        if time > chunk.latest:
            chunk.latest = time
        self._newest = time
        if self._comments.late:
            self._comments.move_late(number)
            chunk.commented = True

    def lost(self, interface: int, count: int) -> None:
        """`count` packets of an interface were lost before the next one."""
        self._interfaces.lose(interface, count)

    def comment(self, packet: int, text: str) -> None:
        """A remark on a packet, or, if that is written already, on the newest one."""
        if self._closed:
            return
        chunk = self._held.chunk_of(packet)
        if chunk is None:
            text = f"packet {packet}: {text}"
            chunk = self._held.newest
            if chunk.end == chunk.start:
                self._comments.add_late(text)
                return
            packet = chunk.next - 1
        if self._comments.full and self._writing:
            self._write_until(MAX_TIME)
            chunk = self._held.chunk_of(packet)
            if chunk is None:
                self._comments.add_late(f"packet {packet}: {text}")
                return
        chunk.commented = True
        self._comments.add(packet, text)

    def embed(self, lines: bytes) -> None:
        """Put TLS secrets, lines of a key log, into the file: whoever has the file can decrypt it."""
        if self._closed:
            return
        try:
            self._files.embed(lines)
        except CaptureError as error:
            self._fail(error)
        self._tell()

    def flush(self, now: int = 0) -> None:
        """Write what has been in hand long enough: by the packets' times, and by the clock if `now` is given.

        `now` is in nanoseconds since 1970. To be called after each batch of packets, and once in a while when
        there are none.
        """
        if not self._closed:
            if self._writing:
                if self._files.begun:
                    self._describe()
                newest: i64 = self._newest
                if now > newest:
                    newest = min(now, MAX_TIME)
                self._write_until(newest - RECORDING_HOLD)
            else:
                self._forget(self._newest - self._before - RECORDING_LATE)
        self._tell()

    def trigger(self, reason: str, moment: int = 0) -> None:
        """A flight recorder: write what was kept, and from now on what comes. The file says the reason.

        moment: before which it is to be kept, in nanoseconds since 1970; 0: the newest packet.
        """
        if not self._closed and not self._writing:
            horizon: i64 = self._newest
            if 0 < moment < self._newest:
                horizon = moment
            horizon -= self._before
            self._forget(horizon)
            if self._cut >= horizon and len(self._held.chunks) > 0:
                kept: int = max(horizon + self._before - self._held.chunks[0].time, 0)
                reason += f"; memory for only {kept / 1_000_000_000:.3f} s before it"
            if self._comments.unsaid > 0:
                reason += f"; no memory for {self._comments.unsaid} comments before it"
            self._files.remark = reason
            self._writing = True
            self._held.most = RECORDING_HOLD_OCTETS
            self._held.span = RECORDING_SPAN
        self._tell()

    def finish(self, end: int, received: list[int], dropped: list[int]) -> None:
        """The capture ended at `end`, in nanoseconds since 1970, 0: with its last packet. Nothing may follow.

        received, dropped: packets of each interface since the start, as far as they are known.
        """
        if not self._closed and self._writing:
            self._write_until(MAX_TIME)
            chunk = self._held.newest
            if chunk.end > chunk.start:
                self._put(chunk, chunk.end)
            if not self._closed:
                self._finish(end, received, dropped)
        self._close()
        self._tell()

    # Packets in hand.

    def _choose(self, interface: i64, link_type: i64) -> bool:
        """Find the place of an interface. False: there is none left."""
        place = self._interfaces.place(interface, link_type)
        if place < 0:
            return False
        self._interface = interface
        self._link_type = link_type
        self._place = place
        return True

    def _form(self, padded: i64) -> Struct:
        """The shape of a block whose packet takes so many octets: seven words, the packet, its size again."""
        form = Struct(f"<7I{padded}sI")
        if len(self._forms) < _MAX_FORMS:
            self._forms[padded] = form
        return form

    def _begin_chunk(self, number: i64, time: i64, size: i64) -> Chunk:
        """A chunk for a packet that does not fit into the last one."""
        held = self._held
        room = held.next_room(size)
        if self._first_time < 0:
            self._first_time = time
        while not held.has_room(room):
            oldest = held.chunks[0]
            if self._writing:
                self._put(oldest, oldest.end)
                if self._closed:
                    break
            else:
                self._cut = oldest.latest
            self._drop_oldest()
        chunk = Chunk(room, number, time, time + held.span)
        if not self._closed:
            held.add(chunk)
        return chunk

    def _drop_oldest(self) -> None:
        chunk = self._held.drop_oldest()
        if chunk.commented:
            self._comments.forget(chunk.next)

    def _forget(self, horizon: i64) -> None:
        """Let go of what is older, but for the newest chunk."""
        while len(self._held.chunks) > 1 and self._held.chunks[0].latest < horizon:
            self._drop_oldest()

    # Writing.

    def _write_until(self, horizon: i64) -> None:
        """Write what is not later, except the newest packet (to a pipe that, too)."""
        chunks = self._held.chunks
        while len(chunks) > 0 and chunks[0].latest <= horizon:
            chunk = chunks[0]
            if len(chunks) == 1:
                stop: i64 = chunk.last
                if self._files.pipe:
                    stop = chunk.end
                if chunk.start < stop:
                    self._put(chunk, stop)
                return
            self._put(chunk, chunk.end)
            if self._closed:
                return
            self._drop_oldest()

    def _put(self, chunk: Chunk, stop: i64) -> None:
        """Write the blocks of a chunk that end at `stop` or before it, unless an error was the end."""
        if self._closed:
            return
        try:
            self._files.put(chunk, stop)
        except CaptureError as error:
            self._fail(error)

    def _describe(self) -> None:
        try:
            self._files.describe()
        except CaptureError as error:
            self._fail(error)

    def _finish(self, end: int, received: list[int], dropped: list[int]) -> None:
        try:
            if not self._files.begun:
                self._files.begin(end, 0)
            if end <= 0:
                end = self._newest
            start = self._start
            if start <= 0:
                start = self._first_time
            self._files.finish(start, end, received, dropped)
        except CaptureError as error:
            self._fail(error)

    def _fail(self, error: CaptureError) -> None:
        self.failed = True
        self._error = str(error)
        self._close()

    def _close(self) -> None:
        """Take no more, and let go of what is in hand."""
        self._closed = True
        self._held.chunks.clear()
        self._comments.clear()
        try:
            self._files.end()
        except CaptureError as error:
            if not self._error:
                self.failed = True
                self._error = str(error)

    def _tell(self) -> None:
        """Raise the error that has ended the recording, if there was one; once."""
        error = self._error
        if error:
            self._error = ""
            raise CaptureError(error)
