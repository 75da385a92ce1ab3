"""When the sender of a direction could not write: its octets had nowhere to go.

What a peer writes into its socket while the other end takes nothing stays in its host, and is captured when
it goes out at last. So of such a time nobody can say that the peer was silent. A capture shows it in two
ways:

* the receiver's window leaves no room (`WINDOW`): by the receiver's own segments, until one of them opens it;
* octets are sent again and not acknowledged (`RESENT`): after a time-out TCP sends nothing new until it hears
  from the other end (RFC 5681, section 3.1); from the first copy on.

It ends, too, when the sender sends octets that are new. A window that closes again though nothing came was
not open: a receiver does not take back what it offers (RFC 9293, section 3.8.6.2.1). Where the capture does
not tell (the scale of a window whose SYN was not captured), a window that is not 0 has room.
"""

from typing import Any, Final

from amqpscope.limits import MAX_STALLS
from dissectors.wire import i64

__all__ = ["NEVER", "NO_STALLS", "RESENT", "WINDOW", "Stall", "Stalls"]

# What keeps a peer from writing; NEVER: nothing.
NEVER: Final = 0
WINDOW: Final = 1
RESENT: Final = 2


class Stall:
    """A time (ns) in which a peer could not write. until: -1 while it lasts. packet: shows its begin.

    offset: how far the sender's stream was.
    """

    def __init__(self, since: i64, until: i64, cause: i64, packet: i64, offset: i64) -> None:
        self.since: i64 = since
        self.until: i64 = until
        self.cause: i64 = cause
        self.packet: i64 = packet
        self.offset: i64 = offset


# mypyc: null object, of all `Stalls` without a time. Nothing appends to it.
_NO_TIMES: Final[list[Stall]] = []


class Stalls:
    """When the sender of one direction could not write. Times in ns."""

    def __init__(self) -> None:
        # What keeps it from writing now.
        self.cause: i64 = NEVER
        # Something keeps it, or the sender of the other direction, from writing.
        self.watched: bool = False
        # The offset up to which its octets were acknowledged when the newest of the times began.
        self.acknowledged: i64 = 0
        # For how long it was kept by a window, and by octets sent again, without a time that lasts.
        self.windows: i64 = 0
        self.resent: i64 = 0
        # When the receiver was last looked at.
        self.seen: i64 = 0
        # In order; two of them are made one where there are too many.
        self.times: list[Stall] = _NO_TIMES

    def begin(self, cause: i64, packet: i64, time: i64, offset: i64) -> None:
        """From `time` on the peer, whose stream is at `offset`, cannot write, as `packet` shows."""
        self.cause = cause
        if self.times is _NO_TIMES:
            self.times = []
        self.times.append(Stall(time, -1, cause, packet, offset))
        if len(self.times) > MAX_STALLS:
            # That excuses more.
            self.times[0].until = self.times[1].until
            del self.times[1]

    def extend(self, packet: i64, time: i64, offset: i64) -> None:
        """Octets were sent again at `time`, though their acknowledgement is captured already."""
        last: i64 = len(self.times) - 1
        if last < 0 or self.times[last].cause != RESENT or self.times[last].offset != offset:
            self.begin(RESENT, packet, time, offset)
        else:
            stall = self.times[last]
            self.resent -= stall.until - stall.since
            self.cause = RESENT
        self.end(time)

    def resume(self) -> None:
        """The newest of the times, by a closed window, was not over."""
        stall = self.times[len(self.times) - 1]
        self.windows -= stall.until - stall.since
        self.cause = WINDOW
        stall.until = -1

    def end(self, time: i64) -> None:
        """It can write again."""
        stall = self.times[len(self.times) - 1]
        stall.until = max(time, stall.since)
        if self.cause == WINDOW:
            self.windows += stall.until - stall.since
        else:
            self.resent += stall.until - stall.since
        self.cause = NEVER

    def free(self, since: i64, until: i64, offset: i64 = -1) -> i64:
        """The longest stretch between two times in which the peer could write.

        offset: where its stream was all the time. What it could not write there counts in full, as the clocks
        of two taps may not agree.
        """
        longest: i64 = 0
        most: i64 = until - since
        for stall in self.times:
            if stall.offset == offset:
                most -= (max(self.seen, stall.since) if stall.until < 0 else stall.until) - stall.since
            if 0 <= stall.until <= since:
                continue
            if stall.since >= until:
                break
            longest = max(longest, stall.since - since)
            since = until if stall.until < 0 else min(stall.until, until)
        return min(max(longest, until - since), max(most, 0))

    def reach(self, until: i64, span: i64) -> i64:
        """The latest time since which, up to `until`, the peer could write for `span` without a break."""
        at: i64 = len(self.times) - 1
        while at >= 0:
            stall = self.times[at]
            if 0 <= stall.until <= until - span:
                break
            until = min(until, stall.since)
            at -= 1
        return until - span

    def last(self, now: i64) -> Stall | None:
        """The newest of the times that had begun at `now`, as it was then."""
        at: i64 = len(self.times) - 1
        while at >= 0:
            stall = self.times[at]
            if stall.since <= now:
                until: i64 = -1 if stall.until > now else stall.until
                return Stall(stall.since, until, stall.cause, stall.packet, stall.offset)
            at -= 1
        return None

    def total(self, cause: i64, now: i64) -> i64:
        """How long this kept the peer from writing, up to `now`."""
        lasting: i64 = 0
        if self.cause == cause:
            lasting = max(now - self.times[len(self.times) - 1].since, 0)
        return lasting + (self.windows if cause == WINDOW else self.resent)

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        times = tuple(
            (int(one.since), int(one.until), int(one.cause), int(one.packet), int(one.offset))
            for one in self.times
        )
        state = (int(self.cause), self.watched, int(self.acknowledged))
        return (*state, int(self.windows), int(self.resent), int(self.seen), times)

    def restore(self, state: tuple[Any, ...]) -> None:
        """Become what `dump` returned."""
        self.cause, self.watched, self.acknowledged, self.windows, self.resent, self.seen, times = state
        self.times = [Stall(*one) for one in times] if times else _NO_TIMES


# mypyc: null object, of a peer of whose TCP nothing is known: it could always write. Nothing writes to it.
NO_STALLS: Final = Stalls()
