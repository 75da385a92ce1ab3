"""How a connection ends: connection.close, connection.close-ok, and only then the socket (sections 2.2.4 and
2.3.7).

A peer that has sent connection.close waits for connection.close-ok and ignores everything else. A peer that
has sent connection.close-ok sends nothing more. If both peers close at once, both answer. A missing answer is
a fault when its sender ends the stream by a FIN. A reset may have discarded the answer, and the end of a
capture proves nothing.
"""

from typing import Final

from amqpscope.limits import SOCKET_PATIENCE
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.closing import CloseReason
from amqpscope.tracking.amqp091.states import OPEN
from dissectors.amqp091.arguments import Method, UnknownMethod
from dissectors.amqp091.methods import ConnectionClose, ConnectionCloseOk
from dissectors.amqp091.reply_code import reply_code
from dissectors.wire import i64

__all__ = [
    "RULES",
    "judge_close",
    "judge_close_ok",
    "judge_code",
    "judge_end",
    "judge_frame",
    "judge_method_id",
    "note_framing",
]

RULES: Final = Rules("amqp091/closing")


_NORMAL: Final = 200

# The reply-codes of the specification, by what they end; 312 is RabbitMQ's.
_SOFT: Final = (311, 312, 313, 403, 404, 405, 406)
_HARD: Final = (320, 402, 501, 502, 503, 504, 505, 506, 530, 540, 541)

_CLASS_CONNECTION: Final = 10


C_CLOSE_HANDSHAKE: Final = RULES.rule("C-CLOSE-HANDSHAKE", "MUST", "tier A")


def stream_ended_without_close(case: Case091, certainty: i64, clock_in_doubt: bool) -> None:
    """A peer ends its TCP stream although neither peer has sent connection.close.

    Demands: A peer that wants to end an open connection must exchange connection.close and
    connection.close-ok before it closes the socket.
    Source: GS:2.3.7
    Evidence: a FIN or RST of TCP without an earlier connection.close
    Why it matters: The other peer cannot distinguish an orderly end from a crash. The fate of messages and
    acknowledgements in transit is uncertain.
    Silent when: the connection was not open yet, or when the capture lacks octets of the connection. The rule
    is also silent when the other peer ended its stream first. The rule also reports nothing when the other
    peer was silent for two heartbeat delays or sent broken frames, because the peer may then drop the
    connection. The finding is reported as possible, not as certain, when a reset ends the stream. The finding
    is reported as possible, not as certain, when the capturing machine's clock was set back or stood still,
    because the other peer may then have been silent for two heartbeat delays.
    How to mend it: Send connection.close, wait for connection.close-ok with a time-out, and only then close
    the socket. Applications should close the connection object before the process exits.
    """
    evidence: dict[str, object] = {"open_channels": int(case.view.table.open)}
    if clock_in_doubt:
        evidence["clock_in_doubt"] = True
        certainty = POSSIBLE
    case.report(
        C_CLOSE_HANDSHAKE,
        "the peer ends its TCP stream, but neither peer has sent connection.close",
        certainty,
        evidence,
    )


C_CLOSE_REPLY: Final = RULES.rule("C-CLOSE-REPLY", "MUST", "tier A")


def close_not_answered(case: Case091, closing: CloseReason, certainty: i64) -> None:
    """A peer ends its TCP stream without answering the other peer's connection.close.

    Demands: A peer must answer connection.close with connection.close-ok.
    Source: GS:2.3.7; G:connection close-connection
    Evidence: a connection.close whose receiver ends its TCP stream without sending connection.close-ok
    Why it matters: The other peer waits for connection.close-ok until a time-out, and cannot know whether its
    connection.close was read.
    Silent when: the capture lacks octets of the connection, or when the other peer ended its stream first.
    The finding is reported as possible, not as certain, when the connection was not open yet or a reset ends
    the stream.
    How to mend it: Answer a received connection.close with connection.close-ok, flush it to the socket, and
    only then close the socket.
    """
    case.report(
        C_CLOSE_REPLY,
        "the peer ends its TCP stream without answering the other peer's connection.close (packet "
        f"{closing.packet})",
        certainty,
        {"reply_code": int(closing.code)},
        [int(closing.packet)],
    )


