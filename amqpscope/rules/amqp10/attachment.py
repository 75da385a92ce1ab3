"""Attaching: which handle, which role, what a refusal looks like, what a re-attach may say (transport.xml,
"Establishing or Resuming a Link")."""

from amqpscope.limits import MAX_HANDLES_SEARCHED, REFUSAL_TIME
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.reaction import offend
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.pending_error import END
from amqpscope.tracking.amqp10.session import SessionEnd
from dissectors.amqp10.performatives import Attach, Detach, Flow
from dissectors.wire import i64

__all__ = ["input_for_a_failed_link", "judge_attach", "judge_detach", "judge_first_transfer", "judge_flow"]

_UNSETTLED = 7
_SOURCE = 5
_TARGET = 6


def handle_that_is_not_the_lowest(case: Case, session: SessionEnd, handle: int, lowest: i64) -> None:
    """A link is attached on a handle although a lower one is free.

    Why it matters: receivers keep tables as large as the highest handle; the lowest free one is recommended.
    Silent when: octets since the session's begin were not captured, it was told of the session before, or
    more than 256 handles are in use. A handle whose detach the other side has not answered counts as in use.
    """
    case.report(
        "amqp10/L-HANDLE-LOWEST",
        f"handle {handle} is used, {lowest} is free",
        CERTAIN,
        {"handle": handle, "lowest_free": int(lowest)},
    )


def handle_not_free_for_both(case: Case, session: SessionEnd, handle: int, before: LinkEnd) -> None:
    """A handle is given to another link before the other side has detached the one that had it.

    Why it matters: one passage of the text frees a handle when both sides have closed the link; a peer that
    goes by it takes the new link's frames for the old one's.
    Silent when: octets since the old link's attach were not captured.
    Only possible because: By another passage the handle is free from its own detach on.
    """
    case.report(
        "amqp10/L-HANDLE-REUSE",
        f"handle {handle} is given to another link, the detach of the one before is not answered yet",
        POSSIBLE,
        {"handle": handle, "link_state": before.state},
        [int(before.attach_packet)],
    )


def _judge_handle(case: Case, session: SessionEnd, body: Attach) -> None:
    handle = body.handle
    if handle is None or not session.whole or case.found > 0:
        return
    before = session.freed.get(handle)
    if before is not None and before.name != body.name and before.whole:
        handle_not_free_for_both(case, session, handle, before)
    if not session.high_told and len(session.handles) + len(session.freed) <= MAX_HANDLES_SEARCHED:
        lowest = session.lowest_handle()
        if lowest < handle:
            session.high_told = True
            handle_that_is_not_the_lowest(case, session, handle, lowest)


def _remember_attach_in_the_same_role(case: Case, session: SessionEnd, body: Attach) -> None:
    """An attach in the role of one that waits for its answer: `ending` judges it."""
    if body.name is None or body.role is None or (body.name, not body.role) in session.links:
        return
    asked = session.links.get((body.name, body.role))
    if (
        asked is not None
        and asked.state == "ATTACH_RCVD"
        and asked.handle == UNKNOWN
        and asked.attach is None
    ):
        if asked.misanswered is None:
            asked.misanswered = FrameRef.of(case.record)


def resumed_without_unsettled_map(case: Case, link: LinkEnd) -> None:
    """A link that the other side has detached with an error is attached again without unsettled map.

    Why it matters: that end of the link is destroyed, so the link can only be resumed; without the map the
    other side takes the attach for one that was on its way.
    Silent when: the detach closed the link, or may not have been received. Possible when it may not have been
    read.
    """
    case.report(
        "amqp10/L-ERR-RESUME-UNSETTLED",
        "the link is attached again without unsettled map, the other side has detached it with an error",
        case.me.knowledge.certainty(link.peer_detach_end),
        {"link_state": link.state},
    )


def _judge_again(case: Case, session: SessionEnd, body: Attach) -> None:
    """The rules about an attach without unsettled map of a link that was attached on the session before."""
    if body.name is None or body.role is None or body.unsettled is not None:
        return
    if body.unread(_UNSETTLED):
        return
    link = session.links.get((body.name, not body.role))
    if link is not None and link.attach is not None and link.handle == UNKNOWN and link.whole:
        if link.peer_failed and not link.peer_closed and not link.closed:
            resumed_without_unsettled_map(case, link)
    theirs = case.peer.sessions.get(int(session.peer_channel))
    if theirs is None or theirs.peer_channel != session.channel:
        return
    other = theirs.links.get((body.name, body.role))
    if other is not None and other.failed and not other.closed and other.handle == UNKNOWN and other.whole:
        offend(
            case,
            "amqp10/L-ERR-PIPELINED",
            END,
            "amqp:session:errant-link",
            case.record.frame.channel,
            body.handle or 0,
        )


def judge_attach(case: Case, session: SessionEnd, body: Attach) -> None:
    """The rules about attach."""
    _judge_handle(case, session, body)
    _remember_attach_in_the_same_role(case, session, body)
    _judge_again(case, session, body)


def refused_with_a_terminus(case: Case, link: LinkEnd) -> None:
    """A peer refuses a link and names its own terminus all the same.

    Why it matters: without the terminus the other side knows at once that there is none; with it, it may
    begin to use the link.
    Silent when: something else was said between the attach that answers and the detach, or more than a second
    passed.
    Only possible because: The link may have failed in between.
    """
    case.report(
        "amqp10/L-REFUSE-NULL",
        f"the link is refused, but the attach that answers has a {'source' if link.sender else 'target'}",
        POSSIBLE,
        {"link_state": link.state},
        [int(link.attach_packet)],
    )


