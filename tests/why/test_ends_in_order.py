"""`why --end` of many connections leaves out what ended in order; of a chosen one it shows all."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.busy_night import busy_night
from support.commands import amqpscope


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("night.pcap").write_bytes(busy_night(most=1))
    return tmp_path


def test_of_many_connections_only_those_that_went_wrong_are_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = amqpscope(capsys, "why", "--end", "night.pcap").lines
    headings = [line.split()[2] for line in lines if line.startswith("── ")]
    assert headings == ["9", "10", "11"]
    assert not [line for line in lines if "the capture does not show why" in line]
    assert [line for line in lines if line.startswith("next: ")] == [
        "next: amqpscope why night.pcap 491",
        "next: amqpscope why night.pcap 545",
        "next: amqpscope why night.pcap 602",
    ]
    assert lines[-1] == "9 connections ended normally, or not at all (--connection shows one)"


def test_a_chosen_connection_is_shown_although_it_ended_in_order(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = amqpscope(capsys, "why", "--end", "--connection", "1", "night.pcap").out
    assert "connection was closed by the client" in text
    assert "the capture does not show why" in text
    assert "ended normally" not in text
