"""Missing heartbeats, and how peers react to a silent peer (section 4.2.7).

Both peers use the heartbeat delay of connection.tune-ok; 0 means no heartbeats. Any octet counts as a
heartbeat. Times are those of the capturing machine, whose clock may be stepped. A silence is therefore
certain only as far as frames in between confirm how much time passed (`tracking.clock`).
"""

from typing import Final

from amqpscope.limits import BACKWARDS, HEARTBEAT_SLACK
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import Connection, FrameRef
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.rules.overdue import Overdue, milliseconds
from amqpscope.tracking.amqp091.endpoint import Endpoint091, given_up_after
from amqpscope.tracking.amqp091.states import OPEN
from dissectors.wire import i64

__all__ = [
    "RULES",
    "judge_end",
    "judge_given_up",
    "judge_heartbeat",
    "judge_silence",
    "may_have_given_up",
    "overdue",
]

RULES: Final = Rules("amqp091/heartbeat")


_SECOND: Final = 1_000_000_000

# After so many delays, a peer that checks only once a delay must have noticed that the other peer is gone.
_GIVEN_UP: Final = 3


C_HB_SEND: Final = RULES.rule("C-HB-SEND", "SHOULD", "tier A", answer="to close the socket")


def silent_for_too_long(case: Case091, silence: i64, delay: i64, certainty: i64) -> None:
    """A peer was silent for longer than the agreed heartbeat delay.

    Demands: With a heartbeat delay of h seconds, a peer should send at least one octet every h seconds.
    Source: GS:4.2.7
    Evidence: the heartbeat delay in connection.tune-ok, and the gaps between the peer's octets
    Why it matters: After two heartbeat delays without octets, the other peer considers this peer dead and
    drops the connection.
    Silent when: connection.tune-ok was not captured or has heartbeat 0, or when the capture may lack octets.
    The rule is also silent when the peer could not write during the silence. A peer cannot write while the
    other peer's TCP window is closed, or while the other peer's host does not acknowledge the TCP
    retransmissions of this peer. For the transmission from the peer to the capturing machine, the rule
    tolerates an extra time of a tenth of the heartbeat delay, but at least 100 ms. The finding is reported as
    possible, not as certain, when the capturing machine's clock may have been set forward during the silence.
    A clock that is set forward causes one long gap between the frames that the other peer sends during the
    silence. If the silence exceeds the heartbeat delay even without the longest of these gaps, the finding is
    reported as certain.
    How to mend it: Send a heartbeat frame from a timer whenever no octet was sent for about half the delay.
    Run the timer in a thread that application callbacks, long computations and blocking publishes cannot
    delay.
    """
    case.report(
        C_HB_SEND,
        f"the peer sends no frame for {silence / _SECOND:.3f} s, although the heartbeat delay is {delay} s",
        certainty,
        {"silence_ms": milliseconds(silence), "heartbeat": int(delay)},
        [int(case.view.agreed.packet)],
        case.now() - silence + delay * _SECOND,
    )


C_HB_CLOSING: Final = RULES.rule("C-HB-CLOSING", "SHOULD", "tier A")


def silent_while_closing(case: Case091, silence: i64, delay: i64, certainty: i64) -> None:
    """A peer is silent for longer than the heartbeat delay while the connection is being closed.

    Demands: A peer should send heartbeats until the socket is closed, also after connection.close.
    Source: GS:4.2.7
    Evidence: the time without octets between connection.close and the FIN of TCP
    Why it matters: The other peer may consider the connection dead and drop it before the connection is
    closed properly.
    Silent when: connection.tune-ok was not captured or has heartbeat 0, or when the capture may lack octets.
    The rule tolerates the same extra time as the rule C-HB-SEND, and reports a finding as possible in the
    same cases as C-HB-SEND.
    How to mend it: Keep the heartbeat timer running after connection.close until the socket is closed. Do not
    stop the timer thread at the start of the shutdown.
    """
    case.report(
        C_HB_CLOSING,
        f"the peer sends no frame for {silence / _SECOND:.3f} s during the close, although the heartbeat "
        f"delay is {delay} s",
        certainty,
        {"silence_ms": milliseconds(silence), "heartbeat": int(delay)},
        [int(case.view.agreed.packet)],
        case.now() - silence + delay * _SECOND,
    )


C_HB_EARLY: Final = RULES.rule("C-HB-EARLY", "SHOULD", "tier A")


