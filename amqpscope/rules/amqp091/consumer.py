"""Consumers: basic.consume, basic.cancel, basic.get, basic.recover and their answers (class basic; RabbitMQ).

The client chooses the consumer-tags of a channel. A RabbitMQ server may cancel a consumer, too.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import REPLIES, Consumer
from amqpscope.tracking.amqp091.states import OPEN
from dissectors.amqp091.methods import (
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicGet,
    BasicRecover,
)
from dissectors.amqp091.tables import RABBITMQ
from dissectors.values import Moment
from dissectors.wire import i64

__all__ = [
    "judge_cancel",
    "judge_cancel_ok",
    "judge_consume",
    "judge_consume_ok",
    "judge_get",
    "judge_recover",
    "judge_server_cancel",
    "judge_server_cancel_ok",
]

RULES: Final = Rules("amqp091/consumer")


B_CTAG_UNIQUE: Final = RULES.rule(
    "B-CTAG-UNIQUE", "MUST NOT", "tier A", by="client", answer="connection.close 530"
)


def tag_in_use(case: Case091, tag: str, consumer: Consumer) -> None:
    """A client sends basic.consume with the consumer-tag of a consumer that already exists on the channel.

    Demands: A client does not use one consumer-tag for two consumers at a time on one channel.
    Source: XML:basic.consume.consumer-tag.01
    Evidence: the consumer-tags in use on the channel
    Why it matters: The server closes the connection. If two consumers had one consumer-tag, the client could
    not distinguish their deliveries.
    Silent when: the client had already cancelled the earlier consumer, whether or not the server has answered
    the basic.cancel.
    How to mend it: Generate a unique consumer-tag for each basic.consume on a channel, or leave it empty so
    that the server chooses one. Applications must not register the same fixed tag twice.
    """
    case.report(
        B_CTAG_UNIQUE,
        f"consumer {tag!r} already exists on this channel",
        evidence={"consumer_tag": tag},
        others=[int(consumer.packet)],
    )


B_CTAG_CHANNEL: Final = RULES.rule(
    "B-CTAG-CHANNEL", "MUST NOT", "tier A", by="client", answer="connection.close 530"
)


def cancel_on_another_channel(case: Case091, tag: str, other: Channel) -> None:
    """A client sends basic.cancel with the consumer-tag of a consumer that belongs to another channel.

    Demands: A client cancels a consumer on the channel on which it started the consumer.
    Source: XML:basic.consume.consumer-tag.02
    Evidence: the consumer-tags in use on each channel, and the channel of the basic.cancel
    Why it matters: The server cancels nothing, or closes the connection. The consumer keeps receiving
    deliveries.
    Silent when: the capture lacks the beginning of the channel.
    How to mend it: Store the channel together with each consumer-tag, and send basic.cancel on the channel on
    which basic.consume was sent.
    """
    case.report(
        B_CTAG_CHANNEL,
        f"consumer {tag!r} is on channel {other.number}",
        evidence={"consumer_tag": tag, "other_channel": int(other.number)},
        others=[int(other.consumers.live[tag].packet)],
    )


B_CANCEL_CTAG: Final = RULES.rule(
    "B-CANCEL-CTAG",
    "IMPLIED",
    "tier A",
    by="client",
    warning="The specification only implies this rule and names no error for it.",
)


def cancel_of_nobody(case: Case091, tag: str, certainty: i64) -> None:
    """A client sends basic.cancel with a consumer-tag that no consumer on the channel has.

    Demands: A basic.cancel names a consumer of the same channel.
    Source: XML:basic.cancel.01; XML domain consumer-tag
    Evidence: the consumer-tags in use on the channel, and those that the server has just cancelled
    Why it matters: If the client meant another consumer, that consumer keeps receiving deliveries. If the
    client meant no other consumer, the program has lost track of its consumers.
    Silent when: the server has cancelled the consumer, when the queue of the consumer was deleted, when a
    consumer was started without a consumer-tag, or when the capture lacks octets that were sent on the
    channel before the basic.cancel. The finding is only possible, not certain, when the capture lacks any
    octets of the connection, because another channel may have the consumer.
    How to mend it: Cancel each consumer once, with the tag from basic.consume-ok. Remove the tag from the
    client's list when the client sends basic.cancel, or when the channel closes.
    """
    reason = f"this channel has no consumer {tag!r}"
    case.report(B_CANCEL_CTAG, reason, certainty, {"consumer_tag": tag})


B_CTAG_ECHO: Final = RULES.rule(
    "B-CTAG-ECHO",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def tag_not_repeated(case: Case091, asked: str, tag: str) -> None:
    """A server answers basic.consume with a basic.consume-ok that carries another consumer-tag.

    Demands: A basic.consume-ok repeats the consumer-tag of the basic.consume.
    Source: XML:basic.consume-ok.consumer-tag (field doc)
    Evidence: the consumer-tags of basic.consume and basic.consume-ok
    Why it matters: The client waits for deliveries to a consumer that the server knows by another
    consumer-tag.
    Silent when: the basic.consume was not captured.
    How to mend it: Copy the consumer-tag of the basic.consume unchanged into basic.consume-ok. Generate a
    consumer-tag only when the client has left it empty.
    """
    case.report(
        B_CTAG_ECHO,
        f"basic.consume has consumer-tag {asked!r}, but basic.consume-ok has {tag!r}",
        evidence={"asked": asked, "consumer_tag": tag},
    )


B_CTAG_GEN: Final = RULES.rule(
    "B-CTAG-GEN",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def unusable_generated_tag(case: Case091, tag: str) -> None:
    """A server answers a basic.consume without consumer-tag with an empty consumer-tag, or with one that is
    in use on the channel.

    Demands: If the consumer-tag of basic.consume is empty, the server generates a consumer-tag that is unique
    on the channel.
    Source: XML:basic.consume.consumer-tag (field doc)
    Evidence: the consumer-tag of basic.consume-ok
    Why it matters: The client cannot cancel the consumer, and cannot distinguish its deliveries from those of
    another consumer.
    Silent when: the basic.consume was not captured.
    How to mend it: When the consumer-tag of a basic.consume is empty, generate a tag that no consumer on the
    channel has, and return it in basic.consume-ok.
    """
    reason = (
        f"consumer {tag!r} already exists on this channel" if tag else "the new consumer gets no consumer-tag"
    )
    case.report(B_CTAG_GEN, reason, evidence={"consumer_tag": tag})


B_CANCELOK_TAG: Final = RULES.rule(
    "B-CANCELOK-TAG",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def other_consumer_cancelled(case: Case091, asked: str, tag: str) -> None:
    """A server answers basic.cancel with a basic.cancel-ok that carries another consumer-tag.

    Demands: A basic.cancel-ok repeats the consumer-tag of the basic.cancel.
    Source: XML:basic.cancel-ok.consumer-tag
    Evidence: the consumer-tags of basic.cancel and basic.cancel-ok
    Why it matters: The client removes another consumer than the server does, so client and server no longer
    agree on which consumers are active.
    Silent when: the basic.cancel was not captured.
    How to mend it: Copy the consumer-tag of the basic.cancel unchanged into basic.cancel-ok. When several
    cancels are outstanding, answer each with its own tag.
    """
    case.report(
        B_CANCELOK_TAG,
        f"basic.cancel has consumer-tag {asked!r}, but basic.cancel-ok has {tag!r}",
        evidence={"asked": asked, "consumer_tag": tag},
    )


B_CANCEL_NOTIFY_CAP: Final = RULES.rule(
    "B-CANCEL-NOTIFY-CAP",
    "IMPLIED",
    "tier A",
    by="server",
    answer="connection.close 503 or connection.close 540",
)


def cancel_not_asked_for(case: Case091) -> None:
    """A server sends basic.cancel to a client that has not announced the capability consumer_cancel_notify.

    Demands: A server sends basic.cancel only to clients that announce the capability consumer_cancel_notify
    with the value true.
    Source: RMQ:docs/consumer-cancel; RMQX:basic.cancel
    Evidence: the capabilities in connection.start-ok, and each basic.cancel of the server
    Why it matters: According to the specification, only clients send basic.cancel. A client without the
    capability does not know how to handle the method and closes the connection.
    Silent when: connection.start-ok was not captured, or when amqpscope could not read it. The rule reports
    the fault only once per connection.
    How to mend it: Read the capabilities in the client-properties of connection.start-ok. Send basic.cancel
    only if consumer_cancel_notify is true. If the capability is missing or false, end the consumer without
    basic.cancel.
    """
    case.report_once(
        B_CANCEL_NOTIFY_CAP,
        "the client has not announced the capability consumer_cancel_notify",
        CERTAIN,
        {},
    )


B_CANCEL_NOTIFY_REPLY: Final = RULES.rule(
    "B-CANCEL-NOTIFY-REPLY",
    "IMPLIED",
    "tier A",
    by="client",
    warning="The specification only implies this rule and names no error for it.",
)


def cancel_answered_needlessly(case: Case091, tag: str) -> None:
    """A client sends basic.cancel-ok in answer to a server's basic.cancel that had no-wait set.

    Demands: A client sends no basic.cancel-ok for a basic.cancel of the server that sets no-wait (RabbitMQ
    always sets it).
    Source: RMQX:basic.cancel; XML domain no-wait
    Evidence: a basic.cancel of the server, and the client's basic.cancel-ok
    Why it matters: The server waits for no answer, and may take the basic.cancel-ok for the answer to
    something else.
    Silent when: the server's basic.cancel was not captured.
    How to mend it: Check the no-wait bit of a received basic.cancel. If no-wait is set, remove the consumer
    and notify the application, but send no basic.cancel-ok.
    """
    case.report(
        B_CANCEL_NOTIFY_REPLY,
        f"the server's basic.cancel of consumer {tag!r} had no-wait set",
        evidence={"consumer_tag": tag},
    )


B_CONSUME_QKNOWN: Final = RULES.rule(
    "B-CONSUME-QKNOWN", "IMPLIED", "tier A", by="client", answer="channel.close 404"
)


def consume_without_queue(case: Case091) -> None:
    """A client sends basic.consume without a queue name, although no queue was declared on the channel.

    Demands: A basic.consume with an empty queue name follows a queue.declare on the same channel.
    Source: XML domain queue-name (doc)
    Evidence: the queue that was last declared on the channel
    Why it matters: An empty queue name stands for the queue declared last on the channel. If no queue was
    declared on the channel, the server closes the channel.
    Silent when: the capture lacks octets that were sent on the channel before the basic.consume.
    How to mend it: Send the queue name in basic.consume, or send queue.declare on the same channel first.
    Typical API misuse: declaring the queue on one channel and consuming on another, or passing an empty name.
    """
    case.report(B_CONSUME_QKNOWN, "the queue name is empty, and no queue was declared on this channel")


B_GET_QKNOWN: Final = RULES.rule("B-GET-QKNOWN", "IMPLIED", "tier A", by="client", answer="channel.close 404")


def get_without_queue(case: Case091) -> None:
    """A client sends basic.get without a queue name, although no queue was declared on the channel.

    Demands: A basic.get with an empty queue name follows a queue.declare on the same channel.
    Source: XML domain queue-name (doc)
    Evidence: the queue that was last declared on the channel
    Why it matters: An empty queue name stands for the queue declared last on the channel. If no queue was
    declared on the channel, the server closes the channel.
    Silent when: the capture lacks octets that were sent on the channel before the basic.get.
    How to mend it: Send the queue name in basic.get, or send queue.declare on the same channel first. Typical
    API misuse: declaring the queue on one channel and fetching on another, or passing an empty name.
    """
    case.report(B_GET_QKNOWN, "the queue name is empty, and no queue was declared on this channel")


B_CONSUME_PRIO: Final = RULES.rule(
    "B-CONSUME-PRIO", "IMPLIED", "tier A", by="client", answer="channel.close 406"
)


def priority_no_integer(case: Case091, value: object) -> None:
    """A client sends basic.consume with an argument x-priority that is not an integer.

    Demands: The argument x-priority of basic.consume is an integer.
    Source: RMQ:docs/consumer-priority
    Evidence: the type of the argument x-priority
    Why it matters: RabbitMQ refuses the basic.consume and closes the channel, so the consumer does not start.
    Silent when: the server is neither RabbitMQ nor LavinMQ.
    How to mend it: Encode x-priority as an integer field value. Applications should pass an integer, not a
    string, a float or a boolean.
    """
    case.report(B_CONSUME_PRIO, f"x-priority is {value!r}"[:120], evidence={"path": "x-priority"})


B_REPLYTO_NOACK: Final = RULES.rule(
    "B-REPLYTO-NOACK", "MUST", "tier A", by="client", answer="channel.close 406"
)


def replies_with_acks(case: Case091) -> None:
    """A client sends basic.consume for amq.rabbitmq.reply-to without no-ack.

    Demands: A client consumes amq.rabbitmq.reply-to with no-ack.
    Source: RMQ:docs/direct-reply-to
    Evidence: the queue name and the no-ack bit of basic.consume
    Why it matters: RabbitMQ does not store replies, so a client cannot acknowledge a reply. RabbitMQ closes
    the channel.
    Silent when: the server is neither RabbitMQ nor LavinMQ.
    How to mend it: Set no-ack in the basic.consume for amq.rabbitmq.reply-to, and send no basic.ack for the
    replies. Applications should use their library's automatic acknowledgement mode for this consumer.
    """
    case.report(B_REPLYTO_NOACK, f"{REPLIES} is consumed without no-ack")


B_REPLYTO_ONE: Final = RULES.rule(
    "B-REPLYTO-ONE", "IMPLIED", "tier A", by="client", answer="channel.close 406"
)


def second_consumer_of_replies(case: Case091, consumer: Consumer) -> None:
    """A client starts a second consumer of amq.rabbitmq.reply-to on a channel.

    Demands: A channel has at most one consumer of amq.rabbitmq.reply-to.
    Source: RMQ:docs/direct-reply-to
    Evidence: the consumers of the channel
    Why it matters: RabbitMQ supports one consumer of amq.rabbitmq.reply-to per channel. If a client starts a
    second consumer, RabbitMQ closes the channel.
    Silent when: the server is neither RabbitMQ nor LavinMQ, or when the client had already cancelled the
    first consumer.
    How to mend it: Start one consumer of amq.rabbitmq.reply-to per channel and share it among all requests.
    Assign each reply to its request by correlation-id.
    """
    case.report(
        B_REPLYTO_ONE,
        f"this channel already has consumer {consumer.tag!r} of {REPLIES}",
        others=[int(consumer.packet)],
    )


B_CONSUME_EXCL: Final = RULES.rule(
    "B-CONSUME-EXCL", "MAY NOT", "tier B", by="client", answer="channel.close 403"
)


def exclusive_beside_others(case: Case091, consumer: Consumer, channel: Channel) -> None:
    """A client sends basic.consume with exclusive set for a queue that already has a consumer.

    Demands: A client does not request exclusive access to a queue that already has consumers.
    Source: XML:basic.consume.exclusive.01
    Evidence: the consumers of the queue in the virtual host, and the server's refusal with 403
    Why it matters: The server refuses the basic.consume and closes the channel. All other consumers of the
    channel end with it.
    Silent when: the other consumers of the queue are on connections that the capture does not show.
    Only possible because: Another queue of the same name may have replaced the earlier queue in the meantime.
    How to mend it: Set the exclusive bit only when no other consumer of the queue exists, and cancel the own
    consumer before starting a new one. Expect the refusal, and retry on a new channel.
    """
    case.report(
        B_CONSUME_EXCL,
        f"exclusive is set, although channel {channel.number} has consumer {consumer.tag!r} of the queue",
        POSSIBLE,
        {"consumer_tag": consumer.tag, "other_channel": int(channel.number)},
        [int(consumer.packet)],
    )


B_CONSUME_EXCL_HELD: Final = RULES.rule("B-CONSUME-EXCL-HELD", "IMPLIED", "tier B", by="server")


def granted_beside_exclusive(case: Case091, consumer: Consumer, channel: Channel) -> None:
    """A server lets a second consumer start on a queue that has an exclusive consumer.

    Demands: While a queue has an exclusive consumer, no other client reads from the queue.
    Source: XML:basic.consume.exclusive (field doc)
    Evidence: the exclusive consumers, and each later basic.consume-ok or basic.get-ok for the same queue
    Why it matters: The client that asked for exclusive access is no longer the only consumer. The server
    distributes the messages among both consumers.
    Silent when: the exclusive consumer is on a connection that the capture does not show.
    Only possible because: RabbitMQ's quorum queues do not support exclusive consumers.
    How to mend it: While a queue has an exclusive consumer, refuse every other basic.consume for the queue
    with channel.close 403. Look for exclusive consumers on all connections of the virtual host.
    """
    case.report(
        B_CONSUME_EXCL_HELD,
        f"channel {channel.number} has the exclusive consumer {consumer.tag!r} of the queue",
        POSSIBLE,
        {"consumer_tag": consumer.tag, "other_channel": int(channel.number)},
        [int(consumer.packet)],
    )


B_RECOVER_REQUEUE0: Final = RULES.rule(
    "B-RECOVER-REQUEUE0", "IMPLIED", "tier A", by="client", answer="connection.close 540"
)


def recover_without_requeue(case: Case091) -> None:
    """A client sends basic.recover without requeue to RabbitMQ.

    Demands: A client sends basic.recover to RabbitMQ only with requeue set.
    Source: ERR:2; RMQ:server rabbit_channel basic.recover_async
    Evidence: the requeue bit of basic.recover, and the product name of the server
    Why it matters: The specification lets the server resend the messages to the same consumers. RabbitMQ does
    not implement basic.recover without requeue, and closes the connection with 540.
    Silent when: the server does not identify itself as RabbitMQ.
    How to mend it: Set requeue in basic.recover when the server is RabbitMQ, or use basic.nack or
    basic.reject with requeue for single deliveries.
    """
    case.report(
        B_RECOVER_REQUEUE0, "basic.recover is sent without requeue, but RabbitMQ supports only requeue"
    )


def judge_consume(case: Case091, channel: Channel, method: BasicConsume) -> None:
    """A client's basic.consume."""
    tag = method.consumer_tag
    if tag:
        consumer = channel.consumers.live.get(tag)
        if consumer is not None and channel.whole and not channel.requests.cancelling(tag):
            tag_in_use(case, tag, consumer)
            return
    queue = method.queue
    if queue == "":
        if channel.lacks_queue():
            consume_without_queue(case)
            return
        queue = channel.queue
    if case.view.rabbitmq:
        judge_replies(case, channel, method)
        arguments = method.arguments
        if arguments is not None and b"x-priority" in arguments.octets and not case.record.frame.problems:
            value = arguments.get("x-priority", RABBITMQ)
            if value is not None and (not isinstance(value, int) or isinstance(value, (bool, Moment))):
                priority_no_integer(case, value)
    if method.exclusive and queue and case.me.whole:
        for number, consumer in case.view.table.roster.of(queue):
            other = case.view.table.channels[number]
            if consumer.ready and other.is_open and not other.requests.cancelling(consumer.tag):
                exclusive_beside_others(case, consumer, other)
                return


