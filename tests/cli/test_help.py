"""The help of every command: what it is for, in lines that fit a terminal."""

from __future__ import annotations

import re

import pytest
from support.commands import amqpscope, inner_commands, whole_command


def commands() -> list[list[str]]:
    """Every command and command of a command, as arguments."""
    found: list[list[str]] = [[]]
    top = whole_command()
    for name, command in inner_commands(top).items():
        found.append([name])
        found += [[name, inner] for inner in inner_commands(command)]
    return found


COMMANDS = commands()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_it_fits_and_ends_well(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for flag in ("--help", "-h"):
        result = amqpscope(capsys, *command, flag)
        assert result.status == 0
        assert result.err == ""
        assert result.lines[0].startswith(" ".join(["Usage: amqpscope", *command]))
        assert [line for line in result.lines if len(line) > 80] == []
        assert re.search(r"\{[A-Z_]+\}", result.out) is None  # a value that nobody has put in
        # What typer says of an option stands with what its help says: one pair of brackets.
        assert re.search(r"\[default: [^\]]*\]\s+\[", result.out) is None


def test_all_commands_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "--help")
    listed = dict(line.split(maxsplit=1) for line in result.lines[result.lines.index("Commands:") + 1 :][:13])
    assert listed == {
        "triage": "Show what is wrong, who has to act, and what to do next.",
        "read": "Show the conversation, frame by frame.",
        "summary": "Summarize each connection and how it ended.",
        "check": "Report protocol violations: which peer, rule, packet and state.",
        "why": "Explain why a packet is allowed or forbidden, and what followed.",
        "draw": "Draw a capture as HTML, or a connection as SVG, Mermaid or text.",
        "diff": "Compare two captures of the same scenario.",
        "cut": "Write a part of a capture to a file, with packet comments.",
        "sniff": "Capture live traffic, and report violations as they happen.",
        "proxy": "Forward connections to a server, and check the traffic live.",
        "rules": "List and explain the rules.",
        "config": "Show the settings in effect.",
        "pipeline": "Analyze many captures on Spark and write tables.",
    }
    assert "which peer breaks the protocol. amqpscope decodes and checks AMQP 1.0" in " ".join(
        result.out.split()
    )
    assert amqpscope(capsys).out == result.out


def test_check_tells_its_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    reported = " ".join(amqpscope(capsys, "check", "--help").out.split())
    for words in (
        "0 fine, 1 findings that make the command fail (see --fail-on), 2 a failure",
        "3 no AMQP 1.0 or 0-9-1 to check, or only encrypted AMQP, 130 interrupted",
        "The exit status is then the first of 2, 1, 3 and 0 that applies to any capture",
        "--fail-on error|warning|note|never",
        "--fail-on-possible",
        "means the same as --fail-on warning",
        "--allow-empty",
        "--max-per-rule N",
        "--format text|github|html|json|junit|markdown|ndjson|sarif",
    ):
        assert words in reported


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_defaults_are_all_shown_alike(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    reported = " ".join(amqpscope(capsys, *command, "--help").out.split())
    assert "(default" not in reported
    assert "default: text]" in reported or "Set the output format" not in reported
