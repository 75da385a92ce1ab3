"""What is missing when a stream ends: closes, answers, the rest of a frame.

Nothing absent is certain here: what an endpoint was about to say when it ended, no capture shows. An answer
is owed once the endpoint has shown that it read what it has to answer, and as long as the session and the
connection last: who ends these needs to answer nothing else. How long it may take nobody says; it is missed
when the endpoint went on for a minute without it (`ANSWER_PATIENCE`).
"""

from amqpscope.limits import ANSWER_PATIENCE, CLOSE_PATIENCE
from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10 import negotiation, sasl
from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.idle import stream_ended_after_silence
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from dissectors.wire import i64

__all__ = ["judge_end", "judge_end_of_session"]


def stream_ended_without_close(case: Case) -> None:
    """A peer ended its TCP stream without close.

    Why it matters: the other side cannot tell an orderly end from a crash.
    Silent when: the peer had not sent open, octets were not captured, the other side ended first, or its
    protocol header was another one: then ending the stream is what is asked for.
    Possible because: No capture shows what the {peer} would still have said when its stream, or the capture,
    ended.
    """
    peer = case.peer
    if peer.layer and peer.layer != case.me.layer:
        return
    case.report(
        "amqp10/C-CLOSE-SENT",
        "the stream ends without close",
        POSSIBLE,
        {"connection_state": case.me.state},
    )


def close_never_answered(case: Case) -> None:
    """A peer ended its TCP stream without answering the other one's close.

    Why it matters: the other side waits for the answer until a time-out.
    Silent when: the peer had not sent open, or octets were not captured.
    Possible because: No capture shows what the {peer} would still have said when its stream, or the capture,
    ended.
    """
    packet = int(case.peer.close_packet)
    case.report(
        "amqp10/C-CLOSE-ANSWER",
        f"the stream ends, the peer's close (packet {packet}) is not answered",
        POSSIBLE,
        {"connection_state": case.me.state},
        [packet],
    )


def reset_while_the_answer_was_awaited(case: Case) -> None:
    """A peer resets the connection after its close, before the other one's came.

    Why it matters: what the other side has not read yet, such as the reason in the close, may be lost.
    Silent when: the other side's close was received, or it had ended its stream, or octets were not captured.
    Only possible because: Whose program or host reset it does not show.
    """
    case.report(
        "amqp10/C-CLOSE-READON",
        "the connection is reset after close, before the peer's",
        POSSIBLE,
        {"connection_state": case.me.state},
        [int(case.me.close_packet)],
    )


