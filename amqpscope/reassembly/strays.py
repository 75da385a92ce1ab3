"""Segments of one direction whose sequence numbers lie outside any window."""

from typing import Any, Final

from amqpscope.limits import REASSEMBLY_STRAYS
from amqpscope.reassembly.sequence import SEQUENCE_MASK
from dissectors.wire import i64

__all__ = ["NO_STRAYS", "Strays"]


class Strays:
    """The strays of one direction; several that follow one another show where the stream goes on."""

    def __init__(self) -> None:
        # How many segments were not believed.
        self.count: i64 = 0
        # How many of the newest follow one another, and the sequence number behind them, -1: none.
        self._run: i64 = 0
        self._next: i64 = -1
        # The number of the last of them among the direction's segments.
        self._segment: i64 = -1

    def follow(self, seq: i64, size: i64, segment: i64) -> bool:
        """One more, with so many octets. Whether enough of them follow one another."""
        if self._segment != segment - 1:
            self._run = 0
            self._next = -1
        self._segment = segment
        if size == 0:
            return False
        if seq != self._next:
            self._run = 0
        self._run += 1
        self._next = (seq + size) & SEQUENCE_MASK
        if self._run < REASSEMBLY_STRAYS:
            return False
        self._run = 0
        self._next = -1
        return True

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        return (self.count, self._run, self._next, self._segment)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Strays":
        """The object of what `dump` returned."""
        if state[0] == 0:
            return NO_STRAYS
        strays = Strays()
        strays.count, strays._run, strays._next, strays._segment = state
        return strays


# mypyc: null object, of a direction without a stray. Nothing writes to it.
NO_STRAYS: Final = Strays()
