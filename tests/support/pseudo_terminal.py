"""A program on a terminal that the test holds the other end of."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["PseudoTerminal"]

ROOT = Path(__file__).resolve().parents[2]


class PseudoTerminal:
    """Runs Python code with this terminal as its own; `report` reads what it writes to descriptor 9."""

    def __init__(self, code: str, columns: int = 80, lines: int = 24, **environment: str) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(columns, lines)
        self.before = self.modes()
        self.output = b""
        self.reported = b""
        self._pipe, writing = os.pipe()

        def take_over() -> None:
            # A hang-up ends a program, even if whoever runs the tests ignores it, as `nohup` does.
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            os.dup2(writing, 9)
            os.login_tty(self.slave)

        given = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], preexec_fn=take_over, close_fds=False, env=given
        )
        os.close(writing)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for descriptor in (self.master, self.slave, self._pipe):
            if descriptor >= 0:
                os.close(descriptor)

    def modes(self) -> list[Any]:
        """How the terminal is set."""
        return termios.tcgetattr(self.slave)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, octets: bytes) -> None:
        os.write(self.master, octets)

    def hang_up(self) -> None:
        """The window is closed."""
        os.close(self.master)
        os.close(self.slave)
        self.master = self.slave = -1

    def until(self, text: bytes, seconds: float = 20) -> bytes:
        """What was written from the last call on, up to and with `text`."""
        return self._wait(lambda: text in self.output, text, seconds)

    def _wait(self, there: Callable[[], bool], text: bytes, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        while not there():
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} was not written, but {self.output!r}"
            ready, _, _ = select.select([self.master], [], [], min(left, 0.2))
            if ready:
                self.output += os.read(self.master, 65536)
        at = self.output.index(text) + len(text)
        taken, self.output = self.output[:at], self.output[at:]
        return taken

    def report(self, text: bytes, seconds: float = 20) -> bytes:
        """What it wrote to descriptor 9, until `text` is in it. The terminal is not read meanwhile."""
        deadline = time.monotonic() + seconds
        while text not in self.reported:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} was not reported, but {self.reported!r}"
            ready, _, _ = select.select([self._pipe], [], [], left)
            if ready:
                octets = os.read(self._pipe, 4096)
                assert octets, f"{text!r} was not reported, but {self.reported!r}"
                self.reported += octets
        return self.reported

    def end(self, seconds: float = 20) -> int:
        """Read the rest until the program has ended; its exit status."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "it does not end"
            if select.select([self.master], [], [], 0.1)[0]:
                self.output += os.read(self.master, 65536)
        while select.select([self.master], [], [], 0)[0]:
            self.output += os.read(self.master, 65536)
        return self.process.returncode
