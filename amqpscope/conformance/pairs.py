"""The captures of each rule: one that breaks it, one that does not, and one with something cut out.

They lie in captures/rules (its README tells more) and are installed as data; `expected.tsv` beside them
says what must be found. In a source tree they are read from where they lie there.
"""

import csv
import re
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

from amqpscope.errors import CaptureError

__all__ = ["CLEAN", "CUT", "LEGAL", "VIOLATING", "CapturePairs", "Pair", "Verdict"]

VIOLATING, CLEAN, CUT, LEGAL = "violating", "clean", "cut", "legal"

_TABLE = "expected.tsv"
_COLUMNS = ("rule", "captures", "peer", "packet", "certainty", "cut", "cut_packet")

# A folder of captures; a table that names any other is not ours.
_FOLDER = re.compile(r"[a-z0-9-]+/[A-Z0-9-]+\Z")


class Verdict(NamedTuple):
    """What a finding comes down to, to be compared. packet: of the offending frame's first octet."""

    rule: str
    peer: str
    packet: int
    certain: bool

    def __str__(self) -> str:
        certainty = "certain" if self.certain else "possible"
        return f"{self.rule} {certainty}, by the {self.peer} in packet {self.packet}"


class Pair(NamedTuple):
    """One dialogue for a rule, or for several that the same words break.

    folder: `amqp10/L-CREDIT`. rules: that it is about. violating, cut: the verdicts that must come of
    these captures, in order. promise: of the cut one, `silent`, `same` or `possible`.
    """

    folder: str
    rules: tuple[str, ...]
    violating: tuple[Verdict, ...]
    cut: tuple[Verdict, ...]
    promise: str


class CapturePairs:
    """The captures of a folder.

    folder: None for those that came with the program. Raises CaptureError if its table cannot be read.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder: Traversable = _shipped() if folder is None else folder
        self.pairs: dict[str, Pair] = self._read()
        """By folder."""

    def of(self, rule: str) -> list[Pair]:
        """The dialogues about a rule, its own first."""
        about = [pair for pair in self.pairs.values() if rule in pair.rules]
        return sorted(about, key=lambda pair: (not pair.folder.startswith(rule), pair.folder))

    def octets(self, folder: str, which: str) -> bytes:
        """One capture of a folder. Raises CaptureError if it is not there."""
        path = f"{folder}/{which}.pcap"
        try:
            return self._folder.joinpath(*path.split("/")).read_bytes()
        except OSError as error:
            raise CaptureError(f"{path}: {error.strerror or error}") from error

    def _read(self) -> dict[str, Pair]:
        name = str(self._folder.joinpath(_TABLE))
        try:
            text = self._folder.joinpath(_TABLE).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CaptureError(f"{name}: {getattr(error, 'strerror', None) or error}") from error
        reader = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
        if tuple(reader.fieldnames or ()) != _COLUMNS:
            raise CaptureError(f"{name}: its columns are not {', '.join(_COLUMNS)}")
        pairs: dict[str, Pair] = {}
        for number, row in enumerate(reader, 2):
            try:
                _take(pairs, row)
            except (ValueError, TypeError, AttributeError) as error:
                raise CaptureError(f"{name}: line {number} is not understood") from error
        return pairs


def _take(pairs: dict[str, Pair], row: dict[str, str]) -> None:
    """One row of the table. Raises what the conversions do if there is nonsense in it."""
    folder, rule, promise = row["captures"], row["rule"], row["cut"]
    if not _FOLDER.match(folder) or promise not in ("silent", "same", "possible"):
        raise ValueError
    certain = {"certain": True, "possible": False}.get(row["certainty"])
    if certain is None:
        raise ValueError
    pair = pairs.get(folder, Pair(folder, (), (), (), promise))
    rules = pair.rules if rule in pair.rules else (*pair.rules, rule)
    violating = (*pair.violating, Verdict(rule, row["peer"], int(row["packet"]), certain))
    cut = pair.cut
    if promise != "silent":
        there = Verdict(rule, row["peer"], int(row["cut_packet"]), certain and promise == "same")
        cut = (*cut, there)
    pairs[folder] = Pair(folder, rules, tuple(sorted(violating)), tuple(sorted(cut)), promise)


def _shipped() -> Traversable:
    """Where the captures lie: in the installed package, or in the source tree."""
    package = resources.files("amqpscope.rules")
    installed = package.joinpath("captures")
    if installed.is_dir():
        return installed
    return Path(str(package)).parent.parent / "captures" / "rules"
