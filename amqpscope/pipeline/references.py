"""Segments on their way through a shuffle: where their payload lies, in blocks by connection.

A block is a row: capture set, pair, number of its first packet, and its segments, 44 octets each. A *pair*
is the lower of the two keys of a connection's directions (`Segment`): all connections between the same
two ends have it, so they stay together and are numbered in order. Blocks sorted by set, pair and packet
give each pair's segments in the order of the capture.

A segment's payload is named by its offset in the file, or lies in the block behind the segment (offset -1):
for files that cannot be read at any place, or where each place costs a request (`carries_payload`).
"""

import heapq
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from amqpscope.analysis.numbering import reverse_key
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.records import CaptureReader
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.limits import MAX_TIME
from amqpscope.pipeline.capture_set import CaptureSet
from amqpscope.pipeline.inputs import CaptureFile, is_remote, open_file
from amqpscope.pipeline.packets import split

__all__ = [
    "AUTO",
    "PAYLOAD",
    "REFERENCES",
    "SHUFFLES",
    "Payloads",
    "Referrer",
    "carries_payload",
    "replay",
    "replay_by_time",
]

AUTO = "auto"
REFERENCES = "references"
PAYLOAD = "payload"
SHUFFLES = (AUTO, REFERENCES, PAYLOAD)

# packet, time (ns), offset of the payload, seq, ack, octets captured, octets cut, flags, bits,
# identification of the datagram, window as `Segment` has it.
_SEGMENT = struct.Struct("<qqqIIIIBBHI")
_REVERSED = 1  # sent by the end whose key is not the pair's
_NO_ACK = 2
_INLINE = -1

BLOCK_OCTETS = 128 * 1024
"""Octets of a block. Spark's sort and the decoder's memory go by whole blocks; each costs some 100 octets."""

HELD_OCTETS = 16 * 1024 * 1024
"""Octets of all blocks being filled; beyond, all are given out: half full, if connections are many."""

WINDOW = 512 * 1024
GAP = 16 * 1024
"""Octets read at once of a file, and octets between two payloads that are rather read than stepped over."""

OPEN_FILES = 16
"""Files held open by a task that fetches payload: a connection goes through them one after another."""


def carries_payload(file: CaptureFile, shuffle: str) -> bool:
    """Whether the payload of a file goes through the shuffle. shuffle: one of SHUFFLES.

    It must if the file is compressed. By itself it does if the file is read over a network, where the pieces
    of one connection, between those of others, would be as many requests.
    """
    return bool(file.compression) or shuffle == PAYLOAD or (shuffle == AUTO and is_remote(file.path))


class Referrer(SegmentSink):
    """Gathers the segments of a file in blocks. inline: with their payload. Its notes are in `notes`.

    latest: time of the latest segment so far, for a file of a set that is read by time (`CaptureSet`); its
    blocks have the `latest` of their first segment in place of the packet.
    """

    def __init__(self, inline: bool, by_time: bool = False, latest: int = 0) -> None:
        super().__init__()
        self.notes: list[Any] = []
        self._secrets: list[bytes] = []
        self._inline = inline
        self._by_time = by_time
        self._latest = latest
        self._reader: CaptureReader | None = None
        self._blocks: dict[bytes, bytearray] = {}
        self._first: dict[bytes, int] = {}
        self._held = 0
        self._full: list[tuple[bytes, int, bytes]] = []

    def fed_by(self, reader: CaptureReader) -> None:
        """The reader that will feed it, which knows where in the file something lies."""
        self._reader = reader

    def segment(self, segment: Segment) -> None:
        bits = 0
        key, packet, time, ack = segment.key, segment.packet, segment.time, segment.ack
        if segment.reverse < key:
            key = segment.reverse
            bits = _REVERSED
        if ack < 0:
            ack = 0
            bits |= _NO_ACK
        if time > self._latest:
            self._latest = time
        block = self._blocks.get(key)
        if block is None:
            block = bytearray()
            self._blocks[key] = block
            self._first[key] = self._latest if self._by_time else packet
        offset = _INLINE
        if not self._inline:
            assert self._reader is not None
            offset = self._reader.place(segment.start)
        octets = segment.end - segment.start
        block += _SEGMENT.pack(
            packet,
            time,
            offset,
            segment.seq,
            ack,
            octets,
            segment.cut,
            segment.flags,
            bits,
            segment.identification,
            segment.window,
        )
        size = _SEGMENT.size
        if self._inline:
            block += segment.buf[segment.start : segment.end]
            size += octets
        self._held += size
        if len(block) >= BLOCK_OCTETS:
            self._give(key)

    def secrets(self, octets: bytes) -> None:
        self._secrets.append(octets)

    def take_secrets(self) -> list[bytes]:
        """The lines of key logs that the file had since the last call."""
        found = self._secrets
        self._secrets = []
        return found

    def note(self, code: str, packet: int, time: int, detail: str) -> None:
        self.notes.append((code, packet, time, detail))

    def _give(self, pair: bytes) -> None:
        block = self._blocks.pop(pair)
        self._held -= len(block)
        self._full.append((pair, self._first.pop(pair), bytes(block)))

    def take(self, everything: bool) -> list[tuple[bytes, int, bytes]]:
        """The blocks that are full, or all: pair, first packet (or time), segments."""
        if everything or self._held > HELD_OCTETS:
            for pair in list(self._blocks):
                self._give(pair)
        full = self._full
        self._full = []
        return full


