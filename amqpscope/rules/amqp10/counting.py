"""The counts that both ends of a link state: link-credit, delivery-count and available (transport.xml,
"Flow Control")."""

from typing import Final

from amqpscope.limits import MAX_LIMITS
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.performatives import Flow
from dissectors.wire import i64

__all__ = ["credit_counted_from_nothing", "judge_available", "judge_stated_credit", "pieces_counted"]

RULES: Final = Rules("amqp10/counting")


# A count that fell below zero by at most one batch is at least this unsigned number.
_BELOW_ZERO: Final = 0xFFFF0000


L_CREDIT_NODC: Final = RULES.rule(
    "L-CREDIT-NODC", "MUST", "keyword", by="sender", answer="amqp:link:transfer-limit-exceeded"
)


def credit_counted_from_nothing(case: Case10, link: LinkEnd) -> None:
    """After a flow without delivery-count, a sender counts the link-credit from its current
    delivery-count instead of its initial-delivery-count.

    Demands: If the receiver's flow has no delivery-count, the sender must use its own initial-delivery-count
    instead.
    Source: transport.xml section links > Flow Control (link-credit)
    Evidence: a receiver's flow without delivery-count, and the deliveries after this flow
    Why it matters: Deliveries that the sender has already sent have used up a part of the link-credit. The
    sender exceeds the rest of the link-credit, and the receiver may detach the link.
    Silent when: the capture lacks octets that were sent after the attach. The rule is also silent when an
    older flow allows the delivery, because the sender may not yet have read the newer flow.
    How to mend it: If the receiver's flow has no delivery-count, use the sender's initial-delivery-count in
    its place. The link-credit is then the initial-delivery-count plus the flow's link-credit minus the
    sender's current delivery-count.
    """
    limits = link.credit.limits
    credit = limits.newest() - link.credit.count
    case.report(
        L_CREDIT_NODC,
        "the sender starts a delivery although no link-credit is left: the receiver's flow has no "
        "delivery-count, so its link-credit counts from the initial-delivery-count "
        f"{raw(link.initial_count)} and ends at delivery-count {raw(limits.newest())}; the sender's "
        f"delivery-count is already {raw(link.credit.count)}",
        CERTAIN,
        {"link_credit": int(credit), "delivery_count": int(raw(link.credit.count))},
        [int(limits.newest_packet())],
    )


L_DC_UNIT: Final = RULES.rule(
    "L-DC-UNIT", "MUST", "definition", by="sender", usual_answer="amqp:invalid-field"
)


def pieces_counted(case: Case10, link: LinkEnd, value: int) -> None:
    """The delivery-count in a sender's flow counts transfers instead of deliveries.

    Demands: A sender's delivery-count must rise once per delivery, not once per transfer.
    Source: transport.xml section links > Flow Control (delivery-count)
    Evidence: the delivery-count of the sender's flows, and the number of deliveries
    Why it matters: A message in several transfers uses only one unit of link-credit. A delivery-count that
    counts transfers is too high, so the receiver concludes that messages were lost, and computes a wrong
    link-credit.
    Silent when: the capture lacks octets that were sent after the attach, or when the delivery-count of the
    flow is not the number of transfers.
    How to mend it: Increase delivery-count once per delivery, not for each transfer frame. Transfers that
    continue a delivery must not change delivery-count or link-credit.
    """
    case.report(
        L_DC_UNIT,
        f"the flow has delivery-count {value} instead of {raw(link.credit.count)}: "
        "the sender counts transfers, not deliveries",
        CERTAIN,
        {"delivery_count": int(raw(link.credit.count)), "further_transfers": int(link.credit.continued)},
    )


L_CREDIT_DECR: Final = RULES.rule(
    "L-CREDIT-DECR", "MUST", "keyword", by="sender", usual_answer="amqp:invalid-field"
)


def credit_not_counted_down(case: Case10, link: LinkEnd, total: i64) -> None:
    """From one flow of a sender to the next, the link-credit does not fall by as much as the delivery-count
    rises.

    Demands: The sender's link-credit must fall by exactly as much as its delivery-count rises.
    Source: transport.xml section links > Flow Control (link-credit)
    Evidence: delivery-count and link-credit of two successive flows of the sender
    Why it matters: The link-credit of the second flow does not show how many deliveries the sender may still
    send. The receiver may grant too little or too much link-credit.
    Silent when: the receiver may have granted other link-credit between the two flows. The rule is also
    silent when the sender started no delivery between the two flows. The rule is also silent when a delivery
    was aborted or resumed, or is incomplete. The rule is also silent when the flow has no delivery-count or
    no link-credit. The rule is also silent when the delivery-count of the flow differs from the number of
    deliveries. The rule is also silent when the link is being drained, or when octets were not captured.
    How to mend it: Decrease link-credit by one whenever delivery-count rises by one. Change link-credit and
    delivery-count together, in one function and under one lock. When you build a flow, read the current
    link-credit and delivery-count at the same moment.
    """
    case.report(
        L_CREDIT_DECR,
        f"in the sender's flow, delivery-count plus link-credit is {raw(total)}, but the sum was "
        f"{raw(link.credit.stated_limit)} in the sender's earlier flow, and the receiver has granted no "
        "link-credit since",
        CERTAIN,
        {"delivery_limit": int(raw(link.credit.stated_limit))},
    )


L_CREDIT_FORMULA: Final = RULES.rule(
    "L-CREDIT-FORMULA", "MUST", "keyword", by="sender", answer="amqp:link:transfer-limit-exceeded"
)


