"""The chain plan's task: the files of a capture set one after another, in one process; or, if they overlap
in time, segment by segment in the order of time.

The connections of the set live on from file to file; the readers begin anew with each. One that ends in the
middle of a record has lost that packet, and a connection sees a gap there, as it does with any packet lost.
"""

import heapq
from collections.abc import Iterator

import pyarrow as pa

from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.layers.secrets import Secrets
from amqpscope.model.note import Note
from amqpscope.pipeline.capture_set import CaptureSet
from amqpscope.pipeline.files import FileResult, RangeReader, file_row, whole
from amqpscope.pipeline.inputs import CaptureFile
from amqpscope.pipeline.rows import Recorder, Rows
from amqpscope.pipeline.secrets import secrets_for
from amqpscope.pipeline.series import add_missing

__all__ = ["read_set", "table_for"]


def table_for(recorder: Recorder, rows: Rows, name: str, secrets: Secrets) -> ConnectionTable:
    """What analyses the connections of a capture set for these rows. secrets: of its TLS."""
    output = AnalysisOutput(records=False, judge=rows.judges)
    output.dialect = rows.terms.dialect
    output.watch = recorder if recorder.needs_frames else None
    output.secrets = secrets
    return ConnectionTable(name, output, KeptConnections(every=False, ended=True, few_others=False))


def read_set(one: CaptureSet, rows: Rows) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Read a capture set into `rows`; gives the batches that are full. The rest is the caller's to take."""
    own = [file.name for file in one.files]
    recorder = Recorder(rows, one.name, [file.capture for file in one.files], own=own)
    table = table_for(recorder, rows, one.name, secrets_for(rows.terms.secrets, one, 0))
    read = _by_time if one.by_time else _in_turn
    for _ in read(one, table, recorder, rows):
        recorder.take(table)
        yield from rows.batches()
    add_missing(one.name, one.files, one.ordered, rows)
    table.finish()
    recorder.take(table)
    recorder.finish()
    yield from rows.batches()


def _in_turn(one: CaptureSet, table: ConnectionTable, recorder: Recorder, rows: Rows) -> Iterator[None]:
    """Feed the files one after another; gives way after each block."""
    for position, file in enumerate(one.files):
        reader = RangeReader(file, position, whole(file), table)
        for _ in reader:
            yield
        recorder.take(table)
        _add_row(one, position, reader.fate(recorder.take_file_notes()), rows)


def _by_time(one: CaptureSet, table: ConnectionTable, recorder: Recorder, rows: Rows) -> Iterator[None]:
    """Feed the files' segments in the order of time; never in another one within a file, whatever the times
    say. A file is opened when its time has come.
    """
    heads: list[tuple[int, int, _Head]] = []
    position = 0
    fed = 0
    while heads or position < len(one.files):
        if position < len(one.files) and (not heads or one.files[position].first_time <= heads[0][0]):
            head = _Head(one.files[position], position, table)
            if head.advance():
                heapq.heappush(heads, (head.latest, position, head))
            else:
                _add_row(one, position, head.fate(), rows)
            position += 1
            continue
        _, of, head = heads[0]
        table.segment(head.next)
        fed += 1
        if head.advance():
            heapq.heapreplace(heads, (head.latest, of, head))
        else:
            heapq.heappop(heads)
            _add_row(one, of, head.fate(), rows)
        if fed % _SEGMENTS_AT_ONCE == 0:
            yield
    yield


_SEGMENTS_AT_ONCE = 1024


class _Head(SegmentSink):
    """A file, and its segment that comes next. latest: time of the latest up to it. outer: takes its
    secrets.
    """

    def __init__(self, file: CaptureFile, position: int, outer: SegmentSink) -> None:
        super().__init__()
        self._outer = outer
        self.latest = 0
        self._notes: list[Note] = []
        self._segments: list[Segment] = []
        self._at = 0
        self._reader = RangeReader(file, position, whole(file), self)
        self._blocks = iter(self._reader)

    def advance(self) -> bool:
        """Go to the next segment. False if there is none."""
        self._at += 1
        while self._at >= len(self._segments):
            self._segments.clear()
            self._at = 0
            if next(self._blocks, self) is self:
                return False
        self.next = self._segments[self._at]
        self.latest = max(self.latest, self.next.time)
        return True

    def fate(self) -> FileResult:
        """What became of the file, at its end."""
        return self._reader.fate(self._notes)

    def segment(self, segment: Segment) -> None:
        self._segments.append(segment.kept())

    def secrets(self, octets: bytes) -> None:
        self._outer.secrets(octets)

    def note(self, code: str, packet: int, time: int, detail: str) -> None:
        self._notes.append(Note(code, packet, time, detail, None))


def _add_row(one: CaptureSet, position: int, fate: FileResult, rows: Rows) -> None:
    """The row of a file."""
    rows.add_file(file_row(one.name, one.files[position], position, [fate]))
