"""`amqpscope why --end`: what ended, who did it, and the first cause that the capture shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope

from amqpscope.finding import Finding
from amqpscope.model import Connection, Spot
from amqpscope.tracking.knowledge import CERTAIN
from amqpscope.why.endings import Ended, Tracing
from amqpscope.why.endings10 import Following10
from amqpscope.why.place import Mark

ROOT = Path(__file__).parent.parent.parent / "captures"


def endings(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[list[dict[str, Any]]]:
    """Of each connection what ended on it."""
    result = amqpscope(capsys, "why", "--end", "--format", "json", *arguments)
    assert (result.status, result.err) == (0, "")
    found = json.loads(result.out)
    assert found["schema"] == "amqpscope/why/1"
    return [connection["endings"] for connection in found["connections"]]


def violating(rule: str) -> Path:
    return ROOT / "rules" / rule / "violating.pcap"


def causes(ending: dict[str, Any]) -> list[tuple[bool, int | None, str | None]]:
    """Of each step back: whether it is a cause, its packet, and the rule if it is a finding."""
    return [
        (step["sure"], step["packet"], None if step["finding"] is None else step["finding"]["rule"])
        for step in ending["because"]
    ]


def test_a_close_is_traced_to_the_method_that_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    first, _, _, last = endings(capsys, ROOT / "pika-connection-errors.pcap")
    assert (first[0]["thing"], first[0]["peer"], first[0]["condition"]) == ("connection", "server", "503")
    assert causes(first[0]) == [(True, 16, "amqp091/X-DECL-TYPE-PREFIX")]
    assert first[0]["because"][0]["frame"]["name"] == "exchange.declare"
    assert first[1]["what"] == "ended with the connection"
    assert causes(first[1])[-1] == (True, 16, "amqp091/X-DECL-TYPE-PREFIX")
    assert causes(last[0]) == [(True, 83, "amqp091/B-CTAG-UNIQUE")]


def test_an_error_answers_what_was_said_since_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    (connection, _) = endings(capsys, ROOT / "pika-channel-errors.pcap")
    refused = {one["packet"]: one for one in connection if one["thing"] == "channel 1"}
    assert causes(refused[103]) == [(True, 102, "amqp091/Q-DECL-RESERVED")]
    assert refused[103]["because"][0]["frame"]["name"] == "queue.declare"
    # The one before is answered with the same code, and is not what this one is about.
    assert causes(refused[109]) == [(True, 108, None)]
    assert refused[109]["because"][0]["frame"]["name"] == "basic.consume"


def test_a_finding_that_another_error_was_for_is_no_cause() -> None:
    connection = Connection("c.pcap", 0, 0, bytes(12))
    connection.client = 0
    spot = Spot(0, 10, 0, 100, "transfer", 0)
    finding = Finding("amqp10/L-CREDIT", CERTAIN, "beyond", connection, spot, {}, [])
    finding.reaction, finding.reaction_packet = "detach", 30
    condition = "amqp:link:transfer-limit-exceeded"
    for before, causes in ((None, [finding]), (5, [finding]), (20, [])):
        answered = None if before is None else Mark(1, 0, 1, before, 0, "detach", 0)
        mark = Mark(1, 50, 60, 30, 0, "close", 0)
        following = Following10(connection)
        following.whole.ended = Ended("server", "was closed", mark, condition, None, 0, answered, None, None)
        (ending,) = Tracing(following, [finding], []).endings()
        assert [step.finding for step in ending.steps if step.finding is not None] == causes


def test_what_only_came_before_is_no_cause(capsys: pytest.CaptureFixture[str]) -> None:
    (connection, _) = endings(capsys, ROOT / "pika-channel-errors.pcap")
    assert connection[0]["condition"] is None
    assert causes(connection[0])[0] == (False, 109, None)
    assert "  perhaps  the server had told of an error before" in (
        amqpscope(capsys, "why", "--end", ROOT / "pika-channel-errors.pcap").out
    )


def test_a_session_is_ended_for_a_broken_rule(capsys: pytest.CaptureFixture[str]) -> None:
    (connection,) = endings(capsys, violating("amqp10/L-UNATTACHED-TRANSFER"))
    answered = [one for one in connection if one["condition"]]
    for one in answered:
        assert (True, 13, "amqp10/L-UNATTACHED-TRANSFER") in causes(one)
    assert connection[0]["thing"] == "connection"


def test_a_link_that_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        one for path in sorted(ROOT.glob("rhea*.pcap")) for part in endings(capsys, path) for one in part
    ]
    refused = [one for one in found if one["because"] and "link is refused" in one["because"][0]["what"]]
    assert refused
    for one in refused:
        assert one["thing"].startswith("link ")
        (step,) = one["because"]
        assert step["frame"]["name"] == "attach"
        assert step["frame"]["peer"] != one["peer"]


def test_a_login_that_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    connections = endings(capsys, ROOT / "librabbitmq-refused.pcap")
    step = connections[0][0]["because"][0]
    assert (step["what"], step["frame"]["name"]) == ("the login that is refused", "connection.start-ok")


def test_a_silence_for_longer_than_agreed(capsys: pytest.CaptureFixture[str]) -> None:
    found = [one for part in endings(capsys, ROOT / "pika-heartbeat-missed.pcap") for one in part]
    silent = [step for one in found for step in one["because"] if " s of silence of the " in step["what"]]
    assert silent
    assert "the heartbeat allows " in silent[0]["what"]


def test_a_stream_that_ends_without_a_close(capsys: pytest.CaptureFixture[str]) -> None:
    (connection,) = endings(capsys, violating("amqp091/C-CLOSE-HANDSHAKE"))
    assert connection[0]["what"] == "was ended by the client without a close, with FIN in packet 12"
    assert [one["what"] for one in connection[1:]] == ["was still there when the connection ended"]


def test_one_connection_of_several(capsys: pytest.CaptureFixture[str]) -> None:
    capture = ROOT / "pika-connection-errors.pcap"
    everything = endings(capsys, capture)
    assert endings(capsys, "--connection", "3", capture) == [everything[3]]
    result = amqpscope(capsys, "why", "--end", "--connection", "77", capture)
    assert result.status == 3
    assert amqpscope(capsys, "why", "--end", "--connection", "x", capture).status == 2


def test_what_makes_no_sense_together(capsys: pytest.CaptureFixture[str]) -> None:
    capture = ROOT / "pika-connection-errors.pcap"
    for arguments, words in (
        (["--end", capture, 3], "--end: asks about all of a connection, not about a packet"),
        ([capture], "a PACKET is needed, or --end"),
        (["--connection", "1", capture, 3], "--connection: only with --end"),
    ):
        result = amqpscope(capsys, "why", *arguments)
        assert (result.status, result.out, result.err) == (2, "", f"amqpscope: {words}\n")
