"""What is missing when a stream ends: closes, answers, the rest of a frame.

Nothing absent is certain here: what an endpoint has read just before it ended, no capture shows.
"""

from amqpscope.rules.case import Case
from amqpscope.tracking.knowledge import POSSIBLE

__all__ = ["judge_end"]


def stream_ended_without_close(case: Case) -> None:
    """A peer ended its TCP stream without close, or without answering the other one's.

    Why it matters: the other side cannot tell an orderly end from a crash.
    Silent when: the peer had not sent open, its stream is not captured whole, or the other side ended first.
    """
    me = case.me
    peer = case.peer
    if me.open is None or me.closed or not me.whole:
        return
    if peer.closed:
        case.report(
            "amqp10/C-CLOSE-ANSWER",
            f"the stream ends, the peer's close (packet {peer.close_packet}) is not answered",
            POSSIBLE,
            {"connection_state": me.state},
            [int(peer.close_packet)],
        )
    elif peer.stream_end != "fin" and peer.stream_end != "rst":
        case.report(
            "amqp10/C-CLOSE-SENT", "the stream ends without close", POSSIBLE, {"connection_state": me.state}
        )


def stream_ended_inside_a_frame(case: Case) -> None:
    """A peer ended its stream in order, inside a frame.

    Why it matters: the size in the frame's header is not that of what was sent.
    Silent when: the stream was reset, or only the capture ended.
    """
    last = case.me.last
    if last is None:
        return
    for problem in last.frame.problems:
        if problem.code == "incomplete":
            case.record = last
            case.report(
                "amqp10/F-SIZE-TOTAL", f"the stream ends inside the frame: {problem.reason}", POSSIBLE
            )
            return


def begin_never_answered(case: Case) -> None:
    """A peer began a session of its own instead of answering the other one's begin.

    Why it matters: see `begin_beside_the_one_to_answer`.
    Silent when: the begin was answered after all, or the peer's own one was, so that it did start a session.
    """
    me = case.me
    record = me.unasked
    if record is None or not me.whole:
        return
    channel = int(record.frame.channel)
    own = me.sessions.get(channel) or me.ended.get(channel)
    if own is not None and own.peer_begin is not None:
        return
    for asked in me.peer_sessions.values():
        if asked.peer_begin_end == me.unasked_end and asked.begin is None and asked.state == "BEGIN_RCVD":
            case.record = record
            case.report(
                "amqp10/S-BEGIN-REMOTESET",
                "begin has no remote-channel, and the peer's begin "
                f"(packet {asked.peer_begin_packet}) is never answered",
                POSSIBLE,
                {"session_state": asked.state},
                [int(asked.peer_begin_packet)],
            )
            return


def judge_end(case: Case, reason: str) -> None:
    """The rules about the end of a peer's stream: `fin`, `rst` or `capture`."""
    if reason == "fin" or reason == "rst":
        stream_ended_without_close(case)
    if reason == "fin":
        stream_ended_inside_a_frame(case)
    begin_never_answered(case)
