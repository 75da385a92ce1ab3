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
import json
import os
import re
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow.parquet as pq
from pyarrow import fs

from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.inputs import LAKE, LAKE_MANIFEST, file_system, plain, shown
from amqpscope.pipeline.lease import LEASE, Lease
from amqpscope.pipeline.parts import LakeFile, PartReader, in_partition, reading_tasks
from amqpscope.pipeline.schemas import SCHEMA_VERSION, TABLES, TableSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LAKE_SCHEMA", "Lake", "table"]

LAKE_SCHEMA = f"{LAKE}3"

LATEST = "latest"
_STAGING = "_staging"
_RUN = "run-"

_UNDER_WAY = re.compile(rf"{_STAGING}|{LEASE}.*|{_RUN}[0-9a-f]{{12}}|_{LATEST}")
"""What a run leaves in a lake that dies before its commit."""

_ATTEMPTS = 5
"""How often a directory is tried to be deleted that others write into."""


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
        version = f"{manifest.get('schema')}, tables {manifest.get('tables_version')}"
        if version != f"{LAKE_SCHEMA}, tables {SCHEMA_VERSION}":
            raise PipelineError(f"{self.name}: not a lake of this version ({version}): write a new one")
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
            partitions=[in_partition(part.path) for part in parts] if TABLES[name].partitioned else None,
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
        tasks = reading_tasks(parts, at.place)
        numbers = spark.range(0, len(tasks), 1, len(tasks))
        return numbers.mapInArrow(PartReader(tasks), schema)
    top = parts[0].path.partition("/")[0]
    reader = spark.read.schema(schema).option("basePath", f"{root}/{top}/{name}")
    paths = [f"{root}/{part.path}" for part in parts]
    return reader.parquet(*[path.replace("[", "\\[").replace("{", "\\{") for path in paths])
