"""What `why` and `summary` tell of a peer that could not write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091


def window_closed(tmp_path: Path, opens: bool) -> tuple[Path, int]:
    """A capture in which the client's window is closed for 5 s, and the packet of its heartbeat then."""
    d = Dialogue091()
    d.opened()
    d.channel()
    d.client.end.window = 0
    d.client.end.ack()
    d.wait(seconds=5)
    if opens:
        d.client.end.window = 0xFFFF
        d.client.end.ack()
    said = d.client.heartbeat()
    d.goodbye()
    path = tmp_path / "window.pcap"
    path.write_bytes(d.pcap())
    return path, d.packet_number(said)


def octets_sent_again(tmp_path: Path) -> tuple[Path, int]:
    d = Dialogue()
    d.opened()
    with d.tcp.lost():
        d.server.begin()
        d.client.empty()
        d.server.end.retransmit()
        d.wait(seconds=3)
    d.client.end.ack()
    said = d.client.empty()
    d.goodbye()
    path = tmp_path / "again.pcap"
    path.write_bytes(d.pcap())
    return path, d.packet_number(said)


def explained(capsys: pytest.CaptureFixture[str], path: Path, packet: int) -> tuple[str, dict[str, Any]]:
    text = " ".join(amqpscope(capsys, "why", path, packet).out.split())
    found = json.loads(amqpscope(capsys, "why", path, packet, "--format", "json").out)
    return text, found["before"]["server"]["stall"]


def test_why_tells_that_a_peer_cannot_write_and_since_when(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, packet = window_closed(tmp_path, opens=False)
    text, stall = explained(capsys, path, packet)
    assert f"cannot write since packet {packet - 1}: the TCP window of the client leaves no room" in text
    assert stall == {"cause": "window", "packet": packet - 1, "seconds": None}


def test_why_tells_for_how_long_a_peer_could_not_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, packet = window_closed(tmp_path, opens=True)
    text, stall = explained(capsys, path, packet)
    assert f"could not write for 5.001 s from packet {packet - 2} on: the TCP window of the client" in text
    assert stall == {"cause": "window", "packet": packet - 2, "seconds": 5.001}


def test_why_tells_of_octets_that_were_sent_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, stall = explained(capsys, *octets_sent_again(tmp_path))
    assert "TCP does not acknowledge the octets that this peer sends again" in text
    assert (stall["cause"], stall["seconds"]) == ("resent", 3.001)


def test_a_summary_tells_for_how_long_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = window_closed(tmp_path, opens=True)
    out = amqpscope(capsys, "summary", path).out
    assert "server could not write for 5.001 s: the TCP window of the client left no room" in out
    (found,) = json.loads(amqpscope(capsys, "summary", "--format", "json", path).out)["connections"]
    assert found["could_not_write"] == {
        "client": {"window_seconds": 0.0, "resent_seconds": 0.0},
        "server": {"window_seconds": 5.001, "resent_seconds": 0.0},
    }
    path, _ = octets_sent_again(tmp_path)
    out = amqpscope(capsys, "summary", path).out
    assert "server could not write for 3.001 s: its octets were sent again and not acknowledged" in out
