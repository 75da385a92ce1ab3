"""Findings in the timeline of `read`: below their frames, and the answers below the frames that give them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.commands import DEMO, amqpscope

from amqpscope import Capture, CaptureOptions
from amqpscope.cli.timeline_writers import TimelineWriter
from amqpscope.report.links import LinkNames
from amqpscope.report.settlements import SettlementLog

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
ATTACH = CAPTURES / "rhea-transfer-before-attach.pcap"
THREADS = CAPTURES / "pika-two-threads.pcap"


def packets(lines: list[str]) -> list[tuple[str, int]]:
    """Of each line: `frame`, `!!` or `->`, and the packet of the frame or of the finding."""
    found = []
    for line in lines:
        frame = re.match(r" *(\d+)  \d", line)
        verdict = re.match(r"  (!!|->) .*?packet (\d+)", line)
        if frame:
            found.append(("frame", int(frame[1])))
        elif verdict:
            found.append((verdict[1], int(verdict[2])))
    return found


def test_a_finding_stands_below_its_frame(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "read", ATTACH)
    assert result.status == 0
    shown = packets(result.lines)
    before = {number: shown[index - 1] for index, (what, number) in enumerate(shown) if what == "!!"}
    assert before == {12: ("frame", 12), 17: ("frame", 17), 21: ("frame", 21)}
    answered = shown.index(("->", 17))
    assert shown[answered - 1] == ("frame", 19)
    assert "amqp:invalid-field" in next(line for line in result.lines if line.startswith("  -> "))


def test_the_end_of_a_stream_stands_in_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    shown = packets(amqpscope(capsys, "read", THREADS).lines)
    assert shown[shown.index(("!!", 33)) - 1] == ("frame", 32)
    # A malformed frame says so itself.
    assert ("!!", 26) not in shown and ("->", 26) in shown


def test_errors_and_warnings_are_those_of_check(capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope(
        capsys, "check", "--format", "ndjson", "--ignore", "note", "--fail-on", "never", ATTACH
    ).lines
    expected = [(json.loads(line)["rule"], json.loads(line)["packet"]) for line in lines]
    found = re.findall(r"  !! \S+ (\S+) by the \w+ in packet (\d+)", amqpscope(capsys, "read", ATTACH).out)
    assert [(rule, int(packet)) for rule, packet in found] == expected


@pytest.mark.parametrize("path", [ATTACH, THREADS])
def test_without_verdicts_only_they_are_missing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_them = amqpscope(capsys, "read", path).lines
    without = amqpscope(capsys, "read", "--no-verdicts", path)
    shown = [line for line in without.lines if not line.startswith("──")]
    assert shown == [line for line in with_them if not line.startswith(("  !!", "  ->", "──"))]
    assert len(without.lines) < len(with_them)


def test_what_is_not_asked_for_has_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert "!!" not in amqpscope(capsys, "read", "--only", "open", ATTACH).out
    assert amqpscope(capsys, "read", "--only", "flow", ATTACH).out.count("!!") == 1
    assert "!!" not in amqpscope(capsys, "read", DEMO).out


def test_a_ladder_draws_the_frames_that_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "read", "--ladder", "--from", "13", "--to", "19", ATTACH)
    assert result.status == 0
    assert result.lines[0].split() == ["client", "127.0.0.1:50330", "server", "127.0.0.2:5672"]
    assert all(len(line) == 80 for line in result.lines[1:])
    drawn = [int(match[1]) for line in result.lines if (match := re.match(r" +(\d+) │", line))]
    assert drawn == [13, 14, 16, 17, 19]
    assert result.out.count("×") == 1
    assert "× amqp10/L-UNATTACHED-TRANSFER: " in result.out


def test_a_ladder_of_the_frames_next_to_a_packet(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the connection of the packet only: what came before it, and what came after it."""
    path = CAPTURES / "pika-cancelled.pcap"
    all_frames = amqpscope(capsys, "read", "--format", "ndjson", path)
    frames = [json.loads(line) for line in all_frames.lines]
    asked = frames[len(frames) // 2]
    stream = [one["packet"] for one in frames if one["connection"] == asked["connection"]]
    at = stream.index(asked["packet"])
    result = amqpscope(capsys, "read", "--around", str(asked["packet"]), path)
    drawn = [int(line.split()[0]) for line in result.lines if re.match(r" *[0-9]+ ", line)]
    last = max(place for place, packet in enumerate(stream) if packet == asked["packet"])
    assert drawn == stream[max(at - 8, 0) : last + 9]
    assert result.status == 0


def test_a_packet_without_a_frame_has_no_neighbourhood(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "read", "--around", "1", ATTACH)
    assert (result.out, result.status) == ("", 2)
    assert "--around 1: no frame begins in this packet" in result.err


def test_a_long_ladder_is_cut(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpscope.cli.timeline_writers.MAX_LADDER_FRAMES", 10)
    result = amqpscope(capsys, "read", "--ladder", ATTACH)
    assert result.lines[-1] == "6 more frames not drawn; --connection, --from and --to choose fewer"


def test_a_ladder_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "read", "--ladder", "--format", "json", ATTACH)
    assert (result.status, result.err) == (
        2,
        "amqpscope: --ladder: cannot be combined with --count or --format\n",
    )


def test_findings_of_one_kind_in_a_packet_share_their_answer(capsys: pytest.CaptureFixture[str]) -> None:
    writer = TimelineWriter("r", 0, False, True, True)
    with Capture(ATTACH, CaptureOptions(judge=True)) as capture:
        names = LinkNames()
        writer.begin(capture, names, SettlementLog(names, {}))
        for records in capture.blocks():
            writer.block(records)
            findings = [one for one in capture.take_findings() if one.packet == 17]
            writer.found(findings * 3)
        writer.finish(capture)
    writer.flush()
    answers = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  -> ")]
    assert len(answers) == 1
    assert "L-UNATTACHED-TRANSFER, 3 times: the client sent close with amqp:invalid-field" in answers[0]


HEADING = (
    "── connection 0 ── client 127.0.0.1:48230 shop (rhea-shop) → "
    "server 127.0.0.3:5672 warehouse (proton-warehouse)"
)


def test_a_heading_names_the_peers_before_they_introduce_themselves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    headings = [line for line in amqpscope(capsys, "read", DEMO).lines if line.startswith("──")]
    assert headings == [HEADING]


def test_what_cannot_wait_names_the_peers_when_they_have_introduced_themselves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = amqpscope(capsys, "read", "--no-verdicts", DEMO).lines
    assert [at for at, line in enumerate(lines) if line.startswith("──")] == [0, 10]
    assert lines[0] == "── connection 0 ── client 127.0.0.1:48230 → server 127.0.0.3:5672"
    assert lines[10] == HEADING
    assert [line.split()[5] for line in lines[8:10]] == ["open", "open"]