def judge_replies(case: Case091, channel: Channel, method: BasicConsume) -> None:
    """Direct reply-to: a basic.consume that may name RabbitMQ's pseudo-queue for replies."""
    if method.queue != REPLIES:
        return
    if not method.no_ack:
        replies_with_acks(case)
        return
    if not channel.whole:
        return
    for consumer in channel.consumers.of(REPLIES).values():
        if not channel.requests.cancelling(consumer.tag):
            second_consumer_of_replies(case, consumer)
            return


def judge_get(case: Case091, channel: Channel, method: BasicGet) -> None:
    """A client's basic.get."""
    if method.queue == "" and channel.lacks_queue():
        get_without_queue(case)


def judge_cancel(case: Case091, channel: Channel, method: BasicCancel) -> None:
    """A client's basic.cancel."""
    tag = method.consumer_tag
    if tag is None or tag in channel.consumers.live or not channel.whole or channel.state != OPEN:
        return
    if channel.consumers.nameless or channel.consumers.cancelled.get(tag, "client") != "client":
        return
    if tag not in channel.consumers.cancelled:
        for other in case.view.some_channels():
            if tag in other.consumers.live and other.is_open and other.whole:
                cancel_on_another_channel(case, tag, other)
                return
    cancel_of_nobody(case, tag, CERTAIN if case.me.whole else POSSIBLE)


