"""What the commands print of scripted captures, and of recorded ones, whole: on 80 columns, without colour;
and as ndjson.

What they are to be lies in `golden/`. After a change that is meant, REWRITE_GOLDEN=1 writes them anew: read
the difference before it is committed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.busy_night import busy_night
from support.commands import amqpscope
from support.scripted import SCRIPTED

GOLDEN = Path(__file__).parent / "golden"
CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"


def compare(name: str, written: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(written, "utf-8")
    assert written == golden.read_text("utf-8")


# The part of a golden file's name that says which command printed it.
TEXT = {
    "txt": ["check"],
    "read.txt": ["read"],
    "read-v.txt": ["read", "-v"],
    "summary.txt": ["summary"],
}
LINES = {"ndjson": ["check"], "read.ndjson": ["read"]}
# Reading is tested elsewhere; a few show how it looks.
READ = ("window-overrun", "malformed", "lost")
PRINTED = [
    (name, form) for name in SCRIPTED for form in (*TEXT, *LINES) if name in READ or form in ("txt", "ndjson")
]
# Of AMQP 0-9-1: every type of value in a table; what goes wrong on channels; two threads that share one.
RECORDED = {
    "pika-types": ("read-v.txt", "read.ndjson"),
    "pyamqp-gets": ("read.txt", "summary.txt"),
    "pika-two-threads": ("read.txt", "read-v.txt", "summary.txt"),
}
PRINTED += [(name, form) for name, forms in RECORDED.items() for form in forms]


@pytest.mark.parametrize(("name", "form"), PRINTED)
def test_what_is_printed(
    name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch, tmp_path, 80)
    recorded = CAPTURES / f"{name}.pcap"
    octets = recorded.read_bytes() if name in RECORDED else SCRIPTED[name]().pcap()
    Path(f"{name}.pcap").write_bytes(octets)
    if form in TEXT:
        result = amqpscope(capsys, *TEXT[form], f"{name}.pcap")
        assert result.err == ""
        assert "\x1b" not in result.out
        assert max(map(len, result.lines)) <= 80
    else:
        result = amqpscope(capsys, *LINES[form], "--format", "ndjson", f"{name}.pcap")
    compare(f"{name}.{form}", result.out)


# Of a large capture, what a person sees first.
FIRST_SCREEN = 40
NIGHT = {
    "night.check": ["check"],
    "night.summary": ["summary"],
    "night.triage": ["triage"],
    "night.why-end": ["why", "--end"],
}
WIDTHS = (80, 120)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("night") / "night.pcap"
    path.write_bytes(busy_night())
    return path


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, folder: Path, width: int) -> None:
    """Standard output is a terminal of so many columns, without colour."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NIGHT)
def test_the_first_screen_of_a_large_capture(
    name: str, width: int, night: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of 103 connections failed: they are named, with the rule or the cause, and the next command."""
    on_a_terminal(monkeypatch, night.parent, width)
    result = amqpscope(capsys, *NIGHT[name], "night.pcap")
    assert max(map(len, result.lines)) <= width
    if name == "night.check":
        assert len(result.lines) <= 60
    shown = result.lines[:FIRST_SCREEN]
    for culprit in ("till", "cart", "desk"):
        assert any(culprit in line for line in shown)
    assert any("amqpscope why night.pcap " in line for line in shown)
    compare(f"{name}-{width}.txt", "\n".join(shown) + "\n")


@pytest.mark.parametrize("width", [60, 200])
@pytest.mark.parametrize("name", NIGHT)
def test_no_line_is_wider_than_the_terminal(
    name: str, width: int, night: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch, night.parent, width)
    assert max(map(len, amqpscope(capsys, *NIGHT[name], "night.pcap").lines)) <= width


def test_each_one_is_looked_at() -> None:
    screens = {f"{name}-{width}.txt" for name in NIGHT for width in WIDTHS}
    assert {path.name for path in GOLDEN.iterdir()} == {f"{name}.{form}" for name, form in PRINTED} | screens
