"""Consumers: basic.consume, basic.cancel and their answers, qos and get with them (class basic; RabbitMQ).

Consumer-tags are the client's to choose, by channel; RabbitMQ's server may cancel a consumer, too.
"""

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import REPLIES, Consumer
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


def tag_in_use(case: Case, tag: str, consumer: Consumer) -> None:
    """A basic.consume has the tag of a consumer that the channel has already.

    Why it matters: the server closes the connection; if it did not, nobody could tell their deliveries apart.
    Silent when: the consumer was cancelled before, whether or not that was answered.
    """
    case.report(
        "amqp091/B-CTAG-UNIQUE",
        f"consumer {tag!r} is active on this channel",
        evidence={"consumer_tag": tag},
        others=[int(consumer.packet)],
    )


def cancel_on_another_channel(case: Case, tag: str, other: Channel) -> None:
    """A basic.cancel names a consumer that another channel has.

    Why it matters: nothing is cancelled, or the server closes the connection; deliveries go on.
    Silent when: the channel's beginning was not captured.
    """
    case.report(
        "amqp091/B-CTAG-CHANNEL",
        f"consumer {tag!r} is on channel {other.number}",
        evidence={"consumer_tag": tag, "other_channel": int(other.number)},
        others=[int(other.consumers.live[tag].packet)],
    )


def cancel_of_nobody(case: Case, tag: str, certainty: i64) -> None:
    """A basic.cancel names a consumer that the channel does not have.

    Why it matters: a consumer that was meant goes on, or the program has lost count of its consumers.
    Silent when: the server has cancelled it or its queue was deleted, a consumer began without being named,
    or something before it on the channel was not captured. Only possible while anything of the connection is
    missing: another channel may have it.
    """
    reason = f"no consumer {tag!r} on this channel"
    case.report("amqp091/B-CANCEL-CTAG", reason, certainty, {"consumer_tag": tag})


def tag_not_repeated(case: Case, asked: str, tag: str) -> None:
    """A basic.consume-ok has another tag than the basic.consume that it answers.

    Why it matters: the client waits for deliveries to a consumer that the server calls otherwise.
    Silent when: the consume was not captured.
    """
    case.report(
        "amqp091/B-CTAG-ECHO",
        f"the client has asked for consumer {asked!r}, consume-ok says {tag!r}",
        evidence={"asked": asked, "consumer_tag": tag},
    )


def tag_not_made_up(case: Case, tag: str) -> None:
    """For a basic.consume without a tag the server gives none, or one that the channel has in use.

    Why it matters: the consumer cannot be cancelled, and its deliveries cannot be told from another's.
    Silent when: the consume was not captured.
    """
    reason = f"consumer {tag!r} is active on this channel" if tag else "the new consumer gets no tag"
    case.report("amqp091/B-CTAG-GEN", reason, evidence={"consumer_tag": tag})


def other_consumer_cancelled(case: Case, asked: str, tag: str) -> None:
    """A basic.cancel-ok has another tag than the basic.cancel that it answers.

    Why it matters: the client takes down another consumer than the server does.
    Silent when: the cancel was not captured.
    """
    case.report(
        "amqp091/B-CANCELOK-TAG",
        f"the client has cancelled {asked!r}, cancel-ok says {tag!r}",
        evidence={"asked": asked, "consumer_tag": tag},
    )


def cancel_not_asked_for(case: Case) -> None:
    """A server sends basic.cancel to a client that does not say that it takes it.

    Why it matters: by the specification only clients cancel; others do not know what to make of it and close.
    Silent when: the client's start-ok was not captured, or could not be read. Told once a connection.
    """
    case.report_once(
        "amqp091/B-CANCEL-NOTIFY-CAP",
        "the client has not said that it takes consumer_cancel_notify",
        CERTAIN,
        {},
    )


def cancel_answered_needlessly(case: Case, tag: str) -> None:
    """A client answers a server's basic.cancel that had no-wait.

    Why it matters: the server waits for no answer, and may take it for one to something else.
    Silent when: the server's cancel was not captured.
    """
    case.report(
        "amqp091/B-CANCEL-NOTIFY-REPLY",
        f"the server's cancel of {tag!r} had no-wait",
        evidence={"consumer_tag": tag},
    )


def consume_without_queue(case: Case) -> None:
    """A basic.consume names no queue, and none was declared on the channel.

    Why it matters: an empty name stands for the queue declared last; the server closes the channel.
    Silent when: something before it on the channel was not captured.
    """
    case.report("amqp091/B-CONSUME-QKNOWN", "no queue is named, and none was declared on this channel")


