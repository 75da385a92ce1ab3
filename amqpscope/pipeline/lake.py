"""A lake: the tables of one run as Parquet files, and the manifest that says which files these are.

    LAKE/manifest.json                                            the run, and every file with its rows
    LAKE/frames/date=2026-01-31/protocol=amqp10/part-RUN-....parquet
    LAKE/files/part-RUN-....parquet                               not partitioned
    LAKE/_staging/RUN/...                                         while a run is under way

Workers write into the staging directory and report their files; only the files of task attempts that Spark
took for finished come back. The driver moves these to their places and then replaces the manifest, in one
step: that is the commit. The files of the run before are deleted after it, and what a run left that died
before its commit is deleted by the next. So whoever reads by the manifest (`table`, `pipeline sql`,
`pipeline summary`) sees one run or the other, whole; who reads the directories sees the same but for the
moment of the change.

One run at a time may write to a lake.
"""

import contextlib
import datetime
import json
import os
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.inputs import LAKE, LAKE_MANIFEST, file_system, shown
from amqpscope.pipeline.schemas import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LAKE_SCHEMA", "Lake", "LakeFile", "PartWriter", "table"]

LAKE_SCHEMA = f"{LAKE}1"

_STAGING = "_staging"

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
        self._open: dict[tuple[str, str], tuple[str, Any, Any, list[int]]] = {}
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
        entry = self._open.pop(place, None)
        if entry is None:
            if len(self._open) >= MAX_OPEN_PARTS:
                self._finish(next(iter(self._open)))
            folder = f"{name}/{directory}"
            path = f"{folder}part-{self._stem}-{len(self._parts) + len(self._open)}.parquet"
            self._make(folder)
            stream = self._system.open_output_stream(f"{self._staging}/{path}")
            entry = (path, stream, pq.ParquetWriter(stream, batch.schema, compression="zstd"), [0])
        entry[2].write_batch(batch)
        entry[3][0] += batch.num_rows
        self._open[place] = entry  # the one written last is the last

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
        path, stream, writer, rows = self._open.pop(place)
        writer.close()
        octets = stream.tell()
        stream.close()
        self._parts.append(LakeFile(place[0], path, rows[0], octets))


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


