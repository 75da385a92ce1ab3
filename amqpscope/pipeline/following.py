"""Capture sets that are followed while their files are written: each batch of a watch reads only what is new.

A set is analysed as a whole when it is first found, and once more when it is in the lake and has changed. The
second analysis stays in a process of its own (`follower`), and the set is followed from then on; so does the
first one, if somebody seems to be writing to the set, and a process is there already. Each batch writes the
rows of what is over by then, which stay, and *open* rows, of what is not over: these are replaced by the next
batch.

Between two batches, the processes read on in what is there by then. The rows wait for the next batch.

What a process holds in memory is its state, which is kept beside the tables (see `states`): the next watch,
the next run with `--append`, and this watch behind a batch that failed, let a process go on from there.
Without a state nothing is lost but time: rows and files are committed in one step, so the lake never depends
on it. Whenever a set is not what its process takes it for, the process is ended, and the set is analysed as a
whole again, as `--append` does, before it may be followed again. That is so if a file other than the last one
has changed, if a file comes before one that was read, if files overlap in time, and where there are
compressed files, whose end cannot be seen.

The first files may be deleted or overwritten once others follow them, as a ring buffer does: what was read of
them is known. The last file that was read has to be there, since what was written to it later would be
missing. Such a set could not be read again, so its state is kept with each batch.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from amqpscope.pipeline.appending import Addition
from amqpscope.pipeline.capture_set import CaptureSet, naming
from amqpscope.pipeline.followed import Followed, FollowedFiles, end_process, key_of, start_process
from amqpscope.pipeline.follower import Done, FollowerTerms
from amqpscope.pipeline.inputs import escaped
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.rows import RowTerms
from amqpscope.pipeline.states import States
from amqpscope.pipeline.tags import Tags

__all__ = [
    "MAX_FOLLOWERS",
    "NOTHING_FOLLOWED",
    "AppendedSets",
    "FollowedBatch",
    "Followers",
]

MAX_FOLLOWERS = 8
"""Sets that are followed at a time: each has a process, of some 250 MB. During a batch, there may be more, of
sets that have lost files: these could not be read again.
"""

_AT_ONCE: Final = 256 * 1024 * 1024
"""Octets of a set up to which one process reads it the first time; of more, several can read it together."""

_KEEP_SHARE: Final = 20.0
"""Writing the states takes at most one part in so many of the time, until the end of a watch. Those of sets
whose first files are gone are always written.
"""

_ROTATED_SHARE: Final = 1.0
"""Parts of the time for each one of writing where a set has several files: it may be a ring that is about to
overwrite the first of them.
"""


class Followers:
    """The sets that are followed. set_by: see `capture_sets`. allowed: whether any may be. at_once: says of a
    new set of at most `_AT_ONCE` octets whether it is followed at once, if there is room for it.
    """

    def __init__(self, set_by: str, allowed: bool, at_once: Callable[[CaptureSet], bool]) -> None:
        self._at_once = at_once
        self.set_by = set_by
        self._source_of = naming(set_by)
        self._allowed = allowed and hasattr(os, "fork")
        self._followed: dict[str, Followed] = {}
        self._put_off: set[str] = set()  # sources that are not followed with their next change
        self._failed: set[str] = set()  # sources whose processes could not do their first batch
        self._given_up: set[str] = set()  # sources whose secrets of TLS come late
        self._unsettled: set[str] = set()  # sources whose states were written since the last commit
        self._batches = 0
        self._kept_at = time.monotonic()
        self._kept_for = 0.0  # seconds that it took
        self._spare: subprocess.Popen[bytes] | None = None  # a process that follows nothing yet

    @property
    def open(self) -> frozenset[str]:
        """Paths of the files with open rows."""
        return frozenset().union(*(one.open for one in self._followed.values()))

    @property
    def follows_any(self) -> bool:
        """Whether any set is followed."""
        return bool(self._followed)

    @property
    def ready(self) -> bool:
        """Whether a process is there for one more."""
        return self._spare is not None and self._spare.poll() is None

    @property
    def ahead(self) -> bool:
        """Whether any set was read on since its last batch."""
        return any(one.ahead for one in self._followed.values())

    def read_on(self, sets: Iterable[CaptureSet]) -> None:
        """Let the processes read what is new by now, so that the next batch takes less time. sets: all that
        there are.
        """
        for one in sets:
            if one.name in self._followed:
                self._followed[one.name].read_on(one)

    def going_on(
        self, sets: Iterable[CaptureSet], there: frozenset[str], states: States
    ) -> tuple[list[Followed], list[CaptureSet]]:
        """Those with news, and the sets that are not followed, or not any more. there: paths of the files of
        the lake. states: where sets go on that are not followed yet.
        """
        self._batches += 1
        sets = list(sets)
        news: list[Followed] = []
        rest: set[str] = set()
        # First all that are followed, so that none has to make room before it was looked at.
        for one in sets:
            followed = self._followed.get(one.name)
            if followed is None:
                continue
            if not (followed.open <= there and followed.find(one)):
                # What contradicts the files that were read ahead may fit those of the last batch.
                again = followed.ahead and followed.is_kept and states.usable
                self._drop(followed, again)
                if not again:
                    rest.add(one.name)
            elif followed.files:
                followed.used = self._batches
                news.append(followed)
        found = {one.name for one in sets}
        for followed in [one for one in self._followed.values() if one.source not in found]:
            self._drop(followed)
        known = set(self._followed) | rest
        for one in sets:
            if one.name in known:
                continue
            followed = self._go_on(one, states)
            if followed is None:
                rest.add(one.name)
            else:
                news.append(followed)
        return news, [one for one in sets if one.name in rest]

    def _go_on(self, one: CaptureSet, states: States) -> Followed | None:
        """The set as one that is followed, if it has news and there is a state of it. If it could not be read
        again, it needs no room.
        """
        if not self._allowed or one.name in self._put_off or one.name in self._given_up:
            return None
        stored = states.find(one.name)
        followed = None if stored is None else Followed.of_state(stored)
        if followed is None or not followed.find(one) or not followed.files:
            return None
        if not self._room(states) and not followed.incomplete:
            return None
        self._start(followed)
        why = followed.go_on(FollowerTerms("", states.tables, states.terms, states.tags))
        if why:
            followed.close()
            states.refuse(one.name, why)
            return None
        followed.used = self._batches
        self._followed[one.name] = followed
        return followed

    def keep(self, states: States, now: bool) -> None:
        """Write the states, if that costs little, and those of sets that could not be read again. now: all,
        whatever it costs.
        """
        began = time.monotonic()
        rotated = any(len(followed.one.files) > 1 for followed in self._followed.values())
        share = _ROTATED_SHARE if rotated else _KEEP_SHARE
        due = now or began - self._kept_at >= share * self._kept_for
        for followed in self._followed.values():
            if followed.run == followed.kept or not (due or followed.incomplete):
                continue
            why = _keep(followed, states)
            if not why:
                self._unsettled.add(followed.source)
            elif now:
                states.say(f"{escaped(followed.source)}: no state is kept: {why}")
        if due:
            self._kept_at = time.monotonic()
            self._kept_for = self._kept_at - began

    def settle(self, states: States) -> None:
        """The rows of all batches are committed: the states before are of no use any more. Those are followed
        no more that cannot be, and of too many those that can go on from their states.
        """
        for source, followed in list(self._followed.items()):
            followed.committed = followed.run
            self._failed.discard(source)
            if source in self._unsettled:
                states.settle(source, followed.kept)
            if followed.over:
                self._given_up.add(source)
                self._drop(followed)
        self._unsettled.clear()
        kept = sorted((one for one in self._followed.values() if one.is_kept), key=lambda one: one.used)
        for followed in kept[: max(len(self._followed) - MAX_FOLLOWERS, 0)]:
            self._drop(followed, True)

    def begun(
        self, sets: Iterable[CaptureSet], changed: frozenset[str], found: Iterable[CaptureSet], states: States
    ) -> tuple[list[Followed], list[CaptureSet]]:
        """Of sets that are to be analysed as a whole those that are followed from now on, and the others.
        changed: names of those that the lake has already. found: all sets, by their sources. states: where
        those are kept that make room.
        """
        files = {one.name: one.files for one in found}
        news: list[Followed] = []
        rest: list[CaptureSet] = []
        for one in sets:
            source = self._source_of(one.files[0].capture)
            parts = FollowedFiles.of(one)
            # The files of a set that was set apart are on their way to be overwritten, too.
            apart = one.name != source and source not in self._failed
            wanted = one.name in changed or apart
            at_once = not wanted and one.size <= _AT_ONCE and self._at_once(one)
            ready = (wanted or at_once) and source in files
            ready = ready and source not in {*self._followed, *self._given_up}
            put_off = source in self._put_off and not apart
            self._put_off.discard(source)
            self._failed.discard(source)
            if put_off or parts is None or not ready or not self._room(states, at_once):
                rest.append(one)
                continue
            own = set(one.files)
            others = frozenset(key_of(file) for file in files[source] if file not in own)
            followed = Followed(one, parts, source, others)
            self._start(followed)
            followed.used = self._batches
            self._followed[source] = followed
            news.append(followed)
        return news, rest

    def expect(self) -> None:
        """A set will probably be followed: its process is started now, so that the batch does not wait for
        that.
        """
        if self._allowed and not self.ready:
            self._end_spare()
            with contextlib.suppress(OSError):  # so it is started when it is needed
                self._spare = start_process()

    def _end_spare(self) -> None:
        if self._spare is not None:
            end_process(self._spare)
            self._spare = None

    def _start(self, followed: Followed) -> None:
        """Start the process of a set."""
        if not self.ready:
            self._end_spare()  # it was killed
        spare, self._spare = self._spare, None
        followed.start(spare)

    def _room(self, states: States, cheaply: bool = False) -> bool:
        """Whether one more can be followed. Those make room that had no news for longest, unless they could
        neither go on from a state nor be read again. cheaply: only those that go on from a state that is
        written already.
        """
        if not self._allowed:
            return False
        idle = [one for one in self._followed.values() if one.used != self._batches]
        for followed in sorted(idle, key=lambda one: one.used):
            if len(self._followed) < MAX_FOLLOWERS:
                break
            if not cheaply and not followed.is_kept and not _keep(followed, states):
                states.settle(followed.source, followed.kept)
            again = followed.is_kept and states.usable
            if again or not (cheaply or followed.incomplete):
                self._drop(followed, again)
        return len(self._followed) < MAX_FOLLOWERS

    def _drop(self, followed: Followed, again: bool = False) -> None:
        """Follow a set no more, until it has changed once and changes again. again: it may go on from a state
        at once.
        """
        followed.close()
        del self._followed[followed.source]
        if not again:
            self._put_off.add(followed.source)

    def kill(self) -> None:
        """End all processes, from another thread."""
        for followed in list(self._followed.values()):
            followed.kill()

    def close(self) -> None:
        """Follow nothing any more."""
        for followed in list(self._followed.values()):
            self._drop(followed)
        self._end_spare()

    def fail(self) -> None:
        """A batch was not committed: the processes know more than the lake has. Those that had others before
        may go on from their states, as the next batch may do better. So may once those that read all files
        again, because these may be gone by then, or whose files are gone.
        """
        for source, followed in list(self._followed.items()):
            once = (followed.anew or followed.incomplete) and source not in self._failed
            again = once or bool(followed.committed)
            if not followed.committed:
                self._failed.add(source)
            self._drop(followed, again)
        self._unsettled.clear()


def _keep(followed: Followed, states: States) -> str:
    """Write the state of a set as of its last run; gives why there is none, "" if there is one."""
    answer = followed.keep()
    if not isinstance(answer, bytes):
        return answer
    others = sorted(followed.others)
    states.keep(followed.source, followed.one, others, followed.run, followed.open, answer)
    followed.kept = followed.run
    return ""


class FollowedBatch(NamedTuple):
    """What sets that are followed add to a run. earlier: the run counts what they had before, too. keep:
    writes their states before the commit.
    """

    sets: tuple[Followed, ...]
    earlier: bool = False
    keep: Callable[[], None] = lambda: None

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
    set_by: of `Followers`. at_once: also sets that are new, if they are not too large.
    """

    def __init__(self, set_by: str, allowed: bool, at_once: bool) -> None:
        self.batch = NOTHING_FOLLOWED
        self._followers = Followers(set_by, allowed, lambda _: at_once)
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
        self._states = States(lake, self._followers.set_by, tables, terms, tags, say, fresh)
        news, rest = self._followers.going_on(sets, frozenset(), self._states)
        self.batch = FollowedBatch(tuple(news), True, self._keep)
        return rest

    def begin(self, added: Addition, found: Iterable[CaptureSet]) -> list[CaptureSet]:
        """Of the sets that are to be analysed as a whole, those that are not followed. found: all sets."""
        if self._states is None:
            return added.sets
        begun, rest = self._followers.begun(added.sets, added.replaced, found, self._states)
        self.batch = self.batch._replace(sets=(*self.batch.sets, *begun))
        return rest

    def _keep(self) -> None:
        """Keep their states: their rows will be committed."""
        if self._states is not None:
            self._followers.keep(self._states, True)

    def settle(self) -> None:
        """Their rows are committed."""
        if self._states is not None:
            self._followers.settle(self._states)

    def close(self) -> None:
        """End their processes."""
        self._followers.close()
