"""A lake: the tables of one run as Parquet files, and the manifest that says which files these are.

    LAKE/manifest.json                                            the run, and every file with its rows
    LAKE/run-RUN/frames/date=2026-01-31/protocol=amqp10/part-RUN-....parquet
    LAKE/run-RUN/files/part-RUN-....parquet                       not partitioned
    LAKE/latest                                                   symbolic link to run-RUN, in local lakes
    LAKE/_staging/RUN/...                                         while a run is under way
    LAKE/_lease.json                                              which run that is (see `lease`)

Workers write into the staging directory and report their files; only the files of task attempts that Spark
took for finished come back. The driver moves these into the directory of the run and then replaces the
manifest, in one step: that is the commit. The link follows, in one step, too. So whoever reads by the
manifest (`table`, `pipeline sql`, `pipeline summary`) or through the link sees one run or the other, whole.

The files of the run before stay until the next run commits: a data frame made before a commit can be read
after it. What a run left that died before its commit is deleted by the next.
"""

import contextlib
import datetime
import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.inputs import LAKE, LAKE_MANIFEST, file_system, plain, shown
from amqpscope.pipeline.lease import LEASE, Lease
from amqpscope.pipeline.schemas import SCHEMA_VERSION, TABLES, TableSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LAKE_SCHEMA", "Lake", "LakeFile", "PartWriter", "table"]

LAKE_SCHEMA = f"{LAKE}2"

LATEST = "latest"
_STAGING = "_staging"
_RUN = "run-"

_UNDER_WAY = re.compile(rf"{_STAGING}|{LEASE}.*|{_RUN}[0-9a-f]{{12}}|_{LATEST}")
"""What a run leaves in a lake that dies before its commit."""

ROW_GROUP_ROWS = 1_000_000
ROW_GROUP_OCTETS = 64 * 1024 * 1024
"""Rows, and octets in memory, that a task gathers for a row group: the octets over all files it writes."""

MAX_OPEN_PARTS = 24
"""Files that a task writes at a time. More days and protocols make more files, not more memory."""

_ATTEMPTS = 5
"""How often a directory is tried to be deleted that others write into."""

_NULL = "__HIVE_DEFAULT_PARTITION__"  # what Spark and Hive call the directory of a null


class LakeFile(NamedTuple):
    """A file of a table, by its path below the lake."""

    table: str
    path: str
    rows: int
    octets: int


class PartWriter:
    """Writes batches into files of a staging directory, one a table, date and protocol.

    stem: what the files of this task attempt are called, different from all others.
    """

    def __init__(self, staging: str, stem: str) -> None:
        self._system, self._staging = file_system(staging)
        self._stem = stem
        self._open: dict[tuple[str, str], _OpenPart] = {}
        self._held = 0  # octets of rows that are not written yet
        self._parts: list[LakeFile] = []

    def write(self, name: str, batch: pa.RecordBatch) -> None:
        """One batch of a table."""
        table = TABLES[name]
        if not table.partitioned:
            self._write(name, "", batch)
            return
        for directory, rows in _by_partition(batch):
            self._write(name, directory, rows.select(table.stored.names))

    def close(self) -> list[LakeFile]:
        """Finish all files; gives them."""
        for place in list(self._open):
            self._finish(place)
        return self._parts

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
            part = _OpenPart(path, stream, batch.schema)
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
        part = self._open.pop(place)
        self._held -= part.write()
        self._parts.append(LakeFile(place[0], part.path, part.rows, part.close()))


class _OpenPart:
    """A Parquet file that is written, and the rows that wait for its next row group.

    path: below the staging directory. rows: of the whole file.
    """

    def __init__(self, path: str, stream: Any, schema: pa.Schema) -> None:
        self.path = path
        self.rows = 0
        self.waiting_rows = 0
        self.waiting_octets = 0
        self._waiting: list[pa.RecordBatch] = []
        self._stream = stream
        # Packets, offsets and times grow by little: what they grow by takes a few bits. Most texts repeat.
        leaves = [leaf for field in schema for leaf in _leaves(field.name, field.type)]
        packed = [path for path, kind in leaves if pa.types.is_integer(kind) or pa.types.is_timestamp(kind)]
        self._writer = pq.ParquetWriter(
            stream,
            schema,
            compression="zstd",
            use_dictionary=[path for path, kind in leaves if pa.types.is_string(kind)],
            column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
        )

    def take(self, batch: pa.RecordBatch) -> int:
        """Let rows wait; gives their octets."""
        octets = int(batch.nbytes)
        self._waiting.append(batch)
        self.rows += batch.num_rows
        self.waiting_rows += batch.num_rows
        self.waiting_octets += octets
        return octets

    def write(self) -> int:
        """Write what waits as a row group; gives its octets."""
        octets = self.waiting_octets
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting), ROW_GROUP_ROWS)
        self._waiting.clear()
        self.waiting_rows = self.waiting_octets = 0
        return octets

    def close(self) -> int:
        """Finish the file; gives its octets."""
        self._writer.close()
        octets = int(self._stream.tell())
        self._stream.close()
        return octets


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
    if len(pc.unique(dates)) == 1 and len(pc.unique(protocols)) == 1:
        return [(_directory(dates[0].as_py(), protocols[0].as_py()), batch)]
    rows: dict[str, list[int]] = {}
    for row, (date, protocol) in enumerate(zip(dates.to_pylist(), protocols.to_pylist(), strict=True)):
        rows.setdefault(_directory(date, protocol), []).append(row)
    return [(directory, batch.take(pa.array(indices))) for directory, indices in rows.items()]


