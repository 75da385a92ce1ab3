"""Silence: idle time-outs that a peer exceeds, and the other peer's reaction (transport.xml, "Idle
Time-out").

The times are those of the capturing machine. A step of its clock looks like a silence. A silence is therefore
certain only if frames in between confirm it (`tracking.pace`), or the other peer's own clock does.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import Connection
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.rules.overdue import Overdue, milliseconds
from amqpscope.tracking.amqp10.endpoint import Endpoint10
from dissectors.amqp10.performatives import Close
from dissectors.wire import i64

__all__ = ["judge_close", "judge_silence", "overdue", "stream_ended_after_silence"]

RULES: Final = Rules("amqp10/idle")


_MILLISECOND: Final = 1_000_000

# After this number of overlong silences, the peer counts as unable to meet the idle-time-out.
_TOO_OFTEN: Final = 3

# The error condition of a peer that stops waiting for the other peer's frames.
_GIVEN_UP: Final = "amqp:resource-limit-exceeded"


C_IDLE_KEEP: Final = RULES.rule(
    "C-IDLE-KEEP", "SHOULD", "definition", usual_answer="amqp:resource-limit-exceeded"
)


def silent_for_too_long(case: Case10, silence: i64, time_out: int, certainty: i64) -> None:
    """A peer sends no frame for longer than the idle-time-out in the other peer's open.

    Demands: A peer should never be silent for longer than the idle-time-out in the other peer's open.
    Source: transport.xml section connections > Idle Time-out; transport.xml section performatives >
    open.idle-time-out
    Evidence: the gaps between the frames of one peer, and the idle-time-out in the other peer's open
    Why it matters: The other peer may consider the connection dead and close it. All sessions and links of
    the connection then end.
    Silent when: the other peer's open was not captured, when octets may be missing, or when one of the peers
    had sent close. The rule is also silent when the peer could not write during one whole idle-time-out. A
    peer cannot write while the other peer's TCP window is closed, or while octets that the peer sent are not
    yet acknowledged in TCP. Frames need time to reach the capture, so the rule tolerates a silence that
    exceeds the idle-time-out by up to a tenth. This tolerance is at least 100 ms. The finding is reported as
    possible, not as certain, when the peer may not yet have read the idle-time-out. The finding is reported
    as possible, not as certain, when nothing confirms the silence, because a jump of the clock on the
    capturing machine may then explain the gap. If the other peer sends frames during the silence, these
    frames confirm that the silence is real. If the other peer closes the connection with
    amqp:resource-limit-exceeded, this close also confirms that the silence is real.
    Possible because: No other frame confirms the silence, so the clock of the capturing machine may have been
    set forward. The {peer} may also not have read the idle-time-out yet.
    How to mend it: Read idle-time-out (in milliseconds) from the other peer's open and send an empty frame
    well before this time has passed, for example after half of the time. Do not block the thread that sends
    the empty frames.
    """
    me = case.me
    case.report(
        C_IDLE_KEEP,
        f"the peer sends no frame for {silence / 1_000_000_000:.3f} s, but the other peer's idle-time-out is "
        f"{time_out / 1000:g} s",
        certainty,
        {"silence_ms": milliseconds(silence), "idle_time_out_ms": time_out},
        [int(me.stream.last_packet), int(me.opening.peer_packet)],
        max(me.stream.last_time, me.opening.peer_time) + time_out * _MILLISECOND,
    )


C_IDLE_REFUSE: Final = RULES.rule("C-IDLE-REFUSE", "SHOULD", "lower-case", usual_answer="amqp:not-allowed")


def silent_again_and_again(case: Case10, time_out: int) -> None:
    """A peer exceeds the other peer's idle-time-out three times or more and does not close the connection.

    Demands: A peer that cannot meet the other peer's idle-time-out should close the connection with an error
    that explains the reason.
    Source: transport.xml section connections > Idle Time-out; transport.xml section performatives >
    open.idle-time-out
    Evidence: the idle-time-out of the open, the gaps between frames, and the error of the close
    Why it matters: The other peer may end the connection at any time. The other peer does not learn that
    its idle-time-out cannot be met.
    Silent when: the peer exceeded the idle-time-out fewer than three times.
    Only possible because: The capture does not show whether the {peer} is unable to meet the idle-time-out.
    How to mend it: If you cannot send frames often enough for the other peer's idle-time-out, close the
    connection with an error that gives this reason. If you can meet the idle-time-out, send heartbeats from a
    timer that other work does not delay.
    """
    case.report(
        C_IDLE_REFUSE,
        f"{_TOO_OFTEN} times, the peer has sent nothing for longer than the other peer's idle-time-out "
        f"({time_out / 1000:g} s); a peer that cannot meet the idle-time-out should close the connection "
        "with an error",
        POSSIBLE,
        {"idle_time_out_ms": time_out},
        [int(case.me.opening.peer_packet)],
    )


def judge_silence(case: Case10) -> None:
    """Judge a frame that ends its sender's silence. Called for every frame after its open."""
    me = case.me
    theirs = me.peer_open
    if theirs is None or not theirs.idle_time_out or not me.whole or me.closing.sent:
        return
    since = max(me.stream.last_time, me.opening.peer_time)
    until = case.record.time
    if case.peer.closing.sent:
        # After its close, a peer owes no more frames.
        until = min(until, case.peer.stream.last_time)
    limit = _allowed(theirs.idle_time_out)
    if me.stalls.free(since, until, me.sent_end) <= limit:
        return
    # The open had reached the host before the last frame, so the idle-time-out counts from that frame.
    asked = me.stream.last_acknowledged >= me.opening.peer_end
    attested = case.pace.attested(since, until) > limit or case.peer.closing.condition == _GIVEN_UP
    certainty: i64 = CERTAIN if asked and attested else POSSIBLE
    silent_for_too_long(case, until - since, theirs.idle_time_out, certainty)
    if certainty == CERTAIN:
        me.stream.late += 1
        if me.stream.late == _TOO_OFTEN and not isinstance(case.record.frame.body, Close):
            silent_again_and_again(case, theirs.idle_time_out)


