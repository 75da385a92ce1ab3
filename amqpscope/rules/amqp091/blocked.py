"""A server that takes no messages for now: connection.blocked and unblocked (RabbitMQ's extension)."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case
from dissectors.wire import i64

__all__ = ["RULES", "judge_blocked", "judge_publish"]

# Nanoseconds after the client's first frame that acknowledges it in which its program may not have read it.
_ON_ITS_WAY: Final = 1_000_000_000

_CAPABILITY: Final = "connection.blocked"


def blocked_told_unasked(case: Case) -> None:
    """The server tells a client that it is blocked which has not said that it understands that.

    Why it matters: The client does not know the method, and may close the connection with reply-code 503.
    Silent when: the client has the capability connection.blocked, its capabilities could not be read, or
    octets were not captured. Told once.
    How to mend it: Read the capabilities in the client-properties of connection.start-ok. Send
    connection.blocked and connection.unblocked only if connection.blocked is true there.
    """
    case.report_once(
        "amqp091/C-BLOCKED-CAP",
        f"{case.name}, and the client has no capability connection.blocked",
        CERTAIN,
        {},
    )


def blocked_out_of_turn(case: Case) -> None:
    """A server sends connection.blocked while the connection is already blocked, or connection.unblocked
    while the connection is not blocked.

    Why it matters: The client cannot know whether it may publish, because the notifications of the server
    contradict each other.
    Silent when: octets of the server were not captured.
    How to mend it: Keep one blocked flag per connection. Send connection.blocked only when the flag changes
    from false to true, and connection.unblocked only when it changes back.
    """
    view = case.view
    before = f"blocked in packet {view.blocked_packet}" if view.blocked else "not blocked"
    case.report(
        "amqp091/C-BLOCKED-PAIR",
        f"{case.name}, and the connection is {before}",
        evidence={"blocked": view.blocked},
        others=[int(view.blocked_packet)] if view.blocked else [],
    )


def published_while_blocked(case: Case, since: i64, certainty: i64) -> None:
    """A client goes on publishing after it has received connection.blocked.

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
        "amqp091/C-BLOCKED-PUBLISH",
        f"basic.publish, {since / 1_000_000_000:.3f} s after connection.blocked "
        f"(packet {case.view.blocked_packet}) was received",
        certainty,
        {"blocked": True},
        [int(case.view.blocked_packet)],
    )


def judge_blocked(case: Case, blocks: bool) -> None:
    """connection.blocked, or unblocked."""
    if case.me.by_client or not case.me.whole:
        return
    view = case.view
    if view.client is not None and view.client.lacks(_CAPABILITY):
        blocked_told_unasked(case)
    elif view.blocked == blocks:
        blocked_out_of_turn(case)


def judge_publish(case: Case) -> None:
    """A basic.publish on a connection that is blocked, as far as the client knows."""
    view = case.view
    me = case.me
    since = case.record.time - me.blocked_time
    free = me.stalls.free(me.blocked_time, case.record.time)
    if me.by_client and me.whole and me.blocked_time > 0 and free > _ON_ITS_WAY:
        certainty: i64 = CERTAIN if me.knowledge.confirmed(view.blocked_end) else POSSIBLE
        published_while_blocked(case, since, certainty)


RULES = {
    "amqp091/C-BLOCKED-CAP": blocked_told_unasked,
    "amqp091/C-BLOCKED-PAIR": blocked_out_of_turn,
    "amqp091/C-BLOCKED-PUBLISH": published_while_blocked,
}
