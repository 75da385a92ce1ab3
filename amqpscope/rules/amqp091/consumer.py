"""Consumers: basic.consume, basic.get, basic.recover and their answers (class basic; RabbitMQ).

The client chooses the consumer-tags of a channel.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import REPLIES, Consumer
from dissectors.amqp091.methods import (
    BasicConsume,
    BasicConsumeOk,
    BasicGet,
    BasicRecover,
)
from dissectors.amqp091.tables import RABBITMQ
from dissectors.values import Moment
from dissectors.wire import i64

__all__ = [
    "judge_consume",
    "judge_consume_ok",
    "judge_get",
    "judge_recover",
]

RULES: Final = Rules("amqp091/consumer")


B_CTAG_UNIQUE: Final = RULES.rule(
    "B-CTAG-UNIQUE", "MUST NOT", "tier A", by="client", answer="connection.close 530"
)


def tag_in_use(case: Case091, tag: str, consumer: Consumer, certainty: i64) -> None:
    """A client sends basic.consume with the consumer-tag of a consumer that already exists on the channel.

    Demands: A client must not use the same consumer-tag for two active consumers on one channel.
    Source: XML:basic.consume.consumer-tag.01
    Evidence: the consumer-tags in use on the channel
    Why it matters: The server closes the connection. If two consumers had the same consumer-tag, the client
    could not distinguish their deliveries.
    Silent when: the client had already cancelled the earlier consumer, whether or not the server has answered
    the basic.cancel.
    Possible because: The queue of the earlier consumer may have been deleted, which ends that consumer. The
    {other} tells a client so only if both peers announce the capability consumer_cancel_notify.
    How to mend it: Generate a unique consumer-tag for each basic.consume on a channel, or leave the
    consumer-tag empty so that the server generates one. Applications must not register the same fixed tag
    twice.
    """
    case.report(
        B_CTAG_UNIQUE,
        f"basic.consume has consumer-tag {tag!r}, but this channel already has a consumer with this "
        "consumer-tag",
        certainty,
        {"consumer_tag": tag},
        [int(consumer.packet)],
    )


B_CTAG_ECHO: Final = RULES.rule(
    "B-CTAG-ECHO",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def tag_not_repeated(case: Case091, asked: str, tag: str) -> None:
    """A server answers basic.consume with a basic.consume-ok that carries another consumer-tag.

    Demands: A basic.consume-ok must repeat the consumer-tag of the basic.consume.
    Source: XML:basic.consume-ok.consumer-tag (field doc)
    Evidence: the consumer-tags of basic.consume and basic.consume-ok
    Why it matters: The client waits for deliveries to a consumer that the server knows by another
    consumer-tag.
    Silent when: the basic.consume was not captured.
    How to mend it: Copy the consumer-tag of the basic.consume unchanged into basic.consume-ok. Generate a
    consumer-tag only if the consumer-tag of the basic.consume is empty.
    """
    case.report(
        B_CTAG_ECHO,
        f"basic.consume has consumer-tag {asked!r}, but basic.consume-ok has consumer-tag {tag!r}",
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
    """A basic.consume has an empty consumer-tag, and the server's basic.consume-ok also has an empty
    consumer-tag, or one that is already in use on the channel.

    Demands: If the consumer-tag of basic.consume is empty, the server must generate a consumer-tag that is
    unique on the channel.
    Source: XML:basic.consume.consumer-tag (field doc)
    Evidence: the consumer-tag of basic.consume-ok
    Why it matters: The client cannot cancel the consumer, and cannot distinguish the deliveries of this
    consumer from those of another consumer.
    Silent when: the basic.consume was not captured.
    How to mend it: When the consumer-tag of a basic.consume is empty, generate a tag that no consumer on the
    channel has, and return it in basic.consume-ok.
    """
    reason = (
        f"basic.consume-ok has consumer-tag {tag!r}, which another consumer on this channel already has"
        if tag
        else "basic.consume-ok gives the new consumer no consumer-tag"
    )
    case.report(B_CTAG_GEN, reason, evidence={"consumer_tag": tag})


B_CONSUME_QKNOWN: Final = RULES.rule(
    "B-CONSUME-QKNOWN", "IMPLIED", "tier A", by="client", answer="channel.close 404"
)


def consume_without_queue(case: Case091) -> None:
    """A client sends basic.consume without a queue name, although no queue was declared on the channel.

    Demands: A basic.consume with an empty queue name must follow a queue.declare on the same channel.
    Source: XML domain queue-name (doc)
    Evidence: the queue that was last declared on the channel
    Why it matters: An empty queue name stands for the queue declared last on the channel. If no queue was
    declared on the channel, the server closes the channel.
    Silent when: the capture lacks octets that were sent on the channel before the basic.consume.
    How to mend it: Send the queue name in basic.consume, or send queue.declare on the same channel first. A
    common cause is that the application declares the queue on one channel and consumes on another, or passes
    an empty queue name.
    """
    case.report(
        B_CONSUME_QKNOWN,
        "the queue name is empty, which means the last declared queue, but no "
        "queue was declared on this channel",
    )


B_GET_QKNOWN: Final = RULES.rule("B-GET-QKNOWN", "IMPLIED", "tier A", by="client", answer="channel.close 404")


def get_without_queue(case: Case091) -> None:
    """A client sends basic.get without a queue name, although no queue was declared on the channel.

    Demands: A basic.get with an empty queue name must follow a queue.declare on the same channel.
    Source: XML domain queue-name (doc)
    Evidence: the queue that was last declared on the channel
    Why it matters: An empty queue name stands for the queue declared last on the channel. If no queue was
    declared on the channel, the server closes the channel.
    Silent when: the capture lacks octets that were sent on the channel before the basic.get.
    How to mend it: Send the queue name in basic.get, or send queue.declare on the same channel first. A
    common cause is that the application declares the queue on one channel and fetches on another, or passes
    an empty queue name.
    """
    case.report(
        B_GET_QKNOWN,
        "the queue name is empty, which means the last declared queue, but no queue "
        "was declared on this channel",
    )


B_CONSUME_PRIO: Final = RULES.rule(
    "B-CONSUME-PRIO", "IMPLIED", "tier A", by="client", answer="channel.close 406"
)


def priority_no_integer(case: Case091, value: object) -> None:
    """A client sends basic.consume with an argument x-priority that is not an integer.

    Demands: The argument x-priority of basic.consume must be an integer.
    Source: RMQ:docs/consumer-priority
    Evidence: the type of the argument x-priority
    Why it matters: RabbitMQ refuses the basic.consume and closes the channel, so the consumer does not start.
    Silent when: the server is neither RabbitMQ nor LavinMQ.
    How to mend it: Encode x-priority as an integer field value. Applications should pass an integer, not a
    string, a float or a boolean.
    """
    case.report(
        B_CONSUME_PRIO,
        f"the argument x-priority is {value!r}, not an integer"[:120],
        evidence={"path": "x-priority"},
    )


B_REPLYTO_NOACK: Final = RULES.rule(
    "B-REPLYTO-NOACK", "MUST", "tier A", by="client", answer="channel.close 406"
)


def replies_with_acks(case: Case091) -> None:
    """A client consumes amq.rabbitmq.reply-to, but does not set no-ack.

    Demands: A client must set no-ack when it consumes amq.rabbitmq.reply-to.
    Source: RMQ:docs/direct-reply-to
    Evidence: the queue name and the no-ack bit of basic.consume
    Why it matters: RabbitMQ does not store replies, so a client cannot acknowledge a reply. RabbitMQ closes
    the channel.
    Silent when: the server is neither RabbitMQ nor LavinMQ.
    How to mend it: Set no-ack in the basic.consume for amq.rabbitmq.reply-to, and send no basic.ack for the
    replies. Applications should use their library's automatic acknowledgement mode for this consumer.
    """
    case.report(
        B_REPLYTO_NOACK,
        f"the peer sends basic.consume for {REPLIES} without no-ack, but this basic.consume needs no-ack",
    )


B_REPLYTO_ONE: Final = RULES.rule(
    "B-REPLYTO-ONE", "IMPLIED", "tier A", by="client", answer="channel.close 406"
)


def second_consumer_of_replies(case: Case091, consumer: Consumer) -> None:
    """A client starts a second consumer of amq.rabbitmq.reply-to on a channel.

    Demands: A channel must not have more than one consumer of amq.rabbitmq.reply-to.
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
        f"the peer sends basic.consume for {REPLIES}, but this channel already has consumer "
        f"{consumer.tag!r} of {REPLIES}, and only one is allowed",
        others=[int(consumer.packet)],
    )


