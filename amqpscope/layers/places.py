"""Where octets that a stream hands on stand in the stream below it."""

from bisect import bisect_right
from typing import Any

from amqpscope.limits import MAX_LAYER_PLACES
from dissectors.wire import i64

__all__ = ["Places"]


class Places:
    """Marks in ascending order: so many octets below carry so many above.

    Of very many only the newest are kept; what lies before them is not known.
    """

    def __init__(self) -> None:
        self._outer: list[int] = []
        self._inner: list[int] = []
        # Which marks the octets above reach one by one with those below.
        self._even: list[bool] = []
        self._forgotten = False
        # What was asked for last, -1 if that is not known any more, and the answer: all frames of one packet
        # acknowledge the same.
        self._asked: i64 = -1
        self._answer: i64 = 0

    def add(self, outer: i64, inner: i64, even: bool = False) -> None:
        """The first `outer` octets below carry `inner` ones. even: the last ones are carried one by one."""
        self._asked = -1
        self._outer.append(outer)
        self._inner.append(inner)
        self._even.append(even)
        if len(self._outer) > 2 * MAX_LAYER_PLACES:
            del self._outer[:MAX_LAYER_PLACES]
            del self._inner[:MAX_LAYER_PLACES]
            del self._even[:MAX_LAYER_PLACES]
            self._forgotten = True

    def tear(self, outer: i64, inner: i64) -> None:
        """A hole begins at octet `outer` below, and at `inner` above. How its octets correspond is unknown.

        A peer that has acknowledged a part of the hole may have read all that the hole stands for. To be
        called before the mark behind the hole is added.
        """
        self.add(max(outer, self.end()) + 1, inner + 1)

    def end(self) -> i64:
        """The newest mark: so many octets below are accounted for."""
        return self._outer[-1] if self._outer else 0

    def inner(self, outer: i64) -> i64:
        """How many octets the first `outer` ones below carry; -1 if that is not known any more."""
        if outer != self._asked or outer < 0:
            self._answer = self._inner_of(outer)
            self._asked = outer
        return self._answer

    def _inner_of(self, outer: i64) -> i64:
        index = bisect_right(self._outer, outer)
        if index == 0 and self._forgotten:
            return -1
        known: i64 = self._inner[index - 1] if index > 0 else 0
        if index < len(self._outer) and self._even[index]:
            return max(known, self._inner[index] - (self._outer[index] - outer))
        return known

    def dump(self) -> tuple[Any, ...]:
        """The state, as plain values."""
        return (tuple(self._outer), tuple(self._inner), tuple(self._even), self._forgotten)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Places":
        """The object of what `dump` returned."""
        places = Places()
        outer, inner, even, places._forgotten = state
        places._outer = list(outer)
        places._inner = list(inner)
        places._even = list(even)
        return places
