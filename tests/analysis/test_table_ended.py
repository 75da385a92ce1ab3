"""Connections that are over are given out as they end, and forgotten, where that is asked for."""

from __future__ import annotations

from pathlib import Path

from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.reader import for_magic
from amqpscope.report.links import LinkNames

CAPTURES = Path(__file__).parents[2] / "captures"
RESUMED = CAPTURES / "rules" / "amqp10" / "L-ATTACH-UNSETTLED" / "violating.pcap"


def table_of(content: bytes, gathered: bool, correlates: bool) -> ConnectionTable:
    table = ConnectionTable("x", AnalysisOutput(judge=True), KeptConnections(False))
    table.kept.ended = gathered
    table.correlation.wanted = correlates
    reader = for_magic(content, table)
    assert reader is not None
    reader.feed(content)
    reader.finish()
    return table


def test_ended() -> None:
    table = table_of(RESUMED.read_bytes(), True, True)
    table.finish()
    ended = table.kept.take_ended()
    assert [analysis.connection.id for analysis in ended] == [
        "10.0.0.1:51034>10.0.0.2:5672#0",
        "10.0.0.1:51035>10.0.0.2:5672#0",
    ]
    assert table.kept.take_ended() == []
    assert table.kept.connections == []


def test_not_asked_for() -> None:
    table = table_of(RESUMED.read_bytes(), False, True)
    table.finish()
    assert table.kept.take_ended() == []


def test_summaries_are_left_to_the_caller() -> None:
    """Who judges connections against each other elsewhere takes the summaries instead of the findings."""
    own = table_of(RESUMED.read_bytes(), False, True)
    own.finish()
    other = table_of(RESUMED.read_bytes(), False, False)
    other.finish()
    assert (len(own.output.take_findings()), len(own.correlation.summaries)) == (
        len(other.output.take_findings()) + 1,
        0,
    )
    assert [summary.connection.id for summary in other.correlation.summaries] != []


def test_forgotten_links() -> None:
    """A connection's links are forgotten with it, and only its own."""
    table = table_of(RESUMED.read_bytes(), False, True)
    names = LinkNames()
    records = table.output.take_records()
    named = {record.connection for record in records if names.of(record) is not None}
    assert len(named) == 2
    attached = [record for record in records if record.frame.name == "transfer"]
    first = attached[0]
    assert names.of(first) is None or first.connection in named
    for connection in named:
        names.forget(connection)
    assert all(names.of(record) is None for record in attached)