def credit_computed_otherwise(case: Case10, link: LinkEnd, total: i64, certainty: i64) -> None:
    """A sender's flow has less link-credit than the receiver has granted.

    Demands: The sender's link-credit must be the receiver's delivery-count plus the receiver's link-credit
    minus the sender's delivery-count, modulo 2^32.
    Source: transport.xml section links > Flow Control (link-credit)
    Evidence: a flow of the receiver, the deliveries after this flow, and a flow of the sender
    Why it matters: The receiver's delivery-count plus link-credit, minus the sender's delivery-count,
    gives the remaining link-credit. A sender that computes less link-credit stops too early, and messages
    wait.
    Silent when: the sender's flow has link-credit 0 and the sender may not yet have read any grant of
    link-credit. The rule is also silent when the capture lacks octets that either peer sent after the attach.
    The finding is reported as possible, not as certain, when deliveries were aborted or resumed, or are
    incomplete, because the specification does not say whether such deliveries use link-credit.
    Possible because: The specification does not say whether aborted, resumed or incomplete deliveries use
    link-credit.
    How to mend it: On each flow of the receiver, compute link-credit as the receiver's delivery-count plus
    the receiver's link-credit minus your own delivery-count, modulo 2^32. Put the computed link-credit into
    your flows.
    """
    case.report(
        L_CREDIT_FORMULA,
        f"in the sender's flow, the link-credit ends at delivery-count {raw(total)}, but the receiver has "
        f"granted link-credit up to delivery-count {raw(link.credit.limits.newest())}",
        certainty,
        {"delivery_limit": int(raw(link.credit.limits.newest()))},
        [int(link.credit.limits.newest_packet())],
    )


def judge_stated_credit(case: Case10, link: LinkEnd, body: Flow) -> bool:
    """Judge the link-credit in a sender's flow by the sender's earlier flow and by the receiver's grants."""
    limits = link.credit.limits
    if body.link_credit is None or body.delivery_count is None or len(limits) == 0 or not link.whole:
        return False
    count = nearest(body.delivery_count, link.credit.count)
    total = count + body.link_credit
    sure = link.credit.uncounted == 0 and link.open is None
    if body.link_credit == 0 and (not link.credit.read or count >= min(limits.bounds)):
        # Credit is zero at first, and never below zero where a receiver withdraws used credit.
        return False
    if (
        sure
        and link.credit.stated_limit != UNKNOWN
        and len(limits) == 1
        and link.credit.stated_end == limits.ends[0]
        and total != link.credit.stated_limit
        and count == link.credit.count > link.credit.stated_count
    ):
        credit_not_counted_down(case, link, total)
        return True
    if total < limits.largest() and len(limits) < MAX_LIMITS - 1 and int(total) not in limits.bounds:
        credit_computed_otherwise(case, link, total, CERTAIN if sure else POSSIBLE)
        return True
    return False


L_AVAIL_OWNER: Final = RULES.rule(
    "L-AVAIL-OWNER", "MUST NOT", "definition", by="receiver", usual_answer="amqp:invalid-field"
)


def available_of_its_own(case: Case10, link: LinkEnd, value: int) -> None:
    """In the field `available` of a flow, a receiver sends a higher number than the sender has ever sent in
    this field.

    Demands: The field `available` of a receiver's flow must repeat the sender's last value of this field,
    minus the number of messages that the receiver has received since then. Only the sender may set a new
    value of the field `available`.
    Source: transport.xml section performatives > flow.available; transport.xml section links > Flow Control
    Evidence: the field `available` in a receiver's flow, and the same field in the sender's last flow
    Why it matters: Only the sender knows how many messages wait. Whoever reads the receiver's flow gets a
    false number.
    Silent when: the capture lacks octets that either peer sent after the attach.
    How to mend it: In flows of a receiver, set the field `available` to the sender's last value minus the
    number of messages that you have received since then. Alternatively, leave the field null. Do not send a
    value of your own.
    """
    case.report(
        L_AVAIL_OWNER,
        f"the field `available` of the receiver's flow is {value}, but "
        + (
            f"the sender's highest value of this field is {link.receipt.available}"
            if link.receipt.available >= 0
            else "the sender has sent no value of this field"
        ),
        CERTAIN,
        {"available": int(max(link.receipt.available, 0))},
    )


L_AVAIL_FLOOR: Final = RULES.rule(
    "L-AVAIL-FLOOR",
    "MUST",
    "keyword",
    by="receiver",
    warning="A capture can suggest this fault but never prove it.",
)


def available_below_zero(case: Case10, link: LinkEnd, value: int) -> None:
    """A receiver counts the number of available messages down below zero, and sends the result in the field
    `available`.

    Demands: A receiver must not decrease its value of the field `available` below zero.
    Source: transport.xml section links > Flow Control (available)
    Evidence: the field `available` of the receiver's flow (a value slightly below 2^32 shows the fault)
    Why it matters: Read as an unsigned number, the value means that about four billion messages wait.
    Silent when: the capture lacks octets that either peer sent after the attach.
    How to mend it: Count down the number of available messages by one for each received message, but stop at
    0. Unsigned subtraction must not wrap around.
    """
    case.report(
        L_AVAIL_FLOOR,
        f"the field `available` of the receiver's flow is {value}: the count fell below 0 and wrapped around",
        CERTAIN,
        {"available": int(max(link.receipt.available, 0))},
    )


def judge_available(case: Case10, link: LinkEnd, body: Flow) -> None:
    """Judge the value of available in a receiver's flow."""
    value = body.available
    if not value or value <= link.receipt.available or not link.whole or not case.me.whole:
        return
    if value >= _BELOW_ZERO:
        available_below_zero(case, link, value)
    else:
        available_of_its_own(case, link, value)
