"""How many findings there are of each kind, which of them a report for people shows, and which come first.

What the findings say is in `verdict`, which takes longer to load than a small capture takes to check.
"""

from typing import Final

from amqpscope.model.finding import Finding
from amqpscope.rules.peer_error import is_objection
from amqpscope.rules.profiles import weight

__all__ = ["ALL_IN_FULL", "STYLES", "Detail", "FindingCounts", "kind", "rank", "urgency"]

STYLES = {"error": "problem", "warning": "note", "note": "dim"}
"""How a finding is painted, by its weight."""

_KINDS = tuple(f"{how}{level}" for level in ("error", "warning", "note") for how in ("", "possible "))

_RANKS = ("error", "warning", "possible error", "possible warning", "note", "possible note")


class FindingCounts:
    """Findings counted by severity and certainty."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, finding: Finding) -> None:
        """One more."""
        what = kind(finding)
        self.counts[what] = self.counts.get(what, 0) + 1

    def merge(self, other: "FindingCounts") -> None:
        """Those of another capture, too."""
        for kind, number in other.counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + number

    def text(self) -> str:
        """`2 errors, 1 possible error`, or "" if there are none."""
        counts = self.counts
        return ", ".join(
            f"{counts[kind]} {kind}{'s' if counts[kind] > 1 else ''}" for kind in _KINDS if kind in counts
        )


class Detail:
    """What a report for people shows of each finding.

    possible, notes: possible findings and notes are shown like the others, and not only counted. full: every
    finding is shown in full, however many there are. quiet: no finding is shown, all are only counted.
    """

    def __init__(
        self,
        possible: bool = False,
        notes: bool = False,
        full: bool = False,
        quiet: bool = False,
    ) -> None:
        self.possible = possible
        self.notes = notes
        self.full = full
        self.quiet = quiet

    def opens(self, finding: Finding) -> bool:
        """Whether a finding is shown, and not only counted."""
        if self.quiet:
            return False
        return (self.possible or finding.certain) and (self.notes or weight(finding) != "note")


ALL_IN_FULL: Final = Detail(possible=True, notes=True, full=True)


def kind(finding: Finding) -> str:
    """How grave it is, in words: `error`, `possible warning`."""
    return ("" if finding.certain else "possible ") + weight(finding)


def rank(finding: Finding) -> int:
    """Where a finding stands among others, 0 for the worst: first what is certain, notes last."""
    return _RANKS.index(kind(finding))


def urgency(finding: Finding) -> tuple[int, bool, int]:
    """Where a reader begins, the smallest first: the worst, what the other peer answered with an error, the
    first in the capture."""
    return rank(finding), not is_objection(finding.reaction), int(finding.packet)
