"""Diagnoses that need several connections, when each connection is analysed by another process.

`LaterSeveral` takes the place of `Several` there, and collects facts as plain values. `conclude` takes the
facts of all connections of a capture, and makes the diagnoses.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from amqpscope.diagnoses.amqp10.refusals import stolen
from amqpscope.diagnoses.amqp10.resuming import doubled
from amqpscope.diagnoses.several import Placed, Resumption, Several, Theft
from amqpscope.limits import MAX_CORRELATED_LINKS

__all__ = ["LaterSeveral", "conclude"]

_ATTACHED: Final = "attached"
_BEGAN: Final = "began"
_CONNECTED: Final = "connected"
_RESUMED: Final = "resumed"
_STOLEN: Final = "stolen"


class LaterSeveral(Several):
    """Collects what connections say for each other, at most `MAX_CORRELATED_LINKS` facts."""

    def __init__(self, limits: Mapping[str, float]) -> None:
        super().__init__(limits)
        self.facts: list[tuple[Any, ...]] = []

    def take(self) -> list[tuple[Any, ...]]:
        """The facts since the last call, as plain values."""
        facts, self.facts = self.facts, []
        return facts

    def began(self, connection: str, time: int, protocol: str) -> None:
        """A connection is over that began at this time (ns). To be called when its other facts have come."""
        if self.facts:
            self._put((_BEGAN, connection, time, protocol))

    def connected(
        self, host: str, server: str, connection: str, protocol: str, packet: int, time: int, messages: int
    ) -> None:
        self._put((_CONNECTED, host, server, connection, protocol, packet, time, messages))

    def attached(self, container: str, name: str, connection: str, packet: int) -> None:
        self._put((_ATTACHED, container, name, connection, packet))

    def sent(self, container: str, name: str) -> dict[bytes, str]:
        return {}

    def left(self, container: str, name: str) -> dict[bytes, str]:
        return {}

    def postpone(self, fact: Theft | Resumption) -> bool:
        kind = _STOLEN if isinstance(fact, Theft) else _RESUMED
        self._put((kind, *fact.dump()))
        return True

    def _put(self, fact: tuple[Any, ...]) -> None:
        if len(self.facts) < MAX_CORRELATED_LINKS:
            self.facts.append(fact)


def conclude(facts: Iterable[tuple[Any, ...]], limits: Mapping[str, float]) -> list[Placed]:
    """The diagnoses that these facts of all connections give, each with the begin of its connection."""
    several = Several(limits)
    began: dict[str, tuple[int, str]] = {}
    attaches: list[tuple[int, str, str, str]] = []
    thefts: list[Theft] = []
    resumptions: list[Resumption] = []
    for kind, *values in facts:
        if kind == _CONNECTED:
            several.connected(*values)
        elif kind == _BEGAN:
            began[values[0]] = (values[1], values[2])
        elif len(attaches) + len(thefts) + len(resumptions) >= MAX_CORRELATED_LINKS:
            continue
        elif kind == _ATTACHED:
            container, name, connection, packet = values
            attaches.append((packet, container, name, connection))
        elif kind == _STOLEN:
            thefts.append(Theft(*values))
        else:
            resumptions.append(Resumption(*values))
    found = []
    due = 0
    attaches.sort()
    for theft in sorted(thefts, key=_packet_of_theft):
        while due < len(attaches) and attaches[due][0] < theft.packet:
            packet, container, name, connection = attaches[due]
            several.attached(container, name, connection, packet)
            due += 1
        found.append(
            stolen(theft, several.thief(theft.container, theft.link, theft.connection, theft.packet))
        )
    left: dict[tuple[str, str], dict[bytes, str]] = {}
    for one in sorted(resumptions, key=_packet_of_resumption):
        again = doubled(one, left.get((one.container, one.link), {}))
        if again is not None:
            found.append(again)
        left[one.container, one.link] = one.left
    named = [Placed(one, *began.get(one.connection, (0, ""))) for one in found]
    return named + several.churned()


def _packet_of_theft(theft: Theft) -> int:
    return theft.packet


def _packet_of_resumption(resumption: Resumption) -> int:
    return resumption.packet
