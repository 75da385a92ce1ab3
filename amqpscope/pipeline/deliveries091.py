"""Deliveries of AMQP 0-9-1: messages that are delivered or got, and those that are published.

What the server sends is settled by the client's ack, nack or reject, by its delivery tag; what the client
publishes on a channel in confirm mode by the server's ack or nack, by its number. What nobody has to settle,
because the consumer takes without ack or the channel is not in confirm mode, is settled as it is sent. A
message that is returned is no delivery. Octets that were not captured hide how many were published: from
there on no confirm on the channel can be told to belong to a message.
"""

from collections import OrderedDict

from amqpscope.limits import MAX_LOGGED_CHANNELS, MAX_LOGGED_CONSUMERS
from amqpscope.model.records import FrameRecord
from amqpscope.pipeline import deliveries
from amqpscope.pipeline.deliveries import DeliveryLog, DeliveryRow, give_out
from amqpscope.tracking.amqp10.identity import Link
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicReject,
    ChannelClose,
    ChannelOpen,
    ConfirmSelect,
)
from dissectors.wire import i64

__all__ = ["Amqp091Log"]


class _Channel:
    """What is known of a channel. Of what each direction sends: unsettled by tag, and what is being sent."""

    def __init__(self) -> None:
        self.unsettled: list[OrderedDict[int, DeliveryRow]] = [OrderedDict(), OrderedDict()]
        self.sending: list[DeliveryRow | None] = [None, None]
        # The number of the last message published in confirm mode; -1: none is counted.
        self.published: int = -1
        # How many holes the capture had when the channel was looked at last.
        self.holes: i64 = 0
        # Consumers that take without ack; and of consumes and gets not answered yet whether they do.
        self.no_ack: set[str] = set()
        self.consumes: list[bool] = []
        self.gets: list[bool] = []


