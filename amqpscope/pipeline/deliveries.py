"""Deliveries of one connection, from their first frame to their settlement.

A `DeliveryLog` follows the frames of one protocol just far enough for a row of the table `deliveries`;
whether they were allowed is not its question. A delivery is over when one side has settled it, when it is
given up, when its session ends or its channel is begun anew, or when too many are unsettled: then some of
the oldest are given out as they are.
"""

from typing import Final

from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wire import i64

__all__ = ["MAX_UNSETTLED", "DeliveryLog", "DeliveryRow", "OpenDeliveries"]

MAX_UNSETTLED = 65_536
"""Unsettled deliveries followed of one connection: more than brokers and clients let run up."""


class DeliveryRow:
    """One delivery.

    id, tag: by which it is settled, as far as the protocol has them. link, address: where it goes. transfers,
    payload: the frames that carry it, and their octets of it. settled_by: the peer that settled first, or "".
    number: deliveries of the connection that began before.
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
        self.number: i64 = 0

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


class OpenDeliveries:
    """The rows of deliveries that are not over.

    A row is found by its *group*, the session or the channel of the delivery, and by the object that stands
    for the delivery there.
    """

    def __init__(self) -> None:
        self._most: i64 = MAX_UNSETTLED
        self._begun: i64 = 0
        self._open: i64 = 0
        self._groups: dict[object, dict[object, DeliveryRow]] = {None: {}}
        # The group of the last question: mostly the next one's, too. No other one is without rows.
        self._group: object = None
        self._rows: dict[object, DeliveryRow] = self._groups[None]

    def add(self, group: object, delivery: object, row: DeliveryRow) -> None:
        """A delivery has begun."""
        if group is not self._group:
            self._turn_to(group)
        row.number = self._begun
        self._begun += 1
        self._open += 1
        self._rows[delivery] = row

    def find(self, group: object, delivery: object) -> DeliveryRow | None:
        """The row of a delivery; None if it has none, or none any more."""
        if group is not self._group:
            self._turn_to(group)
        return self._rows.get(delivery)

    def remove(self, group: object, delivery: object) -> None:
        """A delivery that has a row is over."""
        if group is not self._group:
            self._turn_to(group)
        del self._rows[delivery]
        self._open -= 1

    def drop(self, group: object) -> list[DeliveryRow]:
        """The rows of a group, which is over, by their age. They are removed."""
        if group is not self._group:
            self._turn_to(group)
        rows = list(self._rows.values())
        self._rows.clear()
        self._open -= len(rows)
        return rows

    def surplus(self) -> list[DeliveryRow]:
        """The oldest rows, if there are too many. They are removed."""
        if self._open <= self._most:
            return []
        oldest = self.all_rows()[: max(1, self._most // _SHARE)]
        numbers = {row.number for row in oldest}
        for group, rows in list(self._groups.items()):
            for delivery in [of for of, row in rows.items() if row.number in numbers]:
                del rows[delivery]
            if not rows and group is not self._group:
                del self._groups[group]
        self._open -= len(oldest)
        return oldest

    def all_rows(self) -> list[DeliveryRow]:
        """The rows, by their age."""
        return sorted((row for rows in self._groups.values() for row in rows.values()), key=_age)

    def _turn_to(self, group: object) -> None:
        if not self._rows:
            del self._groups[self._group]
        self._group = group
        self._rows = self._groups.setdefault(group, {})


def _age(row: DeliveryRow) -> int:
    return int(row.number)


_SHARE: Final = 64
"""To find the oldest rows means to look at all of them: one part in so many is removed at a time."""


class DeliveryLog:
    """The deliveries of one connection under way."""

    def take(self, record: FrameRecord, link: Link | None) -> list[DeliveryRow]:
        """The next frame of the connection, and its link. Gives the deliveries that are over by it."""
        return []

    def finish(self) -> list[DeliveryRow]:
        """The connection is over: those that nobody settled."""
        return []
