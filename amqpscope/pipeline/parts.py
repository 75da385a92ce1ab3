"""The Parquet files of a lake: how workers write the parts of a table, and read them again."""

import base64
import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from amqpscope.pipeline.arrow_values import scalar_of
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.inputs import file_system
from amqpscope.pipeline.refusals import in_words
from amqpscope.pipeline.schemas import LAKE_TABLES, TABLES, TableSchema
from amqpscope.pipeline.tags import Tags, tagged, with_tags

__all__ = [
    "NULL_DIRECTORY",
    "LakeFile",
    "PartReader",
    "PartWriter",
    "batches_of_part",
    "in_partition",
    "reading_tasks",
]

ROW_GROUP_ROWS = 1_000_000
ROW_GROUP_OCTETS = 64 * 1024 * 1024
"""Rows, and octets in memory, that a task gathers for a row group: the octets over all files it writes."""

_ZSTD_LEVEL = 3

_PAGES = {"max_rows_per_page": 1 << 17} if int(pa.__version__.split(".")[0]) >= 23 else {}
"""Most columns have few octets for many rows, and to begin a page takes as long as to encode thousands of
rows. Arrow before version 23 limits the octets of a page only.
"""

MAX_OPEN_PARTS = 24
"""Files that a task writes at a time. More days and protocols make more files, not more memory."""

NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"  # what Spark and Hive call the directory of a null


class LakeFile(NamedTuple):
    """A file of a table, by its path below the lake.

    first_set, last_set: the first and the last name, in the order of names, of the capture sets that its rows
    are about; "" if that is not known.
    """

    table: str
    path: str
    rows: int
    octets: int
    first_set: str = ""
    last_set: str = ""


class PartWriter:
    """Writes batches into files of a staging directory, one a table, date and protocol.

    stem: what the files of this task attempt are called, different from all others. tags: columns that all
    tables of captures have, and the text in them.
    """

    def __init__(self, staging: str, stem: str, tags: Tags = MappingProxyType({})) -> None:
        self._system, self._staging = file_system(staging)
        self._stem = stem
        self._tags = tags
        self._open: dict[tuple[str, str], _OpenPart] = {}
        self._held = 0  # octets of rows that are not written yet
        self._parts: list[LakeFile] = []

    def write(self, name: str, batch: pa.RecordBatch) -> None:
        """One batch of a table. PipelineError if it cannot be written; so in `close`."""
        if name in TABLES and self._tags:
            batch = with_tags(batch, self._tags)
        pieces = _by_partition(batch) if LAKE_TABLES[name].partitioned else [("", batch)]
        with self._explained():
            for directory, rows in pieces:
                self._write(name, directory, rows)

    def close(self) -> list[LakeFile]:
        """Finish all files; gives them."""
        with self._explained():
            for place in list(self._open):
                self._finish(place)
        return self._parts

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise PipelineError, in one line, for what pyarrow and the file system raise."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            for part in self._open.values():
                part.give_up()
            raise PipelineError(f"the tables cannot be written: {in_words(error, self._staging)}") from error

    def _write(self, name: str, directory: str, batch: pa.RecordBatch) -> None:
        place = (name, directory)
        part = self._open.pop(place, None)
        if part is None:
            if len(self._open) >= MAX_OPEN_PARTS:
                self._finish(next(iter(self._open)))
            folder = f"{name}/{directory}"
            path = f"{folder}part-{self._stem}-{len(self._parts) + len(self._open)}.parquet"
            self._make(folder)
            stream = self._system.open_output_stream(f"{self._staging}/{path}")
            table = tagged(LAKE_TABLES[name], self._tags)
            part = _OpenPart(path, stream, table, batch.schema)
        self._open[place] = part  # the one written last is the last
        self._held += part.take(batch)
        if part.waiting_rows >= ROW_GROUP_ROWS:
            self._held -= part.write()
        while self._held >= ROW_GROUP_OCTETS:
            self._held -= max(self._open.values(), key=lambda one: one.waiting_octets).write()

    def _make(self, folder: str) -> None:
        """Make a folder in the staging directory; not that itself: where it is gone, the run was given up."""
        if not isinstance(self._system, fs.LocalFileSystem):
            self._system.create_dir(f"{self._staging}/{folder}", recursive=True)
            return
        path = self._staging
        for name in folder.rstrip("/").split("/"):
            path = f"{path}/{name}"
            self._system.create_dir(path, recursive=False)

    def _finish(self, place: tuple[str, str]) -> None:
        part = self._open[place]
        self._held -= part.write()
        octets = part.close()
        del self._open[place]
        self._parts.append(LakeFile(place[0], part.path, part.rows, octets, *part.capture_sets()))


