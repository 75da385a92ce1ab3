"""What the watches of links know of one link: credit, deliveries, and what is not settled."""

from typing import Final

from amqpscope.diagnoses.latency import SlowTimes
from amqpscope.diagnoses.notebook import side_of_peer
from amqpscope.model.passwords import without_password
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from dissectors.wire import i64

__all__ = ["UNSAID", "LinkState", "Miscount", "ahead"]

UNSAID: Final = -1
"""Stands for a number that nobody has said."""

_HALF: Final = 1 << 31
_MASK: Final = (1 << 32) - 1


def ahead(one: i64, other: i64) -> i64:
    """How far a serial number of 32 bits is ahead of another one (RFC 1982)."""
    return ((one - other + _HALF) & _MASK) - _HALF


class Miscount:
    """A peer has counted transfers as deliveries: its side, the packet and time (ns) of its flow."""

    def __init__(self, side: i64, packet: i64, time: i64, figures: dict[str, int]) -> None:
        self.side: i64 = side
        self.packet: i64 = packet
        self.time: i64 = time
        self.figures: dict[str, int] = figures


class LinkState:
    """One link whose attaches were captured. A count is a delivery-count, a time is in ns.

    slow: the time from which on settling a delivery is slow. mark: an even number that no other link of the
    connection has.
    """

    def __init__(self, link: Link, session: Session, slow: i64, mark: i64) -> None:
        self.link: Link = link
        self.session: Session = session
        self.sender: i64 = side_of_peer(link.sender)
        # Packet and time of each side's attach; 0 if there is none.
        self.client_packet: i64 = 0
        self.client_time: i64 = 0
        self.server_packet: i64 = 0
        self.server_time: i64 = 0
        self.refused: bool = False
        self.over: bool = False
        # Credit: what the sender may count up to, UNSAID before the first grant, and where it is now.
        self.initial: i64 = 0
        self.count: i64 = 0
        self.up_to: i64 = UNSAID
        self.granted: i64 = 0
        self.largest: i64 = 0
        self.flow_packet: i64 = 0
        self.drain: bool = False
        self.drained: bool = False
        self.available: i64 = UNSAID
        # Since when the sender waits for credit.
        self.wait_packet: i64 = 0
        self.wait_time: i64 = 0
        # What was sent.
        self.transfers: i64 = 0
        self.deliveries: i64 = 0
        self.aborted: i64 = 0
        self.miscount: Miscount | None = None
        # How many deliveries are held: they are not settled.
        self.unsettled: i64 = 0
        # What stands at each of them; one more where the receiver has given an outcome.
        self.mark: i64 = mark
        # Packet and time of the receiver's outcome of a delivery, where the sender has not settled it.
        self.answered: dict[OpenDelivery, tuple[int, int]] = {}
        self.transactional: bool = False
        self.untracked: bool = False
        self.peak: i64 = 0
        self.renewed_packet: i64 = 0
        self.settled: i64 = 0
        self.first_packet: i64 = 0
        self.settling: SlowTimes = SlowTimes(slow)

    @property
    def subject(self) -> str:
        """The name of the link, for people."""
        return without_password(self.link.name)

    @property
    def receiver(self) -> i64:
        """The side that receives."""
        return 1 - self.sender

    @property
    def credit(self) -> i64:
        """How many deliveries the sender may still start."""
        return 0 if self.up_to == UNSAID else max(ahead(self.up_to, self.count), 0)

    def attach(self, side: i64, packet: i64, time: i64) -> None:
        """A side attaches it."""
        if side == 0:
            self.client_packet = packet
            self.client_time = time
        else:
            self.server_packet = packet
            self.server_time = time

    def completed(self) -> bool:
        """Whether both sides have attached it."""
        return self.client_packet > 0 and self.server_packet > 0

    def live(self) -> bool:
        """Whether deliveries may go over it."""
        return self.completed() and not self.over and not self.refused and self.joined()

    def joined(self) -> bool:
        """Whether the begins of both sides are known, so that each side's frames are known to be about it."""
        client, server = self.session.client, self.session.server
        return client is not None and server is not None and not client.assumed and not server.assumed

    def starved(self) -> bool:
        """Whether the sender has no credit, and may have something to send."""
        return self.credit == 0 and not self.drain and self.available != 0 and self.live()

    def hold(self, delivery: OpenDelivery) -> None:
        """A delivery begins unsettled."""
        delivery.held = self.mark
        self.unsettled += 1
        if self.unsettled > self.peak:
            self.peak = self.unsettled

    def holds(self, delivery: OpenDelivery) -> bool:
        """Whether a delivery of this link is held."""
        held = delivery.held
        return held == self.mark or held == self.mark + 1

    def awaits(self, delivery: OpenDelivery) -> bool:
        """Whether a delivery is held, and its receiver has given no outcome."""
        return delivery.held == self.mark

    def answer(self, delivery: OpenDelivery, packet: i64, time: i64) -> None:
        """The receiver gives an outcome of a delivery that is held, and does not settle it."""
        delivery.held = self.mark + 1
        self.answered[delivery] = (int(packet), int(time))

    def free(self, delivery: OpenDelivery) -> None:
        """A delivery that was not settled is settled now."""
        if delivery.held != self.mark:
            del self.answered[delivery]
        delivery.held = 0
        self.unsettled -= 1

    def waiting(self) -> list[OpenDelivery]:
        """The deliveries of which the receiver has given no outcome, the oldest first."""
        half = self.session.half(self.sender)
        if half is None:
            return []
        waiting = [one for one in half.unsettled.entries() if one.held == self.mark]
        # Where a sender skips ids, newer ones may stand first.
        waiting.sort(key=_packet)
        return waiting

    def attach_since(self) -> tuple[int, int]:
        """Packet and time since which the receiver could grant credit: its attach, or the answer to it."""
        if self.sender == 1 or self.client_time > self.server_time:
            return int(self.client_packet), int(self.client_time)
        return int(self.server_packet), int(self.server_time)


def _packet(delivery: OpenDelivery) -> int:
    return int(delivery.packet)
