"""What `pipeline run --append` has to do: which capture sets have new files, and whose rows these replace.

A connection may run through all files of a capture set. So a set that got new files is analysed anew as a
whole, and its rows take the place of those that it had: the tables are those of one run over all files.

Earlier files of the set are read from where they were, also if they are not among the sources of this run.
Where one is no longer there (`tcpdump -W` overwrites the oldest), its rows stay, and the new files are a
capture set of their own, NAME#2: a connection that continues in them is joined in the middle.
"""

import hashlib
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow.compute as pc

from amqpscope.pipeline.capture_set import CaptureSet, capture_set
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.inputs import (
    READ_ERRORS,
    CaptureFile,
    find_inputs,
    first_octets,
    is_remote,
    open_file,
)
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.parts import LakeFile, PartWriter

__all__ = ["Addition", "RecordedFile", "addition", "addition_to", "kept_files"]


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


class Addition(NamedTuple):
    """What is to be done. sets: analysed now. replaced: sets in the lake whose rows go.

    known: files that are in the lake already. grown: files that may be longer than they were then, but cannot
    be read again, since others of their set are gone. apart: names of sets whose earlier files are gone.
    base: the run that all this is about; "" if there is no lake yet. tables: those that the lake has.
    """

    sets: list[CaptureSet]
    replaced: frozenset[str]
    known: list[CaptureFile]
    grown: list[CaptureFile]
    apart: list[str]
    base: str = ""
    tables: tuple[str, ...] = ()


def addition_to(lake: Lake, sets: Iterable[CaptureSet], options: dict[str, Any]) -> Addition:
    """What these inputs add to a lake.

    options: of the run, by their names on the command line, that are to be as they were: else PipelineError.
    """
    if lake.empty():
        return Addition(list(sets), frozenset(), [], [], [])
    base = lake.written()
    for name, value in options.items():
        was = base.options.get(name, value)
        if was != value:
            raise PipelineError(
                f"{lake.name}: --append needs the options of the earlier runs: --{name} was "
                f"{was or 'not given'}, and is {value or 'not given'}"
            )
    rows = lake.dataset("files", lake.parts("files")).to_table().to_pylist()
    found = addition(sets, (RecordedFile.load(row) for row in rows))
    return found._replace(base=base.name, tables=tuple(base.versions))


def addition(sets: Iterable[CaptureSet], recorded: Iterable[RecordedFile]) -> Addition:
    """What these inputs add to a lake that has these files."""
    known_files = _KnownFiles(recorded)
    done = Addition([], frozenset(), [], [], [])
    for one in sets:
        done = _with_set(done, one, known_files)
    return done


def _with_set(done: Addition, one: CaptureSet, known_files: "_KnownFiles") -> Addition:
    """What is to be done with another capture set, too."""
    found = {file: known_files.find(file, one.name) for file in one.files}
    if all(known is not None and _same(file, known) for file, known in found.items()):
        return done._replace(known=done.known + list(one.files))
    there = {known.key for known in found.values() if known is not None}
    related = {known.capture_set for known in found.values() if known} | known_files.sets_of(one.name)
    for row in [
        row for name in sorted(related) for row in known_files.readable(name) if row.key not in there
    ]:
        for file in _where_it_was(row):
            if known_files.find(file, row.capture_set) == row:
                found[file] = row
                there.add(row.key)
    if len(found) > len(one.files):
        one = capture_set(one.name, found)
    changed = {file for file, known in found.items() if known is not None and not _same(file, known)}
    whole = {name for name in related if all(row.key in there for row in known_files.readable(name))}
    stay = related - whole - done.replaced
    fresh, known, grown = [], [], []
    for file, of in found.items():
        if of is None or of.capture_set not in stay:
            fresh.append(file)
        elif file in changed:
            grown.append(file)
        else:
            known.append(file)
    news = any(found[file] is None or file in changed for file in fresh)
    if not news or not any(file.trouble is None for file in fresh):  # nothing that could be analysed
        return done._replace(known=done.known + known + fresh, grown=done.grown + grown)
    done = done._replace(known=done.known + known, grown=done.grown + grown)
    name = one.name if one.name not in stay else _free(one.name, stay)
    return done._replace(
        sets=[*done.sets, one if not stay else capture_set(name, fresh)],
        replaced=done.replaced | whole,
        apart=[*done.apart, one.name] if stay else done.apart,
    )


