"""What the watches of links know of one link: credit, deliveries, and what is not settled."""

from typing import Final

from amqpscope.diagnoses.latency import SlowTimes
from amqpscope.diagnoses.notebook import side_of_peer
from amqpscope.model.passwords import without_password
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from dissectors.wire import i64

__all__ = ["UNSAID", "HeldDeliveries", "LinkCredit", "LinkState", "Miscount", "ahead"]

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


class LinkCredit:
    """The credit of one link. A count is a delivery-count, a time is in ns."""

    def __init__(self) -> None:
        # The sender's first count, and where it is now.
        self.initial: i64 = 0
        self.count: i64 = 0
        # What the sender may count up to, UNSAID before the first grant.
        self.up_to: i64 = UNSAID
        # The credit that was granted last, the largest one, and the packet of the last flow that granted any.
        self.granted: i64 = 0
        self.largest: i64 = 0
        self.flow_packet: i64 = 0
        # The receiver drains the link now; either side has drained it before.
        self.drain: bool = False
        self.drained: bool = False
        # How many messages wait at the sender, UNSAID if it does not say.
        self.available: i64 = UNSAID
        # Since when the sender waits for credit.
        self.wait_packet: i64 = 0
        self.wait_time: i64 = 0
        # The packet in which the receiver first renewed it without settling.
        self.renewed_packet: i64 = 0

    def left(self) -> i64:
        """How many deliveries the sender may still start."""
        return 0 if self.up_to == UNSAID else max(ahead(self.up_to, self.count), 0)


class HeldDeliveries:
    """The deliveries of one link that are not settled. slow, mark: as of `LinkState`."""

    def __init__(self, slow: i64, mark: i64) -> None:
        # How many there are, and how many there were at most.
        self.unsettled: i64 = 0
        self.peak: i64 = 0
        # What stands at each of them; one more where the receiver has given an outcome.
        self.mark: i64 = mark
        # Packet and time of the receiver's outcome of a delivery, where the sender has not settled it.
        self.answered: dict[OpenDelivery, tuple[int, int]] = {}
        # Some are not held, as there are too many, or as a begin is not known.
        self.untracked: bool = False
        # How many the receiver has given an outcome of, and how long it took.
        self.settled: i64 = 0
        self.settling: SlowTimes = SlowTimes(slow)

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


class LinkState:
    """One link whose attaches were captured. A time is in ns.

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
        # A side has attached it without a terminus; it is over.
        self.refused: bool = False
        self.over: bool = False
        self.credit: LinkCredit = LinkCredit()
        self.held: HeldDeliveries = HeldDeliveries(slow, mark)
        # What was sent.
        self.transfers: i64 = 0
        self.deliveries: i64 = 0
        self.aborted: i64 = 0
        self.miscount: Miscount | None = None
        # The packet of the first delivery; some are of a transaction.
        self.first_packet: i64 = 0
        self.transactional: bool = False

    @property
    def subject(self) -> str:
        """The name of the link, for people."""
        return without_password(self.link.name)

    @property
    def receiver(self) -> i64:
        """The side that receives."""
        return 1 - self.sender

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
        credit = self.credit
        return not credit.drain and credit.available != 0 and credit.left() == 0 and self.live()

    def waiting(self) -> list[OpenDelivery]:
        """The deliveries of which the receiver has given no outcome, the oldest first."""
        half = self.session.half(self.sender)
        if half is None:
            return []
        mark = self.held.mark
        waiting = [one for one in half.unsettled.entries() if one.held == mark]
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
