"""AMQP 0-9-1: which later methods answer one, or come of it."""

from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import Listener091, SentContent
from amqpscope.tracking.amqp091.names import readable
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp091.requests import MethodRequest
from amqpscope.why.watch import AnswerWatch
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicConsume,
    BasicDeliver,
    BasicReturn,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionStart,
)
from dissectors.amqp091.registry import METHODS, new_method
from dissectors.protocol_header import ProtocolHeader

__all__ = ["NEXT_STEPS", "RESPONSES", "AnswerWatch091"]

NEXT_STEPS = {
    "connection.start": "connection.start-ok",
    "connection.start-ok": "connection.tune",
    "connection.secure": "connection.secure-ok",
    "connection.secure-ok": "connection.tune",
    "connection.tune": "connection.tune-ok",
    "connection.tune-ok": "",
    "connection.open": "connection.open-ok",
    "connection.open-ok": "",
}
"""The steps of the set-up, each with the one of the other peer's that it asks for."""

RESPONSES: dict[str, tuple[str, ...]] = {method.name: method.responses for method in METHODS}
"""The methods that answer each."""


class AnswerWatch091(AnswerWatch, Listener091):
    """Looks for what answers a method.

    record: of the frame in question, which the conversation takes next.
    """

    def __init__(self, record: FrameRecord, conversation: Conversation091) -> None:
        super().__init__()
        self._record = record
        self._name = record.frame.name
        self._body = record.frame.body
        self._conversation = conversation
        self._channel = conversation.channel_of(record)
        # What the frame in question asks for, begins or sends.
        self._request: MethodRequest | None = None
        self._consumer: Consumer | None = None
        self._content: SentContent | None = None
        conversation.subscribe(self)

    def _later(self, record: FrameRecord) -> bool:
        """Whether a frame is behind the one in question, and something is still looked for."""
        return not self.over and record is not self._record

    def _answers(self, record: FrameRecord) -> bool:
        """Whether a frame is a later one of the other peer's."""
        return self._later(record) and record.direction != self._record.direction

    def _why(self, close: ChannelClose | ConnectionClose) -> str:
        """The code of a close, and whether it names the method in question."""
        code = str(int(close.reply_code))
        named = new_method(close.class_id, close.method_id)
        if named is None or named.definition().name != self._name:
            return code
        return f"{code}, and the close names {self._name}"

    # The connection

    def header(self, record: FrameRecord, header: ProtocolHeader) -> None:
        if self._answers(record) and self._record.frame.kind == "header":
            self.add("the answer", record, last=True)

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        if not self._later(record):
            return
        name = method.definition().name
        answers = self._answers(record)
        if isinstance(method, ConnectionClose):
            # What its own sender ends the other peer may end at the same time, and say why.
            self.add(f"the connection is closed with {self._why(method)}", record, last=answers)
        elif answers and (name in RESPONSES.get(self._name, ()) or self._begun_by(method)):
            self.add("the answer", record, last=True)
        elif answers and NEXT_STEPS.get(self._name) == name:
            self.add("the next step of the connection set-up", record, last=True)
        elif isinstance(method, ConnectionCloseOk) and not isinstance(self._body, ConnectionClose):
            self.over = True

    def _begun_by(self, method: Method) -> bool:
        """Whether the frame in question is a protocol header, and this method answers it."""
        return isinstance(method, ConnectionStart) and self._record.frame.kind == "header"

    # Channels

    def channel_method(self, record: FrameRecord, method: Method, channel: Channel) -> None:
        if record is self._record:
            self._channel = channel
        if not self._later(record) or channel is not self._channel:
            return
        if isinstance(method, ChannelClose):
            answers = self._answers(record)
            self.add(f"the channel is closed with {self._why(method)}", record, last=answers)
        elif isinstance(method, ChannelCloseOk):
            if not isinstance(self._body, ChannelClose):
                self.over = True
            elif self._answers(record):
                self.add("the answer", record, last=True)

    def channel_opened(self, record: FrameRecord, method: ChannelOpen, channel: Channel) -> None:
        if self._later(record) and self._channel is not None and channel.number == self._channel.number:
            self.over = True

    def requested(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        if record is self._record:
            self._request = request

    def answered(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        if self._later(record) and request is self._request:
            self.add("the answer", record, last=True)

    def consumer_started(self, record: FrameRecord, method: BasicConsume, consumer: Consumer) -> None:
        if record is self._record:
            self._consumer = consumer

    # Messages

    def content_started(self, record: FrameRecord, method: Method, content: SentContent) -> None:
        if record is self._record:
            self._content = content
        elif not self._answers(record):
            return
        elif isinstance(method, BasicReturn) and content.channel is self._channel is not None:
            known = self._channel.publishes.returnable(
                readable(method.exchange), readable(method.routing_key)
            )
            if self._content is not None and self._content.publish in known:
                self.add(
                    "a message with the same exchange and routing key is returned",
                    record,
                    last=not self._content.number,
                )
        elif isinstance(method, BasicDeliver) and content.consumer is self._consumer is not None:
            self.add("the first delivery to the consumer", record, last=True)

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        if self._answers(record) and self._content is not None and self._content.delivery in deliveries:
            self.add("settles the delivery", record, last=True)

    def recovered(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        if self._answers(record) and self._content is not None and self._content.delivery in deliveries:
            self.add("requeues the delivery", record, last=True)

    def confirmed(self, record: FrameRecord, method: Method, publishes: list[Publish]) -> None:
        if self._answers(record) and self._content is not None and self._content.publish in publishes:
            self.add("confirms the message", record, last=True)
