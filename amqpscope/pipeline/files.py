"""Reading one input into a sink, whole or a range of its octets, and its row in the table `files`.

A file may be read in ranges, by different workers. `ranges` goes through it once with the real reader and a
sink that takes nothing, and keeps the reader's state (`CaptureReader.dump`) at every border: from there
another reader goes on exactly as this one did, in any format, with the packet's number, over damage, and
with the octets of a record that lies over the border.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from amqpscope.capture.decompression import Unpacked
from amqpscope.capture.pcap import PcapReader
from amqpscope.capture.pcapng import PcapngReader
from amqpscope.capture.reader import CaptureReader, for_magic
from amqpscope.capture.sink import SegmentSink
from amqpscope.model.note import Note
from amqpscope.pipeline.inputs import (
    READ_ERRORS,
    CaptureFile,
    Times,
    Trouble,
    open_file,
    size_now,
    trouble_of,
)
from amqpscope.pipeline.packets import first_number, split

__all__ = ["BLOCK", "FileResult", "Range", "RangeReader", "file_row", "ranges", "whole"]

BLOCK = 1024 * 1024
"""Octets read at a time: as many as `amqpscope.input.capture` does."""

_FED = 64 * 1024
"""Octets whose frames are made before rows are made of these: what was made a short while ago is still in the
cache of the processor.
"""

_PARTIAL = (
    ("capture/corrupt", "corrupt"),
    ("capture/compression", "foreign"),
    ("capture/truncated", "truncated"),
)
"""Notes that say that not all of a file could be read, the gravest first."""


_GONE = "The file existed when the run began. The file was removed since then, or the workers cannot see it"


class Range(NamedTuple):
    """Octets of a file. state: of the reader at `start`, None at the file's beginning. last: none follow.
    latest: time of the latest segment before `start`, where that matters.
    """

    start: int
    end: int
    state: tuple[Any, ...] | None
    last: bool
    latest: int = 0


class FileResult(NamedTuple):
    """What became of a file, or of a range of it."""

    trouble: Trouble | None
    packets: int
    segments: int
    notes: list[tuple[str, int, str]]


def whole(file: CaptureFile) -> Range:
    """All of a file."""
    return Range(0, file.size, None, True)


class RangeReader:
    """Feeds a range of a file to `sink`. Iterate over it; it is over, or the file cannot be read on, at the
    end.

    position: the file's place in its set. reported: called with the reader before it feeds. Notes about the
    file go to the sink, and `fate` wants them back. fed: octets of the range that the sink has; of a file
    that is compressed, of what it holds.
    """

    def __init__(
        self,
        file: CaptureFile,
        position: int,
        part: Range,
        sink: SegmentSink,
        reported: Callable[[CaptureReader], None] | None = None,
    ) -> None:
        self.file = file
        self.position = position
        self.part = part
        self.sink = sink
        self.reader: CaptureReader | None = None
        self.fed = 0
        self._trouble = file.trouble
        self._reported = reported
        self._left = 0

    def __iter__(self) -> Iterator[None]:
        if self._trouble is not None:
            return
        try:
            with open_file(self.file) as stream:
                yield from self._feed(stream)
        except READ_ERRORS as error:
            self._trouble = trouble_of(error)
            if self._trouble.reason == "missing":
                self._trouble = self._trouble._replace(detail=_GONE)
            if self.reader is not None:
                self.reader.finish()
            yield

    def _feed(self, stream: Any) -> Iterator[None]:
        part = self.part
        if part.start:
            stream.seek(part.start)
        self._left = part.end - part.start
        unpacked: Unpacked | None = None
        if self.file.compression:
            unpacked = Unpacked(lambda octets: self._octets(stream, octets))
        if part.state is not None:
            self._begin(b"")
        first = b""  # too few octets to tell what it is: a decompressor gives what it has
        while True:
            block = self._octets(stream, BLOCK) if unpacked is None else unpacked.read1(BLOCK)
            if not block:
                break
            if self.reader is None:
                first += block
                if len(first) < 4:
                    continue
                block = first
                if not self._begin(block):
                    return
            assert self.reader is not None
            for begin in range(0, len(block), _FED):
                slice_ = block[begin : begin + _FED]
                self.reader.feed(slice_)
                self.fed += len(slice_)
                yield
        if part.last:
            if self.reader is None:
                self._trouble = Trouble("empty", "the file is too small for a capture")
                return
            self.reader.finish()
            if unpacked is not None and unpacked.damage:
                self.sink.note(unpacked.damage_code, self.reader.number, 0, unpacked.damage)
            if size_now(self.file) > self.file.size:
                self._trouble = Trouble(
                    "growing",
                    f"the file is still being written: only the first {self.file.size} octets are read",
                )
            yield

    def _octets(self, stream: Any, octets: int) -> bytes:
        """The next octets of the range as they are in the file."""
        block = bytes(stream.read(min(octets, self._left)))
        self._left -= len(block)
        return block

    def _begin(self, block: bytes) -> bool:
        """Make the reader, from a state or from the file's first octets."""
        state = self.part.state
        if state is not None:
            kind = PcapngReader if state[0] == "pcapng" else PcapReader
            self._feeds(kind.load(state[1], self.sink))
            return True
        reader = for_magic(block, self.sink)
        if reader is None:
            self._trouble = Trouble("foreign", "not a capture file (neither pcap nor pcapng)")
            return False
        reader.number = first_number(self.position)
        self._feeds(reader)
        return True

    def _feeds(self, reader: CaptureReader) -> None:
        self.reader = reader
        if self._reported is not None:
            self._reported(reader)

    def fate(self, notes: list[Note]) -> FileResult:
        """What became of it. notes: those about the file that its sink was given."""
        reported = [(note.code, split(int(note.packet))[1], note.detail) for note in notes]
        reader = self.reader
        if reader is None:
            return FileResult(self._trouble, 0, 0, reported)
        return FileResult(
            self._trouble, int(reader.decoder.packets), int(reader.decoder.tcp_segments), reported
        )


