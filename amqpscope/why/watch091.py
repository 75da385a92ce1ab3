"""AMQP 0-9-1: which later methods answer one, or come of it."""

from amqpscope.model.records import FrameRecord
from amqpscope.why.watch import AnswerWatch
from dissectors.amqp091.arguments import Method, UnknownMethod
from dissectors.amqp091.methods import (
    BasicAck,
    BasicConsume,
    BasicDeliver,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicReject,
    BasicReturn,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ConnectionClose,
    ConnectionCloseOk,
)
from dissectors.amqp091.registry import METHODS, new_method

__all__ = ["NEXT_STEPS", "RESPONSES", "Watch091"]

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


class Watch091(AnswerWatch):
    """Looks for what answers a method. number: of a message published, 0 without confirms."""

    def __init__(self, record: FrameRecord, number: int) -> None:
        super().__init__()
        self._direction = int(record.direction)
        self._channel = int(record.frame.channel)
        self._name = record.frame.name
        self._kind = record.frame.kind
        self._body = record.frame.body
        self._number = number

    def see(self, record: FrameRecord) -> None:
        body = record.frame.body
        own = int(record.direction) == self._direction
        # What its own sender ends the other peer may end at the same time, and say why.
        if isinstance(body, ConnectionClose):
            self.add(f"the connection is closed with {self._why(body)}", record, last=not own)
            return
        if isinstance(body, ConnectionCloseOk) and not isinstance(self._body, ConnectionClose):
            self.over = True
            return
        if self._kind == "header" and not own:
            self.add("the answer", record, last=True)
            return
        if int(record.frame.channel) != self._channel:
            return
        if isinstance(body, ChannelClose):
            self.add(f"the channel is closed with {self._why(body)}", record, last=not own)
        elif isinstance(body, (ChannelCloseOk, ChannelOpen)) and not isinstance(self._body, ChannelClose):
            self.over = True
        elif isinstance(body, Method) and not isinstance(body, UnknownMethod):
            self._method(record, body, own)

    def _why(self, close: ChannelClose | ConnectionClose) -> str:
        """The code of a close, and whether it names the method in question."""
        code = str(int(close.reply_code))
        named = new_method(close.class_id, close.method_id)
        if named is None or named.definition().name != self._name:
            return code
        return f"{code}, which names {self._name}"

    def _method(self, record: FrameRecord, body: Method, own: bool) -> None:
        mine = self._body
        name = body.definition().name
        if not own and name in RESPONSES.get(self._name, ()):
            self.add("the answer", record, last=True)
        elif not own and NEXT_STEPS.get(self._name) == name:
            self.add("the next step of the set-up", record, last=True)
        elif isinstance(mine, (BasicDeliver, BasicGetOk)) and not own:
            if isinstance(body, (BasicAck, BasicNack, BasicReject)) and _covers(body, mine.delivery_tag):
                self.add("answers the delivery", record, last=True)
        elif isinstance(mine, BasicPublish) and not own:
            if isinstance(body, BasicReturn):
                same = body.exchange == mine.exchange and body.routing_key == mine.routing_key
                if same and (mine.mandatory or mine.immediate):
                    self.add("a message so addressed comes back", record, last=not self._number)
            elif self._number and isinstance(body, (BasicAck, BasicNack)) and _covers(body, self._number):
                self.add("confirms the message", record, last=True)
        elif isinstance(mine, BasicConsume) and not own and isinstance(body, BasicDeliver):
            if body.consumer_tag == mine.consumer_tag:
                self.add("the first delivery to the consumer", record, last=True)


def _covers(body: BasicAck | BasicNack | BasicReject, tag: int) -> bool:
    """Whether an acknowledgement or a confirm names a tag."""
    multiple = isinstance(body, (BasicAck, BasicNack)) and body.multiple
    return body.delivery_tag == tag or (multiple and (body.delivery_tag == 0 or body.delivery_tag >= tag))
