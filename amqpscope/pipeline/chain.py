"""The chain plan's task: the files of a capture set one after another, in one process.

The connections of the set live on from file to file; the readers begin anew with each. One that ends in the
middle of a record has lost that packet, and a connection sees a gap there, as it does with any packet lost.
"""

from collections.abc import Iterator

import pyarrow as pa

from amqpscope.connections import ConnectionTable
from amqpscope.pipeline.files import FileReader, file_row, whole
from amqpscope.pipeline.inputs import CaptureSet
from amqpscope.pipeline.rows import Recorder, Rows

__all__ = ["read_set", "table_for"]


def table_for(recorder: Recorder, rows: Rows, name: str) -> ConnectionTable:
    """What analyses the connections of a capture set for these rows."""
    table = ConnectionTable(name, True, False, recorder.needs_records, rows.judges)
    table.gather_ended = True
    return table


def read_set(one: CaptureSet, rows: Rows) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Read a capture set into `rows`; gives the batches that are full. The rest is the caller's to take."""
    recorder = Recorder(rows, one.name, [file.capture for file in one.files])
    table = table_for(recorder, rows, one.name)
    for position, file in enumerate(one.files):
        reader = FileReader(file, position, whole(file), table)
        for _ in reader:
            recorder.take(table)
            yield from rows.batches()
        row = file_row(one.name, file, position, [reader.fate(recorder.take_file_notes())])
        rows.counts["file", row[4]] += 1
        rows.add("files", row)
    table.finish()
    recorder.take(table)
    yield from rows.batches()
