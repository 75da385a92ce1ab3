"""The data source as a stream: `spark.readStream.format("amqpscope").option("table", ...).load(DIRECTORY)`.

Theory of operation. An offset has, for each capture set, its files and how many octets of each had been
written. So a batch is known by two offsets, and the captures give the same rows whenever it is done again.

`segments` need no more: of a file that has grown, those of the packets that were not complete before.

`findings` need the whole capture set: its connections run through all of it. As `pipeline watch` does, a
batch analyses each set with news again as a whole. A finding is given once: when the other peer has reacted
to it, or `WAIT` later, or when no file of the set has changed for so long. For that an offset has the time of
the look. What was given of a set, and the rows of its last batch, are in a file of `stateLocation`: so a
batch that is done again gives the same rows, whatever has become of the captures. What one look has found may
be given in several batches, so the name of the file also has how many batches have had news of the set.
"""

import glob
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from amqpscope.input.garbage import calm_collector
from amqpscope.pipeline.appending import begins_as, unchanged
from amqpscope.pipeline.capture_set import CaptureSet, capture_set, capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.columns import without_dictionaries
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.inputs import READ_ERRORS, CaptureFile, file_system, is_remote, plain, size_now
from amqpscope.pipeline.rows import Rows, RowTerms
from amqpscope.pipeline.schemas import SEGMENTS, TABLES
from amqpscope.pipeline.source import segments_of, with_secrets
from amqpscope.pipeline.watching import not_yet

__all__ = ["WAIT", "CaptureStreamReader", "StreamTerms"]

WAIT = 30.0
"""Seconds for which a finding waits for the other peer's reaction, while its capture set grows."""

_FINDINGS = "findings"
_SUFFIX = ".amqpscope-state"

Offset = dict[str, Any]
"""By name of the capture set: `number` of batches in which it had news, `time` of the look (ns), `settled`
(whether nothing of it is waited for), and `files`: by name their `size`, `identity` and `compression`.

One look may be given in several batches, so only the number tells their states apart. Offsets of earlier
versions have none."""


class StreamTerms(NamedTuple):
    """How a stream is read. most_files, most_octets: of a batch, 0: any number. state: directory or URL, for
    findings. strict: a file that is gone, or overwritten, before its rows were given ends the query.
    """

    most_files: int = 0
    most_octets: int = 0
    state: str = ""
    strict: bool = True


class _Look(NamedTuple):
    """What there was at a time (ns). latest: of the last change of each set."""

    time: int
    sets: dict[str, CaptureSet]
    latest: dict[str, int]


class _News(InputPartition):  # type: ignore[misc]
    """A capture set in a batch. given: octets of each file that were given before.

    before, now: the names of its states. batch: what the batch is recognised by. until: findings made before
    this time (ns) wait for nothing.
    """

    def __init__(
        self, one: CaptureSet, given: tuple[int, ...], before: str, now: str, batch: str, until: int
    ) -> None:
        self.one = one
        self.given = given
        self.before = before
        self.now = now
        self.batch = batch
        self.until = until


class CaptureStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads `segments` or `findings` of captures while they are written."""

    def __init__(
        self,
        sources: list[str],
        table: str,
        columns: list[str],
        set_by: str,
        terms: RowTerms,
        how: StreamTerms,
    ) -> None:
        if table not in (SEGMENTS.name, _FINDINGS):
            raise PipelineError(f"table {table}: a stream has the tables {SEGMENTS.name} and {_FINDINGS}")
        if table == _FINDINGS and not how.state:
            raise PipelineError(
                "option stateLocation: a stream of findings needs a directory for what it has given"
            )
        self._sources = sources
        self._table = table
        self._columns = columns
        self._set_by = set_by
        self._terms = terms
        self._most = (how.most_files, how.most_octets)
        self._state = plain(how.state)
        self._strict = how.strict
        self._target: _Look | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        """Before all captures. PipelineError if a source on this machine does not exist."""
        for source in map(plain, self._sources):
            pattern = is_remote(source) or glob.has_magic(source)
            if not pattern and not os.path.exists(source):
                raise PipelineError(f"{source}: No such file or directory")
        return {}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What is there now is what the query reads."""
        self._target = self._look()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """That of the options; `latestOffset` holds to both of them."""
        files, octets = self._most
        return ReadMaxFiles(files) if files else ReadMaxBytes(octets) if octets else ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """How far the next batch goes. At least one file, if any has grown."""
        look = self._target or self._look()
        files, octets = (0, 0) if isinstance(limit, ReadAllAvailable) else self._most
        end: Offset = {}
        taken = size = 0
        for name, one in sorted(look.sets.items(), key=lambda item: (item[1].files[0].first_time, item[0])):
            was = start.get(name)
            known = was["files"] if was else {}
            now: dict[str, dict[str, Any]] = {}
            changed, complete = False, True
            for file in one.files:
                given = _given(file, known.get(file.capture))
                more = file.size - given
                if given and more <= 0:
                    now[file.capture] = known[file.capture]
                elif taken and ((files and taken >= files) or (octets and size + more > octets)):
                    complete = False
                    if given:
                        now[file.capture] = known[file.capture]
                else:
                    taken, size, changed = taken + 1, size + more, True
                    now[file.capture] = _written(file)
            settled = complete and (
                self._table != _FINDINGS or look.latest[name] + int(WAIT * 1e9) <= look.time
            )
            if was and not changed and (was["settled"] or not settled):
                # Files that are gone were given; without them the offset stays small.
                end[name] = was if now == known else was | {"files": now}
            elif now:
                number = was.get("number", 0) + 1 if was else 1
                end[name] = {"number": number, "time": look.time, "settled": settled, "files": now}
        return start if not taken and all(end[name] == start.get(name) for name in end) else end

    def partitions(self, start: Offset, end: Offset) -> list[Any]:
        """The capture sets with news."""
        there = {}
        if any(is_remote(plain(source)) for source in self._sources):
            # Names in offsets are without the options and credentials of a URL.
            there = {file.capture: file for one in self._look().sets.values() for file in one.files}
        found = []
        for name, now in sorted(end.items()):
            was = start.get(name, {})
            if _same_news(was, now):
                continue
            files, given = {}, {}
            for capture, written in now["files"].items():
                file = there.get(capture)
                path = capture if file is None else file.path
                identity = written["identity"]
                first = int(identity.partition("-")[0] or 0)
                file = CaptureFile(
                    capture, path, written["size"], written["compression"], first, None, True, identity
                )
                files[capture] = file
                given[capture] = _given(file, was.get("files", {}).get(capture))
            one = capture_set(name, files.values())
            until = (1 << 63) - 1 if now["settled"] else now["time"] - int(WAIT * 1e9)
            before, end_name = (_name(name, state) for state in (was, now))
            if self._table == _FINDINGS and before == end_name:
                raise PipelineError(
                    f"{name}: the checkpoint has a batch of an earlier version of amqpscope that cannot be "
                    "done again; begin with a new checkpointLocation"
                )
            octets = tuple(given[file.capture] for file in one.files)
            found.append(_News(one, octets, before if was else "", end_name, _name(before, now), until))
        return found

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a capture set in a batch."""
        calm_collector()
        made = self._segments(partition) if self._table == SEGMENTS.name else self._findings(partition)
        for batch in made:
            yield batch.select(self._columns)

    def commit(self, end: Offset) -> None:
        """All up to here was given: the states of earlier batches go."""
        if not self._state:
            return
        wanted = {_name(name, now) + _SUFFIX for name, now in end.items()}
        system, inner = file_system(self._state)
        for file in system.get_file_info(fs.FileSelector(inner, allow_not_found=True)):
            if file.base_name.endswith(_SUFFIX) and file.base_name not in wanted:
                system.delete_file(file.path)

    def _look(self) -> _Look:
        """The captures that there are now."""
        now = time.time_ns()
        found = capture_sets(self._sources, self._set_by)
        paths = {file.path for one in found for file in one.files}
        sets, latest = {}, {}
        for one in found:
            # One without a packet has nothing yet to recognise it by.
            files = [
                file
                for file in one.files
                if file.trouble is None and file.identity and not not_yet(file, paths)
            ]
            if files:
                sets[one.name] = CaptureSet(one.name, tuple(files))
                latest[one.name] = max(_changed(file) for file in files)
        return _Look(now, sets, latest)

    def _segments(self, news: _News) -> Iterator[pa.RecordBatch]:
        given = dict(zip(news.one.files, news.given, strict=True))
        # What was given whole is not read.
        files = tuple(file for file in news.one.files if given[file] < file.size)
        one = self._there(CaptureSet(news.one.name, files), given)
        yield from segments_of(one, [given[file] for file in one.files])
        self._there(one, given)

    def _findings(self, news: _News) -> Iterator[pa.RecordBatch]:
        done = self._load(news.now)
        if done is not None and done.schema.metadata[b"batch"].decode() == news.batch:
            yield from done.to_batches()
            return
        given: Counter[str] = Counter()
        if news.before:
            before = self._load(news.before)
            if before is None:
                raise PipelineError(
                    f"stateLocation {self._state}: what the query has given of {news.one.name} is not there; "
                    "begin with a new checkpointLocation"
                )
            given.update(json.loads(before.schema.metadata[b"given"]))
        whole = dict(zip(news.one.files, news.given, strict=True))
        one = self._there(news.one, whole)
        rows = Rows((_FINDINGS,), with_secrets(self._terms))
        made = [batch for _, batch in read_set(one, rows)] + [batch for _, batch in rows.batches(True)]
        self._there(one, whole)
        found = pa.Table.from_batches(map(without_dictionaries, made), TABLES[_FINDINGS].schema)
        left = Counter(given)
        fresh = []
        for number, row in enumerate(found.to_pylist()):
            exact = _exact(row)
            key = _key(row, exact)
            if left[key] > 0:
                left[key] -= 1
            elif row["reaction"] is not None or exact <= news.until:
                fresh.append(number)
                given[key] += 1
        table = found.take(pa.array(fresh, pa.int64()))
        self._keep(news, table, given)
        yield from table.to_batches()

    def _there(self, one: CaptureSet, given: Mapping[CaptureFile, int]) -> CaptureSet:
        """The files of a set that are still what they were. given: how many octets of each were given.

        PipelineError if one is not of which more is to be given, and `failOnDataLoss` holds.
        """
        files = []
        for file in one.files:
            try:
                lost = size_now(file) < file.size or not unchanged([CaptureSet(one.name, (file,))])
            except READ_ERRORS:
                lost = True
            if not lost:
                files.append(file)
            elif self._strict and given[file] < file.size:
                raise PipelineError(
                    f"{file.capture}: the file was deleted or overwritten before all its rows were given; "
                    "failOnDataLoss=false continues without it"
                )
        return one if len(files) == len(one.files) else capture_set(one.name, files)

    def _load(self, name: str) -> pa.Table | None:
        """The state with this name; None if there is none."""
        system, inner = file_system(f"{self._state}/{name}{_SUFFIX}")
        try:
            with system.open_input_file(inner) as stream:
                return pa.ipc.open_file(stream).read_all()
        except FileNotFoundError:
            return None

    def _keep(self, news: _News, table: pa.Table, given: Counter[str]) -> None:
        """Keep the rows of a batch, and what was given up to its end."""
        system, folder = file_system(self._state)
        system.create_dir(folder, recursive=True)
        metadata = {"batch": news.batch, "given": json.dumps(given)}
        staged = f"{folder}/{news.now}.{os.getpid()}.{time.monotonic_ns()}"
        with system.open_output_stream(staged) as stream:
            schema = table.schema.with_metadata(metadata)
            with pa.ipc.new_file(stream, schema) as writer:
                writer.write_table(table.replace_schema_metadata(metadata))
        system.move(staged, f"{folder}/{news.now}{_SUFFIX}")


def _given(file: CaptureFile, written: dict[str, Any] | None) -> int:
    """How many octets of a file had been given. written: what an offset has under its name."""
    if not written or file.size < written["size"]:
        return 0
    identity = written["identity"]
    same = file.identity == identity or begins_as(file, identity)
    return int(written["size"]) if same else 0


def _written(file: CaptureFile) -> dict[str, Any]:
    return {"size": file.size, "identity": file.identity, "compression": file.compression}


def _same_news(was: Offset, now: Offset) -> bool:
    """Whether nothing is new in a capture set: files may only be gone."""
    if not was or _state(was) != _state(now):
        return False
    return all(was["files"].get(name) == file for name, file in now["files"].items())


def _changed(file: CaptureFile) -> int:
    """When a file was last written to (ns); 0 in an object store, which shows a file when it is complete."""
    try:
        return 0 if is_remote(file.path) else os.stat(file.path).st_mtime_ns
    except OSError:
        return 0


def _name(name: str, state: Offset) -> str:
    """What names the state of a capture set as of an offset. Files that are gone since make no difference."""
    return hashlib.sha256(json.dumps([name, *_state(state)]).encode()).hexdigest()[:32]


def _state(state: Offset) -> list[Any]:
    """What tells the states of one capture set apart. The number is last: earlier versions had none."""
    number = [state["number"]] if "number" in state else []
    return [state.get("time"), state.get("settled"), *number]


def _exact(row: dict[str, Any]) -> int:
    """The time of a row, in nanoseconds since 1970."""
    return int((row["time"] - _EPOCH) // timedelta(microseconds=1) * 1000 + row["time_rest_ns"])


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _key(row: dict[str, Any], exact: int) -> str:
    """What a finding is recognised by, whatever its file is called and however the other peer reacted."""
    connection = row["connection"].rpartition("#")[0]
    values = [row["rule"], exact, row["packet"], connection, row["peer"], row["fingerprint"]]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]
