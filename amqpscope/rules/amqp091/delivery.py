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
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import BasicDeliver, BasicGetOk
from dissectors.wire import i64

__all__ = ["judge_delivery", "judge_fetched", "judge_size"]

RULES: Final = Rules("amqp091/delivery")


B_DTAG_NONZERO: Final = RULES.rule("B-DTAG-NONZERO", "MUST NOT", "tier A", by="server")


def delivery_tag_zero(case: Case091) -> None:
    """A server sends basic.deliver or basic.get-ok with delivery-tag 0.

    Demands: Delivery tags from the server are never zero.
    Source: XML domain delivery-tag.non-zero
    Evidence: Deliver and Get-Ok tags
    Why it matters: In an acknowledgement, delivery-tag 0 stands for all deliveries. The client therefore
    cannot name this delivery in an acknowledgement.
    Silent when: never, because the frame alone shows the fault.
    How to mend it: Start the delivery-tag of each channel at 1 and increase it with every basic.deliver and
    basic.get-ok. Never send delivery-tag 0.
    """
    case.report(B_DTAG_NONZERO, "delivery-tag 0")


B_DTAG_INCREASING: Final = RULES.rule(
    "B-DTAG-INCREASING",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The text implies it and names no error for it.",
)


def delivery_tag_not_new(case: Case091, tag: int, last: int) -> None:
    """A server sends a delivery-tag that is not larger than the last delivery-tag on the channel.

    Demands: Deliver and Get-Ok on one channel share one series of tags in which every value is new and larger
    than the last.
    Source: XML domain delivery-tag (doc); RMQ:docs/confirms
    Evidence: last tag per channel life
    Why it matters: An acknowledgement with multiple covers all deliveries up to a tag, so it may cover the
    wrong ones. Of two deliveries with equal tags, neither can be named.
    Silent when: something before the delivery on the channel was not captured.
    How to mend it: Use one counter per channel for basic.deliver and basic.get-ok together, and increase it
    under the same lock that writes the frame. Do not reset the counter while the channel is open.
    """
    case.report(
        B_DTAG_INCREASING,
        f"delivery-tag {tag} after {last}",
        evidence={"delivery_tag": tag, "last_delivery_tag": last},
    )


B_DELIVER_CTAG: Final = RULES.rule(
    "B-DELIVER-CTAG",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The text implies it and names no error for it.",
)


def delivery_to_nobody(case: Case091, tag: str) -> None:
    """A server sends a basic.deliver with a consumer-tag that no consumer on the channel ever had.

    Demands: Deliver carries the tag of a consumer that is active on that channel.
    Source: XML:basic.deliver (doc); GS:3.1.6
    Evidence: active tags per channel (mind no-wait consumes)
    Why it matters: The client has no consumer to which it can give the message. The message is lost or waits
    for ever.
    Silent when: something before the basic.deliver on the channel was not captured, or a basic.consume
    without a consumer-tag and with no-wait may have started this consumer.
    How to mend it: Send each basic.deliver on the channel of its consumer, with the consumer-tag from
    basic.consume or basic.consume-ok. Copy the tag unchanged.
    """
    case.report(B_DELIVER_CTAG, f"no consumer {tag!r} on this channel", evidence={"consumer_tag": tag})


B_DELIVER_EARLY: Final = RULES.rule("B-DELIVER-EARLY", "MUST NOT", "tier A", by="server")


def delivery_before_consume_ok(case: Case091, tag: str) -> None:
    """A server sends a basic.deliver before the basic.consume-ok of its consumer.

    Demands: No delivery for a consumer comes before its Consume-Ok.
    Source: GS:4.6
    Evidence: order of Consume-Ok and first Deliver with the tag (not for no-wait)
    Why it matters: Clients set up a consumer when its basic.consume-ok arrives. Until then the client does
    not know the consumer and cannot handle the delivery.
    Silent when: the basic.consume had no-wait, an earlier consumer had the same consumer-tag, or something
    before the basic.deliver on the channel was not captured.
    How to mend it: Write basic.consume-ok to the channel before the consumer becomes able to receive messages
    from the queue, and make sure that no other thread writes a delivery first.
    """
    case.report(
        B_DELIVER_EARLY,
        f"the consume of {tag!r} is not answered yet" if tag else "the consume is not answered yet",
        evidence={"consumer_tag": tag},
    )


