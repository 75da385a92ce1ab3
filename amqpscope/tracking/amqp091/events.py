"""The events of an AMQP 0-9-1 connection, which `Conversation091` emits.

Each event has the record of its frame first, and the decoded method. A method whose arguments were misread
has none.
"""

from mypy_extensions import mypyc_attr

from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp091.requests import MethodRequest
from amqpscope.tracking.events import Listener
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp091.methods import (
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    ChannelClose,
    ChannelOpen,
)
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

__all__ = ["Listener091", "SentContent", "Taker091"]


class SentContent:
    """A method with content, and the part of its content that its sender has sent so far."""

    def __init__(
        self, method: Method, packet: i64, on: i64, channel: Channel | None, by_client: bool
    ) -> None:
        # basic.publish, basic.return, basic.deliver or basic.get-ok.
        self.method: Method = method
        # The packet in which the method begins.
        self.packet: i64 = packet
        # The number of the channel that it is sent on, and the life of that, None if there are too many.
        self.on: i64 = on
        self.channel: Channel | None = channel
        # The client sends it.
        self.by_client: bool = by_client
        # What basic.deliver or basic.get-ok delivers, None of other methods.
        self.delivery: ConsumerDelivery | None = None
        # The consumer that basic.deliver is for, or that had its tag until it was cancelled, if known.
        self.consumer: Consumer | None = None
        # What basic.publish publishes, from when its content is complete, else None.
        self.publish: Publish | None = None
        # The number by which that is confirmed, 0 if it is not, or if the number is not known.
        self.number: int = 0
        # Body frames, and their octets of body that were captured.
        self.frames: i64 = 0
        self.octets: i64 = 0
        # What was put together of it, from when it is over.
        self.message: Amqp091Message | None = None

    def begin_again(
        self, method: Method, packet: i64, on: i64, channel: Channel | None, by_client: bool
    ) -> None:
        """The object, whose content is over, stands for another content that begins."""
        self.method = method
        self.packet = packet
        self.on = on
        self.channel = channel
        self.by_client = by_client
        self.delivery = None
        self.consumer = None
        self.publish = None
        self.number = 0
        self.frames = 0
        self.octets = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Listener091(Listener):
    """Takes the events of one connection. A subscriber overrides the methods that it needs."""

    def header(self, record: FrameRecord, header: ProtocolHeader) -> None:
        """A protocol header."""

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        """A method of the class connection, or any other on channel 0."""

    def channel_opened(self, record: FrameRecord, method: ChannelOpen, channel: Channel) -> None:
        """channel.open: the channel's life begins."""

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        """channel.close of either peer. Unacknowledged deliveries and unconfirmed messages of the channel
        still exist.
        """

    def channel_ended(self, record: FrameRecord, channel: Channel) -> None:
        """channel.close-ok that ends the channel's life, or the next channel.open if channel.close-ok was not
        captured.
        """

    def requested(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        """A method of either peer that asks for an answer, or would ask for one without no-wait."""

    def answered(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        """A method that answers a request of the other peer."""

    def consumer_started(self, record: FrameRecord, method: BasicConsume, consumer: Consumer) -> None:
        """The client starts a consumer, whose tag the server may choose."""

    def consumer_confirmed(self, record: FrameRecord, method: BasicConsumeOk, consumer: Consumer) -> None:
        """The server has started a consumer. Its tag is known from now on."""

    def consumer_cancelled(
        self, record: FrameRecord, method: BasicCancel | BasicCancelOk, consumer: Consumer
    ) -> None:
        """Either peer cancels a consumer, or confirms a cancellation."""

    def content_started(self, record: FrameRecord, method: Method, content: SentContent) -> None:
        """A method with content: a message is published, returned, delivered or fetched."""

    def content_continued(self, record: FrameRecord, content: SentContent) -> None:
        """A content header, or a body frame."""

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        """The content is complete, or is cut short by this frame."""

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        """The client's basic.ack, nack or reject, and the deliveries that it names, oldest first."""

    def recovered(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        """basic.recover, and the deliveries that it returns to their queues."""

    def confirmed(self, record: FrameRecord, method: Method, publishes: list[Publish]) -> None:
        """The server's basic.ack or basic.nack, and the messages that it names, oldest first.

        Messages whose numbers are in doubt are left out: those after a loss, or after content that was cut
        short.
        """

    def channel_method(self, record: FrameRecord, method: Method, channel: Channel) -> None:
        """Any method on a known channel, after its more specific events."""

    def stray(self, record: FrameRecord) -> None:
        """A method on an unknown channel, or content that belongs to no method."""

    def other(self, record: FrameRecord) -> None:
        """All other frames: a heartbeat, an unknown method or frame, octets that were not captured."""


class Taker091:
    """A listener that takes an event, in a chain of those that do. next: the next one, None for none.

    mypyc: a chain, because it checks the type of what stands in a list at each use.
    """

    def __init__(self, listener: Listener091) -> None:
        self.listener: Listener091 = listener
        self.next: Taker091 | None = None

    def append(self, listener: Listener091) -> None:
        """Have a listener take the event, behind the others."""
        last = self
        while last.next is not None:
            last = last.next
        last.next = Taker091(listener)