def _directory(date: object, protocol: str | None) -> str:
    # The names of protocols are our own: no character in them that a path would mind.
    return f"date={date}/protocol={protocol or _NULL}/"


class PartReader:
    """Reads parts of a table on Spark's workers. tasks: the parts that each task reads, by its number."""

    def __init__(self, lake: "Lake", name: str, tasks: list[list[str]]) -> None:
        self._tasks = [[(path, lake.place(path)) for path in task] for task in tasks]
        self._name = name

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = TABLES[self._name]
        for numbers in batches:
            for number in numbers.column(0).to_pylist():
                for path, place in self._tasks[number]:
                    system, inner = file_system(place)
                    with system.open_input_file(inner) as file:
                        for rows in pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE):
                            yield _with_partition(rows, path) if table.partitioned else rows


def _partition(path: str) -> tuple[pa.Scalar, pa.Scalar]:
    """The date and the protocol of all rows of a part, which only its path has."""
    date, protocol = path.split("/")[-3:-1]
    return (
        pa.scalar(datetime.date.fromisoformat(date.partition("=")[2]), pa.date32()),
        pa.scalar(None if protocol.endswith(_NULL) else protocol.partition("=")[2], pa.string()),
    )


def _with_partition(rows: pa.RecordBatch, path: str) -> pa.RecordBatch:
    """Rows of a part with date and protocol."""
    for name, value in zip(("date", "protocol"), _partition(path), strict=True):
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def _in_partition(path: str) -> pc.Expression:
    """What is true of all rows of a part."""
    date, protocol = _partition(path)
    there = pc.field("protocol") == protocol if protocol.is_valid else pc.field("protocol").is_null()
    return (pc.field("date") == date) & there


_ROWS_AT_ONCE = 4096


def _tasks(parts: list[LakeFile]) -> list[list[str]]:
    """The paths of parts, as many at a time as are worth a task."""
    tasks: list[list[str]] = []
    octets = _OCTETS_OF_A_TASK
    for part in sorted(parts, key=lambda part: -part.octets):
        if octets + part.octets > _OCTETS_OF_A_TASK or len(tasks[-1]) >= _PARTS_OF_A_TASK:
            tasks.append([])
            octets = 0
        tasks[-1].append(part.path)
        octets += part.octets
    return tasks


_OCTETS_OF_A_TASK = 16 * 1024 * 1024
_PARTS_OF_A_TASK = 64


