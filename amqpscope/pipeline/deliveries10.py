"""Deliveries of AMQP 1.0: what transfers and dispositions say of them.

A transfer of a delivery whose beginning was not captured makes none.
"""

from typing import Final

from amqpscope.model import FrameRecord
from amqpscope.pipeline import deliveries
from amqpscope.pipeline.deliveries import Delivery, DeliveryLog, give_out
from amqpscope.report.links import LinkOf
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.messaging import Accepted
from dissectors.amqp10.performatives import Begin, Disposition, End, Error, Transfer
from dissectors.wire import i64

__all__ = ["Amqp10Log"]

_LAST_ID: Final = 0xFFFFFFFF  # delivery-ids are serial numbers of 32 bits (RFC 1982)


class Amqp10Log(DeliveryLog):
    """The deliveries of a connection that speaks AMQP 1.0."""

    def __init__(self) -> None:
        # By end of a session (direction and channel): the other end of it.
        self._other: dict[int, int] = {}
        # By end of a session and handle: whose last transfer is awaited.
        self._open: dict[int, Delivery] = {}
        # By end of a session and delivery-id, in order of age.
        self._unsettled: dict[int, Delivery] = {}

    def take(self, record: FrameRecord, link: LinkOf | None) -> list[Delivery]:
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
        left = give_out([*self._unsettled.values(), *self._open.values()])
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
            delivery = Delivery(record, link)
            delivery.id = number
            delivery.tag = transfer.delivery_tag
            if transfer.settled is not True or transfer.more is True:
                key = end | i64(number)
                again = self._unsettled.pop(key, None)
                if again is not None:
                    over += give_out([again])  # the id went round, or is used twice
                self._unsettled[key] = delivery
                if len(self._unsettled) > deliveries.MAX_UNSETTLED:
                    oldest = next(iter(self._unsettled))
                    over += give_out([self._unsettled.pop(oldest)])
        delivery.transfers += 1
        delivery.payload += record.frame.payload_size
        if transfer.state is not None:
            _state(delivery, transfer.state)
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
            over += give_out([delivery])
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
            _state(delivery, body.state)
        if body.settled is True:
            delivery.settle(record)
            del self._unsettled[key]
            if not delivery.over:
                delivery.over = True
                over.append(delivery)

    def _drop(self, end: i64) -> list[Delivery]:
        """A session is over, or another one: those of it that nobody settled."""
        left: list[Delivery] = []
        for kept in (self._unsettled, self._open):
            for key in [key for key in kept if i64(key) >> 32 == end]:
                left.append(kept.pop(key))
        return give_out(left)


def _end(direction: i64, channel: i64) -> i64:
    """One end of a session as a number: who sends on it, and the channel he sends on."""
    return (direction << 16) | channel


def _state(delivery: Delivery, state: object) -> None:
    """What a transfer or disposition says has become of a delivery."""
    if isinstance(state, Accepted):
        delivery.outcome = "accepted"
        return
    outcome = getattr(state, "outcome", None) or state
    if isinstance(outcome, Composite):
        name = outcome.definition().name
        if name != "received":
            delivery.outcome = name
            error = getattr(outcome, "error", None)
            if isinstance(error, Error):
                delivery.condition = error.condition or ""