def _allowed(time_out: i64) -> i64:
    """How long (ns) a peer may be silent, with the time that frames travel. time_out: in ms."""
    allowed: i64 = time_out * _MILLISECOND
    return allowed + max(allowed // 10, 100 * _MILLISECOND)


def overdue(connection: Connection, me: Endpoint10, peer: Endpoint10, now: i64) -> Overdue | None:
    """Whether a peer, `me`, is silent at `now` for longer than the other peer allows."""
    theirs = me.peer_open
    if theirs is None or not theirs.idle_time_out or not me.whole or me.closing.sent or peer.closing.sent:
        return None
    since = max(me.stream.last_time, me.opening.peer_time)
    if me.stalls.free(since, now, me.sent_end) <= _allowed(theirs.idle_time_out):
        return None
    return Overdue(C_IDLE_KEEP, connection, me.peer, since, theirs.idle_time_out * _MILLISECOND)


C_IDLE_HALF: Final = RULES.rule("C-IDLE-HALF", "SHOULD", "lower-case")


def given_up_at_what_was_announced(case: Case10, silence: i64, time_out: int) -> None:
    """A peer closes the connection as soon as the other peer has been silent for the idle-time-out that the
    closing peer announced.

    Demands: A peer should announce an idle-time-out that is half as long as the silence after which the peer
    really closes the connection.
    Source: transport.xml section connections > Idle Time-out
    Evidence: a close because of silence, and the time since the last frame of the other peer
    Why it matters: Without a margin between the announced and the enforced time, one slightly delayed
    heartbeat ends the connection.
    Silent when: the other peer was silent for nearly twice the announced idle-time-out, or when octets of
    either peer were not captured.
    Only possible because: The {peer} may have closed the connection because of another limit.
    How to mend it: Put half of your configured time-out into the field idle-time-out of open. Close the
    connection only after a silence of twice the announced value.
    """
    case.report(
        C_IDLE_HALF,
        f"the peer closes the connection after {silence / 1_000_000_000:.3f} s without a frame of the other "
        f"peer; the peer's own idle-time-out is {time_out / 1000:g} s, and the peer should wait for twice "
        "this time",
        POSSIBLE,
        {"silence_ms": milliseconds(silence), "idle_time_out_ms": time_out},
        [int(case.me.opening.packet), int(case.peer.stream.last_packet)],
    )


def judge_close(case: Case10, body: Close) -> None:
    """Judge a close whose reason may be the other peer's silence."""
    me = case.me
    peer = case.peer
    if me.open is None or not me.open.idle_time_out or not me.whole or not peer.whole or peer.closing.sent:
        return
    error = body.error
    if error is None or error.condition != _GIVEN_UP:
        return
    time_out: i64 = me.open.idle_time_out * _MILLISECOND
    silence: i64 = case.record.time - peer.stream.last_time
    if time_out <= silence < time_out * 2 - time_out // 5:
        given_up_at_what_was_announced(case, silence, me.open.idle_time_out)


C_IDLE_CLOSE: Final = RULES.rule(
    "C-IDLE-CLOSE", "SHOULD", "lower-case", usual_answer="amqp:resource-limit-exceeded"
)


def stream_ended_after_silence(case: Case10) -> bool:
    """A peer ends its TCP stream without close after the other peer was silent for longer than the peer's
    idle-time-out allows.

    Demands: If a peer ends the TCP connection because the other peer was silent for too long, the peer should
    first send a close whose error gives this reason.
    Source: transport.xml section connections > Idle Time-out
    Evidence: a silence, and then a FIN or RST without close
    Why it matters: The other peer does not learn that its heartbeats came too late. The other peer sees only
    a lost connection, so the cause is hard to find.
    Silent when: octets of either peer were not captured, or when the other peer ended its stream first.
    Only possible because: The silence need not be the reason for the end of the stream.
    How to mend it: When the other peer has been silent for too long, send close with an error such as
    amqp:resource-limit-exceeded before you end the TCP stream. Then wait only a limited time for the other
    peer's close.
    """
    me = case.me
    peer = case.peer
    spot = case.spot
    if (
        spot is None
        or me.open is None
        or not me.open.idle_time_out
        or not peer.whole
        or peer.stream.frames == 0
    ):
        return False
    silence = spot.time - peer.stream.last_time
    if silence <= me.open.idle_time_out * _MILLISECOND:
        return False
    case.report(
        C_IDLE_CLOSE,
        f"the other peer was silent for {silence / 1_000_000_000:.3f} s (the peer's own idle-time-out: "
        f"{me.open.idle_time_out / 1000:g} s), and the peer ends its stream without a close that gives this "
        "reason",
        POSSIBLE,
        {"silence_ms": milliseconds(silence), "idle_time_out_ms": me.open.idle_time_out},
        [int(peer.stream.last_packet)],
    )
    return True