def judge_detach(case: Case, session: SessionEnd, body: Detach) -> None:
    """The rules about detach."""
    me = case.me
    if body.error is None or not body.closed or body.handle is None or not me.whole:
        return
    link = session.handles.get(body.handle)
    if link is None or not link.answers or me.frames != link.attach_frame + 1:
        return
    if case.record.time - me.last_time < REFUSAL_TIME and not _without_terminus(link):
        case.link = link
        refused_with_a_terminus(case, link)


def _without_terminus(link: LinkEnd) -> bool:
    """Whether an end attached without the terminus that is its own."""
    attach = link.attach
    if attach is None:
        return True
    field = _SOURCE if link.sender else _TARGET
    if attach.unread(field):
        return False
    return (attach.source if link.sender else attach.target) is None


def credit_on_a_refused_link(case: Case, link: LinkEnd) -> None:
    """A receiver that answered an attach without target, and so refused the link, grants credit instead of
    detaching it.

    Why it matters: the sender cannot know whether the link is refused or not.
    Silent when: it attached the link of itself, or the attach that it answers was not captured.
    Only possible because: The detach may come at once behind it.
    """
    case.report(
        "amqp10/L-REFUSE-DETACH",
        f"link-credit is granted, but the attach that answers (packet {link.attach_packet}) has no target: "
        "a detach is due",
        POSSIBLE,
        {"link_state": link.state},
        [int(link.attach_packet)],
    )


def judge_flow(case: Case, link: LinkEnd, body: Flow) -> None:
    """The rules about a flow for a link that is not, or not any more, there."""
    if link.peer_failed and link.whole:
        input_for_a_failed_link(case, link)
    if not link.sender and link.answers and body.link_credit and not link.refusal_told:
        if link.whole and _without_terminus(link):
            link.refusal_told = True
            credit_on_a_refused_link(case, link)


def input_for_a_failed_link(case: Case, link: LinkEnd) -> None:
    """A frame is sent for a link that the other side has detached with an error.

    Why it matters: that end of the link is destroyed; the other side has to end the session with errant-link.
    Silent when: the detach may not have been received. Possible when it may not have been read.
    """
    case.report(
        "amqp10/L-ERRANT-INPUT",
        f"{case.record.frame.name} is sent for a link that the other side has detached with an error",
        case.me.knowledge.certainty(link.peer_detach_end),
        {"link_state": link.state},
    )


def transfer_without_target(case: Case, link: LinkEnd, certainty: i64) -> None:
    """A transfer is sent on a link whose receiver attached it without a target.

    Why it matters: the link is refused; there is nothing that the message could go to.
    Silent when: the receiver's attach was not captured, or may not have been received. Possible when it may
    not have been read, or when it was the receiver who asked for the link: its credit says that it wants the
    messages. Of one attach only the first transfer is told.
    Possible because: It is no fault if the {peer} had not yet read what the {other} sent before: that had
    reached its host, but nothing it sent shows that it had read it. Nor if the {other} asked for the link: it
    grants credit.
    """
    case.report(
        "amqp10/L-TGT-NULL",
        "a transfer is sent on a link that the receiver attached without a target",
        certainty,
        {"link_state": link.state},
    )


def new_delivery_before_the_map_is_complete(case: Case, link: LinkEnd) -> None:
    """A sender that could not list all that it holds unsettled sends a new delivery.

    Why it matters: first both sides work off what is listed, and resume the link again, until the maps are
    complete.
    Silent when: the sender's attach was not captured, or the delivery is resumed. Of one attach only the
    first delivery is told.
    """
    case.report(
        "amqp10/L-INCOMPLETE-SUSPEND",
        "a new delivery is sent, the sender's own attach has incomplete-unsettled",
        CERTAIN,
        {"link_state": link.state},
        [int(link.attach_packet)],
    )


def judge_first_transfer(case: Case, link: LinkEnd, resumes: bool, certainty: i64) -> None:
    """The rules about the first transfer since the attach. certainty: that the receiver's attach was read."""
    theirs = link.peer_attach
    if theirs is not None and link.whole and theirs.target is None:
        if not theirs.unread(_TARGET):
            transfer_without_target(case, link, POSSIBLE if link.answers else certainty)
    own = link.attach
    if own is not None and own.incomplete_unsettled and not resumes:
        if theirs is None or not theirs.incomplete_unsettled:
            new_delivery_before_the_map_is_complete(case, link)


RULES = {
    "amqp10/L-HANDLE-LOWEST": handle_that_is_not_the_lowest,
    "amqp10/L-HANDLE-REUSE": handle_not_free_for_both,
    "amqp10/L-ERR-RESUME-UNSETTLED": resumed_without_unsettled_map,
    "amqp10/L-REFUSE-NULL": refused_with_a_terminus,
    "amqp10/L-REFUSE-DETACH": credit_on_a_refused_link,
    "amqp10/L-ERRANT-INPUT": input_for_a_failed_link,
    "amqp10/L-TGT-NULL": transfer_without_target,
    "amqp10/L-INCOMPLETE-SUSPEND": new_delivery_before_the_map_is_complete,
}
