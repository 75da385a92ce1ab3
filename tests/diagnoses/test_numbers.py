"""The numbers of `summary`: who waited how long, how long answers took, what became of messages."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from support.commands import amqpscope
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.dialogue091 import Dialogue091
from support.network import PROTOCOLS, Tap, captured, converse

from amqpscope.diagnoses.latency import Histogram
from amqpscope.report.painter import Painter


class Asked:
    """Asks `summary` about the only connection of a dialogue."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self.capsys = capsys
        self.file = folder / "one.pcap"

    def json(self, d: Dialogue | Dialogue091) -> dict[str, Any]:
        self.file.write_bytes(d.pcap())
        written = amqpscope(self.capsys, "summary", "--format", "json", self.file)
        (connection,) = json.loads(written.out)["connections"]
        found: dict[str, Any] = connection
        return found

    def text(self, d: Dialogue | Dialogue091, *more: str) -> str:
        self.file.write_bytes(d.pcap())
        return amqpscope(self.capsys, "summary", *more, self.file).out


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Asked:
    return Asked(capsys, tmp_path)


def link10(credit: int) -> Dialogue:
    """A client receives on a link, three seconds after it has attached it."""
    d = Dialogue()
    d.opened(client={"idle_time_out": 40_000})
    d.client.begin()
    d.wait(seconds=0.5)
    d.server.begin()
    d.client.attach(RECEIVER)
    d.server.attach(SENDER)
    d.wait(seconds=3)
    d.client.flow(handle=0, link_credit=credit)
    return d


def test_credit_outcomes_and_settlement_of_a_link(asked: Asked) -> None:
    d = link10(2)
    first = d.server.transfer(b"\x00\x53\x70\xc0\x06\x05\x40\x40\x40\x40\x43\x00\x53\x75\xa0\x01a")
    last = d.server.transfer(b"\x00\x53\x70\xc0\x07\x05\x40\x40\x40\x40\x52\x03\x00\x53\x75\xa0\x01b")
    d.wait(seconds=2)
    d.client.disposition(0)
    d.wait(seconds=4)
    d.client.flow(handle=0, link_credit=1, delivery_count=2)
    d.goodbye()
    connection = asked.json(d)
    (link,) = connection["links"]
    credit, deliveries = link["credit"], link["deliveries"]
    assert (credit["granted"], credit["used"], credit["largest"]) == (3, 2, 2)
    assert credit["waited"]["seconds"] == pytest.approx(9, abs=0.1)
    assert credit["waited"]["longest"] == pytest.approx(6, abs=0.1)
    assert credit["waited"]["longest_packet"] == d.packet_number(last)
    assert deliveries["outcomes"] == {"accepted": 1}
    assert (deliveries["messages"], deliveries["redelivered"], deliveries["unsettled"]) == (2, 1, 1)
    assert deliveries["settlement_seconds"]["p50"] == pytest.approx(2, abs=0.1)
    assert deliveries["settlement_seconds"]["longest_packets"][0] == d.packet_number(first)
    assert deliveries["unsettled_packet"] == d.packet_number(last)
    assert deliveries["unsettled_longest"] == pytest.approx(6, abs=0.1)
    assert connection["requests"]["begin"]["longest"] == pytest.approx(0.5, abs=0.1)
    assert set(connection["requests"]) == {"attach", "begin", "close"}
    silence = connection["silence"]
    assert silence["server"]["limit"] == 40
    assert silence["client"]["longest"] == pytest.approx(4, abs=0.1)
    text = asked.text(d, "--connection", "0")
    assert f"server: no credit on {link['name']}" in text


def test_a_window_that_is_closed(asked: Asked) -> None:
    d = Dialogue()
    d.begun(client={"incoming_window": 1})
    d.client.attach(RECEIVER)
    d.server.attach(SENDER)
    d.client.flow(handle=0, link_credit=10)
    last = d.server.transfer(settled=True)
    d.wait(seconds=7)
    d.client.flow(incoming_window=5)
    (session,) = asked.json(d)["windows"]
    closed = session["window_closed"]
    assert closed["server"]["seconds"] == pytest.approx(7, abs=0.1)
    assert closed["server"]["longest_packet"] == d.packet_number(last)
    assert closed["client"]["seconds"] == 0


def channel091() -> Dialogue091:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    return d


