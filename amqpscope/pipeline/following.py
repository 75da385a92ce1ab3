"""Capture sets that are followed while their files are written: each batch of a watch reads only what is new.

A set is analysed as a whole when it is first found, and once more when it is in the lake and has changed. The
second analysis stays in a process of its own (`follower`), and the set is followed from then on. Each batch
writes the rows of what is over by then, which stay, and *open* rows, of what is not over: these are replaced
by the next batch.

What a process holds in memory is its state, which is kept beside the tables (see `states`): the next watch,
and the next run with `--append`, let a process go on from there. Without a state nothing is lost but time:
rows and files are committed in one step, so the lake never depends on it. Whenever a set is not what its
process takes it for, the process is ended, and the set is analysed as a whole again, as `--append` does,
before it may be followed again. That is so after a failure of any kind, if a file other than the last one has
changed, if a file comes before one that was read, if files overlap in time, and where there are compressed
files, whose end cannot be seen.

The first files may be deleted once others follow them, as a ring buffer does: what was read of them is known.
Where a new file has the name of one of them, a row would not say which of both it is about: then that set is
followed no more.
"""

import contextlib
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from amqpscope import __version__
from amqpscope.pipeline.appending import Addition, begins_as
from amqpscope.pipeline.capture_set import CaptureSet, capture_set, naming
from amqpscope.pipeline.failure import FilesChanged
from amqpscope.pipeline.follower import KEEP, Done, FollowerTerms, Step
from amqpscope.pipeline.inputs import FIRST_LOOK, CaptureFile, escaped
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.rows import RowTerms
from amqpscope.pipeline.schemas import TABLES
from amqpscope.pipeline.states import States, Stored
from amqpscope.pipeline.tags import Tags

__all__ = [
    "MAX_FOLLOWERS",
    "NOTHING_FOLLOWED",
    "AppendedSets",
    "Followed",
    "FollowedBatch",
    "Followers",
]

MAX_FOLLOWERS = 8
"""Sets that are followed at a time: each has a process, of some 250 MB."""

_AT_ONCE: Final = 256 * 1024 * 1024
"""Octets of a set up to which one process reads it the first time; of more, several can read it together."""

_KEEP_SHARE: Final = 20.0
"""Writing the states takes at most one part in so many of the time, until the end of a watch."""


class _Key(NamedTuple):
    """What a file is recognised by."""

    capture: str
    size: int
    identity: str


def _key(file: CaptureFile) -> _Key:
    return _Key(file.capture, file.size, file.identity)


class _Files(NamedTuple):
    """The files of a set, with their places. read: those with packets. empty: those without one yet, or that
    cannot be read.
    """

    read: tuple[tuple[int, CaptureFile], ...]
    empty: tuple[tuple[int, CaptureFile], ...]

    @classmethod
    def of(cls, one: CaptureSet) -> "_Files | None":
        """None if the set cannot be followed."""
        read: list[tuple[int, CaptureFile]] = []
        empty: list[tuple[int, CaptureFile]] = []
        for place, file in enumerate(one.files):
            if file.trouble is not None:
                empty.append((place, file))
            elif file.compression:
                return None
            elif file.first_time:
                read.append((place, file))
            elif file.size > FIRST_LOOK:
                return None  # packets may come behind what was looked at
            else:
                empty.append((place, file))
        if one.by_time or one.too_many or not read:
            return None
        return cls(tuple(read), tuple(empty))

    @property
    def octets(self) -> int:
        """Of the files that are read."""
        return sum(file.size for _, file in self.read)