class Payloads:
    """Reads payload from the files of a capture set, as much at a time as is likely to be wanted."""

    def __init__(self, one: CaptureSet) -> None:
        self._set = one
        self._open: dict[int, Any] = {}

    def read(self, position: int, offset: int, size: int) -> bytes:
        """Octets of the file at `position`. Raises OSError; the file is as long as it was."""
        file = self._open.pop(position, None)
        if file is None:
            file = open_file(self._set.files[position])
            if len(self._open) >= OPEN_FILES:
                self._open.pop(next(iter(self._open))).close()
        self._open[position] = file
        octets = bytes(file.read_at(size, offset))
        if len(octets) < size:
            raise OSError(f"{self._set.files[position].capture}: became shorter while it was read")
        return octets

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()
        self._open.clear()


def replay(pair: bytes, block: bytes, payloads: Payloads, table: ConnectionTable) -> None:
    """Feed the segments of a block to `table`."""
    keys = _keys(pair)
    for segments, window, base in _windows(block, payloads):
        for segment in segments:
            _feed(keys, segment, window, base, table)


def replay_by_time(
    pair: bytes, blocks: Iterable[tuple[int, bytes]], payloads: Payloads, table: ConnectionTable
) -> Iterator[None]:
    """Feed the segments of several blocks to `table`, in the order of time but never another one within a
    file. blocks: with the time of their first segment, by it. Gives way after each.
    """
    keys = _keys(pair)
    # Time, packet, and what more there is of the block: of all blocks that are not over.
    heads: list[tuple[int, int, _Head]] = []
    for time, block in blocks:
        _hand_on(heads, time, keys, table)
        head = _Head(time, _windows(block, payloads))
        heapq.heappush(heads, (head.time, head.packet, head))
        yield
    _hand_on(heads, MAX_TIME, keys, table)
    yield


class _Head:
    """The segment of a block that comes next. time: of the latest in the file up to it."""

    def __init__(self, time: int, windows: Iterator[tuple[list[tuple[int, ...]], bytes, int]]) -> None:
        self.time = time
        self._windows = windows
        self._segments: list[tuple[int, ...]] = []
        self._at = 0
        self.advance()

    def advance(self) -> bool:
        """Go to the next segment. False if there is none."""
        self._at += 1
        if self._at >= len(self._segments):
            following = next(self._windows, None)
            if following is None:
                return False
            self._segments, self.window, self.base = following
            self._at = 0
        self.segment = self._segments[self._at]
        self.packet = self.segment[0]
        self.time = max(self.time, self.segment[1])
        return True


_Keys = tuple[tuple[bytes, bytes], tuple[bytes, bytes]]


def _hand_on(heads: list[tuple[int, int, _Head]], until: int, keys: _Keys, table: ConnectionTable) -> None:
    """Feed what is earlier than `until`."""
    while heads and heads[0][0] < until:
        head = heads[0][2]
        _feed(keys, head.segment, head.window, head.base, table)
        if head.advance():
            heapq.heapreplace(heads, (head.time, head.packet, head))
        else:
            heapq.heappop(heads)


def _keys(pair: bytes) -> _Keys:
    other = reverse_key(pair)
    return (pair, other), (other, pair)


def _feed(keys: _Keys, stored: tuple[int, ...], octets: bytes, base: int, table: ConnectionTable) -> None:
    segment = Segment()
    segment.packet, segment.time, offset, segment.seq, ack, size, segment.cut, segment.flags, bits = stored[
        :9
    ]
    segment.identification, segment.window = stored[9:]
    segment.key, segment.reverse = keys[bits & _REVERSED]
    segment.ack = -1 if bits & _NO_ACK else ack
    segment.buf = octets
    segment.start = offset - base
    segment.end = segment.start + size
    table.segment(segment)


def _windows(block: bytes, payloads: Payloads) -> Iterator[tuple[list[tuple[int, ...]], bytes, int]]:
    """Runs of segments, the octets that hold their payload, and the offset these begin at."""
    if _SEGMENT.unpack_from(block)[2] == _INLINE:
        yield _inline(block), block, 0
        return
    run: list[tuple[int, ...]] = []
    position = begin = stop = 0
    for segment in _SEGMENT.iter_unpack(block):
        offset, size = segment[2], segment[5]
        if size:
            of = split(segment[0])[0]
            if stop and (of != position or not 0 <= offset - stop <= GAP or offset + size - begin > WINDOW):
                yield run, payloads.read(position, begin, stop - begin), begin
                run = []
                stop = 0
            if not stop:
                position, begin = of, offset
            stop = offset + size
        else:
            # Nothing is read for it; it is wherever its neighbours are.
            segment = (*segment[:2], begin, *segment[3:])
        run.append(segment)
    if run:
        yield run, payloads.read(position, begin, stop - begin) if stop else b"", begin


def _inline(block: bytes) -> list[tuple[int, ...]]:
    """Segments whose payload lies in the block, with its place there."""
    segments = []
    at = 0
    while at < len(block):
        segment = _SEGMENT.unpack_from(block, at)
        at += _SEGMENT.size
        segments.append((*segment[:2], at, *segment[3:]))
        at += segment[5]
    return segments
