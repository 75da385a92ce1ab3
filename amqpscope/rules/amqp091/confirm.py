"""Publisher confirms: confirm.select, and the confirms of a server (RabbitMQ, "Publisher Confirms").

Messages are counted from 1, beginning with the first one after confirm.select. A message counts as published
when its last frame can have arrived.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.publishes import Publish
from dissectors.wire import i64
from dissectors.wording import count, were

__all__ = ["judge_confirm", "judge_end", "judge_nack_refused", "judge_select"]

RULES: Final = Rules("amqp091/confirm")


# How long a confirm may take (ns): queues on several machines may wait for one of them.
_LONG: Final = 300 * 10**9


CF_SELECT_CAP: Final = RULES.rule(
    "CF-SELECT-CAP", "IMPLIED", "tier A", by="client", answer="connection.close 503 or connection.close 540"
)


def confirms_without_capability(case: Case091) -> None:
    """A client sends confirm.select although the server has not announced the capability publisher_confirms.

    Demands: A client may send confirm.select only if the server announces the capability publisher_confirms.
    Source: RMQ:docs/confirms; RMQ:docs/connections (capabilities)
    Evidence: the capabilities in connection.start, and each confirm.select of the client
    Why it matters: Publisher confirms are a RabbitMQ extension. Servers without this extension do not know
    confirm.select and close the connection.
    Silent when: connection.start was not captured, or when amqpscope could not read it. The rule reports the
    fault only once per connection.
    How to mend it: Read the capabilities in the server-properties of connection.start. Without
    publisher_confirms, do not send confirm.select. Use transactions (the class `tx`), or publish without
    confirms.
    """
    case.report_once(
        CF_SELECT_CAP,
        "the peer sends confirm.select although the server has not announced the capability "
        "publisher_confirms",
        CERTAIN,
        {},
    )


CF_TX_EXCL: Final = RULES.rule("CF-TX-EXCL", "IMPLIED", "tier A", by="client", answer="channel.close 406")


def confirms_in_transaction(case: Case091) -> None:
    """A client sends confirm.select on a channel that is in transaction mode.

    Demands: A client must not send confirm.select on a channel in transaction mode.
    Source: RMQX:confirm.select (doc); RMQ:docs/confirms
    Evidence: the mode of the channel (transaction mode or not)
    Why it matters: Confirm mode and transaction mode exclude each other on a channel. RabbitMQ closes the
    channel when a client sends both tx.select and confirm.select.
    Silent when: the capture lacks octets that were sent on the channel before the confirm.select.
    How to mend it: Use either tx.select or confirm.select on a channel, never both. Applications that need
    both modes should open one channel for each mode. If channels come from a pool, do not use a transactional
    channel for confirms.
    """
    case.report(CF_TX_EXCL, "the peer sends confirm.select although the channel is in transaction mode")


CF_MODE: Final = RULES.rule("CF-MODE", "IMPLIED", "tier A", by="server", answer="connection.close 503")


def confirm_not_asked_for(case: Case091) -> None:
    """A server sends basic.ack or basic.nack on a channel that is not in confirm mode.

    Demands: A server may send basic.ack and basic.nack only on channels in confirm mode.
    Source: RMQ:docs/confirms; RMQX:basic.ack (doc)
    Evidence: the mode of the channel (confirm mode or not)
    Why it matters: Outside confirm mode the client does not count its messages. The client treats the
    basic.ack or basic.nack as an error and closes the connection.
    Silent when: the capture lacks octets that were sent on the channel before the basic.ack or basic.nack.
    How to mend it: For each channel, keep a flag that shows whether the channel is in confirm mode, and set
    the flag only on confirm.select. Send basic.ack and basic.nack only while the flag is set, and clear the
    flag when the channel closes.
    """
    case.report(CF_MODE, f"the peer sends {case.name} although the channel is not in confirm mode")


CF_TAG_NONZERO: Final = RULES.rule("CF-TAG-NONZERO", "MUST NOT", "tier A", by="server")


def confirm_of_tag_zero(case: Case091) -> None:
    """A server sends a publisher confirm with delivery-tag 0.

    Demands: The delivery-tag of a publisher confirm must not be 0.
    Source: XML domain delivery-tag.non-zero; RMQX:basic.ack.multiple
    Evidence: the delivery-tag of basic.ack or basic.nack
    Why it matters: Messages are counted from 1, so no message has delivery-tag 0. A client may assign the
    confirm to no message, or to all messages.
    Silent when: the channel is not in confirm mode.
    How to mend it: Number the messages of a channel from 1: the first basic.publish after confirm.select has
    number 1. Never send delivery-tag 0. To confirm several messages, send the highest tag with the multiple
    flag.
    """
    case.report(CF_TAG_NONZERO, "the confirm has delivery-tag 0, but delivery-tags begin with 1")


CF_SEQ_RANGE: Final = RULES.rule(
    "CF-SEQ-RANGE",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def confirm_of_what_was_not_published(case: Case091, tag: int, published: int, certainty: i64) -> None:
    """A server confirms a message that the client has not published yet.

    Demands: The delivery-tag of a publisher confirm must lie between 1 and the number of messages published
    since confirm.select.
    Source: RMQ:docs/confirms; RMQX:confirm (doc)
    Evidence: the number of messages that were published completely on the channel after confirm.select
    Why it matters: Client and server count the messages differently. After a confirm for a message that was
    not published, the client may assign each confirm to the wrong message.
    Silent when: the capture lacks octets that were sent on the channel before the confirm. The finding is
    reported as possible, not as certain, when the confirm names the next message and the client is still
    sending the body of that message.
    How to mend it: Count every basic.publish on the channel exactly once, starting with 1 after
    confirm.select. Restart the count when the channel is opened again, and do not count other frames.
    """
    case.report(
        CF_SEQ_RANGE,
        f"the confirm has delivery-tag {tag}, although only {count(published, 'message')} "
        f"{were(published)} published",
        certainty,
        {"delivery_tag": tag, "published": published},
    )


CF_ONCE: Final = RULES.rule("CF-ONCE", "MUST NOT", "tier A", by="server")


def confirmed_twice(case: Case091, tag: int, certainty: i64) -> None:
    """A server confirms a message that it has confirmed before.

    Demands: A server must confirm each published message only once.
    Source: RMQ:docs/confirms; RMQX:basic.ack.multiple.exists; RMQX:basic.nack.multiple.exists
    Evidence: the messages of the channel that are not confirmed yet, and those that a confirm with the
    multiple flag covers
    Why it matters: A client that counts its confirms treats the second confirm as the confirm of another
    message.
    Silent when: the capture lacks octets that were sent on the channel before the confirm. The finding is
    reported as possible, not as certain, when the confirm has the multiple flag and earlier messages are
    still unconfirmed.
    How to mend it: Confirm each message exactly once, and remove it from the unconfirmed set when the confirm
    is sent. After a confirm with the multiple flag, do not also confirm each covered message by itself.
    """
    case.report(
        CF_ONCE,
        f"the server confirms message {tag} a second time",
        certainty,
        {"delivery_tag": tag},
    )


CF_EXCLUSIVE: Final = RULES.rule(
    "CF-EXCLUSIVE",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def confirmed_both_ways(case: Case091, tag: int, before: str) -> None:
    """A server confirms the same message with both basic.ack and basic.nack.

    Demands: A server must confirm a message either with basic.ack or with basic.nack. A basic.ack with the
    multiple flag must not cover a message that was nacked.
    Source: RMQ:docs/confirms
    Evidence: the messages of the channel that the server has acked, and those that it has nacked
    Why it matters: The client cannot know whether the message is safe. The client may publish the message
    twice or lose it.
    Silent when: the capture lacks octets that were sent on the channel before the confirm.
    How to mend it: Decide once per message, after all queues have reported, whether to send basic.ack or
    basic.nack. Do not let a basic.ack with the multiple flag cover a message that was nacked.
    """
    now = "nack" if before == "acked" else "ack"
    case.report(
        CF_EXCLUSIVE,
        f"the server confirms message {tag} with basic.{now}, but has already confirmed this message with "
        f"basic.{before[:-2]}",
        evidence={"delivery_tag": tag},
    )


CF_ALL: Final = RULES.rule("CF-ALL", "MUST", "tier B", by="server")


def never_confirmed(case: Case091, publish: Publish, unconfirmed: int, age: i64) -> None:
    """A server completes the normal close of a channel, but has not confirmed a message that was published at
    least five minutes earlier.

    Demands: A server must confirm every message that is published in confirm mode.
    Source: RMQX:confirm.all messages acknowledged
    Evidence: the messages that are not confirmed when the channel ends normally
    Why it matters: The client does not know whether the message is safe, and may wait forever for the
    confirm.
    Silent when: the oldest unconfirmed message was published less than five minutes before the end of the
    channel. The rule is also silent when the capture lacks octets that were sent on the channel before that
    message.
    Only possible because: The specification sets no time by which a confirm is due.
    How to mend it: Send basic.ack or basic.nack for every message published in confirm mode, also for
    unroutable, rejected and expired messages. Send outstanding confirms before channel.close-ok or
    connection.close-ok.
    """
    case.report(
        CF_ALL,
        f"the channel closes, but the server has not confirmed {count(unconfirmed, 'message')}; the oldest "
        f"unconfirmed message was published {age // 10**9} s before",
        POSSIBLE,
        {"unconfirmed": unconfirmed, "delivery_tag": publish.number},
        [int(publish.packet)],
    )


CF_NACK_HANDLE: Final = RULES.rule("CF-NACK-HANDLE", "SHOULD", "tier B", by="client")


def nack_not_coped_with(case: Case091) -> None:
    """A client in confirm mode closes the channel or the connection because it received a basic.nack.

    Demands: A client in confirm mode should be able to handle basic.nack.
    Source: RMQX:basic.nack.04
    Evidence: a basic.nack of the server, and the client's close that names basic.nack as its cause
    Why it matters: In confirm mode, basic.nack reports that the server could not accept a message. By
    closing, the client also loses all other messages on the channel.
    Silent when: the client's close does not name basic.nack as its cause, or when the close has one of the
    reply-codes 501 (frame-error), 502 (syntax-error) and 505 (unexpected-frame). The rule is also silent when
    the server has nacked no message, or when amqpscope could not read all octets of the server.
    How to mend it: Handle a received basic.nack like a basic.ack with a negative result. Remove the messages
    that the basic.nack covers from the list of unconfirmed messages, and let the application publish these
    messages again.
    """
    case.report(
        CF_NACK_HANDLE,
        "the client closes the channel or connection because of a basic.nack, but "
        "in confirm mode a client should be able to handle basic.nack",
    )


def judge_select(case: Case091, channel: Channel) -> None:
    """A client's confirm.select."""
    server = case.view.server
    if server is not None and server.lacks("publisher_confirms"):
        confirms_without_capability(case)
    if channel.transacted and channel.whole:
        confirms_in_transaction(case)


