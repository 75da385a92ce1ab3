"""Findings counted by rule and peer: what is left to say when each was shown as it was made.

error amqp10/L-CREDIT by the client: 3, first in packet 17 of connection 0
"""

from amqpscope.model.finding import Finding
from amqpscope.report.line import Line
from amqpscope.report.printable import printable
from amqpscope.report.suppressed import Suppressed
from amqpscope.report.verdict import STYLES, FindingCounts, kind
from amqpscope.rules.profiles import weight

__all__ = ["RuleCounts"]

_SEVERITIES = ("error", "warning", "note")


class _Count:
    """Findings of one kind of one rule by one peer."""

    def __init__(self, first: Finding) -> None:
        self.kind = kind(first)
        self.weight = weight(first)
        self.certain = first.certain
        self.packet = first.packet
        self.connection = first.connection.stream
        self.number = 0


class RuleCounts:
    """Takes findings that are complete. There are no more lines than rules can be broken in ways."""

    def __init__(self) -> None:
        self.tally = FindingCounts()
        self.set_aside = Suppressed()
        self._counts: dict[tuple[str, str, str], _Count] = {}

    def add(self, finding: Finding) -> None:
        """One more finding."""
        if finding.assessment.suppressed_by:
            self.set_aside.add(finding)
            return
        self.tally.add(finding)
        key = (finding.rule, finding.peer, kind(finding))
        known = self._counts.get(key)
        if known is None:
            known = self._counts[key] = _Count(finding)
        known.number += 1

    def lines(self) -> list[Line]:
        """A line for each, the worst first, and then what does not count."""
        ordered = sorted(
            self._counts.items(),
            key=lambda item: (_SEVERITIES.index(item[1].weight), not item[1].certain, item[0]),
        )
        counted: list[Line] = [
            [
                ("", "  "),
                (STYLES[one.weight], f"{one.kind} {rule}"),
                ("", " by the "),
                (peer, peer),
                ("", f": {one.number}, first in packet {one.packet} of connection {one.connection}"),
            ]
            for (rule, peer, _), one in ordered
        ]
        return counted + [[("dim", f"  {printable(line)}")] for line in self.set_aside.lines()]