class _OpenPart:
    """A Parquet file that is written, and the rows that wait for its next row group.

    path: below the staging directory. rows: of the whole file. schema: of the batches, in which texts may
    have a dictionary.
    """

    def __init__(self, path: str, stream: Any, table: TableSchema, schema: pa.Schema) -> None:
        self.path = path
        self.rows = 0
        self.waiting_rows = 0
        self.waiting_octets = 0
        self._waiting: list[pa.RecordBatch] = []
        self._stream = stream
        self._metadata: list[pq.FileMetaData] = []
        self._together = table.together
        self._writer = _writer(stream, table, schema, self._metadata)

    def take(self, batch: pa.RecordBatch) -> int:
        """Let rows wait; gives their octets, without those of columns that are null throughout."""
        octets = sum(int(one.nbytes) for one in batch.columns if one.null_count < batch.num_rows)
        self._waiting.append(batch)
        self.rows += batch.num_rows
        self.waiting_rows += batch.num_rows
        self.waiting_octets += octets
        return octets

    def write(self) -> int:
        """Write what waits as a row group; gives its octets."""
        octets = self.waiting_octets
        if self._waiting:
            # Where all of a row group have one dictionary, it is written as it is.
            rows = pa.Table.from_batches(self._waiting).unify_dictionaries()
            if self._together is not None:
                rows = _put_together(rows, *self._together)
            self._writer.write_table(rows, ROW_GROUP_ROWS)
        self._waiting.clear()
        self.waiting_rows = self.waiting_octets = 0
        return octets

    def close(self) -> int:
        """Finish the file; gives its octets."""
        self._writer.close()
        octets = int(self._stream.tell())
        self._stream.close()
        return octets

    def give_up(self) -> None:
        """The file is not finished."""
        self._writer.is_open = False  # else pyarrow tries it once more, and prints what goes wrong

    def capture_sets(self) -> tuple[str, str]:
        """The first and the last capture set of a finished file; "" if the file does not tell."""
        (metadata,) = self._metadata
        # (Not by its schema: the two would refer to one another, and stay until the collector comes.)
        columns = [
            metadata.row_group(group).column(number)
            for group in range(metadata.num_row_groups)
            for number in range(metadata.num_columns)
        ]
        found = [one.statistics for one in columns if one.path_in_schema == "capture_set"]
        if not found or not all(one is not None and one.has_min_max for one in found):
            return "", ""
        return min(one.min for one in found), max(one.max for one in found)


