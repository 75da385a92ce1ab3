"""What an endpoint could have known, and what it must have known, when it sent a frame.

The specification describes each endpoint by what it sends and what it receives. A capture shows what
was sent; when it was *received* is not in it: a mirror port may show A's segment before the octets of
B that it acknowledges, and between B's frame and A's next one lies a time in which A had not looked.
Two prefixes of B's stream bound what A had processed when A sent a frame:

could   the octets of B that A had acknowledged by the segment that first carried the frame's first
        octet. Nothing beyond can excuse A: its host had not received it.
must    the octets of B that A's own frames prove it had processed: an answer that names B's channel,
        a count that includes B's transfer, credit used that only one flow of B's gave. It only grows.
        A's acknowledgement proves nothing here (its host had the octets, the program may not have
        read them), nor does a frame of A's that may have crossed B's on the way.

A knew some prefix k of B's stream, must <= k <= could. So of a frame that B's input makes illegal:

    legal with all below `could`                 LEGAL: no finding
    illegal whatever k was                       CERTAIN
    otherwise                                    POSSIBLE

State tables run at `could`. An input of B's that *restricts* what A may send is binding only once it
is confirmed (`confirmed`). A quantity that B sets again and again (credit, a window) is kept as a
`PeerLimits`: the value in force for every k that is still possible, since one flow may raise it and the
next one lower it.

What was not captured, and what was captured but cannot be read, is unknown, whoever is at fault. A field of
the wrong type, a list that does not fit its size, or a frame that does not decode is a fault of its sender,
and is reported as such. Only the two peers know what the sender meant; they may have understood each other.
Nothing is therefore assumed in the place of the value, neither a default nor an absence. Everything that
depends on the value is unknown, for all later frames of either peer: rules about it are silent, or report
possible findings, until a later frame that can be read makes it known again. Losses and faults share this
principle, so one mechanism serves both: `whole` is cleared for everything that may depend on the value. The
reader of the octets says for each problem whether a value was `unread`; this module has no list of kinds of
problems.

If A owes B an answer, A owes it from when A must have known the request: a request that was never read
needs no answer. The answer is late only if A could write for so long: while B's window leaves no room, or
while A's octets are sent again and not acknowledged, what A writes stays in A's host (`Recipient.stalls`).
Time counts only in one stretch in which A could write.

The sessions of a connection of AMQP 1.0 are independent of each other (transport.xml, "Sessions"), and
brokers give each a process of its own. So what a frame of one session proves counts for the frames of that
session, and for the connection as a whole (`of`), but not for another session.

Of an endpoint whose own log is read, both bounds are known, and are one: it had processed all frames that it
logged before its frame (`Knowledge.exact`). Of its peer no more is known than of one in a capture.

This module knows no protocol. Offsets are octets of the peer's stream; a frame is known when its last
octet is: `end` is the offset behind it.
"""

from typing import Final

from amqpscope.limits import MAX_LIMITS
from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.tracking.serial import nearest
from dissectors.wire import i64

__all__ = ["CERTAIN", "CONNECTION", "LEGAL", "NO_SERIAL", "POSSIBLE", "UNBASED", "Knowledge", "PeerLimits"]

# mypyc: sentinel, what a bound counts from that is set before its base is known; below all that 32 bits can
# stand for.
UNBASED: Final = -(1 << 40)

# mypyc: sentinel, where a bound names no serial number that it counts from: it counts from the base.
NO_SERIAL: Final = -1

ANY_AMOUNT: Final = 1 << 32
"""More than 32 bits allow: a bound that allows everything for now."""

CONNECTION: Final = -1
"""In place of a channel: all sessions of the connection."""

# mypyc: null object, of all `Knowledge` without a proof. Nothing writes to it.
_NOTHING_PROVED: Final[dict[int, int]] = {}

# mypyc: null object, of all `PeerLimits` without an entry. Nothing appends to it.
_NO_ENTRIES: Final[list[int]] = []