class Amqp091Log(DeliveryLog):
    """The deliveries of a connection that speaks AMQP 0-9-1."""

    def __init__(self) -> None:
        self._channels: dict[int, _Channel] = {}
        # Where each unsettled delivery is kept, in order of age: channel, direction, tag.
        self._order: OrderedDict[tuple[int, int, int], None] = OrderedDict()
        # How much is known of consumers and questions, on all channels.
        self._known: i64 = 0
        # Stretches that were not captured, so far.
        self._holes: i64 = 0

    def take(self, record: FrameRecord, link: Link | None) -> list[DeliveryRow]:
        frame = record.frame
        body = frame.body
        if frame.kind == "skipped":
            self._holes += 1
            return []
        if frame.channel <= 0:
            return []
        number = int(frame.channel)
        known = self._channels.get(number)
        if known is None:
            if len(self._channels) >= MAX_LOGGED_CHANNELS:
                return []
            known = _Channel()
            known.holes = self._holes
            self._channels[number] = known
        if known.holes < self._holes:
            known.holes = self._holes
            known.published = -1
        side = int(record.direction)
        if frame.kind == "body":
            sending = known.sending[side]
            if sending is None:
                return []
            sending.transfers += 1
            sending.payload += frame.payload_size
            return self._sent(record, known, side) if record.message is not None else []
        if isinstance(body, ContentHeader):
            return self._sent(record, known, side) if record.message is not None else []
        if isinstance(body, Method):
            return self._method(record, known, side, body)
        return []

    def finish(self) -> list[DeliveryRow]:
        left: list[DeliveryRow] = []
        for number in list(self._channels):
            left += self._drop(number)
        return left

    def _method(self, record: FrameRecord, known: _Channel, side: int, body: Method) -> list[DeliveryRow]:
        ended: list[DeliveryRow] = []
        if known.sending[side] is not None:
            ended = self._sent(record, known, side)
        if isinstance(body, BasicPublish):
            if known.published >= 0:
                known.published += 1
            return ended + self._begin(record, known, side, known.published, known.published < 0, body)
        if isinstance(body, BasicDeliver):
            free = body.consumer_tag in known.no_ack
            return ended + self._begin(record, known, side, body.delivery_tag, free, body)
        if isinstance(body, BasicGetOk):
            free = self._answered(known)
            return ended + self._begin(record, known, side, body.delivery_tag, free, body)
        if isinstance(body, BasicAck):
            return ended + self._settle(record, known, side, body.delivery_tag, body.multiple, "ack")
        if isinstance(body, BasicNack):
            word = "nack requeue" if body.requeue else "nack"
            return ended + self._settle(record, known, side, body.delivery_tag, body.multiple, word)
        if isinstance(body, BasicReject):
            word = "reject requeue" if body.requeue else "reject"
            return ended + self._settle(record, known, side, body.delivery_tag, False, word)
        if isinstance(body, (ChannelOpen, ChannelClose)):
            return ended + self._drop(int(record.frame.channel))
        self._asked(known, body)
        return ended

    def _asked(self, known: _Channel, body: Method) -> None:
        """What decides how deliveries are settled."""
        if isinstance(body, ConfirmSelect):
            if known.published < 0:
                known.published = 0
        elif isinstance(body, BasicConsume):
            if body.no_ack and body.consumer_tag:
                self._takes_freely(known, body.consumer_tag)
            if not body.no_wait and self._known < MAX_LOGGED_CONSUMERS:
                known.consumes.append(body.no_ack)
                self._known += 1
        elif isinstance(body, BasicConsumeOk):
            if known.consumes:
                self._known -= 1
                if known.consumes.pop(0) and body.consumer_tag:
                    self._takes_freely(known, body.consumer_tag)
        elif isinstance(body, BasicCancel):
            if body.consumer_tag in known.no_ack:
                self._known -= 1
                known.no_ack.discard(body.consumer_tag or "")
        elif isinstance(body, BasicGet):
            if self._known < MAX_LOGGED_CONSUMERS:
                known.gets.append(body.no_ack)
                self._known += 1
        elif isinstance(body, BasicGetEmpty):
            self._answered(known)

    def _takes_freely(self, known: _Channel, consumer_tag: str) -> None:
        """A consumer takes without ack."""
        if self._known < MAX_LOGGED_CONSUMERS and consumer_tag not in known.no_ack:
            known.no_ack.add(consumer_tag)
            self._known += 1

    def _answered(self, known: _Channel) -> bool:
        """A get is answered. Whether it was one without ack."""
        if not known.gets:
            return False
        self._known -= 1
        return known.gets.pop(0)

    def _begin(
        self, record: FrameRecord, known: _Channel, side: int, tag: int, free: bool, body: Method
    ) -> list[DeliveryRow]:
        """A delivery begins. tag: by which it is settled, -1 unknown. free: nobody has to settle it."""
        delivery = DeliveryRow(record, None)
        exchange: str | None = None
        key: str | None = None
        if isinstance(body, BasicPublish):
            exchange, key = body.exchange, body.routing_key
        elif isinstance(body, BasicDeliver):
            exchange, key = body.exchange, body.routing_key
            delivery.name = body.consumer_tag
        elif isinstance(body, BasicGetOk):
            exchange, key = body.exchange, body.routing_key
        delivery.place = f"{exchange}/{key or ''}" if exchange else key
        delivery.settled = free
        known.sending[side] = delivery
        if tag < 0:
            return []
        delivery.id = tag
        if free:
            return []
        unsettled = known.unsettled[side]
        place = (int(record.frame.channel), side, tag)
        over: list[DeliveryRow] = []
        again = unsettled.pop(tag, None)
        if again is not None:
            del self._order[place]
            over = give_out([again])
        elif len(self._order) >= deliveries.MAX_UNSETTLED:
            over = self._oldest()
        unsettled[tag] = delivery
        self._order[place] = None
        return over

    def _oldest(self) -> list[DeliveryRow]:
        """Give up the oldest that is unsettled."""
        channel, side, tag = self._order.popitem(last=False)[0]
        return give_out([self._channels[channel].unsettled[side].pop(tag)])

    def _sent(self, record: FrameRecord, known: _Channel, side: int) -> list[DeliveryRow]:
        """What was being sent is ended by this frame: it is there, or cut short."""
        delivery = known.sending[side]
        known.sending[side] = None
        if delivery is None:
            return []
        message: object = record.message
        delivery.complete = isinstance(message, Amqp091Message) and message.complete
        if not delivery.settled:
            return [] if delivery.id is not None else give_out([delivery])
        delivery.settle(record)
        return give_out([delivery])

    def _settle(
        self, record: FrameRecord, known: _Channel, side: int, tag: int, multiple: bool, outcome: str
    ) -> list[DeliveryRow]:
        """A peer settles one delivery of the other's, or all up to it."""
        unsettled = known.unsettled[1 - side]
        tags = [tag]
        if multiple:
            tags = []
            for one in unsettled:  # in their order: tags count up
                if tag and one > tag:
                    break
                tags.append(one)
        number = int(record.frame.channel)
        settled: list[DeliveryRow] = []
        for one in tags:
            delivery = unsettled.pop(one, None)
            if delivery is not None:
                del self._order[number, 1 - side, one]
                delivery.outcome = outcome
                delivery.settle(record)
                settled.append(delivery)
        return give_out(settled)

    def _drop(self, number: int) -> list[DeliveryRow]:
        """A channel is over: what nobody settled, and what was being sent."""
        channel = self._channels.pop(number, None)
        if channel is None:
            return []
        self._known -= len(channel.no_ack) + len(channel.consumes) + len(channel.gets)
        left: list[DeliveryRow] = []
        for side in (0, 1):
            for tag, delivery in channel.unsettled[side].items():
                del self._order[number, side, tag]
                left.append(delivery)
            sending = channel.sending[side]
            if sending is not None:
                left.append(sending)
        return give_out(left)