B_DELIVER_LATE: Final = RULES.rule("B-DELIVER-LATE", "MUST", "tier A", by="server")


def delivery_after_cancel_ok(case: Case091, tag: str) -> None:
    """A server sends a basic.deliver after the basic.cancel-ok of its consumer.

    Demands: No delivery for a consumer comes after its Cancel-Ok.
    Source: GS:4.6; XML:basic.cancel (doc)
    Evidence: order of Cancel-Ok and Deliver
    Why it matters: The client has removed the consumer when basic.cancel-ok arrived. A later delivery is lost
    or waits for ever.
    Silent when: the basic.cancel had no-wait, or something before the basic.deliver on the channel was not
    captured.
    How to mend it: Detach the consumer from its queue and send or requeue its pending deliveries first. Only
    then send basic.cancel-ok, and send nothing for this consumer afterwards.
    """
    case.report(B_DELIVER_LATE, f"consumer {tag!r} was cancelled", evidence={"consumer_tag": tag})


B_CANCEL_NOTIFY_LAST: Final = RULES.rule(
    "B-CANCEL-NOTIFY-LAST",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The text implies it and names no error for it.",
)


def delivery_after_server_cancel(case: Case091, tag: str, certainty: i64) -> None:
    """A server sends a basic.deliver after the server itself has cancelled the consumer.

    Demands: After a server cancel no more deliveries carry that tag.
    Source: RMQ:docs/consumer-cancel
    Evidence: tag state
    Why it matters: By its basic.cancel the server has announced that no more deliveries follow. The client
    has removed the consumer and cannot handle the delivery.
    Silent when: something before the basic.deliver on the channel was not captured. The finding is only
    possible, not certain, from RabbitMQ 4.3 on, because this server may cancel a consumer for a late
    acknowledgement.
    How to mend it: Stop all deliveries to the consumer and requeue its pending ones before sending
    basic.cancel. Send no basic.deliver with its consumer-tag afterwards.
    """
    case.report(
        B_CANCEL_NOTIFY_LAST,
        f"the server has cancelled consumer {tag!r}",
        certainty,
        {"consumer_tag": tag},
    )


B_QOS_COUNT: Final = RULES.rule("B-QOS-COUNT", "MUST NOT", "tier A", by="server")


def more_than_the_window(
    case: Case091, held: i64, bound: i64, whose: str, certainty: i64, consumer: Consumer
) -> None:
    """A server sends a delivery although as many messages are already unacknowledged as the prefetch-count
    allows.

    Demands: No more messages are outstanding than the prefetch-count windows allow.
    Source: XML:basic.qos.prefetch-count.01; RMQ:docs/consumer-prefetch
    Evidence: Qos values after Qos-Ok; unacked deliveries per consumer, channel or connection; no-ack
    consumers and Get-Ok left out
    Why it matters: The client receives more messages than it asked for. The client may run out of memory, and
    other consumers receive less than their share.
    Silent when: something before the delivery on the channel was not captured. Deliveries that need no
    acknowledgement and messages fetched by basic.get do not count. Deliveries to a consumer of a stream do
    not count either, because a stream sends whole chunks. At RabbitMQ, the rule applies RabbitMQ's meaning of
    `global` (false: each new consumer, true: the channel). At other servers, the rule reports only what
    breaks the specification's meaning, too (false: the channel, true: the connection). The rule reports
    nothing for consumers that existed before a basic.qos with `global`, because RabbitMQ still sends what its
    queues had already handed out. After an acknowledgement that names no unacknowledged delivery, the rule
    reports nothing on the channel. The finding is only possible, not certain, when the server may not have
    read the newest basic.qos, or may apply a window of the channel to each consumer.
    How to mend it: Count the unacknowledged deliveries for each prefetch-count window, and reduce the count
    only when an acknowledgement arrives. Send no basic.deliver while the count has reached prefetch-count.
    """
    reason = f"{held} unacknowledged of {whose} before it, prefetch-count {bound}"
    evidence: dict[str, object] = {"unacknowledged": int(held), "prefetch_count": int(bound)}
    case.report(B_QOS_COUNT, reason, certainty, evidence, [int(consumer.packet)])


