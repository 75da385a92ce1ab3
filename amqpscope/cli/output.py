"""Where commands write: one line a message on standard error, results on standard output."""

import enum
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from amqpscope.cli.pager import PagedOutput, stderr_line
from amqpscope.report.printable import printable

if TYPE_CHECKING:  # `--version` and `--help` load no analysis
    from amqpscope.input.meter import Measured
    from amqpscope.model.note import Note

__all__ = [
    "ObjectFormat",
    "ProgressMeter",
    "TextOrJson",
    "leave",
    "leave_stdout",
    "meter",
    "notes_to_stderr",
    "progress",
    "read_or_not",
    "say",
]

# Smaller files are read before anyone looks.
_WORTH_A_BAR = 32 * 1024 * 1024

# Seconds after which the bar is drawn again.
_BAR_EVERY = 0.1


class TextOrJson(enum.StrEnum):
    """Forms of output of a command that has these two."""

    text = "text"
    json = "json"


ObjectFormat = Annotated[
    TextOrJson,
    typer.Option(
        "--format",
        metavar="text|json",
        show_default=False,
        help="Set the output format. text: for people; json: one JSON object. [default: text]",
    ),
]
"""Option of the commands whose JSON is one object."""


def leave_stdout() -> None:
    """Let the interpreter's own flush at exit go nowhere: the output is closed, or to be left as it is."""
    leave(sys.stdout)


def leave(stream: TextIO) -> None:
    """The same for one of the standard streams."""
    try:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, stream.fileno())
        os.close(devnull)
    except (OSError, ValueError):
        pass


@contextmanager
def read_or_not() -> Iterator[None]:
    """Print a result that is known already. Where nobody reads it to its end, the exit status stays."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        leave_stdout()


def say(text: str) -> None:
    """One line on standard error. Where nobody reads it, the run goes on all the same, and has its status."""
    try:
        stderr_line(f"amqpscope: {printable(text)}")
    except OSError:
        leave(sys.stderr)


def notes_to_stderr(capture: str, notes: "list[Note]") -> None:
    """What was wrong with a capture, folded by code."""
    from amqpscope.report.notes import note_lines

    for line in note_lines(notes):
        say(f"{capture}: {line.text}")


class ProgressMeter:
    """Shows how far a capture has been read."""

    def update(self) -> None:
        """A block was read."""


@contextmanager
def progress(capture: "Measured", streaming: bool) -> Iterator[ProgressMeter]:
    """A progress bar on standard error, for long files, if a person looks there and sees no results yet.

    streaming: results are printed while the file is read.
    """
    shown = isinstance(sys.stdout, PagedOutput) and sys.stdout.started
    seen = sys.stderr.isatty() and not shown and not (streaming and sys.stdout.isatty())
    if not seen or (capture.size or 0) < _WORTH_A_BAR:
        yield ProgressMeter()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    class Bar(ProgressMeter):
        """The meter that is seen."""

        def __init__(self, bar: Progress, task: TaskID) -> None:
            self._bar = bar
            self._task = task
            self._shown = 0.0

        def update(self) -> None:
            now = time.monotonic()
            fresh = now - self._shown >= _BAR_EVERY
            if fresh:
                self._shown = now
            self._bar.update(self._task, completed=capture.octets_read, refresh=fresh)

    stderr = Console(stderr=True, markup=False, highlight=False, emoji=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    # No thread draws the bar: a process with threads cannot be forked (`amqpscope.input.workers`).
    with Progress(*columns, console=stderr, transient=True, auto_refresh=False) as bar:
        yield Bar(bar, bar.add_task(printable(capture.name), total=capture.size))


def meter(capture: "Measured") -> AbstractContextManager[ProgressMeter]:
    """The bar of a command whose results come when all is read."""
    return progress(capture, False)