def _with_partition(rows: pa.RecordBatch, path: str) -> pa.RecordBatch:
    """Rows of a part with date and protocol, which only its path has."""
    _, date, protocol, _ = path.split("/")
    values = (
        pa.scalar(datetime.date.fromisoformat(date.partition("=")[2]), pa.date32()),
        pa.scalar(None if protocol.endswith(_NULL) else protocol.partition("=")[2], pa.string()),
    )
    for name, value in zip(("date", "protocol"), values, strict=True):
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


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
        self.path = path.rstrip("/") or path
        self.name = shown(self.path)
        try:
            self._system, self._root = file_system(self.path)
        except OSError as error:
            raise PipelineError(f"{self.name}: {error}") from error
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
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise PipelineError(f"{self.name}/{LAKE_MANIFEST}: cannot be read ({error})") from error
        if manifest.get("schema") != LAKE_SCHEMA:
            raise PipelineError(f"{self.name}: not a lake of this version ({manifest.get('schema')})")
        return dict(manifest)

    def troubles(self) -> list[tuple[str, str, str]]:
        """The inputs that were not read, or not to the end: capture, reason, detail."""
        found: list[tuple[str, str, str]] = []
        for part in (self.manifest() or {"parts": []})["parts"]:
            if part["table"] == "files":
                with self._system.open_input_file(f"{self._root}/{part['path']}") as file:
                    rows = pq.read_table(file, columns=["capture", "status", "reason", "detail"]).to_pylist()
                found += [
                    (row["capture"], row["reason"], row["detail"]) for row in rows if row["status"] != "ok"
                ]
        return sorted(found)

    def begin(self) -> tuple[str, str]:
        """A new run: its name, and its staging directory. Refuses a directory that holds something else."""
        try:
            found = self._system.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
            names = {str(file.base_name) for file in found}
            if names - {_STAGING} and self.manifest() is None:
                raise PipelineError(f"{self.name}: the directory is not empty and is not a lake")
            self._made = self._made or self._system.get_file_info(self._root).type == fs.FileType.NotFound
            run = uuid.uuid4().hex[:12]
            staging = f"{self._root}/{_STAGING}/{run}"
            self._system.create_dir(staging, recursive=True)
        except OSError as error:
            raise PipelineError(f"{self.name}: {error}") from error
        return run, self.place(f"{_STAGING}/{run}")

    def place(self, path: str) -> str:
        """The path, from the root on, or URL of something in the lake. path: below it."""
        if "://" not in self.path:
            return os.path.abspath(f"{self.path}/{path}")  # a worker may have another working directory
        address, mark, options = self.path.partition("?")
        return f"{address.rstrip('/')}/{quote(path, safe='/=')}{mark}{options}"

    def commit(self, run: str, parts: Iterable[LakeFile], about: dict[str, Any]) -> None:
        """The files of a run take their places, and those of the run before go."""
        parts = sorted(parts)
        for part in parts:
            folder = f"{self._root}/{part.path}".rpartition("/")[0]
            self._system.create_dir(folder, recursive=True)
            self._system.move(f"{self._root}/{_STAGING}/{run}/{part.path}", f"{self._root}/{part.path}")
        manifest = {
            "schema": LAKE_SCHEMA,
            "tables_version": SCHEMA_VERSION,
            "run": run,
            **about,
            "rows": {name: sum(part.rows for part in parts if part.table == name) for name in TABLES},
            "parts": [part._asdict() for part in parts],
        }
        new = f"{self._root}/{_STAGING}/{run}/{LAKE_MANIFEST}"
        with self._system.open_output_stream(new) as file:
            file.write(json.dumps(manifest, indent=1).encode())
        self._system.move(new, f"{self._root}/{LAKE_MANIFEST}")
        self._clear({f"{self._root}/{part.path}" for part in parts})
        self.abandon()

    def abandon(self) -> None:
        """Nothing that is in the staging directory is wanted, nor a lake that has nothing else.

        Workers that do not know yet may still write there, but cannot make that directory anew.
        """
        for _ in range(_ATTEMPTS):
            try:
                self._system.delete_dir(f"{self._root}/{_STAGING}")
            except FileNotFoundError:
                break
            except OSError:
                continue  # something came into it meanwhile
            break
        with contextlib.suppress(OSError):
            if self._made and not self._system.get_file_info(fs.FileSelector(self._root)):
                self._system.delete_dir(self._root)

    def _clear(self, kept: set[str]) -> None:
        """Delete the files of other runs, and directories that are empty then."""
        for name in TABLES:
            selector = fs.FileSelector(f"{self._root}/{name}", allow_not_found=True, recursive=True)
            found = self._system.get_file_info(selector)
            left: set[str] = set()
            for file in found:
                if file.type != fs.FileType.Directory:
                    if file.path in kept or not file.base_name.startswith("part-"):
                        left.add(str(file.path))
                    else:
                        self._system.delete_file(file.path)
            for folder in sorted((f.path for f in found if f.type == fs.FileType.Directory), reverse=True):
                if not any(path.startswith(f"{folder}/") for path in left):
                    self._system.delete_dir(folder)


def table(spark: "SparkSession", lake: str, name: str) -> "DataFrame":
    """A table of a lake, as its last run that ended left it.

    Spark reads it, or where Spark may lack what that takes (as for `s3://`), the workers do as they read
    captures; then all columns of a table are read, whichever are wanted.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    if name not in TABLES:
        raise PipelineError(f"{name}: there is no such table; the tables are {', '.join(TABLES)}")
    at = Lake(lake)
    manifest = at.manifest()
    if manifest is None:
        raise PipelineError(f"{at.name}: is not a lake (it has no {LAKE_MANIFEST})")
    schema = from_arrow_schema(TABLES[name].schema)
    parts = [LakeFile(**part) for part in manifest["parts"] if part["table"] == name]
    if not parts:
        return spark.createDataFrame([], schema)
    root = at.for_spark()
    if root is None:
        tasks = _tasks(parts)
        numbers = spark.range(0, len(tasks), 1, len(tasks))
        return numbers.mapInArrow(PartReader(at, name, tasks), schema)
    reader = spark.read.schema(schema).option("basePath", f"{root}/{name}")
    paths = [f"{root}/{part.path}" for part in parts]
    return reader.parquet(*[path.replace("[", "\\[").replace("{", "\\{") for path in paths])
