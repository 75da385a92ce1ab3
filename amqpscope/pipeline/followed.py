"""One capture set that is followed: its files, what a batch reads of them, and its process (`follower`).

Where a file has the name of another one that the set has had before, as in a ring of `tcpdump -W`, the tables
call it NAME#2, and the next one NAME#3. It has this name from its first batch on.
"""

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from typing import NamedTuple

from amqpscope import __version__
from amqpscope.pipeline.appending import begins_as
from amqpscope.pipeline.capture_set import CaptureSet, capture_set
from amqpscope.pipeline.failure import FilesChanged
from amqpscope.pipeline.follower import KEEP, Done, FollowerTerms, ReadOn, Step
from amqpscope.pipeline.inputs import FIRST_LOOK, CaptureFile, has_identity
from amqpscope.pipeline.states import Stored

__all__ = ["FileKey", "Followed", "FollowedFiles", "end_process", "key_of", "start_process"]


class FileKey(NamedTuple):
    """What a file is recognised by."""

    capture: str
    size: int
    identity: str


def key_of(file: CaptureFile) -> FileKey:
    return FileKey(file.capture, file.size, file.identity)


class FollowedFiles(NamedTuple):
    """The files of a set, with their places. read: those with packets. empty: those without one yet, or that
    cannot be read.
    """

    read: tuple[tuple[int, CaptureFile], ...]
    empty: tuple[tuple[int, CaptureFile], ...]

    @classmethod
    def of(cls, one: CaptureSet) -> "FollowedFiles | None":
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

    one: the set, as the batch under way finds it. there: without the files that were deleted since. news:
    without those of which nothing is new. source: the capture set that its files are found in. others: files
    of that one that belong to another set of the lake. octets: that the batch reads. open: paths of the files
    with open rows. anew: the batch reads all files again, since the state could not be used. run: of the
    batch. committed: the last one, "" if there is none. kept: the one whose state was written last. over: the
    set cannot be followed on behind the batch. state: where the process begins.
    """

    def __init__(
        self,
        one: CaptureSet,
        files: FollowedFiles,
        source: str,
        others: frozenset[FileKey],
        state: bytes = b"",
        opened: frozenset[str] = frozenset(),
    ) -> None:
        self.one = one
        self.there = one
        self.news = one
        self.source = source
        self.anew = False
        self.run = ""
        self.committed = ""
        self.kept = ""
        self.over = False
        self.octets = files.octets
        self.open = opened
        self.used = 0
        self.others = others
        self._files = files
        self._state = state
        self._resumed = bool(state)
        self._begun = False
        self._known = files  # with what the process was asked to read since the last batch
        self._step: tuple[str, str, FollowerTerms] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def of_state(cls, stored: Stored) -> "Followed | None":
        """A set that goes on from a state; None if there can be none. Its process is not started."""
        files = FollowedFiles.of(stored.one)
        if files is None or not stored.octets:
            return None
        others = frozenset(FileKey(*other) for other in stored.others)
        return cls(stored.one, files, stored.source, others, stored.octets, stored.open)

    @property
    def files(self) -> int:
        """How many files the batch reads."""
        return len(self.news.files)

    @property
    def ahead(self) -> bool:
        """Whether the process was asked to read on since the last batch."""
        return self._known is not self._files

    @property
    def incomplete(self) -> bool:
        """Whether files are gone, so that the set could not be read again."""
        return self.there is not self.one

    @property
    def is_kept(self) -> bool:
        """Whether the state of its last run is written."""
        return bool(self.run) and self.kept == self.run

    def start(self, process: "subprocess.Popen[bytes] | None" = None) -> None:
        """Start the process. process: one that was started already, and follows nothing yet."""
        self._process = process or start_process()

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
        self._expect_version()
        self._ask(terms._replace(name=self.one.name))
        self._begun = True

    def _ask(self, question: object) -> None:
        assert self._process is not None and self._process.stdin is not None
        try:
            pickle.dump(question, self._process.stdin)
            self._process.stdin.flush()
        except (OSError, ValueError) as error:  # the process has ended, or was closed
            raise self._failed("") from error

    def find(self, found: CaptureSet) -> bool:
        """Find out what is new in the files of `source`, if anything is: see `files`. False if the process
        cannot go on with what is there.
        """
        looked = self._look(found)
        if looked is None:
            return False
        one, there, files = looked
        before = {key_of(file) for file in self.one.files}
        news = tuple(file for file in one.files if key_of(file) not in before)
        self.octets = files.octets - self._files.octets
        self.one, self.there, self._files, self._known = one, there, files, files
        self.news = there._replace(files=news)
        return True

    def _look(self, found: CaptureSet) -> tuple[CaptureSet, CaptureSet, FollowedFiles] | None:
        """The set as it is now, and without the files that are gone; None if the process cannot go on."""
        mine = [file for file in found.files if key_of(file) not in self.others]
        there = found._replace(name=self.one.name)
        if len(mine) < len(found.files):
            there = capture_set(self.one.name, mine)
        there = there._replace(files=tuple(_named(self._known, there.files)))
        gone = _gone(self._known, there)
        one = there
        if not {key_of(file) for file in gone} <= {key_of(file) for _, file in self._files.read}:
            return None  # perhaps the process has not read them: nothing says how far it has come
        if gone:
            if there.by_time or there.too_many:
                return None
            one = CaptureSet(there.name, (*gone, *there.files))
        files = FollowedFiles.of(one)
        if files is None or not _continues(self._known, files):
            return None
        return one, there, files

    def begin(self, staging: str, run: str, terms: FollowerTerms) -> None:
        """Let the process read what is new."""
        self._step = staging, run, terms
        self.run = run
        self.anew = False
        if not self._begun:
            self._tell(terms)
        assert self._process is not None
        stem = f"{run}-{self._process.pid}"
        self._ask(Step(self._files.read, self._files.empty, staging, stem, not self.incomplete))

    def end(self) -> Done:
        """What the process has written."""
        answer = self._answer()
        if isinstance(answer, str) and self._resumed and not self.anew and not self.incomplete:
            # What the state does not have is in the files.
            self.close()
            self._begun = self._resumed = False
            self.start()
            assert self._step is not None
            self.begin(*self._step)
            self.anew = True
            self.news = self.one
            self.octets = self._files.octets
            answer = self._answer()
        if not isinstance(answer, Done):
            raise self._failed(str(answer))
        self.open = frozenset(file.path for file in answer.open)
        self.over = answer.over
        return answer

    def read_on(self, found: CaptureSet) -> None:
        """Let the process read what is new by now, if the last batch is committed, and the set could be read
        again. found: as of `find`.
        """
        if self.over or self.committed != self.run or not self._begun:
            return
        looked = self._look(found)
        if looked is None:
            return  # the next batch finds out
        one, there, known = looked
        if one is not there or known.read == self._known.read:
            return
        start = len(self._known.read) - 1
        files = tuple(file for _, file in known.read[start:])
        with contextlib.suppress(OSError, FilesChanged):
            inodes = tuple(os.stat(file.path).st_ino for file in files)
            if all(has_identity(file, file.identity) for file in files):
                self._ask(ReadOn(start, files, inodes))
                self._known = known

    def keep(self) -> bytes | str:
        """The state, behind a batch; or why there is none."""
        try:
            self._ask(KEEP)
            answer = self._answer()
        except FilesChanged:
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
        except (OSError, ValueError, EOFError, pickle.UnpicklingError) as error:
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
        if self._process is not None:
            end_process(self._process)


def start_process() -> "subprocess.Popen[bytes]":
    """A new process that can follow a set (see `follower`)."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", "from amqpscope.pipeline.follower import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,  # Ctrl-C is for the command, which ends this process
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


