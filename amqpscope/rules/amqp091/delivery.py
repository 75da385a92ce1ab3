"""What a server delivers: tags, consumers and prefetch windows of basic.deliver and basic.get-ok (class
basic).

Each delivery is compared with what the server can have received by then. A consumer counts from its
basic.consume on, an acknowledgement as soon as it may have arrived.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import REPLIES, UNLIMITED, Consumer
from amqpscope.tracking.amqp091.states import OPEN
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import BasicDeliver, BasicGetOk
from dissectors.wire import i64
from dissectors.wording import are, count

__all__ = ["judge_delivery", "judge_fetched", "judge_size"]

RULES: Final = Rules("amqp091/delivery")


B_DTAG_NONZERO: Final = RULES.rule("B-DTAG-NONZERO", "MUST NOT", "tier A", by="server")


def delivery_tag_zero(case: Case091) -> None:
    """A server sends basic.deliver or basic.get-ok with delivery-tag 0.

    Demands: The delivery-tag of basic.deliver and basic.get-ok must not be 0.
    Source: XML domain delivery-tag.non-zero
    Evidence: the delivery-tag of each basic.deliver and basic.get-ok
    Why it matters: In an acknowledgement, delivery-tag 0 stands for all deliveries. The client cannot
    acknowledge the delivery that has delivery-tag 0 without acknowledging all other deliveries.
    Silent when: never, because the frame alone shows the fault.
    How to mend it: Start the delivery-tag of each channel at 1 and increase it with every basic.deliver and
    basic.get-ok. Never send delivery-tag 0.
    """
    case.report(B_DTAG_NONZERO, "the delivery has delivery-tag 0, but delivery-tags begin with 1")


B_DTAG_INCREASING: Final = RULES.rule(
    "B-DTAG-INCREASING",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def delivery_tag_not_new(case: Case091, tag: int, last: int) -> None:
    """A server sends a delivery-tag that is not larger than the last delivery-tag on the channel.

    Demands: On a channel, basic.deliver and basic.get-ok share one series of delivery-tags. Each delivery-tag
    must be larger than the one before.
    Source: XML domain delivery-tag (doc); RMQ:docs/confirms
    Evidence: the last delivery-tag since the channel was opened
    Why it matters: If delivery-tags do not rise, an acknowledgement with the multiple flag may cover the
    wrong deliveries. If two deliveries have the same delivery-tag, the client cannot acknowledge either of
    them alone.
    Silent when: the capture lacks octets that were sent on the channel before the delivery.
    How to mend it: Use one counter per channel for basic.deliver and basic.get-ok together, and increase the
    counter under the lock that also protects the writing of the frame. Do not reset the counter while the
    channel is open.
    """
    case.report(
        B_DTAG_INCREASING,
        f"delivery-tag {tag} follows delivery-tag {last} on this channel, but delivery-tags must increase",
        evidence={"delivery_tag": tag, "last_delivery_tag": last},
    )


B_DELIVER_CTAG: Final = RULES.rule(
    "B-DELIVER-CTAG",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def delivery_to_nobody(case: Case091, tag: str) -> None:
    """A server sends a basic.deliver with a consumer-tag that no consumer on the channel ever had.

    Demands: A basic.deliver must carry the consumer-tag of an active consumer on the channel.
    Source: XML:basic.deliver (doc); GS:3.1.6
    Evidence: the consumer-tags in use on the channel
    Why it matters: The client has no consumer that could take the message. The message is lost, or is never
    acknowledged.
    Silent when: the capture lacks octets that were sent on the channel before the basic.deliver. The rule is
    also silent when a basic.consume with no-wait and without a consumer-tag may have started the consumer.
    How to mend it: Send each basic.deliver on the channel of its consumer, with the consumer-tag from
    basic.consume or basic.consume-ok. Copy the consumer-tag unchanged into each basic.deliver.
    """
    case.report(
        B_DELIVER_CTAG,
        f"basic.deliver names consumer {tag!r}, but this channel has no such consumer",
        evidence={"consumer_tag": tag},
    )


B_DELIVER_EARLY: Final = RULES.rule("B-DELIVER-EARLY", "MUST NOT", "tier A", by="server")


def delivery_before_consume_ok(case: Case091, tag: str) -> None:
    """A server sends a basic.deliver before the basic.consume-ok of its consumer.

    Demands: A server must not send basic.deliver for a consumer before the basic.consume-ok of that consumer.
    Source: GS:4.6
    Evidence: the order of basic.consume-ok and the first basic.deliver with the same consumer-tag
    Why it matters: Clients set up a consumer when its basic.consume-ok arrives. The client does not know the
    consumer yet and cannot handle the delivery.
    Silent when: the basic.consume had no-wait set, or when an earlier consumer had the same consumer-tag. The
    rule is also silent when the capture lacks octets that were sent on the channel before the basic.deliver.
    The rule reports the fault only once per consumer.
    How to mend it: Write basic.consume-ok to the channel before the consumer can receive messages from the
    queue. Make sure that no other thread writes a delivery before the basic.consume-ok.
    """
    case.report(
        B_DELIVER_EARLY,
        f"the peer sends basic.deliver before the basic.consume-ok of consumer {tag!r}"
        if tag
        else "the peer sends basic.deliver before the basic.consume-ok of its consumer",
        evidence={"consumer_tag": tag},
    )


B_DELIVER_LATE: Final = RULES.rule("B-DELIVER-LATE", "MUST", "tier A", by="server")


def delivery_after_cancel_ok(case: Case091, tag: str) -> None:
    """A server sends a basic.deliver after the basic.cancel-ok of its consumer.

    Demands: A server must not send basic.deliver for a consumer after the basic.cancel-ok of that consumer.
    Source: GS:4.6; XML:basic.cancel (doc)
    Evidence: the order of basic.cancel-ok and basic.deliver with the same consumer-tag
    Why it matters: The client removed the consumer when basic.cancel-ok arrived. The delivery is lost, or is
    never acknowledged.
    Silent when: the basic.cancel had no-wait set, or when the capture lacks octets that were sent on the
    channel before the basic.deliver.
    How to mend it: Before sending basic.cancel-ok, detach the consumer from its queue, and send or requeue
    the pending deliveries of the consumer. Send basic.cancel-ok after the last delivery, and send nothing for
    the consumer after basic.cancel-ok.
    """
    case.report(
        B_DELIVER_LATE,
        f"the peer sends basic.deliver to consumer {tag!r}, which is already cancelled",
        evidence={"consumer_tag": tag},
    )


B_CANCEL_NOTIFY_LAST: Final = RULES.rule(
    "B-CANCEL-NOTIFY-LAST",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def delivery_after_server_cancel(case: Case091, tag: str, certainty: i64) -> None:
    """A server sends a basic.deliver after the server itself has cancelled the consumer.

    Demands: After a server has sent basic.cancel for a consumer, the server must not send basic.deliver for
    that consumer.
    Source: RMQ:docs/consumer-cancel
    Evidence: the consumer-tags that the server has cancelled
    Why it matters: With basic.cancel, the server announces that no more deliveries follow. The client has
    removed the consumer and cannot handle the delivery.
    Silent when: the capture lacks octets that were sent on the channel before the basic.deliver. The finding
    is reported as possible, not as certain, for RabbitMQ 4.3 and later, because these versions may cancel a
    consumer that acknowledges too late.
    How to mend it: Stop all deliveries to the consumer and requeue its pending deliveries before sending
    basic.cancel. After basic.cancel, send no basic.deliver with the consumer-tag of the cancelled
    consumer.
    """
    case.report(
        B_CANCEL_NOTIFY_LAST,
        f"the peer sends basic.deliver although the server has already cancelled consumer {tag!r}",
        certainty,
        {"consumer_tag": tag},
    )


B_QOS_COUNT: Final = RULES.rule("B-QOS-COUNT", "MUST NOT", "tier A", by="server")


def more_than_the_window(
    case: Case091, held: i64, bound: i64, whose: str, certainty: i64, consumer: Consumer
) -> None:
    """A server sends a delivery although the number of unacknowledged deliveries has already reached the
    prefetch-count.

    Demands: The number of unacknowledged deliveries must never exceed the prefetch-count.
    Source: XML:basic.qos.prefetch-count.01; RMQ:docs/consumer-prefetch
    Evidence: the prefetch-count of each basic.qos that the server has answered, and the unacknowledged
    deliveries of the consumer, channel or connection
    Why it matters: The client receives more messages than it asked for and may run out of memory. Other
    consumers receive fewer messages than they should.
    Silent when: the capture lacks octets that were sent on the channel before the delivery. The rule ignores
    deliveries with no-ack and messages that basic.get fetched. The rule also ignores deliveries to a consumer
    of a stream, because a stream delivers messages in whole chunks. If the server is RabbitMQ, the rule reads
    the field `global` of basic.qos as RabbitMQ does: false means each new consumer, true means the channel.
    For other servers, the rule reports a delivery only if it exceeds the prefetch-count both in RabbitMQ's
    meaning of `global` and in the specification's meaning (false means the channel, true means the
    connection). The rule ignores consumers that existed before a basic.qos with `global`, because RabbitMQ
    still sends them messages that its queues had already assigned to them. After an acknowledgement with an
    unknown delivery-tag, the rule reports nothing more on the channel. The rule reports the fault only once
    per connection. The finding is reported as possible, not as certain, when the server may not yet have read
    the newest basic.qos, or may apply the prefetch-count of the channel to each consumer.
    How to mend it: Count the unacknowledged deliveries for each prefetch-count, and reduce the count only
    when an acknowledgement arrives. Send no basic.deliver while the count has reached prefetch-count.
    """
    earlier = count(held, "earlier delivery")
    reason = (
        f"the peer sends a delivery while {earlier} of {whose} {are(held)} unacknowledged, but "
        f"prefetch-count is {bound}"
    )
    evidence: dict[str, object] = {"unacknowledged": int(held), "prefetch_count": int(bound)}
    kind = "certain" if certainty == CERTAIN else "possible"
    case.report_once(B_QOS_COUNT, reason, certainty, evidence, [int(consumer.packet)], kind)


B_QOS_SIZE: Final = RULES.rule("B-QOS-SIZE", "MUST NOT", "tier A", by="server")


def larger_than_the_window(case: Case091, held: i64, size: int, window: i64) -> None:
    """A server sends a message although this message and the unacknowledged messages together exceed the
    prefetch-size.

    Demands: While deliveries are unacknowledged, a server may send a further message only if this message and
    the unacknowledged messages together do not exceed the prefetch-size.
    Source: XML:basic.qos.prefetch-count.01; XML:basic.qos.prefetch-size (field doc)
    Evidence: the body octets of the unacknowledged deliveries, and the prefetch-size of basic.qos
    Why it matters: The client receives more octets at a time than it asked for.
    Silent when: the capture lacks octets that were sent on the channel before the message, or when the
    prefetch-size was set with `global`. The rule is also silent when the server is RabbitMQ or LavinMQ, which
    do not support prefetch-size.
    How to mend it: Sum the body octets of all unacknowledged deliveries. While this sum is above zero, send a
    message only if the sum plus the message's body-size does not exceed the prefetch-size.
    """
    case.report(
        B_QOS_SIZE,
        f"the peer sends a message of {count(size, 'octet')} while {count(held, 'octet')} {are(held)} "
        f"unacknowledged, but prefetch-size is {window}",
        evidence={"size": size, "unacknowledged_octets": int(held), "prefetch_size": int(window)},
    )


def judge_delivery(case: Case091, channel: Channel, method: BasicDeliver) -> None:
    """A server's basic.deliver."""
    tag = method.consumer_tag
    if tag is None:
        judge_tag(case, channel, method.delivery_tag)
        return
    consumer = channel.consumers.live.get(tag)
    if method.delivery_tag <= channel.deliveries.last and (consumer is None or consumer.queue != REPLIES):
        judge_tag(case, channel, method.delivery_tag)
    if consumer is None:
        if channel.whole and channel.state == OPEN:
            judge_absence(case, channel, tag)
    elif not consumer.ready:
        if channel.whole:
            delivery_before_consume_ok(case, tag)
    elif not consumer.no_ack and (consumer.limit < UNLIMITED or len(channel.consumers.windows) > 0):
        judge_windows(case, channel, consumer)


