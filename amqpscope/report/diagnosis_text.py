"""Diagnoses for people, and as JSON: the worst first."""

import heapq
from collections.abc import Iterator
from typing import Final

from amqpscope.diagnoses.registry import kind_of
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.records import Connection
from amqpscope.report.backlog import Backlog
from amqpscope.report.line import Line
from amqpscope.report.printable import printable

__all__ = ["DiagnosisBacklog", "diagnosis_line", "is_trouble", "worst_first"]

_SHOWN: Final = 10
"""Diagnoses of a capture that are shown to people."""


def _weight(one: Diagnosis) -> tuple[bool, bool, float, int]:
    """Trouble before facts, what lasts still before what is over, and what lasts longest first."""
    return (not is_trouble(one), one.ended_packet > 0, -one.seconds, one.packet)


def is_trouble(one: Diagnosis) -> bool:
    """Whether it is any trouble, not only a fact."""
    return kind_of(one.code).trouble


def worst_first(found: list[Diagnosis]) -> list[Diagnosis]:
    """Diagnoses in the order in which they hurt."""
    return sorted(found, key=_weight)


def diagnosis_line(one: Diagnosis, connection: Connection | None = None) -> Line:
    """One diagnosis in a line: who has to act, what is the matter, since which packet, and its code.

    connection: the one that it is about, if that is not clear from what stands above it.
    """
    move = f"the {one.whose_move} has to act" if one.whose_move else "nobody has to act"
    if connection is not None:
        from amqpscope.report.who import short_name  # brings what hides secrets

        name = (
            f"the {one.whose_move} {short_name(connection, one.whose_move)}" if one.whose_move else "nobody"
        )
        move = f"conn {connection.stream}: {name} has to act"
    since = f" (since packet {one.packet})" if one.packet else ""
    if one.ended_packet:
        since = f" (packets {one.packet} to {one.ended_packet})"
    return [
        ("warning", f"{move}: "),
        ("", f"{printable(one.message)}{since}"),
        ("dim", f" [{one.code}]"),
    ]


class DiagnosisBacklog:
    """The diagnoses of a capture: all as JSON, and the worst ones for people."""

    def __init__(self) -> None:
        self._all = Backlog()
        # The worst ones for people, each as a line.
        self._worst: list[tuple[Diagnosis, Line]] = []

    def __len__(self) -> int:
        return len(self._all)

    def add(self, found: list[Diagnosis], order: int, connection: Connection | None = None) -> None:
        """Those of one connection, or of several if it is None. order: of the connection in the capture."""
        if not found:
            return
        import json  # most captures have no diagnoses

        for one in found:
            self._all.put(int(order), json.dumps(one.json()))
        named = [(one, diagnosis_line(one, connection)) for one in heapq.nsmallest(_SHOWN, found, _weight)]
        self._worst = heapq.nsmallest(_SHOWN, [*self._worst, *named], key=lambda pair: _weight(pair[0]))

    @property
    def first_packet(self) -> int:
        """The packet of the worst diagnosis, 0 if there is none."""
        return self._worst[0][0].packet if self._worst else 0

    def json(self) -> Iterator[str]:
        """Each as JSON, connection by connection. Nothing may be added after that."""
        for _, text in self._all:
            yield text

    def lines(self) -> list[Line]:
        """The worst ones for people, the worst first, and how many others there are."""
        lines = [line for _, line in self._worst]
        more = len(self) - len(lines)
        if more > 0:
            lines.append([("dim", f"and {more} more")])
        return lines

    def close(self) -> None:
        """Nothing more is wanted."""
        self._all.close()
