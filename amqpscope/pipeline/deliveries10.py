"""Deliveries of AMQP 1.0: what transfers and dispositions say of them.

A transfer of a delivery whose beginning was not captured makes none.
"""

from collections import OrderedDict
from typing import Final

from amqpscope.model.records import FrameRecord
from amqpscope.pipeline import deliveries
from amqpscope.pipeline.deliveries import DeliveryLog, DeliveryRow, give_out
from amqpscope.tracking.amqp10.identity import Link
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
        # By end of a session, and then by handle: whose last transfer is awaited.
        self._open: dict[int, dict[int, DeliveryRow]] = {}
        # By end of a session and delivery-id, in order of age; and their keys by end of a session.
        self._unsettled: OrderedDict[int, DeliveryRow] = OrderedDict()
        self._keys: dict[int, dict[int, None]] = {}

    def take(self, record: FrameRecord, link: Link | None) -> list[DeliveryRow]:
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

    def finish(self) -> list[DeliveryRow]:
        begun = [delivery for some in self._open.values() for delivery in some.values()]
        left = give_out([*self._unsettled.values(), *begun])
        self._unsettled.clear()
        self._keys.clear()
        self._open.clear()
        return left

    def _wait(self, key: i64, delivery: DeliveryRow) -> None:
        """It waits for being settled."""
        self._unsettled[key] = delivery
        self._keys.setdefault(key >> 32, {})[key] = None

    def _take(self, key: i64) -> DeliveryRow | None:
        """What waited for being settled by this key, no longer."""
        delivery = self._unsettled.pop(key, None)
        if delivery is not None:
            keys = self._keys[key >> 32]
            del keys[key]
            if not keys:
                del self._keys[key >> 32]
        return delivery

    def _transfer(self, record: FrameRecord, transfer: Transfer, link: Link | None) -> list[DeliveryRow]:
        handle = transfer.handle
        if handle is None:
            return []
        side = _end(record.direction, record.frame.channel)
        end = side << 32
        place = i64(handle)
        begun = self._open.get(side)
        over: list[DeliveryRow] = []
        number = transfer.delivery_id
        delivery = None if begun is None else begun.get(place)
        if delivery is None or (number is not None and number != delivery.id):
            if number is None:
                return over
            if begun is not None and delivery is not None:
                del begun[place]  # its last transfer did not come; it may yet be settled
            delivery = DeliveryRow(record, link)
            delivery.id = number
            delivery.tag = transfer.delivery_tag
            if transfer.settled is not True or transfer.more is True:
                key = end | i64(number)
                again = self._take(key)
                if again is not None:
                    over += give_out([again])  # the id went round, or is used twice
                self._wait(key, delivery)
                if len(self._unsettled) > deliveries.MAX_UNSETTLED:
                    oldest = self._take(i64(next(iter(self._unsettled))))
                    if oldest is not None:
                        over += give_out([oldest])
        delivery.transfers += 1
        delivery.payload += record.frame.payload_size
        if transfer.state is not None:
            _state(delivery, transfer.state)
        if transfer.settled is True:
            delivery.settled = True
        if transfer.aborted is True:
            delivery.aborted = True
        elif transfer.more is True:
            if begun is None:
                begun = {}
                self._open[side] = begun
            begun[place] = delivery
            return over
        else:
            delivery.complete = True
        if begun is not None:
            begun.pop(place, None)
        if delivery.settled or delivery.aborted:
            if delivery.settled:
                delivery.settle(record)
            if delivery.id is not None:
                key = end | i64(delivery.id)
                if self._unsettled.get(key) is delivery:
                    self._take(key)
            over += give_out([delivery])
        return over

    def _disposition(self, record: FrameRecord, body: Disposition) -> list[DeliveryRow]:
        over: list[DeliveryRow] = []
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
        keys = self._keys.get(end)
        if keys is None:
            return over
        if span < len(keys):
            step: i64 = 0
            while step <= span:
                key = base | ((first + step) & _LAST_ID)
                delivery = unsettled.get(key)
                if delivery is not None:
                    self._outcome(record, body, key, delivery, over)
                step += 1
            return over
        for known in list(keys):
            key = i64(known)
            if ((key - first) & _LAST_ID) <= span:
                self._outcome(record, body, key, unsettled[key], over)
        return over

    def _outcome(
        self, record: FrameRecord, body: Disposition, key: i64, delivery: DeliveryRow, over: list[DeliveryRow]
    ) -> None:
        """What a disposition says of one delivery; into `over`, if that settles it."""
        if body.state is not None:
            _state(delivery, body.state)
        if body.settled is True:
            delivery.settle(record)
            self._take(key)
            if not delivery.over:
                delivery.over = True
                over.append(delivery)

    def _drop(self, end: i64) -> list[DeliveryRow]:
        """A session is over, or another one: those of it that nobody settled."""
        left: list[DeliveryRow] = []
        for key in self._keys.pop(end, {}):
            left.append(self._unsettled.pop(key))
        left += self._open.pop(end, {}).values()
        return give_out(left)


def _end(direction: i64, channel: i64) -> i64:
    """One end of a session as a number: who sends on it, and the channel he sends on."""
    return (direction << 16) | channel


def _state(delivery: DeliveryRow, state: object) -> None:
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
