"""A pager for output that is longer than the screen, as git has.

What a command prints on a terminal is held back until it no longer fits on
the screen. Then the pager starts and gets all of it. Output that fits is
written to the terminal, and no pager starts. AMQPSCOPE_PAGER names the pager,
else PAGER, else it is `less`. To quit the pager early ends the command as `|
head` does: that is no failure, and the exit status stays.
"""

import contextlib
import io
import os
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator
from typing import TextIO

__all__ = ["NO_PAGER", "PagedOutput", "pager_command", "paging", "stderr_line"]

NO_PAGER = "--no-pager"

_VARIABLES = ("AMQPSCOPE_PAGER", "PAGER")

_NONE = ("", "cat")
"""Pagers that are none."""

_SETTINGS = {"LESS": "FRX", "LV": "-c"}
"""Of pagers, where the environment has none: quit if all fits, show colours, leave the text on the screen."""

_NOT_PAGED = (["sniff"], ["pipeline", "run"], ["config", "init"])
"""Commands that show what happens while it happens."""


def pager_command() -> list[str]:
    """The pager's command line; empty if there is no pager."""
    named = next((os.environ[name] for name in _VARIABLES if name in os.environ), "less")
    try:
        words = shlex.split(named)
    except ValueError:
        return []
    if named.strip() in _NONE or shutil.which(words[0]) is None:
        return []
    return words


class PagedOutput(io.TextIOBase):
    """Standard output that starts a pager when there are more lines than the terminal shows.

    terminal: what is written to without a pager. columns, lines: how much it shows.
    """

    def __init__(self, terminal: TextIO, columns: int, lines: int, command: list[str]) -> None:
        super().__init__()
        self._terminal = terminal
        self._columns = columns
        self._left = lines
        self._command = command
        # What is held back, each with the stream that it is for.
        self._held: list[tuple[TextIO, str]] = []
        self._pager: io.TextIOWrapper | None = None
        self._wait = _nothing

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the terminal."""
        return self._terminal.encoding

    @property
    def started(self) -> bool:
        """Whether the pager has the screen."""
        return self._pager is not None

    def isatty(self) -> bool:
        """Text has the terminal's width and colours."""
        return True

    def writable(self) -> bool:
        """It is only written to."""
        return True

    def write(self, text: str) -> int:
        """Hold text back, or give it to the pager."""
        return self._take(self._terminal, text)

    def write_error(self, text: str) -> None:
        """The same for a line that is for standard error, which is the terminal, too."""
        self._take(sys.stderr, text)

    def _take(self, stream: TextIO, text: str) -> int:
        if self._pager is not None:
            self._pager.write(text)
            return len(text)
        self._held.append((stream, text))
        lines = text.split("\n")
        self._left -= len(lines) - 1 + sum(max(len(line) - 1, 0) // self._columns for line in lines)
        if self._left < 0:
            self._start()
        return len(text)

    def flush(self) -> None:
        """What is held back stays until it is known whether it fits."""
        # Python flushes it once more when nobody needs it any more: by then the pager is closed.
        if self._pager is not None and not self._pager.closed:
            self._pager.flush()

    def finish(self) -> None:
        """Write what is held back, or wait until the pager has ended."""
        if self._pager is None:
            self._release()
            return
        with contextlib.suppress(OSError):
            self._pager.close()
        self._wait()

    def _release(self) -> None:
        """Write to the terminal what is held back."""
        held, self._held = self._held, []
        for stream, text in held:
            stream.write(text)
            stream.flush()

    def _start(self) -> None:
        """Start the pager with what is held back. If it does not start, its text goes to the terminal."""
        from subprocess import PIPE, Popen

        try:
            process = Popen(self._command, stdin=PIPE, env={**_SETTINGS, **os.environ})  # noqa: S603
        except OSError:
            self._release()
            self._left = sys.maxsize
            return
        assert process.stdin is not None
        self._pager = io.TextIOWrapper(process.stdin, self.encoding, "backslashreplace", write_through=True)

        def wait() -> None:
            while process.poll() is None:
                with contextlib.suppress(KeyboardInterrupt):
                    process.wait()

        self._wait = wait
        held, self._held = self._held, []
        self._pager.write("".join([text for _, text in held]))


def _nothing() -> None:
    """There is no pager to wait for."""


def _wanted(arguments: list[str]) -> bool:
    """Whether what this command line prints is for a pager, if it is long."""
    if not sys.stdout.isatty() or "CI" in os.environ or os.environ.get("TERM", "dumb") == "dumb":
        return False
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    words = [word for word in before if not word.startswith("-")]
    if NO_PAGER in before or any(words[: len(command)] == command for command in _NOT_PAGED):
        return False
    return not any(_comes_as_it_happens(word) for word in arguments)


def _comes_as_it_happens(word: str) -> bool:
    """Whether a word of a command line names standard input, a pipe or a socket, which may be live."""
    if word == "-":
        return True
    try:
        mode = os.stat(word).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextlib.contextmanager
def paging(arguments: list[str]) -> Iterator[None]:
    """While a command line runs, standard output is paged if it is a terminal."""
    command = pager_command() if _wanted(arguments) else []
    if not command:
        yield
        return
    terminal = sys.stdout
    columns, lines = shutil.get_terminal_size()
    # The last line is the prompt of the shell.
    output = PagedOutput(terminal, max(columns, 1), lines - 1, command)
    sys.stdout = output
    try:
        yield
    finally:
        sys.stdout = terminal
        output.finish()


def stderr_line(text: str) -> None:
    """Print a line on standard error, in the pager's text if both are on the same terminal."""
    if isinstance(sys.stdout, PagedOutput) and sys.stderr.isatty():
        sys.stdout.write_error(f"{text}\n")
    else:
        print(text, file=sys.stderr, flush=True)