def heartbeat_too_early(case: Case091) -> None:
    """A peer sends a heartbeat before the heartbeat delay is agreed: a client before connection.tune arrives,
    a server before connection.tune-ok arrives.

    Demands: A client should send heartbeats only after connection.tune, and a server only after
    connection.tune-ok.
    Source: GS:4.2.7
    Evidence: the heartbeats before connection.tune or connection.tune-ok
    Why it matters: The other peer may accept only the next method of the connection set-up, and may close the
    connection.
    Silent when: the capture lacks octets of either peer.
    How to mend it: Start the heartbeat timer of a client after connection.tune arrives, and the timer of a
    server after connection.tune-ok arrives. Use the agreed delay, not a default value.
    """
    case.report(
        C_HB_EARLY,
        "the peer sends a heartbeat before connection.tune, with which the peers agree on heartbeats"
        if case.me.by_client
        else "the peer sends a heartbeat before connection.tune-ok, with which the peers agree on heartbeats",
        evidence={"connection_state": case.view.state},
    )


C_HB_REACT: Final = RULES.rule(
    "C-HB-REACT", "SHOULD", "tier A", note="The rule is about how a peer reacts to a fault of the other peer."
)


def silence_put_up_with(case: Case091, silence: i64, delay: i64) -> None:
    """A peer keeps sending although the other peer has been silent for more than three heartbeat delays.

    Demands: A peer that receives no octet for two heartbeat delays should close the socket without
    connection.close.
    Source: GS:4.2.7
    Evidence: two heartbeat delays without octets in one direction, and the frames in the other direction
    afterwards
    Why it matters: Heartbeats let a peer detect that the other peer is gone. A peer that keeps sending to a
    dead peer may lose its messages.
    Silent when: connection.tune-ok was not captured or has heartbeat 0, or when the capture may lack octets.
    The rule is also silent when no frames confirm the length of the silence, because the clock of the
    capturing machine may have been set forward. The rule also reports nothing while the server has blocked
    the client by connection.blocked, because the server then reads nothing. Like the rule C-HB-SEND, the rule
    tolerates a silence that is slightly longer than the delay. The rule reports the fault only once per
    connection.
    How to mend it: Record the time of the last received octet, and let a timer check this time. When two
    heartbeat delays pass without an incoming octet, close the socket without connection.close, and reconnect.
    """
    case.report_once(
        C_HB_REACT,
        f"the other peer has been silent for {silence / _SECOND:.3f} s (heartbeat delay: {delay} s), "
        f"but the peer sends {case.name} instead of closing the connection",
        CERTAIN,
        {"silence_ms": milliseconds(silence), "heartbeat": int(delay)},
    )


def judge_silence(case: Case091) -> None:
    """A frame that ends the silence of its sender, or that is sent to a silent peer."""
    view = case.view
    delay = view.agreed.heartbeat
    if delay <= 0:
        return
    me = case.me
    peer = case.peer
    now = case.record.time
    if now - me.last_time < delay * _SECOND and now - peer.last_time < delay * _SECOND:
        return
    limit = _allowed(delay)
    since = me.last_time
    if (
        me.stalls.free(since, now, me.sent_end) > limit
        and me.tuned_time > 0
        and me.whole
        and not _stalled(case, since)
    ):
        if view.ending.by_client is None and view.ending.by_server is None:
            silent_for_too_long(case, now - since, delay, _attested(case, since, now, limit))
        elif not _over(me):
            silent_while_closing(case, now - since, delay, _attested(case, since, now, limit))
    limit += (_GIVEN_UP - 1) * delay * _SECOND
    since = peer.last_time
    if (
        peer.stalls.free(since, now, peer.sent_end) > limit
        and peer.tuned_time > 0
        and me.whole
        and peer.whole
    ):
        # The peer was alive when two delays had passed, and sent something later.
        if me.last_time - since > limit - delay * _SECOND and view.ending.state == OPEN:
            if not _stalled(case, since) and case.pace.attested(since, now) > limit:
                silence_put_up_with(case, now - since, delay)


def overdue(connection: Connection, me: Endpoint091, now: i64) -> Overdue | None:
    """Whether a peer, `me`, is silent at `now` for longer than the heartbeat delay."""
    view = me.view
    delay = view.agreed.heartbeat
    if delay <= 0 or me.tuned_time == 0 or not me.whole or view.ending.state != OPEN or view.blocking.blocked:
        return None
    if me.stalls.free(me.last_time, now, me.sent_end) <= _allowed(delay):
        return None
    return Overdue(C_HB_SEND, connection, me.peer, me.last_time, delay * _SECOND)