def waited_too_long_for_the_answer(case: Case, waited: int) -> None:
    """A peer waits for the answer to its close without end.

    Why it matters: the other side may be gone; a connection that nobody will use stays.
    Silent when: the other side has closed or ended its stream, or it was less than five minutes.
    Only possible because: How long is for the peer to say.
    """
    case.report(
        "amqp10/C-CLOSE-TIMEOUT",
        f"{waited // 1_000_000_000} s after close the connection still waits for the peer's",
        POSSIBLE,
        {"waited_ms": waited // 1_000_000},
        [int(case.me.close_packet)],
    )


def stream_ended_inside_a_frame(case: Case) -> None:
    """A peer ended its stream in order, inside a frame.

    Why it matters: the size in the frame's header is not that of what was sent.
    Silent when: the stream was reset, or only the capture ended.
    Possible because: The {peer} may have been stopped in the middle of the frame.
    """
    me = case.me
    if me.unfinished is not None:
        case.spot = me.unfinished
        case.report("amqp10/F-SIZE-TOTAL", me.unfinished_reason, POSSIBLE)


def begin_never_answered_but_another_begun(case: Case) -> None:
    """A peer began a session of its own instead of answering the other one's begin.

    Why it matters: the session that was asked for stays half open.
    Silent when: the begin was answered after all, or the peer's own one was, so that it did begin a session,
    or octets of either peer were not captured.
    Only possible because: Two sessions may begin at once: this begin may not be meant as the answer.
    """
    me = case.me
    spot = me.unasked
    if spot is None or not me.whole:
        return
    channel = int(spot.channel)
    own = me.sessions.get(channel) or me.ended.get(channel)
    if own is not None and own.peer_begin is not None:
        return
    for asked in me.peer_sessions.values():
        if asked.peer_begin_end == me.unasked_end and asked.begin is None:
            case.spot = spot
            case.report(
                "amqp10/S-BEGIN-REMOTESET",
                "begin has no remote-channel, and the peer's begin "
                f"(packet {asked.peer_begin_packet}) is never answered",
                POSSIBLE,
                {"session_state": asked.state},
                [int(asked.peer_begin_packet)],
            )
            return


def begin_never_answered(case: Case, asked: SessionEnd) -> None:
    """A peer read a begin and never answered it.

    Why it matters: the other side cannot use the session, and waits.
    Silent when: it may not have read it, the other side ended the session or the connection, or octets were
    not captured.
    Possible because: No capture shows what the {peer} would still have said when its stream, or the capture,
    ended.
    """
    packet = int(asked.peer_begin_packet)
    case.report(
        "amqp10/S-BEGIN-ANSWER",
        f"the begin in packet {packet} is never answered",
        POSSIBLE,
        {"session_state": asked.state},
        [packet],
    )


def end_never_answered(case: Case, session: SessionEnd) -> None:
    """A peer read an end and never answered it.

    Why it matters: the channel stays in use.
    Silent when: it may not have read it, the other side closed the connection, or octets were not captured.
    Possible because: No capture shows what the {peer} would still have said when its stream, or the capture,
    ended.
    """
    case.session = session
    case.report(
        "amqp10/S-END-ANSWER",
        f"the peer's end on channel {session.peer_channel} is never answered",
        POSSIBLE,
        {"session_state": session.state},
    )


def attach_never_answered(case: Case, link: LinkEnd) -> None:
    """A peer read an attach and never answered it.

    Why it matters: also a link that is refused is attached first; the other side waits.
    Silent when: it may not have read it, the other side detached the link or ended the session or connection,
    or octets were not captured.
    Possible because: No capture shows what the {peer} would still have said when its stream, or the capture,
    ended.
    """
    case.link = link
    case.report(
        "amqp10/L-ATTACH-ANSWER",
        "the peer's attach of the link is never answered",
        POSSIBLE,
        {"link_state": link.state},
    )


def detach_never_answered(case: Case, link: LinkEnd) -> None:
    """A peer read a closing detach and never answered it with one that closes.

    Why it matters: without an answer the handle stays in use and the other side waits; one that does not
    close leaves the link half there, and the other side may wait for the rest.
    Silent when: it may not have received it, it attached the link again (what crossing detaches ask for), the
    other side ended the session or connection before any answer, or octets were not captured.
    Possible because: No capture shows what the {peer} would still have said when its stream, or the capture,
    ended.
    """
    case.link = link
    if link.half_closed is not None:
        case.spot = link.half_closed
    case.report(
        "amqp10/L-CLOSE-ANSWER",
        "the peer's closing detach of the link is never answered"
        if link.half_closed is None
        else "the peer's closing detach is answered by one that does not close",
        POSSIBLE,
        {"link_state": link.state},
    )


def attach_answered_in_the_same_role(case: Case, link: LinkEnd) -> None:
    """A peer answered an attach by one of the same name in the same role, and by no other.

    Why it matters: two senders, or two receivers, are no link; each waits for the other.
    Silent when: the attach was answered after all, was withdrawn, or may not have been read, less than a
    minute passed, or octets were not captured.
    Only possible because: A second link may have the name, in the other direction.
    """
    case.link = link
    case.spot = link.misanswered
    case.report(
        "amqp10/L-ATTACH-ROLE",
        "the attach has the name and the role of the peer's, which is never answered",
        POSSIBLE,
        {"link_state": link.state},
    )


def closing_detach_never_told(case: Case, link: LinkEnd) -> None:
    """A peer detached a link while the other one closed it, and never told that it closed it, too.

    Why it matters: the other side waits to learn that the link is gone; by an attach and a closing detach it
    would.
    Silent when: the other side's detach may not have been read, it ended the session or connection, less than
    a minute passed, or octets were not captured.
    Possible because: No capture shows what the {peer} would still have said when its stream, or the capture,
    ended.
    """
    case.link = link
    case.report(
        "amqp10/L-CLOSE-CROSS",
        "the peer's closing detach crossed one that does not close; no attach and closing detach followed",
        POSSIBLE,
        {"link_state": link.state},
    )


def judge_end_of_session(case: Case, session: SessionEnd) -> None:
    """What a peer owed on the links of a session that it ends, or that is over."""
    if not session.whole:
        return
    me = case.me
    spot = case.spot
    for link in session.links.values():
        if link.half_closed is not None and link.whole:
            detach_never_answered(case, link)
        elif link.misanswered is not None and link.state == "ATTACH_RCVD" and link.whole:
            waited = me.stalls.free(link.asked, me.last_time)
            read = link.peer_attach_end <= me.knowledge.must and waited >= ANSWER_PATIENCE
            if read and link.attach is None and session.peer_end_end == UNKNOWN:
                attach_answered_in_the_same_role(case, link)
    case.spot = spot
    case.link = None


def link_never_drained(case: Case, link: LinkEnd) -> None:
    """A sender read that it is to drain a link and never used up or gave back its credit.

    Why it matters: the receiver waits for the flow that says so.
    Silent when: it may not have read it, the link was detached, the other side ended the session or
    connection, or octets were not captured.
    Possible because: No capture shows what the {peer} would still have said when its stream, or the capture,
    ended.
    """
    case.link = link
    case.report(
        "amqp10/L-DRAIN-ADVANCE",
        "the sender never drains the link",
        POSSIBLE,
        {"link_credit": int(link.limits.newest() - link.count), "drain": True},
    )


def echo_never_answered(case: Case, packet: i64) -> None:
    """A peer read a flow that asks for one in return, and never sent one.

    Why it matters: the other side asks because it needs to know how far the peer is.
    Silent when: it may not have read it, less than a minute passed, the link or session is over, or octets
    were not captured.
    Only possible because: Nothing says how soon the answer is due.
    """
    case.report(
        "amqp10/S-FLOW-ECHO",
        f"the flow in packet {packet} has echo set and is never answered by a flow",
        POSSIBLE,
        {"echo": True},
        [int(packet)],
    )


def _judge_answers(case: Case) -> None:
    """What was read and not answered for long, on a connection that nobody has closed."""
    me = case.me
    must = me.knowledge.must
    since = me.stalls.reach(me.last_time, ANSWER_PATIENCE)
    for session in me.peer_sessions.values():
        if (
            session.begin is None
            and session.state == "BEGIN_RCVD"
            and me.unasked_end != session.peer_begin_end
        ):
            if session.peer_begin_end <= must and session.asked <= since:
                begin_never_answered(case, session)
    for session in me.sessions.values():
        if session.state == "END_RCVD" and session.peer_end_end <= must and session.asked <= since:
            end_never_answered(case, session)
        if session.state != "MAPPED" or not session.whole:
            continue
        case.session = session
        if session.echo_end >= 0 and session.echo_end <= must and session.echo_time <= since:
            echo_never_answered(case, session.echo_packet)
        for link in session.links.values():
            if not link.whole:
                continue
            if link.state == "ATTACHED" and 0 <= link.echo_end <= must and link.echo_time <= since:
                case.link = link
                echo_never_answered(case, link.echo_packet)
            if link.asked > since:
                continue
            if link.state == "ATTACH_RCVD" and link.handle == UNKNOWN and link.peer_attach_end <= must:
                attach_never_answered(case, link)
            elif link.state == "DETACH_RCVD" and link.peer_closed and link.peer_detach_end <= must:
                detach_never_answered(case, link)
            elif (
                link.state == "DETACHED" and link.peer_closed and not link.closed and link.attach is not None
            ):
                if link.half_closed is None and link.peer_detach_end <= must and link.attaches > 0:
                    closing_detach_never_told(case, link)
            elif link.sender and link.drain and link.state == "ATTACHED" and link.drain_end <= must:
                if link.limits.newest() > link.count:
                    link_never_drained(case, link)


def judge_end(case: Case, reason: str, after_peer: bool) -> None:
    """The rules about the end of a peer's stream, to which `case.spot` points.

    reason: `fin`, `rst`, or what else ended what is known of it (`capture`). after_peer: the other side had
    ended its stream when this one did.
    """
    me = case.me
    peer = case.peer
    spot = case.spot
    if reason == "fin" or reason == "rst":
        if me.open is not None and not me.closed and me.whole:
            if me.peer_closed:
                close_never_answered(case)
            elif not after_peer and not stream_ended_after_silence(case):
                stream_ended_without_close(case)
    if reason == "rst" and not after_peer and me.whole:
        if me.closed and not me.peer_closed:
            reset_while_the_answer_was_awaited(case)
        sasl.reset_after_failure(case)
    negotiation.judge_end(case, reason, after_peer)
    if spot is not None and me.closed and not peer.closed and not after_peer and me.whole and peer.whole:
        waited = int(spot.time - me.close_time)
        if me.stalls.free(me.close_time, spot.time) >= CLOSE_PATIENCE:
            waited_too_long_for_the_answer(case, waited)
    if reason == "fin":
        stream_ended_inside_a_frame(case)
    begin_never_answered_but_another_begun(case)
    case.spot = spot
    for session in me.sessions.values():
        case.session = session
        judge_end_of_session(case, session)
    case.session = None
    if reason == "capture" and me.whole and peer.whole and not peer.closed and not me.closed:
        _judge_answers(case)


RULES = {
    "amqp10/C-CLOSE-SENT": stream_ended_without_close,
    "amqp10/C-CLOSE-ANSWER": close_never_answered,
    "amqp10/C-CLOSE-READON": reset_while_the_answer_was_awaited,
    "amqp10/C-CLOSE-TIMEOUT": waited_too_long_for_the_answer,
    "amqp10/F-SIZE-TOTAL": stream_ended_inside_a_frame,
    "amqp10/S-BEGIN-REMOTESET": begin_never_answered_but_another_begun,
    "amqp10/S-BEGIN-ANSWER": begin_never_answered,
    "amqp10/S-END-ANSWER": end_never_answered,
    "amqp10/L-ATTACH-ANSWER": attach_never_answered,
    "amqp10/L-CLOSE-ANSWER": detach_never_answered,
    "amqp10/S-FLOW-ECHO": echo_never_answered,
    "amqp10/L-ATTACH-ROLE": attach_answered_in_the_same_role,
    "amqp10/L-CLOSE-CROSS": closing_detach_never_told,
    "amqp10/L-DRAIN-ADVANCE": link_never_drained,
}
