"""What ends inside connections that are in order: `why --end` shows it once, behind what failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.capture_files import SECOND, pcap
from support.commands import amqpscope
from support.rewritten import Rewriting, rewritten_records

CAPTURES = Path(__file__).resolve().parents[2] / "captures"

RECORDINGS = [
    "amqplib-routing",
    "pyamqp-gets",
    "amqplib-routing",
    "amqplib-routing",
    "amqplib-server-stalled",
]
"""Clients that delete the queues of their own consumers, one that closes with reply-code 0, and one whose
server falls silent: the client ends the connection by FIN, and the server answers it with RST."""


@pytest.fixture(autouse=True)
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    records = []
    for number, name in enumerate(RECORDINGS):
        how = Rewriting(ports=331 * number, time=SECOND * number, sequence=7919 * number)
        records += rewritten_records(CAPTURES / f"{name}.pcap", how)
    Path("five.pcap").write_bytes(pcap(sorted(records, key=lambda record: record.time)))


def test_what_failed_comes_first_and_what_is_alike_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope(capsys, "why", "--end", "five.pcap").lines
    assert [line.split()[2] for line in lines if line.startswith("── ")] == ["4", "0"]
    assert "the same on 2 more connections: 2, 3" in lines
    ends = [line for line in lines if line.startswith("consumer ")]
    assert len(ends) == 2


def test_a_close_with_code_0_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope(capsys, "summary", "five.pcap").lines
    assert lines[0] == "five.pcap: 5 connections, 1 went wrong"
    assert not [line for line in lines if "connection.close with 0" in line]


def test_the_first_end_of_a_connection_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope(capsys, "summary", "five.pcap").lines
    row = next(line for line in lines if line.lstrip().startswith("4 "))
    assert "client sent FIN, no close" in row
    text = amqpscope(capsys, "check", "five.pcap").out
    assert "answer    the client had given up already: FIN in packet" in text