def judge_fetched(case: Case091, channel: Channel, method: BasicGetOk) -> None:
    """A server's basic.get-ok."""
    judge_tag(case, channel, method.delivery_tag)


def judge_tag(case: Case091, channel: Channel, tag: int) -> None:
    """A delivery-tag of the server."""
    last = channel.deliveries.last
    if tag > last:
        return
    if tag == 0:
        delivery_tag_zero(case)
    elif channel.whole and channel.state == OPEN:
        delivery_tag_not_new(case, tag, last)


def judge_absence(case: Case091, channel: Channel, tag: str) -> None:
    """A delivery for a consumer that does not exist."""
    by = channel.consumers.cancelled.get(tag)
    if by == "client":
        delivery_after_cancel_ok(case, tag)
    elif by == "server":
        certainty = POSSIBLE if case.view.server is None or case.view.rabbitmq_since(4, 3) else CERTAIN
        delivery_after_server_cancel(case, tag, certainty)
    elif by is None:
        waited = False
        for consumer in channel.consumers.nameless:
            if not consumer.waited:
                return
            waited = True
        if waited:
            delivery_before_consume_ok(case, "")
        else:
            delivery_to_nobody(case, tag)


def judge_windows(case: Case091, channel: Channel, consumer: Consumer) -> None:
    """Whether the prefetch limits allow one more delivery to a consumer."""
    deliveries = channel.deliveries
    held: i64 = deliveries.counts.get(consumer.tag, 0) - consumer.inherited
    limit = consumer.limit
    windows = channel.consumers.windows
    if not case.view.rabbitmq_since(3, 3):
        # A later basic.qos may also apply to existing consumers.
        limit = max(limit, channel.consumers.window)
    certainty: i64 = CERTAIN
    of_channel = False
    if held < limit:
        if len(windows) == 0:
            return
        limit = windows.newest()
        held = len(deliveries.unacknowledged) - deliveries.counts.get(None, 0)
        if held < limit:
            return
        certainty = windows.judge(held)
        if case.view.server is None or case.view.rabbitmq_since(4, 0) or not of_the_living(channel, limit):
            # RabbitMQ may be configured to apply it to each consumer.
            certainty = min(certainty, POSSIBLE)
        if consumer.end < windows.ends[len(windows.ends) - 1]:
            # RabbitMQ still sends the messages that its queues had handed out before.
            return
        of_channel = True
    if certainty == LEGAL or consumer.streaming or not channel.whole or not deliveries.whole:
        return
    if deliveries.pointless_end >= 0:
        # Nobody knows which delivery that acknowledgement means.
        return
    whose = "the channel" if of_channel else f"consumer {consumer.tag!r}"
    more_than_the_window(case, held, limit, whose, certainty, consumer)


def of_the_living(channel: Channel, limit: i64) -> bool:
    """Whether active consumers have so many unacknowledged deliveries."""
    held: i64 = 0
    for tag, number in channel.deliveries.counts.items():
        if tag is not None and tag in channel.consumers.live:
            held += number
            if held >= limit:
                return True
    return False


def judge_size(case: Case091, channel: Channel, header: ContentHeader) -> None:
    """The content header of a delivery."""
    window = channel.consumers.window_octets
    delivering = channel.deliveries.due
    if window == 0 or delivering is None or case.view.server is None or case.view.rabbitmq:
        return
    this = channel.deliveries.unacknowledged.get(delivering.tag)
    if this is None or this.consumer is None or not channel.deliveries.whole:
        return
    if channel.deliveries.pointless_end >= 0:
        return
    if not channel.whole or channel.requests.awaited(False, "basic.qos-ok") >= 0:
        return
    held = channel.deliveries.octets
    if held > 0 and held + header.size > window:
        larger_than_the_window(case, held, header.body_size, window)
