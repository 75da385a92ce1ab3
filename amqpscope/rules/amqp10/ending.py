"""What is missing when a stream ends: closes, answers, the rest of a frame.

A missing frame is never certain here: no capture shows what an endpoint was about to send when its stream
ended. An endpoint owes an answer from the time at which its frames show that it read the question, until the
session or the connection ends. The specification sets no time limit; the rules report an answer as missing
when the endpoint sent other frames for a minute (`ANSWER_PATIENCE`).
"""

from typing import Final

from amqpscope.limits import ANSWER_PATIENCE, CLOSE_PATIENCE
from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10 import negotiation, sasl
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.idle import stream_ended_after_silence
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.states import (
    ATTACH_RCVD,
    ATTACHED,
    BEGIN_RCVD,
    DETACH_RCVD,
    DETACHED,
    END_RCVD,
    MAPPED,
)
from amqpscope.tracking.knowledge import CONNECTION
from dissectors.wire import i64

__all__ = ["judge_end", "judge_end_of_session"]

RULES: Final = Rules("amqp10/ending")


C_CLOSE_SENT: Final = RULES.rule(
    "C-CLOSE-SENT", "MUST", "keyword", warning="A capture can suggest this fault but never prove it."
)


def stream_ended_without_close(case: Case10) -> None:
    """A peer ends its TCP stream without sending close.

    Demands: A peer must send close before it ends the connection.
    Source: transport.xml section connections > Closing a Connection; transport.xml section performatives >
    close
    Evidence: a FIN or RST without a close in the same direction
    Why it matters: The other peer cannot tell an orderly end of the connection from a crash, and gets no
    reason for the end.
    Silent when: the peer had not sent open, when octets were not captured, or when the other peer ended its
    stream first. The rule is also silent when the two peers sent different protocol headers and therefore
    have to end their streams.
    Possible because: The {peer} may have sent its close after the end of the capture.
    How to mend it: Send close, with an error if there is one, as the last frame before you end the TCP
    stream. Applications should close the connection through the library before the process exits.
    """
    peer = case.peer
    if peer.layer and peer.layer != case.me.layer:
        return
    case.report(
        C_CLOSE_SENT,
        "the stream ends without close",
        POSSIBLE,
        {"connection_state": case.me.state},
    )


C_CLOSE_ANSWER: Final = RULES.rule("C-CLOSE-ANSWER", "MUST", "keyword")


def close_never_answered(case: Case10) -> None:
    """A peer ends its TCP stream without answering the other peer's close.

    Demands: A peer that receives close must answer with its own close before it ends the TCP connection.
    Source: transport.xml section connections > Closing a Connection, Connection State Diagram
    Evidence: a close in one direction, and a FIN without an earlier close in the other direction
    Why it matters: The other peer waits for the answer. If the other peer does not notice the end of the
    stream, the other peer waits until its own time-out. The other peer cannot tell whether its close was
    processed.
    Silent when: the peer that ends its stream had not sent open, or when octets were not captured.
    Possible because: The {peer} may have sent its close after the end of the capture.
    How to mend it: When a close arrives, send your own close before you end the TCP stream. Flush the output
    buffer before you close the socket.
    """
    packet = int(case.peer.closing.packet)
    case.report(
        C_CLOSE_ANSWER,
        f"the peer ends its stream without answering the other peer's close in packet {packet}",
        POSSIBLE,
        {"connection_state": case.me.state},
        [packet],
    )


C_CLOSE_READON: Final = RULES.rule("C-CLOSE-READON", "SHOULD", "keyword")


