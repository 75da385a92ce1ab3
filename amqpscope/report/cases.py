"""The findings of a capture that a report for people shows: the first findings of each rule on each
connection.
"""

from collections.abc import Iterator
from typing import NamedTuple

from amqpscope.limits import MAX_SHOWN_FINDINGS
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection

__all__ = ["Cases", "Shown"]


class _Case:
    """The findings of one rule by one peer on one connection: the first ones, and how many there are.

    elsewhere: how many of those that are not kept are in other packets than the ones that are.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.count = 0
        self.elsewhere = 0


class Shown(NamedTuple):
    """A finding to be shown. again: not the first of its case; more: how many further findings of its case
    are not shown; elsewhere: whether one of these is in a packet of which no finding is shown.
    """

    finding: Finding
    again: bool
    more: int
    elsewhere: bool


class Cases:
    """Takes the findings of one capture.

    most: findings of one rule by one peer of a connection that are shown; the others are counted. fold: of a
    packet with several of these only the first is shown. Of the whole capture `MAX_SHOWN_FINDINGS` are kept
    (`kept` says how many there are); `left_out` counts those of further rules, peers and connections.
    """

    def __init__(self, most: int, fold: bool = False) -> None:
        self.left_out = 0
        self._most = most
        self._fold = fold
        self.kept = 0
        self._cases: dict[Connection, dict[tuple[str, str], _Case]] = {}

    def add(self, finding: Finding) -> None:
        """One more finding."""
        key = (finding.rule, finding.peer)
        cases = self._cases.get(finding.connection)
        case = None if cases is None else cases.get(key)
        room = self.kept < MAX_SHOWN_FINDINGS
        if case is None:
            if not room:
                self.left_out += 1
                return
            case = self._cases.setdefault(finding.connection, {})[key] = _Case()
        case.count += 1
        if self._fold and case.findings and case.findings[-1].packet == finding.packet:
            return
        if room and len(case.findings) < self._most:
            case.findings.append(finding)
            self.kept += 1
        else:
            case.elsewhere += 1

    def connections(self) -> Iterator[tuple[Connection, list[Shown]]]:
        """Each connection with findings, by its number, with what is to be shown of it by time."""
        for connection in sorted(self._cases, key=lambda one: (one.stream, one.instance)):
            shown = []
            for case in self._cases[connection].values():
                last = len(case.findings) - 1
                for at, finding in enumerate(case.findings):
                    more = case.count - last - 1 if at == last else 0
                    shown.append(Shown(finding, at > 0, more, case.elsewhere > 0))
            # Those that are about the end of a stream come last in their rule, but belong behind all.
            shown.sort(key=lambda one: int(one.finding.time))
            yield connection, shown