def get_without_queue(case: Case) -> None:
    """A basic.get names no queue, and none was declared on the channel.

    Why it matters: an empty name stands for the queue declared last; the server closes the channel.
    Silent when: something before it on the channel was not captured.
    """
    case.report("amqp091/B-GET-QKNOWN", "no queue is named, and none was declared on this channel")


def priority_no_integer(case: Case, value: object) -> None:
    """The x-priority of a basic.consume is no integer.

    Why it matters: RabbitMQ closes the channel.
    Silent when: the server is not RabbitMQ or LavinMQ.
    """
    case.report("amqp091/B-CONSUME-PRIO", f"x-priority is {value!r}"[:120], evidence={"path": "x-priority"})


def replies_with_acks(case: Case) -> None:
    """A basic.consume of amq.rabbitmq.reply-to does not have no-ack.

    Why it matters: replies are not kept anywhere; RabbitMQ closes the channel.
    Silent when: the server is not RabbitMQ or LavinMQ.
    """
    case.report("amqp091/B-REPLYTO-NOACK", f"{REPLIES} is consumed without no-ack")


def second_consumer_of_replies(case: Case, consumer: Consumer) -> None:
    """A channel gets a second consumer of amq.rabbitmq.reply-to.

    Why it matters: RabbitMQ knows one a channel; it closes the channel.
    Silent when: the server is not RabbitMQ or LavinMQ, or the first was cancelled before.
    """
    case.report(
        "amqp091/B-REPLYTO-ONE",
        f"consumer {consumer.tag!r} of {REPLIES} is active on this channel",
        others=[int(consumer.packet)],
    )


def exclusive_beside_others(case: Case, consumer: Consumer, channel: Channel) -> None:
    """A basic.consume asks to be the only consumer of a queue that has one.

    Why it matters: the server refuses it and closes the channel.
    Silent when: the queue's consumers are on connections that this one does not show.
    Only possible because: The queue may be another one of the same name by now.
    """
    case.report(
        "amqp091/B-CONSUME-EXCL",
        f"exclusive, while channel {channel.number} has consumer {consumer.tag!r} of the queue",
        POSSIBLE,
        {"consumer_tag": consumer.tag, "other_channel": int(channel.number)},
        [int(consumer.packet)],
    )


def granted_beside_exclusive(case: Case, consumer: Consumer, channel: Channel) -> None:
    """A server lets a consumer begin on a queue that has an exclusive one.

    Why it matters: the client that asked to be the only one is not; messages go to both.
    Silent when: the exclusive consumer is on a connection that this one does not show.
    Only possible because: RabbitMQ's quorum queues do not know exclusive consumers.
    """
    case.report(
        "amqp091/B-CONSUME-EXCL-HELD",
        f"channel {channel.number} has the exclusive consumer {consumer.tag!r} of the queue",
        POSSIBLE,
        {"consumer_tag": consumer.tag, "other_channel": int(channel.number)},
        [int(consumer.packet)],
    )


def recover_without_requeue(case: Case) -> None:
    """A client asks RabbitMQ for recover without requeue.

    Why it matters: the specification has it send the messages to the same consumers again; RabbitMQ does not
    know how, and closes the connection with 540.
    Silent when: the server does not say that it is RabbitMQ.
    """
    case.report("amqp091/B-RECOVER-REQUEUE0", "recover without requeue, which RabbitMQ does not have")


def judge_consume(case: Case, channel: Channel, method: BasicConsume) -> None:
    """A client's basic.consume."""
    tag = method.consumer_tag
    if tag:
        consumer = channel.consumers.live.get(tag)
        if consumer is not None and channel.whole and not channel.cancelling(tag):
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
        for number, consumer in case.view.roster.of(queue):
            other = case.view.channels[number]
            if consumer.ready and other.is_open and not other.cancelling(consumer.tag):
                exclusive_beside_others(case, consumer, other)
                return


def judge_replies(case: Case, channel: Channel, method: BasicConsume) -> None:
    """Direct reply-to: a basic.consume that may be of RabbitMQ's queue for replies."""
    if method.queue != REPLIES:
        return
    if not method.no_ack:
        replies_with_acks(case)
        return
    if not channel.whole:
        return
    for consumer in channel.consumers.of(REPLIES).values():
        if not channel.cancelling(consumer.tag):
            second_consumer_of_replies(case, consumer)
            return


