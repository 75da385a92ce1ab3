"""Which numbers of a sequence have been seen, as spans: numbers that come in order are one span.

The numbers are those of the wire, of any size.
"""

from typing import Final

from amqpscope.limits import MAX_SPANS
from dissectors.wire import i64

__all__ = ["Spans"]

# mypyc: null object, shared by all objects without a span. Nothing appends to it.
_NO_NUMBERS: Final[list[int]] = []


class Spans:
    """Numbers from `firsts[n]` to `lasts[n]`, in the order in which they came."""

    def __init__(self) -> None:
        self.firsts: list[int] = _NO_NUMBERS
        self.lasts: list[int] = _NO_NUMBERS

    def add(self, first: int, last: int) -> None:
        """Add all numbers from `first` to `last`."""
        size: i64 = len(self.firsts)
        if size > 0 and self.firsts[size - 1] <= first <= self.lasts[size - 1] + 1:
            if last > self.lasts[size - 1]:
                self.lasts[size - 1] = last
            return
        if self.firsts is _NO_NUMBERS:
            self.firsts = []
            self.lasts = []
        self.firsts.append(first)
        self.lasts.append(last)
        if size >= MAX_SPANS:
            del self.firsts[0]
            del self.lasts[0]

    def cover(self, first: int, last: int) -> bool:
        """Whether one span contains all these numbers."""
        at: i64 = len(self.firsts) - 1
        while at >= 0:
            if self.firsts[at] <= first and last <= self.lasts[at]:
                return True
            at -= 1
        return False

    @property
    def full(self) -> bool:
        """Whether older spans may have been dropped."""
        return len(self.firsts) >= MAX_SPANS

    def dump(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The spans."""
        return (tuple(self.firsts), tuple(self.lasts))

    @staticmethod
    def load(state: tuple[tuple[int, ...], tuple[int, ...]]) -> "Spans":
        """The object of what `dump` returned."""
        spans = Spans()
        spans.firsts = list(state[0])
        spans.lasts = list(state[1])
        return spans
