"""What runs on Spark's workers: objects that take batches and give batches, as `mapInArrow` wants them.

Each is made on the driver and sent to the workers by pickle, so a worker needs amqpscope installed. What
comes of the rows is the outlet's: one table of them (`OneTable`), or files of a lake and a report
(`StagedFiles`).
"""

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from amqpscope import __version__
from amqpscope.input.garbage import calm_collector, calm_worker
from amqpscope.pipeline import flow
from amqpscope.pipeline.capture_set import CaptureSet
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.columns import batch_of, without_dictionaries
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.files import ranges
from amqpscope.pipeline.flow import BLOCKS, FilePiece
from amqpscope.pipeline.parts import PartWriter
from amqpscope.pipeline.planner import Plan
from amqpscope.pipeline.rows import USUAL_TERMS, Rows, RowTerms
from amqpscope.pipeline.schemas import TABLES
from amqpscope.pipeline.secrets import SecretsAddress
from amqpscope.pipeline.tags import Tags

__all__ = [
    "PIECES",
    "REPORT",
    "Analyse",
    "Chain",
    "Correlate",
    "Index",
    "OneTable",
    "Refer",
    "StagedFiles",
    "TaskOutput",
    "WorkerTask",
    "carrying",
]

REPORT = pa.schema(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        ("rows", pa.int64()),
        ("octets", pa.int64()),
        ("first_set", pa.string()),
        ("last_set", pa.string()),
    ]
)
"""What a task reports: kind `count`, with a key of `Rows.counts` as JSON; or a `LakeFile`, with its table."""

PIECES = pa.schema([("piece", pa.binary())])

Batches = Iterator[pa.RecordBatch]


class TaskOutput(ABC):
    """Where rows go. tables: those that are made. schema: of the batches it gives."""

    tables: tuple[str, ...] = tuple(TABLES)
    terms: RowTerms = USUAL_TERMS
    schema: pa.Schema

    @abstractmethod
    def take(self, made: Iterator[tuple[str, pa.RecordBatch]], rows: Rows) -> Batches:
        """The batches of a task as they come; `rows` has the last ones and the counts then."""


class OneTable(TaskOutput):
    """Gives the rows of one table."""

    def __init__(self, table: str, terms: RowTerms = USUAL_TERMS) -> None:
        self.tables = (table,)
        self.terms = terms
        self.schema = TABLES[table].schema

    def take(self, made: Iterator[tuple[str, pa.RecordBatch]], rows: Rows) -> Batches:
        for _, batch in made:
            yield without_dictionaries(batch)
        for _, batch in rows.batches(True):
            yield without_dictionaries(batch)


class StagedFiles(TaskOutput):
    """Writes tables into a staging directory, and gives a report. tally: an accumulator for the counts.

    tags: of all rows.
    """

    def __init__(
        self,
        staging: str,
        run: str,
        tables: tuple[str, ...],
        tally: Any = None,
        terms: RowTerms = USUAL_TERMS,
        tags: Tags = MappingProxyType({}),
    ) -> None:
        self.tables = tables
        self.terms = terms
        self.schema = REPORT
        self._staging = staging
        self._run = run
        self._tally = tally
        self._tags = dict(tags)

    def take(self, made: Iterator[tuple[str, pa.RecordBatch]], rows: Rows) -> Batches:
        writer = PartWriter(self._staging, f"{self._run}-{uuid.uuid4().hex[:12]}", self._tags)
        for table, batch in made:
            writer.write(table, batch)
        for table, batch in rows.batches(True):
            writer.write(table, batch)
        for number in rows.rulings.used:
            rows.counts["allowed", str(number)] += 1
        if self._tally is not None:
            self._tally.add(rows.counts)
        report: list[tuple[Any, ...]] = [*writer.close()]
        report += [("count", json.dumps(key), count, 0, "", "") for key, count in rows.counts.items()]
        if report:
            yield batch_of(report, REPORT)


class WorkerTask:
    """Does a task on a worker of Spark if it has the driver's version: another one may judge otherwise."""

    def __init__(self, task: Callable[[Batches], Batches]) -> None:
        self._task = task
        self._version = __version__

    def __call__(self, batches: Batches) -> Batches:
        if self._version != __version__:
            raise PipelineError(
                f"the workers have amqpscope {__version__}, but this machine has amqpscope {self._version}"
            )
        calm_worker()
        return self._task(batches)


