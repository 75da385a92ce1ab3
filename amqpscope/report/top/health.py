"""What hurts on a connection, by its snapshot and the time: broken rules, overdue answers, what is blocked.

A health issue has a rank. Proven faults come first, then what is overdue, then what stands still because
somebody grants nothing, then what is only suspected, and last what is merely a lot. These are hints for
whoever looks at the screen, not verdicts: those are the rules'.
"""

from typing import Final

from amqpscope.model.records import CLIENT
from amqpscope.protocols import protocol_of
from amqpscope.report.printable import word
from amqpscope.report.value_text import text_word
from amqpscope.tracking.snapshot import ChannelSnapshot, ConnectionSnapshot, LinkSnapshot, SessionSnapshot

__all__ = ["BLOCKED", "DOUBT", "FAULT", "LOAD", "OVERDUE", "HealthIssue", "duration", "health_issues"]

FAULT: Final = 5
OVERDUE: Final = 4
BLOCKED: Final = 3
DOUBT: Final = 2
LOAD: Final = 1

_SECOND = 1_000_000_000

_PATIENCE = 3 * _SECOND
"""How long an answer is waited for without a word: twice what the screen is refreshed."""

_MANY_UNSETTLED = 100

_NAME = 24

# States in which an end waits for the other one, and for what.
_CONNECTION_WAITS = {
    "HDR_SENT": "header",
    "OPEN_SENT": "open",
    "OPEN_PIPE": "header",
    "CLOSE_SENT": "close",
    "DISCARDING": "close",
    "CLIENT CLOSES": "connection.close",
    "SERVER CLOSES": "connection.close",
}
_SESSION_WAITS = {"BEGIN_SENT": "begin", "END_SENT": "end", "DISCARDING": "end"}
_LINK_WAITS = {"ATTACH_SENT": "attach", "DETACH_SENT": "detach"}


class HealthIssue:
    """One thing that hurts: how much, and what it is in a few words that are safe to print."""

    def __init__(self, rank: int, text: str) -> None:
        self.rank = rank
        self.text = text

    @property
    def style(self) -> str:
        """How it is painted."""
        return {FAULT: "problem", OVERDUE: "error", BLOCKED: "note", DOUBT: "note"}.get(self.rank, "")


def duration(nanoseconds: int) -> str:
    """A time in a word: `0.4s`, `12s`, `3m05s`, `2h10m`, `3d04h`."""
    seconds = max(nanoseconds, 0) / _SECOND
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02d}h"


def health_issues(protocol: str, snapshot: ConnectionSnapshot, now: int) -> list[HealthIssue]:
    """What hurts on an open connection at `now` (ns), besides findings; the worst first."""
    found: list[HealthIssue] = []
    if snapshot.blocked:
        found.append(HealthIssue(BLOCKED, "blocked by the server"))
    client, server = snapshot.client, snapshot.server
    waits = _CONNECTION_WAITS.get(client.state) if client.state != "SERVER CLOSES" else None
    if waits is not None and now - client.last_time > _PATIENCE:
        found.append(HealthIssue(OVERDUE, f"client's {waits} unanswered {duration(now - client.last_time)}"))
    waits = _CONNECTION_WAITS.get(server.state) if server.state != "CLIENT CLOSES" else None
    if waits is not None and now - server.last_time > _PATIENCE:
        found.append(HealthIssue(OVERDUE, f"server's {waits} unanswered {duration(now - server.last_time)}"))
    _silence(found, protocol, snapshot, now)
    for session in snapshot.sessions:
        _session(found, snapshot, session, now)
    for channel in snapshot.channels:
        _channel(found, snapshot, channel, now)
    found.sort(key=_rank)
    return found


def _rank(issue: HealthIssue) -> int:
    return -issue.rank