def judge_heartbeat(case: Case091) -> None:
    """A heartbeat: whether the heartbeat delay is already agreed."""
    me = case.me
    if me.whole and (case.view.proposed.end if me.by_client else case.view.agreed.end) < 0:
        heartbeat_too_early(case)


def judge_end(case: Case091, reason: str, acknowledged: i64, after_peer: bool) -> bool:
    """A stream ended: whether its sender was silent before.

    True: the other peer was silent, or may have been silent, for so long that the peer should end its stream.
    """
    spot = case.spot
    delay = case.view.agreed.heartbeat
    if spot is None or delay <= 0 or after_peer or (reason != "fin" and reason != "rst"):
        return False
    if not case.peer.whole:
        return True  # as far as anybody knows, it was silent
    if not case.me.whole or acknowledged < 0 or acknowledged > case.peer.sent_end:
        return False
    if reason == "fin":
        # Nobody knows which octets a reset has discarded.
        _silent_till_the_end(case, case.me, spot.time)
    if case.pace.jumped():
        return False
    return spot.time - _last_heard(case, spot.time) > given_up_after(delay)


def may_have_given_up(case: Case091) -> bool:
    """Whether a silence of the other peer may explain the end at `case.spot`, as far as the times are in
    doubt.

    The times are in doubt by as much as the clock was set back, and wholly if the clock stood still.
    """
    spot = case.spot
    delay = case.view.agreed.heartbeat
    if spot is None or delay <= 0:
        return False
    since = _last_heard(case, spot.time)
    back: i64 = max(case.pace.back, since - spot.time, case.me.last_time - spot.time)
    if back > BACKWARDS or case.pace.jumped() or case.pace.stood(spot.time):
        return True
    return spot.time - since + max(back, 0) > given_up_after(delay)


def _last_heard(case: Case091, time: i64) -> i64:
    """When a peer that ends its stream at `time` (ns) last received something from the other peer.

    Later octets of the other peer cannot be what this end waited for.
    """
    heard = case.peer.last_time
    if heard > time:
        for since, until in case.peer.silences:
            if since <= time <= until:
                return since
    return heard


def judge_given_up(case: Case091, ended: FrameRef) -> None:
    """The peer `case.me` ended its stream at `ended`, before the other peer did: whether the other peer was
    silent.
    """
    if case.view.agreed.heartbeat <= 0 or not case.me.whole or not case.peer.whole:
        return
    before = case.spot
    peer = case.peer
    case.spot = FrameRef(1 - ended.direction, ended.packet, ended.time, peer.sent_end, ended.name, -1)
    _silent_till_the_end(case, peer, ended.time)
    case.spot = before


def _silent_till_the_end(case: Case091, end: Endpoint091, time: i64) -> None:
    view = case.view
    delay = view.agreed.heartbeat
    limit = _allowed(delay)
    since = end.last_time
    if (
        end.stalls.free(since, time, end.sent_end) <= limit
        or end.tuned_time == 0
        or _over(end)
        or _stalled(case, since)
    ):
        return
    certainty = _attested(case, since, time, limit)
    if view.ending.by_client is None and view.ending.by_server is None:
        silent_for_too_long(case, time - since, delay, certainty)
    else:
        silent_while_closing(case, time - since, delay, certainty)


def _allowed(delay: i64) -> i64:
    """For how long (ns) a peer may be silent, including the tolerance for the way to the capturing
    machine.
    """
    allowed: i64 = delay * _SECOND
    return allowed + max(allowed // 10, HEARTBEAT_SLACK)


def _attested(case: Case091, since: i64, until: i64, limit: i64) -> i64:
    return CERTAIN if case.pace.attested(since, until) > limit else POSSIBLE


def _over(end: Endpoint091) -> bool:
    """Whether a peer has nothing more to send: one of the two peers has sent connection.close-ok."""
    return end.view.ending.client_done > 0 or end.view.ending.server_done > 0


def _stalled(case: Case091, since: i64) -> bool:
    """Whether the server had blocked the client at any time since then. A server that blocks a client reads
    nothing, so the client's octets may be stuck.
    """
    mine = case.me.view
    theirs = case.peer.view
    return (
        mine.blocking.blocked
        or theirs.blocking.blocked
        or mine.blocking.unblocked_time > since
        or theirs.blocking.unblocked_time > since
    )