class Followed:
    """A set and the process that follows it.

    one: the set, as the batch under way finds it. there: without the files that were deleted since. source:
    the capture set that its files are found in. others: files of that one that belong to another set of the
    lake. files, octets: that the batch reads. open: paths of the files with open rows. anew: the batch reads
    all files again, since the state could not be used. run: of the batch. state: where the process begins.
    """

    def __init__(
        self,
        one: CaptureSet,
        files: _Files,
        source: str,
        others: frozenset[_Key],
        state: bytes = b"",
        opened: frozenset[str] = frozenset(),
    ) -> None:
        self.one = one
        self.there = one
        self.source = source
        self.anew = False
        self.run = ""
        self.files = len(one.files)
        self.octets = files.octets
        self.open = opened
        self.used = 0
        self.others = others
        self._files = files
        self._state = state
        self._resumed = bool(state)
        self._begun = False
        self._step: tuple[str, str, FollowerTerms] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def of_state(cls, stored: Stored) -> "Followed | None":
        """A set that goes on from a state; None if there can be none. Its process is not started."""
        files = _Files.of(stored.one)
        if files is None or not stored.octets:
            return None
        others = frozenset(_Key(*other) for other in stored.others)
        return cls(stored.one, files, stored.source, others, stored.octets, stored.open)

    def start(self) -> None:
        """Start the process."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from amqpscope.pipeline.follower import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    def go_on(self, terms: FollowerTerms) -> str:
        """Let the process go on from the state; gives why it cannot, "" if it can."""
        try:
            self._tell(terms._replace(state=self._state))
            answer = self._answer()
        except FilesChanged as error:
            return str(error)
        self._state = b""
        return "" if answer is None else str(answer)

    def _tell(self, terms: FollowerTerms) -> None:
        """Begin the conversation with the process."""
        try:
            self._expect_version()
            self._ask(terms._replace(name=self.one.name))
        except OSError as error:
            raise self._failed("") from error
        self._begun = True

    def _ask(self, question: object) -> None:
        assert self._process is not None and self._process.stdin is not None
        pickle.dump(question, self._process.stdin)
        self._process.stdin.flush()

    def find(self, found: CaptureSet) -> bool:
        """Find out what is new in the files of `source`; `files` is 0 if nothing is. False if the process
        cannot go on with what is there.
        """
        mine = [file for file in found.files if _key(file) not in self.others]
        there = found
        if found.name != self.one.name or len(mine) < len(found.files):
            there = capture_set(self.one.name, mine)
        gone = _gone(self._files, there)
        one = there
        if gone:
            if there.by_time or there.too_many:
                return False
            one = CaptureSet(there.name, (*gone, *there.files))
        files = _Files.of(one)
        if files is None or not _continues(self._files, files):
            return False
        before = {_key(file) for file in self.one.files}
        self.files = sum(_key(file) not in before for file in one.files)
        self.octets = files.octets - self._files.octets
        self.one, self.there, self._files = one, there, files
        return True

    def begin(self, staging: str, run: str, terms: FollowerTerms) -> None:
        """Let the process read what is new."""
        self._step = staging, run, terms
        self.run = run
        self.anew = False
        try:
            if not self._begun:
                self._tell(terms)
            assert self._process is not None
            stem = f"{run}-{self._process.pid}"
            self._ask(Step(self._files.read, self._files.empty, staging, stem))
        except OSError as error:
            raise self._failed("") from error

    def end(self) -> Done:
        """What the process has written."""
        answer = self._answer()
        if isinstance(answer, str) and self._resumed and not self.anew and self.there is self.one:
            # What the state does not have is in the files.
            self.close()
            self._begun = self._resumed = False
            self.start()
            assert self._step is not None
            self.begin(*self._step)
            self.anew = True
            self.files, self.octets = len(self.one.files), self._files.octets
            answer = self._answer()
        if not isinstance(answer, Done):
            raise self._failed(str(answer))
        self.open = frozenset(file.path for file in answer.open)
        return answer

    def keep(self) -> bytes | str:
        """The state, behind a commit; or why there is none."""
        try:
            self._ask(KEEP)
            answer = self._answer()
        except (OSError, FilesChanged):
            return "the process was killed"
        return answer if isinstance(answer, bytes) else str(answer)

    def _expect_version(self) -> None:
        version = self._answer()
        if version != __version__:
            raise self._failed(f"the package is amqpscope {version} now; this command began as {__version__}")

    def _answer(self) -> object:
        assert self._process is not None and self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)  # noqa: S301  made by our own process
        except (OSError, EOFError) as error:
            raise self._failed("") from error

    def _failed(self, reason: str) -> FilesChanged:
        return FilesChanged(
            f"{self.one.name}: nothing is added: {reason or 'the process that follows the files was killed'}"
        )

    def kill(self) -> None:
        """End the process: what waits for its answer fails."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the process, and forget it."""
        self.kill()
        if self._process is None:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what it was not given any more
                if pipe is not None:
                    pipe.close()
        self._process.wait()


