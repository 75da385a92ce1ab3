"""Diagnoses for people, and as JSON: the worst first."""

import heapq
import json
from collections.abc import Iterator
from typing import Final

from amqpscope.model.diagnosis import Diagnosis
from amqpscope.report.backlog import Backlog
from amqpscope.report.line import Line
from amqpscope.report.printable import printable

__all__ = ["DiagnosisBacklog", "diagnosis_line", "is_trouble", "worst_first"]

_SHOWN: Final = 10
"""Diagnoses of a capture that are shown to people."""

_FACTS: Final = ("diag/proxy-header", "diag/websocket-unread")
"""What is no trouble: it comes last."""


def _weight(one: Diagnosis) -> tuple[bool, bool, float, int]:
    """Trouble before facts, what lasts still before what is over, and what lasts longest first."""
    return (one.code in _FACTS, one.ended_packet > 0, -one.seconds, one.packet)


def is_trouble(one: Diagnosis) -> bool:
    """Whether it is any trouble, not only a fact."""
    return one.code not in _FACTS


def worst_first(found: list[Diagnosis]) -> list[Diagnosis]:
    """Diagnoses in the order in which they hurt."""
    return sorted(found, key=_weight)


def diagnosis_line(one: Diagnosis) -> Line:
    """One diagnosis in a line: who has to act, what is the matter, since which packet, and its code."""
    move = f"the {one.whose_move} has to act" if one.whose_move else "nobody has to act"
    since = f" (since packet {one.packet}" if one.packet else " ("
    if one.ended_packet:
        since += f", until packet {one.ended_packet}"
    return [
        ("warning", f"{move}: "),
        ("", f"{printable(one.message)}{since})"),
        ("dim", f" [{one.code}]"),
    ]


class DiagnosisBacklog:
    """The diagnoses of a capture: all as JSON, and the worst ones for people."""

    def __init__(self) -> None:
        self._all = Backlog()
        self._worst: list[Diagnosis] = []

    def __len__(self) -> int:
        return len(self._all)

    def add(self, found: list[Diagnosis], order: int) -> None:
        """Those of one connection. order: of the connection in the capture."""
        for one in found:
            self._all.put(int(order), json.dumps(one.json()))
        if found:
            self._worst = heapq.nsmallest(_SHOWN, [*self._worst, *found], key=_weight)

    def json(self) -> Iterator[str]:
        """Each as JSON, connection by connection. Nothing may be added after that."""
        for _, text in self._all:
            yield text

    def lines(self) -> list[Line]:
        """The worst ones for people, the worst first, and how many others there are."""
        lines = [diagnosis_line(one) for one in self._worst]
        more = len(self) - len(lines)
        if more > 0:
            lines.append([("dim", f"and {more} more")])
        return lines

    def close(self) -> None:
        """Nothing more is wanted."""
        self._all.close()
