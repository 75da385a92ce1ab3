"""What only several connections of one capture set can show.

The summaries of all its connections are taken in the order of time, whatever the order in which they ended
or were captured.
"""

from collections.abc import Iterable

from amqpscope.correlation.intermediary import forwarded
from amqpscope.correlation.resumption import resumed
from amqpscope.finding import Finding
from amqpscope.tracking.summary import ConnectionSummary

__all__ = ["correlate"]


def correlate(summaries: Iterable[ConnectionSummary]) -> list[Finding]:
    """The findings that it takes several connections for."""
    ordered = sorted(summaries, key=_age)
    return [*resumed(ordered), *forwarded(ordered)]


def _age(summary: ConnectionSummary) -> tuple[int, bytes, int]:
    """Connections in the order of time; those that began at once in any that is always the same."""
    connection = summary.connection
    return connection.began, connection.key, connection.instance
