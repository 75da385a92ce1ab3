"""A terminal as a whole screen: single keys in, lines out, and as it was before whatever happens.

Theory of operation. The terminal gives each key as it is pressed and shows no echo (Ctrl-C still
interrupts). The picture is on the alternate screen, so that what was there before comes back. Nothing here
waits: `keys` takes what was typed, `draw` sends what has changed since the last picture, as far as the
terminal takes it. A terminal that is slow, or held by Ctrl-S, gets the newest picture when it takes something
again, and those in between never. For that it is opened a second time, by its name: not to wait is a property
of what is open, and the shell's own must not get it.

It is put back by `close`, by the end of a `with` block, and when Python ends; a program that is to be stopped
by a signal has to end by one of these.
"""

import atexit
import contextlib
import os
import select
import signal
import sys
import termios
import time
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console

from amqpscope.errors import AmqpscopeError
from amqpscope.report.line import Line
from amqpscope.report.painter import Painter

__all__ = ["Terminal", "TerminalError"]

# The alternate screen, no cursor, no wrapping at the right edge; and all of it back, in no colour.
_ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
_LEAVE = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"

_KEYS = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1bOC": "right",
    b"\x1bOD": "left",
    b"\x1b[5~": "pageup",
    b"\x1b[6~": "pagedown",
    b"\x1b[H": "home",
    b"\x1b[F": "end",
    b"\x1bOH": "home",
    b"\x1bOF": "end",
    b"\x1b[1~": "home",
    b"\x1b[4~": "end",
    b"\x1b[7~": "home",
    b"\x1b[8~": "end",
    b"\x1bOP": "f1",
    b"\x1b[11~": "f1",
}

_REST_OF_A_KEY = 0.05
"""Seconds in which the rest of a key's sequence comes, if Escape was not pressed alone."""

_LONGEST_KEY = 16

_FAREWELL = 0.5
"""Seconds that a terminal has to take what puts it back."""


class TerminalError(AmqpscopeError):
    """There is no terminal to show anything on."""


