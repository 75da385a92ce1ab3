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
    """A peer receives a frame larger than its max-frame-size and does not close the connection with
    framing-error.

    Why it matters: The sender of the frame never learns that its frames are too large. Another receiver may
    close the connection for the same frame.
    Silent when: the peer may not have received the frame, or the peer sent nothing afterwards. The finding is
    only possible, not certain, when a minute passed without proof that the peer had read the frame, or when
    the peer ended the session instead of closing the connection.
    How to mend it: Compare the size field of each incoming frame with your own max-frame-size before you
    process the frame. If the frame is larger, send close with `amqp:connection:framing-error`.
    """
    _tell(case, "amqp10/C-MAXFRAME-REACT", pending_error, certainty)


def no_close_for_a_channel_out_of_range(
    case: Case, pending_error: PendingErrorResponse, certainty: i64
) -> None:
    """A peer receives a frame on a channel above its channel-max and does not close the connection with
    framing-error.

    Why it matters: The sender of the frame never learns of the limit. It may go on using channels that its
    peer does not support.
    Silent when: the peer may not have received the frame, or the peer sent nothing afterwards. The finding is
    only possible, not certain, when a minute passed without proof that the peer had read the frame, or when
    the peer ended the session instead of closing the connection.
    How to mend it: Compare the channel of each incoming frame with your own channel-max. If the channel is
    higher, send close with `amqp:connection:framing-error` instead of ignoring the frame or ending a session.
    """
    _tell(case, "amqp10/C-CHMAX-REACT", pending_error, certainty)


def no_close_for_a_handle_out_of_range(
    case: Case, pending_error: PendingErrorResponse, certainty: i64
) -> None:
    """A peer receives an attach with a handle above its handle-max and does not close the connection with
    framing-error.

    Why it matters: The sender of the attach never learns of the limit. It may go on attaching links with
    handles that its peer does not support.
    Silent when: the peer may not have received the attach, or the peer sent nothing afterwards. The finding
    is only possible, not certain, when a minute passed without proof that the peer had read the attach, or
    when the peer ended the session instead of closing the connection.
    How to mend it: Compare the handle of each incoming attach with the handle-max of your own begin. If the
    handle is higher, send close with `amqp:connection:framing-error`; an end or a detach is not enough.
    """
    _tell(case, "amqp10/S-HANDLEMAX-REACT", pending_error, certainty)


