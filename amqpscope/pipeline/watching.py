"""`pipeline watch`: a directory into which captures are written, and a lake that follows it.

A turn is what `--append` does (see `appending`): it looks which files are new or have grown, analyses their
capture sets, and commits the rows and what was read of each file (its row in the table `files`) at once. So a
turn that died is done again by the next one, and each row is there once. A set that changes is followed: only
what is new is read (see `following`).

A file that is still written is read as far as it goes, to its last whole record. A file `NAME.gz` beside a
file `NAME` is passed over: it is being compressed, and `NAME` has all that is in it. What was overwritten
while it was read is not committed; the next turn reads it again.
"""

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from amqpscope.model.note import INTERNAL
from amqpscope.pipeline.analysis import Analysis
from amqpscope.pipeline.appending import Addition, addition_to, shaping_options, tables_to_add
from amqpscope.pipeline.arrivals import Arrivals
from amqpscope.pipeline.capture_set import CaptureSet, capture_set, capture_sets
from amqpscope.pipeline.compaction import compact_tables, needless_files
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.following import FollowedBatch, Followers
from amqpscope.pipeline.inputs import CaptureFile, escaped, is_remote, plain
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.rows import RowTerms
from amqpscope.pipeline.states import States, opened
from amqpscope.policy.policy import Policy
from amqpscope.protocols import known_dialect

__all__ = ["Turn", "Watch", "WatchTerms", "WatchedBatch", "not_yet"]

MOST_NEEDLESS = 50
"""The small files of the lake are put together when a table then has at least so many files fewer. Earlier
watches may have made these files, too."""

_VACUUM_AFTER = 600.0
"""Seconds between two deletions of what the lake no longer needs."""

_LOOKS_APART = 20.0
"""To look what files there are, between two turns, takes at most one part in so many of the time."""

_WORTH_IT = 8 * 1024 * 1024
"""Octets of a new set from which on it takes too long to read it twice."""

_COMPRESSED = (".gz", ".zst", ".zstd")

Snapshot = dict[str, tuple[int, int, int]]
"""Size, time of the last change and number of each file."""


class WatchTerms(NamedTuple):
    """How captures are read. tables: of a new lake. only: the user has asked for these tables.

    policy: gives what findings are held to, on the day of the batch. keep: hours after which files are
    deleted that have left the tables. follow: whether sets are followed that change. at_once: new ones, too.
    written: one of the new ones, if a file of it has changed in so many seconds before the turn; 0 if there
    is only one turn. fresh: no state is used that an earlier run has kept. lateness: seconds that a new file
    waits (see `arrivals`). once: there will be no other turn. The others, and tags: see `Analysis.write` and
    `capture_sets`.
    """

    set_by: str
    tables: tuple[str, ...]
    only: bool
    policy: Callable[[], Policy]
    dialect: str = ""
    with_json: bool = False
    keep: int = 1
    tags: Mapping[str, str] = MappingProxyType({})
    follow: bool = True
    at_once: bool = False
    written: float = 0
    fresh: bool = False
    lateness: float = 0
    once: bool = False


class WatchedBatch(NamedTuple):
    """What a turn has committed.

    fresh: files that were new or longer. files, octets: that were read for them. whole: capture sets that
    were read as a whole. seconds: the turn took. lag: seconds from the last change of the newest file until
    its rows could be seen. all_files, all_octets: of the lake. mishaps: what amqpscope itself failed on, in
    lines.
    """

    fresh: int
    files: int
    octets: int
    whole: int
    seconds: float
    lag: float
    all_files: int
    all_octets: int
    mishaps: list[str]


class Turn(NamedTuple):
    """What a turn has found, and committed. batch: None if there was nothing to commit. said: lines about
    states that are not used.
    """

    added: Addition
    batch: WatchedBatch | None
    said: tuple[str, ...] = ()


