"""The error answers that a peer owes for faults of the other peer.

`reaction` judges whether the answer comes.
"""

from typing import Final

from amqpscope.limits import MAX_VIOLATIONS
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.pending_error import PendingErrorResponse
from dissectors.amqp10.performatives import Transfer
from dissectors.wire import i64

__all__ = ["offend"]

RULES: Final = Rules("amqp10/due_answer")


C_MAXFRAME_REACT: Final = RULES.rule(
    "C-MAXFRAME-REACT",
    "MUST",
    "keyword",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    answer="amqp:connection:framing-error",
    octets=True,
)
"""A peer receives a frame larger than the peer's own max-frame-size and does not close the connection with
amqp:connection:framing-error.

Demands: A peer that receives a frame larger than its own max-frame-size must close the connection with
amqp:connection:framing-error.
Source: transport.xml section performatives > open.max-frame-size
Evidence: the frames that the receiver sends after the oversized frame
Why it matters: The sender of the frame never learns that the frame is too large. Another receiver may close
the connection because of a frame of this size.
Silent when: the peer may not yet have received the frame, or when the peer sent nothing afterwards. The
finding is reported as possible, not as certain, when a minute has passed since the frame, but nothing proves
that the peer has read the frame. The finding is reported as possible, not as certain, when the peer ended the
session instead of closing the connection.
How to mend it: Compare the size field of each incoming frame with your own max-frame-size before you
process the frame. If a frame is larger than your max-frame-size, send close with
`amqp:connection:framing-error`.
"""


C_CHMAX_REACT: Final = RULES.rule(
    "C-CHMAX-REACT",
    "MUST",
    "keyword",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    answer="amqp:connection:framing-error",
)
"""A peer receives a frame on a channel above the peer's own channel-max and does not close the connection
with amqp:connection:framing-error.

Demands: A peer that receives a frame on a channel above its own channel-max must close the connection with
amqp:connection:framing-error.
Source: transport.xml section performatives > open.channel-max
Evidence: the frames that the receiver sends after it has received the frame on the wrong channel
Why it matters: The sender of the frame never learns of the limit. The sender may go on using channels
that the other peer does not support.
Silent when: the peer may not yet have received the frame, or when the peer sent nothing afterwards. The
finding is reported as possible, not as certain, when a minute has passed since the frame, but nothing proves
that the peer has read the frame. The finding is reported as possible, not as certain, when the peer ended the
session instead of closing the connection.
How to mend it: Compare the channel of each incoming frame with your own channel-max. If the channel is
higher, send close with `amqp:connection:framing-error` instead of ignoring the frame or ending a session.
"""


S_HANDLEMAX_REACT: Final = RULES.rule(
    "S-HANDLEMAX-REACT",
    "MUST",
    "keyword",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    answer="amqp:connection:framing-error",
)
"""A peer receives an attach with a handle above the peer's own handle-max and does not close the connection
with amqp:connection:framing-error.

Demands: A peer that receives an attach with a handle above its own handle-max must close the connection with
amqp:connection:framing-error.
Source: transport.xml section performatives > begin.handle-max
Evidence: the frames that the receiver sends after the attach (many peers send an `end` instead of a `close`)
Why it matters: The sender of the attach never learns of the limit. The sender may go on attaching links
with handles that the other peer does not support.
Silent when: the peer may not yet have received the attach, or when the peer sent nothing afterwards. The
finding is reported as possible, not as certain, when a minute has passed since the attach, but nothing proves
that the peer has read the attach. The finding is reported as possible, not as certain, when the peer ended
the session instead of closing the connection.
How to mend it: Compare the handle of each incoming attach with the handle-max of your own begin. If the
handle is higher, send close with `amqp:connection:framing-error`. It is not enough to send `end` or `detach`.
"""


L_HANDLE_INUSE_REACT: Final = RULES.rule(
    "L-HANDLE-INUSE-REACT",
    "MUST",
    "keyword",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    answer="amqp:session:handle-in-use",
)
"""A peer receives an attach with a handle that is already in use and does not close the connection with
amqp:session:handle-in-use.

Demands: A peer that receives an attach with a handle that is already in use must close the connection at once
with amqp:session:handle-in-use.
Source: transport.xml section performatives > attach.handle; transport.xml section definitions > session-error
handle-in-use
Evidence: the frames that the receiver sends after the second attach
Why it matters: After the second attach, the two peers may use the same handle for different links. Transfers
and flows may reach the wrong link.
Silent when: the peer may not yet have received the attach, or when the peer sent nothing afterwards. The
finding is reported as possible, not as certain, when a minute has passed since the attach, but nothing proves
that the peer has read the attach. The finding is reported as possible, not as certain, when the peer ended
the session instead of closing the connection, because the name of the error `amqp:session:handle-in-use`
suggests that the session must end.
How to mend it: Check whether the handle of each incoming attach is already in use on the session. If the
handle is in use, send close with `amqp:session:handle-in-use` at once, and do not overwrite the existing
link.
"""


