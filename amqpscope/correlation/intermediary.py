"""Messages that a broker took on one connection and sent on over others.

A broker is a container that accepts connections: the server's. What clients sent to it is known by
message-id, and what it sends them is held against that. The specification wants a message-id to be one
message's; where two messages came in with one id and are not the same, nothing is said of that id.
"""

from collections.abc import Iterable

from amqpscope.finding import Finding
from amqpscope.rules.amqp10.intermediary import judge_forwarded
from amqpscope.tracking.amqp10.passage import Passage
from amqpscope.tracking.amqp10.summary import Summary

__all__ = ["forwarded"]


class _Arrived:
    """A message that came to a broker."""

    def __init__(self, summary: Summary, passage: Passage) -> None:
        self.summary: Summary = summary
        self.passage: Passage = passage
        self.ambiguous: bool = False
        self.sent: int = 0


def forwarded(summaries: Iterable[Summary]) -> list[Finding]:
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
        for passage in summary.passages[client]:
            key = (*broker, passage.message_id)
            before = arrived.get(key)
            if before is None:
                arrived[key] = _Arrived(summary, passage)
            elif (before.passage.sections, before.passage.sums) != (passage.sections, passage.sums):
                before.ambiguous = True
    left: list[tuple[int, Summary, Passage, _Arrived]] = []
    for summary in kept:
        for passage in summary.passages[1 - summary.connection.client_end()]:
            came = arrived.get((*_broker(summary), passage.message_id))
            if came is not None and not came.ambiguous and came.passage.spot.time < passage.spot.time:
                left.append((int(passage.spot.time), summary, passage, came))
    findings: list[Finding] = []
    for _, summary, passage, came in sorted(left, key=lambda one: one[0]):
        came.sent += 1
        first = came.sent == 1 and whole[_broker(summary)]
        findings += judge_forwarded(came.passage, came.summary.connection, passage, summary.connection, first)
    return findings


def _broker(summary: Summary) -> tuple[str, bytes]:
    """The container that accepted the connection, and where."""
    connection = summary.connection
    server = 1 - connection.client_end()
    width = (len(connection.key) - 4) // 2
    return summary.containers[server], connection.key[server * width : (server + 1) * width]