class Lake:
    """A lake at a path or URL."""

    def __init__(self, path: str) -> None:
        if not path:
            raise PipelineError("the name of the lake is empty: give a directory or a URL")
        self.path = plain(path.rstrip("/") or path)
        self.name = shown(self.path)
        try:
            self._system, self._root = file_system(self.path)
        except OSError as error:
            raise PipelineError(f"{self.name}: {error}") from error
        self._lease = Lease(self._system, self._root, self.name)
        self._run = ""  # that is under way, begun by this object
        self._made = False  # by us, and nothing was committed to it

    def for_spark(self) -> str | None:
        """What Spark calls the lake; None if Spark, as it is installed, cannot open it."""
        if isinstance(self._system, fs.LocalFileSystem):
            return self._root
        return self.path if self.path.startswith("hdfs://") else None

    def manifest(self) -> dict[str, Any] | None:
        """What the last run that ended has written, or None."""
        try:
            with self._system.open_input_stream(f"{self._root}/{LAKE_MANIFEST}") as file:
                manifest = json.loads(file.read())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise PipelineError(f"{self.name}/{LAKE_MANIFEST}: cannot be read ({error})") from error
        if manifest.get("schema") != LAKE_SCHEMA:
            raise PipelineError(
                f"{self.name}: not a lake of this version ({manifest.get('schema')}): write a new one"
            )
        return dict(manifest)

    def written(self) -> dict[str, Any]:
        """The manifest. PipelineError if there is none: this is not a lake."""
        manifest = self.manifest()
        if manifest is None:
            raise PipelineError(f"{self.name}: is not a lake (it has no {LAKE_MANIFEST})")
        return manifest

    def tables(self) -> list[str]:
        """The tables that the last run wrote. PipelineError: see `written`."""
        tables = self.written()["tables"]
        return [name for name in TABLES if name in tables]

    def all_parts(self) -> dict[str, list[LakeFile]]:
        """The files of each table that the last run wrote. PipelineError: see `written`."""
        manifest = self.written()
        parts: dict[str, list[LakeFile]] = {name: [] for name in TABLES if name in manifest["tables"]}
        for part in (LakeFile(**part) for part in manifest["parts"]):
            place = f"{_RUN}{manifest['run']}/{part.table}/"
            if part.table not in parts or not part.path.startswith(place) or ".." in part.path.split("/"):
                raise PipelineError(f"{self.name}/{LAKE_MANIFEST}: {part.path} is no file of {part.table}")
            parts[part.table].append(part)
        return parts

    def parts(self, name: str) -> list[LakeFile]:
        """The files of a table. PipelineError if the last run wrote no such table."""
        if name not in TABLES:
            raise PipelineError(f"{name}: there is no such table; the tables are {', '.join(TABLES)}")
        parts = self.all_parts()
        if name not in parts:
            raise PipelineError(
                f"{self.name}: the last run did not write the table {name} (`--tables` left it out)"
            )
        return parts[name]

    def dataset(self, name: str, parts: list[LakeFile]) -> Any:
        """Files of a table as an Arrow dataset."""
        from pyarrow import dataset

        return dataset.FileSystemDataset.from_paths(
            [f"{self._root}/{part.path}" for part in parts],
            schema=TABLES[name].schema,
            format=dataset.ParquetFileFormat(),
            filesystem=self._system,
            partitions=[_in_partition(part.path) for part in parts] if TABLES[name].partitioned else None,
        )

    def troubles(self) -> list[tuple[str, str, str]]:
        """The inputs that were not read, or not to the end: capture, reason, detail."""
        found: list[tuple[str, str, str]] = []
        for part in self.parts("files"):
            with self._system.open_input_file(f"{self._root}/{part.path}") as file:
                rows = pq.read_table(file, columns=["capture", "status", "reason", "detail"]).to_pylist()
            found += [(row["capture"], row["reason"], row["detail"]) for row in rows if row["status"] != "ok"]
        return sorted(found)

    def refuse(self) -> None:
        """Raise PipelineError if no run may begin: a directory of something else, or another run at work."""
        try:
            self._refuse_others()
            if self._system.get_file_info(self._root).type != fs.FileType.NotFound:
                self._lease.refuse_if_held(_new_run())
        except OSError as error:
            raise PipelineError(f"{self.name}: {error}") from error

    def begin(self) -> tuple[str, str]:
        """A new run: its name, and its staging directory. PipelineError: see `refuse`.

        What dead runs have left is deleted.
        """
        run = _new_run()
        try:
            self._refuse_others()
            self._made = self._made or self._system.get_file_info(self._root).type == fs.FileType.NotFound
            self._system.create_dir(self._root, recursive=True)
            self._lease.take(run)
            self._run = run
            manifest = self.manifest() or {}
            self._clear(manifest.get("run"), manifest.get("before"))
            self._link(manifest.get("run"))
            self._delete(f"{self._root}/{_STAGING}")
            self._system.create_dir(f"{self._root}/{_STAGING}/{run}", recursive=True)
        except OSError as error:
            self.abandon()
            raise PipelineError(f"{self.name}: {error}") from error
        return run, self.place(f"{_STAGING}/{run}")

    def _refuse_others(self) -> None:
        found = self._system.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        others = [file for file in found if not _UNDER_WAY.fullmatch(str(file.base_name))]
        if others and self.manifest() is None:
            raise PipelineError(f"{self.name}: the directory is not empty and is not a lake")

    def place(self, path: str) -> str:
        """The path, from the root on, or URL of something in the lake. path: below it."""
        if "://" not in self.path:
            return os.path.abspath(f"{self.path}/{path}")  # a worker may have another working directory
        address, mark, options = self.path.partition("?")
        return f"{address.rstrip('/')}/{quote(path, safe='/=')}{mark}{options}"

    def commit(self, run: str, parts: Iterable[LakeFile], about: dict[str, Any]) -> None:
        """The files of a run take their places, and take the place of those of the run before.

        about: what else the manifest has, with `tables`, the names of those that were written.
        """
        try:
            self._lease.check()
            before = (self.manifest() or {}).get("run")
            self._move(run, parts, about, before)
            self._link(run)
            self._clear(run, before)
        except OSError as error:
            raise PipelineError(f"{self.name}: {error}") from error
        finally:
            self.abandon()

    def _move(self, run: str, parts: Iterable[LakeFile], about: dict[str, Any], before: str | None) -> None:
        """Move the files of a run to their places, then replace the manifest."""
        placed = []
        for part in sorted(parts):
            path = f"{_RUN}{run}/{part.path}"
            self._system.create_dir(f"{self._root}/{path}".rpartition("/")[0], recursive=True)
            self._system.move(f"{self._root}/{_STAGING}/{run}/{part.path}", f"{self._root}/{path}")
            placed.append(part._replace(path=path))
        manifest = {
            "schema": LAKE_SCHEMA,
            "tables_version": SCHEMA_VERSION,
            "run": run,
            "before": before,
            **about,
            "rows": {name: sum(part.rows for part in placed if part.table == name) for name in TABLES},
            "parts": [part._asdict() for part in placed],
        }
        new = f"{self._root}/{_STAGING}/{run}/{LAKE_MANIFEST}"
        with self._system.open_output_stream(new) as file:
            file.write(json.dumps(manifest, indent=1).encode())
        self._lease.check()
        self._system.move(new, f"{self._root}/{LAKE_MANIFEST}")

    def _link(self, run: str | None) -> None:
        """Let the link name a run that was committed. Only local file systems have links."""
        if not run or not isinstance(self._system, fs.LocalFileSystem):
            return
        new = f"{self._root}/_{LATEST}"
        # Where no link can be made (Windows, some network drives), the manifest names the run.
        with contextlib.suppress(OSError, NotImplementedError):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new)
            os.symlink(f"{_RUN}{run}", new, target_is_directory=True)
            os.replace(new, f"{self._root}/{LATEST}")

    def _clear(self, *kept: str | None) -> None:
        """Delete the directories of all runs but these."""
        for found in self._system.get_file_info(fs.FileSelector(self._root)):
            name = str(found.base_name)
            if name.startswith(_RUN) and _UNDER_WAY.fullmatch(name) and name.removeprefix(_RUN) not in kept:
                self._delete(str(found.path))

    def abandon(self) -> None:
        """The run of this object is over: delete what it has staged, let others write, and delete the lake
        if the run has made it and nothing else.

        Workers that do not know yet may still write there, but cannot make the staging directory anew.
        """
        if not self._run:
            return
        self._delete(f"{self._root}/{_STAGING}/{self._run}")
        self._delete_empty(f"{self._root}/{_STAGING}")
        self._lease.release()
        if self._made:
            self._delete_empty(self._root)

    def _delete(self, directory: str) -> None:
        """Delete a directory with all that is in it, if it is there."""
        for _ in range(_ATTEMPTS):
            try:
                self._system.delete_dir(directory)
            except FileNotFoundError:
                break
            except OSError:
                continue  # something came into it meanwhile
            break

    def _delete_empty(self, directory: str) -> None:
        with contextlib.suppress(OSError):
            if isinstance(self._system, fs.LocalFileSystem):
                os.rmdir(directory)
            elif not self._system.get_file_info(fs.FileSelector(directory)):
                self._system.delete_dir(directory)