C_CLOSE_CROSS: Final = RULES.rule("C-CLOSE-CROSS", "MUST", "tier A")


def crossing_close_not_answered(case: Case091, closing: CloseReason) -> None:
    """Both peers have sent connection.close, and one peer ends its TCP stream without answering the
    connection.close of the other peer.

    Demands: A peer that has sent connection.close must still answer a received connection.close with
    connection.close-ok.
    Source: XML:connection.close.stability; GS:2.3.7
    Evidence: two connection.close methods, one in each direction
    Why it matters: When two connection.close methods cross, each peer waits for an answer. Each peer owes the
    other one a connection.close-ok.
    Silent when: the capture lacks octets of the connection, or when the other peer ended its stream first.
    Only possible because: The {peer} may have been about to send connection.close-ok when its stream ended.
    How to mend it: While waiting for connection.close-ok, still answer a received connection.close with
    connection.close-ok before closing the socket.
    """
    case.report(
        C_CLOSE_CROSS,
        "the peer ends its TCP stream without answering the other peer's connection.close (packet "
        f"{closing.packet}), which crossed the peer's own connection.close",
        POSSIBLE,
        {"reply_code": int(closing.code)},
        [int(closing.packet)],
    )


C_CLOSE_SILENT: Final = RULES.rule(
    "C-CLOSE-SILENT",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def frame_after_close(case: Case091, own: CloseReason) -> None:
    """A peer that has sent connection.close sends something other than connection.close-ok or a heartbeat.

    Demands: After connection.close, a peer must not send anything but connection.close-ok and heartbeats.
    Source: XML:connection.close.stability; GS:2.3.7
    Evidence: the frames that the peer sends after its connection.close
    Why it matters: The other peer may already have ended the connection, and discards every frame that
    arrives after connection.close. Messages and acknowledgements that are sent after connection.close are
    lost.
    Silent when: the connection.close was not captured. The rule reports the fault only once per connection.
    Possible because: The capture lacks octets that the {peer} sent. The connection.close may be the content
    of a message whose beginning was not captured.
    How to mend it: Stop all writers of the connection before connection.close is written, and send only
    connection.close-ok and heartbeats afterwards. Applications must stop their publishing and acknowledging
    threads before they close the connection.
    """
    case.report_once(
        C_CLOSE_SILENT,
        f"the peer sends {case.name} after its own connection.close (packet {own.packet})",
        CERTAIN if case.me.whole else POSSIBLE,
        {"reply_code": int(own.code)},
        [int(own.packet)],
    )


C_CLOSE_DISCARD: Final = RULES.rule("C-CLOSE-DISCARD", "MUST", "tier A")


def answer_after_close(case: Case091, own: CloseReason, request_packet: i64) -> None:
    """A peer that has sent connection.close acts on a method that arrived after its connection.close.

    Demands: After connection.close, a peer must discard all received methods except connection.close and
    connection.close-ok.
    Source: XML:connection.close.stability
    Evidence: replies and deliveries whose cause is a method that arrived after the peer's connection.close
    Why it matters: After connection.close, the peer has to discard everything except connection.close and
    connection.close-ok. The other peer cannot know which of its methods still take effect.
    Silent when: the capture lacks octets of either peer, or when the method may have arrived before the peer
    sent connection.close. The rule reports the fault only once per connection.
    How to mend it: After sending connection.close, discard every received method except connection.close and
    connection.close-ok. The peer must neither execute nor answer a discarded method.
    """
    case.report_once(
        C_CLOSE_DISCARD,
        f"{case.name} answers a request (packet {request_packet}) that arrived after the peer's own "
        f"connection.close (packet {own.packet}); such a request must be discarded",
        CERTAIN,
        {"reply_code": int(own.code)},
        [int(own.packet), int(request_packet)],
    )


C_CLOSEOK_LAST: Final = RULES.rule(
    "C-CLOSEOK-LAST",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def frame_after_close_ok(case: Case091, packet: i64) -> None:
    """A peer that has sent connection.close-ok sends something other than a heartbeat.

    Demands: Except for heartbeats, connection.close-ok must be the last frame that a peer sends.
    Source: G:connection close-connection; GS:2.2.4
    Evidence: the frames that the peer sends after its connection.close-ok
    Why it matters: The other peer closes its socket when connection.close-ok arrives. The other peer does not
    read any later frame.
    Silent when: the connection.close-ok was not captured. The rule reports the fault only once per
    connection.
    How to mend it: Make connection.close-ok the last frame of the connection: drop queued frames and
    stop all writers before connection.close-ok is written, then close the socket.
    """
    case.report_once(
        C_CLOSEOK_LAST,
        f"the peer sends {case.name} after its own connection.close-ok (packet {packet})",
        CERTAIN,
        {},
        [int(packet)],
    )


C_CLOSEOK_UNSOLICITED: Final = RULES.rule(
    "C-CLOSEOK-UNSOLICITED", "IMPLIED", "tier A", answer="connection.close 503"
)


def close_ok_of_nothing(case: Case091) -> None:
    """A peer sends connection.close-ok although the other peer has not sent connection.close.

    Demands: A peer may send connection.close-ok only as the answer to a connection.close.
    Source: G:connection close-connection
    Evidence: a connection.close-ok without an earlier connection.close of the other peer
    Why it matters: The other peer is not closing the connection, so the connection.close-ok is meaningless to
    the other peer.
    Silent when: the capture lacks octets of either peer.
    How to mend it: Send connection.close-ok only as the answer to a received connection.close. To end a
    connection, send connection.close and wait for connection.close-ok.
    """
    case.report(
        C_CLOSEOK_UNSOLICITED,
        "the peer sends connection.close-ok although the other peer has not sent connection.close",
    )


C_CLOSEOK_SOCKET: Final = RULES.rule(
    "C-CLOSEOK-SOCKET",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def socket_kept(case: Case091, waited: i64) -> None:
    """A peer that has received connection.close-ok keeps its socket open.

    Demands: A peer must close its socket soon after it has received connection.close-ok.
    Source: GS:2.2.4; XML:connection.close-ok (doc)
    Evidence: the time from connection.close-ok to the FIN of TCP
    Why it matters: The connection has ended, but its socket still occupies resources on both sides.
    Silent when: the capture lacks octets of the connection, or when less than two minutes have passed since
    the connection.close-ok.
    Only possible because: The clock of the capturing machine may have been set forward in the meantime, so
    that the waiting time looks too long.
    How to mend it: Close the socket as soon as connection.close-ok arrives. Check that error paths and
    garbage collection do not keep the socket of a closed connection open.
    """
    case.report(
        C_CLOSEOK_SOCKET,
        f"the peer keeps its TCP stream open for {waited / 1_000_000_000:.1f} s after connection.close-ok "
        "arrived",
        POSSIBLE,
        {"waited_ms": int(waited // 1_000_000)},
    )


C_CLOSE_METHOD_ID: Final = RULES.rule(
    "C-CLOSE-METHOD-ID",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def close_names_a_method_never_said(case: Case091, class_id: i64, method_id: i64) -> None:
    """A peer sends connection.close or channel.close with the class-id and method-id of a method that the
    other peer has not sent.

    Demands: The class-id and method-id in connection.close and channel.close must be those of the received
    method that caused the close. If no method caused the close, both must be 0.
    Source: XML:connection.close.class-id/method-id (docs); XML:channel.close.class-id/method-id
    Evidence: the methods that the closing peer has received from the other peer
    Why it matters: A developer who looks for the cause of the close looks in the wrong place.
    Silent when: the capture lacks octets of either peer, or when the frames of the other peer were broken.
    The rule is also silent when the class-id and method-id name a method of the class `connection` that the
    closing peer itself has sent, for example RabbitMQ's connection.tune.
    How to mend it: Set class-id and method-id of connection.close and channel.close to those of the received
    method that caused the error. If no received method caused the close, set both to 0.
    """
    case.report(
        C_CLOSE_METHOD_ID,
        f"{case.name} has class-id {class_id} and method-id {method_id}, but the other peer has not sent "
        "this method",
        evidence={"class_id": int(class_id), "method_id": int(method_id)},
    )


C_CLOSE_CODE_KNOWN: Final = RULES.rule(
    "C-CLOSE-CODE-KNOWN",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def unknown_reply_code(case: Case091, code: i64) -> None:
    """A peer sends a reply-code that the specification does not define, and that is not 312, which RabbitMQ
    adds.

    Demands: A reply-code must be one that the specification lists, or 312, which RabbitMQ adds.
    Source: XML domain reply-code; XML constants
    Evidence: the reply-code in connection.close, channel.close and basic.return
    Why it matters: If the reply-code is unknown, only the reply-text describes the error. Programs do not
    evaluate the reply-text and cannot react to the error.
    Silent when: another rule (T-REPLYCODE-NOTNULL) already reports reply-code 0, or when another rule
    (CH-CLOSE-SOFT-CODE) already reports the reply-code of a channel.close.
    How to mend it: Use the constants of the specification as reply-code. Put details of the
    implementation into reply-text. Send reply-code 200 (reply-success) for a normal close.
    """
    case.report(
        C_CLOSE_CODE_KNOWN,
        f"{case.name} has the unknown reply-code {code}",
        evidence={"reply_code": int(code)},
    )


C_CLOSE_HARD_CODE: Final = RULES.rule(
    "C-CLOSE-HARD-CODE",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def connection_closed_by_a_soft_error(case: Case091, code: i64) -> None:
    """A peer closes the connection with the reply-code of an error that should end only a channel.

    Demands: The reply-code in connection.close must be the code of a hard error, or 200 for a normal close.
    Source: GS:4.8.1; XML constants class=hard-error
    Evidence: the reply-code in connection.close
    Why it matters: An error of one channel also ends all other channels of the connection.
    Silent when: the connection.close contains the class-id of the class `connection`, or when the connection
    is not open yet. A peer cannot report an error of the connection on a channel. For example, RabbitMQ
    reports a failed login with reply-code 403 (access-refused) in connection.close.
    How to mend it: Answer a soft error with channel.close on the channel where the error occurred. If the
    whole connection really has to end, send connection.close with a hard-error code.
    """
    case.report(
        C_CLOSE_HARD_CODE,
        f"connection.close has reply-code {reply_code(int(code))}, but this is the code of a soft error, "
        "which may close only a channel",
        evidence={"reply_code": int(code)},
    )


# Which frames these rules judge


def judge_frame(case: Case091) -> bool:
    """Any frame except a heartbeat, after one of the two peers has closed. False: its sender may send nothing
    more.
    """
    view = case.view
    by_client = case.me.by_client
    done = view.ending.client_done if by_client else view.ending.server_done
    if done > 0:
        frame_after_close_ok(case, done)
        return False
    own = view.ending.by_client if by_client else view.ending.by_server
    body = case.record.frame.body
    if own is None or isinstance(body, ConnectionCloseOk):
        return True
    if isinstance(body, Method) and not isinstance(body, UnknownMethod):
        request = _late_request(case, body)
        if request > 0:
            answer_after_close(case, own, request)
            return False
        if not case.me.whole and body.definition().name.endswith("-ok"):
            return False  # which of the two rules it breaks is not known
    frame_after_close(case, own)
    return False


def judge_close(case: Case091, method: ConnectionClose) -> None:
    """A connection.close."""
    code = method.reply_code
    judge_code(case, code)
    if code in _SOFT and method.class_id != _CLASS_CONNECTION and case.view.state == OPEN:
        connection_closed_by_a_soft_error(case, code)
    judge_method_id(case, method.class_id, method.method_id)


def judge_close_ok(case: Case091) -> None:
    """A connection.close-ok."""
    view = case.view
    asked = view.ending.by_server if case.me.by_client else view.ending.by_client
    if asked is None and case.me.whole:
        close_ok_of_nothing(case)


def judge_code(case: Case091, code: i64) -> None:
    """The reply-code of a close, or of a returned message."""
    if code > 0 and code != _NORMAL and code not in _SOFT and code not in _HARD:
        unknown_reply_code(case, code)


def judge_method_id(case: Case091, class_id: i64, method_id: i64) -> None:
    """The method that a close, of the connection or of a channel, names as its cause."""
    if class_id <= 0 or method_id <= 0 or not case.me.whole or _heard_broken(case):
        return
    view = case.view
    heard = view.said_by_server.numbers if case.me.by_client else view.said_by_client.numbers
    if int(class_id << 16 | method_id) in heard:
        return
    said = view.said_by_client.numbers if case.me.by_client else view.said_by_server.numbers
    if class_id == _CLASS_CONNECTION and int(class_id << 16 | method_id) in said:
        return
    close_names_a_method_never_said(case, class_id, method_id)


def judge_end(
    case: Case091, reason: str, acknowledged: i64, after_peer: bool, excused: bool, doubted: bool
) -> None:
    """The end of a peer's stream, to which `case.spot` points.

    reason: `fin`, `rst`, or what else ended the knowledge of the stream. acknowledged: how many octets of the
    other stream this peer had acknowledged, -1 if unknown. after_peer: whether this peer had received the end
    of the other stream before. excused: whether this peer owes no close, because the other peer was silent
    for too long, or because another finding reports the end. doubted: whether the other peer may have been
    silent for too long, because the clock was set back or stood still.
    """
    me = case.me
    spot = case.spot
    if spot is None or not me.whole or (reason != "fin" and reason != "rst"):
        return
    if acknowledged > case.peer.sent_end:
        return  # not all that it had received was captured
    view = case.view
    by_client = me.by_client
    own = view.ending.by_client if by_client else view.ending.by_server
    theirs = view.ending.by_server if by_client else view.ending.by_client
    answered = (view.ending.client_done if by_client else view.ending.server_done) > 0
    if own is not None and (view.ending.server_done if by_client else view.ending.client_done) > 0:
        waited = spot.time - view.ending.done_time
        if me.stalls.free(view.ending.done_time, spot.time) > SOCKET_PATIENCE:
            socket_kept(case, waited)
    if after_peer:
        return
    is_open = view.state == OPEN
    certainty: i64 = CERTAIN if reason == "fin" and is_open and acknowledged >= 0 else POSSIBLE
    if theirs is not None:
        if not answered and own is None:
            close_not_answered(case, theirs, certainty)
        elif not answered:
            crossing_close_not_answered(case, theirs)
    elif own is None and is_open and not excused and not _heard_broken(case):
        stream_ended_without_close(case, certainty, doubted)


# Faults of types that leave the rest of a frame unreadable.
_UNREADABLE: Final = ("T-TABLE-TAG", "T-TABLE-LEN", "T-LENGTH-BOUNDS")


def note_framing(case: Case091) -> None:
    """Findings were made. After broken frames nobody owes their sender a close."""
    for finding in case.findings[len(case.findings) - case.found :]:
        code = finding.rule.partition("/")[2]
        if code.startswith("F-") or code in _UNREADABLE:
            if finding.peer == case.me.peer and case.me.broken_at < 0:
                case.me.broken_at = case.record.frame.offset


def _heard_broken(case: Case091) -> bool:
    """Whether broken frames of the other peer may have reached this peer."""
    return 0 <= case.peer.broken_at < case.me.knowledge.could


def _late_request(case: Case091, method: Method) -> i64:
    """The packet of the request that arrived after this peer's close and that this peer's method answers,
    else 0.
    """
    me = case.me
    if not me.whole or me.closed_could < 0:
        return 0
    channel = case.view.channel(case.record.frame.channel)
    if channel is None:
        return 0
    at = channel.requests.awaited(me.by_client, method.definition().name)
    if at < 0:
        return 0
    request = channel.requests.to_answer(me.by_client)[at]
    return request.packet if request.end > me.closed_could else 0
