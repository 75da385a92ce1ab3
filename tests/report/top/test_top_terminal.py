"""The terminal: keys by their names, the picture as it changes, and everything back as it was."""

from __future__ import annotations

import subprocess
import sys
import termios

import pytest
from support.pseudo_terminal import PseudoTerminal

from amqpscope.report.top.terminal import _first_key

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"

ECHO = """
import os, select
from amqpscope.report.top.terminal import Terminal
with Terminal() as terminal:
    terminal.draw([[("", "ready")]])
    going = True
    while going:
        select.select([terminal], [], [], 0.2)
        if terminal.changed:
            terminal.changed = False
            terminal.draw([[("", "size %d %d" % terminal.size())]])
        for key in terminal.keys():
            os.write(9, f"<{key}>".encode())
            if key == "x":
                raise ValueError("on purpose")
            if key in ("q", "hangup"):
                going = False
"""


def test_keys_have_names() -> None:
    with PseudoTerminal(ECHO) as pty:
        pty.until(b"ready")
        assert not pty.modes()[3] & (termios.ECHO | termios.ICANON)
        pty.type(b"j\x1b[A\x1bOB\x1b[5~\r\x7f")
        pty.report(b"<j><up><down><pageup><enter><backspace>")
        pty.type(b"\x1b")  # alone
        pty.report(b"<escape>")
        pty.type("é\x1b[99;5u/".encode())  # a key that nobody knows is none
        pty.report("<escape><é></>".encode())
        pty.type(b"q")
        assert pty.end() == 0


@pytest.mark.parametrize(("typed", "status"), [(b"q", 0), (b"x", 1), (b"\x03", -2)])
def test_the_terminal_is_as_it_was(typed: bytes, status: int) -> None:
    with PseudoTerminal(ECHO) as pty:
        assert ENTER in pty.until(b"ready")
        assert pty.modes() != pty.before
        pty.type(typed)
        # Python ends by the signal after a KeyboardInterrupt, having put everything back.
        assert pty.end() == status
        assert LEAVE in pty.output
        assert pty.modes() == pty.before
        if typed == b"x":
            # What Python says of it is to be read on the screen that was there before.
            assert pty.output.index(LEAVE) < pty.output.index(b"on purpose")


def test_it_is_put_back_without_the_end_of_a_block() -> None:
    code = """
from amqpscope.report.top.terminal import Terminal
terminal = Terminal()
terminal.open()
terminal.draw([[("", "ready")]])
"""
    with PseudoTerminal(code) as pty:
        assert pty.end() == 0
        assert pty.output.index(ENTER) < pty.output.index(LEAVE)
        assert pty.modes() == pty.before


def test_a_new_size_is_reported() -> None:
    with PseudoTerminal(ECHO) as pty:
        pty.until(b"ready")
        pty.resize(132, 50)
        assert b"\x1b[2J" in pty.until(b"size 132 50")
        pty.type(b"q")
        assert pty.end() == 0


def test_only_lines_that_changed_are_sent() -> None:
    code = """
from amqpscope.report.top.terminal import Terminal
with Terminal() as terminal:
    terminal.draw([[("", "first")], [("", "second")]])
    terminal.draw([[("", "first")], [("", "other")]])
"""
    with PseudoTerminal(code) as pty:
        assert pty.end() == 0
        assert pty.output.count(b"first") == 1
        assert b"\x1b[2;1H\x1b[Kother" in pty.output


def test_a_slow_terminal_holds_nobody_up() -> None:
    code = """
import os, select
from amqpscope.report.top.terminal import Terminal
with Terminal() as terminal:
    for picture in range(400):
        terminal.draw([[("", f"{picture} {line} " + "x" * 70)] for line in range(24)])
    os.write(9, b"drawn")
    while not terminal.flush():
        select.select([], [terminal._out], [])
    os.write(9, b"sent")
"""
    with PseudoTerminal(code) as pty:
        pty.report(b"drawn")  # though nobody reads the terminal
        shown = pty.until(b"399 23 xxx")
        assert shown.count(b" 0 xxx") < 40  # those in between never come
        pty.report(b"sent")
        assert pty.end() == 0


def test_nobody_reads_it_any_more() -> None:
    with PseudoTerminal(ECHO) as pty:
        pty.until(b"ready")
        pty.hang_up()
        assert pty.process.wait(20) in (0, -1)  # SIGHUP ends it, or it has noticed


def test_without_a_terminal_there_is_one_clear_line() -> None:
    code = """
from amqpscope.report.top.terminal import Terminal, TerminalError
try:
    Terminal()
except TerminalError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "--top needs a terminal, and standard output is none\n"


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        (b"\x1b[A", ("up", 3)),
        (b"\x1b[", ("", 0)),
        (b"\x1bx", ("escape", 1)),
        (b"\x1b[1;5A", ("", 6)),
        (b"\xc3", ("", 0)),
        (b"\xc3\xa9", ("é", 2)),
        (b"\xff", ("", 1)),
        (b"\xc3x", ("", 1)),
        (b"\x01", ("", 1)),
        (b"\x1b[" + b"1" * 40, ("", 16)),
    ],
)
def test_octets_are_taken_for_keys(typed: bytes, key: tuple[str, int]) -> None:
    assert _first_key(typed) == key
