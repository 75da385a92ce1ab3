"""The same packets captured twice: no retransmission, no fault of anybody's, and said so."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support.capture_files import Record, pcap
from support.commands import amqpscope
from support.tcp_writer import Capture

CAPTURES = Path(__file__).parents[2] / "captures"


def conversation(capture: Capture, again: bool = False) -> None:
    """A message, after which the client ends a session that it has not begun."""
    tcp = capture.connection("10.0.0.1:40000")
    tcp.handshake()
    client, server = tcp.client, tcp.server
    for end in (client, server):
        end.send(amqp.AMQP_HEADER)
        end.send(amqp.frame(amqp.open_(container_id="c")))
    begin = {"next_outgoing_id": 0, "incoming_window": 9, "outgoing_window": 9}
    client.send(amqp.frame(amqp.begin(**begin)))
    server.send(amqp.frame(amqp.begin(remote_channel=0, **begin)))
    if again:
        server.retransmit()
    client.send(amqp.frame(amqp.end(), channel=5))
    client.send(amqp.frame(amqp.flow(incoming_window=9, next_outgoing_id=0, outgoing_window=9)), each=7)
    tcp.goodbye()


def seen_by_another(data: bytes) -> bytes:
    """The packet behind a router and on another network: other addresses below IP, a tag, one hop less."""
    below = bytes.fromhex("0a0000000009 0a0000000008 8100 002a 0800")
    return below + data[14:22] + bytes([data[22] - 1]) + data[23:]


def two_taps(capture: Capture, path: Path, lag: int = 3) -> Path:
    """What one tap has, and behind each packet what another has of the one `lag` packets before."""
    seen = [packet.data for packet in capture.packets]
    both = []
    for at in range(len(seen) + lag):
        both += seen[at : at + 1]
        if at >= lag:
            both.append(seen_by_another(seen[at - lag]))
    start = capture.packets[0].time // 1000 * 1000
    path.write_bytes(pcap([Record(start + 20_000 * n, data) for n, data in enumerate(both)]))
    return path


def one_tap(capture: Capture, path: Path) -> Path:
    path.write_bytes(capture.pcap())
    return path


@pytest.mark.parametrize("lag", [1, 3, 12])
def test_two_taps_are_read_and_judged_as_one(
    lag: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = Capture()
    conversation(capture)
    results = []
    for path in (one_tap(capture, tmp_path / "one"), two_taps(capture, tmp_path / "two", lag)):
        frames = [json.loads(line) for line in amqpscope(capsys, "read", "--format", "ndjson", path).lines]
        found = [
            json.loads(line)
            for line in amqpscope(capsys, "check", "--format", "ndjson", path).out.splitlines()
        ]
        results.append(
            (
                [(one["peer"], one["name"], one["fields"]) for one in frames],
                [(one["rule"], one["certainty"], one["peer"], one["fingerprint"]) for one in found],
            )
        )
    assert results[0] == results[1]
    assert "amqp10/S-BEGIN-FIRST" in [rule for rule, *_ in results[0][1]]


def summary(capsys: pytest.CaptureFixture[str], path: Path) -> tuple[dict[str, object], list[str]]:
    reported = json.loads(amqpscope(capsys, "summary", "--format", "json", path).out)
    (connection,) = reported["connections"]
    return connection, [note["code"] for note in reported["notes"]]


def test_copies_are_reported_from_what_is_sent_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = Capture()
    conversation(capture)
    octets = summary(capsys, one_tap(capture, tmp_path / "one"))[0]["octets"]
    path = two_taps(capture, tmp_path / "two")
    connection, notes = summary(capsys, path)
    assert connection["retransmitted"] == {"client": 0, "server": 0}
    assert connection["captured_twice"] == connection["octets"] == octets
    assert notes == ["capture/duplicate"] * 2
    assert " twice " in amqpscope(capsys, "summary", path).out
    assert "captured twice, as with two capture points" in amqpscope(capsys, "check", path).out

    again = Capture()
    conversation(again, again=True)
    size = len(
        amqp.frame(amqp.begin(remote_channel=0, next_outgoing_id=0, incoming_window=9, outgoing_window=9))
    )
    connection, notes = summary(capsys, one_tap(again, tmp_path / "again"))
    assert connection["retransmitted"] == {"client": 0, "server": size}
    assert connection["captured_twice"] == {"client": 0, "server": 0}
    assert notes == []
    connection, _ = summary(capsys, two_taps(again, tmp_path / "both"))
    assert connection["retransmitted"] == {"client": 0, "server": size}


def test_a_recorded_capture_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each record of a file of a real peer twice: the findings are the same, and nothing was sent again."""
    octets = (CAPTURES / "rhea-transfer-before-attach.pcap").read_bytes()
    twice = octets[:24]
    at = 24
    while at < len(octets):
        (size,) = struct.unpack_from("<I", octets, at + 8)
        twice += octets[at : at + 16 + size] * 2
        at += 16 + size
    path = tmp_path / "twice.pcap"
    path.write_bytes(twice)
    found = []
    for one in (CAPTURES / "rhea-transfer-before-attach.pcap", path):
        lines = amqpscope(capsys, "check", "--fail-on", "never", "--format", "ndjson", one).out.splitlines()
        found.append([json.loads(line)["fingerprint"] for line in lines])
    assert found[0] == found[1] != []
    connection, notes = summary(capsys, path)
    assert connection["retransmitted"] == {"client": 0, "server": 0}
    assert set(notes) == {"capture/duplicate"}
