"""How a peer answers what the other one did wrong: the rules that say which error is due.

An answer is owed from when the peer can have received the offence. That it is not given is certain when the
peer shows that it has processed the offence, and says in the same frame or behind it what it would say had
there been none. What it leaves unsaid at the end of a connection proves nothing.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.limits import ANSWER_PATIENCE, MAX_OFFENCES
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.rules.amqp10.case import Case
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.pending_error import CLOSE, DETACH, END, PendingErrorResponse
from amqpscope.tracking.amqp10.session import SessionEnd
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)
from dissectors.wire import i64

__all__ = ["judge_answers", "offend", "owe_for"]


def no_close_for_an_oversized_frame(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A peer got a frame larger than its max-frame-size and did not close with framing-error.

    Why it matters: the sender never learns that it sends too much, and the next receiver may not be as kind.
    Silent when: it may not have received the frame, or nothing was said since. Possible when a minute passed
    without a proof that it read it, or when it ended the session instead.
    """
    _tell(case, "amqp10/C-MAXFRAME-REACT", pending_error, certainty)


def no_close_for_a_channel_out_of_range(
    case: Case, pending_error: PendingErrorResponse, certainty: i64
) -> None:
    """A peer got a frame on a channel above its channel-max and did not close with framing-error.

    Why it matters: the sender never learns of the limit.
    Silent when: it may not have received the frame, or nothing was said since. Possible when a minute passed
    without a proof that it read it, or when it ended the session instead.
    """
    _tell(case, "amqp10/C-CHMAX-REACT", pending_error, certainty)


def no_close_for_a_handle_out_of_range(
    case: Case, pending_error: PendingErrorResponse, certainty: i64
) -> None:
    """A peer got an attach with a handle above its handle-max and did not close with framing-error.

    Why it matters: the sender never learns of the limit.
    Silent when: it may not have received the attach, or nothing was said since. Possible when a minute passed
    without a proof that it read it, or when it ended the session instead.
    """
    _tell(case, "amqp10/S-HANDLEMAX-REACT", pending_error, certainty)


