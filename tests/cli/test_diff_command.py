"""`amqpscope diff`: what it prints, as text and as JSON, and how it ends."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from support.commands import amqpscope, unprintable
from support.dialogue import Dialogue

ROOT = Path(__file__).resolve().parent.parent.parent / "captures"
PROTON, RABBITMQ = ROOT / "proton-anonymous.pcap", ROOT / "rabbitmq-proton.pcap"
CLEAN = ROOT / "rules" / "amqp10" / "L-CREDIT" / "clean.pcap"
VIOLATING = ROOT / "rules" / "amqp10" / "L-CREDIT" / "violating.pcap"


def test_the_same_capture_twice(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "diff", PROTON, PROTON)
    assert (result.status, result.err) == (0, "")
    assert result.lines[-1] == "same"
    assert "  same        38 frames in A, 38 in B" in result.lines


def test_what_is_negotiated_and_where_they_part(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "diff", PROTON, RABBITMQ)
    assert result.status == 1
    negotiated = [line for line in result.lines if line.startswith("  negotiated  ")]
    reported = "the client's sasl-init: mechanism ANONYMOUS in A, PLAIN in B (packets 8 in A and 10 in B)"
    assert f"  negotiated  {reported}" in negotiated
    (first,) = (line for line in result.lines if line.startswith("  first  "))
    assert "the server's flow on link letters: link-credit 10 in A, 65536 in B" in first
    assert [line[:8].split() for line in result.lines if line[4:5] in "-+" and line[4:5]] == [
        ["-", "A"],
        ["+", "B"],
    ]
    assert result.lines[-1] == "different: 1 of 1 connection"


def test_all_differences(capsys: pytest.CaptureFixture[str]) -> None:
    few = amqpscope(capsys, "diff", PROTON, RABBITMQ)
    many = amqpscope(capsys, "diff", "--all", PROTON, RABBITMQ)
    assert many.status == 1
    (more,) = (line for line in few.lines if line.startswith("  more  "))
    then = [line for line in many.lines if line.startswith("  then  ")]
    assert f"{len(then)} more differences" in more
    assert len(then) > 10
    assert not [line for line in many.lines if line.startswith("  more  ")]


def test_json_has_the_frames_of_both(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "diff", "--format", "json", PROTON, RABBITMQ)
    found = json.loads(result.out)
    assert (result.status, found["schema"], found["same"]) == (1, "amqpscope/diff/1", False)
    (pair,) = found["connections"]
    first = pair["first"]
    assert first["fields"] == [{"field": "link-credit", "a": "10", "b": "65536"}]
    assert (first["a"]["packet"], first["b"]["packet"]) == (13, 18)
    assert first["a"]["frame"]["fields"]["link-credit"] == 10
    assert [frame["name"] for frame in first["before"]["b"]] == ["attach", "begin", "attach"]
    assert len(pair["differences"]) == pair["differences_count"]
    assert {one["field"] for one in pair["peers"]} == {"container", "product", "version"}
    assert [one["counts"] for one in found["findings"]] == [False] * 4


def test_a_finding_of_one_run_counts_as_for_check(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "diff", CLEAN, VIOLATING)
    assert result.status == 1
    assert any("only in B   error amqp10/L-CREDIT by the client" in line for line in result.lines)
    assert result.lines[-1].endswith("1 finding")
    lenient = amqpscope(capsys, "diff", "--fail-on", "never", CLEAN, VIOLATING)
    assert not lenient.lines[-1].endswith("1 finding")


def test_from_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BytesIO(PROTON.read_bytes())

    monkeypatch.setattr(sys, "stdin", Input)
    assert amqpscope(capsys, "diff", PROTON, "-").status == 0
    twice = amqpscope(capsys, "diff", "-", "-")
    assert (twice.status, twice.err) == (2, "amqpscope: - (standard input) can be read only once\n")


def test_nothing_to_compare_and_nothing_to_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(PROTON.read_bytes()[:24])
    result = amqpscope(capsys, "diff", PROTON, empty)
    assert result.status == 3
    assert "empty.pcap: no AMQP 1.0 or 0-9-1 to compare" in result.err
    assert amqpscope(capsys, "diff", "--allow-empty", empty, empty).status == 0
    gone = amqpscope(capsys, "diff", PROTON, tmp_path / "gone.pcap")
    assert (gone.status, gone.out) == (2, "")
    assert "gone.pcap" in gone.err


def test_hostile_text_reaches_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    paths = []
    for which in ("one", "other"):
        d = Dialogue()
        d.linked(client={"name": "\x1b[31m\u202e[bold]\n", "properties": None})
        d.server.open(container_id=f"\x1b]0;{which}\x07")
        d.server.disposition(0, state=None)
        d.client.detach(error=f"\x1b[2J{which}")
        d.goodbye()
        path = tmp_path / f"{which}\x1b.pcap"
        path.write_bytes(d.pcap())
        paths.append(path)
    result = amqpscope(capsys, "diff", "--all", *paths)
    assert result.status == 1
    assert unprintable(result.out) == []
    assert max(map(len, result.lines)) <= 80


def test_findings_that_are_ignored_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "diff", "--ignore", "L-CREDIT", CLEAN, VIOLATING)
    assert "error amqp10/L-CREDIT" not in result.out
    assert not result.lines[-1].endswith("1 finding")
