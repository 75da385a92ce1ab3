"""What only several connections of one capture set can show.

The summaries of all its connections are taken in the order of time, whatever the order in which they ended
or were captured. Each protocol judges those of its own connections, and of its dialects.
"""

from collections.abc import Iterable

from amqpscope.model.finding import Finding
from amqpscope.model.reaction import NO_REACTION, NOT_AWAITED
from amqpscope.protocols import detected, protocol_of
from amqpscope.tracking.summary import ConnectionSummary

__all__ = ["correlate"]


def correlate(summaries: Iterable[ConnectionSummary], whole: bool = True) -> list[Finding]:
    """The findings that it takes several connections for.

    whole: there were no other connections in the time of the capture; else they may have done what is not
    seen here.
    """
    of_each: dict[str, list[ConnectionSummary]] = {}
    for one in sorted(summaries, key=_age):
        protocol = protocol_of(one.connection.protocol)
        of_each.setdefault(protocol.usual or protocol.name, []).append(one)
    found: list[Finding] = []
    for protocol in detected():
        own = of_each.get(protocol.name)
        if own:
            found += protocol.correlate(own, whole)
    for finding in found:
        if finding.reaction is NO_REACTION:
            finding.reaction = NOT_AWAITED
    return found


def _age(summary: ConnectionSummary) -> tuple[int, bytes, int]:
    """Connections in the order of time; those that began at once in any that is always the same."""
    connection = summary.connection
    return connection.began, connection.key, connection.instance