B_CONSUME_EXCL: Final = RULES.rule(
    "B-CONSUME-EXCL", "MAY NOT", "tier B", by="client", answer="channel.close 403"
)


def exclusive_beside_others(case: Case091, consumer: Consumer, channel: Channel) -> None:
    """A client sends basic.consume with exclusive set for a queue that already has a consumer.

    Demands: A client must not request exclusive access to a queue that already has consumers.
    Source: XML:basic.consume.exclusive.01
    Evidence: the consumers of the queue in the virtual host, and the server's refusal with reply-code 403
    (access-refused)
    Why it matters: The server refuses the basic.consume and closes the channel. All other consumers on the
    channel end, too.
    Silent when: the other consumers of the queue are on connections that the capture does not show.
    Only possible because: Another queue of the same name may have replaced the earlier queue in the meantime.
    How to mend it: Set the exclusive bit only when no other consumer of the queue exists, and cancel your own
    consumer before you start a new one. If the server refuses the exclusive consumer, retry on a new channel.
    """
    case.report(
        B_CONSUME_EXCL,
        f"basic.consume asks for exclusive access, although consumer {consumer.tag!r} on channel "
        f"{channel.number} already uses the queue",
        POSSIBLE,
        {"consumer_tag": consumer.tag, "other_channel": int(channel.number)},
        [int(consumer.packet)],
    )


