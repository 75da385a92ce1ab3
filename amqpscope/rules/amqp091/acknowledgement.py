"""What a client says of deliveries: basic.ack, basic.reject, basic.nack (class basic; RabbitMQ, "nack").

A delivery is the client's to speak of from its basic.deliver or basic.get-ok on, on that channel, and once.
What is named by a frame is looked up among the deliveries that the client can have received by then.
"""

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case
from amqpscope.tracking.amqp091.channel import Channel
from dissectors.amqp091.methods import BasicAck, BasicNack, BasicReject
from dissectors.wire import i64

__all__ = ["judge_ack", "judge_nack", "judge_reject"]


def ack_of_none(case: Case) -> None:
    """A basic.ack without multiple names delivery-tag 0, which no delivery has.

    Why it matters: the server closes the channel; only with multiple does 0 stand for all.
    Silent when: octets before it on the channel tell otherwise: never, the frame alone shows it.
    """
    case.report("amqp091/B-ACK-ZERO", "delivery-tag 0 without multiple")


def reject_of_none(case: Case) -> None:
    """A basic.reject names delivery-tag 0, which no delivery has.

    Why it matters: the server closes the channel; reject cannot be of several.
    Silent when: never, the frame alone shows it.
    """
    case.report("amqp091/B-REJECT-ZERO", "delivery-tag 0")


def ack_on_another_channel(case: Case, tag: int, other: Channel) -> None:
    """A delivery is acknowledged on another channel than the one that it came on.

    Why it matters: tags count by channel. Here the server does not know this one and closes the channel; had
    it been in use here, another message would have been acknowledged.
    Silent when: the channel's beginning was not captured, or the tag is in use on it by chance. Of many
    channels only the first are searched; else it is B-ACK-KNOWN's.
    """
    case.report(
        "amqp091/B-ACK-CHANNEL",
        f"delivery-tag {tag} was not given out on this channel; channel {other.number} has it unacknowledged",
        evidence={"delivery_tag": tag, "other_channel": int(other.number)},
        others=[int(other.deliveries.unacknowledged[tag].packet)],
    )


def ack_of_unknown_delivery(case: Case, tag: int, last: int) -> None:
    """A basic.ack names a delivery-tag that was not given out on the channel.

    Why it matters: the server closes the channel, and all that is unacknowledged on it is delivered again.
    Silent when: something before it on the channel was not captured.
    """
    case.report(
        "amqp091/B-ACK-KNOWN",
        f"delivery-tag {tag} was not given out on this channel; the last was {last}",
        evidence={"delivery_tag": tag, "last_delivery_tag": last},
    )


def reject_of_unknown_delivery(case: Case, tag: int, last: int) -> None:
    """A basic.reject names a delivery-tag that was not given out on the channel.

    Why it matters: the server closes the channel, and all that is unacknowledged on it is delivered again.
    Silent when: something before it on the channel was not captured.
    """
    case.report(
        "amqp091/B-REJECT-KNOWN",
        f"delivery-tag {tag} was not given out on this channel; the last was {last}",
        evidence={"delivery_tag": tag, "last_delivery_tag": last},
    )


def nack_of_unknown_delivery(case: Case, tag: int, reason: str, certainty: i64) -> None:
    """A basic.nack names a delivery-tag that is not one of an unacknowledged delivery on the channel.

    Why it matters: the server closes the channel, and all that is unacknowledged on it is delivered again.
    Silent when: something before it on the channel was not captured. One that was settled before, without
    multiple, is B-ACK-DUP's.
    """
    case.report("amqp091/B-NACK-KNOWN", reason, certainty, {"delivery_tag": tag})


def settled_twice(case: Case, tag: int, reason: str, certainty: i64) -> None:
    """A delivery is acknowledged, rejected or nacked that was before.

    Why it matters: the server closes the channel, and all that is unacknowledged on it is delivered again.
    Silent when: something before it on the channel was not captured; after a rollback that took the earlier
    one back. Possible only where the server has left out tags, or a recover gave the delivery back.
    """
    case.report("amqp091/B-ACK-DUP", reason, certainty, {"delivery_tag": tag})


def ack_up_to_settled_delivery(case: Case, tag: int, others: int, certainty: i64) -> None:
    """A basic.ack with multiple names a delivery that was settled before.

    Why it matters: RabbitMQ looks for the delivery itself and closes the channel if it is not there, whatever
    else is covered.
    Silent when: something before it on the channel was not captured. Possible only at servers other than
    RabbitMQ while deliveries before it are open: LavinMQ and others take those.
    """
    case.report(
        "amqp091/B-ACK-MULTIPLE",
        f"delivery-tag {tag} with multiple, which was settled before; {others} before it are not",
        certainty,
        {"delivery_tag": tag, "covered": others},
    )


def ack_of_delivery_without_acks(case: Case, tag: int) -> None:
    """A delivery is acknowledged, rejected or nacked that came with no-ack.

    Why it matters: the server took it for settled when it was sent; it closes the channel.
    Silent when: something before it on the channel was not captured.
    """
    case.report(
        "amqp091/B-ACK-NOACK",
        f"delivery-tag {tag} was delivered with no-ack",
        evidence={"delivery_tag": tag},
    )


def nack_without_capability(case: Case) -> None:
    """A client sends basic.nack to a server that does not say that it knows it.

    Why it matters: it is an extension of RabbitMQ's; to others the method is unknown and they close.
    Silent when: the server's start was not captured, or could not be read. Told once a connection.
    """
    case.report_once("amqp091/B-NACK-CAP", "the server has not said that it knows basic.nack", CERTAIN, {})


def judge_ack(case: Case, channel: Channel, method: BasicAck) -> None:
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


def judge_reject(case: Case, channel: Channel, method: BasicReject) -> None:
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


def judge_nack(case: Case, channel: Channel, method: BasicNack) -> None:
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


RULES = {
    "amqp091/B-ACK-ZERO": ack_of_none,
    "amqp091/B-REJECT-ZERO": reject_of_none,
    "amqp091/B-ACK-CHANNEL": ack_on_another_channel,
    "amqp091/B-ACK-KNOWN": ack_of_unknown_delivery,
    "amqp091/B-REJECT-KNOWN": reject_of_unknown_delivery,
    "amqp091/B-NACK-KNOWN": nack_of_unknown_delivery,
    "amqp091/B-ACK-DUP": settled_twice,
    "amqp091/B-ACK-MULTIPLE": ack_up_to_settled_delivery,
    "amqp091/B-ACK-NOACK": ack_of_delivery_without_acks,
    "amqp091/B-NACK-CAP": nack_without_capability,
}
