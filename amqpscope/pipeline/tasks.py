"""What runs on Spark's workers: objects that take batches and give batches, as `mapInArrow` wants them.

Each is made on the driver and sent to the workers by pickle, so a worker needs amqpscope installed. What
comes of the rows is the outlet's: one table of them (`OneTable`), or files of a lake and a report
(`Files`).
"""

import json
import uuid
from collections.abc import Iterator

import pyarrow as pa

from amqpscope.pipeline import flow
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.files import ranges
from amqpscope.pipeline.flow import BLOCKS, Piece
from amqpscope.pipeline.inputs import CaptureSet
from amqpscope.pipeline.lake import PartWriter
from amqpscope.pipeline.planner import Plan
from amqpscope.pipeline.rows import Rows
from amqpscope.pipeline.schemas import TABLES

__all__ = ["PIECES", "REPORT", "Analyse", "Chain", "Files", "Index", "OneTable", "Outlet", "Refer"]

REPORT = pa.schema(
    [("kind", pa.string()), ("name", pa.string()), ("rows", pa.int64()), ("octets", pa.int64())]
)
"""What a task reports: kind `count`, with a key of `Rows.counts` as JSON; or the table of a file, its path,
rows and octets."""

PIECES = pa.schema([("piece", pa.binary())])

Batches = Iterator[pa.RecordBatch]


class Outlet:
    """Where rows go. tables: those that are made."""

    tables: tuple[str, ...] = tuple(TABLES)

    def take(self, made: Iterator[tuple[str, pa.RecordBatch]], rows: Rows) -> Batches:
        """The batches of a task as they come; `rows` has the last ones and the counts then."""
        raise NotImplementedError


class OneTable(Outlet):
    """Gives the rows of one table."""

    def __init__(self, table: str) -> None:
        self.tables = (table,)

    def take(self, made: Iterator[tuple[str, pa.RecordBatch]], rows: Rows) -> Batches:
        for _, batch in made:
            yield batch
        for _, batch in rows.batches(True):
            yield batch


class Files(Outlet):
    """Writes all tables into a staging directory, and gives a report."""

    def __init__(self, staging: str, run: str) -> None:
        self._staging = staging
        self._run = run

    def take(self, made: Iterator[tuple[str, pa.RecordBatch]], rows: Rows) -> Batches:
        writer = PartWriter(self._staging, f"{self._run}-{uuid.uuid4().hex[:12]}")
        for table, batch in made:
            writer.write(table, batch)
        for table, batch in rows.batches(True):
            writer.write(table, batch)
        report = [(part.table, part.path, part.rows, part.octets) for part in writer.close()]
        report += [("count", json.dumps(key), count, 0) for key, count in rows.counts.items()]
        if report:
            columns = [
                pa.array(values, field.type)
                for values, field in zip(zip(*report, strict=True), REPORT, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=REPORT)


def _numbers(batches: Batches) -> Iterator[int]:
    """The rows of `spark.range`."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


class Chain:
    """Task n of the chain plan."""

    def __init__(self, plan: Plan, outlet: Outlet) -> None:
        self._plan = plan
        self._outlet = outlet

    def __call__(self, batches: Batches) -> Batches:
        rows = Rows(self._outlet.tables)
        yield from self._outlet.take(self._read(batches, rows), rows)

    def _read(self, batches: Batches, rows: Rows) -> Iterator[tuple[str, pa.RecordBatch]]:
        for number in _numbers(batches):
            for set_number in self._plan.tasks[number]:
                yield from read_set(self._plan.sets[set_number], rows)


class Index:
    """Cuts file n of those that are large into ranges."""

    def __init__(self, sets: tuple[CaptureSet, ...], files: list[tuple[int, int]], octets: int) -> None:
        self._sets = sets
        self._files = files
        self._octets = octets

    def __call__(self, batches: Batches) -> Batches:
        import pickle

        for number in _numbers(batches):
            set_number, position = self._files[number]
            cut = ranges(self._sets[set_number].files[position], position, self._octets)
            pieces = [Piece(set_number, position, which, part) for which, part in enumerate(cut)]
            yield pa.RecordBatch.from_arrays(
                [pa.array([pickle.dumps(piece) for piece in pieces], pa.binary())], schema=PIECES
            )


class Refer:
    """The references of task n's pieces."""

    def __init__(self, sets: tuple[CaptureSet, ...], tasks: list[list[Piece]]) -> None:
        self._sets = list(sets)
        self._tasks = tasks

    def __call__(self, batches: Batches) -> Batches:
        for number in _numbers(batches):
            for piece in self._tasks[number]:
                yield from flow.refer(piece, self._sets)


class Analyse:
    """The rows of the connections whose blocks come, in order."""

    def __init__(self, sets: tuple[CaptureSet, ...], outlet: Outlet) -> None:
        self._sets = list(sets)
        self._outlet = outlet

    def __call__(self, batches: Batches) -> Batches:
        rows = Rows(self._outlet.tables)
        blocks = flow.blocks_of(batch.select(BLOCKS.names) for batch in batches)
        yield from self._outlet.take(flow.analyse(blocks, self._sets, rows), rows)
