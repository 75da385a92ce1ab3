"""Deliveries: ids, tags, settlement (transport.xml, "Transferring a Message", performatives)."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10 import resumed_state, resuming
from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.link import attach_read
from amqpscope.rules.amqp10.settlement import changes, sender_changes_its_outcome
from amqpscope.rules.amqp10.types import serial_number_that_wraps_elsewhere
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.messaging import Received
from dissectors.amqp10.performatives import Transfer
from dissectors.wire import i64

__all__ = [
    "judge_transfer",
    "judge_transfer_alone",
]


def tag_too_long(case: Case, body: Transfer) -> None:
    """A delivery-tag has more than 32 octets.

    Why it matters: receivers keep tags in fields of that size.
    Silent when: never.
    """
    tag = body.delivery_tag
    if tag is not None and len(tag) > 32:
        case.report("amqp10/D-TAG-LEN", f"the delivery-tag has {len(tag)} octets, at most 32 are allowed")


def abort_with_more(case: Case, body: Transfer) -> None:
    """An aborted transfer also has more set.

    Why it matters: it is the last of its delivery.
    Silent when: never.
    """
    if body.aborted and body.more:
        case.report("amqp10/D-ABORT-MORE", "a transfer has both aborted and more set")


def first_transfer_without_delivery_id(case: Case) -> None:
    """The first transfer of a delivery lacks its delivery-id.

    Why it matters: no disposition can name the delivery.
    Silent when: octets since the attach were not captured, so it may be a continuation.
    """
    case.report("amqp10/D-ID-PRESENT", "the first transfer of a delivery has no delivery-id")


def first_transfer_without_delivery_tag(case: Case) -> None:
    """The first transfer of a delivery lacks its delivery-tag.

    Why it matters: the delivery cannot be told from others when the link is resumed.
    Silent when: octets since the attach were not captured, so it may be a continuation.
    """
    case.report("amqp10/D-TAG-PRESENT", "the first transfer of a delivery has no delivery-tag")


def first_transfer_without_message_format(case: Case, several: bool) -> None:
    """The first transfer of a delivery lacks message-format.

    Why it matters: only continuations may leave it out; the receiver guesses how to read the message.
    Silent when: octets since the attach were not captured. Possible when the delivery is one transfer: the
    sentence that says MUST speaks of several.
    Possible because: The sentence that says MUST speaks of messages of several transfers.
    """
    first = "the first of several transfers" if several else "the only transfer"
    certainty = CERTAIN if several else POSSIBLE
    case.report("amqp10/D-FMT-PRESENT", f"{first} of a delivery has no message-format", certainty)


def _judge_first_transfer(case: Case, link: LinkEnd, body: Transfer) -> None:
    if not link.whole:
        return
    if body.delivery_id is None and not body.unread(1):
        first_transfer_without_delivery_id(case)
    if body.delivery_tag is None and not body.unread(2):
        first_transfer_without_delivery_tag(case)
    if body.message_format is None and case.found == 0 and not body.unread(3):
        first_transfer_without_message_format(case, body.more is True or body.unread(5))
    if body.aborted and not body.resume:
        aborted_before_it_began(case)


def aborted_before_it_began(case: Case) -> None:
    """The first transfer of a delivery aborts it.

    Why it matters: there is nothing to abort; the receiver may wait for a delivery that is none.
    Silent when: octets since the attach were not captured, or the delivery is resumed.
    Only possible because: The examples in the specification do it.
    """
    case.report("amqp10/D-ABORT-ONLYOPEN", "the first transfer of a delivery has aborted set", POSSIBLE)


def tag_in_use(case: Case, session: SessionEnd, link: LinkEnd, body: Transfer) -> None:
    """A delivery-tag is used while an earlier delivery with it may be unsettled.

    Why it matters: the two deliveries cannot be told apart when the link is resumed.
    Silent when: the earlier delivery's settlement may not have been captured, or the earlier delivery has no
    delivery-id of its own, by which its settlement could be told.
    """
    tag = body.delivery_tag
    if tag is None or body.resume:
        return
    earlier = link.tags.get(tag)
    if earlier is None or session.unsettled.get(int(earlier.number)) is not earlier:
        return
    if link.whole and case.me.whole:
        # Settled by the peer beyond what this end can have known: the tag was not free for it.
        case.report(
            "amqp10/D-TAG-UNIQUE",
            f"the delivery-tag is that of a delivery still unsettled (packet {earlier.packet})",
            CERTAIN,
            {"unsettled_deliveries": len(link.tags)},
            [int(earlier.packet)],
        )


def delivery_id_in_use(case: Case, value: int, other: Delivery) -> None:
    """A new delivery has the id of one that is still unsettled.

    Why it matters: a disposition that names it means either.
    Silent when: octets since the session's begin were not captured.
    """
    case.report(
        "amqp10/D-ID-UNIQUE",
        f"delivery-id {value} is that of a delivery still unsettled (packet {other.packet})",
        CERTAIN,
        {"delivery_id": value},
        [int(other.packet)],
    )


def delivery_id_out_of_sequence(case: Case, value: int, number: i64, last: i64) -> None:
    """A new delivery's id does not follow the last one of the session.

    Why it matters: ids come from one sequence; a receiver that settles ranges settles the wrong ones.
    Silent when: octets since the session's begin were not captured. Possible when ids are only left out.
    Possible because: Ids were left out, none is used twice; the text can be read as allowing that.
    """
    case.report(
        "amqp10/D-ID-SEQ",
        f"delivery-id {value} follows {raw(last)}",
        CERTAIN if number <= last else POSSIBLE,
        {"last_delivery_id": int(raw(last))},
    )


# An id and the next one, of peers that wrap at 2^31, leave out 0, or wrap one too early.
_WRAPS: Final = ((0x7FFFFFFF, 0), (0xFFFFFFFF, 1), (0xFFFFFFFE, 0))


def _judge_delivery_id(case: Case, session: SessionEnd, body: Transfer) -> None:
    value = body.delivery_id
    last = session.last_delivery
    if value is None or last == UNKNOWN or not session.whole:
        return
    number = nearest(value, last)
    if last < number <= last + 1 + session.unnumbered:
        return
    other = session.unsettled.get(int(number))
    if other is not None:
        delivery_id_in_use(case, value, other)
    elif (raw(last), value) in _WRAPS:
        certainty = CERTAIN if number <= last else POSSIBLE
        serial_number_that_wraps_elsewhere(case, value, int(raw(last)), certainty)
    else:
        delivery_id_out_of_sequence(case, value, number, last)


def continuation_with_other_delivery_id(case: Case, delivery: Delivery, value: int) -> None:
    """A transfer within a delivery has another delivery-id than its first.

    Why it matters: it is another delivery, whose transfers may not interleave with the first one's.
    Silent when: octets since the attach were not captured.
    """
    case.report(
        "amqp10/D-ID-CONT",
        f"delivery-id changes from {raw(delivery.number)} to {value} within a delivery",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


def deliveries_interleave(case: Case, delivery: Delivery, value: int) -> None:
    """A delivery begins on a link while another one of the link is not complete.

    Why it matters: what belongs to which a receiver cannot tell; it takes both for one.
    Silent when: octets since the attach were not captured.
    """
    case.report(
        "amqp10/D-NOINTERLEAVE",
        f"delivery {value} begins while delivery {raw(delivery.number)} of the link is not complete",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


def continuation_with_other_delivery_tag(case: Case, delivery: Delivery) -> None:
    """A transfer within a delivery has another delivery-tag than its first.

    Why it matters: to which delivery it belongs is open.
    Silent when: octets since the attach were not captured.
    """
    case.report(
        "amqp10/D-TAG-CONT",
        "the delivery-tag changes within a delivery",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


def continuation_with_other_message_format(case: Case, delivery: Delivery) -> None:
    """A transfer within a delivery has another message-format than its first.

    Why it matters: the message has one format.
    Silent when: octets since the attach were not captured.
    """
    case.report(
        "amqp10/D-FMT-CONT",
        "message-format changes within a delivery",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


def _judge_continuation(case: Case, link: LinkEnd, delivery: Delivery, body: Transfer) -> None:
    if not link.whole:
        return
    known = delivery.number != UNKNOWN
    if known and body.delivery_id is not None and body.delivery_id != raw(delivery.number):
        if body.delivery_tag is not None and body.delivery_tag != delivery.tag:
            deliveries_interleave(case, delivery, body.delivery_id)
            return
        continuation_with_other_delivery_id(case, delivery, body.delivery_id)
    elif body.delivery_tag is not None and delivery.tag is not None and body.delivery_tag != delivery.tag:
        continuation_with_other_delivery_tag(case, delivery)
    elif (
        body.message_format is not None
        and delivery.message_format is not None
        and body.message_format != delivery.message_format
    ):
        continuation_with_other_message_format(case, delivery)
    if body.resume:
        resuming.judge_continuation(case, link, delivery, body)


def settled_on_unsettled_link(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A transfer is sent settled on a link whose sender settles nothing before sending.

    Why it matters: the receiver counts on being asked.
    Silent when: the sender's attach was not captured.
    """
    attach = link.attach
    if body.settled and not body.aborted and not body.resume and attach is not None and link.whole:
        if link.open is not None and link.open.resumed:
            return
        if attach.snd_settle_mode == 0:
            case.report(
                "amqp10/D-SNDMODE-UNSETTLED",
                "a transfer is settled on a link with snd-settle-mode unsettled",
                CERTAIN,
                {"snd_settle_mode": "unsettled"},
            )