L_UNATTACHED_FLOW_REACT: Final = RULES.rule(
    "L-UNATTACHED-FLOW-REACT",
    "MUST",
    "keyword",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    answer="amqp:session:unattached-handle",
)
"""A peer receives a flow for a handle without a link and does not end the session with
amqp:session:unattached-handle.

Demands: A peer that receives a flow for an unattached handle must end the session with
amqp:session:unattached-handle.
Source: transport.xml section performatives > flow.handle
Evidence: the frames that the receiver sends after the flow
Why it matters: The credit that the flow carries is lost. The sender of the flow waits for an effect that
never comes.
Silent when: the peer may not yet have received the flow, or when the peer sent nothing on the session
afterwards. The finding is reported as possible, not as certain, when a minute has passed since the flow, but
nothing proves that the peer has read the flow. The finding is reported as possible, not as certain, when the
peer ended the session without an error.
How to mend it: Look up the handle of each incoming flow. If no link is attached to the handle, send an `end`
with `amqp:session:unattached-handle` instead of ignoring the flow.
"""


S_ERR_END: Final = RULES.rule(
    "S-ERR-END", "MUST", "keyword", note="The rule judges how a peer reacts to a fault of the other peer."
)
"""A peer receives a transfer or a detach for a handle without a link and does not end the session with an
error.

Demands: A peer that cannot process a frame of a session must end the session with an error.
Source: transport.xml section sessions > Session Errors
Evidence: an invalid frame, and the frames that its receiver sends afterwards
Why it matters: The frame belongs to no link, so the peer cannot process the frame. The sender of the frame
assumes that the frame was processed.
Silent when: the peer may not yet have received the frame, or when the peer sent nothing on the session
afterwards. The finding is reported as possible, not as certain, when a minute has passed since the frame, but
nothing proves that the peer has read the frame. The finding is reported as possible, not as certain, when the
peer ended the session without an error.
How to mend it: Look up the handle of each incoming transfer and detach. If no link is attached to the handle,
send an `end` with an error such as `amqp:session:unattached-handle` instead of dropping the frame.
"""


L_ERRANT_REACT: Final = RULES.rule(
    "L-ERRANT-REACT",
    "MUST",
    "keyword",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    answer="amqp:session:errant-link",
)
"""A peer that detached a link with an error receives further input for the link and does not end the session
because of this input.

Demands: A peer that detached a link with an error must end the session with amqp:session:errant-link when
further input for the link arrives. The rule also applies to input that was already on its way.
Source: transport.xml section links > Link Errors
Evidence: the frames that the peer sends after it has received the further input
Why it matters: The other peer sent this input to a link endpoint that no longer exists. If the session goes
on, the input is lost and no error reports the loss.
Silent when: the peer may not yet have received the input, or when the peer sent nothing on the session
afterwards.
Only possible because: Hardly any implementation ends the session for frames that were already on their
way when the detach was sent.
How to mend it: Remember links that you detached with an error. If input other than a detach arrives for a
link that you detached with an error, send an `end` with `amqp:session:errant-link`.
"""


L_ERR_PIPELINED: Final = RULES.rule(
    "L-ERR-PIPELINED",
    "MUST",
    "keyword",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    answer="amqp:session:errant-link",
)
"""A peer that detached a link with an error receives an attach without an unsettled map for the link and does
not end the session with amqp:session:errant-link.

Demands: A peer that detached a link with an error must end the session with amqp:session:errant-link when an
attach without an unsettled map arrives for the link.
Source: transport.xml section links > Link Errors
Evidence: an attach with a null unsettled map that crosses a detach with an error, and the answer to the
attach
Why it matters: The other peer believes that the earlier link still exists, but the endpoint and the state of
this link are destroyed.
Silent when: the peer may not yet have received the attach, or when the peer sent nothing on the session
afterwards. The finding is reported as possible, not as certain, when a minute has passed since the attach,
but nothing proves that the peer has read the attach. The finding is reported as possible, not as certain,
when the peer ended the session without an error.
How to mend it: After you detach a link with an error, accept an attach of the same link only if the field
`unsettled` of this attach is not null. If the field `unsettled` is null, send an `end` with
`amqp:session:errant-link`.
"""


L_MAXMSG_REACT: Final = RULES.rule(
    "L-MAXMSG-REACT",
    "MUST",
    "definition",
    by="receiver",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    answer="amqp:link:message-size-exceeded",
    octets=True,
)
"""A receiver receives a message larger than the receiver's own max-message-size and does not detach the link
with amqp:link:message-size-exceeded.

Demands: A receiver must detach a link with amqp:link:message-size-exceeded when a message is larger than the
receiver's own max-message-size.
Source: transport.xml section performatives > attach.max-message-size; transport.xml section definitions >
link-error message-size-exceeded
Evidence: the frames that the receiver sends after the message
Why it matters: The sender never learns of the limit and may go on sending messages that the receiver does not
support.
Silent when: the receiver may not yet have received the message. The rule is also silent when the receiver
sent nothing about the message and nothing for the link afterwards. The finding is reported as possible, not
as certain, when the receiver detached the link without an error.
How to mend it: Add up the payload of the transfers of each delivery. If the sum exceeds the max-message-size
of your attach, detach the link with `amqp:link:message-size-exceeded`.
"""