def judge_confirm(case: Case091, channel: Channel, tag: int, multiple: bool, positive: bool) -> None:
    """A server's basic.ack or basic.nack."""
    publishes = channel.publishes
    if tag in publishes.unconfirmed:
        return
    if not publishes.confirming:
        if channel.whole:
            confirm_not_asked_for(case)
        return
    if tag == 0:
        confirm_of_tag_zero(case)
        return
    if not channel.whole or not publishes.whole:
        return
    if tag > publishes.count:
        under_way = channel.last_publish.incomplete and tag == publishes.count + 1
        certainty: i64 = POSSIBLE if under_way else CERTAIN
        confirm_of_what_was_not_published(case, tag, publishes.count, certainty)
        return
    if multiple and publishes.covered(tag, True):
        confirmed_twice(case, tag, POSSIBLE)
    elif (publishes.nacked if positive else publishes.acked).cover(tag, tag):
        confirmed_both_ways(case, tag, "nacked" if positive else "acked")
    else:
        confirmed_twice(case, tag, CERTAIN)


def judge_end(case: Case091, channel: Channel) -> None:
    """A server's channel.close-ok or connection.close-ok."""
    publishes = channel.publishes
    oldest = publishes.oldest()
    if oldest is None or not channel.whole or not publishes.whole:
        return
    if channel.closed_by_server is not None:
        return
    age = case.record.time - oldest.time
    if case.me.stalls.free(oldest.time, case.record.time) >= _LONG:
        never_confirmed(case, oldest, len(publishes.unconfirmed), age)


def judge_nack_refused(case: Case091, channel: Channel) -> None:
    """A client's channel.close or connection.close that names basic.nack."""
    if channel.publishes.nacked.firsts and case.me.whole:
        nack_not_coped_with(case)
