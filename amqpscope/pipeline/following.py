"""Capture sets that are followed while their files are written: each batch of a watch reads only what is new.

A set is analysed as a whole when it is first found, and once more when it is in the lake and has changed. The
second analysis stays in a process of its own (`follower`), and the set is followed from then on. Each batch
writes the rows of what is over by then, which stay, and *open* rows, of what is not over: these are replaced
by the next batch.

What a process holds in memory is lost with it, and that is all: rows and files are committed in one step, so
the lake never depends on it. Whenever a set is not what its process takes it for, the process is ended, and
the set is analysed as a whole again, as `--append` does, before it may be followed again. That is so after a
failure of any kind, if a file other than the last one has changed, if a file comes before one that was read,
if files overlap in time, and where there are compressed files, whose end cannot be seen.
"""

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from typing import Final, NamedTuple

from amqpscope import __version__
from amqpscope.pipeline.appending import begins_as
from amqpscope.pipeline.capture_set import CaptureSet, capture_set, naming
from amqpscope.pipeline.failure import FilesChanged
from amqpscope.pipeline.follower import Done, FollowerTerms, Step
from amqpscope.pipeline.inputs import FIRST_LOOK, CaptureFile
from amqpscope.pipeline.rows import RowTerms
from amqpscope.pipeline.tags import Tags

__all__ = ["MAX_FOLLOWERS", "NOTHING_FOLLOWED", "Followed", "FollowedBatch", "Followers"]

MAX_FOLLOWERS = 8
"""Sets that are followed at a time: each has a process, of some 250 MB."""


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

    one: the set, as the batch under way finds it. source: the capture set that its files are found in.
    others: files of that one that belong to another set of the lake. files, octets: that the batch reads.
    open: paths of the files with open rows.
    """

    def __init__(self, one: CaptureSet, files: _Files, source: str, others: frozenset[_Key]) -> None:
        self.one = one
        self.source = source
        self.files = len(one.files)
        self.octets = files.octets
        self.open: frozenset[str] = frozenset()
        self.used = 0
        self._files = files
        self._others = others
        self._begun = False
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from amqpscope.pipeline.follower import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    def find(self, found: CaptureSet) -> bool:
        """Find out what is new in the files of `source`; `files` is 0 if nothing is. False if the process
        cannot go on with what is there.
        """
        mine = [file for file in found.files if _key(file) not in self._others]
        one = found
        if found.name != self.one.name or len(mine) < len(found.files):
            one = capture_set(self.one.name, mine)
        files = _Files.of(one)
        if files is None or not _continues(self._files, files):
            return False
        before = {_key(file) for file in self.one.files}
        self.files = sum(_key(file) not in before for file in one.files)
        self.octets = files.octets - self._files.octets
        self.one, self._files = one, files
        return True

    def begin(self, staging: str, run: str, terms: FollowerTerms) -> None:
        """Let the process read what is new."""
        try:
            assert self._process.stdin is not None
            if not self._begun:
                self._expect_version()
                pickle.dump(terms._replace(name=self.one.name), self._process.stdin)
                self._begun = True
            stem = f"{run}-{self._process.pid}"
            pickle.dump(Step(self._files.read, self._files.empty, staging, stem), self._process.stdin)
            self._process.stdin.flush()
        except OSError as error:
            raise self._failed("") from error

    def end(self) -> Done:
        """What the process has written."""
        answer = self._answer()
        if not isinstance(answer, Done):
            raise self._failed(str(answer))
        self.open = frozenset(file.path for file in answer.open)
        return answer

    def _expect_version(self) -> None:
        version = self._answer()
        if version != __version__:
            raise self._failed(f"the package is amqpscope {version} now; this command began as {__version__}")

    def _answer(self) -> object:
        assert self._process.stdout is not None
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
        self._process.kill()

    def close(self) -> None:
        """End the process, and forget it."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what it was not given any more
                if pipe is not None:
                    pipe.close()
        self._process.wait()


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
    """The sets that are followed. set_by: see `capture_sets`. allowed: whether any may be."""

    def __init__(self, set_by: str, allowed: bool) -> None:
        self._source_of = naming(set_by)
        self._allowed = allowed and hasattr(os, "fork")
        self._followed: dict[str, Followed] = {}
        self._put_off: set[str] = set()  # sources that are not followed with their next change
        self._batches = 0

    @property
    def open(self) -> frozenset[str]:
        """Paths of the files with open rows."""
        return frozenset().union(*(one.open for one in self._followed.values()))

    def going_on(
        self, sets: Iterable[CaptureSet], there: frozenset[str]
    ) -> tuple[list[Followed], list[CaptureSet]]:
        """Those with news, and the sets that are not followed, or not any more. there: paths of the files of
        the lake.
        """
        self._batches += 1
        news: list[Followed] = []
        rest: list[CaptureSet] = []
        found = set()
        for one in sets:
            found.add(one.name)
            followed = self._followed.get(one.name)
            if followed is None:
                rest.append(one)
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
            ready = one.name in changed and source in files and source not in self._followed
            if source in self._put_off or parts is None or not ready or not self._room():
                self._put_off.discard(source)
                rest.append(one)
                continue
            own = set(one.files)
            others = frozenset(_key(file) for file in files[source] if file not in own)
            followed = Followed(one, parts, source, others)
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
    """What sets that are followed add to a run."""

    sets: tuple[Followed, ...]

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
