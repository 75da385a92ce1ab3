"""Attaching: handles, roles, refused links and links that are attached again (transport.xml,
"Establishing or Resuming a Link")."""

from typing import Final

from amqpscope.limits import MAX_HANDLES_SEARCHED, REFUSAL_TIME
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.due_answer import L_ERR_PIPELINED, offend
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.pending_error import END
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.states import ATTACH_RCVD
from dissectors.amqp10.performatives import Attach, Detach, Flow
from dissectors.wire import i64

__all__ = ["input_for_a_failed_link", "judge_attach", "judge_detach", "judge_first_transfer", "judge_flow"]

RULES: Final = Rules("amqp10/attachment")


_UNSETTLED: Final = 7
_SOURCE: Final = 5
_TARGET: Final = 6


L_HANDLE_LOWEST: Final = RULES.rule("L-HANDLE-LOWEST", "SHOULD", "wording")


def handle_that_is_not_the_lowest(case: Case10, handle: int, lowest: i64) -> None:
    """A peer attaches a link on a handle although a lower handle is free.

    Demands: A peer should attach each link on the lowest handle that is free.
    Source: transport.xml section performatives > attach.handle
    Evidence: the handle of the attach, and the handles that links of the same peer already use
    Why it matters: A receiver keeps a table with an entry for each handle up to the highest, so high handles
    cost memory. The specification recommends the lowest available handle.
    Silent when: the capture lacks octets that were sent after the session's begin, or when the rule has
    already reported a finding for the session. The rule is also silent when the peer uses more than 256
    handles. A handle counts as in use until the other peer has answered the detach of the link with this
    handle.
    How to mend it: For each attach, allocate the lowest handle that is free on the session. Treat a handle as
    free again only when you have sent the detach and the other peer has answered this detach.
    """
    case.report(
        L_HANDLE_LOWEST,
        f"the attach uses handle {handle} instead of handle {lowest}, which is the lowest free handle",
        CERTAIN,
        {"handle": handle, "lowest_free": int(lowest)},
    )


L_HANDLE_REUSE: Final = RULES.rule(
    "L-HANDLE-REUSE",
    "MAY-limits",
    "definition",
    note="Two passages of the specification disagree.",
    usual_answer="amqp:session:handle-in-use",
)


def handle_not_free_for_both(case: Case10, handle: int, before: LinkEnd) -> None:
    """A peer uses a handle for a new link before the other peer has detached the old link with this handle.

    Demands: A peer may use a handle for a new link only after both peers have detached the old link. The
    specification's text about detach disagrees: a peer may use a handle again as soon as this peer itself has
    detached the old link.
    Source: transport.xml section definitions > handle; transport.xml section performatives > detach
    Evidence: the order of both peers' detaches, and the next attach with the same handle
    Why it matters: According to one passage of the specification, a handle becomes free only when both peers
    have closed the link. A receiver that waits for the detaches of both peers mistakes frames of the new link
    for frames of the old link.
    Silent when: the capture lacks octets that were sent after the old link's attach.
    Only possible because: According to another passage of the specification, a handle becomes free as
    soon as the peer that uses the handle has sent its detach.
    How to mend it: After you send a detach, keep the handle reserved until the other peer's detach has
    arrived. Do not use the handle for another attach before the other peer's detach arrives.
    """
    case.report(
        L_HANDLE_REUSE,
        f"the peer uses handle {handle} for a new link, but the other peer has not answered the detach of "
        "the old link yet",
        POSSIBLE,
        {"handle": handle, "link_state": before.state},
        [int(before.attachment.packet)],
    )


def _judge_handle(case: Case10, session: SessionEnd, body: Attach) -> None:
    handle = body.handle
    if handle is None or not session.whole or case.found > 0:
        return
    before = session.freed.get(handle)
    if before is not None and before.name != body.name and before.whole:
        handle_not_free_for_both(case, handle, before)
    if not session.high_reported and len(session.handles) + len(session.freed) <= MAX_HANDLES_SEARCHED:
        lowest = session.lowest_handle()
        if lowest < handle:
            session.high_reported = True
            handle_that_is_not_the_lowest(case, handle, lowest)


