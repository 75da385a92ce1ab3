"""What a watch remembers of deliveries until they are settled, in bounded memory.

What is remembered stands at the delivery itself, because a dictionary of deliveries costs several times as
much for each of them.
"""

from typing import Final

from amqpscope.limits import MAX_UNANSWERED
from amqpscope.tracking.events import Rememberable
from dissectors.wire import i64

__all__ = ["Memory"]

_FEW: Final = 64
"""Settled deliveries that may stand in a list without being taken out."""


class Memory:
    """The deliveries of which one watch remembers something. No other watch remembers anything of them.

    Of too many the oldest are forgotten.
    """

    def __init__(self) -> None:
        # How many they are.
        self.count: i64 = 0
        # They and some that are forgotten, the oldest first. Before `_begin` there is only None.
        self._deliveries: list[Rememberable | None] = []
        self._begin: i64 = 0

    def put(self, delivery: Rememberable, what: object) -> None:
        """Remember this of a delivery, instead of what was remembered of it."""
        if delivery.remembered is not None:
            delivery.remembered = what
            return
        deliveries = self._deliveries
        size: i64 = len(deliveries)
        if size > _FEW and size > 2 * self.count:
            if 2 * self._begin > size:
                del deliveries[: self._begin]
            else:
                deliveries = [one for one in deliveries if one is not None and one.remembered is not None]
                self._deliveries = deliveries
            self._begin = 0
        if self.count >= 2 * MAX_UNANSWERED:
            self._forget(MAX_UNANSWERED)
        delivery.remembered = what
        deliveries.append(delivery)
        self.count += 1

    def take(self, delivery: Rememberable) -> object | None:
        """What is remembered of a delivery, None for nothing. It is forgotten."""
        what = delivery.remembered
        if what is not None:
            delivery.remembered = None
            self.count -= 1
            self._let_go()
        return what

    def _let_go(self) -> None:
        """Most are forgotten in order. What is let go of at once leaves its memory to the next delivery."""
        deliveries = self._deliveries
        at = self._begin
        size: i64 = len(deliveries)
        while at < size:
            one = deliveries[at]
            if one is not None and one.remembered is not None:
                break
            deliveries[at] = None
            at += 1
        self._begin = at

    def clear(self) -> None:
        """Forget all."""
        self._forget(self.count)

    def _forget(self, many: i64) -> None:
        """Forget so many deliveries, the oldest ones."""
        left = self.count - many
        while self.count > left and self._begin < len(self._deliveries):
            oldest = self._deliveries[self._begin]
            if oldest is None or oldest.remembered is None:
                self._begin += 1
            else:
                self.take(oldest)
