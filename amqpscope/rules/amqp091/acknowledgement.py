"""What a client says of deliveries: basic.ack, basic.reject, basic.nack (class basic; RabbitMQ, "nack").

A delivery is the client's to speak of from its basic.deliver or basic.get-ok on, on that channel, and once.
What is named by a frame is looked up among the deliveries that the client can have received by then.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.endpoint import ALL
from dissectors.amqp091.methods import BasicAck, BasicNack, BasicReject
from dissectors.wire import i64

__all__ = ["judge_ack", "judge_nack", "judge_reject"]

RULES: Final = Rules("amqp091/acknowledgement")


B_ACK_ZERO: Final = RULES.rule("B-ACK-ZERO", "IMPLIED", "tier A", by="client", answer="channel.close 406")


def ack_of_none(case: Case091) -> None:
    """A client sends basic.ack with delivery-tag 0 and without multiple, although no delivery has
    delivery-tag 0.

    Demands: Tag zero is used only together with multiple.
    Source: XML:basic.ack.multiple (field doc); XML domain delivery-tag.non-zero
    Evidence: tag and multiple bit
    Why it matters: The server closes the channel. Delivery-tag 0 stands for all unacknowledged deliveries,
    and only when multiple is set.
    Silent when: the basic.ack has multiple, or stands on a channel that is not open; another rule reports the
    channel.
    How to mend it: Acknowledge with the delivery-tag that basic.deliver or basic.get-ok carried. To
    acknowledge all outstanding deliveries, send delivery-tag 0 with multiple set. Look for a delivery-tag
    variable that is still at its initial value 0.
    """
    case.report(B_ACK_ZERO, "delivery-tag 0 without multiple")


B_REJECT_ZERO: Final = RULES.rule(
    "B-REJECT-ZERO", "IMPLIED", "tier A", by="client", answer="channel.close 406"
)


def reject_of_none(case: Case091) -> None:
    """A client sends basic.reject with delivery-tag 0, although no delivery has delivery-tag 0.

    Demands: Reject has no multiple flag, so its tag is not zero.
    Source: XML domain delivery-tag.non-zero; XML:basic.reject.delivery-tag
    Evidence: Reject.delivery-tag
    Why it matters: The server closes the channel. A basic.reject always names exactly one delivery, so
    delivery-tag 0 cannot stand for several.
    Silent when: the basic.reject stands on a channel that is not open; another rule reports the channel.
    How to mend it: Reject with the delivery-tag that basic.deliver or basic.get-ok carried, one basic.reject
    per delivery. Look for a delivery-tag variable that is still at its initial value 0.
    """
    case.report(B_REJECT_ZERO, "delivery-tag 0")


B_ACK_CHANNEL: Final = RULES.rule(
    "B-ACK-CHANNEL", "MUST NOT", "tier A", by="client", answer="channel.close 406"
)


def ack_on_another_channel(case: Case091, tag: int, other: Channel) -> None:
    """A delivery is acknowledged on another channel than the one that it came on.

    Demands: A message is acknowledged on the channel that delivered it.
    Source: XML domain delivery-tag.channel-local
    Evidence: unacked tags per channel; the tag is unknown here but outstanding on a sibling channel
    Why it matters: Each channel counts its own delivery-tags. Here the server does not know the tag and
    closes the channel; a tag in use here would have acknowledged another message.
    Silent when: the channel's beginning was not captured, or the tag is in use on it by chance. Of many
    channels only the first are searched; else it is B-ACK-KNOWN's.
    How to mend it: Store the channel together with each delivery and send the basic.ack on that channel.
    Applications that use several channels must not acknowledge deliveries of one channel through another one.
    """
    case.report(
        B_ACK_CHANNEL,
        f"delivery-tag {tag} was not given out on this channel; channel {other.number} has it unacknowledged",
        evidence={"delivery_tag": tag, "other_channel": int(other.number)},
        others=[int(other.deliveries.unacknowledged[tag].packet)],
    )
    case.astray = ALL


B_ACK_KNOWN: Final = RULES.rule("B-ACK-KNOWN", "IMPLIED", "tier A", by="client", answer="channel.close 406")


def ack_of_unknown_delivery(case: Case091, tag: int, last: int) -> None:
    """A client sends a basic.ack with a delivery-tag that the server has not given out on the channel.

    Demands: A non-zero ack tag belongs to a message delivered on that channel.
    Source: XML:basic.ack.multiple.exists
    Evidence: delivered tags of the channel life
    Why it matters: The server closes the channel, and it delivers all messages again that were unacknowledged
    on the channel.
    Silent when: something before the basic.ack on the channel was not captured.
    How to mend it: Acknowledge only delivery-tags received on this channel since it was opened. After a
    channel is reopened, discard the tags of the old channel and do not acknowledge them.
    """
    case.report(
        B_ACK_KNOWN,
        f"delivery-tag {tag} was not given out on this channel; the last was {last}",
        evidence={"delivery_tag": tag, "last_delivery_tag": last},
    )


B_REJECT_KNOWN: Final = RULES.rule(
    "B-REJECT-KNOWN", "IMPLIED", "tier A", by="client", answer="channel.close 406"
)


def reject_of_unknown_delivery(case: Case091, tag: int, last: int) -> None:
    """A client sends a basic.reject with a delivery-tag that the server has not given out on the channel.

    Demands: Reject names a delivered and still unsettled message of that channel.
    Source: ERR:21; XML domain delivery-tag.channel-local
    Evidence: unacked tags
    Why it matters: The server closes the channel, and it delivers all messages again that were unacknowledged
    on the channel.
    Silent when: something before the basic.reject on the channel was not captured.
    How to mend it: Reject only delivery-tags received on this channel since it was opened. After a channel is
    reopened, discard the tags of the old channel and do not reject them.
    """
    case.report(
        B_REJECT_KNOWN,
        f"delivery-tag {tag} was not given out on this channel; the last was {last}",
        evidence={"delivery_tag": tag, "last_delivery_tag": last},
    )


B_NACK_KNOWN: Final = RULES.rule(
    "B-NACK-KNOWN", "MUST NOT", "tier A", by="client", answer="channel.close 406"
)


def nack_of_unknown_delivery(case: Case091, tag: int, reason: str, certainty: i64) -> None:
    """A client sends a basic.nack with a delivery-tag that does not belong to an unacknowledged delivery on
    the channel.

    Demands: Nack names a delivered and still unsettled message of that channel (zero only with multiple).
    Source: RMQX:basic.nack.multiple.exists
    Evidence: unacked tags
    Why it matters: The server closes the channel, and it delivers all messages again that were unacknowledged
    on the channel.
    Silent when: something before the basic.nack on the channel was not captured, or the delivery was sent
    with no-ack, which another rule reports. Another rule, B-ACK-DUP, reports it when a basic.nack without
    multiple names a delivery that was settled before. With multiple the finding is only possible, not
    certain, when the delivery may have been recovered, or when earlier deliveries are still unacknowledged
    and the server is not RabbitMQ.
    Possible because: The delivery may have been recovered in the meantime, or the {other} may accept the
    basic.nack because it covers earlier deliveries.
    How to mend it: Send basic.nack only for deliveries of this channel that are still unacknowledged. Use
    delivery-tag 0 only with multiple set, and discard the tags of a channel when it closes.
    """
    case.report(B_NACK_KNOWN, reason, certainty, {"delivery_tag": tag})


B_ACK_DUP: Final = RULES.rule("B-ACK-DUP", "MUST NOT", "tier A", by="client", answer="channel.close 406")


def settled_twice(case: Case091, tag: int, reason: str, certainty: i64) -> None:
    """A client acknowledges, rejects or nacks a delivery that it has acknowledged, rejected or nacked before.

    Demands: No message is acknowledged, rejected or nacked more than once.
    Source: XML:basic.ack.multiple.exists
    Evidence: settled tags; multiple ranges; undo on tx.rollback; all cleared by recover(requeue=1)
    Why it matters: The server closes the channel, and it delivers all messages again that were unacknowledged
    on the channel.
    Silent when: something before the frame on the channel was not captured, or a tx.rollback has undone the
    earlier acknowledgement. The finding is only possible, not certain, where the server has left out
    delivery-tags, or where a recover gave the delivery back.
    How to mend it: Settle each delivery exactly once, and remember that an acknowledgement with multiple also
    settles all earlier deliveries. Typical API misuse: both the message handler and a cleanup or error path
    settle the same delivery.
    """
    case.report(B_ACK_DUP, reason, certainty, {"delivery_tag": tag})


B_ACK_MULTIPLE: Final = RULES.rule(
    "B-ACK-MULTIPLE", "MUST NOT", "tier A", by="client", answer="channel.close 406"
)


def ack_up_to_settled_delivery(case: Case091, tag: int, others: int, certainty: i64) -> None:
    """A client sends a basic.ack with multiple whose delivery-tag names a delivery that was settled before.

    Demands: An ack with multiple and a non-zero tag names a message that is itself still unacknowledged.
    Source: XML:basic.ack.multiple.exists
    Evidence: unacked tags
    Why it matters: RabbitMQ looks for the named delivery itself. If that delivery is already settled,
    RabbitMQ closes the channel, even if the basic.ack covers other unacknowledged deliveries.
    Silent when: something before the basic.ack on the channel was not captured, the channel is about to be
    closed, or the delivery was sent with no-ack, which another rule reports. The finding is only possible,
    not certain, when the delivery may have been recovered, and at servers other than RabbitMQ while
    deliveries before the named one are still unacknowledged, because LavinMQ and others accept such a
    basic.ack.
    Possible because: The delivery may have been recovered in the meantime, or the {other} may accept the
    basic.ack because it covers earlier deliveries.
    How to mend it: For a basic.ack with multiple, use the delivery-tag of a delivery that is still
    unacknowledged, such as the highest outstanding one. Do not mix single and multiple acknowledgements
    without tracking which tags are outstanding.
    """
    case.report(
        B_ACK_MULTIPLE,
        f"delivery-tag {tag} with multiple, which was settled before; {others} before it are not",
        certainty,
        {"delivery_tag": tag, "covered": others},
    )


B_ACK_NOACK: Final = RULES.rule("B-ACK-NOACK", "IMPLIED", "tier A", by="client", answer="channel.close 406")


def ack_of_delivery_without_acks(case: Case091, tag: int) -> None:
    """A client acknowledges, rejects or nacks a delivery that the server sent with no-ack.

    Demands: Deliveries from a no-ack consumer or get are not acknowledged.
    Source: XML domain no-ack (doc); RMQ:server rabbit_channel collect_acks
    Evidence: no-ack flag per consumer and get; tags they produced
    Why it matters: The server treated the delivery as settled when it sent the delivery. The server closes
    the channel.
    Silent when: something before the frame on the channel was not captured.
    How to mend it: Send no basic.ack, basic.reject or basic.nack for deliveries requested with no-ack. If the
    application wants to acknowledge, leave no-ack unset in basic.consume or basic.get.
    """
    case.report(
        B_ACK_NOACK,
        f"delivery-tag {tag} was delivered with no-ack",
        evidence={"delivery_tag": tag},
    )


B_NACK_CAP: Final = RULES.rule(
    "B-NACK-CAP", "IMPLIED", "tier A", by="client", answer="connection.close 503 or connection.close 540"
)


def nack_without_capability(case: Case091) -> None:
    """A client sends basic.nack to a server that does not say that it knows it.

    Demands: basic.nack is used only if the server announces the capability basic.nack.
    Source: RMQ:docs/nack; RMQ:docs/connections (capabilities)
    Evidence: server capabilities; 60.120 from client
    Why it matters: The method basic.nack is a RabbitMQ extension. Servers without this extension do not know
    the method and close the connection.
    Silent when: the server's start was not captured, or could not be read. Told once a connection.
    How to mend it: Read the capabilities in the server-properties of connection.start. Without the capability
    basic.nack, send one basic.reject per delivery instead.
    """
    case.report_once(B_NACK_CAP, "the server has not said that it knows basic.nack", CERTAIN, {})


def judge_ack(case: Case091, channel: Channel, method: BasicAck) -> None:
    """A client's basic.ack."""
    tag = method.delivery_tag
    if tag in channel.deliveries.unacknowledged:
        return
    if tag == 0:
        if not method.multiple:
            ack_of_none(case)
        return
    if not all_known(channel):
        return
    last = channel.deliveries.last
    if tag > last:
        for other in case.view.some_channels():
            if tag in other.deliveries.unacknowledged:
                ack_on_another_channel(case, tag, other)
                return
        ack_of_unknown_delivery(case, tag, last)
        return
    if needs_none(channel, tag):
        ack_of_delivery_without_acks(case, tag)
        return
    if not method.multiple:
        settled_twice(case, tag, f"delivery-tag {tag} is settled", certainty_of_settlement(channel, tag))
        return
    others = len(channel.deliveries.covered(tag, True))
    certainty = certainty_of_settlement(channel, tag)
    if others > 0 and not case.view.of_product("RabbitMQ"):
        certainty = POSSIBLE
    ack_up_to_settled_delivery(case, tag, others, certainty)


