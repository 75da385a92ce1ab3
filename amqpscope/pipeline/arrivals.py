"""Files that are new wait before a watch reads them, so that a file that comes late finds its place.

A file comes late if its packets are before those of a file that is there already, as when captures are copied
from several places. If the later file was read by then, its set is read anew as a whole. A file that waits is
not in its set yet. With it are read all files of the set that begin before it, however short they waited: it
is for these that it has waited. What the lake has already does not wait, whatever it is called now, and
however it grows.

A file waits from when it was first seen. One that is there at the first look may have been there for long: it
waits from its last change.
"""

import math
from collections.abc import Callable, Iterable, Mapping

from amqpscope.pipeline.appending import begins_as
from amqpscope.pipeline.capture_set import CaptureSet, capture_set
from amqpscope.pipeline.inputs import CaptureFile

__all__ = ["Arrivals"]


class Arrivals:
    """When files have come. lateness: seconds that a new one waits. clock: seconds that only go on. today:
    seconds since 1970, as in the times of files. once: all looks are first ones.

    due: when the next one of those that wait has waited long enough. waiting: how many wait.
    """

    def __init__(
        self, lateness: float, clock: Callable[[], float], today: Callable[[], float], once: bool
    ) -> None:
        self.due = math.inf
        self.waiting = 0
        self._lateness = lateness
        self._clock = clock
        self._today = today
        self._once = once
        self._first = True
        self._came: dict[str, tuple[str, float]] = {}  # by path: identity, and since when it waits

    def overdue(self) -> bool:
        """Whether one has waited long enough since the last time."""
        return self._clock() >= self.due

    def ready(
        self, sets: Iterable[CaptureSet], known: Iterable[str], changed: Mapping[str, float]
    ) -> list[CaptureSet]:
        """The sets without the files that wait. known: identities of the files of the lake. changed: when
        files were changed last, since 1970.
        """
        self.due = math.inf
        self.waiting = 0
        identities = _Identities(known)
        before, self._came = self._came, {}
        if self._once:
            before = {}
        now, today = self._clock(), self._today()
        ages = {path: max(today - at, 0.0) for path, at in changed.items()} if self._first else {}
        self._first = self._once
        found = []
        for one in sets:
            files = self._ready(one, identities, before, now, ages)
            if len(files) == len(one.files):
                found.append(one)
            elif files:
                found.append(capture_set(one.name, files))
        return found

    def _ready(
        self,
        one: CaptureSet,
        identities: "_Identities",
        before: Mapping[str, tuple[str, float]],
        now: float,
        ages: Mapping[str, float],
    ) -> list[CaptureFile]:
        """The files of a set that do not wait. ages: for how long files have been as they are."""
        due: dict[str, float] = {}
        for file in one.files:
            if identities.have(file):
                continue
            since = now - ages.get(file.path, 0.0)
            came = self._came[file.path] = _came(file, before.get(file.path), since)
            if came[1] + self._lateness > now:
                due[file.path] = came[1] + self._lateness
        latest = max((file.first_time for file in one.files if file.path not in due), default=0)
        ready = []
        for file in one.files:
            if file.path not in due or 0 < file.first_time < latest:
                ready.append(file)
            else:
                self.waiting += 1
                self.due = min(self.due, due[file.path])
        return ready


def _came(file: CaptureFile, before: tuple[str, float] | None, now: float) -> tuple[str, float]:
    """Since when this file waits: `now`, unless it did before. before: what was there under its name, if
    anything was.
    """
    if before is not None:
        identity, since = before
        if identity in ("", file.identity) or (file.identity and begins_as(file, identity)):
            return file.identity, since
    return file.identity, now


class _Identities:
    """Those of the files of a lake."""

    def __init__(self, known: Iterable[str]) -> None:
        self._all = set(known)
        self._by_time: dict[str, list[str]] = {}
        for identity in self._all:
            self._by_time.setdefault(identity.partition("-")[0], []).append(identity)

    def have(self, file: CaptureFile) -> bool:
        """Whether this file is one of them, perhaps longer now."""
        if file.identity in self._all:
            return True
        of_time = self._by_time.get(file.identity.partition("-")[0], [])
        return any(begins_as(file, identity) for identity in of_time)
