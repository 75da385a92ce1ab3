"""The files that a run writes: they are complete at its end, or are what they were before."""

import os
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from amqpscope.cli.status import ENDING

if TYPE_CHECKING:
    from amqpscope.policy.replacement import Replacement

__all__ = ["RunFiles"]


class RunFiles:
    """Files that are removed if the run fails, or a signal ends the program, before they are `complete`.

    A signal that is ignored, as under `nohup`, stays so.
    """

    def __init__(self) -> None:
        self._files: list[Replacement] = []
        self._cleaning: list[Callable[[], object]] = []
        # Those that `_end_by` handles meanwhile.
        self._signals: list[int] = []

    def __enter__(self) -> Self:
        return self

    def new(self, path: str) -> "Replacement":
        """A file that is to be at this path."""
        from amqpscope.policy.replacement import Replacement  # most runs write no files

        self._handle_signals()
        file = Replacement(path)
        self._files.append(file)
        return file

    def at_end(self, clean: Callable[[], object]) -> None:
        """Call this at the end of the run, however it ends; maybe more than once."""
        self._handle_signals()
        self._cleaning.append(clean)

    def complete(self) -> None:
        """All files are whole. Raises OutputError."""
        for file in self._files:
            file.complete()

    def __exit__(self, *_: object) -> None:
        try:
            # This does nothing to those that are complete.
            for file in self._files:
                file.abandon()
            self._clean()
        finally:
            for number in self._signals:
                signal.signal(number, signal.SIG_DFL)
            self._signals = []

    def _handle_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._signals.append(number)
                signal.signal(number, self._end_by)

    def _clean(self) -> None:
        for clean in reversed(self._cleaning):
            clean()

    def _end_by(self, number: int, _: object) -> None:
        """A signal ends the program, as it does by itself."""
        for file in self._files:
            file.remove()
        self._clean()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
