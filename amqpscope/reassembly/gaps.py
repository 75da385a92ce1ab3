"""Octets of one direction that were given up as missing, and those that came after all, too late."""

from typing import Any, Final

from amqpscope.limits import REASSEMBLY_RECENT_GAPS
from dissectors.wire import i64

__all__ = ["NO_GAPS", "Gaps"]


class Gaps:
    """What is missing of one stream."""

    def __init__(self) -> None:
        # Octets passed on as gaps.
        self.missing: i64 = 0
        # Octets that came for a gap, from before the begin or from behind the end: they are dropped.
        self.late: i64 = 0
        # The newest gaps, each from its first offset to the one behind it.
        self.newest: list[tuple[int, int]] = []

    def add(self, start: i64, size: i64) -> None:
        """`size` octets from `start` on, which is where the stream is, were passed on as a gap."""
        self.missing += size
        if self.newest:
            first, end = self.newest[-1]
            if end == start:
                self.newest[-1] = (first, start + size)
                return
        self.newest.append((start, start + size))
        if len(self.newest) > REASSEMBLY_RECENT_GAPS:
            del self.newest[0]

    def last_is(self, start: i64, end: i64) -> bool:
        """Whether this is the newest gap."""
        return len(self.newest) > 0 and self.newest[-1] == (start, end)

    def overlap(self, start: i64, end: i64) -> i64:
        """How many of these octets were passed on as a gap."""
        octets: i64 = 0
        for gap_start, gap_end in self.newest:
            low: i64 = max(start, gap_start)
            high: i64 = min(end, gap_end)
            if low < high:
                octets += high - low
        return octets

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        return (self.missing, self.late, tuple(self.newest))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Gaps":
        """The object of what `dump` returned."""
        if state == (0, 0, ()):
            return NO_GAPS
        gaps = Gaps()
        gaps.missing, gaps.late = state[:2]
        gaps.newest = list(state[2])
        return gaps


# mypyc: null object, of a stream of which nothing is missing and nothing came too late. Nothing writes to it.
NO_GAPS: Final = Gaps()