def _remember_attach_in_the_same_role(case: Case10, session: SessionEnd, body: Attach) -> None:
    """Whether an attach has the role of an attach that waits for its answer: `ending` judges it."""
    if body.name is None or body.role is None or (body.name, not body.role) in session.links:
        return
    asked = session.links.get((body.name, body.role))
    if asked is not None and asked.state == ATTACH_RCVD and asked.handle == UNKNOWN and asked.attach is None:
        if asked.attachment.misanswered is None:
            asked.attachment.misanswered = FrameRef.of(case.record)


L_ERR_RESUME_UNSETTLED: Final = RULES.rule(
    "L-ERR-RESUME-UNSETTLED", "MUST", "keyword", answer="amqp:session:errant-link"
)


def resumed_without_unsettled_map(case: Case10, link: LinkEnd) -> None:
    """A peer attaches a link again without an unsettled map, although the other peer has detached this link
    with an error.

    Demands: After a detach with an error, the attach that resumes the link must carry an unsettled map that
    is not null.
    Source: transport.xml section links > Link Errors
    Evidence: a detach with an error, and then an attach with the same link name and a null unsettled map
    Why it matters: An error destroys the link endpoint, so a new attach can only resume the link. Without the
    unsettled map, the other peer assumes that the attach was sent before the detach arrived.
    Silent when: the detach closed the link, or when the detach may not yet have reached the peer. The finding
    is reported as possible, not as certain, when the peer may not yet have read the detach.
    How to mend it: After a detach with an error, send a resuming attach with a non-null unsettled map. If no
    deliveries are unsettled, send an empty unsettled map.
    """
    case.report(
        L_ERR_RESUME_UNSETTLED,
        "the new attach has no unsettled map, but must have one, because the other peer detached the link "
        "with an error",
        case.me.knowledge.certainty(link.attachment.peer_detach_end),
        {"link_state": link.state},
    )


def _judge_again(case: Case10, session: SessionEnd, body: Attach) -> None:
    """Judge an attach without an unsettled map if the link was already attached on the session."""
    if body.name is None or body.role is None or body.unsettled is not None:
        return
    if body.unread(_UNSETTLED):
        return
    link = session.links.get((body.name, not body.role))
    if link is not None and link.attach is not None and link.handle == UNKNOWN and link.whole:
        if link.attachment.peer_failed and not link.attachment.peer_closed and not link.attachment.closed:
            resumed_without_unsettled_map(case, link)
    theirs = case.peer.sessions.get(int(session.peer_channel))
    if theirs is None or theirs.peer_channel != session.channel:
        return
    other = theirs.links.get((body.name, body.role))
    if (
        other is not None
        and other.attachment.failed
        and not other.attachment.closed
        and other.handle == UNKNOWN
        and other.whole
    ):
        offend(
            case,
            L_ERR_PIPELINED,
            END,
            "amqp:session:errant-link",
            case.record.frame.channel,
            body.handle or 0,
        )


def judge_attach(case: Case10, session: SessionEnd, body: Attach) -> None:
    """Judge an attach."""
    _judge_handle(case, session, body)
    _remember_attach_in_the_same_role(case, session, body)
    _judge_again(case, session, body)


L_REFUSE_NULL: Final = RULES.rule(
    "L-REFUSE-NULL", "MUST", "definition", warning="A capture can suggest this fault but never prove it."
)


def refused_with_a_terminus(case: Case10, link: LinkEnd) -> None:
    """A peer refuses a link, but does not set its own terminus to null in its answering attach. A sender's
    own terminus is its source, and a receiver's own terminus is its target.

    Demands: A peer that refuses a link must answer with an attach whose own terminus is null. A sender's own
    terminus is the source, and a receiver's own terminus is the target.
    Source: transport.xml section links > Establishing or Resuming a Link (Refusing a Link)
    Evidence: an answering attach, and a detach that the same peer sends right afterwards
    Why it matters: A null terminus shows the other peer at once that the link is refused. If the terminus is
    not null, the other peer may start to use the link before the detach arrives.
    Silent when: the refusing peer sent another frame between the answering attach and the detach. The rule is
    also silent when more than one second passed between the answering attach and the detach.
    Only possible because: The peer may have accepted the attach first, and the link may have failed
    afterwards.
    How to mend it: When you refuse a link, set your own terminus to null in the answering attach. Your own
    terminus is the source if you are the sender, and the target if you are the receiver. Directly after the
    answering attach, send a detach with closed=true and the error.
    """
    terminus = "source" if link.sender else "target"
    case.report(
        L_REFUSE_NULL,
        f"the peer refuses the link, but its answering attach has a {terminus} instead of a null {terminus}",
        POSSIBLE,
        {"link_state": link.state},
        [int(link.attachment.packet)],
    )


