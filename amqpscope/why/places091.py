"""AMQP 0-9-1: where each thing was said that matters to later frames.

Of each channel, consumer, delivery, message and request it is remembered where it began, and of deliveries
and messages where they were answered. Of each channel the newest frame of every method is remembered, too, by
who said it.
"""

from amqpscope.model.records import CLIENT, FrameRecord
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import Listener091, SentContent
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp091.requests import MethodRequest
from amqpscope.why.frame_ref import Position
from amqpscope.why.remembered import Recent
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicConsume,
    BasicQos,
    ChannelFlow,
    ConnectionTune,
    ConnectionTuneOk,
)
from dissectors.protocol_header import ProtocolHeader

__all__ = ["ChannelPlaces", "Places091"]


class ChannelPlaces:
    """Where what was said in one life of a channel. Keys of `said` begin with whether the client said it."""

    def __init__(self) -> None:
        self.said: dict[tuple[bool, str], Position] = {}
        self.closed: Position | None = None  # by the frame that ended this life
        self.consumer: Position | None = None  # the newest
        self.delivery: Position | None = None  # the newest
        self.prefetch = ""
        self.flow = ""


class ContentPlaces:
    """Where a method with content stands, and the header of the content."""

    def __init__(self, method: Position) -> None:
        self.method = method
        self.header: Position | None = None


class Places091(Listener091):
    """Where what was said on one connection, by the events of its conversation. It is bounded."""

    def __init__(self, conversation: Conversation091) -> None:
        self._conversation = conversation
        conversation.subscribe(self)
        # The newest protocol header, and the newest frame, by whether the client said it.
        self.headers: dict[bool, Position] = {}
        self.newest: dict[bool, Position] = {}
        # What connection.tune and connection.tune-ok say.
        self.tune = ""
        self.tuned = ""
        # The newest of each method of the connection, by whether the client said it.
        self.said: dict[tuple[bool, str], Position] = {}
        # What is remembered of each life of a channel.
        self.channels: Recent[Channel, ChannelPlaces] = Recent()
        # The content that is being sent.
        self.content: dict[SentContent, ContentPlaces] = {}
        # Where each request was made, and where each consumer was started.
        self.requests: Recent[MethodRequest, Position] = Recent()
        self.consumers: Recent[Consumer, Position] = Recent()
        # By channel and delivery-tag: where each message was delivered, and where the client acknowledged it.
        self.deliveries: Recent[tuple[Channel, int], Position] = Recent()
        self.acknowledgements: Recent[tuple[Channel, int], Position] = Recent()
        # Where each message was published; by channel and number, too, and where the server confirmed it.
        self.messages: Recent[Publish, Position] = Recent()
        self.published: Recent[tuple[Channel, int], Position] = Recent()
        self.confirms: Recent[tuple[Channel, int], Position] = Recent()
        # Where an exchange or a queue was declared or deleted last: by kind and name.
        self.entities: Recent[tuple[str, str], tuple[str, Position]] = Recent()

    def header(self, record: FrameRecord, header: ProtocolHeader) -> None:
        self.headers[record.peer == CLIENT] = Position.of(record)

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        self.said[(record.peer == CLIENT, method.definition().name)] = Position.of(record)
        if isinstance(method, ConnectionTune):
            self.tune = _limits(method)
        elif isinstance(method, ConnectionTuneOk):
            self.tuned = _limits(method)

    def channel_ended(self, record: FrameRecord, channel: Channel) -> None:
        places = self.channels.get(channel)
        if places is not None:
            places.closed = Position.of(record)

    def channel_method(self, record: FrameRecord, method: Method, channel: Channel) -> None:
        places = self._on(channel)
        mark = Position.of(record)
        name = method.definition().name
        places.said[(record.peer == CLIENT, name)] = mark
        if isinstance(method, BasicQos):
            places.prefetch = f"{method.prefetch_count}{' for the channel' if method.global_ else ''}"
        elif isinstance(method, ChannelFlow):
            places.flow = "go on" if method.active else "stop"
        elif name in ("exchange.declare", "exchange.delete", "queue.declare", "queue.delete"):
            kind = name.partition(".")[0]
            for field, value in method.fields():
                if field.name == kind and isinstance(value, str) and value:
                    self.entities.put((kind, value), (name, mark))

    def _on(self, channel: Channel) -> ChannelPlaces:
        """What is remembered of a channel, from its first method on."""
        places = self.channels.get(channel)
        if places is None:
            places = ChannelPlaces()
            self.channels.put(channel, places)
        return places

    def requested(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        self.requests.put(request, Position.of(record))

    def consumer_started(self, record: FrameRecord, method: BasicConsume, consumer: Consumer) -> None:
        mark = Position.of(record)
        self.consumers.put(consumer, mark)
        channel = self._conversation.channel_of(record)
        if channel is not None:
            self._on(channel).consumer = mark

    def content_started(self, record: FrameRecord, method: Method, content: SentContent) -> None:
        mark = Position.of(record)
        self.content[content] = ContentPlaces(mark)
        if content.channel is not None and content.delivery is not None:
            self.deliveries.put((content.channel, content.delivery.tag), mark)
            self._on(content.channel).delivery = mark

    def content_continued(self, record: FrameRecord, content: SentContent) -> None:
        if record.frame.kind == "content-header":
            self.content[content].header = Position.of(record)

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        mark = self.content.pop(content).method
        if content.publish is not None and content.channel is not None:
            self.messages.put(content.publish, mark)
            if content.number:
                self.published.put((content.channel, content.number), mark)

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        channel, mark = self._conversation.channel_of(record), Position.of(record)
        if channel is not None:
            for delivery in deliveries:
                self.acknowledgements.put((channel, delivery.tag), mark)

    def confirmed(self, record: FrameRecord, method: Method, publishes: list[Publish]) -> None:
        channel, mark = self._conversation.channel_of(record), Position.of(record)
        if channel is not None:
            for publish in publishes:
                self.confirms.put((channel, publish.number), mark)


def _limits(body: ConnectionTune | ConnectionTuneOk) -> str:
    """What a tune, or the answer to it, says."""
    return f"channel-max {body.channel_max}, frame-max {body.frame_max}, heartbeat {body.heartbeat} s"