def end_process(process: "subprocess.Popen[bytes]") -> None:
    """End such a process."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):  # what it was not given any more
            if pipe is not None:
                pipe.close()
    process.wait()


def _named(before: FollowedFiles, files: Iterable[CaptureFile]) -> list[CaptureFile]:
    """Files under the names that the tables have for them."""
    files = list(files)
    old: dict[str, list[CaptureFile]] = {}
    for _, file in before.read:
        old.setdefault(file.name, []).append(file)
    read = {file.capture for _, file in before.read}
    taken = read | {file.capture for file in files}
    named = []
    for file in files:
        same = next((one for one in reversed(old.get(file.name, ())) if _is_still(file, one)), None)
        name, number = file.name, 1
        if same is not None:
            name = same.capture
        elif name in read:
            while name in taken:
                number += 1
                name = f"{file.name}#{number}"
            taken.add(name)
        named.append(file._replace(capture=name))
    return named


def _is_still(file: CaptureFile, old: CaptureFile) -> bool:
    """Whether a file is one that was read, or has grown since."""
    if not file.identity or file.size < old.size:
        return False
    return file.identity == old.identity or begins_as(file, old.identity)


def _gone(before: FollowedFiles, there: CaptureSet) -> list[CaptureFile]:
    """The files that were read first and are not there any more, if the last one read is there."""
    keys = {key_of(file) for file in there.files}
    names = {file.capture for file in there.files}
    gone: list[CaptureFile] = []
    for _, file in before.read[:-1]:
        if key_of(file) in keys:
            return gone
        if file.capture in names:
            return []
        gone.append(file)
    return gone


def _continues(before: FollowedFiles, now: FollowedFiles) -> bool:
    """Whether the files are those of before, the last of them perhaps longer, and others behind them."""
    old = [file for _, file in before.read]
    new = [file for _, file in now.read]
    if len(new) < len(old):
        return False
    last, found = old[-1], new[len(old) - 1]
    return (
        [key_of(file) for file in old[:-1]] == [key_of(file) for file in new[: len(old) - 1]]
        and found.capture == last.capture
        and _is_still(found, last)
    )
