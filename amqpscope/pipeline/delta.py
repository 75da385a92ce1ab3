"""The tables of a lake as Delta tables (delta.io), by delta-rs: no JVM, no catalog.

Each table has its own log, and each commit makes a new version of one table. A commit is given the files that
the table is to have; what is not among them leaves the table, and stays on disk until `vacuum`. So a commit
is right whatever a run that died has left in the table.

Each commit carries the number of its run (`txn`). A table takes no number twice, and none below the last.
"""

import errno
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
from deltalake import DeltaTable, Field
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    PostCommitHookProperties,
    RemoveAction,
    Transaction,
)
from pyarrow import fs

from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.parts import NULL_DIRECTORY, LakeFile
from amqpscope.pipeline.refusals import in_words, number_of
from amqpscope.pipeline.schemas import TableSchema

__all__ = ["DeltaTables", "forget_log"]

_APPLICATION = "amqpscope"
"""The name that the numbers of runs have in the logs."""

_PART = re.compile(r"(?:date=[0-9-]+/protocol=[\w-]+/)?part-[\w-]+\.parquet", re.ASCII)

_TYPES = {pa.string(): "string", pa.float64(): "double"}
"""What Delta calls the types of columns that may come to a table later."""

_MISREAD = re.compile(r"[\x00-\x1f\x7f]|%[0-9A-Fa-f]{2}" + ("" if os.sep == "\\" else r"|\\"))
"""What delta-rs decodes in the path of a file, however it is quoted, so that it reads another directory; a
backslash, for it a slash; and what it does not take."""

_CHECKPOINT_EVERY = 10
"""Versions of a table between two checkpoints: who opens it reads the last one, and the log from there on."""

_LEFT = "delta.deletedFileRetentionDuration"
"""For how long the log of a table says which files have left it."""

_USUAL = {_LEFT: "interval 168 hours"}
"""Where nothing else is said."""


