"""Deliveries of AMQP 0-9-1: messages that are delivered or got, and those that are published.

What the server sends is settled by the client's ack, nack or reject; what the client publishes on a channel
in confirm mode by the server's ack or nack. What nobody has to settle, because the consumer takes without
ack or the channel is not in confirm mode, is settled as it is sent. A message that is returned is no
delivery. Octets that were not captured hide how many were published: from there on no confirm on the channel
can be said to belong to a message.
"""

from amqpscope.model.records import FrameRecord
from amqpscope.pipeline.deliveries import DeliveryLog, DeliveryRow, OpenDeliveries
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
        self._events.give_out_all(self._events.open.all_rows())
        return self._events.over


class _ContentRow(DeliveryRow):
    """A delivery, and the content that carries it."""

    def __init__(self, record: FrameRecord, content: SentContent) -> None:
        super().__init__(record, None)
        self.content: SentContent = content


class _Events(Listener091):
    """Makes the rows. open: those that are not over, by channel and content. over: those that are."""

    def __init__(self) -> None:
        self.over: list[DeliveryRow] = []
        self.open: OpenDeliveries = OpenDeliveries()
        # What is to be settled.
        self._unsettled: dict[object, _ContentRow] = {}
        # Where the last delivery went: mostly the next one, too.
        self._exchange: str | None = None
        self._key: str | None = None
        self._place: str | None = None

    def content_started(self, record: FrameRecord, method: Method, content: SentContent) -> None:
        if isinstance(method, BasicReturn):
            return
        row = _ContentRow(record, content)
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
        if exchange != self._exchange or key != self._key:
            self._exchange, self._key = exchange, key
            self._place = f"{exchange}/{key or ''}" if exchange else key
        row.place = self._place
        self.open.add(content.channel, content, row)
        if content.delivery is not None and not content.delivery.no_ack:
            self._unsettled[content.delivery] = row
        surplus = self.open.surplus()
        if surplus:
            self.give_out_all(surplus)

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        row = self.open.find(content.channel, content)
        if not isinstance(row, _ContentRow):
            return
        row.complete = content.message is not None and content.message.complete
        if content.publish is not None and content.number:
            row.id = content.number
            self._unsettled[content.publish] = row
        elif _needs_nothing(content):
            row.settled = True
            row.settle(record)
            self._give_out(row)

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        for delivery in deliveries:
            self._settle(record, method, self._unsettled.get(delivery))

    def confirmed(self, record: FrameRecord, method: Method, publishes: list[Publish]) -> None:
        for publish in publishes:
            self._settle(record, method, self._unsettled.get(publish))

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        # What nobody settled, and what was being sent.
        self.give_out_all(self.open.drop(channel))

    def channel_ended(self, record: FrameRecord, channel: Channel) -> None:
        self.give_out_all(self.open.drop(channel))

    def _settle(self, record: FrameRecord, method: Method, row: _ContentRow | None) -> None:
        if row is not None:
            row.outcome = _outcome(method)
            row.settle(record)
            self._give_out(row)

    def _give_out(self, row: _ContentRow) -> None:
        """A delivery is over."""
        self.open.remove(row.content.channel, row.content)
        self._removed(row)

    def give_out_all(self, rows: list[DeliveryRow]) -> None:
        """These rows are given out as they are, and are not followed any more."""
        for row in rows:
            assert isinstance(row, _ContentRow)
            self._removed(row)

    def _removed(self, row: _ContentRow) -> None:
        content = row.content
        row.transfers = content.frames
        row.payload = content.octets
        self.over.append(row)
        carried: object = content.delivery if content.publish is None else content.publish
        if carried in self._unsettled:
            del self._unsettled[carried]


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