def _gone(before: _Files, there: CaptureSet) -> list[CaptureFile]:
    """The files that were read first and are not there any more, if no other one has the name of one of them
    and the last one read is there.
    """
    keys = {_key(file) for file in there.files}
    names = {file.capture for file in there.files}
    gone: list[CaptureFile] = []
    for _, file in before.read[:-1]:
        if _key(file) in keys:
            return gone
        if file.capture in names:
            return []
        gone.append(file)
    return gone


def _continues(before: _Files, now: _Files) -> bool:
    """Whether the files are those of before, the last of them perhaps longer, and others behind them."""
    old = [file for _, file in before.read]
    new = [file for _, file in now.read]
    if len(new) < len(old):
        return False
    last, found = old[-1], new[len(old) - 1]
    return (
        [_key(file) for file in old[:-1]] == [_key(file) for file in new[: len(old) - 1]]
        and found.capture == last.capture
        and found.size >= last.size
        and (found.identity == last.identity or begins_as(found, last.identity))
    )


class Followers:
    """The sets that are followed. set_by: see `capture_sets`. allowed: whether any may be. at_once: also sets
    that are new, up to `_AT_ONCE`.
    """

    def __init__(self, set_by: str, allowed: bool, at_once: bool = False) -> None:
        self._at_once = at_once
        self.set_by = set_by
        self._source_of = naming(set_by)
        self._allowed = allowed and hasattr(os, "fork")
        self._followed: dict[str, Followed] = {}
        self._put_off: set[str] = set()  # sources that are not followed with their next change
        self._batches = 0
        self._kept_at = time.monotonic()
        self._kept_for = 0.0  # seconds that it took

    @property
    def open(self) -> frozenset[str]:
        """Paths of the files with open rows."""
        return frozenset().union(*(one.open for one in self._followed.values()))

    def going_on(
        self, sets: Iterable[CaptureSet], there: frozenset[str], states: States
    ) -> tuple[list[Followed], list[CaptureSet]]:
        """Those with news, and the sets that are not followed, or not any more. there: paths of the files of
        the lake. states: where sets go on that are not followed yet.
        """
        self._batches += 1
        news: list[Followed] = []
        rest: list[CaptureSet] = []
        found = set()
        for one in sets:
            found.add(one.name)
            followed = self._followed.get(one.name)
            if followed is None:
                followed = self._go_on(one, states)
                if followed is None:
                    rest.append(one)
                else:
                    news.append(followed)
            elif not (followed.open <= there and followed.find(one)):
                self._drop(followed)
                rest.append(one)
            elif followed.files:
                news.append(followed)
        for followed in [one for one in self._followed.values() if one.source not in found]:
            self._drop(followed)
        for followed in news:
            followed.used = self._batches
        return news, rest

    def _go_on(self, one: CaptureSet, states: States) -> Followed | None:
        """The set as one that is followed, if it has news and there is a state of it."""
        if not self._allowed or one.name in self._put_off:
            return None
        stored = states.find(one.name)
        followed = None if stored is None else Followed.of_state(stored)
        if followed is None or not followed.find(one) or not followed.files or not self._room():
            return None
        followed.start()
        why = followed.go_on(FollowerTerms("", states.tables, states.terms, states.tags))
        if why:
            followed.close()
            states.refuse(one.name, why)
            return None
        followed.used = self._batches
        self._followed[one.name] = followed
        return followed

    def keep(self, states: States, now: bool) -> None:
        """Write the states behind a commit, if that costs little. now: whatever it costs."""
        began = time.monotonic()
        if not now and began - self._kept_at < _KEEP_SHARE * self._kept_for:
            return
        for followed in self._followed.values():
            if not followed.run:
                continue
            answer = followed.keep()
            if isinstance(answer, bytes):
                others = sorted(followed.others)
                states.keep(followed.source, followed.one, others, followed.run, followed.open, answer)
            elif now:
                states.say(f"{escaped(followed.source)}: no state is kept: {answer}")
        self._kept_at = time.monotonic()
        self._kept_for = self._kept_at - began

    def begun(
        self, sets: Iterable[CaptureSet], changed: frozenset[str], found: Iterable[CaptureSet]
    ) -> tuple[list[Followed], list[CaptureSet]]:
        """Of sets that are to be analysed as a whole those that are followed from now on, and the others.
        changed: names of those that the lake has already. found: all sets, by their sources.
        """
        files = {one.name: one.files for one in found}
        news: list[Followed] = []
        rest: list[CaptureSet] = []
        for one in sets:
            source = self._source_of(one.files[0].capture)
            parts = _Files.of(one)
            ready = (
                (self._at_once or one.name in changed) and source in files and source not in self._followed
            )
            if source in self._put_off or parts is None or not ready or not self._room():
                self._put_off.discard(source)
                rest.append(one)
                continue
            own = set(one.files)
            others = frozenset(_key(file) for file in files[source] if file not in own)
            followed = Followed(one, parts, source, others)
            followed.start()
            followed.used = self._batches
            self._followed[source] = followed
            news.append(followed)
        return news, rest

    def _room(self) -> bool:
        """Whether one more can be followed; the one that had no news for longest makes room."""
        if not self._allowed:
            return False
        if len(self._followed) >= MAX_FOLLOWERS:
            idle = min(self._followed.values(), key=lambda one: one.used)
            if idle.used == self._batches:
                return False
            self._drop(idle)
        return True

    def _drop(self, followed: Followed) -> None:
        """Follow a set no more, until it has changed once and changes again."""
        followed.close()
        del self._followed[followed.source]
        self._put_off.add(followed.source)

    def kill(self) -> None:
        """End all processes, from another thread."""
        for followed in list(self._followed.values()):
            followed.kill()

    def close(self) -> None:
        """Follow nothing any more."""
        for followed in list(self._followed.values()):
            self._drop(followed)


