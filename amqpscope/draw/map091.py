"""The map of AMQP 0-9-1: channels, what they publish to, and the queues that they take messages from."""

from amqpscope.draw.follower import Walk
from amqpscope.draw.map import ConnectionMap, MapLine, MapUnit
from amqpscope.draw.words import wire_name
from amqpscope.limits import MAX_MAP_LINES
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER, FrameRecord
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import Listener091, SentContent
from amqpscope.tracking.amqp091.requests import MethodRequest
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicAck,
    BasicConsume,
    BasicConsumeOk,
    BasicGet,
    BasicReturn,
    ChannelClose,
    ChannelOpen,
    ConnectionOpen,
    ExchangeBind,
    ExchangeBindOk,
    QueueBind,
    QueueBindOk,
)

__all__ = ["ConnectionMap091"]

_FINE = (0, 200)
"""Reply-codes of a close without an error."""


class ConnectionMap091(ConnectionMap):
    """Follows one connection. The units are by the numbers of channels: their lives share one."""

    def follow(self, walk: Walk) -> None:
        walk.by(Conversation091).subscribe(_Events(self))

    def found_at(self, finding: Finding) -> object:
        return self.units.get(int(finding.channel), self)


class _Events(Listener091):
    """Turns events into units and lines."""

    def __init__(self, drawn: ConnectionMap091) -> None:
        self._map = drawn
        # By channel number, the queue of the last basic.get.
        self._fetched: dict[int, str] = {}

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        if isinstance(method, ConnectionOpen):
            self._map.host = wire_name(method.virtual_host)

    def channel_opened(self, record: FrameRecord, method: ChannelOpen, channel: Channel) -> None:
        self._unit(record)

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        if method.reply_code not in _FINE:
            self._unit(record).error = wire_name(f"{method.reply_code} {method.reply_text or ''}".rstrip())

    def consumer_started(self, record: FrameRecord, method: BasicConsume, consumer: Consumer) -> None:
        if consumer.tag:
            self._consumer(record, consumer.tag, consumer.queue)

    def consumer_confirmed(self, record: FrameRecord, method: BasicConsumeOk, consumer: Consumer) -> None:
        self._consumer(record, consumer.tag, consumer.queue)

    def requested(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        if isinstance(method, BasicGet):
            self._fetched[int(record.frame.channel)] = method.queue or ""
        elif isinstance(method, QueueBind | ExchangeBind) and method.no_wait:
            self._bind(request)

    def answered(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        if isinstance(method, QueueBindOk | ExchangeBindOk):
            self._bind(request)

    def _bind(self, request: MethodRequest) -> None:
        if len(self._map.bindings) < MAX_MAP_LINES:
            kind = request.name.partition(".")[0]
            self._map.bindings[wire_name(request.other), kind, wire_name(request.subject)] = None

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        method = content.method
        if content.publish is not None:
            self._publisher(record, content.publish.exchange, content.publish.routing_key).sent(
                int(record.time)
            )
        elif isinstance(method, BasicReturn):
            self._publisher(record, method.exchange or "", method.routing_key or "").refused += 1
        elif content.delivery is not None:
            self._taker(record, content.delivery, content.consumer).sent(int(record.time))

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        if not isinstance(method, BasicAck):
            for delivery in deliveries:
                self._taker(record, delivery, None).refused += 1

    def _unit(self, record: FrameRecord) -> MapUnit:
        number = int(record.frame.channel)
        return self._map.unit(number, f"channel {number}", record)

    def _line(self, record: FrameRecord, key: tuple[object, ...], line: MapLine) -> MapLine:
        return self._map.line(self._unit(record), (int(record.frame.channel), *key), line)

    def _publisher(self, record: FrameRecord, exchange: str, routing_key: str) -> MapLine:
        """Messages to an exchange; to the default exchange, to the queue that the routing key names."""
        kind, name = ("exchange", exchange) if exchange else ("queue", routing_key)
        line = MapLine("publishes", CLIENT, kind, wire_name(name), int(record.packet))
        return self._line(record, (kind, name), line)

    def _consumer(self, record: FrameRecord, tag: str, queue: str) -> MapLine:
        line = MapLine(f"consumer {wire_name(tag)}", SERVER, "queue", wire_name(queue), int(record.packet))
        return self._line(record, ("consumer", tag), line)

    def _taker(self, record: FrameRecord, delivery: ConsumerDelivery, consumer: Consumer | None) -> MapLine:
        """Who takes a delivery: a consumer, or a basic.get."""
        if delivery.consumer is not None:
            return self._consumer(record, delivery.consumer, "" if consumer is None else consumer.queue)
        queue = self._fetched.get(int(record.frame.channel), "")
        line = MapLine("gets", SERVER, "queue", wire_name(queue), int(record.packet))
        return self._line(record, ("gets", queue), line)
