"""Counting frames for `read --count`. Compiled, because it sees every frame of a capture."""

from typing import Any, Final

from amqpscope.model.records import Counter, FrameRecord
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["FRAMES_OF_AMQP10", "Census", "FrameCount"]


class FrameCount:
    """How many frames of one name there were."""

    def __init__(self) -> None:
        self.client: i64 = 0
        self.server: i64 = 0


class Census(Counter):
    """Frames by name, of the client and of the server."""

    def __init__(self) -> None:
        super().__init__()
        self.tallies: dict[str, FrameCount] = {}
        self.frames: i64 = 0
        self.octets: i64 = 0
        self.problems: i64 = 0
        self.missing: i64 = 0

    def add(self, records: list[FrameRecord]) -> None:
        """Count these frames."""
        for record in records:
            self.count(record.frame, record.direction == record.connection.client)

    def count(self, frame: Frame, by_client: bool) -> None:
        tally = self.tallies.get(frame.name)
        if tally is None:
            tally = FrameCount()
            self.tallies[frame.name] = tally
        if by_client:
            tally.client += 1
        else:
            tally.server += 1
        self.frames += 1
        self.octets += frame.size - frame.uncaptured
        self.missing += frame.uncaptured
        if frame.problems:
            self.problems += 1

    def clear(self) -> None:
        """Begin to count anew."""
        self.tallies = {}
        self.frames = self.octets = self.problems = self.missing = 0

    def dump(self) -> tuple[object, ...]:
        """What was counted, as plain values."""
        tallies = [(name, int(one.client), int(one.server)) for name, one in self.tallies.items()]
        return (tallies, int(self.frames), int(self.octets), int(self.problems), int(self.missing))

    def include(self, state: tuple[Any, ...]) -> None:
        """Add what another one has counted, as `dump` returned it."""
        tallies, frames, octets, problems, missing = state
        for name, client, server in tallies:
            tally = self.tallies.setdefault(name, FrameCount())
            tally.client += client
            tally.server += server
        self.frames += frames
        self.octets += octets
        self.problems += problems
        self.missing += missing

    def rows(self) -> list[tuple[str, int, int]]:
        """(name, frames of the client, frames of the server), in the order of a conversation."""
        return [
            (name, int(tally.client), int(tally.server))
            for name, tally in sorted(self.tallies.items(), key=_order)
        ]


FRAMES_OF_AMQP10: Final = (
    "sasl-mechanisms",
    "sasl-init",
    "sasl-challenge",
    "sasl-response",
    "sasl-outcome",
    "open",
    "begin",
    "attach",
    "flow",
    "transfer",
    "disposition",
    "detach",
    "end",
    "close",
    "empty",
)
"""Frames of AMQP 1.0 by their names, in the order of a conversation."""

_ORDER: Final = ("header", *FRAMES_OF_AMQP10)


def _order(item: tuple[str, FrameCount]) -> tuple[int, str]:
    name = item[0]
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)
