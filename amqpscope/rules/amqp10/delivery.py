"""Deliveries: ids, tags, settlement (transport.xml, "Transferring a Message", performatives)."""

from amqpscope.rules.amqp10.link import attach_read
from amqpscope.rules.case import Case
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd, among
from amqpscope.tracking.knowledge import CERTAIN, POSSIBLE
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.messaging import Received, Source
from dissectors.amqp10.performatives import Attach, Disposition, Transfer
from dissectors.amqp10.transactions import Declared, TransactionalState
from dissectors.wire import i64

__all__ = [
    "judge_disposition",
    "judge_disposition_alone",
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


def first_of_several_transfers_without_message_format(case: Case) -> None:
    """The first of a delivery's several transfers lacks message-format.

    Why it matters: only continuations may leave it out; the receiver guesses how to read the message.
    Silent when: octets since the attach were not captured, or the delivery is one transfer.
    """
    case.report("amqp10/D-FMT-PRESENT", "the first of several transfers of a delivery has no message-format")


def _judge_first_transfer(case: Case, link: LinkEnd, body: Transfer) -> None:
    if not link.whole:
        return
    odd = body.odd
    if body.delivery_id is None and (odd is None or 1 not in odd):
        first_transfer_without_delivery_id(case)
    if body.delivery_tag is None and (odd is None or 2 not in odd):
        first_transfer_without_delivery_tag(case)
    if body.more and body.message_format is None and case.found == 0 and (odd is None or 3 not in odd):
        first_of_several_transfers_without_message_format(case)
    if body.aborted and not body.resume:
        aborted_before_it_began(case)


def aborted_before_it_began(case: Case) -> None:
    """The first transfer of a delivery aborts it.

    Why it matters: there is nothing to abort; the receiver may wait for a delivery that is none.
    Silent when: octets since the attach were not captured, or the delivery is resumed. Never more than
    possible: the specification's own examples do it.
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


def resumed_without_resume(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A delivery that both ends hold unsettled is sent again without the resume flag.

    Why it matters: the receiver takes it for a new delivery, and has it twice.
    Silent when: one of the two attaches was not captured, or the delivery was resumed since. Possible when
    the receiver's attach may not have been read.
    """
    tag = body.delivery_tag
    own = link.attach
    theirs = link.peer_attach
    if tag is None or body.resume or own is None or own.unsettled is None or theirs is None or not link.whole:
        return
    if theirs.unsettled is None or tag in link.tags or tag in link.resumed:
        return
    if any(key == tag for key, _ in own.unsettled) and any(key == tag for key, _ in theirs.unsettled):
        case.report(
            "amqp10/D-RESUME-FLAG",
            "a delivery that both attaches list as unsettled is sent without resume",
            attach_read(case, link),
            {"unsettled": len(own.unsettled)},
            [int(link.attach_packet)],
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
    """
    case.report(
        "amqp10/D-ID-SEQ",
        f"delivery-id {value} follows {raw(last)}",
        CERTAIN if number <= last else POSSIBLE,
        {"last_delivery_id": int(raw(last))},
    )


def _judge_delivery_id(case: Case, session: SessionEnd, body: Transfer) -> None:
    value = body.delivery_id
    last = session.last_delivery
    if value is None or last == UNKNOWN or not session.whole:
        return
    number = nearest(value, last)
    if number == last + 1:
        return
    other = session.unsettled.get(int(number))
    if other is not None:
        delivery_id_in_use(case, value, other)
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


def continuation_resumes(case: Case, delivery: Delivery) -> None:
    """A transfer within a delivery has resume set, and its first had not.

    Why it matters: the receiver has taken the delivery for a new one.
    Silent when: octets since the attach were not captured.
    """
    case.report(
        "amqp10/D-RESUME-FIRSTFRAME",
        "resume is set within a delivery that did not begin with it",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


def _judge_continuation(case: Case, link: LinkEnd, delivery: Delivery, body: Transfer) -> None:
    if not link.whole:
        return
    known = delivery.number != UNKNOWN
    if known and body.delivery_id is not None and body.delivery_id != raw(delivery.number):
        continuation_with_other_delivery_id(case, delivery, body.delivery_id)
    elif body.delivery_tag is not None and delivery.tag is not None and body.delivery_tag != delivery.tag:
        continuation_with_other_delivery_tag(case, delivery)
    elif (
        body.message_format is not None
        and delivery.message_format is not None
        and body.message_format != delivery.message_format
    ):
        continuation_with_other_message_format(case, delivery)
    if body.resume and not delivery.resumed:
        continuation_resumes(case, delivery)


def resumed_without_being_unsettled(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A delivery is resumed that the sender's own unsettled map does not list.

    Why it matters: the receiver must ignore it, or takes it for one that it holds.
    Silent when: the attach was not captured, or octets since, or its map is incomplete.
    """
    attach = link.attach
    tag = body.delivery_tag
    if not body.resume or tag is None or attach is None or attach.incomplete_unsettled or not link.whole:
        return
    if attach.odd is not None and 7 in attach.odd:
        return
    if attach.unsettled is None or not any(key == tag for key, _ in attach.unsettled.pairs):
        case.report(
            "amqp10/D-RESUME-LOCAL",
            "a delivery is resumed that the sender's attach does not list as unsettled",
            CERTAIN,
            {"unsettled": 0 if attach.unsettled is None else len(attach.unsettled.pairs)},
            [int(link.attach_packet)],
        )


def received_state_from_sender(case: Case) -> None:
    """A sender states `received` of a delivery that it does not resume.

    Why it matters: the state says how far a delivery came; only a resuming sender can tell.
    Silent when: octets since the attach were not captured.
    """
    case.report("amqp10/M-RECEIVED-SND", "a sender states received of a delivery that it does not resume")


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
    Silent when: the receiver's attach was not captured. Possible when it may not have been read, or when a
    later transfer may settle the delivery.
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


def sender_changes_its_outcome(case: Case, delivery: Delivery) -> None:
    """A sender states another outcome of a delivery than the one that it stated before.

    Why it matters: an outcome is final; the receiver may have acted on the first.
    Silent when: octets since the attach were not captured, or one of the two is part of a transaction.
    """
    case.report(
        "amqp10/D-STATE-FINAL-SND",
        "a sender changes the outcome that it stated of a delivery",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
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
        resumed_without_resume(case, link, body)
        resumed_without_being_unsettled(case, link, body)
        _judge_delivery_id(case, session, body)
    else:
        _judge_continuation(case, link, delivery, body)
        if body.state is not None and _changes(delivery.state, body.state):
            sender_changes_its_outcome(case, delivery)
    if isinstance(body.state, Received) and link.whole and (delivery is not None or not body.resume):
        received_state_from_sender(case)
    settled_on_unsettled_link(case, link, body)
    unsettled_on_settled_link(case, link, body)
    settle_mode_raised(case, link, body)


def _changes(before: object, after: object) -> bool:
    """Whether an outcome is replaced by another one. Provisional ones, in a transaction, may be."""
    if not isinstance(before, Composite) or not isinstance(after, Composite):
        return False
    if "outcome" not in before.definition().provides or isinstance(before, (TransactionalState, Declared)):
        return False
    return not isinstance(after, (TransactionalState, Declared)) and before != after


def disposition_backwards(case: Case, body: Disposition) -> None:
    """A disposition's last is before its first.

    Why it matters: the range is empty, or nearly everything.
    Silent when: never.
    """
    first = body.first
    last = body.last
    if first is not None and last is not None and nearest(last, first) < first:
        case.report("amqp10/D-DISP-RANGE", f"last is {last}, before first, {first}")


def disposition_of_the_other_direction(case: Case, first: int, role: str, mine: str) -> None:
    """A disposition's role is that of the other end of the deliveries it means.

    Why it matters: read as it stands it names deliveries of the other direction, or none.
    Silent when: octets of either peer since the session's begin were not captured.
    """
    case.report(
        "amqp10/D-DISP-ROLE",
        f"a disposition with role {role} names delivery {first}, but its sender has {mine} none",
        CERTAIN,
        {"role": role},
    )


def disposition_of_unknown_deliveries(case: Case, first: int, last: i64, mine: str) -> None:
    """A disposition names no delivery that was ever sent in the direction it speaks of.

    Why it matters: it settles nothing.
    Silent when: octets of either peer since the session's begin were not captured.
    """
    if last == UNKNOWN:
        what = f"a disposition names delivery {first}, but its sender has {mine} none"
        case.report("amqp10/D-DISP-UNKNOWN", what)
    else:
        case.report(
            "amqp10/D-DISP-UNKNOWN",
            f"a disposition names delivery {first}, the last {mine} is {raw(last)}",
            CERTAIN,
            {"last_delivery_id": int(raw(last))},
        )


def _judge_named(case: Case, session: SessionEnd, body: Disposition) -> None:
    """Whether a disposition names deliveries there are."""
    first = body.first
    if first is None or body.role is None or not session.whole or not case.me.whole:
        return
    sent = session.last_delivery
    received = session.last_received()
    last = sent
    opposite = received
    if body.role:
        last = received
        opposite = sent
    mine = "received" if body.role else "sent"
    if last != UNKNOWN and nearest(first, last) <= last:
        return
    if last == UNKNOWN and opposite != UNKNOWN and nearest(first, opposite) <= opposite:
        disposition_of_the_other_direction(case, first, "receiver" if body.role else "sender", mine)
    else:
        disposition_of_unknown_deliveries(case, first, last, mine)


def settled_again(case: Case, session: SessionEnd, first: i64, last: i64) -> None:
    """A receiver settles deliveries all of which it has settled before.

    Why it matters: the first settled them; the sender may have used the ids again.
    Silent when: octets since the session's begin were not captured.
    """
    if session.settled.cover(first, last):
        case.report(
            "amqp10/D-DISP-RESETTLE",
            f"delivery {raw(first)} is settled a second time",
            CERTAIN,
            {"delivery_id": int(raw(first))},
        )


def receiver_changes_its_outcome(case: Case, number: i64) -> None:
    """A receiver states another outcome of a delivery than the one that it stated before.

    Why it matters: an outcome is final; the sender may have acted on the first.
    Silent when: octets since the session's begin were not captured, or one of the two is part of a
    transaction.
    """
    case.report(
        "amqp10/D-STATE-FINAL-RCV",
        f"a receiver changes the outcome that it stated of delivery {raw(number)}",
        CERTAIN,
        {"delivery_id": int(raw(number))},
    )


def settled_before_the_sender(case: Case, number: i64) -> None:
    """A receiver settles a delivery before its sender has, on a link with rcv-settle-mode second.

    Why it matters: the sender counts on being asked; the delivery cannot be made exactly once.
    Silent when: octets of either peer since the session's begin were not captured.
    """
    case.report(
        "amqp10/D-RCVMODE-SECOND",
        "a delivery is settled by its receiver first, on a link with rcv-settle-mode second",
        CERTAIN,
        {"rcv_settle_mode": "second", "delivery_id": int(raw(number))},
    )


def outcome_not_offered(case: Case, number: i64, name: str, certainty: i64) -> None:
    """A receiver states an outcome that the sender's source does not list.

    Why it matters: the source cannot do what is asked.
    Silent when: the sender's attach was not captured, or lists no outcomes. Possible when the sender attached
    the link again and the receiver may not have read that.
    """
    case.report(
        "amqp10/M-OUTCOMES-USE",
        f"the outcome is {name}, which is not among those of the sender's source",
        certainty,
        {"delivery_id": int(raw(number))},
    )


def _offers(attach: Attach | None, outcome: Composite) -> bool:
    """Whether a sender's source lets a receiver choose this outcome, as far as it says."""
    if attach is None or not isinstance(attach.source, Source):
        return True
    source = attach.source
    if not source.outcomes:
        return True
    definition = outcome.definition()
    if "outcome" not in definition.provides or isinstance(outcome, Declared):
        return True
    default = source.default_outcome
    if isinstance(default, Composite) and default.definition() is definition:
        return True
    return definition.symbol in source.outcomes


def _judge_as_receiver(case: Case, session: SessionEnd, body: Disposition) -> None:
    """The rules about what a receiver says of deliveries it has received."""
    if body.first is None or not session.whole or not case.me.whole:
        return
    first = session.received(body.first)
    last = first
    if body.last is not None:
        last = session.received(body.last)
    if first == UNKNOWN or last < first:
        return
    if body.settled:
        settled_again(case, session, first, last)
    state = body.state
    if state is not None and session.stated:
        for number in among(session.stated, first, last):
            if _changes(session.stated[number], state):
                receiver_changes_its_outcome(case, number)
                break
    if not session.held:
        return
    outcome = state.outcome if isinstance(state, TransactionalState) else state
    for number in among(session.held, first, last):
        link = session.held[number]
        case.link = link
        if body.settled and link.attach is not None and link.attach.rcv_settle_mode == 1:
            settled_before_the_sender(case, number)
            return
        if isinstance(outcome, Composite) and not _offers(link.peer_attach, outcome):
            # Who speaks of a delivery has read it, and the attach before it; but not one behind it.
            again = link.peer_attaches > 1
            certainty = case.me.knowledge.certainty(link.peer_attach_end) if again else CERTAIN
            outcome_not_offered(case, number, outcome.definition().name, certainty)
            return
    case.link = None


def _judge_as_sender(case: Case, session: SessionEnd, body: Disposition) -> None:
    """The rules about what a sender says of deliveries it has sent."""
    state = body.state
    if state is None or body.first is None or not session.whole:
        return
    for delivery in case.me.named(session, body):
        if isinstance(state, Received):
            received_state_from_sender(case)
            return
        if _changes(delivery.state, state):
            sender_changes_its_outcome(case, delivery)
            return


def judge_disposition_alone(case: Case, body: Disposition) -> None:
    """The rules that a disposition breaks by itself."""
    disposition_backwards(case, body)


def judge_disposition(case: Case, session: SessionEnd, body: Disposition) -> None:
    """The rules about disposition."""
    if case.found > 0:
        return
    _judge_named(case, session, body)
    if case.found > 0:
        return
    if body.role:
        _judge_as_receiver(case, session, body)
    elif body.role is False:
        _judge_as_sender(case, session, body)


RULES = {
    "amqp10/D-TAG-LEN": tag_too_long,
    "amqp10/D-ABORT-MORE": abort_with_more,
    "amqp10/D-ABORT-ONLYOPEN": aborted_before_it_began,
    "amqp10/D-ID-PRESENT": first_transfer_without_delivery_id,
    "amqp10/D-TAG-PRESENT": first_transfer_without_delivery_tag,
    "amqp10/D-FMT-PRESENT": first_of_several_transfers_without_message_format,
    "amqp10/D-TAG-UNIQUE": tag_in_use,
    "amqp10/D-RESUME-FLAG": resumed_without_resume,
    "amqp10/D-RESUME-LOCAL": resumed_without_being_unsettled,
    "amqp10/D-RESUME-FIRSTFRAME": continuation_resumes,
    "amqp10/D-ID-UNIQUE": delivery_id_in_use,
    "amqp10/D-ID-SEQ": delivery_id_out_of_sequence,
    "amqp10/D-ID-CONT": continuation_with_other_delivery_id,
    "amqp10/D-TAG-CONT": continuation_with_other_delivery_tag,
    "amqp10/D-FMT-CONT": continuation_with_other_message_format,
    "amqp10/M-RECEIVED-SND": received_state_from_sender,
    "amqp10/D-SNDMODE-UNSETTLED": settled_on_unsettled_link,
    "amqp10/D-SNDMODE-SETTLED": unsettled_on_settled_link,
    "amqp10/D-RCVMODE-RAISE": settle_mode_raised,
    "amqp10/D-RCVMODE-SECOND": settled_before_the_sender,
    "amqp10/D-STATE-FINAL-SND": sender_changes_its_outcome,
    "amqp10/D-STATE-FINAL-RCV": receiver_changes_its_outcome,
    "amqp10/D-DISP-RANGE": disposition_backwards,
    "amqp10/D-DISP-ROLE": disposition_of_the_other_direction,
    "amqp10/D-DISP-UNKNOWN": disposition_of_unknown_deliveries,
    "amqp10/D-DISP-RESETTLE": settled_again,
    "amqp10/M-OUTCOMES-USE": outcome_not_offered,
}
