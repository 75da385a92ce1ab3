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
    """A delivery that both ends hold unsettled is sent again without the resume flag.

    Why it matters: the receiver takes it for a new delivery, and has it twice.
    Silent when: one of the two attaches was not captured, or the delivery was resumed since. Possible when
    the receiver's attach may not have been read.
    """
    tag = body.delivery_tag
    own = link.listed
    theirs = link.peer_listed
    if tag is None or body.resume or not own or not theirs or not link.whole:
        return
    if tag in link.tags or tag in link.resumed:
        return
    if tag in own and tag in theirs:
        case.report(
            "amqp10/D-RESUME-FLAG",
            "a delivery that both attaches list as unsettled is sent without resume",
            attach_read(case, link),
            {"unsettled": len(own)},
            [int(link.attach_packet)],
        )


def resumed_without_being_unsettled(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A delivery is resumed that the sender's own unsettled map does not list.

    Why it matters: the receiver must ignore it, or takes it for one that it holds.
    Silent when: the attach was not captured, or octets since, or its map is incomplete.
    """
    attach = link.attach
    tag = body.delivery_tag
    if not body.resume or tag is None or attach is None or attach.incomplete_unsettled or not link.whole:
        return
    if attach.unread(7):
        return
    if not link.listed or tag not in link.listed:
        case.report(
            "amqp10/D-RESUME-LOCAL",
            "a delivery is resumed that the sender's attach does not list as unsettled",
            CERTAIN,
            {"unsettled": 0 if not link.listed else len(link.listed)},
            [int(link.attach_packet)],
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


def received_state_from_sender(case: Case) -> None:
    """A sender states `received` of a delivery that it does not resume.

    Why it matters: the state says how far a delivery came; only a resuming sender can tell.
    Silent when: octets since the attach were not captured.
    """
    case.report("amqp10/M-RECEIVED-SND", "a sender states received of a delivery that it does not resume")


def resumed_though_the_receiver_has_no_record(case: Case, link: LinkEnd, certainty: i64) -> None:
    """A delivery is resumed that the receiver's attach does not list.

    Why it matters: the receiver has to ignore what is resumed and unknown to it; the message is lost.
    Silent when: one of the attaches was not captured, or the receiver's map is null or incomplete. Possible
    when the receiver's attach may not have been read: a sender may resume before.
    """
    case.report(
        "amqp10/M-RES-RESEND-NEW",
        "a delivery is resumed of which the receiver's attach says that it has no record",
        certainty,
        {"resume": True},
        [int(link.attach_packet)],
    )


def judge_first(case: Case, link: LinkEnd, body: Transfer) -> None:
    """The rules about the first transfer of a delivery on a link that was attached with an unsettled map."""
    own = link.listed
    theirs = link.peer_listed
    tag = body.delivery_tag
    if not body.resume:
        resumed_without_resume(case, link, body)
        return
    found = case.found
    resumed_without_being_unsettled(case, link, body)
    if case.found > found or tag is None or own is None or theirs is None or not link.whole:
        return
    if tag in link.resumed or tag not in own:
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