class Knowledge:
    """What one endpoint knew of the other endpoint's stream when it sent its newest frame."""

    def __init__(self) -> None:
        self.could: i64 = 0
        self.must: i64 = 0
        # The session that `must` is about, by its channel; and what is proved of each session.
        self.channel: i64 = CONNECTION
        self.proved: dict[int, int] = _NOTHING_PROVED
        # Its own log says what it had processed: see above.
        self.exact: bool = False

    def advance(self, acknowledged: i64) -> None:
        """The endpoint sends a frame; its segment acknowledged this many octets of the peer's stream.

        `could` only grows, because the program that wrote a later frame knew no less. A smaller value means
        that an earlier segment was captured only in a later copy, whose newer acknowledgement was assigned to
        the first copy.
        """
        if acknowledged > self.could:
            self.could = acknowledged
            if self.exact:
                self.must = acknowledged

    def of(self, channel: i64) -> None:
        """From here on `must` is what frames of the session on a channel prove; CONNECTION: those of any."""
        if channel != self.channel:
            self.channel = channel
            self.must = self.must_of(channel)

    def must_of(self, channel: i64) -> i64:
        """What `must` is for the session on a channel; CONNECTION: for the connection as a whole."""
        return self.must if self.exact else self.proved.get(int(channel), 0)

    def prove(self, end: i64) -> None:
        """The endpoint has processed the peer's stream up to `end`, as its own frames show.

        A proof beyond `could` proves nothing: what the endpoint sent only happens to fit.
        """
        if self.must < end <= self.could:
            self.must = end
            if self.proved is _NOTHING_PROVED:
                self.proved = {}
            self.proved[int(self.channel)] = int(end)
            if end > self.proved.get(CONNECTION, 0):
                self.proved[CONNECTION] = int(end)

    def confirmed(self, end: i64) -> bool:
        """Whether the endpoint has certainly processed the peer's frame that ends at `end`."""
        return end <= self.must

    def certainty(self, end: i64) -> i64:
        """How certain a fault is that depends on the peer's frame ending at `end`, received at `could`."""
        return CERTAIN if end <= self.must else POSSIBLE

    def dump(self) -> tuple[int, int, bool, int, tuple[tuple[int, int], ...]]:
        """The two prefixes, whether they are exact, and what each session proves."""
        proved = tuple(sorted(self.proved.items()))
        return (int(self.could), int(self.must), self.exact, int(self.channel), proved)

    @staticmethod
    def load(state: tuple[int, int, bool, int, tuple[tuple[int, int], ...]]) -> "Knowledge":
        """The object of what `dump` returned."""
        knowledge = Knowledge()
        knowledge.could, knowledge.must, knowledge.exact, knowledge.channel, proved = state
        if proved:
            knowledge.proved = dict(proved)
        return knowledge


