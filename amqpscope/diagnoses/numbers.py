"""Numbers of one connection that people look for: how much, how fast, and who could not go on for how long.

A `Numbers` of a protocol listens beside the watches of a connection, for commands that show numbers. What the
watches know already (credit, windows, prefetch) it takes from them; it follows no number of the wire itself.
Times that need both peers are left out where the clocks of the capture contradict each other.
"""

from collections import OrderedDict
from typing import Any, Final, NamedTuple

from amqpscope.diagnoses.latency import Histogram, Latency
from amqpscope.diagnoses.notebook import SECOND
from amqpscope.limits import MAX_NAMED_DELIVERIES

__all__ = ["Answered", "Deliveries", "Traffic", "Volume", "Wait", "Waited", "in_seconds"]

_MEASURED: Final = 1_000_000
"""Nanoseconds below which a throughput means nothing."""


def in_seconds(nanoseconds: int) -> float:
    """Nanoseconds as seconds, to the microsecond."""
    return round(nanoseconds / SECOND, 6)


class Volume:
    """Messages that were sent: how many, how large (octets), and how fast."""

    def __init__(self) -> None:
        self.sizes = Histogram()
        self.octets = 0
        self.largest_packet = 0
        self.first_time = 0
        self.last_time = 0

    def add(self, size: int, packet: int, time: int) -> None:
        """One more message, which ends in this packet."""
        if size >= self.sizes.largest:
            self.largest_packet = packet
        self.sizes.put(size)
        self.octets += size
        if not self.first_time:
            self.first_time = time
        self.last_time = max(self.last_time, time)

    @property
    def messages(self) -> int:
        """How many."""
        return self.sizes.count

    def rate(self, amount: int) -> float | None:
        """So much a second, from the first message to the last one; None if that is no time."""
        span = self.last_time - self.first_time
        return None if span < _MEASURED else round(amount * SECOND / span, 3)

    def json(self) -> dict[str, Any]:
        """As an object of the JSON outputs."""
        some = self.messages > 0
        return {
            "messages": self.messages,
            "octets": self.octets,
            "messages_per_second": self.rate(self.messages),
            "octets_per_second": self.rate(self.octets),
            "median_octets": self.sizes.quantile(0.5) if some else None,
            "largest_octets": self.sizes.largest if some else None,
            "largest_packet": self.largest_packet if some else None,
        }


class Wait:
    """Times in which a peer could not go on. since: when the present one began (ns), 0 if there is none."""

    def __init__(self) -> None:
        self.total = 0
        self.longest = 0
        self.longest_packet = 0
        self.since = 0
        self.packet = 0

    def look(self, waits: bool, since: int, packet: int, now: int) -> None:
        """Whether the peer waits now, and since when and which packet."""
        if waits:
            if not self.since:
                self.since, self.packet = since, packet
        elif self.since:
            time = max(now - self.since, 0)
            self.total += time
            if time >= self.longest:
                self.longest, self.longest_packet = time, self.packet
            self.since = 0

    def json(self) -> dict[str, Any]:
        """As an object of the JSON outputs."""
        return {
            "seconds": in_seconds(self.total),
            "longest": in_seconds(self.longest),
            "longest_packet": self.longest_packet or None,
        }


class Deliveries:
    """Messages that somebody has to settle: what became of them, and how long that took."""

    def __init__(self) -> None:
        self.volume = Volume()
        self.redelivered = 0
        self.outcomes: dict[str, int] = {}
        self.latency = Latency()
        # What is not settled: packet and time. Of too many the oldest are only counted.
        self.unsettled: OrderedDict[object, tuple[int, int]] = OrderedDict()
        self.not_followed = 0
        # Of those that were never settled: how many, and the one that was left longest: time and packet.
        self.left = 0
        self.left_longest = 0
        self.left_packet = 0

    def sent(self, key: object, packet: int, time: int) -> None:
        """A message is sent that is to be settled."""
        self.unsettled[key] = (packet, time)
        if len(self.unsettled) > MAX_NAMED_DELIVERIES:
            self.unsettled.popitem(last=False)
            self.not_followed += 1

    def settled(self, key: object, outcome: str, packet: int, time: int) -> None:
        """It is settled, or its outcome is known."""
        known = self.unsettled.pop(key, None)
        if known is not None:
            self.ended(outcome)
            self.latency.add(time - known[1], known[0], packet)

    def returned(self, key: object, outcome: str) -> None:
        """It goes back, unsettled."""
        if self.unsettled.pop(key, None) is not None:
            self.ended(outcome)

    def ended(self, outcome: str) -> None:
        """A message has this outcome."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def leave(self, until: int) -> None:
        """Nobody will settle the others."""
        for packet, time in self.unsettled.values():
            self.left += 1
            if until - time >= self.left_longest:
                self.left_longest, self.left_packet = until - time, packet
        self.unsettled.clear()

    def json(self, skewed: bool) -> dict[str, Any]:
        """As fields of the JSON outputs. skewed: times between the peers mean nothing."""
        return {
            **self.volume.json(),
            "redelivered": self.redelivered,
            "outcomes": dict(sorted(self.outcomes.items())),
            "settlement_seconds": None if skewed else self.latency.json(),
            "unsettled": self.left,
            "unsettled_longest": in_seconds(self.left_longest) if self.left and not skewed else None,
            "unsettled_packet": self.left_packet or None,
            "not_followed": self.not_followed,
        }


class Traffic(NamedTuple):
    """Messages that went one way. what: such as `link`; name: from the wire, "" for none."""

    what: str
    name: str
    granted: int
    deliveries: Deliveries


class Waited(NamedTuple):
    """A peer could not go on. what: who, and why. name: from the wire, "" for none."""

    what: str
    name: str
    wait: Wait


class Answered(NamedTuple):
    """How long answers took. what: to what. name: from the wire, "" for none."""

    what: str
    name: str
    latency: Latency
