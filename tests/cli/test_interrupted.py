"""Ctrl-C, and captures that cannot be read on: what was read before is reported, by every command."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.commands import DEMO, Interrupted, amqpscope
from support.scripted import SCRIPTED

CTRL_C = KeyboardInterrupt()
BROKEN = OSError(5, "Input/output error")


@pytest.fixture(params=[CTRL_C, BROKEN], ids=["interrupted", "broken"])
def status(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> int:
    """Standard input is a capture that breaks off behind its last packet; what commands exit with then."""
    source = Interrupted(SCRIPTED["window-overrun"]().pcap(), request.param)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=source))
    return 130 if request.param is CTRL_C else 2


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "whole.pcap"
    path.write_bytes(SCRIPTED["window-overrun"]().pcap())
    return path


def reported(status: int) -> str:
    what = "interrupted: only what was read before" if status == 130 else "Input/output error"
    return f"amqpscope: standard input: {what}\n"


@pytest.mark.parametrize("options", [[], ["--format", "json"]])
def test_a_summary(options: list[str], status: int, whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "summary", *options, "-")
    assert (result.status, result.err) == (status, reported(status))
    expected = amqpscope(capsys, "summary", *options, whole).out
    if options:
        ours, theirs = json.loads(result.out), json.loads(expected)
        assert len(ours["connections"]) == 1
        assert ours["connections"][0]["sessions"] == theirs["connections"][0]["sessions"]
    else:
        # Standard input cannot be read again.
        alone = [line for line in expected.splitlines() if not line.startswith("  next: ")]
        assert result.lines[1:] == alone[1:]
        assert len(result.lines) > 5


@pytest.mark.parametrize("options", [[], ["--format", "json"]])
def test_a_count(options: list[str], status: int, whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "read", "--count", *options, "-")
    assert (result.status, result.err) == (status, reported(status))
    expected = amqpscope(capsys, "read", "--count", *options, whole)
    assert result.out.replace("standard input", str(whole)) == expected.out
    assert "transfer" in result.out


def test_frames_as_one_object(status: int, whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "read", "--format", "json", "-")
    assert result.status == status
    document = json.loads(result.out)
    reason = "interrupted" if status == 130 else "standard input: Input/output error"
    assert document["captures"] == [{"capture": "standard input", "error": reason, "notes": []}]
    expected = json.loads(amqpscope(capsys, "read", "--format", "json", whole).out)
    assert len(document["frames"]) == len(expected["frames"]) > 5


def test_frames_as_they_come(status: int, whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ([], ["--format", "ndjson"]):
        result = amqpscope(capsys, "read", *options, "-")
        assert result.status == status
        if not options:
            # Of what comes from standard input, the names of the peers are not known in the first heading.
            shown, expected = (
                [line for line in one.lines if not line.startswith("──")]
                for one in (result, amqpscope(capsys, "read", whole))
            )
            assert shown == expected


def test_nothing_was_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (["summary"], ["read", "--count"], ["read"]):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Interrupted(b"", BROKEN)))
        result = amqpscope(capsys, *command, "-")
        assert (result.status, result.out, result.err) == (2, "", reported(2))


def started(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    """This Python code with arguments. Ctrl-C reaches it even if whoever runs the tests ignores it."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize(
    "line",
    [
        "read PIPE",
        "check PIPE",
        "summary PIPE",
        "triage PIPE",
        "why PIPE 3",
        "why --end PIPE",
        "draw PIPE -o out.svg",
        "draw --compare DEMO PIPE -o out.svg",
        "cut PIPE -o out.pcapng",
        "diff PIPE DEMO",
        "diff DEMO PIPE",
    ],
)
def test_a_signal_while_a_capture_is_read(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    words = [{"PIPE": "pipe", "DEMO": str(DEMO)}.get(word, word) for word in line.split()]
    with (
        started("from amqpscope.cli.start import main; main()", *words) as process,
        Path("pipe").open("wb") as pipe,  # it is there when the command reads
    ):
        pipe.write(DEMO.read_bytes())
        pipe.flush()
        process.send_signal(signal.SIGINT)
        # Python notices a signal that comes just before a read only when the read is over.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=10)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
    assert process.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("module", ["amqpscope.cli.main", "amqpscope.input.garbage"])
def test_a_signal_before_the_command_has_begun(module: str) -> None:
    code = f"""
import builtins, os, signal
from amqpscope.cli.start import main

usual = builtins.__import__

def importing(name, *arguments):
    if name == {module!r}:
        os.kill(os.getpid(), signal.SIGINT)
    return usual(name, *arguments)

builtins.__import__ = importing
main()
"""
    with started(code, "check", str(DEMO)) as process:
        assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == 130
