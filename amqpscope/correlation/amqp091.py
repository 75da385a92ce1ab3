"""What only several connections of AMQP 0-9-1 can show."""

from collections.abc import Iterable

from amqpscope.correlation.contents import passed
from amqpscope.correlation.entities import entrusted
from amqpscope.model.finding import Finding
from amqpscope.tracking.amqp091.summary import Amqp091Summary
from amqpscope.tracking.summary import ConnectionSummary

__all__ = ["correlate"]


def correlate(summaries: Iterable[ConnectionSummary], whole: bool) -> list[Finding]:
    """What these connections, in the order of time, show together. whole: there were no others."""
    own = [one for one in summaries if isinstance(one, Amqp091Summary)]
    found = entrusted(own, whole)
    if whole:
        found += passed(own)
    return found