B_QOS_SIZE: Final = RULES.rule("B-QOS-SIZE", "MUST NOT", "tier A", by="server")


def larger_than_the_window(case: Case091, held: i64, size: int, window: i64) -> None:
    """A server sends a message that does not fit into what is left of the prefetch-size while other
    messages are unacknowledged.

    Demands: With messages outstanding, a further one is sent only if it fits the octet window.
    Source: XML:basic.qos.prefetch-count.01; XML:basic.qos.prefetch-size (field doc)
    Evidence: unacked body octets against prefetch-size
    Why it matters: The client receives more octets at a time than it asked for.
    Silent when: something before the message on the channel was not captured, the prefetch-size was set with
    `global`, or the server is RabbitMQ or LavinMQ, which support no prefetch-size.
    How to mend it: Sum the body octets of all unacknowledged deliveries. While this sum is above zero, send a
    message only if sum plus body-size does not exceed prefetch-size.
    """
    case.report(
        B_QOS_SIZE,
        f"{size} octets while {held} are unacknowledged, prefetch-size {window}",
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
        if channel.whole and channel.state == "OPEN":
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
    """A delivery-tag of the server's."""
    last = channel.deliveries.last
    if tag > last:
        return
    if tag == 0:
        delivery_tag_zero(case)
    elif channel.whole and channel.state == "OPEN":
        delivery_tag_not_new(case, tag, last)


def judge_absence(case: Case091, channel: Channel, tag: str) -> None:
    """A delivery for a consumer that there is not."""
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
    """Whether one more delivery to a consumer is within the windows."""
    deliveries = channel.deliveries
    held: i64 = deliveries.counts.get(consumer.tag, 0) - consumer.inherited
    limit = consumer.limit
    windows = channel.consumers.windows
    if not case.view.rabbitmq_since(3, 3):
        # A later basic.qos may be for the consumers that there are, too.
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
            # RabbitMQ may have been told to take it for each consumer.
            certainty = min(certainty, POSSIBLE)
        if consumer.end < windows.ends[len(windows.ends) - 1]:
            # RabbitMQ still sends what its queues had handed out before.
            return
        of_channel = True
    if certainty == LEGAL or consumer.streaming or not channel.whole or not deliveries.whole:
        return
    if deliveries.pointless_end >= 0:
        # Which delivery that acknowledgement means nobody knows.
        return
    whose = "the channel" if of_channel else f"consumer {consumer.tag!r}"
    more_than_the_window(case, held, limit, whose, certainty, consumer)


def of_the_living(channel: Channel, limit: i64) -> bool:
    """Whether consumers that are still there have so many unacknowledged deliveries."""
    held: i64 = 0
    for tag, count in channel.deliveries.counts.items():
        if tag is not None and tag in channel.consumers.live:
            held += count
            if held >= limit:
                return True
    return False


def judge_size(case: Case091, channel: Channel, header: ContentHeader) -> None:
    """The content header of a delivery."""
    window = channel.consumers.window_octets
    delivering = channel.delivering
    if window == 0 or delivering is None or case.view.server is None or case.view.rabbitmq:
        return
    this = channel.deliveries.unacknowledged.get(delivering.tag)
    if this is None or this.consumer is None or not channel.deliveries.whole:
        return
    if channel.deliveries.pointless_end >= 0:
        return
    if not channel.whole or channel.awaited(False, "basic.qos-ok") >= 0:
        return
    held = channel.deliveries.octets
    if held > 0 and held + header.size > window:
        larger_than_the_window(case, held, header.body_size, window)