def _put_together(rows: pa.Table, first: str, second: str) -> pa.Table:
    """The rows, those with the same values in two columns of text one behind the other.

    So what grows with each frame of a peer (offsets, delivery-ids, tags) grows evenly from row to row, which
    halves the files.
    """
    # (What has a dictionary already stays as it is.)
    of_first, of_second = (
        pc.dictionary_encode(rows.column(name).combine_chunks()) for name in (first, second)
    )
    of_each = scalar_of(len(of_second.dictionary), pa.int64())
    places = pc.multiply(pc.cast(of_first.indices, pa.int64()), of_each)
    order = pc.array_sort_indices(pc.add(places, of_second.indices))
    columns = [
        one if _is_constant(one) else pc.take(one.combine_chunks(), order, boundscheck=False)
        for name, one in zip(rows.column_names, rows.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _is_constant(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether all rows have the same value, or none has one. Chunks have one dictionary."""
    if column.null_count:
        return bool(column.null_count == len(column))
    if pa.types.is_dictionary(column.type):
        chunk = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        return len(chunk.dictionary) == 1
    kind = column.type
    if len(column) == 0 or pa.types.is_nested(kind) or pa.types.is_floating(kind) or column[0] != column[-1]:
        return False
    least, greatest = pc.min_max(column).values()
    return bool(least == greatest)


def _writer(stream: Any, table: TableSchema, schema: pa.Schema, metadata: list[Any]) -> Any:
    """Writes batches of a schema as Parquet. metadata: gets that of the file when it is finished.

    Numbers that repeat, and texts, have a dictionary, but for texts that differ. The other numbers (packets,
    offsets, times) grow by little: what they grow by takes a few bits.
    """
    dictionary: list[str] = []
    encodings: dict[str, str] = {}
    for column in table.columns:
        for path, kind in _leaves(column.name, column.type):
            if column.differs:
                encodings[path] = "PLAIN"
            elif pa.types.is_string(kind) or column.repeats:
                dictionary.append(path)
            elif pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
                encodings[path] = "DELTA_BINARY_PACKED"
    writer = pq.ParquetWriter(
        stream,
        schema,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        **_PAGES,
        use_dictionary=dictionary,
        column_encoding=encodings,
        write_statistics=list(table.bounded) or True,
        metadata_collector=metadata,
        store_schema=False,
    )
    # For who reads it with Arrow: the columns have no dictionaries then, whatever those of the batches have.
    writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(table.schema.serialize().to_pybytes())})
    return writer


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The columns that Parquet makes of a column, by their paths in the file."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path, kind


def _by_partition(batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    """The rows of each date and protocol, and their directory."""
    dates, protocols = batch.column("date"), batch.column("protocol")
    if batch.num_rows and _is_constant(dates) and _is_constant(protocols):
        return [(_directory(dates[0].as_py(), protocols[0].as_py()), batch)]
    rows: dict[str, list[int]] = {}
    for row, (date, protocol) in enumerate(zip(dates.to_pylist(), protocols.to_pylist(), strict=True)):
        rows.setdefault(_directory(date, protocol), []).append(row)
    return [(directory, batch.take(pa.array(indices))) for directory, indices in rows.items()]


def _directory(date: object, protocol: str | None) -> str:
    # The names of protocols are our own: no character in them that a path would mind.
    return f"date={date}/protocol={protocol or NULL_DIRECTORY}/"


class PartReader:
    """Reads parts of a table on Spark's workers.

    tasks: the places of the parts that each task reads. schema: of the table. A column that a part lacks,
    since an earlier version wrote it, is null.
    """

    def __init__(self, tasks: list[list[str]], schema: pa.Schema) -> None:
        self._tasks = tasks
        self._schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for numbers in batches:
            for number in numbers.column(0).to_pylist():
                for place in self._tasks[number]:
                    system, inner = file_system(place)
                    yield from batches_of_part(system, inner, self._schema)


def batches_of_part(
    system: fs.FileSystem,
    path: str,
    schema: pa.Schema,
    prepare: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda batch: batch,
) -> Iterator[pa.RecordBatch]:
    """The rows of a part. A column that the part lacks is null. prepare: what is done to each batch first."""
    with system.open_input_file(path) as file:
        try:
            parts = pq.ParquetFile(file)
        except pa.ArrowException as error:
            # As a dataset says it.
            raise pa.ArrowInvalid(f"Could not open Parquet input source '{path}': {error}") from error
        for batch in parts.iter_batches(_ROWS_AT_ONCE):
            batch = prepare(batch)
            there = batch.schema.names
            columns = [
                batch.column(field.name) if field.name in there else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def in_partition(path: str) -> pc.Expression:
    """What is true of all rows of a part: the date and the protocol, which its path names."""
    date, protocol = path.split("/")[-3:-1]
    there = pc.field("protocol").is_null()
    if not protocol.endswith(NULL_DIRECTORY):
        there = pc.field("protocol") == scalar_of(protocol.partition("=")[2], pa.string())
    day = datetime.date.fromisoformat(date.partition("=")[2])
    return (pc.field("date") == scalar_of(day, pa.date32())) & there


_ROWS_AT_ONCE = 4096


def reading_tasks(parts: list[LakeFile], place: Callable[[str], str]) -> list[list[str]]:
    """The places of parts, as many at a time as are worth a task. place: gives that of a path."""
    tasks: list[list[str]] = []
    octets = _OCTETS_OF_A_TASK
    for part in sorted(parts, key=lambda part: -part.octets):
        if octets + part.octets > _OCTETS_OF_A_TASK or len(tasks[-1]) >= _PARTS_OF_A_TASK:
            tasks.append([])
            octets = 0
        tasks[-1].append(place(part.path))
        octets += part.octets
    return tasks


_OCTETS_OF_A_TASK = 16 * 1024 * 1024
_PARTS_OF_A_TASK = 64
