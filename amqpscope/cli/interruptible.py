"""Ctrl-C, and signals that ask the program to end, while Spark or DuckDB works.

A thread that waits for Java cannot be interrupted without leaving the connection to it in the middle of an
answer, and a thread that waits for DuckDB may not notice. So a command that uses one of these runs in a
thread of its own, and the main thread only waits for it: at Ctrl-C or SIGTERM it cancels what is at work
there, which ends the command as any failure does, and it cleans up.
"""

import contextlib
import functools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from amqpscope.cli.output import say
from amqpscope.cli.status import ENDING, Status

__all__ = ["cancel_spark", "interruptible"]

_PATIENCE = 20.0
"""Seconds for a command to clean up in."""

_AGAIN = 0.2
"""Seconds after which it is looked again for signals, and for jobs to be cancelled."""


class _Work(threading.Thread):
    """A command under way, and how it ended."""

    def __init__(self, command: Callable[[], int]) -> None:
        # Whatever hangs may not keep the process from ending.
        super().__init__(daemon=True)
        self.status: int | None = None
        self.error: BaseException | None = None
        self.began = False
        self.over = threading.Event()  # an interrupted `join` takes a thread for ended that is not
        self._command = command

    def run(self) -> None:
        self.began = True
        try:
            self.status = self._command()
        except BaseException as error:  # it is raised again by who waits
            self.error = error
        finally:
            self.over.set()

    def wait(self) -> None:
        """Wait for its end."""
        # Again and again: another thread may get a signal, and then nothing wakes this one, which handles it.
        while not self.over.wait(_AGAIN):
            pass


def cancel_spark() -> None:
    """End the jobs of Spark, if it has begun."""
    if "pyspark" not in sys.modules:
        return
    from amqpscope.pipeline import session

    session.cancel()


def interruptible(
    command: Callable[..., int],
    cancel: Callable[[], None] = cancel_spark,
    ask: Callable[[], None] | None = None,
) -> Callable[..., int]:
    """`command`, but so that Ctrl-C or SIGTERM ends it cleanly while it waits.

    cancel: ends what the command waits for. It is called again and again, since the command may only begin.
    ask: asks the command to end by itself. It is called at the first signal; `cancel` then at the second.
    """

    @functools.wraps(command)
    def wait(**given: Any) -> int:
        work = _Work(functools.partial(command, **given))
        with _ending_interrupts(1 if ask is None else 2) as asked:
            try:
                try:
                    work.start()
                    work.wait()
                except KeyboardInterrupt:
                    if ask is None or not work.began:
                        raise
                    ask()
                    work.wait()
            except KeyboardInterrupt:
                for _ in range(int(_PATIENCE / _AGAIN)):
                    cancel()
                    if not work.began or work.over.wait(_AGAIN):
                        break
                work.error = None  # it holds what the command has opened
                if work.status is None:
                    what = "nothing was changed" if ask is None else "the last batch was not added"
                    say(f"{'ended by a signal' if asked else 'interrupted'}; {what}")
                    if asked:
                        return Status.TERMINATED
                    raise
        error, work.error = work.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # else the error holds itself, and what the command has opened is there to the end
        assert work.status is not None
        return work.status

    return wait


@contextlib.contextmanager
def _ending_interrupts(most: int) -> Iterator[list[int]]:
    """Meanwhile signals that ask to end are taken as Ctrl-C is; gives a list that has those that came.

    most: signals after which the clean-up goes on, whatever comes then.
    """
    came: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        came.append(number)
        if len(came) <= most:
            raise KeyboardInterrupt

    before = {}
    with contextlib.suppress(ValueError):  # only the main thread gets signals
        for number in ENDING:
            before[number] = signal.signal(number, interrupt)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