class FollowedBatch(NamedTuple):
    """What sets that are followed add to a run. earlier: the run counts what they had before, too."""

    sets: tuple[Followed, ...]
    earlier: bool = False

    @property
    def anew(self) -> frozenset[str]:
        """Names of those that were read again as a whole, whose rows go."""
        return frozenset(escaped(one.one.name) for one in self.sets if one.anew)

    @property
    def gone(self) -> frozenset[str]:
        """Paths of the files with open rows that the run replaces."""
        return frozenset().union(*(one.open for one in self.sets))

    def begin(self, staging: str, run: str, tables: tuple[str, ...], terms: RowTerms, tags: Tags) -> None:
        """Let the processes read what is new. The parameters: see `tasks.StagedFiles`."""
        for one in self.sets:
            one.begin(staging, run, FollowerTerms("", tables, terms, dict(tags)))

    def end(self) -> list[Done]:
        """What they have written. FilesChanged if one of them cannot go on."""
        return [one.end() for one in self.sets]


NOTHING_FOLLOWED: Final = FollowedBatch(())


class AppendedSets:
    """The sets that a run with `--append` follows, if any may be: to its end, so that their states are kept.
    set_by, at_once: of `Followers`.
    """

    def __init__(self, set_by: str, allowed: bool, at_once: bool) -> None:
        self.batch = NOTHING_FOLLOWED
        self._followers = Followers(set_by, allowed, at_once)
        self._allowed = allowed
        self._states: States | None = None

    def go_on(
        self,
        sets: list[CaptureSet],
        lake: Lake,
        tables: tuple[str, ...],
        terms: RowTerms,
        tags: Tags,
        fresh: bool,
        say: Callable[[str], None],
    ) -> list[CaptureSet]:
        """The sets that do not go on from a state. The parameters: of `States`."""
        if not self._allowed:
            return sets
        wanted = {"files", *tables}
        if not lake.empty():
            wanted = set(lake.written().versions)
        chosen = tuple(name for name in TABLES if name in wanted)
        self._states = States(lake, self._followers.set_by, chosen, terms, tags, say, fresh)
        news, rest = self._followers.going_on(sets, frozenset(), self._states)
        self.batch = FollowedBatch(tuple(news), True)
        return rest

    def begin(self, added: Addition, found: Iterable[CaptureSet]) -> list[CaptureSet]:
        """Of the sets that are to be analysed as a whole, those that are not followed. found: all sets."""
        if self._states is None:
            return added.sets
        begun, rest = self._followers.begun(added.sets, added.replaced, found)
        self.batch = FollowedBatch((*self.batch.sets, *begun), True)
        return rest

    def keep(self) -> None:
        """Keep their states: their rows are committed."""
        if self._states is not None:
            self._followers.keep(self._states, True)

    def close(self) -> None:
        """End their processes."""
        self._followers.close()