def no_close_for_a_handle_in_use(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A peer receives an attach with a handle that is already in use and does not close the connection with
    handle-in-use.

    Why it matters: From then on the two peers may mean different links by the same handle. Transfers and
    flows may reach the wrong link.
    Silent when: the peer may not have received the attach, or the peer sent nothing afterwards. The finding
    is only possible, not certain, when a minute passed without proof that the peer had read the attach, or
    when the peer ended the session instead of closing the connection, as the name of the error
    `amqp:session:handle-in-use` suggests.
    How to mend it: Check each incoming attach against the input handles in use on the session. If the handle
    is in use, send close with `amqp:session:handle-in-use` at once and do not overwrite the existing link.
    """
    _tell(case, "amqp10/L-HANDLE-INUSE-REACT", pending_error, certainty)


def no_end_for_a_flow_on_an_unattached_handle(
    case: Case, pending_error: PendingErrorResponse, certainty: i64
) -> None:
    """A peer receives a flow for a handle without a link and does not end the session with unattached-handle.

    Why it matters: The credit that the flow carries is lost. The sender of the flow waits for an effect that
    never comes.
    Silent when: the peer may not have received the flow, or the peer sent nothing on the session afterwards.
    The finding is only possible, not certain, when a minute passed without proof that the peer had read the
    flow, or when the peer ended the session without an error.
    How to mend it: Look up the handle of each incoming flow. If no link is attached to the handle, send end
    with `amqp:session:unattached-handle` instead of ignoring the flow.
    """
    _tell(case, "amqp10/L-UNATTACHED-FLOW-REACT", pending_error, certainty)


def no_end_for_what_no_session_can_process(
    case: Case, pending_error: PendingErrorResponse, certainty: i64
) -> None:
    """A peer receives a transfer or a detach for a handle without a link and does not end the session with an
    error.

    Why it matters: The frame belongs to no link, so the peer cannot process it. The sender of the frame
    assumes that the frame was processed.
    Silent when: the peer may not have received the frame, or the peer sent nothing on the session afterwards.
    The finding is only possible, not certain, when a minute passed without proof that the peer had read the
    frame, or when the peer ended the session without an error.
    How to mend it: Look up the handle of each incoming transfer and detach. If no link is attached to the
    handle, send end with an error such as `amqp:session:unattached-handle` instead of dropping the frame.
    """
    _tell(case, "amqp10/S-ERR-END", pending_error, certainty)


def no_end_for_an_errant_link(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A peer that detached a link with an error receives further input for the link and does not end the
    session for this input.

    Why it matters: The other peer sent this input to a link endpoint that no longer exists. Without an end of
    the session the input is lost and no error reports the loss.
    Silent when: the peer may not have received the input, or the peer sent nothing on the session afterwards.
    Only possible because: Hardly any implementation ends the session for frames that were already on their
    way when it sent the detach.
    How to mend it: Remember links that you detached with an error. If input other than a detach arrives for
    such a link, send end with `amqp:session:errant-link`.
    """
    _tell(case, "amqp10/L-ERRANT-REACT", pending_error, POSSIBLE)


def no_end_for_a_pipelined_attach(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A peer that detached a link with an error receives an attach without an unsettled map for the link and
    does not end the session with errant-link.

    Why it matters: The other peer takes the link for the earlier one. The earlier link endpoint is destroyed
    together with the state that it held.
    Silent when: the peer may not have received the attach, or the peer sent nothing on the session
    afterwards. The finding is only possible, not certain, when a minute passed without proof that the peer
    had read the attach, or when the peer ended the session without an error.
    How to mend it: After you detach a link with an error, accept an attach of the same link only if its
    unsettled field is not null. Otherwise send end with `amqp:session:errant-link`.
    """
    _tell(case, "amqp10/L-ERR-PIPELINED", pending_error, certainty)


def no_detach_for_a_message_too_large(
    case: Case, pending_error: PendingErrorResponse, certainty: i64
) -> None:
    """A receiver receives a message larger than its max-message-size and does not detach the link with
    message-size-exceeded.

    Why it matters: The sender never learns of the limit and may go on sending messages that the receiver does
    not support.
    Silent when: the receiver may not have received the message, or the receiver has sent nothing about the
    message and nothing for the link since. The finding is only possible, not certain, when the receiver
    detached the link without an error.
    How to mend it: Add up the payload of the transfers of each delivery. If the sum exceeds the
    max-message-size of your attach, detach the link with `amqp:link:message-size-exceeded`.
    """
    _tell(case, "amqp10/L-MAXMSG-REACT", pending_error, certainty)


def no_detach_for_a_new_delivery(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A receiver that sent an incomplete unsettled map receives a new delivery and does not detach the link
    with an error.

    Why it matters: The receiver cannot know whether it already has the message. The message may be processed
    twice.
    Silent when: the receiver may not have received the transfer, or the receiver has sent nothing about the
    delivery and nothing for the link since. The finding is only possible, not certain, when the receiver
    detached the link without an error.
    How to mend it: While your attach has incomplete-unsettled=true, accept only transfers with resume=true.
    If a transfer without resume arrives, detach the link with an error, for example `amqp:not-allowed`.
    """
    _tell(case, "amqp10/L-INCOMPLETE-REACT", pending_error, certainty)


def detach_without_an_error(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A receiver gets more deliveries than it granted link-credit for and detaches the link without an error.

    Why it matters: The sender does not learn why the link is gone. It may attach the link again and repeat
    the fault.
    Silent when: the receiver may not have received the deliveries.
    Only possible because: The {peer} may have detached the link for another reason.
    How to mend it: Fill the error field of the detach when you detach a link because of a fault. For
    deliveries beyond the link-credit use `amqp:link:transfer-limit-exceeded`.
    """
    _tell(case, "amqp10/L-ERR-DETACH", pending_error, POSSIBLE)


def detach_with_another_error(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A receiver lowers the link-credit and then detaches the link with an error other than
    transfer-limit-exceeded when more deliveries arrive.

    Why it matters: Deliveries that were in flight when the receiver lowered the link-credit are no fault of
    the sender. Another error misleads the sender about the cause.
    Silent when: the receiver did not detach the link, or the receiver detached the link with
    transfer-limit-exceeded.
    Only possible because: The {peer} may have another reason for the error.
    How to mend it: After you lower the link-credit, accept deliveries that were already in flight. If you
    cannot accept them, detach with `amqp:link:transfer-limit-exceeded`.
    """
    _tell(case, "amqp10/L-REDUCE-REACT", pending_error, POSSIBLE)


def link_not_given_up_when_stolen(case: Case, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """A peer receives an attach on another session for a link that is already attached, and does not detach
    the first attachment with `amqp:link:stolen`.

    Why it matters: A link can be attached only once at a time. Two attachments share one link state, so
    deliveries and credit become ambiguous.
    Silent when: the peer may not have received the second attach, or the peer has sent nothing for the first
    attachment since. The finding is only possible, not certain, when the peer detached the first attachment
    without this error.
    How to mend it: When an attach arrives for a link that is already attached elsewhere, detach the first
    attachment with `amqp:link:stolen` before you use the new one.
    """
    _tell(case, "amqp10/L-STEAL", pending_error, certainty)


def close_without_a_reason(case: Case, pending_error: PendingErrorResponse) -> None:
    """A peer closes the connection right after a fault of the other peer that calls for a close, and the
    close has no error.

    Why it matters: The other peer does not learn what it did wrong and may repeat the fault on the next
    connection.
    Silent when: the close answers a close of the other peer, or the closing peer may not have received the
    fault.
    Only possible because: The {peer} may close the connection for another reason, and then the close needs no
    error.
    How to mend it: Fill the error field of close with the condition that the specification names for the
    fault, for example `amqp:connection:framing-error`, whenever a fault of the other peer causes the close.
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
        or session.mapping.peer_begin_end >= pending_error.end
    ):
        return False
    case.session = session
    if isinstance(body, End):
        if pending_error.due == END and body.error is None and session.mapping.peer_end_end < 0:
            RULES[pending_error.rule](case, pending_error, POSSIBLE)
        return True
    if session.mapping.peer_end_end >= 0:
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
    if link is None or link.attachment.peer_end >= pending_error.end:
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