L_INCOMPLETE_REACT: Final = RULES.rule(
    "L-INCOMPLETE-REACT",
    "MUST",
    "keyword",
    by="receiver",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    usual_answer="amqp:not-allowed",
)
"""A receiver that sent an incomplete unsettled map receives a new delivery and does not detach the link with
an error.

Demands: A receiver that sent an incomplete unsettled map must detach the link with an error when a transfer
without resume=true arrives.
Source: transport.xml section performatives > attach.incomplete-unsettled
Evidence: the frames that the receiver sends after the transfer
Why it matters: The receiver cannot know whether it already has the message. The message may be processed
twice.
Silent when: the receiver may not yet have received the transfer. The rule is also silent when the receiver
sent nothing about the delivery and nothing for the link afterwards. The finding is reported as possible, not
as certain, when the receiver detached the link without an error.
How to mend it: While your attach has incomplete-unsettled=true, accept only transfers with resume=true. If a
transfer without resume=true arrives, detach the link with an error, for example `amqp:not-allowed`.
"""


L_ERR_DETACH: Final = RULES.rule(
    "L-ERR-DETACH", "MUST", "keyword", note="The rule judges how a peer reacts to a fault of the other peer."
)
"""A receiver gets more deliveries than the granted link-credit allows, and detaches the link without an
error.

Demands: If the link endpoint of a peer fails, the peer must put the error into its detach.
Source: transport.xml section links > Link Errors
Evidence: the field `error` of the detach that follows the deliveries beyond the link-credit
Why it matters: The sender does not learn why the link is gone. The sender may attach the link again and
repeat the fault.
Silent when: the receiver may not yet have received the deliveries.
Only possible because: The {peer} may have detached the link for another reason.
How to mend it: When you detach a link because of a fault, put an error into the detach. For deliveries beyond
the link-credit use `amqp:link:transfer-limit-exceeded`.
"""


L_REDUCE_REACT: Final = RULES.rule(
    "L-REDUCE-REACT",
    "MAY-limits",
    "keyword",
    by="receiver",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    answer="amqp:link:transfer-limit-exceeded",
)
"""A receiver lowers the link-credit, and when more deliveries arrive, the receiver detaches the link with an
error other than amqp:link:transfer-limit-exceeded.

Demands: A receiver that lowers the link-credit must either accept the messages that are already in flight or
detach the link with amqp:link:transfer-limit-exceeded.
Source: transport.xml section links > Flow Control
Evidence: the frames that the receiver sends after the messages that exceed the lowered link-credit
Why it matters: Deliveries that were in flight when the receiver lowered the link-credit are no fault of the
sender. An error other than amqp:link:transfer-limit-exceeded misleads the sender about the cause of the
detach.
Silent when: the receiver did not detach the link, or when the receiver detached the link with
amqp:link:transfer-limit-exceeded.
Only possible because: The {peer} may have another reason for the error.
How to mend it: After you lower the link-credit, accept deliveries that were already in flight. If you
cannot accept deliveries in flight, detach the link with `amqp:link:transfer-limit-exceeded`.
"""


L_STEAL: Final = RULES.rule("L-STEAL", "MUST", "lower-case", answer="amqp:link:stolen")
"""A peer receives an attach on another session for a link that is already attached, and does not detach
the first attachment with `amqp:link:stolen`.

Demands: When a peer attaches a link that is already attached elsewhere, the other peer must detach the first
attachment with amqp:link:stolen.
Source: transport.xml section links > Naming a Link; transport.xml section definitions > link-error stolen
Evidence: a second attach of the link, and the detach of the first attachment
Why it matters: A link can be attached only once at a time. Two attachments share one link state, so it is
unclear to which attachment a delivery or link-credit belongs.
Silent when: the peer may not yet have received the second attach, or when the peer sent nothing for the first
attachment afterwards. The finding is reported as possible, not as certain, when the peer detached the first
attachment without the error `amqp:link:stolen`.
How to mend it: When an attach arrives for a link that is already attached elsewhere, detach the first
attachment with `amqp:link:stolen` before you use the new attachment.
"""


# The peer may process these frames nevertheless: only a wrong answer is a fault.
_TOLERABLE: Final = (L_ERR_DETACH, L_REDUCE_REACT)


def offend(case: Case10, rule: str, due: str, condition: str, channel: i64, handle: i64) -> None:
    """Note that the other peer owes an answer to this frame, for its sender's channel and handle."""
    record = case.record
    pending_errors = case.peer.pending_errors
    if len(pending_errors) >= MAX_VIOLATIONS:
        return
    end = record.frame.offset + record.frame.size
    pending_error = PendingErrorResponse(rule, due, condition, end, record.packet, record.time)
    pending_error.channel = channel
    pending_error.handle = handle
    if isinstance(record.frame.body, Transfer):
        pending_error.delivery = case.delivery_id()
    pending_error.tolerable = rule in _TOLERABLE
    case.peer.pending_errors = (*pending_errors, pending_error)
