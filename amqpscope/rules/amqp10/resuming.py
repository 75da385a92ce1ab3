"""Which deliveries are resumed when a link is attached again (transport.xml, "Resuming Deliveries").

Each of the two attaches lists what its end holds unsettled. A sender resumes what its own list has, with the
resume flag; what the receiver's has not, the receiver ignores. How a delivery goes on is
`rules.amqp10.resumed_state`.
"""

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp10 import resumed_state
from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.link import attach_read
from amqpscope.tracking.amqp10.link import Delivery, LinkEnd
from amqpscope.tracking.serial import raw
from dissectors.amqp10.performatives import Transfer
from dissectors.wire import i64

__all__ = ["RULES", "judge_continuation", "judge_first", "received_state_from_sender"]


def resumed_without_resume(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A sender sends a delivery that both peers hold unsettled again without the resume flag.

    Why it matters: The receiver takes the delivery for a new one, so it has the message twice.
    Silent when: one of the two attaches was not captured, or the delivery was resumed since. The finding is
    only possible, not certain, when the sender may not have read the receiver's attach.
    How to mend it: After the link is attached again, compare both unsettled maps. Set resume=true on the
    first transfer of each delivery whose delivery-tag is in both maps.
    """
    tag = body.delivery_tag
    own = link.resumption.listed
    theirs = link.resumption.peer_listed
    if tag is None or body.resume or not own or not theirs or not link.whole:
        return
    if tag in link.tags or tag in link.resumption.resumed:
        return
    if tag in own and tag in theirs:
        case.report(
            "amqp10/D-RESUME-FLAG",
            "a delivery that both attaches list as unsettled is sent without resume",
            attach_read(case, link),
            {"unsettled": len(own)},
            [int(link.attachment.packet)],
        )


def resumed_without_being_unsettled(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A sender resumes a delivery that its own unsettled map does not list.

    Why it matters: The receiver must ignore the delivery, or it takes the delivery for another one that it
    holds. The message may be lost.
    Silent when: the attach was not captured, octets since the attach were not captured, or the unsettled map
    of the attach is incomplete.
    How to mend it: Set resume=true only for delivery-tags that the unsettled map of your latest attach lists.
    Send every other message as a new delivery without resume.
    """
    attach = link.attach
    tag = body.delivery_tag
    if not body.resume or tag is None or attach is None or attach.incomplete_unsettled or not link.whole:
        return
    if attach.unread(7):
        return
    if not link.resumption.listed or tag not in link.resumption.listed:
        case.report(
            "amqp10/D-RESUME-LOCAL",
            "a delivery is resumed that the sender's attach does not list as unsettled",
            CERTAIN,
            {"unsettled": 0 if not link.resumption.listed else len(link.resumption.listed)},
            [int(link.attachment.packet)],
        )


def continuation_resumes(case: Case, delivery: Delivery) -> None:
    """A sender sets resume on a later transfer of a delivery whose first transfer did not have resume set.

    Why it matters: The receiver has already taken the delivery for a new one. It may process a message that
    it already has.
    Silent when: octets since the attach were not captured.
    How to mend it: Decide before the first transfer of a delivery whether the delivery is resumed. Set
    resume=true on the first transfer, and leave it unset on all transfers of a new delivery.
    """
    case.report(
        "amqp10/D-RESUME-FIRSTFRAME",
        "resume is set within a delivery that did not begin with it",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


def received_state_from_sender(case: Case) -> None:
    """A sender states received for a delivery that it does not resume.

    Why it matters: From a sender this state gives the position at which a resumed delivery starts. For a
    delivery that is not resumed the state has no meaning.
    Silent when: octets since the attach were not captured.
    How to mend it: Set the state received only on the first transfer of a resumed delivery. Leave it out of
    all other transfers and of all dispositions that you send as sender.
    """
    case.report("amqp10/M-RECEIVED-SND", "a sender states received of a delivery that it does not resume")


def resumed_though_the_receiver_has_no_record(case: Case, link: LinkEnd, certainty: i64) -> None:
    """A sender resumes a delivery that the receiver's attach does not list.

    Why it matters: The receiver must ignore a resumed delivery that it does not know. The message is lost.
    Silent when: one of the attaches was not captured, or the unsettled map of the receiver is null or
    incomplete. The finding is only possible, not certain, when the sender may not have read the receiver's
    attach, because a sender may resume deliveries before it has read that attach.
    How to mend it: Look up each unsettled delivery-tag in the unsettled map of the receiver's attach. If the
    map is complete and does not list the tag, send the message again as a new delivery without resume.
    """
    case.report(
        "amqp10/M-RES-RESEND-NEW",
        "a delivery is resumed of which the receiver's attach says that it has no record",
        certainty,
        {"resume": True},
        [int(link.attachment.packet)],
    )


def judge_first(case: Case, link: LinkEnd, body: Transfer) -> None:
    """The rules about the first transfer of a delivery on a link that was attached with an unsettled map."""
    own = link.resumption.listed
    theirs = link.resumption.peer_listed
    tag = body.delivery_tag
    if not body.resume:
        resumed_without_resume(case, link, body)
        return
    found = case.found
    resumed_without_being_unsettled(case, link, body)
    if case.found > found or tag is None or own is None or theirs is None or not link.whole:
        return
    if tag in link.resumption.resumed or tag not in own:
        return
    certainty = attach_read(case, link)
    if tag not in theirs:
        if link.peer_attach is not None and not link.peer_attach.incomplete_unsettled:
            resumed_though_the_receiver_has_no_record(case, link, certainty)
        return
    resumed_state.judge_state(case, link, body, own[tag], theirs[tag], certainty)


def judge_continuation(case: Case, link: LinkEnd, delivery: Delivery, body: Transfer) -> None:
    """The rules about a later transfer of a delivery."""
    if link.whole and body.resume and not delivery.resumed:
        continuation_resumes(case, delivery)


RULES = {
    "amqp10/D-RESUME-FLAG": resumed_without_resume,
    "amqp10/D-RESUME-LOCAL": resumed_without_being_unsettled,
    "amqp10/D-RESUME-FIRSTFRAME": continuation_resumes,
    "amqp10/M-RECEIVED-SND": received_state_from_sender,
    "amqp10/M-RES-RESEND-NEW": resumed_though_the_receiver_has_no_record,
}
