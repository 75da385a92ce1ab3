"""What `pipeline run --append` has to do: which capture sets have new files, and whose rows these replace.

A connection may run through all files of a capture set. So a set that got new files is analysed anew as a
whole, and its rows take the place of those that it had: the tables are those of one run over all files.

Earlier files of the set are read from where they were, also if they are not among the sources of this run.
Where one is no longer there (`tcpdump -W` overwrites the oldest), its rows stay, and the new files are a
capture set of their own, NAME#2: a connection that continues in them is joined in the middle. Sets that are
followed are not concerned (`following`).

A file of the lake is recognised under another name. It has moved if it is gone from its old name: a set whose
files have all moved into another one goes with them. Otherwise the file is a copy, and the set that has the
original stays. A file takes the place of a recorded one only if it is at least as long.

With `--replace date=DAY`, the lake first forgets that day: all rows of that date, and the files that begin on
it. Then the inputs are added as above, but their sets are analysed anew also if nothing in them is new.
"""

import datetime
import os
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from amqpscope.capture.sink import SegmentSink
from amqpscope.model.ring_names import AGAIN
from amqpscope.pipeline.capture_set import CaptureSet, capture_set, naming
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.files import RangeReader, whole
from amqpscope.pipeline.inputs import (
    READ_ERRORS,
    CaptureFile,
    begins_with,
    escaped,
    find_inputs,
    has_identity,
    is_remote,
    open_file,
    size_now,
)
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.parts import LakeFile, PartWriter
from amqpscope.pipeline.schemas import LAKE_TABLES
from amqpscope.policy.policy import Policy

__all__ = [
    "Addition",
    "RecordedFile",
    "addition",
    "addition_to",
    "begins_as",
    "day_of",
    "kept_files",
    "shaping_options",
    "tables_to_add",
    "unchanged",
]


