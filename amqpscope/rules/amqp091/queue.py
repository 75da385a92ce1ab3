"""Queues: their names, the current one of a channel, what their answers say, and RabbitMQ's arguments.

Sources: the class queue and the domain queue-name of amqp0-9-1.xml; RabbitMQ's arguments of queue.declare.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.exchange import odd_character
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import QUEUE_DELETED
from amqpscope.tracking.amqp091.names import UNREADABLE
from amqpscope.tracking.amqp091.requests import IF_EMPTY, IF_UNUSED, PASSIVE, Request
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicDeliver,
    QueueBind,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
    QueuePurge,
    QueueUnbind,
)
from dissectors.amqp091.tables import RABBITMQ, FieldTable

__all__ = ["judge_deliver", "judge_method"]

# The current queue


def bind_of_no_queue(case: Case) -> None:
    """queue.bind has an empty queue name on a channel where no queue was declared.

    Why it matters: the empty name stands for the queue declared last on the channel; there is none, and the
    broker closes the channel.
    Silent when: octets since the channel was opened were not captured.
    """
    case.report("amqp091/Q-BIND-QKNOWN", _NO_QUEUE, CERTAIN)


def unbind_of_no_queue(case: Case) -> None:
    """queue.unbind has an empty queue name on a channel where no queue was declared.

    Why it matters: the empty name stands for the queue declared last on the channel; there is none, and the
    broker closes the channel.
    Silent when: octets since the channel was opened were not captured.
    """
    case.report("amqp091/Q-UNBIND-QKNOWN", _NO_QUEUE, CERTAIN)


def purge_of_no_queue(case: Case) -> None:
    """queue.purge has an empty queue name on a channel where no queue was declared.

    Why it matters: the empty name stands for the queue declared last on the channel; there is none, and the
    broker closes the channel.
    Silent when: octets since the channel was opened were not captured.
    """
    case.report("amqp091/Q-PURGE-QKNOWN", _NO_QUEUE, CERTAIN)


def delete_of_no_queue(case: Case) -> None:
    """queue.delete has an empty queue name on a channel where no queue was declared.

    Why it matters: the empty name stands for the queue declared last on the channel; there is none, and the
    broker closes the channel.
    Silent when: octets since the channel was opened were not captured.
    """
    case.report("amqp091/Q-DELETE-QKNOWN", _NO_QUEUE, CERTAIN)


def passive_declaration_of_no_queue(case: Case) -> None:
    """A passive queue.declare has an empty queue name on a channel where no queue was declared.

    Why it matters: it asks whether a queue exists, and says not which.
    Silent when: octets since the channel was opened were not captured. What the other methods with an empty
    name break has rules of its own.
    Only possible because: A broker may make a queue all the same.
    """
    case.report("amqp091/Q-CURRENT-DOMAIN", _NO_QUEUE, POSSIBLE)


_NO_QUEUE: Final = "the queue name is empty, and no queue was declared on this channel"


# Names


def name_of_odd_characters(case: Case, character: str) -> None:
    """The name of a queue has a character that is no letter, digit, hyphen, underscore, period or colon.

    Why it matters: another broker may refuse the name with 406. RabbitMQ and others take any name.
    Silent when: the same was told of the connection before, or the name begins with `amq.`, as those that
    brokers make up.
    """
    case.report_once(
        "amqp091/Q-DECL-SYNTAX",
        f"the name of a queue has the character {character!a}",
        CERTAIN,
        {"character": ascii(character)},
    )


def no_name_made_up(case: Case, request: Request) -> None:
    """queue.declare-ok gives no name to a queue that was declared without one.

    Why it matters: the client cannot name the queue that it has just made.
    Silent when: the request was not captured.
    """
    case.report(
        "amqp091/Q-DECL-GENNAME",
        f"queue.declare in packet {request.packet} asks for a name, queue.declare-ok has none",
        CERTAIN,
        None,
        [int(request.packet)],
    )


def another_name_declared(case: Case, request: Request, name: str) -> None:
    """queue.declare-ok names another queue than was declared.

    Why it matters: the client goes on with a queue that is not the one it asked for.
    Silent when: the request was not captured, or the name is that of another declaration that is not
    answered yet; line breaks in a name, which brokers drop, are not compared.
    """
    case.report(
        "amqp091/Q-DECLOK-NAME",
        f"queue.declare-ok names {name!a}, the queue declared in packet {request.packet} is "
        f"{request.subject!a}",
        CERTAIN,
        {"queue": ascii(name), "declared": ascii(request.subject)},
        [int(request.packet)],
    )


def new_queue_not_empty(case: Case, request: Request, count: int) -> None:
    """queue.declare-ok says that a queue whose name was just made up has messages in it.

    Why it matters: nobody can have published to it; the name is not new, or the count is wrong.
    Silent when: the request was not captured.
    """
    case.report(
        "amqp091/Q-DECLOK-EMPTY",
        f"a queue that has just got its name has {count} messages",
        CERTAIN,
        {"message_count": count},
        [int(request.packet)],
    )


# Deleting


def deleted_although_not_empty(case: Case, request: Request, count: int) -> None:
    """A queue is deleted with if-empty, and had messages.

    Why it matters: the messages are lost, which the client had asked not to happen.
    Silent when: the request was not captured.
    """
    case.report(
        "amqp091/Q-DELETE-NOTEMPTY",
        f"queue.delete-ok says that {count} messages are gone, queue.delete had if-empty",
        CERTAIN,
        {"message_count": count},
        [int(request.packet)],
    )


def deleted_although_in_use(case: Case, request: Request, tag: str) -> None:
    """A queue is deleted with if-unused, and the channel has a consumer of it.

    Why it matters: the consumer ends without having been cancelled.
    Silent when: the consumer is on another channel, or the request was not captured.
    Only possible because: The queue may have been deleted and made again by others meanwhile.
    """
    case.report(
        "amqp091/Q-DELETE-INUSE",
        f"queue.delete-ok answers if-unused, the consumer {tag!a} has not ended",
        POSSIBLE,
        {"consumer_tag": ascii(tag)},
        [int(request.packet)],
    )


def delivery_of_a_deleted_queue(case: Case, tag: str) -> None:
    """A consumer gets a delivery after queue.delete-ok of its queue on the same channel.

    Why it matters: with the queue its consumers are gone, and the client has let go of them.
    Silent when: the queue was deleted by way of another channel, or octets since the channel was opened
    were not captured.
    """
    case.report(
        "amqp091/Q-DELETE-CONSUMERS",
        f"basic.deliver to the consumer {tag!a}, whose queue was deleted on this channel",
        CERTAIN,
        {"consumer_tag": ascii(tag)},
    )


# RabbitMQ's arguments


def _count(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        return "no integer"
    return "negative" if value < 0 else ""


def _period(value: object) -> str:
    wrong = _count(value)
    return "not above zero" if not wrong and value == 0 else wrong


def _priority(value: object) -> str:
    wrong = _count(value)
    return "above 255" if not wrong and isinstance(value, int) and value > 255 else wrong


def _string(value: object) -> str:
    return "" if isinstance(value, (bytes, str)) else "no string"


def _flag(value: object) -> str:
    return "" if isinstance(value, bool) else "no boolean"


_OVERFLOWS: Final = ("drop-head", "reject-publish", "reject-publish-dlx")


def _overflow(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return _string(value) or ("" if text in _OVERFLOWS else "none of those that there are")


# What is wrong with the value of an argument, "" if nothing is; unknown ones are ignored.
_ARGUMENTS: Final[dict[str, Callable[[object], str]]] = {
    "x-expires": _period,
    "x-message-ttl": _count,
    "x-max-length": _count,
    "x-max-length-bytes": _count,
    "x-max-priority": _priority,
    "x-dead-letter-exchange": _string,
    "x-dead-letter-routing-key": _string,
    "x-overflow": _overflow,
    "x-queue-type": _string,
    "x-queue-mode": _string,
    "x-single-active-consumer": _flag,
}

_MOST_ARGUMENTS: Final = 64


def odd_argument(case: Case, name: str, why: str) -> None:
    """An argument of queue.declare is not of the type or in the range that RabbitMQ wants of it.

    Why it matters: RabbitMQ closes the channel with 406. Often a number is written as a string.
    Silent when: the server does not say that it is RabbitMQ, the declaration is passive, or the argument is
    unknown.
    """
    case.report(
        "amqp091/Q-XARGS",
        f"the argument {name} is {why}",
        CERTAIN,
        {"argument": name},
    )


def _judge_arguments(case: Case, table: FieldTable) -> None:
    for name, value in table.read(RABBITMQ).pairs[:_MOST_ARGUMENTS]:
        if isinstance(name, str):
            check = _ARGUMENTS.get(name)
            if check is not None:
                wrong = check(value)
                if wrong:
                    odd_argument(case, name, wrong)
                    return


def _judge_declare(case: Case, channel: Channel, method: QueueDeclare) -> None:
    name = method.queue
    if name == "":
        if method.passive and channel.lacks_queue():
            passive_declaration_of_no_queue(case)
    elif name is not None and not name.startswith("amq."):
        odd = odd_character(name)
        if odd:
            name_of_odd_characters(case, odd)
    table = method.arguments
    if table is not None and len(table) > 0 and not method.passive:
        server = case.view.server
        if server is not None and server.product == "RabbitMQ" and not case.record.frame.problems:
            _judge_arguments(case, table)


def _judge_declare_ok(case: Case, channel: Channel, method: QueueDeclareOk) -> None:
    at = channel.awaited(False, "queue.declare-ok")
    name = method.queue
    if at < 0 or name is None:
        return
    request = channel.requests[at]
    asked = request.subject
    if asked == UNREADABLE:
        return
    if asked == "":
        if name == "":
            no_name_made_up(case, request)
        elif method.message_count > 0 and PASSIVE not in request.flags:
            new_queue_not_empty(case, request, int(method.message_count))
    elif name != asked and name != asked.replace("\r", "").replace("\n", ""):
        for other in channel.requests:
            if other.name == "queue.declare" and other.subject == name:
                return
        another_name_declared(case, request, name)


def _judge_delete_ok(case: Case, channel: Channel, method: QueueDeleteOk) -> None:
    at = channel.awaited(False, "queue.delete-ok")
    if at < 0:
        return
    request = channel.requests[at]
    if method.message_count > 0 and IF_EMPTY in request.flags:
        deleted_although_not_empty(case, request, int(method.message_count))
    if IF_UNUSED in request.flags and request.subject:
        for tag, consumer in channel.consumers.of(request.subject).items():
            if consumer.ready and consumer.end < request.end:
                deleted_although_in_use(case, request, tag)
                return


def judge_method(case: Case, channel: Channel, method: Method) -> None:
    """A method of the class."""
    if not case.me.by_client:
        if channel.whole:
            if isinstance(method, QueueDeclareOk):
                _judge_declare_ok(case, channel, method)
            elif isinstance(method, QueueDeleteOk):
                _judge_delete_ok(case, channel, method)
    elif isinstance(method, QueueDeclare):
        _judge_declare(case, channel, method)
    elif isinstance(method, QueueBind):
        if method.queue == "" and channel.lacks_queue():
            bind_of_no_queue(case)
    elif isinstance(method, QueueUnbind):
        if method.queue == "" and channel.lacks_queue():
            unbind_of_no_queue(case)
    elif isinstance(method, QueuePurge):
        if method.queue == "" and channel.lacks_queue():
            purge_of_no_queue(case)
    elif isinstance(method, QueueDelete):
        if method.queue == "" and channel.lacks_queue():
            delete_of_no_queue(case)


def judge_deliver(case: Case, channel: Channel, method: BasicDeliver) -> None:
    """A delivery on a channel where consumers were ended."""
    tag = method.consumer_tag
    if tag is not None and channel.consumers.cancelled.get(tag) == QUEUE_DELETED and channel.whole:
        delivery_of_a_deleted_queue(case, tag)


RULES = {
    "amqp091/Q-BIND-QKNOWN": bind_of_no_queue,
    "amqp091/Q-UNBIND-QKNOWN": unbind_of_no_queue,
    "amqp091/Q-PURGE-QKNOWN": purge_of_no_queue,
    "amqp091/Q-DELETE-QKNOWN": delete_of_no_queue,
    "amqp091/Q-CURRENT-DOMAIN": passive_declaration_of_no_queue,
    "amqp091/Q-DECL-SYNTAX": name_of_odd_characters,
    "amqp091/Q-DECL-GENNAME": no_name_made_up,
    "amqp091/Q-DECLOK-NAME": another_name_declared,
    "amqp091/Q-DECLOK-EMPTY": new_queue_not_empty,
    "amqp091/Q-DELETE-NOTEMPTY": deleted_although_not_empty,
    "amqp091/Q-DELETE-INUSE": deleted_although_in_use,
    "amqp091/Q-DELETE-CONSUMERS": delivery_of_a_deleted_queue,
    "amqp091/Q-XARGS": odd_argument,
}