def _silence(found: list[HealthIssue], protocol: str, snapshot: ConnectionSnapshot, now: int) -> None:
    """Who has said nothing for longer than the other one allows. Of agreed heartbeats two may pass."""
    both = protocol_of(protocol).agreed_heartbeat
    times = 2 if both else 1
    agreed = snapshot.client.idle
    for quiet, listener in ((snapshot.client, snapshot.server), (snapshot.server, snapshot.client)):
        idle = agreed if both else listener.idle
        if idle <= 0 or not quiet.last_time or _is_over(quiet.state):
            continue
        allowed = idle * times
        silent = now - quiet.last_time
        if silent > allowed + max(allowed // 10, _SECOND // 10):
            limit = duration(allowed)
            found.append(HealthIssue(OVERDUE, f"{quiet.peer} silent {duration(silent)}, allowed {limit}"))


def _is_over(state: str) -> bool:
    """Whether an end in this state need not say anything more."""
    return state.startswith("CLOSE") or state in ("END", "DISCARDING") or state.endswith(" CLOSES")


def _session(
    found: list[HealthIssue], snapshot: ConnectionSnapshot, session: SessionSnapshot, now: int
) -> None:
    which = f"session {session.number}"
    for half, end in ((session.client, snapshot.client), (session.server, snapshot.server)):
        if half is None:
            continue
        if half.window == 0 and half.state == "MAPPED":
            found.append(HealthIssue(BLOCKED, f"{end.peer}'s window is 0, {which}"))
        waits = _SESSION_WAITS.get(half.state)
        if waits is not None and now - end.last_time > _PATIENCE:
            text = f"{end.peer}'s {waits} unanswered {duration(now - end.last_time)}, {which}"
            found.append(HealthIssue(OVERDUE, text))
        if half.unsettled >= _MANY_UNSETTLED:
            other = snapshot.server if end is snapshot.client else snapshot.client
            found.append(HealthIssue(LOAD, f"{half.unsettled} unsettled by the {other.peer}, {which}"))
    for link in session.links:
        _link(found, snapshot, link, now)


def _link(found: list[HealthIssue], snapshot: ConnectionSnapshot, link: LinkSnapshot, now: int) -> None:
    which = f"link {text_word(link.name, _NAME)}"
    sender, receiver = snapshot.client, snapshot.server
    if link.sender != CLIENT:
        sender, receiver = receiver, sender
    for state, end in ((link.sender_state, sender), (link.receiver_state, receiver)):
        waits = _LINK_WAITS.get(state)
        if waits is not None and now - end.last_time > _PATIENCE:
            since = duration(now - end.last_time)
            found.append(HealthIssue(OVERDUE, f"{end.peer}'s {waits} unanswered {since}, {which}"))
    if link.credit == 0 and link.sender_state == "ATTACHED":
        if link.available > 0:
            found.append(HealthIssue(BLOCKED, f"no credit, {link.available} wait, {which}"))
        elif link.drain:
            pass  # it was asked to use up all there was
        elif link.deliveries > 0 and now - sender.last_time > _PATIENCE:
            found.append(HealthIssue(BLOCKED, f"no credit {duration(now - sender.last_time)}, {which}"))


def _channel(
    found: list[HealthIssue], snapshot: ConnectionSnapshot, channel: ChannelSnapshot, now: int
) -> None:
    which = f"channel {channel.number}"
    if channel.asked and now - channel.asked_time > _PATIENCE:
        since = duration(now - channel.asked_time)
        found.append(HealthIssue(OVERDUE, f"{channel.first_asked} unanswered {since}, {which}"))
    if channel.client_stopped:
        found.append(HealthIssue(BLOCKED, f"client stopped by channel.flow, {which}"))
    if channel.server_stopped:
        found.append(HealthIssue(BLOCKED, f"server stopped by channel.flow, {which}"))
    quiet = now - snapshot.client.last_time > _PATIENCE
    if quiet and 0 < channel.prefetch <= channel.unacknowledged:
        text = f"prefetch of {channel.prefetch} used up, {which}"
        found.append(HealthIssue(BLOCKED, text))
    for consumer in channel.consumers:
        if quiet and 0 < consumer.prefetch <= consumer.unacknowledged:
            text = f"prefetch of {consumer.prefetch} used up, {word(consumer.tag, _NAME)}, {which}"
            found.append(HealthIssue(BLOCKED, text))
    if channel.unacknowledged >= _MANY_UNSETTLED:
        found.append(HealthIssue(LOAD, f"{channel.unacknowledged} unacknowledged, {which}"))
    if channel.unconfirmed and now - snapshot.server.last_time > _PATIENCE:
        found.append(HealthIssue(LOAD, f"{channel.unconfirmed} unconfirmed, {which}"))
