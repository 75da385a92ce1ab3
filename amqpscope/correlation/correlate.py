"""What only several connections of one capture set can show.

The summaries of all its connections are taken in the order of time, whatever the order in which they ended
or were captured.
"""

from collections.abc import Iterable

from amqpscope.correlation.contents import passed
from amqpscope.correlation.entities import entrusted
from amqpscope.correlation.intermediary import forwarded
from amqpscope.correlation.resumption import resumed
from amqpscope.model.finding import Finding
from amqpscope.model.reaction import NO_REACTION, NOT_AWAITED
from amqpscope.tracking.amqp091.summary import Amqp091Summary as Summary091
from amqpscope.tracking.amqp10.summary import Amqp10Summary as Summary10
from amqpscope.tracking.summary import ConnectionSummary

__all__ = ["correlate"]


def correlate(summaries: Iterable[ConnectionSummary], whole: bool = True) -> list[Finding]:
    """The findings that it takes several connections for.

    whole: there were no other connections in the time of the capture; else they may have done what is not
    seen here.
    """
    ordered = sorted(summaries, key=_age)
    links = [one for one in ordered if isinstance(one, Summary10)]
    said = [one for one in ordered if isinstance(one, Summary091)]
    found = [*resumed(links), *forwarded(links)]
    if not whole:
        for finding in found:
            finding.certain = False
    found += entrusted(said, whole)
    if whole:
        found += passed(said)
    for finding in found:
        if finding.reaction is NO_REACTION:
            finding.reaction = NOT_AWAITED
    return found


def _age(summary: ConnectionSummary) -> tuple[int, bytes, int]:
    """Connections in the order of time; those that began at once in any that is always the same."""
    connection = summary.connection
    return connection.began, connection.key, connection.instance