def file_row(
    capture_set: str, file: CaptureFile, position: int | None, fates: list[FileResult]
) -> tuple[Any, ...]:
    """The row of a file in the table `files`. position: None if it has none in the set. fates: of its ranges,
    which count from its beginning.
    """
    trouble = next((fate.trouble for fate in fates if fate.trouble is not None), None)
    notes = [note for fate in fates for note in fate.notes]
    packets = max((fate.packets for fate in fates), default=0)
    segments = max((fate.segments for fate in fates), default=0)
    status = "ok"
    if trouble is None:
        for code, reason in _PARTIAL:
            detail = next((detail for noted, _, detail in notes if noted == code), None)
            if detail is not None:
                trouble = Trouble(reason, detail)
                break
    if trouble is not None:
        status = "partial" if packets else "unreadable"
    return (
        capture_set,
        file.capture,
        position,
        file.size,
        file.compression,
        file.identity or None,
        status,
        None if trouble is None else trouble.reason,
        None if trouble is None else trouble.detail,
        packets,
        segments,
        [{"code": code, "packet": packet or None, "detail": detail} for code, packet, detail in notes],
    )


def ranges(file: CaptureFile, position: int, octets: int, by_time: bool = False) -> list[Range]:
    """A file as ranges of about so many octets, each with the state of the reader where it begins.

    A compressed file, or one that cannot be read to its end, is one range. by_time: with `Range.latest`.
    """
    if file.compression or file.size <= octets:
        return [whole(file)]
    sink = Times() if by_time else SegmentSink()
    reader = RangeReader(file, position, whole(file), sink)
    borders: list[tuple[int, tuple[Any, ...], int]] = []
    for _ in reader:
        due = (len(borders) + 1) * octets
        if reader.reader is not None and due <= reader.fed < file.size:
            kind = "pcapng" if isinstance(reader.reader, PcapngReader) else "pcap"
            latest = sink.latest if isinstance(sink, Times) else 0
            borders.append((reader.fed, (kind, reader.reader.dump()), latest))
    if reader.fate([]).trouble is not None:
        return [whole(file)]
    begins: list[tuple[int, tuple[Any, ...] | None, int]] = [(0, None, 0), *borders]
    ends = [*(start for start, _, _ in borders), file.size]
    return [
        Range(start, end, state, end == file.size, latest)
        for (start, state, latest), end in zip(begins, ends, strict=True)
    ]
