"""What connections leave to those after them."""

from __future__ import annotations

from support.dialogue import Dialogue

from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.reader import for_magic
from amqpscope.tracking.summary import ConnectionSummary

__all__ = ["summaries"]


def summaries(d: Dialogue, allowed: int | None = None) -> list[ConnectionSummary]:
    """Of all connections of a dialogue. allowed: so many messages of them are kept."""
    content = d.pcap()
    table = ConnectionTable("capture", AnalysisOutput(judge=True), KeptConnections(False))
    table.correlation.wanted = False
    if allowed is not None:
        table.output.allowance.left = allowed
    reader = for_magic(content, table)
    assert reader is not None
    reader.feed(content)
    reader.finish()
    table.finish()
    return table.correlation.summaries
