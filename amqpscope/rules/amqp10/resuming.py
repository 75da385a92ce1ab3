"""The deliveries that a sender resumes when a link is attached again (transport.xml, "Resuming Deliveries").

Each of the two attaches lists the unsettled deliveries of its end. A sender resumes the deliveries of its own
list with resume=true. The receiver ignores deliveries that its own list lacks. `rules.amqp10.resumed_state`
judges the data and states of resumed deliveries.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp10 import resumed_state
from amqpscope.rules.amqp10.case import Case10, attach_read
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import Delivery, LinkEnd
from amqpscope.tracking.serial import raw
from dissectors.amqp10.performatives import Transfer
from dissectors.wire import i64

__all__ = ["RULES", "judge_continuation", "judge_first", "received_state_from_sender"]

RULES: Final = Rules("amqp10/resuming")


D_RESUME_FLAG: Final = RULES.rule(
    "D-RESUME-FLAG", "MUST", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def resumed_without_resume(case: Case10, link: LinkEnd, body: Transfer) -> None:
    """A sender sends a delivery again without resume=true, although both peers list the delivery as
    unsettled.

    Demands: If both peers list a delivery as unsettled, the sender may send the delivery again only with
    resume=true.
    Source: transport.xml section links > Resuming Deliveries
    Evidence: a delivery-tag in both unsettled maps, and a transfer without resume=true
    Why it matters: The receiver treats the delivery as a new delivery, so the receiver gets the message
    twice.
    Silent when: one of the two attach frames was not captured, or when the sender has already resumed the
    delivery. The finding is reported as possible, not as certain, when the sender may not yet have read the
    receiver's attach.
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
            D_RESUME_FLAG,
            "the sender sends a delivery again without resume=true, although both peers' attach frames "
            "list the delivery as unsettled",
            attach_read(case, link),
            {"unsettled": len(own)},
            [int(link.attachment.packet)],
        )


D_RESUME_LOCAL: Final = RULES.rule(
    "D-RESUME-LOCAL", "MUST NOT", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def resumed_without_being_unsettled(case: Case10, link: LinkEnd, body: Transfer) -> None:
    """A sender resumes a delivery that its own unsettled map does not list.

    Demands: A sender may set resume=true only for delivery-tags in its own unsettled map.
    Source: transport.xml section performatives > transfer.resume
    Evidence: the delivery-tag of the transfer, and the unsettled map in the sender's attach
    Why it matters: The receiver must ignore the delivery. A receiver that does not ignore the delivery
    confuses it with another delivery that the receiver already has. The message may be lost.
    Silent when: the attach was not captured, or when the capture lacks octets that were sent after the
    attach. The rule is also silent when the unsettled map of the attach is incomplete.
    How to mend it: Set resume=true only for delivery-tags that the unsettled map of your latest attach lists.
    Send every other message as a new delivery without resume=true.
    """
    attach = link.attach
    tag = body.delivery_tag
    if not body.resume or tag is None or attach is None or attach.incomplete_unsettled or not link.whole:
        return
    if attach.unread(7):
        return
    if not link.resumption.listed or tag not in link.resumption.listed:
        case.report(
            D_RESUME_LOCAL,
            "the sender resumes a delivery that the unsettled map in the sender's own attach does not list",
            CERTAIN,
            {"unsettled": 0 if not link.resumption.listed else len(link.resumption.listed)},
            [int(link.attachment.packet)],
        )


D_RESUME_FIRSTFRAME: Final = RULES.rule(
    "D-RESUME-FIRSTFRAME", "MUST", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def continuation_resumes(case: Case10, delivery: Delivery) -> None:
    """A sender sets resume=true on a later transfer of a delivery whose first transfer did not have
    resume=true.

    Demands: The first transfer of a resumed delivery must have resume=true. Later transfers of a resumed
    delivery may leave out resume=true.
    Source: transport.xml section performatives > transfer.resume
    Evidence: the resume flags of the transfers of a delivery
    Why it matters: The receiver has already treated the delivery as a new delivery. The receiver may process
    a message that it already has.
    Silent when: the capture lacks octets that were sent after the attach.
    How to mend it: Decide before the first transfer of a delivery whether the delivery is resumed. Set
    resume=true on the first transfer of a resumed delivery, and leave the flag unset on all transfers of a
    new delivery.
    """
    case.report(
        D_RESUME_FIRSTFRAME,
        "a later transfer of the delivery has resume=true, but the first transfer did not have resume=true",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


M_RECEIVED_SND: Final = RULES.rule(
    "M-RECEIVED-SND", "MUST NOT", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def received_state_from_sender(case: Case10) -> None:
    """A sender sends the delivery state `received` for a delivery that the sender does not resume.

    Demands: A sender may use the state `received` only on the first transfer of a resumed delivery.
    Source: messaging.xml section delivery-state > received
    Evidence: the states of the sender's transfers and dispositions
    Why it matters: A sender's state `received` gives the position at which a resumed delivery starts. For a
    delivery that is not resumed, a sender's state `received` has no meaning.
    Silent when: the capture lacks octets that were sent after the attach.
    How to mend it: Set the state `received` only on the first transfer of a resumed delivery. Leave this
    state out of all other transfers and of all dispositions that you send as sender.
    """
    case.report(
        M_RECEIVED_SND, "the sender sends the state `received` for a delivery that it does not resume"
    )


M_RES_RESEND_NEW: Final = RULES.rule(
    "M-RES-RESEND-NEW", "MUST NOT", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def resumed_though_the_receiver_has_no_record(case: Case10, link: LinkEnd, certainty: i64) -> None:
    """A sender resumes a delivery that the receiver's attach does not list.

    Demands: If the receiver's attach does not list a delivery, the sender must send the message again without
    resume=true.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tags 1, 5)
    Evidence: a delivery-tag that only the sender's unsettled map lists, and the flags of the transfer
    Why it matters: The receiver must ignore a resumed delivery that it does not know. The message is lost.
    Silent when: one of the attach frames was not captured, or when the unsettled map of the receiver is null
    or incomplete. The finding is reported as possible, not as certain, when the sender may not yet have read
    the receiver's attach. A sender may resume deliveries before it has read the receiver's attach.
    How to mend it: Look up each unsettled delivery-tag in the unsettled map of the receiver's attach. If the
    receiver's map is complete and does not list the delivery-tag, send the message again as a new delivery
    without resume=true.
    """
    case.report(
        M_RES_RESEND_NEW,
        "the sender resumes a delivery that the receiver's attach does not list, instead of sending the "
        "message again without resume=true",
        certainty,
        {"resume": True},
        [int(link.attachment.packet)],
    )


def judge_first(case: Case10, link: LinkEnd, body: Transfer) -> None:
    """Judge the first transfer of a delivery on a link that was attached with an unsettled map."""
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


def judge_continuation(case: Case10, link: LinkEnd, delivery: Delivery, body: Transfer) -> None:
    """Judge a later transfer of a delivery."""
    if link.whole and body.resume and not delivery.resumed:
        continuation_resumes(case, delivery)
