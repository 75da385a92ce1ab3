"""Where commands write: one line a message on standard error, results on standard output."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from amqpscope.analysis import Note
from amqpscope.reading import Capture
from amqpscope.report.printable import printable

__all__ = ["Meter", "console", "notes_to_stderr", "progress", "say"]

# Smaller files are read before anyone looks.
_WORTH_A_BAR = 32 * 1024 * 1024

_NOTES_SHOWN = 5


def console() -> Console:
    """The console of standard output. Never interprets markup."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=True)


def say(text: str) -> None:
    """One line on standard error."""
    print(f"amqpscope: {printable(text)}", file=sys.stderr, flush=True)


def notes_to_stderr(capture: str, notes: list[Note]) -> None:
    """What was wrong with a capture, folded by code."""
    for line in note_lines(notes):
        say(f"{capture}: {line}")


def note_lines(notes: list[Note]) -> list[str]:
    """Notes as lines, of each code the first few."""
    shown: dict[str, int] = {}
    lines = []
    for note in notes:
        shown[note.code] = shown.get(note.code, 0) + 1
        if shown[note.code] <= _NOTES_SHOWN:
            where = f"packet {note.packet}: " if note.packet else ""
            lines.append(f"{note.code} {where}{note.detail}")
    for code, count in shown.items():
        if count > _NOTES_SHOWN:
            lines.append(f"{code} … {count - _NOTES_SHOWN} more")
    return lines


class Meter:
    """Shows how far a capture has been read."""

    def __init__(self, bar: Progress | None, capture: Capture) -> None:
        self._bar = bar
        self._capture = capture
        if bar is not None:
            self._task = bar.add_task(printable(capture.name), total=capture.size)

    def update(self) -> None:
        """A block was read."""
        if self._bar is not None:
            self._bar.update(self._task, completed=self._capture.octets_read)


@contextmanager
def progress(capture: Capture, streaming: bool) -> Iterator[Meter]:
    """A progress bar on standard error, for long files, if a person looks there and sees no results yet.

    streaming: results are printed while the file is read.
    """
    stderr = Console(stderr=True, markup=False, highlight=False, emoji=False)
    seen = sys.stderr.isatty() and not (streaming and sys.stdout.isatty())
    if not seen or (capture.size or 0) < _WORTH_A_BAR:
        yield Meter(None, capture)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True) as bar:
        yield Meter(bar, capture)
