"""Messages that a broker took on one connection and sent on over others.

A broker is a container that accepts connections: the server's. What clients sent to it is known by
message-id, and what it sends them is compared with that. The specification wants a message-id to be one
message's; where two messages came in with one id and are not the same, nothing is said of that id.
"""

from collections.abc import Iterable

from amqpscope.model.finding import Finding
from amqpscope.rules.amqp10.intermediary import Way, judge_forwarded
from amqpscope.tracking.amqp10.message_digest import MessageDigest
from amqpscope.tracking.amqp10.summary import Amqp10Summary

__all__ = ["forwarded"]


class _Arrived:
    """A message that came to a broker."""

    def __init__(self, summary: Amqp10Summary, message_digest: MessageDigest) -> None:
        self.summary: Amqp10Summary = summary
        self.message_digest: MessageDigest = message_digest
        self.ambiguous: bool = False
        self.sent: int = 0


def forwarded(summaries: Iterable[Amqp10Summary]) -> list[Finding]:
    """What is wrong with messages that were sent on, of connections in the order of time."""
    kept = list(summaries)
    arrived: dict[tuple[str, bytes, bytes], _Arrived] = {}
    # Brokers of which all is known that they sent.
    whole: dict[tuple[str, bytes], bool] = {}
    for summary in kept:
        client = summary.connection.client_end()
        broker = _broker(summary)
        said_all = summary.whole and summary.all_passages[1 - client]
        whole[broker] = whole.get(broker, True) and said_all
        for message_digest in summary.digests[client]:
            key = (*broker, message_digest.message_id)
            before = arrived.get(key)
            if before is None:
                arrived[key] = _Arrived(summary, message_digest)
            elif (before.message_digest.sections, before.message_digest.sums) != (
                message_digest.sections,
                message_digest.sums,
            ):
                before.ambiguous = True
    left: list[tuple[int, Amqp10Summary, MessageDigest, _Arrived]] = []
    for summary in kept:
        for message_digest in summary.digests[1 - summary.connection.client_end()]:
            came = arrived.get((*_broker(summary), message_digest.message_id))
            if (
                came is not None
                and not came.ambiguous
                and came.message_digest.spot.time < message_digest.spot.time
            ):
                left.append((int(message_digest.spot.time), summary, message_digest, came))
    findings: list[Finding] = []
    for _, summary, message_digest, came in sorted(left, key=lambda one: one[0]):
        came.sent += 1
        first = came.sent == 1 and whole[_broker(summary)]
        way = Way(came.message_digest, came.summary.connection, message_digest, summary.connection)
        findings += _judge_draft(way) if message_digest.draft else judge_forwarded(way, first)
    return findings


def _judge_draft(way: Way) -> list[Finding]:
    """What is wrong with a message of the draft, whose rules are loaded with the first one."""
    from amqpscope.rules.amqp10_draft2011.intermediary import judge_forwarded as judge

    return judge(way)


def _broker(summary: Amqp10Summary) -> tuple[str, bytes]:
    """The container that accepted the connection, and where."""
    connection = summary.connection
    server = 1 - connection.client_end()
    width = (len(connection.key) - 4) // 2
    return summary.containers[server], connection.key[server * width : (server + 1) * width]