def reset_while_the_answer_was_awaited(case: Case10) -> None:
    """A peer that has sent close resets the TCP connection before the other peer's close has arrived.

    Demands: After its close, a peer should read until the other peer's close arrives.
    Source: transport.xml section connections > Closing a Connection
    Evidence: an RST between the two closes
    Why it matters: The reset may discard octets that the other peer has not read yet, for example the error
    in the close.
    Silent when: the peer had received the other peer's close, when the other peer had ended its stream, or
    when octets were not captured.
    Only possible because: The capture does not show whether the program or the host of the {peer} reset the
    connection.
    How to mend it: After you send close, go on reading and discard what arrives until the other peer's close
    comes or a time-out passes. Do not close the socket earlier, because closing a socket with unread input
    can cause a reset.
    """
    case.report(
        C_CLOSE_READON,
        "the peer resets the connection after its close without waiting for the other peer's close",
        POSSIBLE,
        {"connection_state": case.me.state},
        [int(case.me.closing.packet)],
    )


C_CLOSE_TIMEOUT: Final = RULES.rule("C-CLOSE-TIMEOUT", "SHOULD", "keyword")


def waited_too_long_for_the_answer(case: Case10, waited: int) -> None:
    """A peer that has sent close still waits for the other peer's close after five minutes or more.

    Demands: A peer that sent close should wait only a limited time for the other peer's close.
    Source: transport.xml section connections > Closing a Connection
    Evidence: the time between the close and the FIN
    Why it matters: The other peer may be gone. The unusable connection stays open and keeps its socket and
    memory occupied.
    Silent when: the other peer has sent close or ended its stream, or when the peer has waited for less than
    five minutes.
    Only possible because: The specification gives no duration, so each peer decides how long it waits.
    How to mend it: Start a timer when you send close. If this timer expires before the other peer's close
    arrives, close the TCP connection.
    """
    case.report(
        C_CLOSE_TIMEOUT,
        f"the peer sent close {waited // 1_000_000_000} s ago and still waits for the other peer's close, "
        "instead of closing the TCP connection",
        POSSIBLE,
        {"waited_ms": waited // 1_000_000},
        [int(case.me.closing.packet)],
    )


F_SIZE_TOTAL: Final = RULES.rule(
    "F-SIZE-TOTAL",
    "MUST",
    "keyword",
    warning="A capture can suggest this fault but never prove it.",
    answer="amqp:connection:framing-error",
)


def stream_ended_inside_a_frame(case: Case10) -> None:
    """A peer ends its TCP stream with a FIN in the middle of a frame.

    Demands: The size field must count exactly the octets of frame header, extended header and body.
    Source: transport.xml section framing > Frame Layout
    Evidence: octets after the frame that are not a plausible frame header, or a stream that ends within the
    frame
    Why it matters: The size in the frame header does not match the octets that were sent. The receiver cannot
    process the incomplete frame and loses its content.
    Silent when: the peer reset the stream, or when the capture ended before the stream ended.
    Possible because: The {peer} may have stopped in the middle of the frame for a reason other than a wrong
    frame size.
    How to mend it: Compute the frame size from the octets that you really write: frame header, extended
    header and body. Write the whole frame before you end the stream.
    """
    me = case.me
    if me.stream.unfinished is not None:
        case.spot = me.stream.unfinished
        case.report(F_SIZE_TOTAL, me.stream.unfinished_reason, POSSIBLE)


S_BEGIN_REMOTESET: Final = RULES.rule(
    "S-BEGIN-REMOTESET", "MUST", "keyword", usual_answer="amqp:invalid-field"
)


def begin_never_answered_but_another_begun(case: Case10) -> None:
    """A peer begins a new session of its own instead of answering the other peer's begin.

    Demands: In a begin that answers another begin, the field remote-channel must be the channel of that other
    begin.
    Source: transport.xml section sessions > Establishing a Session; transport.xml section performatives >
    begin.remote-channel
    Evidence: a begin without answer, and a begin of the other peer with a null remote-channel
    Why it matters: The session that the other peer asked for stays half open. The other peer cannot use this
    session and waits for the answer.
    Silent when: a later begin of the peer answered the other peer's begin. The rule is also silent when the
    other peer answered the begin that the peer sent, because this answer shows that the peer's begin began a
    new session. The rule is also silent when octets of either peer were not captured.
    Only possible because: Two sessions may begin at the same time, so a begin without remote-channel may be
    no answer at all.
    How to mend it: When you answer a begin, set remote-channel to the channel on which that begin arrived.
    Leave remote-channel unset only in a begin that starts a new session.
    """
    me = case.me
    spot = me.channels.unasked
    if spot is None or not me.whole:
        return
    channel = int(spot.channel)
    own = me.sessions.get(channel) or me.channels.ended.get(channel)
    if own is not None and own.peer_begin is not None:
        return
    for asked in me.peer_sessions.values():
        if asked.mapping.peer_begin_end == me.channels.unasked_end and asked.begin is None:
            case.spot = spot
            case.report(
                S_BEGIN_REMOTESET,
                "the begin has no remote-channel and so begins another session, but the peer has still not "
                f"answered the other peer's begin in packet {asked.mapping.peer_begin_packet}",
                POSSIBLE,
                {"session_state": asked.state},
                [int(asked.mapping.peer_begin_packet)],
            )
            return


S_BEGIN_ANSWER: Final = RULES.rule("S-BEGIN-ANSWER", "MUST", "definition")


def begin_never_answered(case: Case10, asked: SessionEnd) -> None:
    """A peer reads the other peer's begin and does not answer this begin.

    Demands: A peer must answer a begin with a begin, or close the connection.
    Source: transport.xml section sessions > Establishing a Session
    Evidence: a begin that has no answer when the connection ends
    Why it matters: The other peer cannot use the session and waits for an answer that does not come.
    Silent when: the peer may not yet have read the begin. The rule is also silent when the other peer ended
    the session or the connection, or when octets were not captured.
    Possible because: The {peer} may have sent its answer after the end of the capture.
    How to mend it: Answer every begin with a begin of your own. In your own begin, set remote-channel to the
    channel of the begin that you answer. If you cannot accept the session, close the connection with an
    error, or answer with a begin and then send an `end`.
    """
    packet = int(asked.mapping.peer_begin_packet)
    case.report(
        S_BEGIN_ANSWER,
        f"the peer has still not answered the other peer's begin in packet {packet}",
        POSSIBLE,
        {"session_state": asked.state},
        [packet],
    )


S_END_ANSWER: Final = RULES.rule("S-END-ANSWER", "MUST", "definition")


def end_never_answered(case: Case10, session: SessionEnd) -> None:
    """A peer reads the other peer's `end` and does not answer with its own `end`.

    Demands: When one peer sends an `end`, the other peer must answer with its own `end`, unless the
    connection is closed first.
    Source: transport.xml section sessions > Ending a Session, Session States
    Evidence: an `end` of one peer that the other peer has not answered with its own `end` before the
    connection ends
    Why it matters: The channel stays in use. The other peer waits for the answer and cannot release the
    session.
    Silent when: the peer may not yet have read the `end`, when the other peer closed the connection, or when
    octets were not captured.
    Possible because: The {peer} may have sent its answer after the end of the capture.
    How to mend it: Answer every `end` with your own `end` on the session's outgoing channel. Answer even an
    `end` that carries an error, and answer even if links are still attached.
    """
    case.session = session
    case.report(
        S_END_ANSWER,
        "the peer has still not answered the `end` that the other peer sent on channel "
        f"{session.peer_channel}",
        POSSIBLE,
        {"session_state": session.state},
    )


L_ATTACH_ANSWER: Final = RULES.rule("L-ATTACH-ANSWER", "MUST", "definition")


def attach_never_answered(case: Case10, link: LinkEnd) -> None:
    """A peer reads the other peer's attach and does not answer this attach.

    Demands: A peer must answer an attach with an attach of the same name and the opposite role, even to
    refuse the link.
    Source: transport.xml section links > Establishing or Resuming a Link
    Evidence: an attach that has no answer when the session ends
    Why it matters: The other peer waits and cannot use the link. A peer that refuses a link must
    first answer with an attach, and then send a detach.
    Silent when: the peer may not yet have read the attach. The rule is also silent when the other peer
    detached the link or ended the session or connection. The rule is also silent when octets were not
    captured.
    Possible because: The {peer} may have sent its answer after the end of the capture.
    How to mend it: Answer every attach with an attach of the same name and the opposite role. To refuse the
    link, answer with an attach whose own terminus (source or target) is null, and then send a detach with
    closed=true and an error.
    """
    case.link = link
    case.report(
        L_ATTACH_ANSWER,
        "the peer has still not answered the other peer's attach of the link",
        POSSIBLE,
        {"link_state": link.state},
    )


L_CLOSE_ANSWER: Final = RULES.rule("L-CLOSE-ANSWER", "MUST", "definition")


def detach_never_answered(case: Case10, link: LinkEnd) -> None:
    """A peer reads a detach that has closed=true, and does not answer with a detach that also has
    closed=true.

    Demands: A peer must answer a detach that has closed=true by a detach that also has closed=true.
    Source: transport.xml section links > Closing a Link
    Evidence: the closed flags of both peers' detaches
    Why it matters: Without an answer, the handle stays in use and the other peer waits. An answer with
    closed=false leaves the link half closed, and the other peer may wait for a detach with closed=true.
    Silent when: the peer may not yet have received the detach. The rule is also silent when the peer attached
    the link again, as the specification requires after two detaches have crossed. The rule is also silent
    when the other peer ended the session or connection before any answer. The rule is also silent when octets
    were not captured.
    Possible because: The {peer} may have sent its answer after the end of the capture.
    How to mend it: Answer a detach with closed=true by a detach with closed=true and destroy the link
    endpoint. Copy the closed flag from the received detach instead of sending the default `false`.
    """
    case.link = link
    if link.attachment.half_closed is not None:
        case.spot = link.attachment.half_closed
    case.report(
        L_CLOSE_ANSWER,
        "the peer has still not answered the other peer's detach with closed=true"
        if link.attachment.half_closed is None
        else "the other peer's detach has closed=true, but the peer's answering detach has closed=false",
        POSSIBLE,
        {"link_state": link.state},
    )


L_ATTACH_ROLE: Final = RULES.rule("L-ATTACH-ROLE", "MUST", "definition", usual_answer="amqp:invalid-field")


def attach_answered_in_the_same_role(case: Case10, link: LinkEnd) -> None:
    """A peer answers an attach only with an attach of the same name and the same role.

    Demands: A peer must answer an attach with an attach of the opposite role.
    Source: transport.xml section links > Establishing or Resuming a Link
    Evidence: the names and roles of both attaches
    Why it matters: Two senders or two receivers do not form a link. Each peer waits for the other peer, and
    no message flows.
    Silent when: the peer later answered with the opposite role, or when the other peer withdrew its attach.
    The rule is also silent when the peer may not yet have read the attach, or when less than a minute has
    passed since this attach. The rule is also silent when octets were not captured.
    Only possible because: The attach may belong to a second link that the peers set up with the same name in
    the other direction.
    How to mend it: Answer an attach of a sender (role=false) with role=true, and an attach of a receiver
    (role=true) with role=false. Do not copy the role of the received attach into the answer.
    """
    case.link = link
    case.spot = link.attachment.misanswered
    case.report(
        L_ATTACH_ROLE,
        "the attach has the same name and the same role as the other peer's attach, but an answer must "
        "have the opposite role",
        POSSIBLE,
        {"link_state": link.state},
    )


L_CLOSE_CROSS: Final = RULES.rule("L-CLOSE-CROSS", "MUST", "keyword")


def crossing_detach_never_closed(case: Case10, link: LinkEnd) -> None:
    """A peer sends a detach with closed=false that crosses the other peer's detach with closed=true, and
    then does not attach the link again to close it.

    Demands: If a peer sends detach with closed=false while the other peer's detach with closed=true is on its
    way, the peer must attach the link again. After the attach, the peer must send a detach with closed=true.
    Source: transport.xml section links > Closing a Link
    Evidence: a detach with closed=true that crosses a detach with closed=false, and the frames after the two
    detaches
    Why it matters: The other peer waits to learn that the link is closed at both ends. The other peer may
    keep the link's state and name in use.
    Silent when: the peer may not yet have read the other peer's detach, or when the other peer ended the
    session or connection. The rule is also silent when less than a minute has passed since that detach, or
    when octets were not captured.
    Possible because: The {peer} may have sent its answer after the end of the capture.
    How to mend it: When a detach with closed=true arrives after you sent a detach with closed=false, send an
    attach with the same name and then a detach with closed=true.
    """
    case.link = link
    case.report(
        L_CLOSE_CROSS,
        "the peer sent a detach with closed=false while the other peer's detach with closed=true was on "
        "its way, but did not attach the link again to send a detach with closed=true",
        POSSIBLE,
        {"link_state": link.state},
    )


def judge_end_of_session(case: Case10, session: SessionEnd) -> None:
    """Judge the answers that a peer still owed on the links of a session that ends."""
    if not session.whole:
        return
    me = case.me
    spot = case.spot
    must = me.knowledge.must_of(session.channel)
    for link in session.links.values():
        if link.attachment.half_closed is not None and link.whole:
            detach_never_answered(case, link)
        elif link.attachment.misanswered is not None and link.state == ATTACH_RCVD and link.whole:
            waited = me.stalls.free(link.attachment.asked, me.stream.last_time)
            read = link.attachment.peer_end <= must and waited >= ANSWER_PATIENCE
            if read and link.attach is None and session.mapping.peer_end_end == UNKNOWN:
                attach_answered_in_the_same_role(case, link)
    case.spot = spot
    case.link = None


L_DRAIN_ADVANCE: Final = RULES.rule("L-DRAIN-ADVANCE", "MUST", "keyword", by="sender")


def link_never_drained(case: Case10, link: LinkEnd) -> None:
    """A sender reads a flow with drain=true, but neither uses up the link-credit nor sends a flow that gives
    up the rest of the link-credit.

    Demands: When a receiver asks to drain the link and the sender has nothing left to send, the sender must
    raise its delivery-count until no link-credit is left. After raising its delivery-count, the sender must
    send a flow.
    Source: transport.xml section links > Flow Control
    Evidence: a receiver's flow with drain=true, and the sender's later flows and transfers
    Why it matters: The receiver waits for the flow which shows that the link is drained. In the receiving
    application, a call that waits for a message may block although the call has a time-out.
    Silent when: the sender may not yet have read the flow, or when the link was detached. The rule is also
    silent when the other peer ended the session or connection, or when octets were not captured.
    Possible because: The {peer} may have sent its answer after the end of the capture.
    How to mend it: When a flow with drain=true arrives, send the messages that are available. If link-credit
    is left, advance delivery-count by that link-credit, set link-credit to 0 and send a flow.
    """
    case.link = link
    case.report(
        L_DRAIN_ADVANCE,
        "the sender has still not drained the link, although the receiver set drain=true",
        POSSIBLE,
        {"link_credit": int(link.credit.limits.newest() - link.credit.count), "drain": True},
    )


S_FLOW_ECHO: Final = RULES.rule("S-FLOW-ECHO", "SHOULD", "definition")


def echo_never_answered(case: Case10, packet: i64) -> None:
    """A peer reads a flow with echo=true and does not send a flow in return.

    Demands: If a peer receives a flow that has echo=true, the peer should send a flow for the same link or
    session.
    Source: transport.xml section performatives > flow.echo; transport.xml section links > Stopping a Link
    Evidence: a flow with echo=true, and no later flow of the other peer
    Why it matters: The other peer needs the current state of the session or link. Without an answering flow,
    the other peer works with outdated credit and counts.
    Silent when: the peer may not yet have read the flow, or when less than a minute has passed since the
    flow. The rule is also silent when the link or session is over, or when octets were not captured.
    Only possible because: The specification does not say how soon the answer is due.
    How to mend it: When a flow has echo=true, send a flow for the same link or session at the next
    opportunity. Include the handle if the received flow has a handle. Leave the handle out if the received
    flow is about the whole session.
    """
    case.report(
        S_FLOW_ECHO,
        f"the flow in packet {packet} has echo=true, but the peer has not answered with a flow",
        POSSIBLE,
        {"echo": True},
        [int(packet)],
    )


def _judge_answers(case: Case10) -> None:
    """Judge frames that stayed without an answer for long on an open connection.

    A begin and an end change the channels of the connection, so what any session proves counts for them. All
    else is up to its session.
    """
    me = case.me
    must = me.knowledge.must_of(CONNECTION)
    since = me.stalls.reach(me.stream.last_time, ANSWER_PATIENCE)
    for session in me.peer_sessions.values():
        if (
            session.begin is None
            and session.state == BEGIN_RCVD
            and me.channels.unasked_end != session.mapping.peer_begin_end
        ):
            if session.mapping.peer_begin_end <= must and session.mapping.asked <= since:
                begin_never_answered(case, session)
    for session in me.sessions.values():
        if (
            session.state == END_RCVD
            and session.mapping.peer_end_end <= must
            and session.mapping.asked <= since
        ):
            end_never_answered(case, session)
        if session.state != MAPPED or not session.whole:
            continue
        case.session = session
        read = me.knowledge.must_of(session.channel)
        if session.echo.end >= 0 and session.echo.end <= read and session.echo.time <= since:
            echo_never_answered(case, session.echo.packet)
        for link in session.links.values():
            if not link.whole:
                continue
            if link.state == ATTACHED and 0 <= link.echo.end <= read and link.echo.time <= since:
                case.link = link
                echo_never_answered(case, link.echo.packet)
            if link.attachment.asked > since:
                continue
            if link.state == ATTACH_RCVD and link.handle == UNKNOWN and link.attachment.peer_end <= read:
                attach_never_answered(case, link)
            elif (
                link.state == DETACH_RCVD
                and link.attachment.peer_closed
                and link.attachment.peer_detach_end <= read
            ):
                detach_never_answered(case, link)
            elif (
                link.state == DETACHED
                and link.attachment.peer_closed
                and not link.attachment.closed
                and link.attach is not None
            ):
                if (
                    link.attachment.half_closed is None
                    and link.attachment.peer_detach_end <= read
                    and link.attachment.times > 0
                ):
                    crossing_detach_never_closed(case, link)
            elif (
                link.sender and link.credit.drain and link.state == ATTACHED and link.credit.drain_end <= read
            ):
                if link.credit.limits.newest() > link.credit.count:
                    link_never_drained(case, link)


def judge_end(case: Case10, reason: str, after_peer: bool) -> None:
    """The rules about the end of a peer's stream, to which `case.spot` points.

    reason: `fin`, `rst`, or what else ended what is known of it (`capture`). after_peer: the other side had
    ended its stream when this one did.
    """
    me = case.me
    peer = case.peer
    spot = case.spot
    if reason == "fin" or reason == "rst":
        if me.open is not None and not me.closing.sent and me.whole:
            if me.closing.received:
                close_never_answered(case)
            elif not after_peer and not stream_ended_after_silence(case):
                stream_ended_without_close(case)
    if reason == "rst" and not after_peer and me.whole:
        if me.closing.sent and not me.closing.received:
            reset_while_the_answer_was_awaited(case)
        sasl.reset_after_failure(case)
    negotiation.judge_end(case, reason, after_peer)
    if (
        spot is not None
        and me.closing.sent
        and not peer.closing.sent
        and not after_peer
        and me.whole
        and peer.whole
    ):
        waited = int(spot.time - me.closing.time)
        if me.stalls.free(me.closing.time, spot.time) >= CLOSE_PATIENCE:
            waited_too_long_for_the_answer(case, waited)
    if reason == "fin":
        stream_ended_inside_a_frame(case)
    begin_never_answered_but_another_begun(case)
    case.spot = spot
    for session in me.sessions.values():
        case.session = session
        judge_end_of_session(case, session)
    case.session = None
    if reason == "capture" and me.whole and peer.whole and not peer.closing.sent and not me.closing.sent:
        _judge_answers(case)