_NOTHING_ELSE = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""What a commit does beside. A checkpoint comes where it may fail, and what delta-rs deletes of a log by
itself may be what the last run names."""


class DeltaTables:
    """The Delta tables of a lake.

    path: of the lake, a path from the root on, or a URL. system: that it is in.
    name: for people.

    PipelineError if delta-rs would take the path for another one.
    """

    def __init__(self, path: str, system: fs.FileSystem, name: str) -> None:
        misread = _MISREAD.search(path) if "://" not in path else None
        if misread and not misread[0].isprintable():
            raise PipelineError(f"{name}: the path of a lake cannot have control characters")
        if misread:
            what = f"the path of a lake cannot have {misread[0]}, which Delta takes for another character"
            raise PipelineError(f"{name}: {what}")
        self._base, self._options = _storage(path, system)
        self._name = name
        self._last: dict[str, DeltaTable] = {}  # tables at the last versions that were looked at
        self._known: dict[str, tuple[int, list[LakeFile]]] = {}  # versions of tables, and their files

    def open(self, table: str, version: int | None = None) -> DeltaTable | None:
        """A table, at its last version or an earlier one. None if there is no such table.

        The next look at its last version may move what was given to that one.
        """
        last = self._last.get(table)
        with self._explained(table, reading=True):
            if last is not None and (version is None or version > last.version()):
                last.update_incremental()  # reads only what has come to the log since then
            if last is not None and version in (None, last.version()):
                return last
            try:
                opened = DeltaTable(f"{self._base}/{table}", version=version, storage_options=self._options)
            except TableNotFoundError as error:
                if number_of(error) in (None, errno.ENOENT):
                    return None
                # It is there, and cannot be looked at.
                raise PipelineError(f"{self._name}/{table}: {in_words(error)}") from error
        if version is None:
            self._last[table] = opened
        return opened

    def files(self, table: str, version: int | None = None) -> list[LakeFile]:
        """The files of a table, at its last version or an earlier one. PipelineError if others wrote them."""
        known, files = self._known.get(table, (None, []))
        if version is None or known != version:
            opened = self.open(table, version)
            if opened is None and version is not None:
                raise PipelineError(f"{self._name}/{table}: version {version} of the table is gone")
            files = [] if opened is None else self._files(table, opened)
        for file in files:
            if not _PART.fullmatch(_below(file)):
                raise PipelineError(f"{self._name}: {file.path!r} is no file that amqpscope has written")
        return list(files)

    def _files(self, table: str, opened: DeltaTable) -> list[LakeFile]:
        version, files = self._known.get(table, (None, []))
        if version == opened.version():
            return list(files)
        with self._explained(table):
            # Not `pa.table`, which imports pandas to see whether this is a data frame.
            actions = pa.RecordBatchReader.from_stream(opened.get_add_actions(flatten=True)).read_all()
        columns = ["path", "num_records", "size_bytes", "min.capture_set", "max.capture_set"]
        known = [
            actions.column(name).to_pylist() if name in actions.column_names else [None] * actions.num_rows
            for name in columns
        ]
        found = []
        for path, rows, octets, first_set, last_set in zip(*known, strict=True):
            found.append(
                LakeFile(table, f"{table}/{path}", rows or 0, octets, first_set or "", last_set or "")
            )
        found.sort()
        self._known[table] = (opened.version(), found)
        return list(found)

    def number(self, opened: DeltaTable | None) -> int:
        """The number of the last run that wrote to a table; 0 if none did. opened: the table."""
        return 0 if opened is None else opened.transaction_version(_APPLICATION) or 0

    def make(self, table: TableSchema) -> DeltaTable:
        """A table at its last version. If it is not there, it is made, without rows."""
        opened = self.open(table.name)
        if opened is not None:
            return opened
        with self._explained(table.name):
            return DeltaTable.create(
                f"{self._base}/{table.name}",
                table.schema,
                partition_by=_partitions(table),
                name=table.name,
                description=table.meaning,
                storage_options=self._options,
            )

    def commit(self, table: TableSchema, files: list[LakeFile], number: int, same_rows: bool = False) -> int:
        """Let a table have these files and no others; gives the version that has them.

        number: of the run, above those of all runs before. same_rows: the rows are those of before.
        PipelineError if another run has written to the table meanwhile.

        Columns of `table` that it lacks come to it before.
        """
        opened = self._with_columns(table, self.make(table))
        before = {file.path: file for file in self._files(table.name, opened)}
        wanted = {file.path: file for file in files}
        if self.number(opened) >= number:
            raise PipelineError(f"{self._name}: another run has written to the table {table.name}")
        now = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [
            RemoveAction(_below(file), not same_rows, now, file.octets, _values(file))
            for path, file in before.items()
            if path not in wanted
        ]
        actions += [
            AddAction(_below(file), file.octets, _values(file), now, not same_rows, _statistics(file))
            for path, file in wanted.items()
            if path not in before
        ]
        version = int(opened.version())
        if not actions:
            return version
        properties = CommitProperties(
            max_commit_retries=0, app_transactions=[Transaction(_APPLICATION, number)]
        )
        with self._explained(table.name):
            opened.create_write_transaction(
                *(actions, "append", table.schema, _partitions(table)),
                commit_properties=properties,
                post_commithook_properties=_NOTHING_ELSE,
            )
        # Without retries, a commit that another one has overtaken is refused.
        version += 1
        if version % _CHECKPOINT_EVERY == 0:
            with suppress(PipelineError):  # the log has all of it
                self._checkpoint(table.name)
        return version

    def _checkpoint(self, table: str) -> None:
        """Write down what the whole log of a table comes to."""
        opened = self.open(table)
        with self._explained(table):
            if opened is not None:
                opened.create_checkpoint()
        # What follows a log commit by commit holds all of these; opened anew, it has the checkpoint.
        self._last.pop(table, None)

    def _with_columns(self, table: TableSchema, opened: DeltaTable) -> DeltaTable:
        """Let a table have the columns of a tag, and those that came with a later version of amqpscope. For
        all rows that are there, they are null. Gives the table at its last version.
        """
        there = {field.name for field in opened.schema().fields}
        missing = [
            Field(column.name, PrimitiveType(_TYPES[column.type]), True, {"comment": column.meaning})
            for column in table.columns
            if column.name not in there
        ]
        if not missing:
            return opened
        with self._explained(table.name):
            opened.alter.add_columns(
                missing,
                commit_properties=CommitProperties(max_commit_retries=0),
                post_commithook_properties=_NOTHING_ELSE,
            )
        return self.make(table)

    def vacuum(self, table: str, hours: int, version: int | None, often: bool) -> int:
        """Delete the files that have left a table so many hours ago, and those that never came into it;
        gives how many.

        version: keeps its files. often: these hours are always the same, so that the log need not say for
        longer which files have left the table.
        """
        opened = self.open(table)
        if opened is None:
            return 0
        with self._explained(table):
            said = {_LEFT: f"interval {max(hours, 1)} hours"} if often else _USUAL
            configuration = opened.metadata().configuration
            # Where the log has said it for a shorter time, it may not know which other files have left.
            knows = often or {**_USUAL, **configuration}.items() >= _USUAL.items()
            gone = opened.vacuum(
                hours,
                dry_run=False,
                enforce_retention_duration=False,
                full=knows,
                keep_versions=None if version is None else [version],
                post_commithook_properties=_NOTHING_ELSE,
            )
            if not said.items() <= {**_USUAL, **configuration}.items():
                opened.update_incremental()
                opened.alter.set_table_properties(said, post_commithook_properties=_NOTHING_ELSE)
        self._last.pop(table, None)
        return len(gone)

    @contextmanager
    def _explained(self, table: str, reading: bool = False) -> Iterator[None]:
        """Raise PipelineError, in one line, for what delta-rs raises. reading: it only reads the log."""
        try:
            yield
        except TableNotFoundError:
            raise
        except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
            what = in_words(error)
            if reading and number_of(error) is None and self._options is None:
                what = f"the log of this table is damaged ({what})"
            raise PipelineError(f"{self._name}/{table}: {what}") from error


_LOGGED = re.compile(r"(\d{20})(\.json|\.checkpoint\.parquet|\.checkpoint\.\d+\.\d+\.parquet)")


def forget_log(system: fs.FileSystem, table: str, hours: int, version: int) -> None:
    """Delete what the log of a table has from the time before so many hours ago.

    table: its path. version: that can be read afterwards, and all since that time.
    """
    since = time.time_ns() - hours * 3600 * 10**9
    selector = fs.FileSelector(f"{table}/_delta_log", allow_not_found=True)
    found = [
        (int(match[1]), file, match[2] == ".json")
        for file in system.get_file_info(selector)
        if (match := _LOGGED.fullmatch(file.base_name))
    ]
    recent = [number for number, file, is_commit in found if is_commit and (file.mtime_ns or since) >= since]
    first = min([version, *(number - 1 for number in recent)])  # that was the table's at that time, or since
    start = max((number for number, _, is_commit in found if not is_commit and number <= first), default=0)
    for number, file, _ in sorted(found, key=lambda one: one[0]):
        if number < start:
            system.delete_file(file.path)


def _storage(path: str, system: fs.FileSystem) -> tuple[str, dict[str, str] | None]:
    """What delta-rs calls a path or URL, and the options that it needs for it: those of pyarrow's URL."""
    if "://" not in path:
        return path, None
    parts = urlsplit(path)
    userinfo, _, host = parts.netloc.rpartition("@")
    if not isinstance(system, fs.S3FileSystem):
        return f"{parts.scheme}://{host}{parts.path.rstrip('/')}", None
    given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    options = {"AWS_REGION": system.region}
    user, colon, password = userinfo.partition(":")
    if colon:
        options |= {"AWS_ACCESS_KEY_ID": unquote(user), "AWS_SECRET_ACCESS_KEY": unquote(password)}
    if "endpoint_override" in given:
        scheme = given.get("scheme", "https")
        endpoint = given["endpoint_override"]
        options["AWS_ENDPOINT_URL"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
        options["AWS_ALLOW_HTTP"] = str(options["AWS_ENDPOINT_URL"].startswith("http://")).lower()
    return f"s3://{host}{parts.path.rstrip('/')}", options


def _partitions(table: TableSchema) -> list[str] | None:
    return ["date", "protocol"] if table.partitioned else None


def _below(file: LakeFile) -> str:
    """The path of a file below its table."""
    return file.path.partition("/")[2]


def _values(file: LakeFile) -> dict[str, str | None]:
    """The date and the protocol of all rows of a file, which its path names."""
    directories = [part.partition("=") for part in _below(file).split("/")[:-1] if "=" in part]
    return {name: None if value == NULL_DIRECTORY else value for name, _, value in directories}


def _statistics(file: LakeFile) -> str:
    """What is known of the rows of a file, as the log has it."""
    known: dict[str, Any] = {"numRecords": file.rows}
    if file.first_set:
        known["minValues"] = {"capture_set": file.first_set}
        known["maxValues"] = {"capture_set": file.last_set}
    return json.dumps(known)
