"""What only several connections of AMQP 0-9-1 can show."""

from collections.abc import Iterable

from amqpscope.model.finding import Finding
from amqpscope.tracking.amqp091.summary import Amqp091Summary
from amqpscope.tracking.summary import ConnectionSummary

__all__ = ["correlate"]


def correlate(summaries: Iterable[ConnectionSummary], whole: bool) -> list[Finding]:
    """What these connections, in the order of time, show together. whole: there were no others.

    What judges operations or messages is imported where there are any: that takes
    longer than a short conversation.
    """
    own = [one for one in summaries if isinstance(one, Amqp091Summary)]
    found: list[Finding] = []
    if any(one.operations for one in own):
        from amqpscope.correlation.entities import entrusted

        found += entrusted(own, whole)
    if whole and any(one.contents for one in own):
        from amqpscope.correlation.contents import passed

        found += passed(own)
    return found
