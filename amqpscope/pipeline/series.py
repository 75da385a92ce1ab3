"""Files that are missing in a series: a ring buffer or a rotation numbers its files, and one between two
others is not among those of the capture set.

    trace_00001_20261129141500.pcapng      dumpcap, tshark, editcap
    trace_20261129141500_00001.pcapng      dumpcap -b nametimenum:2
    trace.pcap, trace.pcap1, trace.pcap2   tcpdump -C
    trace-001.pcap, trace7.pcap.gz         whoever else counts

Nobody is to take a set for complete that is not, so each such file has a row in the table `files`. But a name
that only looks like a number of a series must not make one: of dates, ports and hosts, some are always
missing. So files are a series only if the numbers run on by one but for very few, the times of their first
packets grow with the numbers, and the numbers are not those of a clock: a rotation by time makes no file for
a time without packets. The first files may be missing, as a ring buffer deletes these.
"""

import datetime
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

from amqpscope.pipeline.files import FileResult, file_row
from amqpscope.pipeline.inputs import CaptureFile, Trouble
from amqpscope.pipeline.rows import Rows

__all__ = ["add_missing", "missing_files"]

_FEWEST: Final = 4
_FEWEST_PLAIN: Final = 8
"""Files with packets that make a series; and how many if their numbers stand before the suffix, without a
time and without leading zeros: so do the numbers of ports and hosts.
"""

_SHARE: Final = 10
"""One file of so many may be missing; one always may."""

_DETAIL: Final = "no file with this number is among the inputs, but the numbers before and after it are"

_COMPRESSED: Final = re.compile(r"\.(?:gz|zst|zstd)$")

_STAMPED: Final = re.compile(r"(.*_)(\d{5,9})_(\d{14})(\.[^.]*|)")
_STAMPED_BEFORE: Final = re.compile(r"(.*_)(\d{14})_(\d{5,9})(\.[^.]*|)")
"""As dumpcap names files. Whatever else ends with a number has a shorter one: longer ones are dates."""

_NUMBERED: Final = (re.compile(r"(.*\D|)(\d{1,5})(\.[A-Za-z]+)"), re.compile(r"(.*\D)(\d{1,5})()"))

_AFTER_DIGITS: Final = re.compile(r"\d[-_. :T]*$")
"""Ends what is before the last part of a date, a time or an address."""

_UNITS: Final = (60, 3600, 86_400, 7 * 86_400)
"""Seconds in what a clock counts."""

_ZONE: Final = 900
"""Time zones differ by multiples of so many seconds."""


class _Series(NamedTuple):
    """What the names of a series have in common, before and behind the number. stamped: they have times."""

    before: str
    behind: str
    stamped: bool


class _Member(NamedTuple):
    """A file of what may be a series. text: its number as it is written. stamp: the time in its name."""

    number: int
    text: str
    stamp: str
    ending: str
    file: CaptureFile


def missing_files(files: Iterable[CaptureFile], ordered: bool) -> list[CaptureFile]:
    """The files that are missing between those of a capture set, in the order of their names.

    ordered: the files of the set do not overlap in time. If they do, or may, only names as dumpcap gives them
    are taken for those of a series.
    """
    series: dict[_Series, list[_Member]] = {}
    unnumbered: dict[str, CaptureFile] = {}
    for file in files:
        ending = _COMPRESSED.search(file.capture)
        suffix = ending.group() if ending else ""
        name = file.capture.removesuffix(suffix)
        unnumbered[name] = file
        found = _numbered(name)
        if found is not None:
            of, text, stamp = found
            series.setdefault(of, []).append(_Member(int(text), text, stamp, suffix, file))
    missing: list[CaptureFile] = []
    for of, members in series.items():
        if not of.stamped and not ordered:
            continue
        first = unnumbered.get(of.before)
        if not of.behind and first is not None and not any(one.text.startswith("0") for one in members):
            members.append(_Member(0, "0", "", "", first))  # tcpdump numbers all but the first
        for run in _runs(members) if of.stamped else [members]:
            for text, member in _between(run, of):
                name = f"{of.before}{text}{of.behind}{member.ending}"
                missing.append(CaptureFile(name, name, 0, trouble=Trouble("missing", _DETAIL)))
    return sorted(missing)


