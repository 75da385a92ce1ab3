"""What a method asks of the other peer: its subject, and the methods that answer it.

Theory of operation. A method that has answers is a request, unless it sets no-wait. Everything that a later
answer or refusal is compared with is taken from the request when it is sent. That includes the queue of a
request without a queue name: the queue that was declared last on its channel.
"""

from typing import Any, Final

from amqpscope.tracking.amqp091.names import readable
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicCancel,
    BasicConsume,
    BasicGet,
    ChannelFlow,
    ConfirmSelect,
    ExchangeBind,
    ExchangeDeclare,
    ExchangeDelete,
    ExchangeUnbind,
    QueueBind,
    QueueDeclare,
    QueueDelete,
    QueuePurge,
    QueueUnbind,
)
from dissectors.wire import i64

__all__ = [
    "AUTO_DELETE",
    "DURABLE",
    "EXCLUSIVE",
    "IF_EMPTY",
    "IF_UNUSED",
    "NO_ACK",
    "PASSIVE",
    "MethodRequest",
    "waits",
]

PASSIVE: Final = "p"
DURABLE: Final = "d"
EXCLUSIVE: Final = "x"
AUTO_DELETE: Final = "a"
IF_UNUSED: Final = "u"
IF_EMPTY: Final = "e"
"""The flags of a request, each a letter."""

NO_ACK: Final = "no-ack"
"""What a basic.get is about whose message needs no acknowledgement."""


class MethodRequest:
    """A method that asks for an answer.

    name: of the method. responses: the methods that answer it. end, packet, time: its place. subject: a
    queue, an exchange, a consumer-tag, or "1" or "0" of channel.flow. other: what else it names: the exchange
    or source of a binding, or the type of an exchange. flags: the set flags, by their letters (PASSIVE and so
    on).
    """

    def __init__(self, name: str, responses: tuple[str, ...], end: i64, packet: i64, time: i64) -> None:
        self.name: str = name
        self.responses: tuple[str, ...] = responses
        self.end: i64 = end
        self.packet: i64 = packet
        self.time: i64 = time
        self.subject: str = ""
        self.other: str = ""
        self.flags: str = ""

    @staticmethod
    def of(method: Method, queue: str, end: i64, packet: i64, time: i64) -> "MethodRequest":
        """The request in a method. queue: the queue that the method means if it names none."""
        definition = method.definition()
        request = MethodRequest(definition.name, definition.responses, end, packet, time)
        if isinstance(method, (BasicConsume, BasicCancel)):
            request.subject = readable(method.consumer_tag)
        elif isinstance(method, BasicGet):
            request.subject = NO_ACK if method.no_ack else ""
        elif isinstance(method, ChannelFlow):
            request.subject = "1" if method.active else "0"
        else:
            request.name_queue(method, queue)
            request.name_exchange(method)
        return request

    def name_queue(self, method: Method, queue: str) -> None:
        """For a method about a queue: which queue, its flags, and the other end of a binding."""
        if isinstance(method, QueueDeclare):
            self.subject = readable(method.queue)
            self.flags = (
                (PASSIVE if method.passive else "")
                + (DURABLE if method.durable else "")
                + (EXCLUSIVE if method.exclusive else "")
                + (AUTO_DELETE if method.auto_delete else "")
            )
        elif isinstance(method, (QueueBind, QueueUnbind)):
            self.subject = readable(method.queue) or queue
            self.other = readable(method.exchange)
        elif isinstance(method, QueuePurge):
            self.subject = readable(method.queue) or queue
        elif isinstance(method, QueueDelete):
            self.subject = readable(method.queue) or queue
            self.flags = (IF_UNUSED if method.if_unused else "") + (IF_EMPTY if method.if_empty else "")

    def name_exchange(self, method: Method) -> None:
        """For a method about an exchange: which exchange, its flags, and the other end of a binding."""
        if isinstance(method, ExchangeDeclare):
            self.subject = readable(method.exchange)
            self.other = readable(method.type)
            self.flags = (PASSIVE if method.passive else "") + (DURABLE if method.durable else "")
        elif isinstance(method, ExchangeDelete):
            self.subject = readable(method.exchange)
            self.flags = IF_UNUSED if method.if_unused else ""
        elif isinstance(method, (ExchangeBind, ExchangeUnbind)):
            self.subject = readable(method.destination)
            self.other = readable(method.source)

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        where = (int(self.end), int(self.packet), int(self.time))
        return (self.name, self.responses, *where, self.subject, self.other, self.flags)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "MethodRequest":
        """The object of what `dump` returned."""
        request = MethodRequest(*state[:5])
        request.subject, request.other, request.flags = state[5:]
        return request


def waits(method: Method) -> bool:
    """Whether its sender wants an answer, if the method has one: no-wait is not set."""
    if isinstance(method, (BasicConsume, BasicCancel, ConfirmSelect)):
        return not method.no_wait
    if isinstance(method, (QueueDeclare, QueueBind, QueuePurge, QueueDelete)):
        return not method.no_wait
    if isinstance(method, (ExchangeDeclare, ExchangeDelete, ExchangeBind, ExchangeUnbind)):
        return not method.no_wait
    return True
