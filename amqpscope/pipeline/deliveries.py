"""Deliveries of one connection, from their first transfer to their settlement.

This follows transfers and dispositions just far enough for a row of the table `deliveries`; whether they
were allowed is not its question. A delivery is over when one side has settled it, when it is aborted, when
its session ends or its channel is begun anew, or when too many are unsettled: then the oldest is given out
as it is. A transfer of a delivery whose beginning was not captured makes none.
"""

from typing import Final

from amqpscope.model import FrameRecord
from amqpscope.report.links import LinkOf
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.messaging import Accepted
from dissectors.amqp10.performatives import Begin, Disposition, End, Error, Transfer
from dissectors.wire import i64

__all__ = ["MAX_UNSETTLED", "Delivery", "DeliveryLog"]

MAX_UNSETTLED = 65_536
"""Unsettled deliveries followed of one connection: more than brokers and clients let run up."""

_LAST_ID: Final = 0xFFFFFFFF  # delivery-ids are serial numbers of 32 bits (RFC 1982)


class Delivery:
    """One delivery. settled_by: the peer that settled first, or ""."""

    def __init__(self, record: FrameRecord, transfer: Transfer, link: LinkOf | None) -> None:
        self.sender: str = record.peer
        self.channel: i64 = record.frame.channel
        self.packet: i64 = record.packet
        self.time: i64 = record.time  # ns since 1970
        self.id: int | None = transfer.delivery_id
        self.tag: bytes | None = transfer.delivery_tag
        self.link: LinkOf | None = link
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

    def state(self, state: object) -> None:
        """What a transfer or disposition says has become of it."""
        if isinstance(state, Accepted):
            self.outcome = "accepted"
            return
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
        # By end of a session (direction and channel): the other end of it.
        self._other: dict[int, int] = {}
        # By end of a session and handle: whose last transfer is awaited.
        self._open: dict[int, Delivery] = {}
        # By end of a session and delivery-id, in order of age.
        self._unsettled: dict[int, Delivery] = {}

    def take(self, record: FrameRecord, link: LinkOf | None) -> list[Delivery]:
        """The next frame of the connection, and its link. Gives the deliveries that are over by it."""
        body = record.frame.body
        if isinstance(body, Transfer):
            return self._transfer(record, body, link)
        if isinstance(body, Disposition):
            return self._disposition(record, body)
        end = _end(record.direction, record.frame.channel)
        if isinstance(body, Begin):
            over = self._drop(end)
            remote = body.remote_channel
            if remote is not None:
                other = _end(1 - record.direction, i64(remote))
                self._other[end] = other
                self._other[other] = end
            return over
        if isinstance(body, End):
            over = self._drop(end)
            if end in self._other:
                over += self._drop(self._other[end])
            return over
        return []

    def finish(self) -> list[Delivery]:
        """The connection is over: those that nobody settled."""
        left = _over([*self._unsettled.values(), *self._open.values()])
        self._unsettled.clear()
        self._open.clear()
        return left

    def _transfer(self, record: FrameRecord, transfer: Transfer, link: LinkOf | None) -> list[Delivery]:
        handle = transfer.handle
        if handle is None:
            return []
        end = _end(record.direction, record.frame.channel) << 32
        place = end | i64(handle)
        over: list[Delivery] = []
        number = transfer.delivery_id
        delivery = self._open.get(place)
        if delivery is None or (number is not None and number != delivery.id):
            if number is None:
                return over
            if delivery is not None:
                del self._open[place]  # its last transfer did not come; it may yet be settled
            delivery = Delivery(record, transfer, link)
            if transfer.settled is not True or transfer.more is True:
                key = end | i64(number)
                again = self._unsettled.pop(key, None)
                if again is not None:
                    over += _over([again])  # the id went round, or is used twice
                self._unsettled[key] = delivery
                if len(self._unsettled) > MAX_UNSETTLED:
                    oldest = next(iter(self._unsettled))
                    over += _over([self._unsettled.pop(oldest)])
        delivery.transfers += 1
        delivery.payload += record.frame.payload_size
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
        if self._open:
            self._open.pop(place, None)
        if delivery.settled or delivery.aborted:
            if delivery.settled:
                delivery.settle(record)
            if delivery.id is not None:
                key = end | i64(delivery.id)
                if self._unsettled.get(key) is delivery:
                    del self._unsettled[key]
            over += _over([delivery])
        return over

    def _disposition(self, record: FrameRecord, body: Disposition) -> list[Delivery]:
        over: list[Delivery] = []
        if body.first is None:
            return over
        end = _end(record.direction, record.frame.channel)
        if body.role:
            other = self._other.get(end)
            if other is None:
                return over
            end = i64(other)
        first = i64(body.first)
        last = first
        if body.last is not None:
            last = i64(body.last)
        span = (last - first) & _LAST_ID
        base = end << 32
        unsettled = self._unsettled
        if span < len(unsettled):
            step: i64 = 0
            while step <= span:
                key = base | ((first + step) & _LAST_ID)
                delivery = unsettled.get(key)
                if delivery is not None:
                    self._outcome(record, body, key, delivery, over)
                step += 1
            return over
        for known in list(unsettled):
            key = i64(known)
            if key >> 32 == end and ((key - first) & _LAST_ID) <= span:
                self._outcome(record, body, key, unsettled[key], over)
        return over

    def _outcome(
        self, record: FrameRecord, body: Disposition, key: i64, delivery: Delivery, over: list[Delivery]
    ) -> None:
        """What a disposition says of one delivery; into `over`, if that settles it."""
        if body.state is not None:
            delivery.state(body.state)
        if body.settled is True:
            delivery.settle(record)
            del self._unsettled[key]
            if not delivery.over:
                delivery.over = True
                over.append(delivery)

    def _drop(self, end: i64) -> list[Delivery]:
        """A session is over, or another one: those of it that nobody settled."""
        left: list[Delivery] = []
        for deliveries in (self._unsettled, self._open):
            for key in [key for key in deliveries if i64(key) >> 32 == end]:
                left.append(deliveries.pop(key))
        return _over(left)


def _end(direction: i64, channel: i64) -> i64:
    """One end of a session as a number: who sends on it, and the channel he sends on."""
    return (direction << 16) | channel


def _over(deliveries: list[Delivery]) -> list[Delivery]:
    """Those of them that were not given out yet; now they are."""
    given: list[Delivery] = []
    for delivery in deliveries:
        if not delivery.over:
            delivery.over = True
            given.append(delivery)
    return given