def judge_cancel_ok(case: Case091, channel: Channel, method: BasicCancelOk) -> None:
    """A client's basic.cancel-ok (RabbitMQ)."""
    tag = method.consumer_tag
    if tag is not None and channel.whole and channel.consumers.cancelled.get(tag) == "server":
        if channel.requests.awaited(True, "basic.cancel-ok") < 0:
            cancel_answered_needlessly(case, tag)


def judge_recover(case: Case091, method: BasicRecover) -> None:
    """A client's basic.recover."""
    if not method.requeue and case.view.of_product("RabbitMQ"):
        recover_without_requeue(case)


def judge_consume_ok(case: Case091, channel: Channel, method: BasicConsumeOk) -> None:
    """A server's basic.consume-ok."""
    tag = method.consumer_tag
    at = channel.requests.awaited(False, "basic.consume-ok")
    if tag is None or at < 0 or not channel.whole:
        return
    request = channel.requests.by_client[at]
    if request.subject:
        if tag != request.subject:
            tag_not_repeated(case, request.subject, tag)
            return
        begun = channel.consumers.live.get(tag)
    else:
        known = channel.consumers.live.get(tag)
        if not tag or (known is not None and known.ready and known.end < request.end):
            unusable_generated_tag(case, tag)
            return
        begun = None
        for consumer in channel.consumers.nameless:
            if consumer.waited:
                begun = consumer
                break
    if begun is None or not begun.queue or not case.me.whole:
        return
    for number, consumer in case.view.table.roster.of(begun.queue):
        other = case.view.table.channels[number]
        if consumer.exclusive and consumer is not begun:
            if consumer.ready and other.is_open and not other.requests.cancelling(consumer.tag):
                granted_beside_exclusive(case, consumer, other)
                return


def judge_server_cancel_ok(case: Case091, channel: Channel, method: BasicCancelOk) -> None:
    """A server's basic.cancel-ok."""
    tag = method.consumer_tag
    at = channel.requests.awaited(False, "basic.cancel-ok")
    if tag is not None and at >= 0 and channel.whole and channel.requests.by_client[at].subject != tag:
        other_consumer_cancelled(case, channel.requests.by_client[at].subject, tag)


def judge_server_cancel(case: Case091) -> None:
    """A server's basic.cancel (RabbitMQ)."""
    client = case.view.client
    if client is not None and client.lacks("consumer_cancel_notify"):
        cancel_not_asked_for(case)
