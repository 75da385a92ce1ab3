"""The receiver's part in resumed deliveries (transport.xml, "Resuming Deliveries")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.delivery_state import is_outcome, quoted, state_name
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.performatives import Attach, Disposition
from dissectors.wire import i64

__all__ = ["RULES", "judge_attach", "judge_disposition"]

RULES: Final = Rules("amqp10/resumed_receipt")


D_RESUME_TGTONLY: Final = RULES.rule("D-RESUME-TGTONLY", "MUST", "keyword")


def listed_again_though_only_here(case: Case10, tag: bytes, certainty: i64) -> None:
    """The unsettled map in a sender's attach did not list a delivery, but the receiver's next attach still
    lists this delivery as unsettled.

    Demands: If only the receiver's unsettled map lists a delivery, the sender must regard the delivery as
    settled at the receiver, and must not resume the delivery.
    Source: transport.xml section links > Resuming Deliveries
    Evidence: delivery-tags that only the receiver's unsettled map lists, and the later unsettled maps and
    transfers
    Why it matters: The sender's attach showed that the delivery is settled. A receiver that continues to list
    such a delivery keeps the state of the delivery for ever.
    Silent when: one of the attach frames was not captured, or when the sender's unsettled map was null or
    incomplete. The rule is also silent when a delivery with this delivery-tag arrived later. The finding is
    reported as possible, not as certain, when the receiver may not yet have read the sender's attach.
    How to mend it: When the sender's attach arrives, compare its unsettled map with your own. If the sender's
    map is complete and a delivery is only in your own map, treat the delivery as settled and remove the
    delivery from your map.
    """
    case.report(
        D_RESUME_TGTONLY,
        "the receiver's unsettled map lists a delivery that counts as settled, because the sender's "
        "previous attach did not list this delivery",
        certainty,
        {"delivery_tag": tag[:32].hex()},
    )


def judge_attach(case: Case10, session: SessionEnd, body: Attach) -> None:
    """Judge the unsettled map of a receiver that attaches a link again."""
    if body.role is not True or body.name is None or body.unsettled is None:
        return
    link = session.links.get((body.name, False))
    if link is None or not link.resumption.orphans or not link.whole:
        return
    for tag, _ in body.unsettled.pairs:
        if isinstance(tag, bytes) and tag in link.resumption.orphans:
            listed_again_though_only_here(case, tag, case.me.knowledge.certainty(link.resumption.orphans_end))
            return


D_RESUME_IGNORE: Final = RULES.rule("D-RESUME-IGNORE", "MUST", "keyword", by="receiver")


def outcome_of_what_is_to_be_ignored(case: Case10, number: i64) -> None:
    """A receiver sends a disposition for a resumed delivery that the receiver's own attach does not list.

    Demands: A receiver must ignore a resumed delivery if the receiver's unsettled map does not contain the
    delivery-tag.
    Source: transport.xml section performatives > transfer.resume; transport.xml section links > Resuming
    Deliveries
    Evidence: the receiver's unsettled map, and a later disposition of the receiver
    Why it matters: The receiver must ignore a resumed delivery that its attach does not list. The receiver
    may have received the message before, and the application may then get the message twice.
    Silent when: one of the attach frames was not captured, or when the unsettled map of the receiver is
    incomplete. The rule is also silent when the disposition names other deliveries, too.
    How to mend it: Look up the delivery-tag of each transfer with resume=true in your own unsettled map. If
    the map is complete and does not contain the tag, discard the delivery and send no disposition.
    """
    case.report(
        D_RESUME_IGNORE,
        f"the receiver sends a disposition for the resumed delivery {raw(number)}, but must ignore this "
        "delivery, because the receiver's unsettled map did not list the delivery",
        CERTAIN,
        {"delivery_id": int(raw(number))},
    )


M_RES_DIFFER_ECHO: Final = RULES.rule("M-RES-DIFFER-ECHO", "SHOULD", "lower-case", by="receiver")


def outcome_not_echoed(case: Case10, number: i64, own: object, state: object) -> None:
    """The two peers have different outcomes for a resumed delivery, and the receiver does not answer with the
    sender's outcome and settled=true.

    Demands: If the outcomes of a resumed delivery differ, the receiver should repeat the sender's outcome and
    settle the delivery. The draft csprd02 writes this demand with the keyword SHOULD.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tag 13)
    Evidence: the receiver's disposition after the transfer with resume=true
    Why it matters: Only the sender's outcome takes effect. The two peers continue to disagree about the
    outcome of the delivery.
    Silent when: one of the attach frames was not captured, or when the receiver sends no state for the
    delivery.
    How to mend it: When a transfer resumes a delivery with an outcome that differs from your own outcome,
    adopt the sender's outcome. Send a disposition with the sender's outcome and settled=true.
    """
    of = f"the sender's outcome of delivery {raw(number)}"
    what = f"the receiver repeats {of} but does not settle the delivery"
    if state != own:
        what = (
            f"{of} is {quoted(own)}, but the receiver sends {quoted(state)} instead of repeating the "
            "sender's outcome"
        )
    case.report(
        M_RES_DIFFER_ECHO,
        what,
        CERTAIN,
        {"delivery_id": int(raw(number)), "sender_state": state_name(own)},
    )


def judge_disposition(case: Case10, session: SessionEnd, body: Disposition) -> None:
    """Judge a receiver's disposition for resumed deliveries."""
    first = body.first
    theirs = case.peer.sessions.get(int(session.peer_channel))
    if first is None or theirs is None or not session.whole or not case.me.whole or not case.peer.whole:
        return
    ignored: i64 = 0
    last = first if body.last is None else nearest(body.last, first)
    for delivery in case.peer.named(theirs, body):
        if not delivery.resumed or delivery.tag is None:
            return
        link = session.links.get((delivery.link.name, False))
        if link is None or not link.whole:
            return
        own = link.resumption.listed
        sent = link.resumption.peer_listed
        if own is None or not sent or delivery.tag not in sent:
            return
        case.link = link
        if delivery.tag not in own:
            if link.attach is None or link.attach.incomplete_unsettled:
                return
            ignored += 1
            if ignored == last - first + 1:
                outcome_of_what_is_to_be_ignored(case, delivery.number)
                return
            continue
        mine = own[delivery.tag]
        outcome = sent[delivery.tag]
        if is_outcome(mine) and is_outcome(outcome) and mine != outcome and delivery.state == outcome:
            if body.state is not None and (body.state != outcome or not body.settled):
                outcome_not_echoed(case, delivery.number, outcome, body.state)
                return
