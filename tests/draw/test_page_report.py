"""The page as a form of `check` and `summary`: it has the findings of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.pictures import page_data

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
EARLY = CAPTURES / "rhea-transfer-before-attach.pcap"
CHANNELS = CAPTURES / "amqplib-channel-errors.pcap"


def rules_of(data: Any) -> list[str]:
    """The rules of the findings of the first connection."""
    rows = data["connections"][0]["rows"]
    return [found["rule"] for row in rows for found in row.get("found", [])]


def test_check_writes_the_page_of_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked, drawn = tmp_path / "checked.html", tmp_path / "drawn.html"
    assert amqpscope(capsys, "check", EARLY, "-o", checked).status == 1
    assert amqpscope(capsys, "draw", EARLY, "-o", drawn).status == 0
    assert checked.read_text("utf-8") == drawn.read_text("utf-8")


def test_the_page_has_the_findings_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    amqpscope(capsys, "check", CHANNELS, "-o", out)
    assert "amqp091/Q-DECL-EQUIV-CLIENT" in rules_of(page_data(out))
    amqpscope(capsys, "check", CHANNELS, "-o", out, "--ignore", "amqp091/Q-*")
    rules = rules_of(page_data(out))
    assert rules and not [rule for rule in rules if rule.startswith("amqp091/Q-")]


def test_diagnoses_are_left_out_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = CAPTURES / "situations" / "credit-starved.pcap", tmp_path / "page.html"
    for option, number in (("--diagnoses", 1), ("--no-diagnoses", 0)):
        amqpscope(capsys, "check", path, "-o", out, option)
        assert bool(page_data(out)["connections"][0]["diagnoses"]) == bool(number)


def test_a_finding_of_the_baseline_is_not_in_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known, out = tmp_path / "known.json", tmp_path / "page.html"
    amqpscope(capsys, "check", EARLY, "--write-baseline", known)
    assert amqpscope(capsys, "check", EARLY, "--baseline", known, "-o", out).status == 0
    assert rules_of(page_data(out)) == []


@pytest.mark.parametrize("command", ["check", "summary"])
def test_a_page_needs_one_file(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    for inputs in ((EARLY, CHANNELS), ("-",)):
        result = amqpscope(capsys, command, *inputs, "-o", out)
        assert result.status == 2 and "a page shows one capture" in result.err
        assert not out.exists()


def test_a_damaged_file_has_a_page_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "bad.pcap", tmp_path / "page.html"
    path.write_bytes(b"no capture")
    assert amqpscope(capsys, "check", path, "-o", out).status == 2
    data = page_data(out)
    assert data["connections"] == [] and "not a capture file" in data["notes"][0]


def test_summary_draws_beside_its_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summarised, drawn = tmp_path / "summarised.html", tmp_path / "drawn.html"
    result = amqpscope(capsys, "summary", EARLY, "-o", summarised)
    assert result.status == 0 and "shop" in result.out and str(summarised) in result.err
    amqpscope(capsys, "draw", EARLY, "-o", drawn)
    assert summarised.read_text("utf-8") == drawn.read_text("utf-8")
    result = amqpscope(capsys, "summary", EARLY, "-o", tmp_path / "page.svg")
    assert result.status == 2 and "must end in .html" in result.err