def _numbers(batches: Batches) -> Iterator[int]:
    """The rows of `spark.range`."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


class Chain:
    """Task n of the chain plan."""

    def __init__(self, plan: Plan, outlet: TaskOutput) -> None:
        self._plan = plan
        self._outlet = outlet

    def __call__(self, batches: Batches) -> Batches:
        calm_collector()
        rows = Rows(self._outlet.tables, self._outlet.terms)
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
            one = self._sets[set_number]
            cut = ranges(one.files[position], position, self._octets, one.by_time)
            pieces = [FilePiece(set_number, position, which, part) for which, part in enumerate(cut)]
            yield pa.RecordBatch.from_arrays(
                [pa.array([pickle.dumps(piece) for piece in pieces], pa.binary())], schema=PIECES
            )


class Refer:
    """The references of task n's pieces. secrets: who takes those of the files."""

    def __init__(
        self, plan: Plan, tasks: list[list[FilePiece]], secrets: SecretsAddress | None = None
    ) -> None:
        self._secrets = secrets
        self._sets = list(plan.sets)
        self._shuffle = plan.shuffle
        self._tasks = tasks

    def __call__(self, batches: Batches) -> Batches:
        calm_collector()
        for number in _numbers(batches):
            for piece in self._tasks[number]:
                yield from flow.refer(piece, self._sets, self._shuffle, self._secrets)


def carrying(schema: pa.Schema) -> pa.Schema:
    """What goes from `Analyse` to `Correlate`: rows of this schema, and summaries of connections.

    In a row of the first kind `set_number` is negative: it only spreads them. A summary has all else null.
    """
    return schema.append(pa.field("set_number", pa.int32())).append(pa.field("summary", pa.binary()))


def _carried(schema: pa.Schema, set_numbers: list[int], summaries: list[bytes | None], rows: Any) -> Any:
    """A batch of one of the kinds. rows: columns of the first, None for the second."""
    size = len(set_numbers)
    columns = rows or [pa.nulls(size, field.type) for field in schema]
    columns = [*columns, pa.array(set_numbers, pa.int32()), pa.array(summaries, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=carrying(schema))


class Analyse:
    """The rows of the connections whose blocks come, in order. With findings: `carrying` summaries."""

    def __init__(self, sets: tuple[CaptureSet, ...], outlet: TaskOutput) -> None:
        self._sets = list(sets)
        self._outlet = outlet

    def __call__(self, batches: Batches) -> Batches:
        calm_collector()
        rows = Rows(self._outlet.tables, self._outlet.terms)
        blocks = flow.blocks_of(batch.select(BLOCKS.names) for batch in batches)
        summaries: list[tuple[int, bytes]] = []
        schema = self._outlet.schema
        for batch in self._outlet.take(flow.analyse(blocks, self._sets, rows, summaries), rows):
            if not rows.judges:
                yield batch
                continue
            spread = [-1 - row % _SPREAD for row in range(batch.num_rows)]
            yield _carried(schema, spread, [None] * batch.num_rows, batch.columns)
            if summaries:
                yield _carried(schema, [of for of, _ in summaries], [one for _, one in summaries], None)
                summaries.clear()
        if summaries:
            yield _carried(schema, [of for of, _ in summaries], [one for _, one in summaries], None)


class Correlate:
    """What only several connections of a capture set tell. Takes what `carrying` says, by set number."""

    def __init__(self, sets: tuple[CaptureSet, ...], outlet: TaskOutput) -> None:
        self._sets = list(sets)
        self._outlet = outlet

    def __call__(self, batches: Batches) -> Batches:
        rows = Rows(self._outlet.tables, self._outlet.terms)
        summaries: list[bytes] = []
        current = -1
        for batch in batches:
            numbers = batch.column("set_number").to_pylist()
            others = batch.filter(pc.less(batch.column("set_number"), 0))
            if others.num_rows:
                yield others.select(self._outlet.schema.names)
            for number, summary in zip(numbers, batch.column("summary"), strict=True):
                if number < 0:
                    continue
                if number != current and summaries:
                    flow.correlate(self._sets[current], summaries, rows)
                    summaries = []
                current = number
                summaries.append(summary.as_py())
        if summaries:
            flow.correlate(self._sets[current], summaries, rows)
        yield from self._outlet.take(iter(()), rows)


_SPREAD = 64
