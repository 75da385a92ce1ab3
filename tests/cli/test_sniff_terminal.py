"""`amqpscope sniff` before a person: on a terminal of eighty columns, made wider meanwhile."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROKEN = ROOT / "captures" / "rhea-transfer-before-attach.pcap"
PATIENCE = 120.0
"""Seconds after which a test has failed. Nothing takes so long."""

CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _environment() -> dict[str, str]:
    """This process's, but for a size that it says terminals have."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    return {**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8"}


class Screen:
    """A program on a pseudo-terminal; its packets come through a pipe."""

    def __init__(self, options: list[str], columns: int) -> None:
        self.master, slave = pty.openpty()
        self.resize(columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.text = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "amqpscope", "sniff", "-i", "-", *options],
            stdin=subprocess.PIPE,
            stdout=slave,
            stderr=slave,
            cwd=ROOT,
            env=_environment(),
            start_new_session=True,
        )

    def resize(self, columns: int, lines: int = 24) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def feed(self, octets: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(octets)
        self.process.stdin.flush()

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def shows(self, wanted: str) -> str:
        """All that was written up to and with this text; it has to come."""
        deadline = time.monotonic() + PATIENCE
        while wanted not in CONTROLS.sub("", self.text):
            assert time.monotonic() < deadline, f"{wanted!r} does not come in {CONTROLS.sub('', self.text)}"
            ready, _, _ = select.select([self.master], [], [], 0.2)
            if ready:
                with contextlib.suppress(OSError):
                    self.text += os.read(self.master, 65_536).decode(errors="replace")
        text, self.text = self.text, ""
        return text

    def ends(self) -> int:
        """Its status. What it still writes is read, so that it can end."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "it does not end"
            ready, _, _ = select.select([self.master], [], [], 0.2)
            if ready:
                self.text += os.read(self.master, 65_536).decode(errors="replace")
        while select.select([self.master], [], [], 0)[0]:
            self.text += os.read(self.master, 65_536).decode(errors="replace")
        return int(self.process.returncode)


@pytest.fixture
def screen(request: pytest.FixtureRequest) -> Iterator[Screen]:
    options, columns = request.param
    shown = Screen(options, columns)
    yield shown
    shown.process.kill()
    shown.process.wait()
    assert shown.process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        shown.process.stdin.close()
    os.close(shown.master)
    os.close(shown.slave)


def lines_of(text: str) -> list[str]:
    return CONTROLS.sub("", text).replace("\r", "").split("\n")


@pytest.mark.parametrize("screen", [(["--any-port"], 80)], indirect=True)
def test_lines_fit_the_terminal_also_when_it_has_changed(screen: Screen) -> None:
    octets = BROKEN.read_bytes()
    screen.feed(octets)
    narrow = lines_of(screen.shows("packet 17, error amqp10/L-UNATTACHED-TRANSFER"))
    assert max(len(line) for line in narrow) <= 80
    screen.resize(160)
    other = octets[24:].replace((50330).to_bytes(2, "big"), (50331).to_bytes(2, "big"))
    screen.feed(other)
    wide = lines_of(screen.shows("packet 39, error amqp10/L-UNATTACHED-TRANSFER"))
    assert 80 < max(len(line) for line in wide) <= 160
    screen.process.send_signal(signal.SIGINT)
    assert screen.ends() == 130
    assert "6 errors in 32 frames on 2 connections" in CONTROLS.sub("", screen.text)


@pytest.mark.parametrize("screen", [(["--top"], 80), (["--top"], 160)], indirect=True)
def test_the_full_screen(screen: Screen) -> None:
    screen.shows("no AMQP connection yet")
    screen.feed(BROKEN.read_bytes())
    screen.shows("3 errors")
    screen.press("\r")
    screen.shows("LINK")
    screen.press("t")
    screen.shows("transfer")
    screen.resize(100)
    screen.process.send_signal(signal.SIGWINCH)
    screen.shows("newest below")
    screen.press("\x1b")
    screen.press("q")
    assert screen.ends() == 1
    assert screen.text.rindex("\x1b[?1049l") < screen.text.rindex("3 errors in 16 frames on 1 connection")
    assert termios.tcgetattr(screen.slave) == screen.before


@pytest.mark.parametrize("screen", [(["--top"], 80)], indirect=True)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_gives_the_screen_back(screen: Screen, number: signal.Signals, status: int) -> None:
    screen.shows("no AMQP connection yet")
    screen.process.send_signal(number)
    assert screen.ends() == status
    assert "\x1b[?1049l" in screen.text
    assert termios.tcgetattr(screen.slave) == screen.before


def test_without_a_terminal_there_is_no_full_screen() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "amqpscope", "sniff", "-i", "-", "--top"],
        input=BROKEN.read_bytes(),
        capture_output=True,
        cwd=ROOT,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert b"--top needs a terminal" in done.stderr
    assert b"Traceback" not in done.stderr
