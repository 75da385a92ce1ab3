"""Which frames `read --from`, `--to` and `--only error` take, and what `--count` counts of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.commands import amqpscope

CAPTURES = Path(__file__).parent.parent.parent / "captures"
REFUSED = CAPTURES / "rhea-transfer-before-attach.pcap"
"""Frames in packets 4 to 21, on one day between 10:44 and 10:45 UTC, 12 ms in all."""


def lines(capsys: pytest.CaptureFixture[str], *options: str) -> list[tuple[int, str]]:
    """Packet and name of each frame that `read` shows of the capture."""
    result = amqpscope(capsys, "read", "--format", "ndjson", *options, REFUSED)
    assert (result.status, result.err) == (0, "")
    return [(one["packet"], one["name"]) for one in map(json.loads, result.lines)]


def test_packets_from_and_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "--from", "13", "--to", "16") == [(13, "header"), (14, "open"), (16, "begin")]


def test_seconds_since_the_first_frame(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "--from", "+0.009") == [(17, "transfer"), (19, "close"), (21, "transfer")]
    assert lines(capsys, "--to", "+0.001115") == [(4, "header"), (6, "header")]
    assert lines(capsys, "--to", "+0.001114999") == [(4, "header")]


@pytest.mark.parametrize("zone", ["", "Z", "+00:00"])
def test_a_moment_with_nanoseconds(capsys: pytest.CaptureFixture[str], zone: str) -> None:
    first = amqpscope(capsys, "read", "--format", "ndjson", "--from", "19", "--to", "19", REFUSED)
    moment = json.loads(first.lines[0])["time"].removesuffix("Z")
    assert len(moment.partition(".")[2]) > 3
    assert lines(capsys, "--from", moment + zone, "--to", moment + zone) == [(19, "close")]


def test_a_moment_in_another_zone(capsys: pytest.CaptureFixture[str]) -> None:
    first = amqpscope(capsys, "read", "--format", "ndjson", "--from", "19", "--to", "19", REFUSED)
    day, _, clock = json.loads(first.lines[0])["time"].removesuffix("Z").partition("T")
    hour, _, rest = clock.partition(":")
    assert lines(capsys, "--from", f"{day}T{int(hour) + 2:02}:{rest}+02:00")[0] == (19, "close")


def test_frames_that_report_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, "--only", "error") == [(19, "close")]


@pytest.mark.parametrize(
    ("rule", "packet", "name"),
    [("TX-DISCHARGE-FAIL-REJECT", 19, "disposition"), ("SA-OUTCOME-DATA", 8, "sasl-outcome")],
)
def test_outcomes_that_report_an_error(
    capsys: pytest.CaptureFixture[str], rule: str, packet: int, name: str
) -> None:
    capture = CAPTURES / "rules" / "amqp10" / rule / "clean.pcap"
    result = amqpscope(capsys, "read", "--format", "ndjson", "--only", "error", capture)
    found = [(one["packet"], one["name"]) for one in map(json.loads, result.lines)]
    assert found[0] == (packet, name)
    assert {name for _, name in found} == {name}


def test_only_the_frames_asked_for_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "read", "--count", "--from", "17", REFUSED)
    assert result.status == 0
    assert result.lines[0].endswith(": 3 frames on 1 connection, 234 octets")
    assert [line.split() for line in result.lines[2:]] == [
        ["transfer", "-", "2"],
        ["close", "1", "-"],
        ["all", "1", "2"],
    ]
