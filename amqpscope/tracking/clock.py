"""How evenly the timestamps of a connection's frames advance: how far a measured silence can be trusted.

The clock of the capturing machine may be set forward, or may stand still while the machine sleeps. Such a
step makes a silence look longer than it was. The step lies between two frames, or behind the last one. A
silence is therefore confirmed only for the time that remains without its longest stretch between two frames.

A clock that was set back is detected, because the timestamps decrease. From then on the clock is known to be
wrong and confirms no silence. Small steps back do not count, because the two directions may be captured by
clocks that differ. Some programs write captures in which all timestamps are equal. Such a clock confirms
nothing either.

Only stretches that a later question can need are kept: each one is longer than all later ones.
"""

from typing import Any

from amqpscope.limits import BACKWARDS, MAX_STRETCHES, SHORT_STRETCH
from dissectors.wire import i64

__all__ = ["ClockStepGuard"]


class ClockStepGuard:
    """The stretches without a frame of either peer on one connection. Times in ns.

    first: the time of the first frame, -1 before it. back: the longest step by which a frame's time was
    before the time of the previous frame.
    """

    def __init__(self) -> None:
        self.first: i64 = -1
        self.last: i64 = 0
        self.back: i64 = 0
        self.stretches: tuple[tuple[int, int], ...] = ()

    def saw(self, time: i64) -> None:
        """A frame, of either peer."""
        last = self.last
        self.last = time
        if self.first < 0:
            self.first = time
        if last == 0 or time - last < SHORT_STRETCH:
            if time < last - self.back:
                self.back = last - time
            return
        stretches = self.stretches
        longer: i64 = len(stretches)
        while longer > 0 and stretches[longer - 1][1] - stretches[longer - 1][0] <= time - last:
            longer -= 1
        stretches = (*stretches[:longer], (int(last), int(time)))
        if len(stretches) > MAX_STRETCHES:
            # Two neighbouring stretches become one, which confirms less.
            stretches = ((stretches[0][0], stretches[1][1]), *stretches[2:])
        self.stretches = stretches

    def jumped(self) -> bool:
        """Whether the clock was set back; the note `capture/time` reports it."""
        return self.back > BACKWARDS

    def stood(self, until: i64) -> bool:
        """Whether the clock stood still from the first frame to this time."""
        return until == self.first

    def attested(self, since: i64, until: i64) -> i64:
        """How much of the time from `since` to `until` certainly passed, whatever the clock did."""
        if self.jumped():
            return 0
        longest: i64 = max(until - self.last, 0)
        for begin, end in self.stretches:
            if end > since and end - begin > longest:
                longest = end - begin
        return until - since - longest

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (int(self.first), int(self.last), int(self.back), self.stretches)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "ClockStepGuard":
        """The object of what `dump` returned."""
        pace = ClockStepGuard()
        pace.first, pace.last, pace.back, pace.stretches = state
        return pace
