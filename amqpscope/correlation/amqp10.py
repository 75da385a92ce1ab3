"""What only several connections of AMQP 1.0 can show."""

from collections.abc import Iterable

from amqpscope.model.finding import Finding
from amqpscope.tracking.amqp10.summary import Amqp10Summary
from amqpscope.tracking.summary import ConnectionSummary

__all__ = ["correlate"]


def correlate(summaries: Iterable[ConnectionSummary], whole: bool) -> list[Finding]:
    """What these connections, in the order of time, show together. whole: there were no others.

    What judges links or messages is imported where there are any: that takes
    longer than a short conversation.
    """
    own = [one for one in summaries if isinstance(one, Amqp10Summary)]
    found: list[Finding] = []
    if any(any(one.links) for one in own):
        from amqpscope.correlation.resumption import resumed

        found += resumed(own)
    if any(any(one.digests) for one in own):
        from amqpscope.correlation.intermediary import forwarded

        found += forwarded(own)
    if not whole:
        for finding in found:
            finding.certain = False
    return found
