"""Connections that are over are given out as they end, and forgotten, where that is asked for."""

from __future__ import annotations

from pathlib import Path

from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.reader import for_magic
from amqpscope.report.links import LinkNames

CAPTURES = Path(__file__).parents[2] / "captures"
RESUMED = CAPTURES / "rules" / "amqp10" / "L-ATTACH-UNSETTLED" / "violating.pcap"


def table_of(content: bytes, gathered: bool, correlates: bool) -> ConnectionTable:
    table = ConnectionTable("x", keep=False, judge=True)
    table.gather_ended = gathered
    table.correlates = correlates
    reader = for_magic(content, table)
    assert reader is not None
    reader.feed(content)
    reader.finish()
    return table


def test_ended() -> None:
    table = table_of(RESUMED.read_bytes(), True, True)
    table.finish()
    ended = table.take_ended()
    assert [analysis.connection.id for analysis in ended] == [
        "10.0.0.1:51034>10.0.0.2:5672#0",
        "10.0.0.1:51035>10.0.0.2:5672#0",
    ]
    assert table.take_ended() == []
    assert table.connections == []


def test_not_asked_for() -> None:
    table = table_of(RESUMED.read_bytes(), False, True)
    table.finish()
    assert table.take_ended() == []


def test_summaries_are_left_to_the_caller() -> None:
    """Who judges connections against each other elsewhere takes the summaries instead of the findings."""
    own = table_of(RESUMED.read_bytes(), False, True)
    own.finish()
    other = table_of(RESUMED.read_bytes(), False, False)
    other.finish()
    assert (len(own.findings), len(own.summaries)) == (len(other.findings) + 1, 0)
    assert [summary.connection.id for summary in other.summaries] != []


def test_forgotten_links() -> None:
    """A connection's links are forgotten with it, and only its own."""
    table = table_of(RESUMED.read_bytes(), False, True)
    names = LinkNames()
    records = table.take_records()
    named = {record.connection for record in records if names.of(record) is not None}
    assert len(named) == 2
    attached = [record for record in records if record.frame.name == "transfer"]
    first = attached[0]
    assert names.of(first) is None or first.connection in named
    for connection in named:
        names.forget(connection)
    assert all(names.of(record) is None for record in attached)
