"""What a request of AMQP 0-9-1 says of queues, exchanges, bindings and consumers, as an operation."""

from amqpscope.limits import MAX_OPERATION_ARGUMENTS
from amqpscope.tracking.amqp091.names import readable
from amqpscope.tracking.amqp091.topology_operations import (
    AUTO_DELETE,
    DURABLE,
    EXCLUSIVE,
    IF_EMPTY,
    IF_UNUSED,
    INTERNAL,
    NO_ACK,
    NO_LOCAL,
    NO_WAIT,
    PASSIVE,
    TopologyOperation,
)
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicCancel,
    BasicConsume,
    BasicGet,
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
from dissectors.amqp091.tables import FieldTable
from dissectors.wire import i64

__all__ = ["describe"]


def describe(operation: TopologyOperation, method: Method) -> None:
    """Record what a request says."""
    flags: i64 = 0
    if isinstance(method, QueueDeclare):
        operation.queue = readable(method.queue)
        flags = _flags(method.passive, method.durable, method.no_wait)
        flags |= EXCLUSIVE if method.exclusive else 0
        flags |= AUTO_DELETE if method.auto_delete else 0
        operation.arguments = _octets(method.arguments)
    elif isinstance(method, ExchangeDeclare):
        operation.exchange = readable(method.exchange)
        operation.kind = readable(method.type)
        flags = _flags(method.passive, method.durable, method.no_wait)
        flags |= AUTO_DELETE if method.reserved_2 else 0
        flags |= INTERNAL if method.reserved_3 else 0
        operation.arguments = _octets(method.arguments)
    elif isinstance(method, QueueDelete):
        operation.queue = readable(method.queue)
        flags = _flags(False, False, method.no_wait)
        flags |= IF_UNUSED if method.if_unused else 0
        flags |= IF_EMPTY if method.if_empty else 0
    elif isinstance(method, ExchangeDelete):
        operation.exchange = readable(method.exchange)
        flags = _flags(False, False, method.no_wait)
        flags |= IF_UNUSED if method.if_unused else 0
    elif isinstance(method, QueueBind):
        operation.queue, operation.exchange, operation.key = (
            readable(method.queue),
            readable(method.exchange),
            _key(method),
        )
        flags = _flags(False, False, method.no_wait)
        operation.arguments = _octets(method.arguments)
    elif isinstance(method, QueueUnbind):
        operation.queue, operation.exchange, operation.key = (
            readable(method.queue),
            readable(method.exchange),
            _key(method),
        )
        operation.arguments = _octets(method.arguments)
    elif isinstance(method, (ExchangeBind, ExchangeUnbind)):
        operation.destination, operation.exchange = readable(method.destination), readable(method.source)
        operation.key = readable(method.routing_key)
        flags = _flags(False, False, method.no_wait)
        operation.arguments = _octets(method.arguments)
    elif isinstance(method, QueuePurge):
        operation.queue = readable(method.queue)
        flags = _flags(False, False, method.no_wait)
    elif isinstance(method, BasicConsume):
        operation.queue, operation.tag = readable(method.queue), readable(method.consumer_tag)
        flags = _flags(False, False, method.no_wait)
        flags |= EXCLUSIVE if method.exclusive else 0
        flags |= NO_ACK if method.no_ack else 0
        flags |= NO_LOCAL if method.no_local else 0
        operation.arguments = _octets(method.arguments)
    elif isinstance(method, BasicCancel):
        operation.tag = readable(method.consumer_tag)
        flags = _flags(False, False, method.no_wait)
    elif isinstance(method, BasicGet):
        operation.queue = readable(method.queue)
        flags |= NO_ACK if method.no_ack else 0
    operation.flags = flags


def _key(method: QueueBind | QueueUnbind) -> str:
    return readable(method.routing_key)


def _flags(passive: bool, durable: bool, no_wait: bool) -> i64:
    flags: i64 = PASSIVE if passive else 0
    if durable:
        flags |= DURABLE
    if no_wait:
        flags |= NO_WAIT
    return flags


def _octets(table: FieldTable | None) -> bytes | None:
    if table is None:
        return b""
    return table.octets if len(table.octets) <= MAX_OPERATION_ARGUMENTS else None
