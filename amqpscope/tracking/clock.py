"""How evenly the time stamps of a connection's frames go on: what a silence that was measured is worth.

The clock of the capturing machine may be set forward, or stand still while the machine sleeps. Then what
was no silence looks like one, or a short one like a long one. Such a step lies between two frames. So of a
silence only that much is attested as is left when the longest stretch without any frame is taken away.

A clock that was set back is seen: times of frames go down. From then on it is known to be wrong, and attests
no silence at all. Small steps down are none: the two directions may be captured by clocks that differ.

Kept are the stretches of which a later question can still ask: each longer than all that came after it.
"""

from typing import Any

from amqpscope.limits import BACKWARDS, MAX_STRETCHES, SHORT_STRETCH
from dissectors.wire import i64

__all__ = ["ClockStepGuard"]


class ClockStepGuard:
    """The stretches without a frame, of either peer, of one connection. Times in ns.

    back: the longest step by which a frame's time was before that of the one before it.
    """

    def __init__(self) -> None:
        self.last: i64 = 0
        self.back: i64 = 0
        self.since: list[int] = []
        self.until: list[int] = []

    def saw(self, time: i64) -> None:
        """A frame, of either peer."""
        last = self.last
        self.last = time
        if last == 0 or time - last < SHORT_STRETCH:
            if time < last - self.back:
                self.back = last - time
            return
        since = self.since
        until = self.until
        at: i64 = len(since) - 1
        while at >= 0 and until[at] - since[at] <= time - last:
            at -= 1
        del since[at + 1 :]
        del until[at + 1 :]
        since.append(last)
        until.append(time)
        if len(since) > MAX_STRETCHES:
            # Two beside each other become one: that attests less.
            until[0] = until[1]
            del since[1]
            del until[1]

    def jumped(self) -> bool:
        """Whether the clock was set back, as the note `capture/time` tells."""
        return self.back > BACKWARDS

    def attested(self, since: i64, until: i64) -> i64:
        """How much of the time from `since` to `until` cannot have been a step of the clock, at least."""
        if self.jumped():
            return 0
        longest: i64 = 0
        for begin, end in zip(self.since, self.until, strict=True):
            if end > since and end - begin > longest:
                longest = end - begin
        return until - since - longest

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (int(self.last), int(self.back), tuple(self.since), tuple(self.until))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "ClockStepGuard":
        """What `dump` gave, as an object again."""
        pace = ClockStepGuard()
        pace.last, pace.back, since, until = state
        pace.since = list(since)
        pace.until = list(until)
        return pace
