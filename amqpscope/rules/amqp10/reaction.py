"""The reactions of a peer to faults of the other peer: the rules about the error that is due.

A peer owes an answer from the time at which it can have received the fault. The missing answer is certain
when the peer's frames show that it has processed the fault, and the same or a later frame continues as if
there were no fault. An answer that is missing at the end of a connection proves nothing.
"""

from typing import Final

from amqpscope.limits import ANSWER_PATIENCE
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.rules.amqp10.attachment import L_ERRANT_INPUT
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.connection import C_CHMAX, C_MAXFRAME
from amqpscope.rules.amqp10.due_answer import (
    C_CHMAX_REACT,
    C_MAXFRAME_REACT,
    L_ERR_DETACH,
    L_ERRANT_REACT,
    L_HANDLE_INUSE_REACT,
    L_INCOMPLETE_REACT,
    L_MAXMSG_REACT,
    L_REDUCE_REACT,
    L_STEAL,
    L_UNATTACHED_FLOW_REACT,
    S_ERR_END,
    S_HANDLEMAX_REACT,
    offend,
)
from amqpscope.rules.amqp10.link import (
    L_CREDIT,
    L_CREDIT_INIT,
    L_HANDLE_INUSE,
    L_INCOMPLETE_NONEW,
    L_MAXMSG,
    L_UNATTACHED_DETACH,
    L_UNATTACHED_FLOW,
    L_UNATTACHED_TRANSFER,
)
from amqpscope.rules.amqp10.session import S_HANDLEMAX
from amqpscope.rules.declaration import Rules
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

__all__ = ["judge_answers", "owe_for"]

RULES: Final = Rules("amqp10/reaction")


C_CLOSE_REASON: Final = RULES.rule(
    "C-CLOSE-REASON", "MUST", "keyword", warning="A capture can suggest this fault but never prove it."
)


def close_without_a_reason(case: Case10, pending_error: PendingErrorResponse) -> None:
    """Right after a fault of the other peer, a peer closes the connection without an error, although the
    fault calls for a close with an error.

    Demands: If a peer closes the connection because of an error, the close must contain this error.
    Source: transport.xml section connections > Closing a Connection; transport.xml section performatives >
    close.error
    Evidence: the error field of the close, and the fault before the close
    Why it matters: The other peer does not learn of its fault and may repeat the fault on the next
    connection.
    Silent when: the close answers a close of the other peer, or when the closing peer may not yet have
    received the fault.
    Only possible because: The {peer} may close the connection for another reason, and then the close needs no
    error.
    How to mend it: Whenever a fault of the other peer causes the close, fill the error field of close. Use
    the condition that the specification names for the fault, for example `amqp:connection:framing-error`.
    """
    case.report(
        C_CLOSE_REASON,
        f"close has no error, but the other peer's fault in packet {pending_error.packet} calls for a close "
        f"with the error {pending_error.condition}",
        POSSIBLE,
        {"connection_state": case.me.state},
        [int(pending_error.packet)],
    )


def _tell(case: Case10, pending_error: PendingErrorResponse, certainty: i64) -> None:
    """Report that the answer that was due does not come."""
    rule = pending_error.rule
    if rule in (L_ERRANT_REACT, L_ERR_DETACH, L_REDUCE_REACT):
        certainty = POSSIBLE
    case.report(
        rule,
        f"after the other peer's fault in packet {pending_error.packet}, the peer sends "
        f"{case.record.frame.name}, but should send {'an' if pending_error.due == END else 'a'} "
        f"{pending_error.due} with the error {pending_error.condition}",
        certainty,
        {"due": pending_error.due, "condition": pending_error.condition},
        [int(pending_error.packet)],
    )


_FRAMING: Final = "amqp:connection:framing-error"
_UNATTACHED: Final = "amqp:session:unattached-handle"
_LIMIT: Final = "amqp:link:transfer-limit-exceeded"

# The answer that is due for a certain violation: the rule of the answer, the frame, its condition.
_DUE: Final[dict[str, tuple[str, str, str]]] = {
    C_MAXFRAME: (C_MAXFRAME_REACT, CLOSE, _FRAMING),
    C_CHMAX: (C_CHMAX_REACT, CLOSE, _FRAMING),
    S_HANDLEMAX: (S_HANDLEMAX_REACT, CLOSE, _FRAMING),
    L_HANDLE_INUSE: (L_HANDLE_INUSE_REACT, CLOSE, "amqp:session:handle-in-use"),
    L_UNATTACHED_FLOW: (L_UNATTACHED_FLOW_REACT, END, _UNATTACHED),
    L_UNATTACHED_TRANSFER: (S_ERR_END, END, _UNATTACHED),
    L_UNATTACHED_DETACH: (S_ERR_END, END, _UNATTACHED),
    L_ERRANT_INPUT: (L_ERRANT_REACT, END, "amqp:session:errant-link"),
    L_MAXMSG: (L_MAXMSG_REACT, DETACH, "amqp:link:message-size-exceeded"),
    L_INCOMPLETE_NONEW: (L_INCOMPLETE_REACT, DETACH, "an error"),
    L_CREDIT: (L_ERR_DETACH, DETACH, _LIMIT),
    L_CREDIT_INIT: (L_ERR_DETACH, DETACH, _LIMIT),
}


