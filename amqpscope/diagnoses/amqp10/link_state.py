"""What the watches of links know of one link: credit, deliveries, and what is not settled."""

from collections import OrderedDict

from amqpscope.diagnoses.latency import Latency
from amqpscope.diagnoses.notebook import side_of_peer
from amqpscope.model.passwords import without_password
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session

__all__ = ["Delivered", "LinkState", "ahead"]

_HALF = 1 << 31
_IDS = 1 << 32


def ahead(one: int, other: int) -> int:
    """How far a serial number of 32 bits is ahead of another one (RFC 1982)."""
    return (one - other + _HALF) % _IDS - _HALF


class Delivered:
    """A delivery that is not settled: its packet and time. answered: the receiver has given its outcome."""

    def __init__(self, state: "LinkState", packet: int, time: int) -> None:
        self.state = state
        self.packet = packet
        self.time = time
        self.answered = False


class LinkState:
    """One link whose attaches were captured. A count is a delivery-count, `since` a time (ns)."""

    def __init__(self, link: Link, session: Session) -> None:
        self.link = link
        self.session = session
        self.sender = side_of_peer(link.sender)
        # Packet and time of each side's attach, and of the one that completed the link; 0 if there is none.
        self.attach_packet = [0, 0]
        self.attach_time = [0, 0]
        self.refused = False
        self.over = False
        # Credit: what the sender may count up to, None before the first grant, and where it is now.
        self.initial = 0
        self.count = 0
        self.up_to: int | None = None
        self.granted = 0
        self.largest = 0
        self.flow_packet = 0
        self.drain = False
        self.drained = False
        self.available = -1
        # Since when the sender waits for credit.
        self.wait_packet = 0
        self.wait_time = 0
        # What was sent.
        self.transfers = 0
        self.deliveries = 0
        self.aborted = 0
        # Who counted transfers as deliveries: its side, the packet and time of its flow, and the figures.
        self.miscount: tuple[int, int, int, dict[str, int]] | None = None
        # What is not settled, and what the receiver has given an outcome for that the sender has not settled.
        self.unsettled: OrderedDict[OpenDelivery, Delivered] = OrderedDict()
        self.answered: OrderedDict[OpenDelivery, tuple[int, int]] = OrderedDict()
        self.transactional = False
        self.untracked = False
        self.peak = 0
        self.renewed_packet = 0
        self.settled = 0
        self.first_packet = 0
        self.latency = Latency()

    @property
    def subject(self) -> str:
        """The name of the link, for people."""
        return without_password(self.link.name)

    @property
    def receiver(self) -> int:
        """The side that receives."""
        return 1 - self.sender

    @property
    def credit(self) -> int:
        """How many deliveries the sender may still start."""
        return 0 if self.up_to is None else max(ahead(self.up_to, self.count), 0)

    def completed(self) -> bool:
        """Whether both sides have attached it."""
        return self.attach_packet[0] > 0 and self.attach_packet[1] > 0

    def live(self) -> bool:
        """Whether deliveries may go over it."""
        return self.completed() and not self.over and not self.refused and self.joined()

    def joined(self) -> bool:
        """Whether the begins of both sides are known, so that each side's frames are known to be about it."""
        client, server = self.session.client, self.session.server
        return client is not None and server is not None and not client.assumed and not server.assumed

    def starved(self) -> bool:
        """Whether the sender has no credit, and may have something to send."""
        return (
            self.live() and self.credit == 0 and not self.drain and self.available != 0 and self.granted >= 0
        )

    def attach_since(self) -> tuple[int, int]:
        """Packet and time since which the receiver could grant credit: its attach, or the answer to it."""
        side = self.receiver
        if self.sender == 0 and self.attach_time[0] > self.attach_time[1]:
            side = 0
        return self.attach_packet[side], self.attach_time[side]
