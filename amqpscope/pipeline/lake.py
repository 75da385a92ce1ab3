"""A lake: the tables of captures as Delta tables, and the table `runs`, which says what belongs together.

    LAKE/findings/_delta_log/...                                          the log of a table (see `delta`)
    LAKE/findings/date=2026-01-31/protocol=amqp10/part-RUN-....parquet
    LAKE/files/part-RUN-....parquet                                       not partitioned
    LAKE/runs/...                                                         a row for each run
    LAKE/_staging/RUN/...                                                 while a run is under way
    LAKE/_lease.json                                                      which run that is (see `lease`)
    LAKE/_state/...                                                       where runs go on (see `states`)

Workers write into the staging directory and report their files; only the files of task attempts that Spark
took for finished come back. The driver moves these to their tables and commits one table after another. At
last it adds a row to `runs`, with the version of each table: that is the commit of the run. All readers here
read the versions that the last row names, so they see one run or the other, whole.

If a run dies between the commits of two tables, the next one first lets each table have the files again
that the last row of `runs` names. Files that nothing names any more are deleted by `vacuum`, and by nothing
else: a data frame that was made before a commit can be read after it.
"""

import time
import uuid
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from amqpscope.pipeline.arrow_values import rows_of
from amqpscope.pipeline.conversion import LakeBefore
from amqpscope.pipeline.delta import DeltaTables, forget_log
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.lake_directory import STATE, LakeDirectory
from amqpscope.pipeline.lease import LEASE, Lease
from amqpscope.pipeline.parts import (
    LakeFile,
    PartReader,
    PartWriter,
    batches_of_part,
    in_partition,
    reading_tasks,
)
from amqpscope.pipeline.runs import COMPACT, REPLACE, Run, RunNotes, run_row, tag_names
from amqpscope.pipeline.schemas import LAKE_TABLES, RUNS, SCHEMA_VERSION, TABLES, TableSchema
from amqpscope.pipeline.tags import tagged
from amqpscope.pipeline.views import VIEWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Lake", "table"]

_STAGING = "_staging"


class _RunRows:
    """What was read of the table `runs`, in the order of the commits. files: whose rows these are.

    A watch has all that it ever committed here, so there is no more of each than is needed.
    """

    def __init__(self) -> None:
        self.files: set[LakeFile] = set()
        self.runs: list[Run] = []

    def add(self, rows: list[dict[str, Any]], files: set[LakeFile]) -> None:
        """Further rows, and now the files of all."""
        self.runs = sorted(self.runs + [Run.load(row) for row in rows], key=lambda run: run.number)
        self.files = files