def test_prefetch_and_acknowledgements_of_a_consumer(asked: Asked) -> None:
    d = channel091()
    d.declare("q")
    d.qos(2)
    d.consume("q")
    d.server.deliver(b"one")
    last = d.server.deliver(b"three", redelivered=True)
    d.wait(seconds=5)
    d.client.ack(1)
    d.client.reject(2)
    d.server.deliver(b"four")
    (channel,) = asked.json(d)["channels"]
    (consumer,) = channel["consumers"]
    assert (consumer["queue"], consumer["prefetch"]) == ("q", 2)
    assert consumer["prefetch_full"]["seconds"] == pytest.approx(5, abs=0.1)
    assert consumer["prefetch_full"]["longest_packet"] == d.packet_number(last)
    deliveries = consumer["deliveries"]
    assert deliveries["outcomes"] == {"ack": 1, "reject-requeue": 1}
    assert (deliveries["median_octets"], deliveries["largest_octets"]) == (4, 5)
    assert (deliveries["redelivered"], deliveries["unsettled"]) == (1, 1)
    assert deliveries["settlement_seconds"]["count"] == 2
    assert deliveries["messages_per_second"] == pytest.approx(0.6, abs=0.01)


def test_confirms_returns_gets_and_what_is_stopped(asked: Asked) -> None:
    d = channel091()
    d.confirms()
    d.client.publish(b"one")
    d.wait(seconds=1.5)
    d.server.confirm(1)
    d.client.publish(b"two")
    d.client.get("q")
    d.server.get_empty()
    blocked = d.server.blocked()
    d.wait(seconds=8)
    d.server.unblocked()
    d.server.flow(False)
    d.wait(seconds=3)
    d.server.flow(True)
    connection = asked.json(d)
    (channel,) = connection["channels"]
    published = channel["published"]
    assert published["outcomes"] == {"ack": 1}
    assert published["settlement_seconds"]["longest"] == pytest.approx(1.5, abs=0.1)
    assert published["unsettled"] == 1
    assert (channel["empty_gets"], channel["fetched"]) == (1, None)
    assert connection["blocked"]["seconds"] == pytest.approx(8, abs=0.1)
    assert connection["blocked"]["longest_packet"] == d.packet_number(blocked)
    assert channel["stopped_by"]["server"]["seconds"] == pytest.approx(3, abs=0.1)
    assert channel["stopped_by"]["client"]["seconds"] == 0
    assert connection["requests"]["basic.get"]["count"] == 1
    assert "client: connection blocked by server" in asked.text(d, "--connection", "0")


def test_what_octets_that_are_missing_may_have_granted_is_not_counted(asked: Asked) -> None:
    d = link10(1)
    d.server.transfer(settled=True)
    with d.missed():
        d.client.flow(handle=0, link_credit=10, delivery_count=1)
    d.wait(seconds=20)
    d.client.empty()
    (link,) = asked.json(d)["links"]
    assert link["credit"]["waited"]["seconds"] == pytest.approx(3, abs=0.2)


def test_all_lines_of_a_connection_that_was_asked_for_fit_80_columns(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("amqpscope.cli.summary.painter", _narrow)
    d = link10(2)
    d.server.transfer()
    d.wait(seconds=2)
    d.goodbye()
    text = asked.text(d, "--connection", "0")
    assert "who waited" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_message_has_one_outcome_or_is_left(
    protocol: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    counted = 0
    for number in range(4):
        file = tmp_path / f"{number}.pcap"
        conversation = converse(f"numbers-{number}", protocol=protocol)
        file.write_bytes(captured(conversation, Tap(seed="whole")).octets)
        written = amqpscope(capsys, "summary", "--format", "json", file)
        for connection in json.loads(written.out)["connections"]:
            flows = [link["deliveries"] for link in connection["links"]]
            for channel in connection["channels"]:
                flows += [consumer["deliveries"] for consumer in channel["consumers"]]
            for flow in flows:
                counted += flow["messages"]
                assert sum(flow["outcomes"].values()) + flow["unsettled"] >= flow["messages"]
    assert counted > 10


def _narrow() -> tuple[Painter, int]:
    return Painter(Console(file=sys.stdout, color_system=None), 80), 80


def test_percentiles_of_many_numbers_are_too_large_by_an_eighth_at_most() -> None:
    chance = random.Random("histogram")
    histogram = Histogram()
    numbers = sorted(int(2 ** chance.uniform(0, 40)) for _ in range(5000))
    for number in numbers:
        histogram.put(number)
    for part in (0.01, 0.5, 0.95, 0.99, 1.0):
        exact = numbers[min(int(part * 5000), 4999)]
        before = numbers[max(int(part * 5000) - 1, 0)]
        assert before <= histogram.quantile(part) <= exact * 1.125 + 1
    assert len(histogram.buckets) < 400
