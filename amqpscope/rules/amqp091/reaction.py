"""How a peer reacts to frames that it must refuse (sections 4.2.3, 4.2.5.5, 4.2.6).

The first fault of a peer is remembered until the other peer has received it, and either closes the connection
or answers a later frame. Brokers react differently, so all these findings are notes.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.knowledge import CONNECTION
from dissectors.amqp091.methods import ConnectionClose, ConnectionCloseOk
from dissectors.amqp091.reply_code import reply_code

__all__ = ["judge_reaction", "note_violation"]

RULES: Final = Rules("amqp091/reaction")


_HARD_ERRORS: Final = (501, 502, 503, 504, 505, 540, 541)


def note_violation(case: Case091, kind: str) -> None:
    """This frame breaks a rule on which the other peer has to react. The kind is "fatal", "size", "channel
    0", "content" or "name".
    """
    peer = case.peer
    if case.me.whole and not peer.pending.kind:
        frame = case.record.frame
        peer.pending.kind = kind
        peer.pending.end = frame.offset + frame.declared_size
        peer.pending.packet = case.record.packet
        # What the connection as a whole checks is read in the order of the frames, whatever their channel.
        peer.pending.channel = CONNECTION if kind in ("size", "channel 0") else frame.channel


def judge_reaction(case: Case091) -> None:
    """A frame of the peer that has to react."""
    me = case.me
    kind = me.pending.kind
    if kind == "over" or me.knowledge.could < me.pending.end:
        return
    method = case.record.frame.body
    if isinstance(method, ConnectionCloseOk):
        return  # the connection is over: nobody knows whether the peer would have gone on
    if not isinstance(method, ConnectionClose):
        if kind != "fatal" and me.knowledge.must_of(me.pending.channel) >= me.pending.end:
            # The peer answers a later frame, as if nothing had happened.
            me.pending.kind = "over"
            _reaction(case, kind, 0)
        return
    me.pending.kind = "over"
    code = int(method.reply_code)
    if code in _HARD_ERRORS:
        _reaction(case, kind, code)


def _reaction(case: Case091, kind: str, code: int) -> None:
    """The peer has reacted: by a close with this reply-code, or not at all (0)."""
    if kind == "fatal":
        close_behind_a_fatal_frame(case, code)
    elif kind == "size":
        if code != 501:
            too_large_frame_not_refused(case, code)
    elif kind == "channel 0":
        if code != 503:
            wrong_channel_not_refused(case, code)
    elif kind == "content":
        if code != 505:
            wrong_content_not_refused(case, code)
    elif not case.me.by_client and code not in (502, 503):
        odd_name_not_refused(case, code)


def _closing_with(code: int) -> str:
    return f"connection.close with {reply_code(code)}"


def _report(case: Case091, rule: str, code: int, due: str, certainty: int) -> None:
    done = f"closes the connection with {reply_code(code)}" if code else "continues"
    packet = int(case.me.pending.packet)
    message = (
        f"the peer {done} after the fault of the other peer in packet {packet}, but the "
        f"specification asks for {due}"
    )
    case.report(rule, message, certainty, {"reply_code": code}, [packet])


F_FATAL_SILENT: Final = RULES.rule(
    "F-FATAL-SILENT",
    "MUST",
    "tier C",
    note="The specification names no error for this fault, and both peers continue.",
)


def close_behind_a_fatal_frame(case: Case091, code: int) -> None:
    """A peer sends connection.close after it received a frame of an unknown type or with a wrong end octet.

    Demands: A peer that receives a frame of an unknown type or with a wrong end octet must drop the
    connection without sending anything.
    Source: GS:4.2.3
    Evidence: the faulty frame, and what its receiver sends next
    Why it matters: In practice, the fault does no harm. The specification wants the receiver to drop the
    connection without sending anything. RabbitMQ, LavinMQ and other brokers first send connection.close with
    reply-code 501 (frame-error), which gives the sender the reason.
    Silent when: the peer may not yet have received the faulty frame, or when the capture lacks octets of the
    other peer.
    How to mend it: Close the socket without sending anything, if strict conformance is required. If strict
    conformance is not required, keep connection.close with reply-code 501 (frame-error), and correct the peer
    that sent the malformed frame.
    """
    _report(case, F_FATAL_SILENT, code, "a dropped connection without connection.close", CERTAIN)


F_FRAME_SIZE_REACT: Final = RULES.rule(
    "F-FRAME-SIZE-REACT",
    "MUST",
    "tier C",
    note="The rule is about how a peer reacts to a fault of the other peer.",
)


def too_large_frame_not_refused(case: Case091, code: int) -> None:
    """A peer receives a frame that is too large, and does not send connection.close with reply-code 501
    (frame-error).

    Demands: A peer that receives a frame that is too large must send connection.close with reply-code 501
    (frame-error).
    Source: GS:4.2.3; GS:2.3.3
    Evidence: the frame that is too large, and what its receiver sends next
    Why it matters: The sender does not learn that its frames are too large, and may fail with another
    receiver.
    Silent when: the peer may not yet have received the frame. The rule is also silent when the peer
    continues, and no frame of the peer proves that the peer has read the faulty frame. The rule is also
    silent when the capture lacks octets of the other peer. The finding is reported as possible, not as
    certain, when the peer closes with another reply-code, because the peer may close for another reason.
    How to mend it: Compare the size of every received frame, header and end octet included, with the
    negotiated frame-max. If a received frame is larger than frame-max, send connection.close with reply-code
    501 (frame-error).
    """
    _report(case, F_FRAME_SIZE_REACT, code, _closing_with(501), POSSIBLE if code else CERTAIN)


F_CH0_REACT: Final = RULES.rule(
    "F-CH0-REACT", "MUST", "tier C", note="The rule is about how a peer reacts to a fault of the other peer."
)


def wrong_channel_not_refused(case: Case091, code: int) -> None:
    """A peer receives a heartbeat or a method of the class `connection` on a channel other than 0, and does
    not send connection.close with reply-code 503 (command-invalid).

    Demands: A peer that receives a heartbeat or a method of the class `connection` on a channel other than 0
    must send connection.close with reply-code 503 (command-invalid).
    Source: GS:4.2.3
    Evidence: the faulty frame, and the reply-code of the next connection.close
    Why it matters: In practice, the fault does no harm. One passage of the specification demands reply-code
    503 (command-invalid) for this fault, and another passage demands 501 (frame-error). RabbitMQ closes the
    connection with reply-code 505 (unexpected-frame).
    Silent when: the peer may not yet have received the frame. The rule is also silent when the peer
    continues, and no frame of the peer proves that the peer has read the faulty frame. The rule is also
    silent when the capture lacks octets of the other peer. The finding is reported as possible, not as
    certain, when the peer closes with another reply-code, because the peer may close for another reason.
    How to mend it: Check the channel number of every received heartbeat frame and every received method of
    the class `connection`. If the channel number is not 0, send connection.close with reply-code 503
    (command-invalid).
    """
    _report(case, F_CH0_REACT, code, _closing_with(503), POSSIBLE if code else CERTAIN)


F_CONTENT_REACT: Final = RULES.rule(
    "F-CONTENT-REACT",
    "MUST",
    "tier C",
    note="The rule is about how a peer reacts to a fault of the other peer.",
)


def wrong_content_not_refused(case: Case091, code: int) -> None:
    """A peer receives content frames that are out of order, and does not send connection.close with
    reply-code 505 (unexpected-frame).

    Demands: A peer that receives incomplete or malformed content must send connection.close with
    reply-code 505 (unexpected-frame).
    Source: GS:4.2.6
    Evidence: the faulty content, and the next connection.close
    Why it matters: The sender does not learn that its content frames were out of order. The receiver may
    treat a broken message as an intact message. RabbitMQ closes with reply-code 501 (frame-error) in some
    cases.
    Silent when: the peer may not yet have received the frame. The rule is also silent when the peer
    continues, and no frame of the peer on the channel proves that the peer has read the faulty frame. The
    rule is also silent when the capture lacks octets of the other peer. The finding is reported as possible,
    not as certain, when the peer closes with another reply-code, because the peer may close for another
    reason.
    How to mend it: For each channel, track which frame is due (method, content header or body), and how many
    body octets are missing. If a frame arrives that is not due, send connection.close with reply-code 505
    (unexpected-frame).
    """
    _report(case, F_CONTENT_REACT, code, _closing_with(505), POSSIBLE if code else CERTAIN)


T_TABLE_NAME_REACT: Final = RULES.rule(
    "T-TABLE-NAME-REACT",
    "SHOULD",
    "tier C",
    by="server",
    note="The rule is about how a peer reacts to a fault of the other peer.",
)


def odd_name_not_refused(case: Case091, code: int) -> None:
    """A server accepts a field table with a name that does not begin with a letter, '$' or '#'.

    Demands: A server should check the names in field tables and answer an invalid name with a connection
    exception.
    Source: GS:4.2.5.5
    Evidence: an invalid name in a field table of the client, and the missing connection.close
    Why it matters: In practice, the fault does no harm. The documentation of RabbitMQ says that RabbitMQ
    does not check the names, and no known broker checks them. The specification demands reply-code 503
    (syntax error), although the reply-code of syntax-error is 502.
    Silent when: the server may not yet have received the field table. The rule is also silent when the server
    continues, and no frame of the server on the channel proves that the server has read the field table. The
    rule is also silent when the capture lacks octets of the client. The finding is reported as possible, not
    as certain, when the server closes with another reply-code, because the server may close for another
    reason.
    How to mend it: If strict conformance is required, check the first character of every field name in a
    received table. For an invalid name, send connection.close with reply-code 503 (command-invalid) or
    502 (syntax-error). If strict conformance is not required, leave the server unchanged.
    """
    _report(
        case,
        T_TABLE_NAME_REACT,
        code,
        f"{_closing_with(502)} or {reply_code(503)}",
        POSSIBLE if code else CERTAIN,
    )
