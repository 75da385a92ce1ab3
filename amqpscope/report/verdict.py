"""Findings as text: what a rule demands, what was seen, the state before, and the few frames around it."""

from amqpscope.finding import Finding
from amqpscope.model import CLIENT
from amqpscope.report.brief import Line
from amqpscope.report.links import LinkNames
from amqpscope.report.printable import printable
from amqpscope.report.timeline import Clock, Timeline, heading
from amqpscope.rules.catalogue import rule, severity

__all__ = ["Verdicts"]

_INDENT = "    "
_LABEL = 10

_STYLES = {"error": "problem", "warning": "note", "note": "dim"}


class Verdicts:
    """Lines for the findings of one capture, connection by connection.

    most: findings of one rule by one peer of a connection that are shown; the others are counted.
    """

    def __init__(self, clock: Clock, most: int) -> None:
        self._clock = clock
        self._most = most

    def lines(self, findings: list[Finding]) -> list[tuple[Line, int]]:
        """Everything to be shown: lines, each with the columns before its continuation."""
        shown: list[tuple[Line, int]] = []
        connections = list(dict.fromkeys(finding.record.connection for finding in findings))
        for connection in sorted(connections, key=lambda one: one.stream):
            shown.append((heading(connection), 4))
            counts: dict[tuple[str, str], int] = {}
            for finding in findings:
                if finding.record.connection is not connection:
                    continue
                key = (finding.rule, finding.peer)
                counts[key] = counts.get(key, 0) + 1
                if counts[key] <= self._most:
                    shown += self._finding(finding)
            for (name, peer), count in counts.items():
                if count > self._most:
                    text = f"{name} by the {peer}: {count - self._most} more (--max-per-rule)"
                    shown.append(([("dim", _INDENT + text)], 4))
            shown.append(([("", "")], -1))
        return shown

    def _finding(self, finding: Finding) -> list[tuple[Line, int]]:
        row = rule(finding.rule)
        level = severity(finding.rule)
        certainty = "" if finding.certain else "possible "
        head: Line = [
            (_STYLES[level], f"{certainty}{level} {finding.rule}"),
            ("", " by the "),
            (finding.peer, finding.peer),
            ("", f" in packet {finding.packet}: {printable(finding.message)}"),
        ]
        demands = f"{printable(row.text)} ({row.requirement}, {printable(row.source)})"
        shown = [(head, 4), self._labelled("demands", demands)]
        if finding.evidence:
            state = ", ".join(f"{name}={_value(value)}" for name, value in finding.evidence.items())
            shown.append(self._labelled("before", state))
        shown.append(self._labelled("answer", _answer(finding, row.condition)))
        timeline = Timeline(self._clock, 0, LinkNames())
        for record in finding.around:
            mark = "» " if record is finding.record else "  "
            for line, _ in timeline.lines(record, None)[-1 - len(record.frame.problems) :][:1]:
                shown.append(([("problem", _INDENT + mark), *line], -1))
        return shown

    def _labelled(self, label: str, text: str) -> tuple[Line, int]:
        return ([("key", f"{_INDENT}{label:<{_LABEL}}"), ("", text)], len(_INDENT) + _LABEL)


def _answer(finding: Finding, expected: str) -> str:
    """What a correct peer answers, and what this one did."""
    other = "server" if finding.peer == CLIENT else "client"
    parts = []
    if expected:
        parts.append(f"{expected} is due")
    if finding.reaction:
        what = f"{finding.reaction} with {printable(finding.reaction_condition)}"
        if not finding.reaction_condition:
            what = f"{finding.reaction} without an error"
        parts.append(
            f"the {other} sent {what} {finding.reaction_after:.6f} s later (packet {finding.reaction_packet})"
        )
    else:
        parts.append(f"the {other} sent no error")
    return "; ".join(parts)


def _value(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(printable(str(item)) for item in value) + "]"
    return printable(str(value))
