"""The charts of the flow: credit, windows, and what waits for an answer."""

from __future__ import annotations

from pathlib import Path

from support.dialogue import Dialogue
from support.pictures import picture_of

from amqpscope.draw.flow import Chart, FlowCharts, ahead
from amqpscope.limits import MAX_CHART_POINTS

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"


def charts(path: Path) -> FlowCharts:
    """Those of the worst connection of a capture."""
    (found,) = picture_of(path).flows.values()
    return found


def values(found: FlowCharts) -> dict[str, list[int]]:
    return {chart.title: [value for _, value in chart.points] for chart in found.charts.values()}


def test_credit_and_unsettled_deliveries(tmp_path: Path) -> None:
    d = Dialogue()
    d.linked(credit=2)
    d.client.transfer()
    d.client.transfer()
    d.server.disposition(0, 1)
    d.server.flow(handle=0, link_credit=3, delivery_count=2)
    d.client.transfer()
    path = tmp_path / "credit.pcap"
    path.write_bytes(d.pcap())
    found = charts(path)
    shown = values(found)
    assert shown["credit of link q, which the client may send on"] == [2, 1, 0, 3, 2]
    assert shown["unsettled deliveries of link q"] == [1, 2, 1, 0, 1]
    assert shown["how many more transfer frames the client may send in session 0"][:3] == [2048, 2047, 2046]
    assert sum(found.latencies) == 2


def test_unacknowledged_deliveries() -> None:
    shown = values(charts(CAPTURES / "pika-prefetch.pcap"))
    assert max(shown["unacknowledged deliveries of channel 1"]) == 6
    assert shown["unacknowledged deliveries of channel 1"][-1] == 0


def test_unconfirmed_publishes() -> None:
    found = charts(CAPTURES / "amqplib-confirm.pcap")
    unconfirmed = [
        value for title, value in values(found).items() if title.startswith("unconfirmed publishes")
    ]
    assert unconfirmed and all(value[-1] == 0 and max(value) > 0 for value in unconfirmed)
    assert sum(found.latencies) > 0


def test_a_chart_keeps_its_extremes_and_is_bounded() -> None:
    chart = Chart("credit")
    for number in range(20_000):
        chart.step(number, -5 if number == 777 else 9000 if number == 7777 else 10 + number % 7)
    kept = [value for _, value in chart.points]
    assert len(kept) <= MAX_CHART_POINTS
    assert (min(kept), max(kept)) == (-5, 9000)
    assert [time for time, _ in chart.points] == sorted(time for time, _ in chart.points)


def test_serial_numbers_wrap() -> None:
    assert ahead(5, 2) == 3 and ahead(2, 5) == -3
    assert ahead(1 + (1 << 32), (1 << 32) - 1) == 2