def judge_reject(case: Case091, channel: Channel, method: BasicReject) -> None:
    """A client's basic.reject."""
    tag = method.delivery_tag
    if tag in channel.deliveries.unacknowledged:
        return
    if tag == 0:
        reject_of_none(case)
        return
    if not all_known(channel):
        return
    last = channel.deliveries.last
    if tag > last:
        reject_of_unknown_delivery(case, tag, last)
    elif needs_none(channel, tag):
        ack_of_delivery_without_acks(case, tag)
    else:
        settled_twice(case, tag, f"delivery-tag {tag} is settled", certainty_of_settlement(channel, tag))


def judge_nack(case: Case091, channel: Channel, method: BasicNack) -> None:
    """A client's basic.nack."""
    server = case.view.server
    if server is not None and server.lacks("basic.nack"):
        nack_without_capability(case)
    tag = method.delivery_tag
    if tag in channel.deliveries.unacknowledged:
        return
    if tag == 0:
        if not method.multiple:
            nack_of_unknown_delivery(case, tag, "delivery-tag 0 without multiple", CERTAIN)
        return
    if not all_known(channel):
        return
    last = channel.deliveries.last
    if tag > last:
        reason = f"delivery-tag {tag} was not given out on this channel; the last was {last}"
        nack_of_unknown_delivery(case, tag, reason, CERTAIN)
    elif needs_none(channel, tag):
        ack_of_delivery_without_acks(case, tag)
    elif not method.multiple:
        settled_twice(case, tag, f"delivery-tag {tag} is settled", certainty_of_settlement(channel, tag))
    else:
        others = len(channel.deliveries.covered(tag, True))
        reason = f"delivery-tag {tag} with multiple, which was settled before; {others} before it are not"
        certainty = certainty_of_settlement(channel, tag)
        if others > 0 and not case.view.of_product("RabbitMQ"):
            certainty = POSSIBLE
        nack_of_unknown_delivery(case, tag, reason, certainty)


def all_known(channel: Channel) -> bool:
    """Whether all deliveries on it are known; of a server that was not captured not even its open-ok is."""
    return channel.whole and channel.deliveries.whole and channel.state == "OPEN"


def needs_none(channel: Channel, tag: int) -> bool:
    """Whether the delivery of a tag came with no-ack."""
    return channel.deliveries.free.cover(tag, tag)


def certainty_of_settlement(channel: Channel, tag: int) -> i64:
    """How certain it is that a delivery that is not open was settled: it may have been recovered, or none."""
    deliveries = channel.deliveries
    if not deliveries.gapless or deliveries.free.full or deliveries.recovered.full:
        return POSSIBLE
    return POSSIBLE if deliveries.recovered.cover(tag, tag) else CERTAIN
