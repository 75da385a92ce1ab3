"""`amqpscope why`: the diagnoses that explain an end, and those that concern a packet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.conversation import Conversation
from support.dialogue import RECEIVER, SENDER, Dialogue

ROOT = Path(__file__).parent.parent.parent / "captures"


def starved(closes: bool) -> tuple[Dialogue, int]:
    """The receiver's credit of 1 is used up for 30 s; then the client closes, or the capture ends."""
    d = Dialogue()
    d.begun()
    d.client.attach(RECEIVER)
    d.server.attach(SENDER)
    d.client.flow(handle=0, link_credit=1)
    last = d.packet_number(d.server.transfer(settled=True))
    for _ in range(3):
        d.wait(seconds=10)
        d.client.empty()
        d.server.empty()
    if closes:
        d.client.close()
        d.server.close()
    return d, last


def ends(
    capsys: pytest.CaptureFixture[str], d: Conversation | Path, folder: Path, *options: str
) -> dict[str, Any]:
    path = d if isinstance(d, Path) else folder / "dialogue.pcap"
    if not isinstance(d, Path):
        path.write_bytes(d.pcap())
    found = json.loads(amqpscope(capsys, "why", "--end", "--format", "json", path, *options).out)
    assert isinstance(found, dict)
    return found


def diagnosed(ending: dict[str, Any]) -> list[tuple[str, bool]]:
    """The diagnoses that explain an end, and whether that is sure."""
    steps = ending["because"]
    return [(one["diagnosis"]["code"], one["sure"]) for one in steps if one["diagnosis"] is not None]


def test_a_wait_perhaps_explains_the_close_that_ended_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d, last = starved(closes=True)
    (connection,) = ends(capsys, d, tmp_path)["connections"]
    whole = connection["endings"][0]
    assert diagnosed(whole) == [("diag/credit-starved", False)]
    assert whole["because"][-1]["packet"] == last
    assert connection["diagnoses"] == []


def test_a_wait_that_nothing_ended_stands_below_the_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d, last = starved(closes=False)
    (connection,) = ends(capsys, d, tmp_path)["connections"]
    assert [diagnosed(one) for one in connection["endings"]] == [[] for _ in connection["endings"]]
    (one,) = connection["diagnoses"]
    assert (one["code"], one["whose_move"], one["packet"]) == ("diag/credit-starved", "client", last)
    lines = amqpscope(capsys, "why", "--end", tmp_path / "dialogue.pcap").lines
    also = next(
        index for index, line in enumerate(lines) if line.startswith("  also     the client has to act: ")
    )
    assert any("transfer" in line for line in lines[also:])
    assert f"amqpscope why {tmp_path / 'dialogue.pcap'} {last}" in lines[-1]


SURE = [
    ("amqplib-server-stalled", "diag/heartbeat-late"),
    ("librabbitmq-refused", "diag/login-refused"),
    ("pika-tls-to-plain-port", "diag/wrong-port"),
    ("pika-two-threads", "diag/threads-share-channel"),
    ("rhea-rabbitmq-without-plugin", "diag/version-mismatch"),
]


@pytest.mark.parametrize(("name", "code"), SURE)
def test_what_a_diagnosis_says_of_the_end_is_its_cause(
    name: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connections = ends(capsys, ROOT / f"{name}.pcap", tmp_path)["connections"]
    (whole,) = [one["endings"][0] for one in connections if diagnosed(one["endings"][0])]
    assert diagnosed(whole) == [(code, True)]
    assert all(step["sure"] for step in whole["because"])


def test_an_end_is_not_explained_by_what_only_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = Dialogue()
    d.begun()
    d.client.close()
    for _ in range(3):
        d.wait(seconds=10)
        d.server.empty()
    (connection,) = ends(capsys, d, tmp_path)["connections"]
    assert diagnosed(connection["endings"][0]) == []
    assert [one["code"] for one in connection["diagnoses"]] == ["diag/unanswered"]


def test_a_packet_knows_the_diagnoses_that_hold_while_it_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d, last = starved(closes=False)
    path = tmp_path / "dialogue.pcap"
    path.write_bytes(d.pcap())
    for packet, codes in (
        (1, []),
        (last, ["diag/credit-starved"]),
        (last + 3, ["diag/credit-starved"]),
    ):
        found = json.loads(amqpscope(capsys, "why", "--format", "json", path, packet).out)
        assert [one["code"] for one in found["diagnoses"]] == codes
    text = amqpscope(capsys, "why", path, last).out
    assert (
        "diagnoses that apply at this packet, or mention this packet\n  the client has to act: link " in text
    )