class RecordedFile(NamedTuple):
    """A row of the table `files`."""

    capture_set: str
    capture: str
    size: int
    compression: str
    identity: str
    packets: int

    @property
    def key(self) -> str:
        """What is the same of two files with the same packets."""
        return self.identity or f"{self.capture} {self.size}"

    @property
    def day(self) -> datetime.date | None:
        """The day of its first packet, in UTC; None if it has none."""
        if not self.identity:
            return None
        seconds = int(self.identity.partition("-")[0]) // 10**9
        return _EPOCH + datetime.timedelta(days=seconds // 86_400)

    @classmethod
    def load(cls, row: dict[str, Any]) -> "RecordedFile":
        """From the row."""
        return cls(
            row["capture_set"],
            row["capture"],
            row["size"],
            row["compression"] or "",
            row["identity"] or "",
            row["packets"],
        )


_EPOCH = datetime.date(1970, 1, 1)


class Addition(NamedTuple):
    """What is to be done. sets: analysed now. replaced: sets in the lake whose rows go.

    known: files that are in the lake already. grown: files that may be longer than they were then, but cannot
    be read again, since others of their set are gone. apart: names of sets whose earlier files are gone.
    unreadable: files that are new, and are all that is new of their sets, but cannot be read.
    base: the run that all this is about; "" if there is no lake yet. tables: those that the lake has.
    every: also sets of which nothing can be read are added, as rows of `files`.
    day: its rows are replaced. forgotten: the files of the lake that begin on it, by capture set and name.
    cut: other captures, or sets, that have rows of that day, which go and do not come back. gone: paths of
    files of the lake whose rows go. changed: as of `RunNotes`.
    """

    sets: list[CaptureSet]
    replaced: frozenset[str]
    known: list[CaptureFile]
    grown: list[CaptureFile]
    apart: list[str]
    unreadable: list[CaptureFile]
    base: str = ""
    tables: tuple[str, ...] = ()
    every: bool = False
    day: datetime.date | None = None
    forgotten: frozenset[tuple[str, str]] = frozenset()
    cut: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()
    changed: int = 0


def addition_to(
    lake: Lake,
    sets: Iterable[CaptureSet],
    options: dict[str, Any],
    every: bool = False,
    day: datetime.date | None = None,
) -> Addition:
    """What these inputs add to a lake.

    options: of the run, by their names on the command line, that are to be as they were: else PipelineError.
    every, day: see `Addition`.
    """
    if lake.empty():
        return Addition(list(sets), frozenset(), [], [], [], [], every=every, day=day)
    base = lake.written()
    for name, value in options.items():
        was = base.options.get(name, value)
        if was != value:
            raise PipelineError(
                f"{lake.name}: --append needs the options of the earlier runs: --{name} was "
                f"{was or 'not given'}, and is {value or 'not given'}"
            )
    recorded = [RecordedFile.load(row) for row in lake.rows("files", lake.parts("files"))]
    forgotten = [row for row in recorded if day is not None and row.day == day]
    of_others = {row.capture_set for row in recorded if row.packets and row not in forgotten}
    # Sets that are all of that day go with all their rows, also those after midnight.
    whole_sets = frozenset(row.capture_set for row in forgotten) - of_others
    recorded = [row for row in recorded if row not in forgotten and row.capture_set not in whole_sets]
    found = addition(sets, recorded, options.get("set-by", "directory"), every, day is not None)
    found = found._replace(
        replaced=found.replaced | whole_sets,
        base=base.name,
        tables=tuple(base.versions),
        day=day,
        forgotten=frozenset((row.capture_set, row.capture) for row in forgotten),
    )
    return found._replace(cut=_cut(lake, found))


def _cut(lake: Lake, added: Addition) -> tuple[str, ...]:
    """The captures of `Addition.cut`. A set is named itself if nothing says of which capture its rows are.

    If files of a set are forgotten, rows that name no capture are taken for theirs.
    """
    if added.day is None:
        return ()
    of_forgotten = {name for name, _ in added.forgotten}
    found: dict[str, set[str]] = {}
    for table in added.tables:
        parts = [part for part in lake.parts(table) if f"/date={added.day}/" in part.path]
        if not parts:
            continue
        columns = [one for one in ("capture_set", "capture") if one in LAKE_TABLES[table].schema.names]
        with lake.directory.explained():
            rows = lake.dataset(table, parts).to_table(columns=columns).group_by(columns).aggregate([])
        for row in rows.to_pylist():
            name, capture = row["capture_set"], row.get("capture")
            if name in added.replaced or (name, capture) in added.forgotten:
                continue
            if capture is not None:
                found.setdefault(name, set()).add(capture)
            elif name not in of_forgotten:
                found.setdefault(name, set())
    return tuple(sorted({one for name, captures in found.items() for one in captures or {name}}))


def day_of(given: str) -> datetime.date:
    """The day that a text date=YYYY-MM-DD names. PipelineError if it is none."""
    name, _, value = given.partition("=")
    try:
        day = datetime.date.fromisoformat(value)
        if name != "date" or day.isoformat() != value:
            raise ValueError
        return day
    except ValueError:
        raise PipelineError(f"--replace {given}: must be date=YYYY-MM-DD, a day in UTC") from None


def shaping_options(set_by: str, with_json: bool, dialect: str, policy: Policy) -> dict[str, Any]:
    """The options that runs which add to a lake have in common, by their names on the command line."""
    return {
        "set-by": set_by,
        "json": with_json,
        "dialect": dialect or None,
        "spec": policy.spec,
        "profile": policy.profile,
    }


def tables_to_add(added: Addition, chosen: tuple[str, ...], only: bool) -> tuple[str, ...]:
    """The tables that a run writes which adds to a lake: those of the lake. chosen: for a new lake. only: the
    user has asked for these.
    """
    if not added.base or (only and {"files", *chosen} == set(added.tables)):
        return chosen
    if only:
        raise PipelineError(
            f"--tables: what adds to a lake writes the tables of the lake: {','.join(added.tables)}"
        )
    return added.tables


def addition(
    sets: Iterable[CaptureSet],
    recorded: Iterable[RecordedFile],
    set_by: str = "directory",
    every: bool = False,
    again: bool = False,
) -> Addition:
    """What these inputs add to a lake that has these files. set_by: see `capture_sets`. every: see
    `Addition`. again: what is known is analysed, too.
    """
    sets = list(sets)
    known_files = _KnownFiles(recorded, sets, naming(set_by))
    done = Addition([], frozenset(), [], [], [], [], every=every)
    for one in sets:
        done = _with_set(done, one, known_files, again)
    return done


def _with_set(done: Addition, one: CaptureSet, known_files: "_KnownFiles", again: bool) -> Addition:
    """What is to be done with another capture set, too. again: even if nothing of it is new."""
    own = known_files.sets_of(one.name)
    found = {file: known_files.find(file, own) for file in one.files}
    known_all = all(row is not None and known_files.length(file, row) == _SAME for file, row in found.items())
    if known_all and not again:
        return done._replace(known=done.known + list(one.files))
    moved = {row for row in found.values() if row is not None and known_files.now(row) is None}
    related = own | {row.capture_set for row in moved}
    for file, row in found.items():
        if row is not None and row.capture_set not in related:
            found[file] = None  # a copy of what another set has
    keys = {row.key for row in moved}
    there = set()
    for row in [row for name in sorted(related) for row in known_files.readable(name)]:
        file_now = known_files.now(row)
        if file_now is None:
            if row.key in keys:
                there.add(row)
        elif row.capture_set in own:
            found.setdefault(file_now, row)
            there.add(row)
    if len(found) > len(one.files):
        one = capture_set(one.name, found)
    complete = {name for name in related if there.issuperset(known_files.readable(name))}
    stay = related - complete - done.replaced
    fresh: list[CaptureFile] = []
    known: list[CaptureFile] = []
    grown: list[CaptureFile] = []
    news = False
    for file, of in found.items():
        changed = of is None or known_files.length(file, of) != _SAME
        if of is None or of.capture_set not in stay:
            fresh.append(file)
            news = news or changed or again
        else:
            (grown if changed else known).append(file)
    done = done._replace(known=done.known + known, grown=done.grown + grown)
    if not news or not (done.every or any(file.trouble is None for file in fresh)):
        new = [file for file in fresh if found[file] is None]
        old = [file for file in fresh if found[file] is not None]
        return done._replace(known=done.known + old, unreadable=done.unreadable + new)
    name = known_files.free_name(one.name, complete, done)
    return done._replace(
        sets=[*done.sets, one if not stay and name == one.name else capture_set(name, fresh)],
        replaced=done.replaced | complete,
        apart=[*done.apart, one.name] if stay else done.apart,
    )


_SAME = 0
_LONGER = 1


class _KnownFiles:
    """The files that a lake has.

    sets: that are added. name_of: the set of a file, by the file's name.
    """

    def __init__(
        self, recorded: Iterable[RecordedFile], sets: list[CaptureSet], name_of: Callable[[str], str]
    ) -> None:
        self._sets: dict[str, list[RecordedFile]] = {}
        self._by_identity: dict[str, list[RecordedFile]] = {}
        self._by_time: dict[str, list[RecordedFile]] = {}
        self._by_name: dict[str, RecordedFile] = {}
        self._name_of = name_of
        self._inputs = {escaped(file.capture): file for one in sets for file in one.files}
        self._names = {escaped(one.name) for one in sets}
        self._now: dict[RecordedFile, CaptureFile | None] = {}
        self._packets: dict[str, int] = {}
        for row in recorded:
            self._sets.setdefault(row.capture_set, []).append(row)
            if row.identity:
                self._by_identity.setdefault(row.identity, []).append(row)
                self._by_time.setdefault(row.identity.partition("-")[0], []).append(row)
            else:
                self._by_name[row.capture] = row

    def sets_of(self, name: str) -> set[str]:
        """The sets in the lake that come of a capture set of this name: NAME, and NAME#2 and so on, unless
        that is the name of a directory.
        """
        name = escaped(name)
        pattern = re.compile(re.escape(name) + r"(?:#[0-9]+)?")
        return {
            known
            for known, rows in self._sets.items()
            if pattern.fullmatch(known) and all(self._comes_of(name, row) for row in rows)
        }

    def _comes_of(self, name: str, row: RecordedFile) -> bool:
        """Whether the set of this name has a file of the lake: by the file's name; or, where that does not
        name the set that it is in, by NAME, for NAME#2.
        """
        own = self._name_of(row.capture)
        if own == name:
            return True
        return own != row.capture_set and self._name_of(AGAIN.sub("", row.capture)) == name

    def free_name(self, name: str, replaced: set[str], done: Addition) -> str:
        """A name like this one for a set: no other set has it. replaced: sets that go. done: so far."""
        taken = set(self._sets) - replaced - done.replaced | {escaped(one.name) for one in done.sets}
        if escaped(name) not in taken:
            return name
        taken |= self._names
        number = 2
        while escaped(f"{name}#{number}") in taken:
            number += 1
        return f"{name}#{number}"

    def readable(self, name: str) -> list[RecordedFile]:
        """The files of a set of which packets were read."""
        return [row for row in self._sets[name] if row.packets]

    def now(self, row: RecordedFile) -> CaptureFile | None:
        """The file that has the name of one in the lake (or NAME, for NAME#2) and is still it; None if it is
        gone.

        In an object store it is looked for among the inputs only: the name is without the options and
        credentials that a look takes.
        """
        if row not in self._now:
            names = dict.fromkeys((row.capture, AGAIN.sub("", row.capture)))
            self._now[row] = next(filter(None, (self._still(row, name) for name in names)), None)
        return self._now[row]

    def _still(self, row: RecordedFile, name: str) -> CaptureFile | None:
        """The file of this name, if it is one in the lake."""
        file = self._inputs.get(name)
        if file is None and not is_remote(name):
            file = next((one for one in find_inputs([name]) if one.capture == name), None)
        if file is None or file.trouble is not None or self.length(file, row) is None:
            return None
        return file

    def find(self, file: CaptureFile, own: set[str]) -> RecordedFile | None:
        """The file in the lake that this one is, or None. own: the sets in the lake that come of its set; of
        several copies in the lake, the one of the same name or set is taken.
        """
        name = escaped(file.capture)
        named = self._by_name.get(name)
        rows = [] if named is None else [named]
        if file.identity:
            rows += self._by_time.get(file.identity.partition("-")[0], [])
        best: tuple[tuple[bool, bool, int, bool], RecordedFile] | None = None
        for row in rows:
            length = self.length(file, row)
            if length is None:
                continue
            file_now = None if row.capture == name else self.now(row)
            copied = file_now is not None and file_now.capture != file.capture
            if copied and length == _LONGER:
                continue
            rank = (row.capture != name, row.capture_set not in own, length, copied)
            if best is None or rank < best[0]:
                best = (rank, row)
        return None if best is None else best[1]

    def length(self, file: CaptureFile, row: RecordedFile) -> int | None:
        """Whether a file is one of the lake, and as long as it was, or longer. None if it is another one, or
        shorter.
        """
        if not row.identity:
            if escaped(file.capture) != row.capture:
                return None
            if file.identity:  # of a lake without identities
                return _SAME if row.packets and file.size == row.size else None
        elif file.identity != row.identity:
            # A file that had fewer octets than are compared has grown since.
            return _LONGER if file.identity and begins_as(file, row.identity) else None
        if file.compression == row.compression and (file.size == row.size or not file.compression):
            more = file.size - row.size
        elif _octets_of_gzip(file, row) == row.size % 2**32:
            more = 0
        else:
            more = self._packets_of(file) - row.packets
        return None if more < 0 else _LONGER if more else _SAME

    def _packets_of(self, file: CaptureFile) -> int:
        """How many packets a file has."""
        if file.path not in self._packets:
            reader = RangeReader(file, 0, whole(file), SegmentSink())
            for _ in reader:
                pass
            self._packets[file.path] = reader.fate([]).packets
        return self._packets[file.path]


def begins_as(file: CaptureFile, identity: str) -> bool:
    """Whether a file begins with the octets that an identity is of, and has more."""
    time, octets, _ = identity.split("-")
    its_time, its_octets, _ = file.identity.split("-")
    if its_time != time or int(octets) >= int(its_octets):
        return False
    return has_identity(file, identity)


def unchanged(sets: Iterable[CaptureSet]) -> bool:
    """Whether the files on this machine that were read are still those that were found, or longer.

    One that is gone by now does not count: if it was gone when it was to be read, the workers know.
    """
    for file in [file for one in sets for file in one.files if file.trouble is None]:
        if is_remote(file.capture):
            continue
        try:
            if size_now(file) < file.size or (file.identity and not begins_with(file, file.identity)):
                return False
        except FileNotFoundError:
            continue
        except READ_ERRORS:
            return False
    return True


def _octets_of_gzip(file: CaptureFile, row: RecordedFile) -> int | None:
    """How many octets a file had before gzip compressed it, modulo 2^32 (RFC 1952). None if it did not, or
    the recorded file was compressed already.
    """
    if file.compression != "gzip" or row.compression:
        return None
    try:
        with open_file(file) as opened:
            opened.seek(-4, os.SEEK_END)
            return int.from_bytes(opened.read(4), "little")
    except READ_ERRORS:
        return None


def kept_files(
    lake: Lake, added: Addition, staging: str, stem: str
) -> tuple[dict[str, list[LakeFile]], list[LakeFile]]:
    """The files of each table of a lake that stay, and new files with the rows that stay of the others.

    staging, stem: of `PartWriter`.
    """
    kept: dict[str, list[LakeFile]] = {}
    made: list[LakeFile] = []
    touched = added.replaced | {name for name, _ in added.forgotten}
    tags = dict.fromkeys(lake.tag_names())
    for name in lake.written().versions:
        kept[name] = []
        stays = _staying(added, name)
        for number, file in enumerate(lake.parts(name)):
            if file.path in added.gone:
                continue
            if added.day is not None and f"/date={added.day}/" in file.path:
                continue
            if file.first_set and not any(file.first_set <= one <= file.last_set for one in touched):
                kept[name].append(file)
                continue
            writer = PartWriter(staging, f"{stem}-{name}-{number}", tags)
            with lake.directory.explained():
                for batch in lake.dataset(name, [file]).to_batches(filter=stays):
                    if batch.num_rows:
                        writer.write(name, batch)
            made += writer.close()
    return kept, made


def _staying(added: Addition, name: str) -> pc.Expression:
    """Which rows of a table stay: those of no set that is replaced, and of no file that is forgotten."""
    stays = ~pc.field("capture_set").isin(pa.array(sorted(added.replaced), pa.string()))
    if "capture" in LAKE_TABLES[name].schema.names:
        for of, capture in sorted(added.forgotten):
            if of not in added.replaced:
                stays &= ~((pc.field("capture_set") == of) & (pc.field("capture") == capture))
    return stays
