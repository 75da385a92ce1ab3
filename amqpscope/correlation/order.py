"""What was said on several connections, in one order."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from amqpscope.model.records import FrameRef

__all__ = ["by_time"]


class _Said(Protocol):
    spot: FrameRef


Said = TypeVar("Said", bound=_Said)


def by_time(connections: Iterable[Sequence[Said]]) -> list[Said]:
    """All of it in the order of time; what each connection said is given in the order of its stream.

    That stays: a packet that was lost on its way is captured behind those that were sent after it.
    """
    found: list[tuple[int, Said]] = []
    for said in connections:
        latest = 0
        for one in said:
            latest = max(latest, int(one.spot.time))
            found.append((latest, one))
    found.sort(key=lambda pair: pair[0])
    return [one for _, one in found]