def no_close_for_a_handle_in_use(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A peer got an attach on a handle in use and did not close with handle-in-use.

    Why it matters: from then on the two may mean different links by one handle.
    Silent when: it may not have received the attach, or nothing was said since. Possible when a minute passed
    without a proof that it read it, or when it ended the session instead, as the error's name has it.
    """
    _tell(case, "amqp10/L-HANDLE-INUSE-REACT", pending_error, certainty)


def no_end_for_a_flow_on_an_unattached_handle(
    case: Case, pending_error: PendingErrorResponse, certainty: i64
) -> None:
    """A peer got a flow for a handle without a link and did not end the session with unattached-handle.

    Why it matters: the credit that it carries is lost, and its sender waits.
    Silent when: it may not have received the flow, or nothing was said on the session since. Possible when a
    minute passed without a proof that it read it, or when it ended the session without an error.
    """
    _tell(case, "amqp10/L-UNATTACHED-FLOW-REACT", pending_error, certainty)


def no_end_for_what_no_session_can_process(
    case: Case, pending_error: PendingErrorResponse, certainty: i64
) -> None:
    """A peer got a transfer or detach for a handle without a link and did not end the session with an error.

    Why it matters: there is no link to which it could belong; its sender takes it for delivered.
    Silent when: it may not have received the frame, or nothing was said on the session since. Possible when a
    minute passed without a proof that it read it, or when it ended the session without an error.
    """
    _tell(case, "amqp10/S-ERR-END", pending_error, certainty)


def no_end_for_an_errant_link(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A peer that detached a link with an error got more for it, and did not end the session for that.

    Why it matters: what was sent to the link that is gone would be lost in silence.
    Silent when: it may not have received it, or nothing was said on the session since.
    Only possible because: Hardly any peer does this, for frames that were on their way.
    """
    _tell(case, "amqp10/L-ERRANT-REACT", pending_error, POSSIBLE)


def no_end_for_a_pipelined_attach(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A peer that detached a link with an error got an attach without unsettled map, and did not end the
    session with errant-link.

    Why it matters: the other side takes the link for the one before, which is gone with what it held.
    Silent when: it may not have received the attach, or nothing was said on the session since. Possible when
    a minute passed without a proof that it read it, or when it ended the session without an error.
    """
    _tell(case, "amqp10/L-ERR-PIPELINED", pending_error, certainty)


def no_detach_for_a_message_too_large(
    case: Case, pending_error: PendingErrorResponse, certainty: i64
) -> None:
    """A receiver got a message above its max-message-size and did not detach with message-size-exceeded.

    Why it matters: the sender never learns of the limit.
    Silent when: it may not have received the message, or nothing was said of it or for the link since.
    Possible when it detached the link without an error.
    """
    _tell(case, "amqp10/L-MAXMSG-REACT", pending_error, certainty)


def no_detach_for_a_new_delivery(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A receiver that sent an incomplete unsettled map got a new delivery, and did not detach with an error.

    Why it matters: it cannot tell whether it has the message already.
    Silent when: it may not have received the transfer, or nothing was said of it or for the link since.
    Possible when it detached the link without an error.
    """
    _tell(case, "amqp10/L-INCOMPLETE-REACT", pending_error, certainty)


def detach_without_an_error(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A receiver got more deliveries than it granted credit for, and detached the link without an error.

    Why it matters: the sender does not learn why the link is gone.
    Silent when: it may not have received them.
    Only possible because: It may have detached for another reason.
    """
    _tell(case, "amqp10/L-ERR-DETACH", pending_error, POSSIBLE)


def detach_with_another_error(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A receiver lowered the credit and detached the link for another error than transfer-limit-exceeded when
    more came.

    Why it matters: what was on its way when the credit was lowered is no fault; the sender has to be told.
    Silent when: the link was not detached, or with that condition.
    Only possible because: It may have another reason.
    """
    _tell(case, "amqp10/L-REDUCE-REACT", pending_error, POSSIBLE)


def link_not_given_up_when_stolen(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A link was attached again elsewhere, and its first attachment is not detached with amqp:link:stolen.

    Why it matters: a link is attached once; two attachments share its state.
    Silent when: the peer may not have received the second attach, or says nothing for the first attachment
    since. Possible when it detached that without the error.
    """
    _tell(case, "amqp10/L-STEAL", pending_error, certainty)


def close_without_a_reason(case: Case, pending_error: PendingErrorResponse) -> None:
    """A peer closes the connection right after a fault that asks for it, and does not say why.

    Why it matters: the other side does not learn what it did wrong.
    Silent when: it answers a close, or may not have received the fault.
    Only possible because: It may close for another reason, and then needs no error.
    """
    case.report(
        "amqp10/C-CLOSE-REASON",
        f"close has no error, {pending_error.condition} is due for packet {pending_error.packet}",
        POSSIBLE,
        {"connection_state": case.me.state},
        [int(pending_error.packet)],
    )


def _tell(case: Case, rule: str, pending_error: PendingErrorResponse, certainty: i64) -> None:
    case.report(
        rule,
        f"{case.record.frame.name} is sent, {pending_error.due} with {pending_error.condition} is due for "
        f"packet {pending_error.packet}",
        certainty,
        {"due": pending_error.due, "condition": pending_error.condition},
        [int(pending_error.packet)],
    )


RULES: Final[dict[str, Callable[..., None]]] = {
    "amqp10/C-MAXFRAME-REACT": no_close_for_an_oversized_frame,
    "amqp10/C-CHMAX-REACT": no_close_for_a_channel_out_of_range,
    "amqp10/S-HANDLEMAX-REACT": no_close_for_a_handle_out_of_range,
    "amqp10/L-HANDLE-INUSE-REACT": no_close_for_a_handle_in_use,
    "amqp10/L-UNATTACHED-FLOW-REACT": no_end_for_a_flow_on_an_unattached_handle,
    "amqp10/S-ERR-END": no_end_for_what_no_session_can_process,
    "amqp10/L-ERRANT-REACT": no_end_for_an_errant_link,
    "amqp10/L-ERR-PIPELINED": no_end_for_a_pipelined_attach,
    "amqp10/L-MAXMSG-REACT": no_detach_for_a_message_too_large,
    "amqp10/L-INCOMPLETE-REACT": no_detach_for_a_new_delivery,
    "amqp10/L-ERR-DETACH": detach_without_an_error,
    "amqp10/L-REDUCE-REACT": detach_with_another_error,
    "amqp10/L-STEAL": link_not_given_up_when_stolen,
    "amqp10/C-CLOSE-REASON": close_without_a_reason,
}

_FRAMING = "amqp:connection:framing-error"
_UNATTACHED = "amqp:session:unattached-handle"
_LIMIT = "amqp:link:transfer-limit-exceeded"

# What is due for which rule broken for certain: the rule of the answer, the answer, its condition.
_DUE: Final[dict[str, tuple[str, str, str]]] = {
    "amqp10/C-MAXFRAME": ("amqp10/C-MAXFRAME-REACT", CLOSE, _FRAMING),
    "amqp10/C-CHMAX": ("amqp10/C-CHMAX-REACT", CLOSE, _FRAMING),
    "amqp10/S-HANDLEMAX": ("amqp10/S-HANDLEMAX-REACT", CLOSE, _FRAMING),
    "amqp10/L-HANDLE-INUSE": ("amqp10/L-HANDLE-INUSE-REACT", CLOSE, "amqp:session:handle-in-use"),
    "amqp10/L-UNATTACHED-FLOW": ("amqp10/L-UNATTACHED-FLOW-REACT", END, _UNATTACHED),
    "amqp10/L-UNATTACHED-TRANSFER": ("amqp10/S-ERR-END", END, _UNATTACHED),
    "amqp10/L-UNATTACHED-DETACH": ("amqp10/S-ERR-END", END, _UNATTACHED),
    "amqp10/L-ERRANT-INPUT": ("amqp10/L-ERRANT-REACT", END, "amqp:session:errant-link"),
    "amqp10/L-MAXMSG": ("amqp10/L-MAXMSG-REACT", DETACH, "amqp:link:message-size-exceeded"),
    "amqp10/L-INCOMPLETE-NONEW": ("amqp10/L-INCOMPLETE-REACT", DETACH, "an error"),
    "amqp10/L-CREDIT": ("amqp10/L-ERR-DETACH", DETACH, _LIMIT),
    "amqp10/L-CREDIT-INIT": ("amqp10/L-ERR-DETACH", DETACH, _LIMIT),
}

# These may be processed nevertheless: only a wrong answer counts.
_TOLERABLE: Final = ("amqp10/L-ERR-DETACH", "amqp10/L-REDUCE-REACT")


def owe_for(case: Case, finding: Finding) -> None:
    """The frame before the judge is found to break a rule: what the other peer owes for it, if anything."""
    due = _DUE.get(finding.rule)
    if due is None or finding.spot.offset != case.record.frame.offset:
        return
    rule, answer, condition = due
    if not finding.certain:
        if finding.rule == "amqp10/L-CREDIT":
            rule = "amqp10/L-REDUCE-REACT"
        elif finding.rule != "amqp10/L-ERRANT-INPUT":
            return
    body = case.record.frame.body
    handle: i64 = -1
    if isinstance(body, (Transfer, Flow, Detach, Attach)) and body.handle is not None:
        handle = body.handle
    offend(case, rule, answer, condition, case.record.frame.channel, handle)


def offend(case: Case, rule: str, due: str, condition: str, channel: i64, handle: i64) -> None:
    """For the frame before the judge the other peer owes an answer, for its sender's channel and handle."""
    record = case.record
    pending_errors = case.peer.pending_errors
    if len(pending_errors) >= MAX_OFFENCES:
        return
    end = record.frame.offset + record.frame.size
    pending_error = PendingErrorResponse(rule, due, condition, end, record.packet, record.time)
    pending_error.channel = channel
    pending_error.handle = handle
    if isinstance(record.frame.body, Transfer):
        pending_error.delivery = case.delivery_id()
    pending_error.tolerable = rule in _TOLERABLE
    pending_errors.append(pending_error)


def judge_answers(case: Case) -> None:
    """The rules about a frame of a peer that may owe answers. Called while there are any."""
    me = case.me
    frame = case.record.frame
    if frame.kind != "amqp" or frame.body is None or not me.whole or not case.peer.whole:
        return
    left: list[PendingErrorResponse] = []
    for pending_error in me.pending_errors:
        if pending_error.end > me.knowledge.could or not _settled(case, pending_error):
            left.append(pending_error)
    me.pending_errors = left
    case.session = None
    case.link = None


def _settled(case: Case, pending_error: PendingErrorResponse) -> bool:
    """Whether this frame answers an offence, or shows that it will not be answered."""
    me = case.me
    body = case.record.frame.body
    if isinstance(body, Close):
        if body.error is None and pending_error.due == CLOSE and not me.peer_closed:
            close_without_a_reason(case, pending_error)
        return True
    if pending_error.seen == 0:
        pending_error.seen = case.record.time
    certainty: i64 = POSSIBLE
    if pending_error.end <= me.knowledge.must:
        certainty = CERTAIN
    elif me.stalls.free(pending_error.seen, case.record.time) < ANSWER_PATIENCE and not isinstance(
        body, (End, Detach)
    ):
        return False
    if pending_error.due == CLOSE:
        return _not_closed(case, pending_error, certainty)
    session = me.session_on(case.record.frame.channel)
    if (
        session is None
        or session.peer_channel != pending_error.channel
        or session.peer_begin_end >= pending_error.end
    ):
        return False
    case.session = session
    if isinstance(body, End):
        if pending_error.due == END and body.error is None and session.peer_end_end < 0:
            RULES[pending_error.rule](case, pending_error, POSSIBLE)
        return True
    if session.peer_end_end >= 0:
        return True
    if pending_error.due == END:
        if isinstance(body, Detach) and certainty != CERTAIN:
            return False
        RULES[pending_error.rule](case, pending_error, certainty)
        return True
    return _not_detached(case, pending_error, session, certainty)


def _not_closed(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> bool:
    """A frame other than close, of a peer that has to close."""
    body = case.record.frame.body
    if isinstance(body, End):
        if body.error is None:
            return False
        certainty = POSSIBLE
    elif isinstance(body, Detach) and certainty != CERTAIN:
        return False
    elif isinstance(body, (Open, Begin)) and certainty != CERTAIN:
        return False
    RULES[pending_error.rule](case, pending_error, certainty)
    return True


def _not_detached(
    case: Case, pending_error: PendingErrorResponse, session: SessionEnd, certainty: i64
) -> bool:
    """A frame on the session of a peer that has to detach a link."""
    body = case.record.frame.body
    link = session.peer_handles.get(int(pending_error.handle))
    if link is None or link.peer_attach_end >= pending_error.end:
        return True  # the other side has detached it: what follows answers that
    case.link = link
    if isinstance(body, Detach):
        if session.handles.get(body.handle or 0) is not link:
            return False
        error = body.error
        if pending_error.rule == "amqp10/L-REDUCE-REACT":
            if error is not None and error.condition != pending_error.condition:
                detach_with_another_error(case, pending_error, POSSIBLE)
        elif error is None or (
            pending_error.rule == "amqp10/L-STEAL" and error.condition != pending_error.condition
        ):
            RULES[pending_error.rule](case, pending_error, POSSIBLE)
        return True
    if pending_error.tolerable or not _about(session, link, pending_error, body):
        return False
    RULES[pending_error.rule](case, pending_error, certainty)
    return True


def _about(session: SessionEnd, link: LinkEnd, pending_error: PendingErrorResponse, body: object) -> bool:
    """Whether a frame is for the link, or of the delivery with which it was offended."""
    if isinstance(body, (Flow, Transfer)):
        return body.handle is not None and session.handles.get(body.handle) is link
    if isinstance(body, Disposition) and body.role and body.first is not None and pending_error.delivery >= 0:
        last = body.first if body.last is None else body.last
        return (pending_error.delivery - body.first) & 0xFFFFFFFF <= (last - body.first) & 0xFFFFFFFF
    return False