def owe_for(case: Case10, finding: Finding) -> None:
    """Note the answer that the other peer owes for the broken rule of this frame, if any."""
    broken = case.rule_of_the_final(finding.rule)
    due = _DUE.get(broken)
    if due is None or finding.spot.offset != case.record.frame.offset:
        return
    rule, answer, condition = due
    if not finding.certain:
        if broken == L_CREDIT:
            rule = L_REDUCE_REACT
        elif broken != L_ERRANT_INPUT:
            return
    body = case.record.frame.body
    handle: i64 = -1
    if isinstance(body, (Transfer, Flow, Detach, Attach)) and body.handle is not None:
        handle = body.handle
    offend(case, rule, answer, condition, case.record.frame.channel, handle)


def judge_answers(case: Case10) -> None:
    """Judge a frame of a peer that owes answers. Called while the peer owes any."""
    me = case.me
    frame = case.record.frame
    if frame.kind != "amqp" or frame.body is None or not me.whole or not case.peer.whole:
        return
    left: list[PendingErrorResponse] = []
    for pending_error in me.pending_errors:
        if pending_error.end > me.knowledge.could or not _settled(case, pending_error):
            left.append(pending_error)
    me.pending_errors = tuple(left)
    case.session = None
    case.link = None


def _settled(case: Case10, pending_error: PendingErrorResponse) -> bool:
    """Whether this frame answers a fault, or shows that the peer will not answer."""
    me = case.me
    body = case.record.frame.body
    if isinstance(body, Close):
        if body.error is None and pending_error.due == CLOSE and not me.closing.received:
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
            _tell(case, pending_error, POSSIBLE)
        return True
    if session.mapping.peer_end_end >= 0:
        return True
    if pending_error.due == END:
        if isinstance(body, Detach) and certainty != CERTAIN:
            return False
        _tell(case, pending_error, certainty)
        return True
    return _not_detached(case, pending_error, session, certainty)


def _not_closed(case: Case10, pending_error: PendingErrorResponse, certainty: i64) -> bool:
    """Judge a frame other than close of a peer that has to send close."""
    body = case.record.frame.body
    if isinstance(body, End):
        if body.error is None:
            return False
        certainty = POSSIBLE
    elif isinstance(body, Detach) and certainty != CERTAIN:
        return False
    elif isinstance(body, (Open, Begin)) and certainty != CERTAIN:
        return False
    _tell(case, pending_error, certainty)
    return True


def _not_detached(
    case: Case10, pending_error: PendingErrorResponse, session: SessionEnd, certainty: i64
) -> bool:
    """Judge a frame on a session on which the peer has to detach a link."""
    body = case.record.frame.body
    link = session.peer_handles.get(int(pending_error.handle))
    if link is None or link.attachment.peer_end >= pending_error.end:
        return True  # the other peer has detached the link: later frames answer that detach
    case.link = link
    if isinstance(body, Detach):
        if session.handles.get(body.handle or 0) is not link:
            return False
        error = body.error
        if pending_error.rule == L_REDUCE_REACT:
            if error is not None and error.condition != pending_error.condition:
                _tell(case, pending_error, POSSIBLE)
        elif error is None or (pending_error.rule == L_STEAL and error.condition != pending_error.condition):
            _tell(case, pending_error, POSSIBLE)
        return True
    if pending_error.tolerable or not _about(session, link, pending_error, body):
        return False
    _tell(case, pending_error, certainty)
    return True


def _about(session: SessionEnd, link: LinkEnd, pending_error: PendingErrorResponse, body: object) -> bool:
    """Whether a frame belongs to the link or to the delivery of the fault."""
    if isinstance(body, (Flow, Transfer)):
        return body.handle is not None and session.handles.get(body.handle) is link
    if isinstance(body, Disposition) and body.role and body.first is not None and pending_error.delivery >= 0:
        last = body.first if body.last is None else body.last
        return (pending_error.delivery - body.first) & 0xFFFFFFFF <= (last - body.first) & 0xFFFFFFFF
    return False
