"""Which inputs are one capture set, and in which order its files are read.

The files of a set follow one another by the time of their first packet, those without by name. If they
overlap in time (several taps; or it cannot be seen that they do not, as in compressed files) their packets
are put in the order of time, as `check --merge` does; up to MAX_MERGE_OPEN at a time.
"""

import heapq
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from amqpscope.capture.reader import for_magic
from amqpscope.limits import MAX_MERGE_OPEN, MAX_TIME
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.inputs import (
    FIRST_LOOK,
    LOOKERS,
    READ_ERRORS,
    CaptureFile,
    Times,
    find_inputs,
    open_file,
)
from amqpscope.pipeline.packets import MAX_FILES

__all__ = [
    "CaptureSet",
    "capture_set",
    "capture_sets",
    "fit_to_read",
    "fit_to_replace",
    "naming",
    "not_there",
]

_LAST_LOOK = 256 * 1024
"""Octets at the end of a file of several that are looked at, to see whether they overlap in time."""


class CaptureSet(NamedTuple):
    """Files that are one capture. by_time: they are read in the order of time, as they overlap or may; else
    one after another. too_many: also although they overlap.
    """

    name: str
    files: tuple[CaptureFile, ...]
    by_time: bool = False
    too_many: bool = False

    @property
    def ordered(self) -> bool:
        """Whether the files do not overlap in time, as far as one can see."""
        return not (self.by_time or self.too_many)

    @property
    def size(self) -> int:
        """Octets to be read."""
        return sum(file.size for file in self.files if file.trouble is None)


def capture_sets(sources: Iterable[str], set_by: str = "directory") -> list[CaptureSet]:
    """All inputs of these sources, by capture set, in a fixed order.

    set_by: `directory`, `file`, or a regular expression that is searched in the path: what its first group
    matches (or all of it) names the set; files in which it is not found are each a set of their own.
    """
    named = naming(set_by)
    sets: dict[str, list[CaptureFile]] = {}
    for file in find_inputs(sources):
        sets.setdefault(named(file.capture), []).append(file)
    for name, files in sets.items():
        if len(files) > MAX_FILES:
            raise PipelineError(f"{name}: {len(files)} files in one capture set, at most {MAX_FILES} can be")
    made = []
    for name, files in sorted(sets.items()):
        made.append(capture_set(name, files))
    return made


def capture_set(name: str, files: Iterable[CaptureFile]) -> CaptureSet:
    """Files as one capture set, in their order in time."""
    in_order = sorted(files, key=lambda file: (file.first_time, file.capture))
    overlap, too_many = _overlap(in_order)
    return CaptureSet(name, tuple(in_order), overlap and not too_many, too_many)


def not_there(file: CaptureFile) -> bool:
    """Whether there is no such file, by the first look."""
    return file.trouble is not None and file.trouble.reason == "missing"


def fit_to_read(sets: Iterable[CaptureSet], allow_missing: bool = False, consequence: str = "") -> None:
    """Raise PipelineError if nothing can be read, or, unless that is allowed, if anything that was asked for
    is missing: mostly that is a name mistyped, or a file system that is not there.

    consequence: ends the sentence.
    """
    files = [file for one in sets for file in one.files]
    missing = [file for file in files if file.named and not_there(file)]
    bad = [file for file in files if file.trouble is not None]
    if len(bad) < len(files):
        if allow_missing:
            return
        bad = missing
    if not bad:
        return
    file = next((file for file in bad if file.named), bad[0])
    assert file.trouble is not None
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    raise PipelineError(f"{file.capture}: {file.trouble.detail}{more}{consequence}")


def fit_to_replace(sets: list[CaptureSet], allow_missing: bool) -> None:
    """`fit_to_read`, for what is to take the place of what a run before has left."""
    readable = any(file.trouble is None for one in sets for file in one.files)
    hint = "; --allow-missing continues without the missing files" if readable else ""
    fit_to_read(sets, allow_missing, f": nothing is replaced{hint}")


def naming(set_by: str) -> Callable[[str], str]:
    """What names the capture set of a file, by the name of the file. set_by: see `capture_sets`."""
    if set_by == "directory":
        return lambda capture: os.path.dirname(capture) or "."
    if set_by == "file":
        return lambda capture: capture
    try:
        pattern = re.compile(set_by)
    except re.error as error:
        raise PipelineError(f"--set-by {set_by}: not a regular expression ({error})") from error

    def by_pattern(capture: str) -> str:
        match = pattern.search(capture)
        if match is None:
            return capture
        return match.group(1 if pattern.groups else 0) or capture

    return by_pattern


def _last_time(file: CaptureFile) -> int:
    """The time of the last TCP segment of a capture, or MAX_TIME if it is not to be seen in its last octets.

    The reader is given the file's beginning and its end, and finds the records in that as behind damage.
    """
    if file.compression:
        return MAX_TIME
    times = Times()
    try:
        with open_file(file) as opened:
            begin = min(FIRST_LOOK, file.size)
            block = bytes(opened.read_at(begin, 0))
            reader = for_magic(block, times)
            if reader is None:
                return MAX_TIME
            reader.feed(block)
            if file.size > begin:
                if file.size > begin + _LAST_LOOK:
                    times.latest = 0
                octets = min(_LAST_LOOK, file.size - begin)
                reader.feed(bytes(opened.read_at(octets, file.size - octets)))
            reader.finish()
    except READ_ERRORS:
        return MAX_TIME
    return times.latest or MAX_TIME


def _overlap(files: list[CaptureFile]) -> tuple[bool, bool]:
    """Whether files, in order, may overlap in time; and whether more do at a time than can be open."""
    readable = [file for file in files if file.trouble is None and file.first_time]
    if len(readable) < 2:
        return False, False
    with ThreadPoolExecutor(LOOKERS) as lookers:
        ends = list(lookers.map(_last_time, readable))
    overlaps = False
    under_way: list[int] = []
    for file, end in zip(readable, ends, strict=True):
        while under_way and under_way[0] <= file.first_time:
            heapq.heappop(under_way)
        overlaps = overlaps or bool(under_way)
        heapq.heappush(under_way, end)
        if len(under_way) > MAX_MERGE_OPEN:
            return True, True
    return overlaps, False
