"""Deliveries of one connection, from their first transfer to their settlement.

This follows transfers and dispositions just far enough for a row of the table `deliveries`; whether they
were allowed is not its question. A delivery is over when one side has settled it, when it is aborted, when
its session ends or its channel is begun anew, or when too many are unsettled: then the oldest is given out
as it is. A transfer of a delivery whose beginning was not captured makes none.
"""

from amqpscope.model import FrameRecord
from amqpscope.report.links import LinkOf
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.performatives import Begin, Disposition, End, Error, Transfer

__all__ = ["MAX_UNSETTLED", "Delivery", "DeliveryLog"]

MAX_UNSETTLED = 65_536
"""Unsettled deliveries followed of one connection: more than brokers and clients let run up."""

_IDS = 1 << 32  # delivery-ids are serial numbers of 32 bits (RFC 1982)


class Delivery:
    """One delivery. settled_by: the peer that settled first, or ""."""

    __slots__ = (
        "aborted",
        "channel",
        "complete",
        "condition",
        "id",
        "link",
        "outcome",
        "over",
        "packet",
        "payload",
        "sender",
        "settled",
        "settled_by",
        "settled_packet",
        "settled_time",
        "tag",
        "time",
        "transfers",
    )

    def __init__(self, record: FrameRecord, transfer: Transfer, link: LinkOf | None) -> None:
        self.sender = record.peer
        self.channel = int(record.frame.channel)
        self.packet = int(record.packet)
        self.time = int(record.time)
        self.id = transfer.delivery_id
        self.tag = transfer.delivery_tag
        self.link = link
        self.transfers = 0
        self.payload = 0
        self.complete = False
        self.aborted = False
        self.settled = False
        self.outcome = ""
        self.condition = ""
        self.settled_by = ""
        self.settled_packet = 0
        self.settled_time = 0
        self.over = False

    def settle(self, record: FrameRecord) -> None:
        """It is settled by the sender of this frame, if by nobody before."""
        if not self.settled_by:
            self.settled_by = record.peer
            self.settled_packet = int(record.packet)
            self.settled_time = int(record.time)

    def state(self, state: object) -> None:
        """What a transfer or disposition says has become of it."""
        outcome = getattr(state, "outcome", None) or state
        if isinstance(outcome, Composite):
            name = outcome.definition().name
            if name != "received":
                self.outcome = name
                error = getattr(outcome, "error", None)
                if isinstance(error, Error):
                    self.condition = error.condition or ""


class DeliveryLog:
    """The deliveries of one connection under way."""

    def __init__(self) -> None:
        # (direction, channel) of one end of a session -> the channel of the other.
        self._other: dict[tuple[int, int], int] = {}
        # (direction, channel, handle): whose last transfer is awaited.
        self._open: dict[tuple[int, int, int], Delivery] = {}
        # (direction, channel, delivery-id), in order of age.
        self._unsettled: dict[tuple[int, int, int], Delivery] = {}

    def take(self, record: FrameRecord, link: LinkOf | None) -> list[Delivery]:
        """The next frame of the connection, and its link. Gives the deliveries that are over by it."""
        body = record.frame.body
        if isinstance(body, Transfer):
            return self._transfer(record, body, link)
        if isinstance(body, Disposition):
            return self._disposition(record, body)
        direction, channel = int(record.direction), int(record.frame.channel)
        if isinstance(body, Begin):
            over = self._drop(direction, channel)
            remote = body.remote_channel
            if remote is not None:
                self._other[direction, channel] = int(remote)
                self._other[1 - direction, int(remote)] = channel
            return over
        if isinstance(body, End):
            over = self._drop(direction, channel)
            other = self._other.get((direction, channel))
            return over if other is None else over + self._drop(1 - direction, other)
        return []

    def finish(self) -> list[Delivery]:
        """The connection is over: those that nobody settled."""
        left = _over([*self._unsettled.values(), *self._open.values()])
        self._unsettled.clear()
        self._open.clear()
        return left

    def _transfer(self, record: FrameRecord, transfer: Transfer, link: LinkOf | None) -> list[Delivery]:
        if transfer.handle is None:
            return []
        direction, channel = int(record.direction), int(record.frame.channel)
        place = (direction, channel, int(transfer.handle))
        over: list[Delivery] = []
        delivery = self._open.get(place)
        if delivery is None or (transfer.delivery_id is not None and transfer.delivery_id != delivery.id):
            if transfer.delivery_id is None:
                return []
            if delivery is not None:
                del self._open[place]  # its last transfer did not come; it may yet be settled
            delivery = Delivery(record, transfer, link)
            key = (direction, channel, int(transfer.delivery_id))
            again = self._unsettled.pop(key, None)
            if again is not None:
                over += _over([again])  # the id went round, or is used twice
            self._unsettled[key] = delivery
            if len(self._unsettled) > MAX_UNSETTLED:
                oldest = next(iter(self._unsettled))
                over += _over([self._unsettled.pop(oldest)])
        delivery.transfers += 1
        delivery.payload += int(record.frame.payload_size)
        if transfer.state is not None:
            delivery.state(transfer.state)
        if transfer.settled is True:
            delivery.settled = True
        if transfer.aborted is True:
            delivery.aborted = True
        elif transfer.more is True:
            self._open[place] = delivery
            return over
        else:
            delivery.complete = True
        self._open.pop(place, None)
        if delivery.settled or delivery.aborted:
            if delivery.settled:
                delivery.settle(record)
            key = (direction, channel, int(delivery.id or 0))
            if self._unsettled.get(key) is delivery:
                del self._unsettled[key]
            over += _over([delivery])
        return over

    def _disposition(self, record: FrameRecord, body: Disposition) -> list[Delivery]:
        if body.first is None:
            return []
        direction, channel = int(record.direction), int(record.frame.channel)
        if body.role:
            other = self._other.get((direction, channel))
            if other is None:
                return []
            direction, channel = 1 - direction, other
        first = int(body.first)
        last = first if body.last is None else int(body.last)
        span = (last - first) % _IDS
        keys: list[tuple[int, int, int]]
        if span < len(self._unsettled):
            keys = [(direction, channel, (first + step) % _IDS) for step in range(span + 1)]
        else:
            keys = [
                key
                for key in self._unsettled
                if key[0] == direction and key[1] == channel and (key[2] - first) % _IDS <= span
            ]
        over: list[Delivery] = []
        for key in keys:
            delivery = self._unsettled.get(key)
            if delivery is not None:
                if body.state is not None:
                    delivery.state(body.state)
                if body.settled is True:
                    delivery.settle(record)
                    del self._unsettled[key]
                    over += _over([delivery])
        return over

    def _drop(self, direction: int, channel: int) -> list[Delivery]:
        """A session is over, or another one: those of it that nobody settled."""
        left = []
        for deliveries in (self._unsettled, self._open):
            for key in [key for key in deliveries if key[0] == direction and key[1] == channel]:
                left.append(deliveries.pop(key))
        return _over(left)


def _over(deliveries: list[Delivery]) -> list[Delivery]:
    """Those of them that were not given out yet; now they are."""
    given = []
    for delivery in deliveries:
        if not delivery.over:
            delivery.over = True
            given.append(delivery)
    return given