class PeerLimits:
    """An upper bound that the peer sets from time to time, for every prefix that may be the known one.

    The bound is exclusive and a count that never wraps (see `tracking.serial`): the first that is
    beyond. Entries are in the order of the peer's stream. Of those below `must` only the newest can
    still be in force; it is the first entry. packets: of the frames that set them.

    A bound may be set before this end has said what it counts from (`set_early`). Until then it is kept as an
    amount from UNBASED on; early: beside each bound the serial number that its frame counts from, or
    NO_SERIAL.
    """

    def __init__(self) -> None:
        self.ends: list[int] = _NO_ENTRIES
        self.bounds: list[int] = _NO_ENTRIES
        self.packets: list[int] = _NO_ENTRIES
        self.early: list[int] = _NO_ENTRIES

    def set(self, end: i64, bound: i64, packet: i64) -> None:
        """The peer's frame that ends at `end`, and begins in `packet`, sets the bound."""
        size: i64 = len(self.bounds)
        if size > 0 and self.bounds[size - 1] == bound:
            # The bound does not change from the earlier frame on: one entry is enough, unless it has to be
            # proved.
            return
        if size >= MAX_LIMITS:
            # The two oldest bounds become one that allows what either of them allowed.
            if self.bounds[0] > self.bounds[1]:
                self.bounds[1] = self.bounds[0]
            self.drop(1)
        self.append(end, bound, packet)

    def set_early(self, end: i64, serial: i64, amount: i64, packet: i64) -> None:
        """As `set`, while it is not known what bounds count from.

        serial: the 32 bits that the frame counts from, or NO_SERIAL. amount: how many it allows from there.
        """
        if len(self.early) < len(self.bounds):
            # Those count from a base that is no longer the one.
            self.drop(len(self.bounds))
        if len(self.bounds) >= MAX_LIMITS:
            # What the two oldest allow together is not known yet.
            self.bounds[1] = UNBASED + ANY_AMOUNT
            self.early[1] = NO_SERIAL
            self.drop(1)
        self.append(end, UNBASED + amount, packet)
        if self.early is _NO_ENTRIES:
            self.early = []
        self.early.append(serial)

    def append(self, end: i64, bound: i64, packet: i64) -> None:
        """Add one bound."""
        if self.ends is _NO_ENTRIES:
            self.ends = []
            self.bounds = []
            self.packets = []
        self.ends.append(end)
        self.bounds.append(bound)
        self.packets.append(packet)

    def drop(self, count: i64) -> None:
        """Remove the oldest bounds, which no longer apply."""
        del self.ends[:count]
        del self.bounds[:count]
        del self.packets[:count]
        if self.early:
            del self.early[:count]

    def rebase(self, base: i64) -> None:
        """What the bounds set early count from is known now.

        A frame that named another serial number was a guess. Its sum is that of serial numbers (RFC 1982): 0
        and 2 more, counted from 4294967291 on, are 7 more. Where it counts from beyond the base it is wrong,
        and need not be obeyed.
        """
        largest: i64 = base
        at: i64 = 0
        size: i64 = len(self.early)
        while at < size:
            start = base
            if self.early[at] != NO_SERIAL:
                start = nearest(self.early[at], base)
            bound = start + self.bounds[at] - UNBASED
            if start > base and at > 0:
                bound = max(bound, largest)
            self.bounds[at] = bound
            largest = max(bound, largest)
            at += 1
        self.early = _NO_ENTRIES

    def settle(self, must: i64) -> None:
        """All frames up to `must` are processed: bounds that the newest of these replaced no longer apply."""
        drop: i64 = 0
        known: i64 = len(self.ends)
        while drop + 1 < known and self.ends[drop + 1] <= must:
            drop += 1
        if drop > 0:
            self.drop(drop)

    def judge(self, value: i64) -> i64:
        """LEGAL if `value` is within the newest bound, CERTAIN if beyond every one, else POSSIBLE.

        Without any bound: CERTAIN, for nothing was ever granted.
        """
        size: i64 = len(self.bounds)
        if size == 0:
            return CERTAIN
        if value < self.bounds[size - 1]:
            return LEGAL
        at: i64 = 0
        while at < size - 1:
            if value < self.bounds[at]:
                return POSSIBLE
            at += 1
        return CERTAIN

    def proved_by(self, value: i64) -> i64:
        """The end of the first frame without which `value` would be beyond every bound; -1 if there is no
        such frame.

        An endpoint that legally goes up to `value` has processed that frame.
        """
        at: i64 = 0
        size: i64 = len(self.bounds)
        while at < size:
            if value < self.bounds[at]:
                if at > 0:
                    return self.ends[at]
                return -1
            at += 1
        return -1

    def newest(self) -> i64:
        """The newest bound at `could`. There must be one."""
        return self.bounds[len(self.bounds) - 1]

    def newest_packet(self) -> i64:
        """The packet of the frame that set the newest bound."""
        return self.packets[len(self.packets) - 1]

    def largest(self) -> i64:
        """The largest bound that may apply. There must be one."""
        return max(self.bounds)

    def __len__(self) -> int:
        return len(self.bounds)

    def dump(self) -> tuple[tuple[int, ...], ...]:
        """The entries."""
        return (tuple(self.ends), tuple(self.bounds), tuple(self.packets), tuple(self.early))

    @staticmethod
    def load(state: tuple[tuple[int, ...], ...]) -> "PeerLimits":
        """The object of what `dump` returned."""
        limits = PeerLimits()
        limits.ends, limits.bounds, limits.packets, limits.early = (list(entries) for entries in state)
        return limits