class Terminal:
    """The terminal of standard output; keys come from it, too, if standard input is something else.

    changed: the size has changed since this was last set to False. Raises TerminalError if there is none.
    """

    def __init__(self) -> None:
        if not sys.stdout.isatty():
            raise TerminalError("--top needs a terminal, and standard output is none")
        if os.environ.get("TERM", "dumb") == "dumb":
            raise TerminalError("--top needs a terminal with a cursor: TERM says that this one is dumb")
        out = sys.stdout.fileno()
        self.changed = False
        self._closed = True
        try:
            name = os.ttyname(out)
            self._out = os.open(name, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
            self._opened = [self._out]
            self._in = os.open(name, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
            self._opened.append(self._in)
            self._before = termios.tcgetattr(self._in)
        except (OSError, termios.error) as error:
            raise TerminalError(f"--top cannot use this terminal: {error}") from None
        self._typed = b""
        self._unsent = b""
        self._next: list[Line] | None = None
        self._shown: list[str] = []
        self._painter: tuple[int, Painter] | None = None
        self._handler: Any = None

    # On and off

    def __enter__(self) -> "Terminal":
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> None:
        """Take the screen and the keys."""
        self._closed = False
        atexit.register(self.close)
        raw = termios.tcgetattr(self._in)
        raw[0] &= ~(termios.ICRNL | termios.INLCR)
        raw[3] &= ~(termios.ICANON | termios.ECHO)
        controls = list(raw[6])
        controls[termios.VMIN] = 0
        controls[termios.VTIME] = 0
        # Ctrl-Z would leave the shell with this screen.
        controls[termios.VSUSP] = b"\0"
        raw[6] = controls
        termios.tcsetattr(self._in, termios.TCSANOW, raw)
        with contextlib.suppress(ValueError):  # not in the main thread: then nobody is reported
            self._handler = signal.signal(signal.SIGWINCH, self._resized)
        self._unsent += _ENTER
        self.flush()

    def close(self) -> None:
        """Put the terminal back as it was. May be called again."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        if self._handler is not None:
            with contextlib.suppress(ValueError, TypeError):
                signal.signal(signal.SIGWINCH, self._handler)
        # Whatever is half sent: a sequence that is cut off here ends at the next escape.
        self._unsent = _LEAVE
        until = time.monotonic() + _FAREWELL
        while self._unsent and time.monotonic() < until:
            if not self.flush() and self._unsent:
                select.select([], [self._out], [], _FAREWELL / 5)
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(self._in, termios.TCSANOW, self._before)
        for descriptor in self._opened:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _resized(self, _number: int, _frame: FrameType | None) -> None:
        self.changed = True

    # Keys

    def fileno(self) -> int:
        """What becomes readable when keys were typed."""
        return self._in

    def keys(self) -> list[str]:
        """The keys that were typed since the last call: names as `up`, or the characters themselves.

        `hangup` if the terminal is gone. `redraw` (Ctrl-L): the next picture is drawn as a whole.
        """
        keys: list[str] = []
        try:
            while octets := os.read(self._in, 1024):
                self._typed += octets
        except BlockingIOError:
            pass
        except OSError:
            return ["hangup"]
        while self._typed:
            key, size = _first_key(self._typed)
            if size == 0:
                # The rest of it comes at once or never.
                ready, _, _ = select.select([self._in], [], [], _REST_OF_A_KEY)
                more = b""
                if ready:
                    with contextlib.suppress(OSError):
                        more = os.read(self._in, 1024)
                if more:
                    self._typed += more
                    continue
                key, size = ("escape", 1) if self._typed[:1] == b"\x1b" else ("", len(self._typed))
            self._typed = self._typed[size:]
            if key == "redraw":
                self._painter = None
            if key:
                keys.append(key)
        return keys

    # The picture

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            columns, lines = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        return (columns or 80, lines or 24)

    def draw(self, lines: list[Line]) -> bool:
        """Show these lines, the first at the top. False: the terminal is slow, and will show them later."""
        if not self.flush():
            self._next = lines
            return False
        self._next = None
        columns, height = self.size()
        painter = self._painter_for(columns)
        if self._painter is None or self._painter[0] != columns or len(self._shown) != height:
            self._painter = (columns, painter)
            self._shown = [""] * height
            self._unsent += b"\x1b[0m\x1b[2J"
        parts = []
        for at, line in enumerate(lines[:height]):
            text = painter.paint(line)
            if text != self._shown[at]:
                self._shown[at] = text
                # Cleared before: behind the last column the cursor still stands on it.
                parts.append(f"\x1b[{at + 1};1H\x1b[K{text}\x1b[0m")
        if parts:
            self._unsent += "".join(parts).encode(sys.stdout.encoding or "utf-8", "replace")
        return self.flush()

    def flush(self) -> bool:
        """Send what the terminal takes now. Whether that was all, and the newest picture is under way."""
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._out, self._unsent) :]
        except BlockingIOError:
            return False
        except OSError:
            self._unsent = b""  # it is gone: `keys` tells
        if self._next is not None and not self._closed:
            lines = self._next
            self._next = None
            return self.draw(lines)
        return True

    def _painter_for(self, columns: int) -> Painter:
        if self._painter is not None and self._painter[0] == columns:
            return self._painter[1]
        console = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
        return Painter(console, columns)


def _first_key(typed: bytes) -> tuple[str, int]:
    """The first key of what was typed and its octets; 0 octets: it may not be whole."""
    first = typed[0]
    if first == 0x1B:
        for octets, name in _KEYS.items():
            if typed.startswith(octets):
                return name, len(octets)
        if len(typed) == 1:
            return "", 0
        if typed[1:2] not in (b"[", b"O"):
            return "escape", 1
        # A sequence that is not known: it ends with a letter or a tilde.
        for at in range(2, min(len(typed), _LONGEST_KEY)):
            if 0x40 <= typed[at] <= 0x7E:
                return "", at + 1
        return "", 0 if len(typed) < _LONGEST_KEY else _LONGEST_KEY
    if first in (0x0A, 0x0D):
        return "enter", 1
    if first == 0x0C:
        return "redraw", 1
    if first in (0x08, 0x7F):
        return "backspace", 1
    if first < 0x80:
        return (chr(first) if first >= 0x20 else "", 1)
    size = 2 if first >> 5 == 0b110 else 3 if first >> 4 == 0b1110 else 4 if first >> 3 == 0b11110 else 1
    if len(typed) < size:
        return "", 0
    try:
        return typed[:size].decode("utf-8"), size
    except UnicodeDecodeError:
        return "", 1
