"""A server that takes no messages for now: connection.blocked and unblocked (RabbitMQ's extension)."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from dissectors.wire import i64

__all__ = ["RULES", "judge_blocked", "judge_publish"]

RULES: Final = Rules("amqp091/blocked")


# Nanoseconds after the client's first frame that acknowledges it in which its program may not have read it.
_ON_ITS_WAY: Final = 1_000_000_000

_CAPABILITY: Final = "connection.blocked"


C_BLOCKED_CAP: Final = RULES.rule(
    "C-BLOCKED-CAP", "IMPLIED", "tier A", by="server", answer="connection.close 503"
)


def blocked_told_unasked(case: Case091) -> None:
    """The server tells a client that it is blocked which has not said that it understands that.

    Demands: connection.blocked and unblocked go only to clients whose capabilities contain connection.blocked
    = true.
    Source: RMQ:docs/connection-blocked; RMQX:connection.blocked
    Evidence: client capabilities; 10.60/10.61 from server
    Why it matters: The client does not know the method, and may close the connection with reply-code 503.
    Silent when: the client has the capability connection.blocked, its capabilities could not be read, or
    octets were not captured. Told once.
    How to mend it: Read the capabilities in the client-properties of connection.start-ok. Send
    connection.blocked and connection.unblocked only if connection.blocked is true there.
    """
    case.report_once(
        C_BLOCKED_CAP,
        f"{case.name}, and the client has no capability connection.blocked",
        CERTAIN,
        {},
    )


C_BLOCKED_PAIR: Final = RULES.rule(
    "C-BLOCKED-PAIR",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The text implies it and names no error for it.",
)


def blocked_out_of_turn(case: Case091) -> None:
    """A server sends connection.blocked while the connection is already blocked, or connection.unblocked
    while the connection is not blocked.

    Demands: unblocked follows a blocked, and blocked is not repeated before it.
    Source: RMQ:docs/connection-blocked
    Evidence: blocked flag per connection
    Why it matters: The client cannot know whether it may publish, because the notifications of the server
    contradict each other.
    Silent when: octets of the server were not captured, or the client does not announce the capability
    connection.blocked, which another rule reports.
    How to mend it: Keep one blocked flag per connection. Send connection.blocked only when the flag changes
    from false to true, and connection.unblocked only when it changes back.
    """
    view = case.view
    before = f"blocked in packet {view.blocking.packet}" if view.blocking.blocked else "not blocked"
    case.report(
        C_BLOCKED_PAIR,
        f"{case.name}, and the connection is {before}",
        evidence={"blocked": view.blocking.blocked},
        others=[int(view.blocking.packet)] if view.blocking.blocked else [],
    )


C_BLOCKED_PUBLISH: Final = RULES.rule(
    "C-BLOCKED-PUBLISH",
    "IMPLIED",
    "tier A",
    by="client",
    warning="The text implies it and names no error for it.",
)


def published_while_blocked(case: Case091, since: i64, certainty: i64) -> None:
    """A client goes on publishing after it has received connection.blocked.

    Demands: A client told that it is blocked does not go on publishing.
    Source: RMQX:connection.blocked; RMQ:docs/connection-blocked
    Evidence: publishes well after blocked and before unblocked
    Why it matters: While the connection is blocked, the server reads nothing from the client, not even the
    client's acknowledgements and its close.
    Silent when: the client received connection.blocked less than a second before, or octets of the server
    were not captured. The finding is only possible, not certain, unless the client has shown that it had read
    connection.blocked. The rule reports once per connection.
    How to mend it: Stop sending basic.publish when connection.blocked arrives and resume after
    connection.unblocked. Applications should register for the blocked notification of their client library,
    and consume and publish on separate connections.
    """
    case.report_once(
        C_BLOCKED_PUBLISH,
        f"basic.publish, {since / 1_000_000_000:.3f} s after connection.blocked "
        f"(packet {case.view.blocking.packet}) was received",
        certainty,
        {"blocked": True},
        [int(case.view.blocking.packet)],
    )


def judge_blocked(case: Case091, blocks: bool) -> None:
    """connection.blocked, or unblocked."""
    if case.me.by_client or not case.me.whole:
        return
    view = case.view
    if view.client is not None and view.client.lacks(_CAPABILITY):
        blocked_told_unasked(case)
    elif view.blocking.blocked == blocks:
        blocked_out_of_turn(case)


def judge_publish(case: Case091) -> None:
    """A basic.publish on a connection that is blocked, as far as the client knows."""
    view = case.view
    me = case.me
    since = case.record.time - me.blocked_time
    free = me.stalls.free(me.blocked_time, case.record.time)
    if me.by_client and me.whole and me.blocked_time > 0 and free > _ON_ITS_WAY:
        certainty: i64 = CERTAIN if me.knowledge.confirmed(view.blocking.end) else POSSIBLE
        published_while_blocked(case, since, certainty)