def _where_it_was(row: RecordedFile) -> list[CaptureFile]:
    """The file that has the name of one in the lake. In an object store it is not looked for: the name is
    without the options and credentials that this takes.
    """
    return [] if is_remote(row.capture) else find_inputs([row.capture])


def _free(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}#{number}" in taken:
        number += 1
    return f"{name}#{number}"


class _KnownFiles:
    """The files that a lake has."""

    def __init__(self, recorded: Iterable[RecordedFile]) -> None:
        self._sets: dict[str, list[RecordedFile]] = {}
        self._by_identity: dict[str, list[RecordedFile]] = {}
        self._by_time: dict[str, list[RecordedFile]] = {}
        self._by_name: dict[str, RecordedFile] = {}
        for row in recorded:
            self._sets.setdefault(row.capture_set, []).append(row)
            if row.identity:
                self._by_identity.setdefault(row.identity, []).append(row)
                self._by_time.setdefault(row.identity.partition("-")[0], []).append(row)
            else:
                self._by_name[row.capture] = row

    def sets_of(self, name: str) -> set[str]:
        """The sets in the lake that come of a capture set of this name."""
        return {known for known in self._sets if known == name or known.startswith(f"{name}#")}

    def readable(self, name: str) -> list[RecordedFile]:
        """The files of a set of which packets were read."""
        return [row for row in self._sets[name] if row.packets]

    def find(self, file: CaptureFile, name: str) -> RecordedFile | None:
        """The file in the lake that this one is, or None. name: of its capture set; of several copies in the
        lake, the one of the same name or set is taken.
        """
        if not file.identity:
            return self._by_name.get(file.capture)
        copies = self._by_identity.get(file.identity)
        if copies:
            own = self.sets_of(name)
            return min(copies, key=lambda row: (row.capture != file.capture, row.capture_set not in own))
        # A file that had fewer octets than are compared has grown since.
        for row in self._by_time.get(file.identity.partition("-")[0], []):
            if _begins_as(file, row.identity):
                return row
        named = self._by_name.get(file.capture)  # of a lake without identities
        return named if named is not None and named.packets and named.size == file.size else None


def _begins_as(file: CaptureFile, identity: str) -> bool:
    """Whether a file begins with the octets that an identity is of."""
    _, octets, digest = identity.split("-")
    if int(octets) >= int(file.identity.split("-")[1]):
        return False
    try:
        _, block = first_octets(file)
    except READ_ERRORS:
        return False
    return hashlib.sha256(block[: int(octets)]).hexdigest()[:32] == digest


def _same(file: CaptureFile, known: RecordedFile) -> bool:
    """Whether a file is as long as it was. If that cannot be seen, as of a file that was compressed by zstd
    meanwhile, it counts as changed.
    """
    if file.compression == known.compression:
        return file.size == known.size
    if file.compression != "gzip" or known.compression:
        return False
    try:
        with open_file(file) as opened:
            opened.seek(-4, os.SEEK_END)
            octets = int.from_bytes(opened.read(4), "little")  # RFC 1952: of what is compressed, modulo 2^32
    except READ_ERRORS:
        return False
    return octets == known.size % 2**32


def kept_files(
    lake: Lake, replaced: frozenset[str], staging: str, stem: str
) -> tuple[dict[str, list[LakeFile]], list[LakeFile]]:
    """The files of each table of a lake that stay, and new files with the rows that stay of the others.

    replaced: capture sets whose rows go. staging, stem: of `PartWriter`.
    """
    kept: dict[str, list[LakeFile]] = {}
    made: list[LakeFile] = []
    stays = ~pc.field("capture_set").isin(sorted(replaced))
    for name in lake.written().versions:
        kept[name] = []
        for number, file in enumerate(lake.parts(name)):
            if file.first_set and not any(file.first_set <= one <= file.last_set for one in replaced):
                kept[name].append(file)
                continue
            writer = PartWriter(staging, f"{stem}-{name}-{number}")
            for batch in lake.dataset(name, [file]).to_batches(filter=stays):
                if batch.num_rows:
                    writer.write(name, batch)
            made += writer.close()
    return kept, made