def unsettled_on_settled_link(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A delivery is complete and unsettled on a link whose sender settles all before sending.

    Why it matters: the receiver does not settle it, so nobody does.
    Silent when: octets since the attach were not captured.
    """
    attach = link.attach
    if attach is None or attach.snd_settle_mode != 1 or body.more or not link.whole:
        return
    before = link.open is not None and link.open.settled
    if not body.settled and not before and not body.aborted:
        case.report(
            "amqp10/D-SNDMODE-SETTLED",
            "a delivery is not settled on a link with snd-settle-mode settled",
            CERTAIN,
            {"snd_settle_mode": "settled"},
        )


def settle_mode_raised(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A transfer asks for rcv-settle-mode second on a link agreed as first.

    Why it matters: the receiver would have to wait for a settlement it did not agree to.
    Silent when: the receiver's attach was not captured. Possible when it may not have been read, or when a
    later transfer may settle the delivery.
    Possible because: It is no fault if the {peer} had not yet read what the {other} sent before: that had
    reached its host, but nothing it sent shows that it had read it. Nor if a later transfer settles the
    delivery.
    """
    theirs = link.peer_attach
    if body.rcv_settle_mode != 1 or theirs is None or body.settled or not link.whole:
        return
    if not theirs.rcv_settle_mode:
        case.report(
            "amqp10/D-RCVMODE-RAISE",
            "a transfer has rcv-settle-mode second, the receiver attached with first",
            POSSIBLE if body.more else attach_read(case, link),
            {"rcv_settle_mode": "first"},
        )


def judge_transfer_alone(case: Case, body: Transfer) -> None:
    """The rules that a transfer breaks by itself."""
    tag_too_long(case, body)
    abort_with_more(case, body)


def judge_transfer(case: Case, session: SessionEnd, link: LinkEnd, body: Transfer) -> None:
    """The rules about a delivery's transfers."""
    delivery = link.open
    if delivery is None:
        _judge_first_transfer(case, link, body)
        tag_in_use(case, session, link, body)
        if body.resume or link.listed is not None:
            resuming.judge_first(case, link, body)
        _judge_delivery_id(case, session, body)
    else:
        _judge_continuation(case, link, delivery, body)
        if body.state is not None and changes(delivery.state, body.state):
            sender_changes_its_outcome(case, delivery)
    if isinstance(body.state, Received) and link.whole and (delivery is not None or not body.resume):
        resuming.received_state_from_sender(case)
    if not body.more and not body.aborted and (body.resume or (delivery is not None and delivery.resumed)):
        resumed_state.judge_completion(case, link, body)
    settled_on_unsettled_link(case, link, body)
    unsettled_on_settled_link(case, link, body)
    settle_mode_raised(case, link, body)


RULES = {
    "amqp10/D-TAG-LEN": tag_too_long,
    "amqp10/D-ABORT-MORE": abort_with_more,
    "amqp10/D-ABORT-ONLYOPEN": aborted_before_it_began,
    "amqp10/D-ID-PRESENT": first_transfer_without_delivery_id,
    "amqp10/D-TAG-PRESENT": first_transfer_without_delivery_tag,
    "amqp10/D-FMT-PRESENT": first_transfer_without_message_format,
    "amqp10/D-TAG-UNIQUE": tag_in_use,
    "amqp10/D-ID-UNIQUE": delivery_id_in_use,
    "amqp10/D-ID-SEQ": delivery_id_out_of_sequence,
    "amqp10/D-ID-CONT": continuation_with_other_delivery_id,
    "amqp10/D-NOINTERLEAVE": deliveries_interleave,
    "amqp10/D-TAG-CONT": continuation_with_other_delivery_tag,
    "amqp10/D-FMT-CONT": continuation_with_other_message_format,
    "amqp10/D-SNDMODE-UNSETTLED": settled_on_unsettled_link,
    "amqp10/D-SNDMODE-SETTLED": unsettled_on_settled_link,
    "amqp10/D-RCVMODE-RAISE": settle_mode_raised,
}