class Lake:
    """A lake at a path or URL.

    as_of: the id of a run, or its beginning: readers see the tables as that run left them. "": the last run.
    A reader sees one run, whichever are committed after its first look; of the table `runs`, the rows up to
    that run.
    tags: readers see only rows with these tags, of all tables but `runs`.
    """

    def __init__(self, path: str, as_of: str = "", tags: Mapping[str, str] = MappingProxyType({})) -> None:
        self.directory = LakeDirectory(path)
        self.path = self.directory.path
        self.name = self.directory.name
        self._system = self.directory.system
        self._root = self.directory.root
        with self.directory.explained():
            self._delta = DeltaTables(self.directory.whole(), self._system, self.name)
        self._as_of = as_of
        self.tags = tags
        self._runs = _RunRows()
        self._read: Run | None = None  # the run that readers see, once they have looked
        self._tag_names: tuple[str, ...] = ()  # of its rows
        self._lease = Lease(self._system, self._root, self.name)
        self._run = ""  # that is under way, begun by this object
        self._began = 0.0
        self._base: Run | None = None  # the last run when that one began
        self._number = 0  # of that one
        self._held = False  # the lease is ours between runs, too
        self._made = False  # by us, and nothing was committed to it

    def empty(self) -> bool:
        """Whether nothing has been committed to it, also not by an earlier version of amqpscope."""
        return not self.runs() and not self._before().there()

    def runs(self) -> list[Run]:
        """All runs, in the order of their commits; [] if there is no lake."""
        return list(self._read_runs().runs)

    def run_rows(self) -> list[dict[str, Any]]:
        """The rows of `runs`, in the order of their commits; [] if there is no lake."""
        files = sorted(self._read_runs().files)
        with self.directory.explained():
            return sorted(self._all_rows(RUNS.name, files), key=lambda row: row["number"])

    def _read_runs(self) -> _RunRows:
        with self.directory.explained():
            if self._system.get_file_info(f"{self._root}/{RUNS.name}").type == fs.FileType.NotFound:
                return _RunRows()
            files = set(self._delta.files(RUNS.name))
            known = self._runs if files >= self._runs.files else _RunRows()
            # No file is ever written twice, and each run adds one: only new ones are read.
            if files != known.files:
                known.add(self._all_rows(RUNS.name, sorted(files - known.files)), files)
            self._runs = known
        return known

    def anew(self) -> "Lake":
        """A reader that sees the last run. What this one has read of the logs is not read again."""
        found = Lake(self.path)
        found._delta, found._runs = self._delta, self._runs
        return found

    def written(self) -> Run:
        """The run whose tables are read. PipelineError if there is none: this is not a lake."""
        if self._read is None:
            self._read = self._chosen()
        return self._read

    def _chosen(self) -> Run:
        runs = self.runs()
        if not runs:
            if self._before().there():
                raise PipelineError(
                    f"{self.name}: an earlier version of amqpscope wrote this lake: "
                    "`amqpscope pipeline compact` converts it"
                )
            raise PipelineError(f"{self.name}: is not a lake (no run has been committed to it)")
        found = [run for run in runs if run.name.startswith(self._as_of)] if self._as_of else runs[-1:]
        if len(found) != 1:
            what = f"{len(found)} runs have ids that begin with" if found else "there is no run"
            raise PipelineError(f"{self.name}: {what} {self._as_of} (`amqpscope pipeline history` lists all)")
        names = tag_names(run for run in runs if run.number <= found[0].number)
        for name in self.tags:
            if name not in names:
                known = f"; the tags are {', '.join(names)}" if names else ""
                raise PipelineError(f"{self.name}: no run has given the tag {name}{known}")
        self._tag_names = names
        return self._of_this_version(found[0])

    def tag_names(self) -> tuple[str, ...]:
        """The tags of the rows that readers see: columns of all tables but `runs`. PipelineError: see
        `written`.
        """
        self.written()
        return self._tag_names

    def schema(self, name: str) -> TableSchema:
        """A table with its tags. PipelineError: see `written`."""
        return LAKE_TABLES[name] if name == RUNS.name else tagged(LAKE_TABLES[name], self.tag_names())

    def only(self, name: str) -> Mapping[str, str]:
        """The tags that the rows of a table must have to be seen."""
        return {} if name == RUNS.name else self.tags

    def base(self) -> str:
        """The id of the last run before the one that this object has begun; "" if there is none."""
        return self._base.name if self._base else ""

    def last(self) -> Run:
        """The last run before the one that this object has begun. PipelineError if there is none."""
        if self._base is None:
            raise PipelineError(f"{self.name}: is not a lake (no run has been committed to it)")
        return self._base

    def _of_this_version(self, run: Run) -> Run:
        if run.tables_version != SCHEMA_VERSION:
            raise PipelineError(
                f"{self.name}: not a lake of this version (tables {run.tables_version}, "
                f"not {SCHEMA_VERSION}): write a new one"
            )
        return run

    def tables(self) -> list[str]:
        """The tables that the run left, and `runs`. PipelineError: see `written`."""
        return [name for name in LAKE_TABLES if name in self.written().versions or name == RUNS.name]

    def all_parts(self) -> dict[str, list[LakeFile]]:
        """The files of each of `tables`. PipelineError: see `written`."""
        return {name: self.parts(name) for name in self.tables()}

    def parts(self, name: str) -> list[LakeFile]:
        """The files of a table. PipelineError if the run left no such table, or `vacuum` has deleted it."""
        if name not in LAKE_TABLES:
            known = ", ".join((*LAKE_TABLES, *VIEWS))
            raise PipelineError(f"{name}: there is no such table; the tables are {known}")
        if name == RUNS.name:
            return self._delta.files(name)
        versions = self.written().versions
        if name not in versions:
            raise PipelineError(
                f"{self.name}: the run did not write the table {name} (`--tables` left it out)"
            )
        if not self._as_of:
            return self._delta.files(name, versions[name])
        deleted = f"{self.name}: `vacuum` has deleted the table {name} of the run {self.written().name}"
        try:
            files = self._delta.files(name, versions[name])
        except PipelineError as error:
            if self._there([f"{name}/_delta_log/{versions[name]:020}.json"]):
                raise
            raise PipelineError(deleted) from error
        if not self._there([file.path for file in files]):
            raise PipelineError(deleted)
        return files

    def _there(self, paths: list[str]) -> bool:
        """Whether all these files are there."""
        with self.directory.explained():
            found = self._system.get_file_info([f"{self._root}/{path}" for path in paths])
        return all(one.type != fs.FileType.NotFound for one in found)

    def damage(self, name: str) -> str:
        """What can be seen of a table to be wrong with one of its files; "" if nothing can."""
        parts = self.parts(name)
        with self.directory.explained():
            found = self._system.get_file_info([f"{self._root}/{part.path}" for part in parts])
        for part, file in zip(parts, found, strict=True):
            if file.type == fs.FileType.NotFound:
                return f"{self.name}: a file of the table {name} is gone: {part.path}"
            if file.size != part.octets:
                return f"{self.name}: a file of the table {name} is damaged: {part.path}"
        return ""

    def paths(self) -> frozenset[str]:
        """The paths of the files of all tables."""
        return frozenset(file.path for files in self.all_parts().values() for file in files)

    def dataset(self, name: str, parts: list[LakeFile]) -> Any:
        """Files of a table as an Arrow dataset of the rows that readers see."""
        from pyarrow import dataset

        found = self._whole_dataset(name, parts)
        for tag, value in self.only(name).items():
            found = found.filter(dataset.field(tag) == value)
        if name == RUNS.name:
            found = found.filter(dataset.field("number") <= self.written().number)
        return found

    def _whole_dataset(self, name: str, parts: list[LakeFile]) -> Any:
        """Files of a table as an Arrow dataset of all their rows."""
        from pyarrow import dataset

        return dataset.FileSystemDataset.from_paths(
            [f"{self._root}/{part.path}" for part in parts],
            schema=self.schema(name).schema,
            format=dataset.ParquetFileFormat(),
            filesystem=self._system,
            partitions=[in_partition(part.path) for part in parts] if LAKE_TABLES[name].partitioned else None,
        )

    def rows(self, name: str, parts: list[LakeFile]) -> list[dict[str, Any]]:
        """The rows of files of a table that readers see."""
        with self.directory.explained():
            if name == RUNS.name or self.only(name) or LAKE_TABLES[name].partitioned:
                return [*self.dataset(name, parts).to_table().to_pylist()]
            return self._all_rows(name, parts)

    def _all_rows(self, name: str, parts: list[LakeFile]) -> list[dict[str, Any]]:
        """All rows of files of a table that is not partitioned."""
        if not isinstance(self._system, fs.LocalFileSystem):
            # Of a dataset, Arrow reads several parts at a time: in an object store, each takes a request.
            return [*self._whole_dataset(name, parts).to_table().to_pylist()]
        # Before Arrow makes a dataset, it imports pandas, which takes longer than to read a few parts.
        schema = self.schema(name).schema
        paths = [f"{self._root}/{part.path}" for part in parts]
        batches = (batch for path in paths for batch in batches_of_part(self._system, path, schema))
        return [row for batch in batches for row in rows_of(batch)]

    def troubles(self) -> list[tuple[str, str, str]]:
        """The inputs that were not read, or not to the end: capture, reason, detail."""
        rows = self.rows("files", self.parts("files"))
        return sorted((row["capture"], row["reason"], row["detail"]) for row in rows if row["status"] != "ok")

    def refuse(self) -> None:
        """Raise PipelineError if no run may begin: a directory of something else, or another run at work."""
        with self.directory.explained():
            self._refuse_others()
            if self.directory.exists():
                self._lease.refuse_if_held(_new_run())

    def hold(self) -> None:
        """Let no one else write until `release`, also between the runs of this object. PipelineError: see
        `refuse`.
        """
        with self.directory.explained():
            self._refuse_others()
            self._make_root()
            self._lease.take(_new_run())
            self._held = True

    def check(self) -> None:
        """Behind `hold`: raise PipelineError if another run has taken the lake over since then."""
        if self._held:
            with self.directory.explained():
                self._lease.check()

    def release(self) -> None:
        """Let others write again after `hold`."""
        self.abandon()
        self._held = False
        self._lease.release()
        if self._made:
            self.directory.delete_empty()

    def _make_root(self) -> None:
        self._made = self._made or not self.directory.exists()
        self._system.create_dir(self._root, recursive=True)

    def begin(self) -> tuple[str, str]:
        """A new run: its name, and its staging directory. PipelineError: see `refuse`.

        What dead runs have left in the tables is taken out of them.
        """
        run = _new_run()
        try:
            with self.directory.explained():
                self._refuse_others()
                self._make_root()
                if self._held:
                    self._lease.check()
                else:
                    self._lease.take(run)
                self._run = run
                self._read = None
                self._began = time.monotonic()
                self.directory.delete(_STAGING)
                self._system.create_dir(f"{self._root}/{_STAGING}/{run}", recursive=True)
                self._convert()
                self._mend()
        except PipelineError:
            self.abandon()
            raise
        return run, self.directory.place(f"{_STAGING}/{run}")

    def _refuse_others(self) -> None:
        found = {
            str(file.base_name)
            for file in self._system.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        }
        own = all(name in (_STAGING, STATE) or name.startswith(LEASE) for name in found)
        if own or self._before().there():
            return
        if RUNS.name not in found or self._delta.open(RUNS.name) is None:
            raise PipelineError(f"{self.name}: the directory is not empty and is not a lake")
        runs = self.runs()
        if runs:
            self._of_this_version(runs[-1])

    def _mend(self) -> None:
        """Let each table have the files that the last run left there, also if a later run has died."""
        runs = self.runs()
        self._base = runs[-1] if runs else None
        versions = self._base.versions if self._base else {}
        tables = {name: self._delta.open(name) for name in LAKE_TABLES}
        self._number = 1 + max(map(self._delta.number, tables.values()))
        mended = False
        for name, of in TABLES.items():
            latest = tables[name]
            if latest is None or latest.version() == versions.get(name):
                continue
            before = latest.version()
            files = self._delta.files(name, versions[name]) if name in versions else []
            mended = self._delta.commit(of, files, self._number) > before or mended
        self._number += mended

    def commit(
        self,
        run: str,
        parts: Iterable[LakeFile],
        notes: RunNotes,
        kept: dict[str, list[LakeFile]] | None = None,
    ) -> None:
        """The files of a run take their places, and the tables have these and no others from now on.

        kept: files that stay in a table.
        """
        try:
            with self.directory.explained():
                self._lease.check()
                runs = self.runs()
                if (runs[-1] if runs else None) != self._base:
                    raise PipelineError(f"{self.name}: another run has written to this lake")
                self._delta.make(RUNS)  # by which the next run knows the lake, if this one dies here
                placed = [self._move(f"{_STAGING}/{run}/{part.path}", part) for part in sorted(parts)]
                for name, files in (kept or {}).items():
                    placed += [file for file in files if file.table == name]
                self._publish(run, placed, notes)
        finally:
            self.abandon()

    def _move(self, source: str, part: LakeFile) -> LakeFile:
        """Move a file to its place in its table. source: where it is, below the lake."""
        path = f"{self._root}/{part.path}"
        self._system.create_dir(path.rpartition("/")[0], recursive=True)
        self._system.move(f"{self._root}/{source}", path)
        return part

    def _publish(self, run: str, files: list[LakeFile], notes: RunNotes) -> None:
        """Commit each table, then the run. files: of all tables, at their places."""
        tables = []
        tags = tag_names([] if notes.kind == REPLACE else self.runs())
        tags = tuple(dict.fromkeys([*tags, *(notes.options.get("tags") or ())]))
        for name, untagged in TABLES.items():
            of = tagged(untagged, tags)
            self._lease.check()
            own = [file for file in files if file.table == name]
            if name in notes.tables:
                version = self._delta.commit(of, own, self._number, notes.kind == COMPACT)
                tables.append({"name": name, "version": version, "rows": sum(file.rows for file in own)})
            elif self._delta.open(name) is not None:
                self._delta.commit(of, [], self._number)
        row = run_row(run, self._number, notes, tables, time.monotonic() - self._began)
        writer = PartWriter(self.directory.place(f"{_STAGING}/{self._run}"), f"{run}-run")
        others = self._delta.files(RUNS.name)
        if notes.kind == COMPACT:
            for batch in self._whole_dataset(RUNS.name, others).to_batches():
                writer.write(RUNS.name, batch)
            others = []
        writer.write(RUNS.name, row)
        (part,) = writer.close()
        self._move(f"{_STAGING}/{self._run}/{part.path}", part)
        self._lease.check()
        self._delta.commit(RUNS, [*others, part], self._number)

    def _before(self) -> LakeBefore:
        return LakeBefore(self._system, self._root, self.name)

    def _convert(self) -> None:
        """Make a lake of what an earlier version of amqpscope has left here, if it has."""
        before = self._before()
        if not before.there():
            return
        run, notes, parts = before.read()
        if run not in [one.name for one in self.runs()]:
            self._number = 1 + max(self._delta.number(self._delta.open(name)) for name in LAKE_TABLES)
            self._delta.make(RUNS)
            staging = f"{_STAGING}/{self._run}"
            writer = PartWriter(self.directory.place(staging), f"{run}-converted")
            for source, name in parts:
                for batch in before.batches(source, name):
                    writer.write(name, batch)
            placed = [self._move(f"{staging}/{part.path}", part) for part in writer.close()]
            self._publish(run, placed, notes)
        for path in before.remains():
            self.directory.delete(path)

    def vacuum(self, hours: int, often: bool = False) -> int:
        """Delete the files that no table has had for so many hours, and states (see `states.sweep`); gives
        how many. PipelineError: see `written` and `refuse`.

        What the logs of the tables have from the time before goes, too. often: see `DeltaTables.vacuum`.
        """
        from amqpscope.pipeline.states import sweep

        self.written()
        self.begin()
        versions = self._base.versions if self._base else {}
        try:
            gone = 0
            for name in LAKE_TABLES:
                gone += self._delta.vacuum(name, hours, versions.get(name), often)
                table = self._delta.open(name)
                if table is not None:
                    with self.directory.explained():
                        last = versions.get(name, table.version())
                        forget_log(self._system, f"{self._root}/{name}", hours, last)
            return gone + sweep(Lake(self.path))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """The run of this object is over: delete what it has staged, let others write, and delete the lake
        if the run has made it and nothing else.

        Workers that do not know yet may still write there, but cannot make the staging directory anew.
        """
        if not self._run:
            return
        self.directory.delete(f"{_STAGING}/{self._run}")
        self.directory.delete_empty(_STAGING)
        if self._held:
            return
        self._lease.release()
        if self._made:
            self.directory.delete_empty()


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


