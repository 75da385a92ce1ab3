"""Publisher confirms: confirm.select, and what a server says of publishes (RabbitMQ, "Publisher Confirms").

Messages are counted from 1 with the first one behind confirm.select; a message is published when its last
frame can have come.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.publishes import Publish
from dissectors.amqp091.methods import ConfirmSelect
from dissectors.wire import i64

__all__ = ["judge_confirm", "judge_end", "judge_nack_refused", "judge_select"]

RULES: Final = Rules("amqp091/confirm")


# What a confirm may take before it is missed (ns): queues on several machines may wait for one of them.
_LONG: Final = 300 * 10**9


CF_SELECT_CAP: Final = RULES.rule(
    "CF-SELECT-CAP", "IMPLIED", "tier A", by="client", answer="connection.close 503 or connection.close 540"
)


def confirms_without_capability(case: Case091) -> None:
    """A client asks for confirms of a server that does not say that it gives any.

    Demands: confirm.select is used only if the server announces publisher_confirms.
    Source: RMQ:docs/confirms; RMQ:docs/connections (capabilities)
    Evidence: server capabilities; 85.10 from client
    Why it matters: Publisher confirms are a RabbitMQ extension. Servers without this extension do not know
    the method and close the connection.
    Silent when: the server's start was not captured, or could not be read. Told once a connection.
    How to mend it: Read the capabilities in the server-properties of connection.start. Without
    publisher_confirms, do not send confirm.select; use the class tx or publish without confirms.
    """
    case.report_once(CF_SELECT_CAP, "the server has not said that it has publisher_confirms", CERTAIN, {})


CF_TX_EXCL: Final = RULES.rule("CF-TX-EXCL", "IMPLIED", "tier A", by="client", answer="channel.close 406")


def confirms_in_transaction(case: Case091) -> None:
    """A client sends confirm.select on a channel that is in transaction mode.

    Demands: confirm.select is not used on a transacted channel.
    Source: RMQX:confirm.select (doc); RMQ:docs/confirms
    Evidence: tx mode per channel
    Why it matters: Confirm mode and transaction mode exclude each other on a channel. RabbitMQ closes the
    channel.
    Silent when: something before the confirm.select on the channel was not captured.
    How to mend it: Use either tx.select or confirm.select on a channel, never both. Applications that need
    both open one channel for each; do not take a transactional channel from a pool for confirms.
    """
    case.report(CF_TX_EXCL, "the channel is transactional")


CF_MODE: Final = RULES.rule("CF-MODE", "IMPLIED", "tier A", by="server", answer="connection.close 503")


def confirm_not_asked_for(case: Case091) -> None:
    """A server sends basic.ack or basic.nack on a channel that is not in confirm mode.

    Demands: The server sends basic.ack or basic.nack only on channels in confirm mode.
    Source: RMQ:docs/confirms; RMQX:basic.ack (doc)
    Evidence: confirm mode per channel
    Why it matters: Outside confirm mode the client does not count its messages. The client treats the frame
    as an error and closes the connection.
    Silent when: something before the frame on the channel was not captured.
    How to mend it: Keep a confirm mode flag per channel and set it only by confirm.select. Send basic.ack and
    basic.nack only while the flag is set, and clear it when the channel closes.
    """
    case.report(CF_MODE, "the channel is not in confirm mode")


CF_TAG_NONZERO: Final = RULES.rule("CF-TAG-NONZERO", "MUST NOT", "tier A", by="server")


def confirm_of_tag_zero(case: Case091) -> None:
    """A server sends a confirm with delivery-tag 0.

    Demands: A confirm's tag is not zero.
    Source: XML domain delivery-tag.non-zero; RMQX:basic.ack.multiple
    Evidence: tag
    Why it matters: Messages are counted from 1. A client that does not know delivery-tag 0 assigns the
    confirm to no message, or to all messages.
    Silent when: the channel is not in confirm mode.
    How to mend it: Number the messages of a channel from 1: the first basic.publish after
    confirm.select has number 1. Never send delivery-tag 0; to confirm several messages, send the highest
    tag with multiple.
    """
    case.report(CF_TAG_NONZERO, "delivery-tag 0")


CF_SEQ_RANGE: Final = RULES.rule(
    "CF-SEQ-RANGE", "IMPLIED", "tier A", by="server", warning="The text implies it and names no error for it."
)


def confirm_of_what_was_not_published(case: Case091, tag: int, count: int, certainty: i64) -> None:
    """A confirm names a message that was not published yet.

    Demands: A confirm's tag lies between 1 and the number of contents published since confirm.select.
    Source: RMQ:docs/confirms; RMQX:confirm (doc)
    Evidence: publish counter per channel life, first publish after the select frame (not select-ok) = 1;
    count a publish when its last frame has passed
    Why it matters: Client and server count messages differently. From this confirm on, each confirm may refer
    to another message than the client assumes.
    Silent when: something before it on the channel was not captured. Only possible of the next message while
    its content is not all there, by the size that it tells.
    How to mend it: Count every basic.publish on the channel exactly once, starting with 1 behind
    confirm.select. Restart the count when the channel is opened again, and do not count other frames.
    """
    case.report(
        CF_SEQ_RANGE,
        f"delivery-tag {tag}, {count} messages were published",
        certainty,
        {"delivery_tag": tag, "published": count},
    )


CF_ONCE: Final = RULES.rule("CF-ONCE", "MUST NOT", "tier A", by="server")


def confirmed_twice(case: Case091, tag: int, certainty: i64) -> None:
    """A server confirms a message that it has confirmed before.

    Demands: Each published message is confirmed once.
    Source: RMQ:docs/confirms; RMQX:basic.ack.multiple.exists; RMQX:basic.nack.multiple.exists
    Evidence: open sequence numbers; ranges of multiple
    Why it matters: A client that counts its confirms takes the second confirm for the confirm of another
    message.
    Silent when: something before the confirm on the channel was not captured. The finding is only possible,
    not certain, when the confirm has multiple set and earlier messages are still unconfirmed.
    How to mend it: Confirm each message exactly once, and remove it from the unconfirmed set when the confirm
    is sent. After a confirm with multiple, do not confirm the covered messages singly.
    """
    case.report(
        CF_ONCE,
        f"message {tag} was confirmed before",
        certainty,
        {"delivery_tag": tag},
    )


CF_EXCLUSIVE: Final = RULES.rule(
    "CF-EXCLUSIVE", "IMPLIED", "tier A", by="server", warning="The text implies it and names no error for it."
)


def confirmed_both_ways(case: Case091, tag: int, before: str) -> None:
    """A server sends basic.ack for a message that it has already confirmed with basic.nack, or the other way
    round.

    Demands: A message is either acked or nacked, and a multiple ack does not sweep over a nacked one.
    Source: RMQ:docs/confirms
    Evidence: nacked and acked sequence numbers
    Why it matters: The client cannot know whether the message is safe. The client may publish the message
    twice or lose it.
    Silent when: something before the confirm on the channel was not captured.
    How to mend it: Decide once per message, after all queues have reported, whether to send basic.ack or
    basic.nack. Do not let a basic.ack with multiple cover a message that was nacked.
    """
    case.report(
        CF_EXCLUSIVE,
        f"message {tag} was {before} before",
        evidence={"delivery_tag": tag},
    )


CF_ALL: Final = RULES.rule("CF-ALL", "MUST", "tier B", by="server")


def never_confirmed(case: Case091, publish: Publish, count: int, age: i64) -> None:
    """A server lets a channel end in good order without having confirmed a message that was published long
    before.

    Demands: Every message published in confirm mode is confirmed in the end.
    Source: RMQX:confirm.all messages acknowledged
    Evidence: open sequence numbers at a quiet end of the channel
    Why it matters: The client does not know whether the message is safe, and may wait for the confirm for
    ever.
    Silent when: the oldest unconfirmed message is younger than five minutes, or something before it on the
    channel was not captured.
    Only possible because: The specification sets no time by which a confirm is due.
    How to mend it: Send basic.ack or basic.nack for every message published in confirm mode, also for
    unroutable, rejected and expired messages. Send outstanding confirms before channel.close-ok or
    connection.close-ok.
    """
    case.report(
        CF_ALL,
        f"{count} messages are not confirmed, the oldest of them for {age // 10**9} s",
        POSSIBLE,
        {"unconfirmed": count, "delivery_tag": publish.number},
        [int(publish.packet)],
    )


CF_NACK_HANDLE: Final = RULES.rule("CF-NACK-HANDLE", "SHOULD", "tier B", by="client")


def nack_not_coped_with(case: Case091) -> None:
    """A client in confirm mode closes because of a basic.nack.

    Demands: A publisher in confirm mode can cope with nacks.
    Source: RMQX:basic.nack.04
    Evidence: nack from server; client close with 503 or 540
    Why it matters: A basic.nack is part of confirm mode: it reports that the server could not accept a
    message. The close loses all other messages on the channel, too.
    Silent when: the close does not name basic.nack, or has the code of an error in its octets (501, 502,
    505); no message was nacked; or something of the server's was not captured or could not be read.
    How to mend it: Handle a received basic.nack like basic.ack, with a negative result: remove the covered
    messages from the unconfirmed set and tell the application to publish them again.
    """
    case.report(CF_NACK_HANDLE, "the client closes for a basic.nack")


def judge_select(case: Case091, channel: Channel, method: ConfirmSelect) -> None:
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
        certainty: i64 = POSSIBLE if channel.publishing and tag == publishes.count + 1 else CERTAIN
        confirm_of_what_was_not_published(case, tag, publishes.count, certainty)
        return
    if multiple and publishes.covered(tag, True):
        confirmed_twice(case, tag, POSSIBLE)
    elif (publishes.nacked if positive else publishes.acked).cover(tag, tag):
        confirmed_both_ways(case, tag, "nacked" if positive else "acked")
    else:
        confirmed_twice(case, tag, CERTAIN)


def judge_end(case: Case091, channel: Channel) -> None:
    """A server's channel.close-ok, or its close-ok of the connection."""
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
    """A client's close, of the channel or of the connection, that names basic.nack."""
    if channel.publishes.nacked.firsts and case.me.whole:
        nack_not_coped_with(case)