def judge_detach(case: Case10, session: SessionEnd, body: Detach) -> None:
    """Judge a detach."""
    me = case.me
    if body.error is None or not body.closed or body.handle is None or not me.whole:
        return
    link = session.handles.get(body.handle)
    if link is None or not link.attachment.answers or me.stream.frames != link.attachment.frame + 1:
        return
    if case.record.time - me.stream.last_time < REFUSAL_TIME and not _without_terminus(link):
        case.link = link
        refused_with_a_terminus(case, link)


def _without_terminus(link: LinkEnd) -> bool:
    """Whether a peer attached its end of the link without its own terminus."""
    attach = link.attach
    if attach is None:
        return True
    field = _SOURCE if link.sender else _TARGET
    if attach.unread(field):
        return False
    return (attach.source if link.sender else attach.target) is None


L_REFUSE_DETACH: Final = RULES.rule("L-REFUSE-DETACH", "MUST", "keyword", usual_answer="amqp:not-found")


def credit_on_a_refused_link(case: Case10, link: LinkEnd) -> None:
    """A receiver refuses a link by an answering attach without a target, and then grants link-credit instead
    of detaching the link.

    Demands: A peer that sends an attach in which its own terminus is null must detach the link at once. A
    receiver's own terminus is the target.
    Source: transport.xml section links > Establishing or Resuming a Link
    Evidence: a receiver's attach without a target, and the frames between that attach and the detach
    Why it matters: The sender cannot know whether the link is refused or usable. A message that is sent on a
    refused link has no target.
    Silent when: the receiver's attach does not answer an attach of the sender, or when the sender's attach
    was not captured.
    Only possible because: The receiver may send the detach immediately after the flow that grants
    link-credit.
    How to mend it: If the link is refused, send detach directly after the answering attach and grant no
    link-credit. If the link is accepted, put the target into the answering attach.
    """
    case.report(
        L_REFUSE_DETACH,
        f"the receiver grants link-credit, but its answering attach (packet {link.attachment.packet}) "
        "has no target and so refuses the link; the receiver has to detach the link",
        POSSIBLE,
        {"link_state": link.state},
        [int(link.attachment.packet)],
    )


def judge_flow(case: Case10, link: LinkEnd, body: Flow) -> None:
    """Judge a flow for a link that does not exist or no longer exists."""
    if link.attachment.peer_failed and link.whole:
        input_for_a_failed_link(case, link)
    if (
        not link.sender
        and link.attachment.answers
        and body.link_credit
        and not link.attachment.refusal_reported
    ):
        if link.whole and _without_terminus(link):
            link.attachment.refusal_reported = True
            credit_on_a_refused_link(case, link)


L_ERRANT_INPUT: Final = RULES.rule(
    "L-ERRANT-INPUT", "MUST NOT", "definition", answer="amqp:session:errant-link"
)


def input_for_a_failed_link(case: Case10, link: LinkEnd) -> None:
    """A peer sends a frame other than detach for a link that the other peer has detached with an error.

    Demands: After one peer has detached a link with an error, the other peer must not send anything but
    detach for the link. The rule also applies to frames that name a delivery of the link by its delivery-id.
    Source: transport.xml section links > Link Errors
    Evidence: a detach with an error, and a later flow, transfer or disposition that the other peer sends for
    the same link
    Why it matters: An error destroys the link endpoint. The other peer must end the session with
    amqp:session:errant-link. The end of the session also ends all other links of the session.
    Silent when: the detach may not yet have reached the peer. The finding is reported as possible, not as
    certain, when the peer may not yet have read the detach.
    How to mend it: On receiving a detach with an error, stop sending transfer, flow and disposition for this
    link. Send only the answering detach, and discard queued frames of the link.
    """
    case.report(
        L_ERRANT_INPUT,
        f"the peer sends {case.record.frame.name} for a link that the other peer has detached with an "
        "error; the peer may send only a detach for this link",
        case.me.knowledge.certainty(link.attachment.peer_detach_end),
        {"link_state": link.state},
    )


