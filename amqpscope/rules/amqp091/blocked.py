"""A server that accepts no messages for a while: connection.blocked and connection.unblocked (RabbitMQ's
extension).
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from dissectors.wire import i64

__all__ = ["RULES", "judge_blocked", "judge_publish"]

RULES: Final = Rules("amqp091/blocked")


# For so long (ns) after the client's first frame that acknowledges it, the program may not have read it.
_ON_ITS_WAY: Final = 1_000_000_000

_CAPABILITY: Final = "connection.blocked"


C_BLOCKED_CAP: Final = RULES.rule(
    "C-BLOCKED-CAP", "IMPLIED", "tier A", by="server", answer="connection.close 503"
)


def blocked_without_capability(case: Case091) -> None:
    """A server sends connection.blocked or connection.unblocked to a client that has not announced the
    capability connection.blocked.

    Demands: A server may send connection.blocked and connection.unblocked only to clients that announce the
    capability connection.blocked with the value true.
    Source: RMQ:docs/connection-blocked; RMQX:connection.blocked
    Evidence: the capabilities in connection.start-ok, and each connection.blocked and connection.unblocked of
    the server
    Why it matters: The client does not know connection.blocked and connection.unblocked, and may close the
    connection with reply-code 503 (command-invalid).
    Silent when: the client announces the capability connection.blocked, or when amqpscope could not read the
    client's capabilities. The rule is also silent when the capture lacks octets of the connection. The rule
    reports the fault only once per connection.
    How to mend it: Read the capabilities in the client-properties of connection.start-ok. Send
    connection.blocked and connection.unblocked only if the capability connection.blocked is true.
    """
    case.report_once(
        C_BLOCKED_CAP,
        f"the peer sends {case.name} although the client has not announced the capability connection.blocked",
        CERTAIN,
        {},
    )


C_BLOCKED_PAIR: Final = RULES.rule(
    "C-BLOCKED-PAIR",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def blocked_out_of_turn(case: Case091) -> None:
    """A server sends connection.blocked while the connection is already blocked, or connection.unblocked
    while the connection is not blocked.

    Demands: A server may send connection.unblocked only after connection.blocked. The server must not
    send connection.blocked again before connection.unblocked.
    Source: RMQ:docs/connection-blocked
    Evidence: the state of the connection (blocked or not) when connection.blocked or connection.unblocked
    arrives
    Why it matters: The client cannot know whether it may publish, because the notifications of the server
    contradict each other.
    Silent when: the capture lacks octets of the server. The rule is also silent when another rule already
    reports that the client does not announce the capability connection.blocked.
    How to mend it: Keep one blocked flag per connection. Send connection.blocked only when the flag changes
    from false to true, and connection.unblocked only when the flag changes back.
    """
    view = case.view
    before = (
        f"has been blocked since packet {view.blocking.packet}" if view.blocking.blocked else "is not blocked"
    )
    case.report(
        C_BLOCKED_PAIR,
        f"the peer sends {case.name} although the connection {before}",
        evidence={"blocked": view.blocking.blocked},
        others=[int(view.blocking.packet)] if view.blocking.blocked else [],
    )


C_BLOCKED_PUBLISH: Final = RULES.rule(
    "C-BLOCKED-PUBLISH",
    "IMPLIED",
    "tier A",
    by="client",
    warning="The specification only implies this rule and names no error for it.",
)


def published_while_blocked(case: Case091, since: i64) -> None:
    """A client goes on publishing after it has received connection.blocked.

    Demands: With connection.blocked, the server says that it accepts no publishes. A client should stop
    publishing until connection.unblocked arrives.
    Source: RMQX:connection.blocked; RMQ:docs/connection-blocked
    Evidence: each basic.publish that the client sends more than one second after connection.blocked and
    before connection.unblocked
    Why it matters: While the connection is blocked, the server reads nothing from the client. Even the
    client's acknowledgements and the client's connection.close have to wait.
    Silent when: the basic.publish follows within one second after the client received connection.blocked, or
    when the capture lacks octets of the server. The rule reports the fault only once per connection.
    Only possible because: connection.blocked is a notification. The documentation of RabbitMQ does not forbid
    the {peer} to publish.
    How to mend it: Stop sending basic.publish when connection.blocked arrives and resume after
    connection.unblocked. Applications should register for the blocked notification of their client library,
    and consume and publish on separate connections.
    """
    case.report_once(
        C_BLOCKED_PUBLISH,
        "the peer sends basic.publish although the connection is blocked: connection.blocked (packet "
        f"{case.view.blocking.packet}) arrived {since / 1_000_000_000:.3f} s before",
        POSSIBLE,
        {"blocked": True},
        [int(case.view.blocking.packet)],
    )


def judge_blocked(case: Case091, blocks: bool) -> None:
    """A connection.blocked or connection.unblocked."""
    if case.me.by_client or not case.me.whole:
        return
    view = case.view
    if view.client is not None and view.client.lacks(_CAPABILITY):
        blocked_without_capability(case)
    elif view.blocking.blocked == blocks:
        blocked_out_of_turn(case)


def judge_publish(case: Case091) -> None:
    """A basic.publish on a connection that is blocked as far as the client knows."""
    me = case.me
    since = case.record.time - me.blocked_time
    free = me.stalls.free(me.blocked_time, case.record.time)
    if me.by_client and me.whole and me.blocked_time > 0 and free > _ON_ITS_WAY:
        published_while_blocked(case, since)