def table(spark: "SparkSession", lake: str | Lake, name: str, as_of: str = "") -> "DataFrame":
    """A table of a lake, or a view of one (`views`), as its last run left it, or the run `as_of`.
    PipelineError if it is not there.

    The sentence about each column is its comment (`DESCRIBE`).

    Spark reads it, or where Spark may lack what that takes (as for `s3://`), the workers do as they read
    captures; then all columns of a table are read, whichever are wanted.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    at = lake if isinstance(lake, Lake) else Lake(lake, as_of)
    if name in VIEWS:
        return table(spark, at, VIEWS[name].table).where(VIEWS[name].condition)
    parts = at.parts(name)
    of = at.schema(name)
    schema = with_comments(from_arrow_schema(of.schema), of)
    if not parts:
        return spark.createDataFrame([], schema)
    found = _read(spark, at, parts, of, schema)
    for tag, value in at.only(name).items():
        found = found.where(found[tag] == value)
    if name == RUNS.name:
        found = found.where(found["number"] <= at.written().number)
    return found


def _read(
    spark: "SparkSession", at: Lake, parts: list[LakeFile], of: TableSchema, schema: Any
) -> "DataFrame":
    """The rows of files of a table."""
    root = at.directory.for_spark()
    if root is None:
        tasks = reading_tasks(parts, at.directory.place)
        numbers = spark.range(0, len(tasks), 1, len(tasks))
        return numbers.mapInArrow(PartReader(tasks, of.schema), schema)
    reader = spark.read.schema(schema).option("basePath", f"{root}/{of.name}")
    paths = [f"{root}/{part.path}" for part in parts]
    return reader.parquet(*[path.replace("[", "\\[").replace("{", "\\{") for path in paths])