def _numbered(path: str) -> tuple[_Series, str, str] | None:
    """The series that a name may belong to, its number there, and its time; None if it has no number."""
    folder, slash, name = path.rpartition("/")
    place = folder + slash
    match = _STAMPED.fullmatch(name)
    if match is not None:
        stem, number, stamp, rest = match.groups()
        return _Series(place + stem, f"_*{rest}", True), number, stamp
    match = _STAMPED_BEFORE.fullmatch(name)
    if match is not None:
        stem, stamp, number, rest = match.groups()
        return _Series(f"{place}{stem}*_", rest, True), number, stamp
    for pattern in _NUMBERED:
        match = pattern.fullmatch(name)
        if match is not None and not _AFTER_DIGITS.search(match[1]):
            return _Series(place + match[1], match[3], False), match[2], ""
    return None


def _runs(members: list[_Member]) -> list[list[_Member]]:
    """Files with times in their names, as each start of a program has made them: it counts from the first
    number again.
    """
    runs: list[list[_Member]] = []
    for one in sorted(members, key=lambda one: (one.stamp, one.number)):
        if not runs or (one.number <= 1 and one.number <= runs[-1][-1].number):
            runs.append([])
        runs[-1].append(one)
    return runs


def _between(members: list[_Member], of: _Series) -> list[tuple[str, _Member]]:
    """The numbers that are missing, as they would be written, each with the file before it; none if this is
    no series.
    """
    there: dict[int, _Member] = {}
    for one in members:
        if there.setdefault(one.number, one).stamp != one.stamp:
            return []
        # If there is another one, it is the same file, compressed.
    numbers = sorted(there)
    width = max((len(one.text) for one in members if one.text.startswith("0")), default=1)
    readable = [there[number] for number in numbers if there[number].file.first_time]
    times = [one.file.first_time for one in readable]
    allowed = max(len(readable) // _SHARE, 1)
    lacking = numbers[-1] - numbers[0] + 1 - len(numbers)
    plain = of.behind and not of.stamped and width == 1
    if (
        len(readable) < (_FEWEST_PLAIN if plain else _FEWEST)
        or not 0 < lacking <= allowed
        or any(one.text != str(one.number).zfill(width) for one in members)
        or any(one >= other for one, other in pairwise(times))
        or (not of.stamped and _of_a_clock(readable))
    ):
        return []
    found: list[tuple[str, _Member]] = []
    before = there[numbers[0]]
    for number in range(numbers[0], numbers[-1]):
        before = there.get(number, before)
        if number not in there:
            found.append((str(number).zfill(width), before))
    return found


def _of_a_clock(members: list[_Member]) -> bool:
    """Whether the numbers go with the minutes, hours, days, weeks or months in which the files begin, in some
    time zone.
    """
    seconds = [one.file.first_time // 10**9 for one in members]
    if _as_numbered(members, map(_month, seconds)):
        return True
    return any(
        _as_numbered(members, ((second + zone) // unit for second in seconds))
        for unit in _UNITS
        for zone in range(0, unit, _ZONE)
    )


def _month(second: int) -> int:
    """A number for the month of a time, in UTC."""
    date = datetime.datetime.fromtimestamp(second, datetime.UTC)
    return date.year * 12 + date.month


def _as_numbered(members: list[_Member], counted: Iterable[int]) -> bool:
    """Whether these numbers differ as those of the files do."""
    apart = (number - one.number for number, one in zip(counted, members, strict=True))
    first = next(apart)
    return all(one == first for one in apart)


def add_missing(name: str, files: Iterable[CaptureFile], ordered: bool, rows: Rows) -> None:
    """The rows of the files that are missing in a capture set of this name. They have no position in it."""
    for file in missing_files(files, ordered):
        rows.add("files", file_row(name, file, None, [FileResult(file.trouble, 0, 0, [])]))
