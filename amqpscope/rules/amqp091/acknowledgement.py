"""How a client settles deliveries: basic.ack, basic.reject, basic.nack (class basic; RabbitMQ, "nack").

A client may settle a delivery once, on the channel of the basic.deliver or basic.get-ok. The rules look up a
delivery-tag among the deliveries that the client can have received by then.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.endpoint import ALL
from amqpscope.tracking.amqp091.states import OPEN
from dissectors.amqp091.methods import BasicAck, BasicNack, BasicReject
from dissectors.wire import i64
from dissectors.wording import are, count

__all__ = ["judge_ack", "judge_nack", "judge_reject"]

RULES: Final = Rules("amqp091/acknowledgement")


B_ACK_ZERO: Final = RULES.rule("B-ACK-ZERO", "IMPLIED", "tier A", by="client", answer="channel.close 406")


def ack_of_none(case: Case091) -> None:
    """A client sends basic.ack with delivery-tag 0 and without the multiple flag, but no delivery has
    delivery-tag 0.

    Demands: In basic.ack, delivery-tag 0 may be used only together with the multiple flag.
    Source: XML:basic.ack.multiple (field doc); XML domain delivery-tag.non-zero
    Evidence: the delivery-tag and the multiple bit of basic.ack
    Why it matters: The server closes the channel. Delivery-tag 0 stands for all unacknowledged deliveries,
    but only when the multiple flag is set.
    Silent when: the basic.ack has the multiple flag, or when another rule already reports that the channel is
    not open.
    How to mend it: Acknowledge with the delivery-tag that basic.deliver or basic.get-ok carried. To
    acknowledge all outstanding deliveries, send delivery-tag 0 with the multiple flag. Look for a
    delivery-tag variable that is still at its initial value 0.
    """
    case.report(
        B_ACK_ZERO,
        "basic.ack has delivery-tag 0 without the multiple flag, but no delivery has delivery-tag 0",
    )


B_REJECT_ZERO: Final = RULES.rule(
    "B-REJECT-ZERO", "IMPLIED", "tier A", by="client", answer="channel.close 406"
)


def reject_of_none(case: Case091) -> None:
    """A client sends basic.reject with delivery-tag 0, but no delivery has delivery-tag 0.

    Demands: The delivery-tag of basic.reject must not be 0, because basic.reject has no multiple bit.
    Source: XML domain delivery-tag.non-zero; XML:basic.reject.delivery-tag
    Evidence: the delivery-tag of basic.reject
    Why it matters: The server closes the channel. A basic.reject always applies to exactly one delivery, so
    delivery-tag 0 cannot stand for several deliveries.
    Silent when: another rule already reports that the channel of the basic.reject is not open.
    How to mend it: Send one basic.reject per delivery, with the delivery-tag that basic.deliver or
    basic.get-ok carried. Look for a delivery-tag variable that is still at its initial value 0.
    """
    case.report(B_REJECT_ZERO, "basic.reject has delivery-tag 0, which belongs to no delivery")


B_ACK_CHANNEL: Final = RULES.rule(
    "B-ACK-CHANNEL", "MUST NOT", "tier A", by="client", answer="channel.close 406"
)


def ack_on_another_channel(case: Case091, tag: int, other: Channel) -> None:
    """A client acknowledges a delivery on another channel than the channel on which the delivery arrived.

    Demands: A client must acknowledge a delivery on the channel on which the server delivered it.
    Source: XML domain delivery-tag.channel-local
    Evidence: the unacknowledged delivery-tags of all channels, because they show to which channel the
    delivery-tag belongs
    Why it matters: Each channel counts its own delivery-tags. The server does not find the delivery-tag on
    the channel of the basic.ack, and closes this channel. If the channel of the basic.ack uses the same
    delivery-tag, the basic.ack acknowledges the wrong message.
    Silent when: the capture lacks the beginning of the channel, or when the channel of the basic.ack happens
    to use the same delivery-tag. The rule is also silent when the server has sent a delivery-tag on the
    channel that was not larger than an earlier one. On a connection with many channels, the rule searches
    only the first channels for the delivery-tag. If none of the searched channels has the delivery-tag,
    B-ACK-KNOWN reports the fault.
    How to mend it: Store the channel together with each delivery and send the basic.ack on that channel.
    Applications that use several channels must not acknowledge deliveries of one channel on another channel.
    """
    case.report(
        B_ACK_CHANNEL,
        f"the client settles delivery-tag {tag}, but the server has sent delivery-tag {tag} on channel "
        f"{other.number}, not on this channel",
        evidence={"delivery_tag": tag, "other_channel": int(other.number)},
        others=[int(other.deliveries.unacknowledged.get(tag).packet)],
    )
    case.astray = ALL


B_ACK_KNOWN: Final = RULES.rule("B-ACK-KNOWN", "IMPLIED", "tier A", by="client", answer="channel.close 406")


def ack_of_unknown_delivery(case: Case091, tag: int, last: int) -> None:
    """A client sends a basic.ack with a delivery-tag that the server has not sent on the channel.

    Demands: A delivery-tag other than 0 in basic.ack must belong to a message that the server delivered on
    the same channel.
    Source: XML:basic.ack.multiple.exists
    Evidence: the delivery-tags that the server has sent since the channel was opened
    Why it matters: The server closes the channel. After closing the channel, the server redelivers all
    messages that were unacknowledged on this channel.
    Silent when: the capture lacks octets that were sent on the channel before the basic.ack. The rule is also
    silent when the server has sent a delivery-tag on the channel that was not larger than an earlier one.
    How to mend it: Acknowledge only delivery-tags received on this channel since it was opened. After a
    channel is reopened, discard the tags of the old channel and do not acknowledge them.
    """
    case.report(
        B_ACK_KNOWN,
        f"basic.ack has delivery-tag {tag}, but the last delivery-tag that the server has sent on this "
        f"channel is {last}",
        evidence={"delivery_tag": tag, "last_delivery_tag": last},
    )


B_REJECT_KNOWN: Final = RULES.rule(
    "B-REJECT-KNOWN", "IMPLIED", "tier A", by="client", answer="channel.close 406"
)


def reject_of_unknown_delivery(case: Case091, tag: int, last: int) -> None:
    """A client sends a basic.reject with a delivery-tag that the server has not sent on the channel.

    Demands: The delivery-tag of basic.reject must belong to an unacknowledged delivery of the same channel.
    Source: ERR:21; XML domain delivery-tag.channel-local
    Evidence: the unacknowledged delivery-tags of the channel
    Why it matters: The server closes the channel. After closing the channel, the server redelivers all
    messages that were unacknowledged on this channel.
    Silent when: the capture lacks octets that were sent on the channel before the basic.reject. The rule is
    also silent when the server has sent a delivery-tag on the channel that was not larger than an earlier
    one.
    How to mend it: Reject only delivery-tags received on this channel since it was opened. After a channel is
    reopened, discard the tags of the old channel and do not reject them.
    """
    case.report(
        B_REJECT_KNOWN,
        f"basic.reject has delivery-tag {tag}, but the last delivery-tag that the server has sent on this "
        f"channel is {last}",
        evidence={"delivery_tag": tag, "last_delivery_tag": last},
    )


B_NACK_KNOWN: Final = RULES.rule(
    "B-NACK-KNOWN", "MUST NOT", "tier A", by="client", answer="channel.close 406"
)


def nack_of_unknown_delivery(case: Case091, tag: int, reason: str, certainty: i64) -> None:
    """A client sends a basic.nack with a delivery-tag that does not belong to an unacknowledged delivery on
    the channel.

    Demands: The delivery-tag of basic.nack must belong to an unacknowledged delivery of the same channel.
    Delivery-tag 0 may be used only together with the multiple flag.
    Source: RMQX:basic.nack.multiple.exists
    Evidence: the unacknowledged delivery-tags of the channel
    Why it matters: The server closes the channel. After closing the channel, the server redelivers all
    messages that were unacknowledged on this channel.
    Silent when: the capture lacks octets that were sent on the channel before the basic.nack. The rule is
    also silent when the server has sent a delivery-tag on the channel that was not larger than an earlier
    one. The rule is also silent when another rule already reports that the delivery was sent with no-ack. If
    a client sends a basic.nack without the multiple flag for a delivery that was settled before, B-ACK-DUP
    reports the fault. For a basic.nack with the multiple flag, the finding is reported as possible, not as
    certain, when basic.recover may have returned the delivery to the queue. The finding is reported as
    possible, not as certain, when earlier deliveries are still unacknowledged and the server is not RabbitMQ.
    Possible because: The server may have redelivered the message after basic.recover, or the server may
    accept a basic.nack that covers earlier deliveries.
    How to mend it: Send basic.nack only for deliveries of this channel that are still unacknowledged. Use
    delivery-tag 0 only with the multiple flag, and discard the tags of a channel when it closes.
    """
    case.report(B_NACK_KNOWN, reason, certainty, {"delivery_tag": tag})


B_ACK_DUP: Final = RULES.rule("B-ACK-DUP", "MUST NOT", "tier A", by="client", answer="channel.close 406")


def settled_twice(case: Case091, tag: int, reason: str, certainty: i64) -> None:
    """A client acknowledges, rejects or nacks a delivery that it has acknowledged, rejected or nacked before.

    Demands: A client must settle each delivery only once, by basic.ack, basic.reject or basic.nack.
    Source: XML:basic.ack.multiple.exists
    Evidence: the delivery-tags that the client has settled on the channel, one at a time or with the multiple
    flag, and each tx.rollback or basic.recover that undoes a settlement
    Why it matters: The server closes the channel. After closing the channel, the server redelivers all
    messages that were unacknowledged on this channel.
    Silent when: the capture lacks octets that were sent on the channel before the second settlement. The rule
    is also silent when the server has sent a delivery-tag on the channel that was not larger than an earlier
    one. The rule is also silent when a tx.rollback has undone the earlier acknowledgement. The finding is
    reported as possible, not as certain, when the server skipped delivery-tags, or when basic.recover
    returned the delivery to the queue.
    How to mend it: Settle each delivery exactly once, and remember that an acknowledgement with the multiple
    flag also settles all earlier deliveries. A common cause is that the message handler and an error path
    both settle the same delivery.
    """
    case.report(B_ACK_DUP, reason, certainty, {"delivery_tag": tag})


B_ACK_MULTIPLE: Final = RULES.rule(
    "B-ACK-MULTIPLE", "MUST NOT", "tier A", by="client", answer="channel.close 406"
)


def ack_up_to_settled_delivery(case: Case091, tag: int, others: int, certainty: i64) -> None:
    """A client sends a basic.ack with the multiple flag and with the delivery-tag of a delivery that was
    settled before.

    Demands: In a basic.ack with the multiple flag, a delivery-tag other than 0 must belong to a delivery that
    is still unacknowledged.
    Source: XML:basic.ack.multiple.exists
    Evidence: the unacknowledged delivery-tags of the channel
    Why it matters: RabbitMQ looks for the delivery with exactly the delivery-tag of the basic.ack. If this
    delivery is already settled, RabbitMQ closes the channel, even if the basic.ack covers other
    unacknowledged deliveries.
    Silent when: the capture lacks octets that were sent on the channel before the basic.ack. The rule is also
    silent when the channel is being closed. The rule is also silent when another rule already reports that
    the delivery was sent with no-ack. The finding is reported as possible, not as certain, when basic.recover
    may have returned the delivery to the queue. The finding is reported as possible, not as certain, when
    earlier deliveries are still unacknowledged and the server is not RabbitMQ. LavinMQ and other brokers
    accept a basic.ack with the multiple flag if the basic.ack covers at least one unacknowledged delivery.
    Possible because: The server may have redelivered the message after basic.recover, or the server may
    accept a basic.ack that covers earlier deliveries.
    How to mend it: For a basic.ack with the multiple flag, use the delivery-tag of a delivery that is still
    unacknowledged, for example the highest outstanding delivery-tag. Keep a list of the outstanding
    delivery-tags if you mix single and multiple acknowledgements.
    """
    case.report(
        B_ACK_MULTIPLE,
        f"basic.ack with the multiple flag has delivery-tag {tag}, but this delivery is already settled; "
        f"{count(others, 'earlier delivery')} {are(others)} still unacknowledged",
        certainty,
        {"delivery_tag": tag, "covered": others},
    )


B_ACK_NOACK: Final = RULES.rule("B-ACK-NOACK", "IMPLIED", "tier A", by="client", answer="channel.close 406")


def ack_of_delivery_without_acks(case: Case091, tag: int, certainty: i64 = CERTAIN) -> None:
    """A client acknowledges, rejects or nacks a delivery that the server sent with no-ack.

    Demands: A client must not acknowledge deliveries that it requested with no-ack.
    Source: XML domain no-ack (doc); RMQ:server rabbit_channel collect_acks
    Evidence: the no-ack bit of basic.consume and basic.get, and the delivery-tags that belong to these
    requests
    Why it matters: With no-ack, a delivery counts as settled as soon as the server has sent the delivery. The
    server closes the channel because of the unexpected acknowledgement.
    Silent when: the capture lacks octets that were sent on the channel before the acknowledgement. The rule
    reports the fault only once per connection.
    Possible because: The acknowledgement has the multiple bit and covers earlier deliveries, too. Servers
    other than RabbitMQ accept such an acknowledgement.
    How to mend it: Send no basic.ack, basic.reject or basic.nack for deliveries requested with no-ack. If the
    application wants to acknowledge, leave no-ack unset in basic.consume or basic.get.
    """
    case.report_once(
        B_ACK_NOACK,
        f"the server sent delivery-tag {tag} with no-ack, so the client must not acknowledge this delivery",
        certainty,
        {"delivery_tag": tag},
        kind="certain" if certainty == CERTAIN else "possible",
    )


B_NACK_CAP: Final = RULES.rule(
    "B-NACK-CAP", "IMPLIED", "tier A", by="client", answer="connection.close 503 or connection.close 540"
)


def nack_without_capability(case: Case091) -> None:
    """A client sends basic.nack although the server has not announced the capability basic.nack.

    Demands: A client may send basic.nack only if the server announces the capability basic.nack.
    Source: RMQ:docs/nack; RMQ:docs/connections (capabilities)
    Evidence: the capabilities in connection.start, and each basic.nack of the client
    Why it matters: The method basic.nack is a RabbitMQ extension. Servers without this extension do not know
    basic.nack and close the connection.
    Silent when: connection.start was not captured, or when amqpscope could not read it. The rule reports the
    fault only once per connection.
    How to mend it: Read the capabilities in the server-properties of connection.start. Without the capability
    basic.nack, send one basic.reject per delivery instead.
    """
    case.report_once(
        B_NACK_CAP,
        "the peer sends basic.nack although the server has not announced the capability basic.nack",
        CERTAIN,
        {},
    )


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
        ack_of_delivery_without_acks(case, tag, _certainty_of_cover(case, channel, tag, method.multiple))
        return
    if not method.multiple:
        settled_twice(
            case,
            tag,
            f"basic.ack has delivery-tag {tag}, which the client has already settled",
            certainty_of_settlement(channel, tag),
        )
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
        settled_twice(
            case,
            tag,
            f"basic.reject has delivery-tag {tag}, which the client has already settled",
            certainty_of_settlement(channel, tag),
        )


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
            reason = (
                "basic.nack has delivery-tag 0 without the multiple flag, but no delivery has delivery-tag 0"
            )
            nack_of_unknown_delivery(case, tag, reason, CERTAIN)
        return
    if not all_known(channel):
        return
    last = channel.deliveries.last
    if tag > last:
        reason = (
            f"basic.nack has delivery-tag {tag}, but the last delivery-tag that the server has sent on this "
            f"channel is {last}"
        )
        nack_of_unknown_delivery(case, tag, reason, CERTAIN)
    elif needs_none(channel, tag):
        ack_of_delivery_without_acks(case, tag, _certainty_of_cover(case, channel, tag, method.multiple))
    elif not method.multiple:
        settled_twice(
            case,
            tag,
            f"basic.nack has delivery-tag {tag}, which the client has already settled",
            certainty_of_settlement(channel, tag),
        )
    else:
        others = len(channel.deliveries.covered(tag, True))
        reason = (
            f"basic.nack with the multiple flag has delivery-tag {tag}, but this delivery is already "
            f"settled; {count(others, 'earlier delivery')} {are(others)} still unacknowledged"
        )
        certainty = certainty_of_settlement(channel, tag)
        if others > 0 and not case.view.of_product("RabbitMQ"):
            certainty = POSSIBLE
        nack_of_unknown_delivery(case, tag, reason, certainty)


def _certainty_of_cover(case: Case091, channel: Channel, tag: int, multiple: bool) -> i64:
    """How certain a fault is that servers accept where the method covers earlier deliveries, too."""
    if multiple and not case.view.of_product("RabbitMQ") and len(channel.deliveries.covered(tag, True)) > 0:
        return POSSIBLE
    return CERTAIN


def all_known(channel: Channel) -> bool:
    """Whether all deliveries on the channel are known. If the server was not captured, not even its
    channel.open-ok is.
    """
    return channel.whole and channel.deliveries.whole and channel.state == OPEN


def needs_none(channel: Channel, tag: int) -> bool:
    """Whether the delivery with this tag was sent with no-ack."""
    return channel.deliveries.free.cover(tag, tag)


def certainty_of_settlement(channel: Channel, tag: int) -> i64:
    """How certain it is that a delivery that is not outstanding was settled. It may have been recovered, or
    never have existed.
    """
    deliveries = channel.deliveries
    if not deliveries.gapless or deliveries.free.full or deliveries.recovered.full:
        return POSSIBLE
    return POSSIBLE if deliveries.recovered.cover(tag, tag) else CERTAIN
