"""`read` names the messages that a frame answers, and the packet that settles a message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091


def acked() -> tuple[Dialogue091, list[int]]:
    """Two deliveries that one ack settles, and a publish that is confirmed: the packets of these five."""
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q")
    d.confirms()
    said = [d.server.deliver(b"one"), d.server.deliver(b"two")]
    d.wait(seconds=2)
    said.append(d.client.ack(2, multiple=True))
    said.append(d.client.publish(b"three"))
    d.wait(seconds=0.5)
    said.append(d.server.confirm(1))
    d.goodbye()
    return d, [d.packet_number(one) for one in said]


def settled() -> tuple[Dialogue, list[int]]:
    """A transfer and its disposition: their packets."""
    d = Dialogue()
    d.linked()
    transfer = d.client.transfer()
    d.wait(seconds=3)
    disposition = d.server.disposition(0)
    d.goodbye()
    return d, [d.packet_number(transfer), d.packet_number(disposition)]


def frames(capsys: pytest.CaptureFixture[str], file: Path, *options: str) -> dict[int, dict[str, Any]]:
    """The first frame of each packet."""
    written = amqpscope(capsys, "read", "--format", "ndjson", *options, file)
    found: dict[int, dict[str, Any]] = {}
    for line in written.lines:
        frame = json.loads(line)
        found.setdefault(frame["packet"], frame)
    return found


def test_frames_of_both_protocols_are_linked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "one.pcap"
    d, (first, second, ack, publish, confirm) = acked()
    file.write_bytes(d.pcap())
    linked = frames(capsys, file, "--linked")
    answers = linked[ack]["answers"]
    assert (answers["packets"], answers["count"]) == ([first, second], 2)
    assert answers["seconds"] == pytest.approx(2, abs=0.1)
    assert [linked[one]["settled_by"]["packet"] for one in (first, second)] == [ack, ack]
    assert linked[confirm]["answers"]["packets"] == [publish]
    assert linked[publish]["settled_by"]["seconds"] == pytest.approx(0.5, abs=0.1)
    d10, (transfer, disposition) = settled()
    file.write_bytes(d10.pcap())
    linked = frames(capsys, file, "--linked")
    assert linked[transfer]["settled_by"]["packet"] == disposition
    assert linked[disposition]["answers"]["packets"] == [transfer]
    assert linked[disposition]["answers"]["seconds"] == pytest.approx(3, abs=0.1)
    chosen = frames(capsys, file, "--linked", "--only", "disposition")
    assert chosen[disposition] == linked[disposition]


def test_without_the_option_no_frame_is_linked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "one.pcap"
    file.write_bytes(acked()[0].pcap())
    for frame in frames(capsys, file).values():
        assert "answers" not in frame
        assert "settled_by" not in frame


@pytest.mark.parametrize("options", [[], ["--no-verdicts"], ["--linked", "--no-verdicts"]])
def test_the_timeline_names_them(
    options: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "one.pcap"
    d, (first, second, ack, publish, confirm) = acked()
    file.write_bytes(d.pcap())
    lines = amqpscope(capsys, "read", *options, file).lines
    (answer,) = [line for line in lines if line.split()[0] == str(ack)]
    assert answer.endswith(f"answers {first} to {second} (2) after 2 s")
    (sent,) = [line for line in lines if line.split()[0] == str(publish) and "basic.publish" in line]
    # Without verdicts a line is written at once, and nothing that comes later is known.
    known = options != ["--no-verdicts"]
    assert sent.endswith(f"settled in {confirm} after 501 ms") == known


def test_what_cannot_be_read_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    refused = amqpscope(capsys, "read", "--linked", "-")
    assert refused.status == 2
    assert "standard input" in refused.err
