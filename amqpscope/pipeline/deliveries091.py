"""Deliveries of AMQP 0-9-1: messages that are delivered or got, and those that are published.

What the server sends is settled by the client's ack, nack or reject; what the client publishes on a channel
in confirm mode by the server's ack or nack. What nobody has to settle, because the consumer takes without
ack or the channel is not in confirm mode, is settled as it is sent. A message that is returned is no
delivery. Octets that were not captured hide how many were published: from there on no confirm on the channel
can be said to belong to a message.
"""

from collections import OrderedDict

from amqpscope.model.records import FrameRecord
from amqpscope.pipeline import deliveries as shared
from amqpscope.pipeline.deliveries import DeliveryLog, DeliveryRow
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import Listener091, SentContent
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp10.identity import Link
from amqpscope.tracking.events import Conversation
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicDeliver,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicReject,
    BasicReturn,
    ChannelClose,
)

__all__ = ["Amqp091Log"]


class Amqp091Log(DeliveryLog):
    """The deliveries of a connection that speaks AMQP 0-9-1, by the events of a conversation.

    followed: is given each frame before the log is; if it is of another protocol, the log has its own.
    """

    def __init__(self, followed: Conversation | None) -> None:
        self._own: Conversation091 | None = None
        self._events: _Events = _Events()
        if isinstance(followed, Conversation091):
            followed.subscribe(self._events)
        else:
            self._own = Conversation091()
            self._own.subscribe(self._events)

    def take(self, record: FrameRecord, link: Link | None) -> list[DeliveryRow]:
        if self._own is not None:
            self._own.take(record)
        over = self._events.over
        if over:
            self._events.over = []
        return over

    def finish(self) -> list[DeliveryRow]:
        for content in list(self._events.rows):
            self._events.give_out(content)
        return self._events.over


class _Events(Listener091):
    """Makes the rows. rows: those that are not over, in order of age. over: those that are."""

    def __init__(self) -> None:
        self.over: list[DeliveryRow] = []
        self.rows: OrderedDict[SentContent, DeliveryRow] = OrderedDict()
        self._of_channel: dict[Channel | None, dict[SentContent, None]] = {}
        # What is to be settled, with the content that carries it.
        self._unsettled: dict[object, SentContent] = {}

    def content_started(self, record: FrameRecord, method: Method, content: SentContent) -> None:
        if isinstance(method, BasicReturn):
            return
        row = DeliveryRow(record, None)
        exchange: str | None = None
        key: str | None = None
        if isinstance(method, BasicPublish):
            exchange, key = method.exchange, method.routing_key
        elif isinstance(method, BasicDeliver):
            exchange, key = method.exchange, method.routing_key
            row.name = method.consumer_tag
            row.id = method.delivery_tag
        elif isinstance(method, BasicGetOk):
            exchange, key = method.exchange, method.routing_key
            row.id = method.delivery_tag
        row.place = f"{exchange}/{key or ''}" if exchange else key
        self.rows[content] = row
        self._of_channel.setdefault(content.channel, {})[content] = None
        if content.delivery is not None and not content.delivery.no_ack:
            self._unsettled[content.delivery] = content
        if len(self.rows) > shared.MAX_UNSETTLED:
            self.give_out(next(iter(self.rows)))

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        row = self.rows.get(content)
        if row is None:
            return
        row.complete = content.message is not None and content.message.complete
        if content.publish is not None and content.number:
            row.id = content.number
            self._unsettled[content.publish] = content
        elif _needs_nothing(content):
            row.settled = True
            row.settle(record)
            self.give_out(content)

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        for delivery in deliveries:
            self._settle(record, method, self._unsettled.get(delivery))

    def confirmed(self, record: FrameRecord, method: Method, publishes: list[Publish]) -> None:
        for publish in publishes:
            self._settle(record, method, self._unsettled.get(publish))

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        self._drop(channel)

    def channel_ended(self, record: FrameRecord, channel: Channel) -> None:
        self._drop(channel)

    def _settle(self, record: FrameRecord, method: Method, content: SentContent | None) -> None:
        if content is not None:
            row = self.rows[content]
            row.outcome = _outcome(method)
            row.settle(record)
            self.give_out(content)

    def _drop(self, channel: Channel) -> None:
        """A channel is over: what nobody settled, and what was being sent."""
        for content in list(self._of_channel.get(channel, ())):
            self.give_out(content)

    def give_out(self, content: SentContent) -> None:
        """A delivery is over."""
        row = self.rows.pop(content)
        row.transfers = content.frames
        row.payload = content.octets
        self.over.append(row)
        self._unsettled.pop(content.delivery if content.publish is None else content.publish, None)
        of_channel = self._of_channel[content.channel]
        del of_channel[content]
        if not of_channel:
            del self._of_channel[content.channel]


def _needs_nothing(content: SentContent) -> bool:
    """Whether nobody has to settle this, which is complete or cut short."""
    if content.delivery is not None:
        return content.delivery.no_ack
    if isinstance(content.method, BasicPublish):
        return True
    return content.consumer is not None and content.consumer.no_ack


def _outcome(method: Method) -> str:
    """What the one that settles says."""
    if isinstance(method, (BasicNack, BasicReject)):
        word = "nack" if isinstance(method, BasicNack) else "reject"
        return f"{word} requeue" if method.requeue else word
    return "ack"
