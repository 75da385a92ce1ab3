"""Deliveries: ids, tags, settlement (transport.xml, "Transferring a Message", performatives)."""

from amqpscope.rules.case import Case
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.knowledge import CERTAIN, POSSIBLE
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.performatives import Disposition, Transfer

__all__ = ["judge_disposition", "judge_transfer"]


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


def first_transfer_lacks_fields(case: Case, link: LinkEnd, body: Transfer) -> None:
    """The first transfer of a delivery lacks its delivery-id or delivery-tag.

    Why it matters: the delivery cannot be referred to.
    Silent when: octets since the attach were not captured, so it may be a continuation.
    """
    if not link.whole:
        return
    if body.delivery_id is None and (body.odd is None or 1 not in body.odd):
        case.report("amqp10/D-ID-PRESENT", "the first transfer of a delivery has no delivery-id")
    if body.delivery_tag is None and (body.odd is None or 2 not in body.odd):
        case.report("amqp10/D-TAG-PRESENT", "the first transfer of a delivery has no delivery-tag")


def tag_in_use(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A delivery-tag is used while an earlier delivery with it may be unsettled.

    Why it matters: the two deliveries cannot be told apart when the link is resumed.
    Silent when: the earlier delivery's settlement may not have been captured.
    """
    tag = body.delivery_tag
    if tag is None or body.resume:
        return
    earlier = link.tags.get(tag)
    if earlier is not None and link.whole and case.peer.whole:
        # Settled by the peer beyond what this end can have known: the tag was not free for it.
        case.report(
            "amqp10/D-TAG-UNIQUE",
            f"the delivery-tag is that of a delivery still unsettled (packet {earlier.packet})",
            CERTAIN,
            {"unsettled_deliveries": len(link.tags)},
            [int(earlier.packet)],
        )


def resumed_without_resume(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A delivery that both ends hold unsettled is sent again without the resume flag.

    Why it matters: the receiver takes it for a new delivery, and has it twice.
    Silent when: one of the two attaches was not captured.
    """
    tag = body.delivery_tag
    own = link.attach
    theirs = link.peer_attach
    if tag is None or body.resume or own is None or own.unsettled is None or theirs is None or not link.whole:
        return
    if theirs.unsettled is None or tag in link.tags:
        return
    if any(key == tag for key, _ in own.unsettled) and any(key == tag for key, _ in theirs.unsettled):
        case.report(
            "amqp10/D-RESUME-FLAG",
            "a delivery that both attaches list as unsettled is sent without resume",
            CERTAIN,
            {"unsettled": len(own.unsettled)},
            [int(link.attach_packet)],
        )


def delivery_id_backwards(case: Case, session: SessionEnd, body: Transfer) -> None:
    """A new delivery's id does not follow the last one of the session.

    Why it matters: ids come from one sequence; a receiver that settles ranges settles the wrong ones.
    Silent when: octets since the last delivery were not captured.
    """
    value = body.delivery_id
    last = session.last_delivery
    if value is None or last == UNKNOWN or not session.whole:
        return
    number = nearest(value, last)
    if int(number) in session.unsettled:
        other = session.unsettled[int(number)]
        case.report(
            "amqp10/D-ID-UNIQUE",
            f"delivery-id {value} is that of a delivery still unsettled (packet {other.packet})",
            CERTAIN,
            {"delivery_id": value},
            [int(other.packet)],
        )
    elif number != last + 1:
        case.report(
            "amqp10/D-ID-SEQ",
            f"delivery-id {value} follows {raw(last)}",
            CERTAIN if number <= last else POSSIBLE,
            {"last_delivery_id": int(raw(last))},
        )


def continuation_changes_fields(case: Case, link: LinkEnd, delivery: Delivery, body: Transfer) -> None:
    """A transfer within a delivery has another delivery-id, tag or message-format than its first.

    Why it matters: it is another delivery, whose transfers may not interleave with the first one's.
    Silent when: octets since the first transfer were not captured.
    """
    if not link.whole:
        return
    others = [int(delivery.packet)]
    evidence: dict[str, object] = {"delivery_id": int(raw(delivery.number))}
    if (
        body.delivery_id is not None
        and delivery.number != UNKNOWN
        and body.delivery_id != raw(delivery.number)
    ):
        case.report(
            "amqp10/D-ID-CONT",
            f"delivery-id changes from {raw(delivery.number)} to {body.delivery_id} within a delivery",
            CERTAIN,
            evidence,
            others,
        )
    elif body.delivery_tag is not None and delivery.tag is not None and body.delivery_tag != delivery.tag:
        case.report(
            "amqp10/D-TAG-CONT", "the delivery-tag changes within a delivery", CERTAIN, evidence, others
        )
    elif (
        body.message_format is not None
        and delivery.message_format is not None
        and body.message_format != delivery.message_format
    ):
        case.report(
            "amqp10/D-FMT-CONT", "message-format changes within a delivery", CERTAIN, evidence, others
        )


def settled_on_unsettled_link(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A transfer is sent settled on a link whose sender settles nothing before sending.

    Why it matters: the receiver counts on being asked.
    Silent when: the sender's attach was not captured.
    """
    attach = link.attach
    if body.settled and not body.aborted and not body.resume and attach is not None and link.whole:
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
    Silent when: the receiver's attach was not captured.
    """
    theirs = link.peer_attach
    if body.rcv_settle_mode != 1 or theirs is None or body.settled or not link.whole:
        return
    if not theirs.rcv_settle_mode:
        case.report(
            "amqp10/D-RCVMODE-RAISE",
            "a transfer has rcv-settle-mode second, the receiver attached with first",
            case.me.knowledge.certainty(link.peer_attach_end),
            {"rcv_settle_mode": "first"},
        )


def judge_transfer(case: Case, session: SessionEnd, link: LinkEnd, body: Transfer) -> None:
    """The rules about a delivery's transfers."""
    tag_too_long(case, body)
    abort_with_more(case, body)
    delivery = link.open
    if delivery is None:
        first_transfer_lacks_fields(case, link, body)
        tag_in_use(case, link, body)
        resumed_without_resume(case, link, body)
        delivery_id_backwards(case, session, body)
    else:
        continuation_changes_fields(case, link, delivery, body)
    settled_on_unsettled_link(case, link, body)
    unsettled_on_settled_link(case, link, body)
    settle_mode_raised(case, link, body)


def disposition_backwards(case: Case, body: Disposition) -> None:
    """A disposition's last is before its first.

    Why it matters: the range is empty, or nearly everything.
    Silent when: never.
    """
    first = body.first
    last = body.last
    if first is not None and last is not None and nearest(last, first) < first:
        case.report("amqp10/D-DISP-RANGE", f"last is {last}, before first, {first}")


def disposition_of_unknown_deliveries(case: Case, session: SessionEnd, body: Disposition) -> None:
    """A disposition names no delivery that was ever sent in the direction it speaks of.

    Why it matters: it settles nothing; as receiver with the sender's role it means its own deliveries.
    Silent when: the begins were not captured, or octets since.
    """
    if (
        body.first is None
        or body.role is None
        or not session.whole
        or not case.peer.whole
        or not case.me.whole
    ):
        return
    if body.last is not None and nearest(body.last, body.first) < body.first:
        return
    # What this end can have received: the peer may meanwhile use the channel for another session.
    received = session.last_received()
    sent = session.last_delivery
    mine, last, opposite = ("received", received, sent) if body.role else ("sent", sent, received)
    if last == UNKNOWN:
        rule = "amqp10/D-DISP-UNKNOWN" if opposite == UNKNOWN else "amqp10/D-DISP-ROLE"
        role = "receiver" if body.role else "sender"
        case.report(
            rule,
            f"a disposition with role {role} names delivery {body.first}, but its sender has {mine} none",
            CERTAIN,
            {"role": role},
        )
    elif nearest(body.first, last) > last:
        case.report(
            "amqp10/D-DISP-UNKNOWN",
            f"a disposition names delivery {body.first}, the last {mine} is {raw(last)}",
            CERTAIN,
            {"last_delivery_id": int(raw(last))},
        )


def judge_disposition(case: Case, session: SessionEnd, body: Disposition) -> None:
    """The rules about disposition."""
    disposition_backwards(case, body)
    disposition_of_unknown_deliveries(case, session, body)