def _new_run() -> str:
    return uuid.uuid4().hex[:12]


def with_comments(schema: Any, of: TableSchema) -> Any:
    """A schema of Spark with the meaning of each column as its comment."""
    from pyspark.sql.types import StructField, StructType

    meaning = {column.name: column.meaning for column in of.columns}
    return StructType(
        [
            StructField(field.name, field.dataType, field.nullable, {"comment": meaning[field.name]})
            for field in schema
        ]
    )


def table(spark: "SparkSession", lake: str, name: str) -> "DataFrame":
    """A table of a lake, as its last run that ended left it. PipelineError if that run did not write it.

    The sentence about each column is its comment (`DESCRIBE`).

    Spark reads it, or where Spark may lack what that takes (as for `s3://`), the workers do as they read
    captures; then all columns of a table are read, whichever are wanted.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    at = Lake(lake)
    parts = at.parts(name)
    schema = with_comments(from_arrow_schema(TABLES[name].schema), TABLES[name])
    if not parts:
        return spark.createDataFrame([], schema)
    root = at.for_spark()
    if root is None:
        tasks = _tasks(parts)
        numbers = spark.range(0, len(tasks), 1, len(tasks))
        return numbers.mapInArrow(PartReader(at, name, tasks), schema)
    top = parts[0].path.partition("/")[0]
    reader = spark.read.schema(schema).option("basePath", f"{root}/{top}/{name}")
    paths = [f"{root}/{part.path}" for part in parts]
    return reader.parquet(*[path.replace("[", "\\[").replace("{", "\\{") for path in paths])