L_TGT_NULL: Final = RULES.rule(
    "L-TGT-NULL", "MUST NOT", "definition", by="sender", usual_answer="amqp:not-allowed"
)


def transfer_without_target(case: Case10, link: LinkEnd, certainty: i64) -> None:
    """A sender sends a transfer on a link that the receiver attached without a target.

    Demands: A sender must not send a transfer on a link whose receiver attached without a target.
    Source: transport.xml section performatives > attach.target
    Evidence: a receiver's attach with a null target, and a later transfer on that link
    Why it matters: The receiver has refused the link. No node exists that could take the message, so the
    message is lost.
    Silent when: the receiver's attach was not captured or may not yet have reached the sender. After each
    attach, the rule reports only the first transfer. The finding is reported as possible, not as certain,
    when the sender may not yet have read the receiver's attach. The finding is reported as possible, not as
    certain, when the receiver itself asked for the link and grants link-credit.
    Possible because: The transfer is no fault if the {peer} had not yet read the attach of the {other}. The
    attach had reached the host of the {peer}, but no frame of the {peer} proves that the {peer} had read it.
    The transfer is also no fault if the {other} asked for the link, because the {other} asks for messages
    when it grants link-credit.
    How to mend it: Check the target of the receiver's attach before the first transfer. If the target is
    null, treat the link as refused, wait for the receiver's detach, and report the failure to the
    application.
    """
    case.report(
        L_TGT_NULL,
        "the sender sends a transfer on a link that the receiver attached without a target",
        certainty,
        {"link_state": link.state},
    )


L_INCOMPLETE_SUSPEND: Final = RULES.rule(
    "L-INCOMPLETE-SUSPEND", "MUST", "lower-case", usual_answer="amqp:not-allowed"
)


def new_delivery_before_the_map_is_complete(case: Case10, link: LinkEnd) -> None:
    """A sender starts a new delivery although the sender's own attach has incomplete-unsettled=true, which
    means that the unsettled map is incomplete.

    Demands: After an attach with an incomplete unsettled map, the peers must first settle the deliveries that
    the map lists, suspend the link and resume the link. Only then may the sender start a new delivery.
    Source: transport.xml section links > Resuming Deliveries
    Evidence: an attach with incomplete-unsettled=true, and the transfers, detaches and attaches after this
    attach
    Why it matters: Both peers must settle the deliveries in their unsettled maps and resume the link. Both
    peers must repeat these steps until the unsettled maps are complete. If new deliveries start earlier, the
    unsettled maps do not become complete, and the state of unlisted deliveries stays unknown.
    Silent when: the sender's attach was not captured, or when the transfer resumes a delivery. After each
    attach, the rule reports only the first new delivery.
    How to mend it: After an attach with incomplete-unsettled=true, send only transfers with resume=true.
    Settle the deliveries in the unsettled maps, detach the link and resume the link. Repeat these steps until
    incomplete-unsettled is false in the attaches of both peers.
    """
    case.report(
        L_INCOMPLETE_SUSPEND,
        "the sender starts a new delivery, but the sender's own attach has incomplete-unsettled=true, so "
        "the link must be suspended and resumed first",
        CERTAIN,
        {"link_state": link.state},
        [int(link.attachment.packet)],
    )


def judge_first_transfer(case: Case10, link: LinkEnd, resumes: bool, certainty: i64) -> None:
    """Judge the first transfer after the attach. certainty: of the receiver's attach having been read."""
    theirs = link.peer_attach
    if theirs is not None and link.whole and theirs.target is None:
        if not theirs.unread(_TARGET):
            transfer_without_target(case, link, POSSIBLE if link.attachment.answers else certainty)
    own = link.attach
    if own is not None and own.incomplete_unsettled and not resumes:
        if theirs is None or not theirs.incomplete_unsettled:
            new_delivery_before_the_map_is_complete(case, link)
