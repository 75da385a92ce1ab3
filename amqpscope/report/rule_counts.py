"""Findings counted by rule and peer: the tally of `check` and of `sniff`.

severity       rule                           by      times  packet  conn  who
error          amqp091/F-CONTENT-HEADER-NEXT  client      2    3019    62  till (Pika Python)
"""

from amqpscope.model.finding import Finding
from amqpscope.report.finding_counts import STYLES, FindingCounts, kind, rank, urgency
from amqpscope.report.line import Line
from amqpscope.report.printable import printable
from amqpscope.report.suppressed import Suppressed
from amqpscope.report.table import TableColumn, table
from amqpscope.rules.profiles import USUAL_NOTES, weight

__all__ = ["RuleCounts"]

_COLUMNS = (
    TableColumn("severity"),
    TableColumn("rule"),
    TableColumn("by"),
    TableColumn("times", right=True),
    TableColumn("packet", right=True),
    TableColumn("conn", right=True),
    TableColumn("who", least=12, optional=True),
)

_USUAL = "what nearly every peer does"


class _Count:
    """Findings of one kind of one rule by one peer; its first finding stands for them."""

    def __init__(self, first: Finding, rule: str, peer: str) -> None:
        self.rule = rule
        self.peer = peer
        self.kind = kind(first)
        self.weight = weight(first)
        self.rank = rank(first)
        self.urgency = urgency(first)
        self.packet = int(first.packet)
        self.connection = first.connection
        self.number = 0


class RuleCounts:
    """Takes findings that are complete. There are no more lines than rules can be broken in ways.

    folds: notes that nearly every connection of some products gives (`USUAL_NOTES`) are one line together.
    """

    def __init__(self, folds: bool = True) -> None:
        self.tally = FindingCounts()
        self.set_aside = Suppressed()
        self._folds = folds
        self._counts: dict[tuple[str, str, str], _Count] = {}

    def add(self, finding: Finding) -> None:
        """One more finding."""
        if finding.assessment.suppressed_by:
            self.set_aside.add(finding)
            return
        self.tally.add(finding)
        rule, peer = finding.rule, finding.peer
        if self._folds and rule in USUAL_NOTES and weight(finding) == "note":
            rule, peer = _USUAL, ""
        key = (rule, peer, kind(finding))
        known = self._counts.get(key)
        if known is None:
            known = self._counts[key] = _Count(finding, rule, peer)
        known.number += 1
        known.urgency = min(known.urgency, urgency(finding))

    @property
    def first_packet(self) -> int:
        """The packet of the most urgent finding, 0 if there are only notes."""
        worst = [one.urgency for one in self._counts.values() if one.weight != "note"]
        return min(worst, default=(0, False, 0))[2]

    def lines(self, width: int | None) -> list[Line]:
        """A table, the worst first, and then what does not count.

        width: columns of the output, None for any; where the table is wider, a sentence stands for each row.
        """
        ordered = sorted(self._counts.values(), key=lambda one: (one.rank, one.packet, one.rule))
        rows = [_row(one) for one in ordered]
        counted = (table(_COLUMNS, rows, width) if rows else []) or [_sentence(one) for one in ordered]
        return counted + [[("dim", printable(line))] for line in self.set_aside.lines()]


def _row(one: _Count) -> list[tuple[str, str]]:
    from amqpscope.report.who import who  # brings what hides secrets

    name = who(one.connection, one.peer) if one.peer else ""
    return [
        (STYLES[one.weight], one.kind),
        (STYLES[one.weight], one.rule),
        (one.peer, one.peer),
        ("", str(one.number)),
        ("", str(one.packet)),
        ("", str(one.connection.stream)),
        ("", name),
    ]


def _sentence(one: _Count) -> Line:
    line: Line = [(STYLES[one.weight], f"{one.kind} {one.rule}")]
    if one.peer:
        line += [("", " by the "), (one.peer, one.peer)]
    return [
        *line,
        ("", f": {one.number}, first in packet {one.packet} of connection {one.connection.stream}"),
    ]
