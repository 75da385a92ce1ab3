"""What the ends of a link tell each other of their counts: credit, delivery-count, available (transport.xml,
"Flow Control")."""

from typing import Final

from amqpscope.limits import MAX_LIMITS
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.performatives import Flow
from dissectors.wire import i64

__all__ = ["credit_counted_from_nothing", "judge_available", "judge_stated_credit", "pieces_counted"]

# What a count that fell below zero looks like, by as much as one batch may be.
_BELOW_ZERO: Final = 0xFFFF0000


def credit_counted_from_nothing(case: Case, link: LinkEnd) -> None:
    """A sender takes the credit of a flow without delivery-count as counted from where it is.

    Why it matters: without it the credit counts from the initial delivery-count; what was sent since has used
    some of it.
    Silent when: octets since the attach were not captured, or an older credit that the sender may have known
    is not exceeded.
    """
    limits = link.limits
    credit = limits.newest() - link.count
    case.report(
        "amqp10/L-CREDIT-NODC",
        f"a delivery is sent with link-credit {credit}: the receiver's flow has no delivery-count, so its "
        f"credit counts from {raw(link.initial_count)}; delivery-count is {raw(link.count)}",
        CERTAIN,
        {"link_credit": int(credit), "delivery_count": int(raw(link.count))},
        [int(limits.newest_packet())],
    )


def pieces_counted(case: Case, link: LinkEnd, value: int) -> None:
    """A sender's delivery-count counts transfers, not deliveries.

    Why it matters: a message in several transfers uses one credit; the receiver takes the rest for lost.
    Silent when: octets since the attach were not captured, or the number is not that of the transfers.
    """
    case.report(
        "amqp10/L-DC-UNIT",
        f"delivery-count is {value}, the sender's is {raw(link.count)}: transfers are counted, no deliveries",
        CERTAIN,
        {"delivery_count": int(raw(link.count)), "further_transfers": int(link.continued)},
    )


def credit_not_counted_down(case: Case, link: LinkEnd, total: i64) -> None:
    """Of two flows of a sender the second has another delivery-count, and not as much less credit.

    Why it matters: what it may still send is told wrongly; the receiver may grant too little or too much.
    Silent when: the receiver may have granted other credit in between, deliveries were aborted or resumed, or
    octets were not captured.
    """
    case.report(
        "amqp10/L-CREDIT-DECR",
        f"delivery-count and link-credit make {raw(total)}, in the sender's flow before they made "
        f"{raw(link.told_total)}, and the receiver has granted nothing since",
        CERTAIN,
        {"delivery_limit": int(raw(link.told_total))},
    )


def credit_computed_otherwise(case: Case, link: LinkEnd, total: i64, certainty: i64) -> None:
    """A sender's flow has less link-credit than the receiver has granted.

    Why it matters: the receiver's delivery-count and credit say how much is left; who computes it otherwise
    stops too early.
    Silent when: it tells of none at all and may have known of none, or octets of either peer since the attach
    were not captured. Possible when deliveries were aborted, resumed or are under way: whether these count
    nobody says.
    Possible because: Whether aborted, resumed or unfinished deliveries take credit nobody says.
    """
    case.report(
        "amqp10/L-CREDIT-FORMULA",
        f"delivery-count and link-credit make {raw(total)}, the limit is {raw(link.limits.newest())}",
        certainty,
        {"delivery_limit": int(raw(link.limits.newest()))},
        [int(link.limits.newest_packet())],
    )


def judge_stated_credit(case: Case, link: LinkEnd, body: Flow) -> bool:
    """The credit that a sender's flow tells, beside what it told before and what it was granted."""
    limits = link.limits
    if body.link_credit is None or body.delivery_count is None or len(limits) == 0 or not link.whole:
        return False
    count = nearest(body.delivery_count, link.count)
    total = count + body.link_credit
    sure = link.uncounted == 0 and link.open is None
    if body.link_credit == 0 and (not link.credit_read or count >= min(limits.bounds)):
        # Credit is zero at first, and where a receiver takes back what was used already it is not below that.
        return False
    if (
        sure
        and link.told_total != UNKNOWN
        and len(limits) == 1
        and link.told_end == limits.ends[0]
        and total != link.told_total
        and count == link.count > link.told_count
    ):
        credit_not_counted_down(case, link, total)
        return True
    if total < limits.largest() and len(limits) < MAX_LIMITS - 1 and int(total) not in limits.bounds:
        credit_computed_otherwise(case, link, total, CERTAIN if sure else POSSIBLE)
        return True
    return False


def available_of_its_own(case: Case, link: LinkEnd, value: int) -> None:
    """A receiver's flow tells more available messages than the sender ever did.

    Why it matters: only the sender knows what waits; the receiver repeats what it was told.
    Silent when: octets of either peer since the attach were not captured.
    """
    case.report(
        "amqp10/L-AVAIL-OWNER",
        f"a receiver's flow has available {value}, the sender has told "
        + (f"{link.available} at most" if link.available >= 0 else "of none"),
        CERTAIN,
        {"available": int(max(link.available, 0))},
    )


def available_below_zero(case: Case, link: LinkEnd, value: int) -> None:
    """A receiver counted the available messages down below zero.

    Why it matters: it tells of four billion messages that wait.
    Silent when: octets of either peer since the attach were not captured.
    """
    case.report(
        "amqp10/L-AVAIL-FLOOR",
        f"a receiver's flow has available {value}: a count below zero",
        CERTAIN,
        {"available": int(max(link.available, 0))},
    )


def judge_available(case: Case, link: LinkEnd, body: Flow) -> None:
    """The available messages that a receiver's flow tells."""
    value = body.available
    if not value or value <= link.available or not link.whole or not case.me.whole:
        return
    if value >= _BELOW_ZERO:
        available_below_zero(case, link, value)
    else:
        available_of_its_own(case, link, value)


RULES = {
    "amqp10/L-CREDIT-NODC": credit_counted_from_nothing,
    "amqp10/L-DC-UNIT": pieces_counted,
    "amqp10/L-CREDIT-DECR": credit_not_counted_down,
    "amqp10/L-CREDIT-FORMULA": credit_computed_otherwise,
    "amqp10/L-AVAIL-OWNER": available_of_its_own,
    "amqp10/L-AVAIL-FLOOR": available_below_zero,
}
