"""Queues: their names, the current queue of a channel, the answers about queues, and RabbitMQ's arguments.

Sources: the class queue and the domain queue-name of amqp0-9-1.xml; RabbitMQ's arguments of queue.declare.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.exchange import odd_character
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import QUEUE_DELETED
from amqpscope.tracking.amqp091.names import UNREADABLE
from amqpscope.tracking.amqp091.requests import IF_EMPTY, IF_UNUSED, PASSIVE, MethodRequest
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
from dissectors.wording import count

__all__ = ["judge_deliver", "judge_method"]

RULES: Final = Rules("amqp091/queue")


# The current queue


Q_BIND_QKNOWN: Final = RULES.rule("Q-BIND-QKNOWN", "MUST", "tier A", by="client", answer="channel.close 404")


def bind_of_no_queue(case: Case091) -> None:
    """A client sends queue.bind with an empty queue name on a channel where no queue was declared.

    Demands: A queue.bind with an empty queue name must follow a queue.declare on the same channel.
    Source: XML:queue.bind.queue.queue-known
    Evidence: the queue that was last declared on the channel
    Why it matters: An empty queue name stands for the queue declared last on the channel. If no queue was
    declared on the channel, the server closes the channel.
    Silent when: the capture lacks octets that were sent after the channel was opened.
    How to mend it: Name the queue in queue.bind, or declare a queue on the same channel first. An empty queue
    name cannot stand for a queue that was declared on another channel or before the channel was reopened.
    """
    case.report(Q_BIND_QKNOWN, _NO_QUEUE, CERTAIN)


Q_UNBIND_QKNOWN: Final = RULES.rule(
    "Q-UNBIND-QKNOWN", "MUST", "tier A", by="client", answer="channel.close 404"
)


def unbind_of_no_queue(case: Case091) -> None:
    """A client sends queue.unbind with an empty queue name on a channel where no queue was declared.

    Demands: A queue.unbind with an empty queue name must follow a queue.declare on the same channel.
    Source: XML:queue.unbind.queue.queue-known
    Evidence: the queue that was last declared on the channel
    Why it matters: An empty queue name stands for the queue declared last on the channel. If no queue was
    declared on the channel, the server closes the channel.
    Silent when: the capture lacks octets that were sent after the channel was opened.
    How to mend it: Name the queue in queue.unbind, or declare a queue on the same channel first. An empty
    queue name cannot stand for a queue that was declared on another channel or before the channel was
    reopened.
    """
    case.report(Q_UNBIND_QKNOWN, _NO_QUEUE, CERTAIN)


Q_PURGE_QKNOWN: Final = RULES.rule(
    "Q-PURGE-QKNOWN", "MUST", "tier A", by="client", answer="channel.close 404"
)


def purge_of_no_queue(case: Case091) -> None:
    """A client sends queue.purge with an empty queue name on a channel where no queue was declared.

    Demands: A queue.purge with an empty queue name must follow a queue.declare on the same channel.
    Source: XML:queue.purge.queue.queue-known
    Evidence: the queue that was last declared on the channel
    Why it matters: An empty queue name stands for the queue declared last on the channel. If no queue was
    declared on the channel, the server closes the channel.
    Silent when: the capture lacks octets that were sent after the channel was opened.
    How to mend it: Name the queue in queue.purge, or declare a queue on the same channel first. An empty
    queue name cannot stand for a queue that was declared on another channel or before the channel was
    reopened.
    """
    case.report(Q_PURGE_QKNOWN, _NO_QUEUE, CERTAIN)


Q_DELETE_QKNOWN: Final = RULES.rule(
    "Q-DELETE-QKNOWN", "MUST", "tier A", by="client", answer="channel.close 404"
)


def delete_of_no_queue(case: Case091) -> None:
    """A client sends queue.delete with an empty queue name on a channel where no queue was declared.

    Demands: A queue.delete with an empty queue name must follow a queue.declare on the same channel.
    Source: XML:queue.delete.queue.queue-known
    Evidence: the queue that was last declared on the channel
    Why it matters: An empty queue name stands for the queue declared last on the channel. If no queue was
    declared on the channel, the server closes the channel.
    Silent when: the capture lacks octets that were sent after the channel was opened.
    How to mend it: Name the queue in queue.delete, or declare a queue on the same channel first. An empty
    queue name cannot stand for a queue that was declared on another channel or before the channel was
    reopened.
    """
    case.report(Q_DELETE_QKNOWN, _NO_QUEUE, CERTAIN)


Q_CURRENT_DOMAIN: Final = RULES.rule(
    "Q-CURRENT-DOMAIN", "IMPLIED", "tier A", by="client", answer="connection.close 502 or channel.close 404"
)


def passive_declaration_of_no_queue(case: Case091) -> None:
    """A client sends a passive queue.declare with an empty queue name on a channel where no queue was
    declared.

    Demands: A passive queue.declare with an empty queue name must follow a queue.declare on the same channel.
    Source: XML domain queue-name (doc); ERR:18
    Evidence: the queue.declare-ok methods on the channel
    Why it matters: An empty queue name stands for the queue declared last on the channel. If no queue was
    declared on the channel, the broker cannot know which queue the client asks for.
    Silent when: the capture lacks octets that were sent after the channel was opened. Other rules, such as
    amqp091/Q-BIND-QKNOWN, report other methods with an empty queue name.
    Only possible because: A broker may create a queue despite the passive request.
    How to mend it: Put the name of the queue into a passive queue.declare. To let the broker generate a name,
    send queue.declare with an empty name and without passive.
    """
    case.report(Q_CURRENT_DOMAIN, _NO_QUEUE, POSSIBLE)


_NO_QUEUE: Final = (
    "the queue name is empty, which means the last declared queue, but no queue was declared on this channel"
)


# Names


Q_DECL_SYNTAX: Final = RULES.rule(
    "Q-DECL-SYNTAX",
    "IMPLIED",
    "tier A",
    by="client",
    warning="Brokers are known not to enforce this rule.",
    answer="channel.close 406",
)


def name_of_odd_characters(case: Case091, character: str) -> None:
    """A client declares a queue whose name contains a character that is not a letter, digit, hyphen,
    underscore, period or colon.

    Demands: The name of a declared queue must be empty, or must contain only letters, digits, '-', '_', '.'
    and ':'.
    Source: XML:queue.declare.queue.syntax
    Evidence: the queue name in queue.declare
    Why it matters: Another broker may refuse the name with reply-code 406 (precondition-failed), so the
    application may fail with that broker. RabbitMQ and other brokers accept any name.
    Silent when: the rule has already reported such a name on the same connection. The rule is also silent
    when the name begins with `amq.`, because brokers generate such names.
    How to mend it: Use only ASCII letters, digits, `-`, `_`, `.` and `:` in queue names. If queue names are
    built from other texts, replace every character that is not allowed, such as spaces and slashes.
    """
    case.report_once(
        Q_DECL_SYNTAX,
        f"the queue name contains the character {character!a}, which the specification forbids",
        CERTAIN,
        {"character": ascii(character)},
    )


Q_DECL_GENNAME: Final = RULES.rule("Q-DECL-GENNAME", "MUST", "tier A", by="server")


def empty_name_answered_without_a_name(case: Case091, request: MethodRequest) -> None:
    """A client sends queue.declare with an empty queue name, and the server's queue.declare-ok has an empty
    queue name, too.

    Demands: If the queue name in queue.declare is empty, the server must generate a unique name and return it
    in queue.declare-ok.
    Source: XML:queue.declare.queue.default-name; XML:queue.declare-ok.queue assert notnull
    Evidence: the queue names in queue.declare and queue.declare-ok
    Why it matters: The client does not learn the name of the new queue, so the client can neither use the
    queue in later methods nor give its name to other clients.
    Silent when: the queue.declare was not captured.
    How to mend it: Whenever queue.declare has an empty name, generate a unique queue name and create the
    queue under this name. Return the generated name in queue.declare-ok.
    """
    case.report(
        Q_DECL_GENNAME,
        f"queue.declare in packet {request.packet} asks the server to generate a queue name, but "
        "queue.declare-ok has an empty name",
        CERTAIN,
        None,
        [int(request.packet)],
    )


Q_DECLOK_NAME: Final = RULES.rule(
    "Q-DECLOK-NAME",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def another_name_declared(case: Case091, request: MethodRequest, name: str) -> None:
    """The queue name in a server's queue.declare-ok differs from the queue name that the client declared.

    Demands: A queue.declare-ok must repeat the queue name of the queue.declare, unless that name is empty.
    Source: XML:queue.declare-ok.queue (field doc)
    Evidence: the queue names in queue.declare and queue.declare-ok
    Why it matters: The client continues with a queue that it did not ask for, and may consume or delete the
    messages of that queue.
    Silent when: the queue.declare was not captured, or when the name belongs to another queue.declare that is
    not answered yet. The rule ignores line breaks in a name, because brokers remove them.
    How to mend it: In queue.declare-ok, repeat exactly the queue name of the queue.declare that it answers.
    Send the answers on a channel in the order of the requests, so that names do not get mixed up.
    """
    case.report(
        Q_DECLOK_NAME,
        f"queue.declare-ok has the queue name {name!a}, but queue.declare in packet {request.packet} has "
        f"{request.subject!a}",
        CERTAIN,
        {"queue": ascii(name), "declared": ascii(request.subject)},
        [int(request.packet)],
    )


Q_DECLOK_EMPTY: Final = RULES.rule(
    "Q-DECLOK-EMPTY",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def new_queue_not_empty(case: Case091, request: MethodRequest, messages: int) -> None:
    """In queue.declare-ok, a server reports messages for a queue whose name the server has just generated.

    Demands: In queue.declare-ok for a new queue, message-count must be 0.
    Source: XML domain message-count (doc)
    Evidence: the message-count in the answer to a queue.declare with an empty queue name
    Why it matters: No client can have published to the new queue yet. Either the generated name is not new
    and clients share a queue unintentionally, or message-count is wrong.
    Silent when: the queue.declare was not captured.
    How to mend it: Check that every generated queue name is unique and not the name of an existing queue.
    Report message-count 0 in queue.declare-ok for a new queue.
    """
    case.report(
        Q_DECLOK_EMPTY,
        f"queue.declare-ok reports {count(messages, 'message')} in a new queue, which must be empty",
        CERTAIN,
        {"message_count": messages},
        [int(request.packet)],
    )


# Deleting


Q_DELETE_NOTEMPTY: Final = RULES.rule("Q-DELETE-NOTEMPTY", "MUST NOT", "tier B", by="server")


def deleted_although_not_empty(case: Case091, request: MethodRequest, messages: int) -> None:
    """A server deletes a queue that holds messages although queue.delete set if-empty.

    Demands: If queue.delete sets if-empty, the server must keep a queue that contains messages.
    Source: XML:queue.delete.if-empty.not-empty
    Evidence: a message-count above 0 in the answer to a queue.delete with if-empty
    Why it matters: The messages in the queue are lost, although the client wanted to delete only an empty
    queue.
    Silent when: the queue.delete was not captured.
    How to mend it: When queue.delete sets if-empty, check the number of messages and delete the queue in
    one atomic step. If the queue holds messages, keep the queue and close the channel with reply-code 406
    (precondition-failed).
    """
    case.report(
        Q_DELETE_NOTEMPTY,
        f"queue.delete-ok reports {count(messages, 'deleted message')}, although queue.delete set if-empty",
        CERTAIN,
        {"message_count": messages},
        [int(request.packet)],
    )


Q_DELETE_INUSE: Final = RULES.rule("Q-DELETE-INUSE", "MUST NOT", "tier B", by="server")


def deleted_although_in_use(case: Case091, request: MethodRequest, tag: str) -> None:
    """A server deletes a queue although queue.delete set if-unused and the channel has a consumer of the
    queue.

    Demands: If queue.delete sets if-unused, the server must keep a queue that has consumers.
    Source: XML:queue.delete.if-unused.in-use
    Evidence: the consumers of the queue, and queue.delete-ok
    Why it matters: The consumer ends although nobody cancelled it. The application of the consumer gets no
    further messages.
    Silent when: the consumer is on another channel, or when the queue.delete was not captured.
    Only possible because: Other clients may have deleted the queue, and so ended the consumer, and may then
    have declared the queue again.
    How to mend it: When queue.delete sets if-unused, count the consumers of the queue and delete the
    queue in one atomic step. If the queue has a consumer, keep the queue and close the channel with
    reply-code 406 (precondition-failed).
    """
    case.report(
        Q_DELETE_INUSE,
        "queue.delete-ok answers a queue.delete with if-unused, although the queue still has "
        f"consumer {tag!a}",
        POSSIBLE,
        {"consumer_tag": ascii(tag)},
        [int(request.packet)],
    )


Q_DELETE_CONSUMERS: Final = RULES.rule(
    "Q-DELETE-CONSUMERS",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def delivery_of_a_deleted_queue(case: Case091, tag: str) -> None:
    """A server sends basic.deliver to a consumer after queue.delete-ok for the queue of that consumer on the
    same channel.

    Demands: When a queue is deleted, its consumers must end, so that no consumer receives a delivery after
    queue.delete-ok.
    Source: XML:queue.delete (doc)
    Evidence: the queue of each consumer, and the deliveries on the channel after queue.delete-ok
    Why it matters: The client has already discarded the consumer. The client may drop the message or fail.
    Silent when: the queue was deleted through another channel, or when the capture lacks octets that were
    sent after the channel was opened.
    How to mend it: Stop all consumers of the queue before sending queue.delete-ok. Discard deliveries that
    are still waiting in the channel's output buffer, or send them before queue.delete-ok.
    """
    case.report(
        Q_DELETE_CONSUMERS,
        f"the peer sends basic.deliver to the consumer {tag!a}, whose queue was deleted on this channel",
        CERTAIN,
        {"consumer_tag": ascii(tag)},
    )


# RabbitMQ's arguments


def _count(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        return "not an integer"
    return "negative" if value < 0 else ""


def _period(value: object) -> str:
    wrong = _count(value)
    return "not above zero" if not wrong and value == 0 else wrong


def _priority(value: object) -> str:
    wrong = _count(value)
    return "above 255" if not wrong and isinstance(value, int) and value > 255 else wrong


def _string(value: object) -> str:
    return "" if isinstance(value, (bytes, str)) else "not a string"


def _flag(value: object) -> str:
    return "" if isinstance(value, bool) else "not a boolean"


_OVERFLOWS: Final = ("drop-head", "reject-publish", "reject-publish-dlx")


def _overflow(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return _string(value) or (
        "" if text in _OVERFLOWS else "not drop-head, reject-publish or reject-publish-dlx"
    )


# What is wrong with the value of an argument, "" if nothing is; unknown arguments are ignored.
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


Q_XARGS: Final = RULES.rule("Q-XARGS", "IMPLIED", "tier A", by="client", answer="channel.close 406")


def odd_argument(case: Case091, name: str, why: str) -> None:
    """A client sends queue.declare with an argument whose type or value RabbitMQ does not accept.

    Demands: RabbitMQ's arguments of queue.declare (x-...) must have the type that RabbitMQ expects, and a
    value that RabbitMQ allows.
    Source: RMQ:server rabbit_amqqueue declare_args
    Evidence: the arguments of queue.declare (x-message-ttl, x-expires, x-max-length, x-max-priority,
    x-queue-type and others)
    Why it matters: RabbitMQ closes the channel with reply-code 406 (precondition-failed) and does not
    create the queue. Often the client sends a number as a string.
    Silent when: the server does not identify itself as RabbitMQ, when the queue.declare is passive, or when
    amqpscope does not know the argument.
    How to mend it: Send the arguments of queue.declare with RabbitMQ's types: x-message-ttl, x-max-length and
    x-expires as integers, never as strings. The value of x-expires must be above 0, and that of
    x-max-priority at most 255.
    """
    case.report(
        Q_XARGS,
        f"the argument {name} is {why}",
        CERTAIN,
        {"argument": name},
    )


def _judge_arguments(case: Case091, table: FieldTable) -> None:
    for name, value in table.read(RABBITMQ).pairs[:_MOST_ARGUMENTS]:
        if isinstance(name, str):
            check = _ARGUMENTS.get(name)
            if check is not None:
                wrong = check(value)
                if wrong:
                    odd_argument(case, name, wrong)
                    return


def _judge_declare(case: Case091, channel: Channel, method: QueueDeclare) -> None:
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


def _judge_declare_ok(case: Case091, channel: Channel, method: QueueDeclareOk) -> None:
    at = channel.requests.awaited(False, "queue.declare-ok")
    name = method.queue
    if at < 0 or name is None:
        return
    request = channel.requests.by_client[at]
    asked = request.subject
    if asked == UNREADABLE:
        return
    if asked == "":
        if name == "":
            empty_name_answered_without_a_name(case, request)
        elif method.message_count > 0 and PASSIVE not in request.flags:
            new_queue_not_empty(case, request, int(method.message_count))
    elif name != asked and name != asked.replace("\r", "").replace("\n", ""):
        for other in channel.requests.by_client:
            if other.name == "queue.declare" and other.subject == name:
                return
        another_name_declared(case, request, name)


def _judge_delete_ok(case: Case091, channel: Channel, method: QueueDeleteOk) -> None:
    at = channel.requests.awaited(False, "queue.delete-ok")
    if at < 0:
        return
    request = channel.requests.by_client[at]
    if method.message_count > 0 and IF_EMPTY in request.flags:
        deleted_although_not_empty(case, request, int(method.message_count))
    if IF_UNUSED in request.flags and request.subject:
        for tag, consumer in channel.consumers.of(request.subject).items():
            if consumer.ready and consumer.end < request.end:
                deleted_although_in_use(case, request, tag)
                return


def judge_method(case: Case091, channel: Channel, method: Method) -> None:
    """A method of the class queue."""
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


def judge_deliver(case: Case091, channel: Channel, method: BasicDeliver) -> None:
    """A delivery on a channel on which consumers were ended."""
    tag = method.consumer_tag
    if tag is not None and channel.consumers.cancelled.get(tag) == QUEUE_DELETED and channel.whole:
        delivery_of_a_deleted_queue(case, tag)
