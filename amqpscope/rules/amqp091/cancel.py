"""Consumers that end: basic.cancel and basic.cancel-ok (class basic; RabbitMQ).

A RabbitMQ server may cancel a consumer, too.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.states import OPEN
from dissectors.amqp091.methods import (
    BasicCancel,
    BasicCancelOk,
)
from dissectors.wire import i64

__all__ = ["judge_cancel", "judge_cancel_ok", "judge_server_cancel", "judge_server_cancel_ok"]

RULES: Final = Rules("amqp091/cancel")


B_CTAG_CHANNEL: Final = RULES.rule(
    "B-CTAG-CHANNEL", "MUST NOT", "tier A", by="client", answer="connection.close 530"
)


def cancel_on_another_channel(case: Case091, tag: str, other: Channel) -> None:
    """A client sends basic.cancel with the consumer-tag of a consumer that belongs to another channel.

    Demands: A client must cancel a consumer on the channel on which it started the consumer.
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
        f"basic.cancel names consumer {tag!r}, which belongs to channel {other.number}",
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

    Demands: The consumer-tag of basic.cancel must belong to a consumer of the same channel.
    Source: XML:basic.cancel.01; XML domain consumer-tag
    Evidence: the consumer-tags in use on the channel, and those that the server has just cancelled
    Why it matters: If the client used the wrong consumer-tag, the consumer that the client wanted to cancel
    keeps receiving deliveries. If the consumer had already ended, the client has lost track of its consumers.
    Silent when: the server has cancelled the consumer, or when the queue of the consumer was deleted. The
    rule is also silent when a consumer was started without a consumer-tag. The rule is also silent when the
    capture lacks octets that were sent on the channel before the basic.cancel. The finding is reported as
    possible, not as certain, when the capture lacks any octets of the connection, because the consumer may
    belong to another channel.
    How to mend it: Cancel each consumer once, with the tag from basic.consume-ok. Remove the tag from the
    client's list when the client sends basic.cancel, or when the channel closes.
    """
    reason = f"basic.cancel names consumer {tag!r}, but this channel has no such consumer"
    case.report(B_CANCEL_CTAG, reason, certainty, {"consumer_tag": tag})


B_CANCELOK_TAG: Final = RULES.rule(
    "B-CANCELOK-TAG",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def other_consumer_cancelled(case: Case091, asked: str, tag: str) -> None:
    """A server answers basic.cancel with a basic.cancel-ok that carries another consumer-tag.

    Demands: A basic.cancel-ok must repeat the consumer-tag of the basic.cancel.
    Source: XML:basic.cancel-ok.consumer-tag
    Evidence: the consumer-tags of basic.cancel and basic.cancel-ok
    Why it matters: The client removes another consumer than the server does, so client and server no longer
    agree on which consumers are active.
    Silent when: the basic.cancel was not captured.
    How to mend it: Copy the consumer-tag of the basic.cancel unchanged into basic.cancel-ok. When several
    basic.cancel methods are unanswered, answer each of them with its own consumer-tag.
    """
    case.report(
        B_CANCELOK_TAG,
        f"basic.cancel has consumer-tag {asked!r}, but basic.cancel-ok has consumer-tag {tag!r}",
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

    Demands: A server may send basic.cancel only to clients that announce the capability
    consumer_cancel_notify with the value true.
    Source: RMQ:docs/consumer-cancel; RMQX:basic.cancel
    Evidence: the capabilities in connection.start-ok, and each basic.cancel of the server
    Why it matters: According to the specification, only clients send basic.cancel. A client without the
    capability does not know how to handle basic.cancel and closes the connection.
    Silent when: connection.start-ok was not captured, or when amqpscope could not read it. The rule reports
    the fault only once per connection.
    How to mend it: Read the capabilities in the client-properties of connection.start-ok. Send basic.cancel
    only if consumer_cancel_notify is true. If the capability is missing or false, end the consumer without
    basic.cancel.
    """
    case.report_once(
        B_CANCEL_NOTIFY_CAP,
        "the peer sends basic.cancel although the client has not announced the capability "
        "consumer_cancel_notify",
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
    """A client sends basic.cancel-ok in answer to a server's basic.cancel, although that basic.cancel had
    no-wait set.

    Demands: If the server's basic.cancel sets no-wait, the client must not send basic.cancel-ok.
    RabbitMQ always sets no-wait.
    Source: RMQX:basic.cancel; XML domain no-wait
    Evidence: a basic.cancel of the server, and the client's basic.cancel-ok
    Why it matters: The server waits for no answer, and may treat the basic.cancel-ok as the answer to another
    request.
    Silent when: the server's basic.cancel was not captured.
    How to mend it: Check the no-wait bit of a received basic.cancel. If no-wait is set, remove the consumer
    and notify the application, but send no basic.cancel-ok.
    """
    case.report(
        B_CANCEL_NOTIFY_REPLY,
        f"the peer sends basic.cancel-ok although the server's basic.cancel of consumer {tag!r} has no-wait "
        "set",
        evidence={"consumer_tag": tag},
    )


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
