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

    Why it matters: the client does not know the method, and may close the connection with 503.
    Silent when: the client has the capability connection.blocked, its capabilities could not be read, or
    octets were not captured. Told once.
    """
    case.report_once(
        "amqp091/C-BLOCKED-CAP",
        f"{case.name}, and the client has no capability connection.blocked",
        CERTAIN,
        {},
    )


def blocked_out_of_turn(case: Case) -> None:
    """The server says blocked twice, or unblocked without blocked.

    Why it matters: the client cannot know whether it may publish.
    Silent when: octets of the server's were not captured.
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
    """A client that was told that it is blocked goes on publishing.

    Why it matters: the server reads nothing from it meanwhile, not even its acknowledgements and its close.
    Silent when: the client was told less than a second before, or octets of the server's were not captured.
    Possible unless the client has shown that it had read it. Told once.
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
