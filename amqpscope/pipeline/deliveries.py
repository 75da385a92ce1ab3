"""Deliveries of one connection, from their first frame to their settlement.

A `DeliveryLog` follows the frames of one protocol just far enough for a row of the table `deliveries`;
whether they were allowed is not its question. A delivery is over when one side has settled it, when it is
given up, when its session ends or its channel is begun anew, or when too many are unsettled: then the oldest
is given out as it is.
"""

from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wire import i64

__all__ = ["MAX_UNSETTLED", "DeliveryLog", "DeliveryRow", "give_out"]

MAX_UNSETTLED = 65_536
"""Unsettled deliveries followed of one connection: more than brokers and clients let run up."""


class DeliveryRow:
    """One delivery.

    id, tag: by which it is settled, as far as the protocol has them. link, address: where it goes. transfers,
    payload: the frames that carry it, and their octets of it. settled_by: the peer that settled first, or "".
    """

    def __init__(self, record: FrameRecord, link: Link | None) -> None:
        self.sender: str = record.peer
        self.channel: i64 = record.frame.channel
        self.packet: i64 = record.packet
        self.time: i64 = record.time  # ns since 1970
        self.id: int | None = None
        self.tag: bytes | None = None
        self.link: Link | None = link
        self.name: str | None = None
        self.place: str | None = None
        self.transfers: i64 = 0
        self.payload: i64 = 0
        self.complete: bool = False
        self.aborted: bool = False
        self.settled: bool = False
        self.outcome: str = ""
        self.condition: str = ""
        self.settled_by: str = ""
        self.settled_packet: i64 = 0
        self.settled_time: i64 = 0
        self.over: bool = False

    def settle(self, record: FrameRecord) -> None:
        """It is settled by the sender of this frame, if by nobody before."""
        if not self.settled_by:
            self.settled_by = record.peer
            self.settled_packet = record.packet
            self.settled_time = record.time

    @property
    def link_name(self) -> str | None:
        """The name of the link, or of what the protocol has instead."""
        return self.name if self.link is None else self.link.name

    @property
    def address(self) -> str | None:
        """The address of the link, or what the protocol has instead."""
        return self.place if self.link is None else self.link.address


class DeliveryLog:
    """The deliveries of one connection under way."""

    def take(self, record: FrameRecord, link: Link | None) -> list[DeliveryRow]:
        """The next frame of the connection, and its link. Gives the deliveries that are over by it."""
        return []

    def finish(self) -> list[DeliveryRow]:
        """The connection is over: those that nobody settled."""
        return []


def give_out(deliveries: list[DeliveryRow]) -> list[DeliveryRow]:
    """Those of them that were not given out yet; now they are."""
    given: list[DeliveryRow] = []
    for delivery in deliveries:
        if not delivery.over:
            delivery.over = True
            given.append(delivery)
    return given