class Watch:
    """Follows a directory. lake: its lease is held.

    analysis: makes the analysis of capture sets, for its plan and its session. clock, today: of `Arrivals`;
    today also for `written`.
    """

    def __init__(
        self,
        directory: str,
        lake: Lake,
        terms: WatchTerms,
        analysis: Callable[[list[CaptureSet]], Analysis],
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], float] = time.time,
    ) -> None:
        self._directory = os.path.abspath(plain(directory))
        if is_remote(directory) or not os.path.isdir(self._directory):
            raise PipelineError(f"{directory}: not a directory on this machine")
        self._lake = lake
        self._root = os.path.abspath(lake.path)
        if f"{self._directory}{os.sep}".startswith(f"{self._root}{os.sep}"):
            raise PipelineError(f"{directory}: this directory is the lake, or belongs to it")
        self._terms = terms
        self._analysis = analysis
        self._seen: Snapshot | None = None  # the files as the last turn has found them
        self._grown = True  # since the lake was looked at as a whole
        self._cleaned = time.monotonic()
        self._followers = Followers(terms.set_by, terms.follow, self._at_once)
        self._today = today
        self._latest: Snapshot = {}  # the files as the turn under way has found them
        self._looked_at = 0.0  # when that was (s since 1970)
        self._states: States | None = None  # of the last turn
        self._said: list[str] = []
        self._policy: Policy | None = None  # of the batch before
        self._read_on_at = 0.0  # not before
        self._arrivals = Arrivals(terms.lateness, clock, today, terms.once)

    @property
    def waiting(self) -> int:
        """How many files wait since the last look."""
        return self._arrivals.waiting

    @property
    def ahead(self) -> bool:
        """Whether files were read on since the last turn: the state at the end needs one more turn."""
        return self._followers.ahead

    def read_on(self) -> None:
        """Between two turns: read what is new in files that are followed. The next turn has less to do."""
        began = time.monotonic()
        if self._terms.lateness or not self._followers.follows_any or began < self._read_on_at:
            return
        self._followers.read_on(self._sets())
        self._read_on_at = began + _LOOKS_APART * (time.monotonic() - began)

    def cancel(self) -> None:
        """Let a turn fail that waits for the processes that follow sets, from another thread."""
        self._followers.kill()

    def close(self) -> list[str]:
        """Nothing is followed any more. Gives lines about states that are not kept."""
        self._said.clear()
        if self._states is not None:
            with contextlib.suppress(PipelineError):  # of a lake that others have taken over
                self._followers.keep(self._states, True)
                self._followers.settle(self._states)
        self._followers.close()
        return list(self._said)

    def turn(self) -> Turn | None:
        """Look what is new, and commit it; None if no file has changed, and none has waited long enough.
        FilesChanged: nothing was committed, since a file was overwritten; to be tried again.
        """
        began = time.monotonic()
        self._expect()
        self._looked_at = self._today()
        seen = self._latest = _snapshot(self._directory, self._root)
        if seen == self._seen and not self._arrivals.overdue():
            return None
        lake = self._lake.anew()
        policy = self._terms.policy()
        terms = self._terms
        sets = self._sets()
        if terms.lateness:
            sets = self._ready(sets, lake, seen)
        shaping = shaping_options(terms.set_by, terms.with_json, terms.dialect, policy)
        if self._policy is not None and not policy.decides_as(self._policy):
            self._followers.close()
        self._policy = policy
        self._said.clear()
        rows = RowTerms(policy, known_dialect(terms.dialect), with_json=terms.with_json)
        self._states = States(
            lake, terms.set_by, terms.tables, rows, terms.tags, self._said.append, terms.fresh
        )
        self._states.check = self._lake.check
        try:
            there = lake.paths() if self._followers.open else frozenset()
            news, rest = self._followers.going_on(sets, there, self._states)
            added = addition_to(lake, rest, shaping, every=True)
            begun, rest = self._followers.begun(added.sets, added.replaced, rest, self._states)
            followed = FollowedBatch((*news, *begun), keep=self._keep)
            if not rest and not followed.sets:
                self._seen = seen
                return Turn(added, None, tuple(self._said))
            files = [file for one in [*rest, *(of.there for of in followed.sets)] for file in one.files]
            changed = max((seen[file.path][1] for file in files if file.path in seen), default=0)
            before = {(row["capture"], row["size"]) for row in _rows(lake)} if added.base else set()
            result = self._analysis(rest).write(
                self._lake,
                tables_to_add(added, terms.tables, terms.only),
                None,
                policy,
                True,
                terms.dialect,
                terms.with_json,
                added._replace(gone=followed.gone, changed=changed),
                terms.tags,
                followed,
            )
        except BaseException:
            self._followers.fail()
            raise
        self._seen = seen
        after = _rows(self._lake.anew())
        batch = WatchedBatch(
            sum((escaped(file.capture), file.size) not in before for file in files),
            sum(len(one.files) for one in rest) + sum(one.files for one in followed.sets),
            sum(one.size for one in rest) + sum(one.octets for one in followed.sets),
            len(rest) + len(begun) + sum(one.anew for one in news),
            time.monotonic() - began,
            max(time.time_ns() - changed, 0) / 1e9,
            len(after),
            sum(row["size"] for row in after),
            [f"{key[1]}: {INTERNAL}: {key[2]}" for key in result.counts if key[0] == "mishap"],
        )
        self._grown = True
        self._followers.settle(self._states)
        self._expect()
        return Turn(added, batch, tuple(self._said))

    def _expect(self) -> None:
        """Start a process before it is needed."""
        if self._terms.written:
            self._followers.expect()

    def _at_once(self, one: CaptureSet) -> bool:
        """Whether a new set is followed."""
        return self._terms.at_once or self._is_written(one)

    def _is_written(self, one: CaptureSet) -> bool:
        """Whether somebody seems to be writing to a set that is worth it, and a process waits for one. So at
        most one set in a batch is followed at once: several new files at a time are probably complete.
        """
        if one.size < _WORTH_IT or not self._followers.ready:
            return False
        since = (self._looked_at - self._terms.written) * 1e9
        changed = (self._latest[file.path][1] for file in one.files if file.path in self._latest)
        return max(changed, default=0) >= since

    def _keep(self) -> None:
        """Keep states before a commit, if that costs little."""
        if self._states is not None:
            self._followers.keep(self._states, False)

    def care(self) -> None:
        """Put small files of the lake together, and delete what it no longer needs, now and then."""
        due = time.monotonic() - self._cleaned > _VACUUM_AFTER
        if self._grown:
            self._grown = False
            if self._needless():
                compact_tables(self._lake, self._followers.open)
                due = due or self._terms.once
        if due and not self._lake.empty():
            self._lake.vacuum(self._terms.keep, often=True)
            self._cleaned = time.monotonic()

    def _needless(self) -> bool:
        """Whether to put files together is worth it."""
        lake = self._lake.anew()
        still = self._followers.open
        if needless_files(lake, still) < MOST_NEEDLESS:
            return False
        # The kept states need files, too; to find these takes longer.
        return needless_files(lake, still | opened(lake)) >= MOST_NEEDLESS

    def _sets(self) -> list[CaptureSet]:
        """The capture sets, of the files that there are."""
        sets = []
        found = capture_sets([self._directory], self._terms.set_by)
        paths = {file.path for one in found for file in one.files}
        for one in found:
            files = [file for file in one.files if not _passed_over(file, paths, self._root)]
            if len(files) == len(one.files):
                sets.append(one)
            elif files:
                sets.append(capture_set(one.name, files))
        return sets

    def _ready(self, sets: list[CaptureSet], lake: Lake, seen: Snapshot) -> list[CaptureSet]:
        """The sets without the files that wait."""
        rows = [] if lake.empty() else _rows(lake)
        changed = {path: of[1] / 1e9 for path, of in seen.items()}
        return self._arrivals.ready(sets, filter(None, (row["identity"] for row in rows)), changed)


def _passed_over(file: CaptureFile, paths: set[str], lake: str) -> bool:
    """Whether a file is none of the captures: see `not_yet`, or it is of the lake."""
    return not_yet(file, paths) or file.path.startswith(f"{lake}{os.sep}")


def not_yet(file: CaptureFile, paths: set[str]) -> bool:
    """Whether a file is gone again, or compressed just now. paths: of all files."""
    gone = file.trouble is not None and file.trouble.reason == "missing"
    stem, suffix = os.path.splitext(file.path)
    return gone or (suffix in _COMPRESSED and stem in paths)


def _rows(lake: Lake) -> list[dict[str, Any]]:
    return lake.rows("files", lake.parts("files"))


def _snapshot(directory: str, lake: str) -> Snapshot:
    """All files below a directory, without those of the lake."""
    found: Snapshot = {}
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if os.path.join(folder, name) != lake]
        for path in (os.path.join(folder, name) for name in names):
            try:
                status = os.stat(path)
            except OSError:
                continue
            found[path] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return found