B_CONSUME_EXCL_HELD: Final = RULES.rule("B-CONSUME-EXCL-HELD", "IMPLIED", "tier B", by="server")


def granted_beside_exclusive(case: Case091, consumer: Consumer, channel: Channel) -> None:
    """A server lets a second consumer start on a queue that has an exclusive consumer.

    Demands: While a queue has an exclusive consumer, no other client may read from the queue.
    Source: XML:basic.consume.exclusive (field doc)
    Evidence: the exclusive consumers, and each later basic.consume-ok or basic.get-ok for the same queue
    Why it matters: The client that asked for exclusive access is no longer the only consumer. The server
    distributes the messages among both consumers.
    Silent when: the exclusive consumer is on a connection that the capture does not show.
    Only possible because: The queue may be a quorum queue of RabbitMQ, which does not support exclusive
    consumers.
    How to mend it: While a queue has an exclusive consumer, refuse every other basic.consume for the queue by
    channel.close (reply-code 403, access-refused). Look for exclusive consumers on all connections of the
    virtual host.
    """
    case.report(
        B_CONSUME_EXCL_HELD,
        f"the server accepts a second consumer of the queue, although consumer {consumer.tag!r} on channel "
        f"{channel.number} is exclusive",
        POSSIBLE,
        {"consumer_tag": consumer.tag, "other_channel": int(channel.number)},
        [int(consumer.packet)],
    )


B_RECOVER_REQUEUE0: Final = RULES.rule(
    "B-RECOVER-REQUEUE0", "IMPLIED", "tier A", by="client", answer="connection.close 540"
)


def recover_without_requeue(case: Case091) -> None:
    """A client sends basic.recover without requeue to RabbitMQ.

    Demands: A client may send basic.recover to RabbitMQ only with requeue set.
    Source: ERR:2; RMQ:server rabbit_channel basic.recover_async
    Evidence: the requeue bit of basic.recover, and the product name of the server
    Why it matters: Without requeue, the specification lets the server resend the messages to the same
    consumers. RabbitMQ does not implement basic.recover without requeue, and closes the connection with
    reply-code 540 (not-implemented).
    Silent when: the server does not identify itself as RabbitMQ.
    How to mend it: Set requeue in basic.recover when the server is RabbitMQ, or use basic.nack or
    basic.reject with requeue for single deliveries.
    """
    case.report(
        B_RECOVER_REQUEUE0,
        "the peer sends basic.recover without requeue, but RabbitMQ supports basic.recover only with requeue",
    )


def judge_consume(case: Case091, channel: Channel, method: BasicConsume) -> None:
    """A client's basic.consume."""
    tag = method.consumer_tag
    if tag:
        consumer = channel.consumers.live.get(tag)
        if consumer is not None and channel.whole and not channel.requests.cancelling(tag):
            # The queue may have been deleted, which ends its consumers; not every client is informed.
            client, server = case.view.client, case.view.server
            announced = (
                client is not None
                and server is not None
                and not client.lacks("consumer_cancel_notify")
                and not server.lacks("consumer_cancel_notify")
            )
            tag_in_use(case, tag, consumer, CERTAIN if announced else POSSIBLE)
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