def judge_get(case: Case, channel: Channel, method: BasicGet) -> None:
    """A client's basic.get."""
    if method.queue == "" and channel.lacks_queue():
        get_without_queue(case)


def judge_cancel(case: Case, channel: Channel, method: BasicCancel) -> None:
    """A client's basic.cancel."""
    tag = method.consumer_tag
    if tag is None or tag in channel.consumers.live or not channel.whole or channel.state != "OPEN":
        return
    if channel.consumers.nameless or channel.consumers.cancelled.get(tag, "client") != "client":
        return
    if tag not in channel.consumers.cancelled:
        for other in case.view.some_channels():
            if tag in other.consumers.live and other.is_open and other.whole:
                cancel_on_another_channel(case, tag, other)
                return
    cancel_of_nobody(case, tag, CERTAIN if case.me.whole else POSSIBLE)


def judge_cancel_ok(case: Case, channel: Channel, method: BasicCancelOk) -> None:
    """A client's basic.cancel-ok, of RabbitMQ."""
    tag = method.consumer_tag
    if tag is not None and channel.whole and channel.consumers.cancelled.get(tag) == "server":
        if channel.awaited(True, "basic.cancel-ok") < 0:
            cancel_answered_needlessly(case, tag)


def judge_recover(case: Case, method: BasicRecover) -> None:
    """A client's basic.recover."""
    if not method.requeue and case.view.of_product("RabbitMQ"):
        recover_without_requeue(case)


def judge_consume_ok(case: Case, channel: Channel, method: BasicConsumeOk) -> None:
    """A server's basic.consume-ok."""
    tag = method.consumer_tag
    at = channel.awaited(False, "basic.consume-ok")
    if tag is None or at < 0 or not channel.whole:
        return
    request = channel.requests[at]
    if request.subject:
        if tag != request.subject:
            tag_not_repeated(case, request.subject, tag)
            return
        begun = channel.consumers.live.get(tag)
    else:
        known = channel.consumers.live.get(tag)
        if not tag or (known is not None and known.ready and known.end < request.end):
            tag_not_made_up(case, tag)
            return
        begun = None
        for consumer in channel.consumers.nameless:
            if consumer.waited:
                begun = consumer
                break
    if begun is None or not begun.queue or not case.me.whole:
        return
    for number, consumer in case.view.roster.of(begun.queue):
        other = case.view.channels[number]
        if consumer.exclusive and consumer is not begun:
            if consumer.ready and other.is_open and not other.cancelling(consumer.tag):
                granted_beside_exclusive(case, consumer, other)
                return


def judge_server_cancel_ok(case: Case, channel: Channel, method: BasicCancelOk) -> None:
    """A server's basic.cancel-ok."""
    tag = method.consumer_tag
    at = channel.awaited(False, "basic.cancel-ok")
    if tag is not None and at >= 0 and channel.whole and channel.requests[at].subject != tag:
        other_consumer_cancelled(case, channel.requests[at].subject, tag)


def judge_server_cancel(case: Case) -> None:
    """A server's basic.cancel, of RabbitMQ."""
    client = case.view.client
    if client is not None and client.lacks("consumer_cancel_notify"):
        cancel_not_asked_for(case)


RULES = {
    "amqp091/B-CTAG-UNIQUE": tag_in_use,
    "amqp091/B-CTAG-CHANNEL": cancel_on_another_channel,
    "amqp091/B-CANCEL-CTAG": cancel_of_nobody,
    "amqp091/B-CTAG-ECHO": tag_not_repeated,
    "amqp091/B-CTAG-GEN": tag_not_made_up,
    "amqp091/B-CANCELOK-TAG": other_consumer_cancelled,
    "amqp091/B-CANCEL-NOTIFY-CAP": cancel_not_asked_for,
    "amqp091/B-CANCEL-NOTIFY-REPLY": cancel_answered_needlessly,
    "amqp091/B-CONSUME-QKNOWN": consume_without_queue,
    "amqp091/B-GET-QKNOWN": get_without_queue,
    "amqp091/B-CONSUME-PRIO": priority_no_integer,
    "amqp091/B-REPLYTO-NOACK": replies_with_acks,
    "amqp091/B-REPLYTO-ONE": second_consumer_of_replies,
    "amqp091/B-CONSUME-EXCL": exclusive_beside_others,
    "amqp091/B-CONSUME-EXCL-HELD": granted_beside_exclusive,
    "amqp091/B-RECOVER-REQUEUE0": recover_without_requeue,
}
