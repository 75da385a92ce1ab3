"""How far a run on Spark is: tasks from Spark's own status; files, frames and findings from what the tasks
that are done have counted. On standard error: a bar on a terminal, now and then a line elsewhere."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from dissectors.wording import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RunProgress", "progress"]

_EVERY = 0.5
_FIRST_LINE = 5.0
_A_LINE_EVERY = 30.0
"""Seconds between two looks; and where nobody watches, until the first line, and between two lines."""

_WIDE = 80
"""Columns of a terminal that has room for a bar."""


class RunProgress:
    """How far a run is, from its first look at the captures on."""

    def __init__(self) -> None:
        self._doing = "looking at the captures"
        self._files = 0
        self._spark: SparkSession | None = None
        self._heard = (0, 0)
        self._counted: Any = None

    def starts(self) -> None:
        """Spark is started."""
        self._doing = "starting Spark"

    def reads(self, files: int, processes: int) -> None:
        """Processes without Spark read the captures."""
        self._doing = f"reading {count(files, 'file')} in {count(processes, 'process')}"

    def runs(self, spark: "SparkSession", files: int) -> Any:
        """The tasks begin. files: how many there are. Gives the tally for `Analysis.write`."""
        from amqpscope.pipeline.session import over_connect
        from amqpscope.pipeline.tally import tally

        if over_connect(spark):
            # A server reports how many tasks are done, and not what they have counted.
            self._doing = f"{count(files, 'file')} to read"
            spark.registerProgressHandler(self._hear)
            return None
        self._counted = tally(spark)
        self._files = files
        self._spark = spark
        return self._counted

    def _hear(self, stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:
        """What a server reports of an operation, whose stages are these."""
        at_work = [stage for stage in stages or () if not stage.done]
        self._heard = (
            sum(stage.num_completed_tasks for stage in at_work),
            sum(stage.num_tasks for stage in at_work),
        )

    def tasks(self) -> tuple[int, int]:
        """Tasks done, and all, of the stages at work."""
        done, known = self._heard
        if self._spark is not None:
            tracker = self._spark.sparkContext.statusTracker()
            for stage in tracker.getActiveStageIds():
                information = tracker.getStageInfo(stage)
                if information is not None:
                    done += information.numCompletedTasks
                    known += information.numTasks
        return done, known

    def text(self) -> str:
        """What is done, or what was counted."""
        if self._counted is None:
            return self._doing
        totals = {"file": 0, "frame": 0, "finding": 0}
        for key, number in list(self._counted.value.items()):
            if key[0] in totals:
                totals[key[0]] += number
        read = f"{totals['file']} of {count(self._files, 'file')}"
        return f"{read}, {count(totals['frame'], 'frame')}, {count(totals['finding'], 'finding')}"


@contextmanager
def progress(quiet: bool) -> Iterator[RunProgress | None]:
    """Show it while the body runs, and reports what it does. quiet: gives None instead."""
    if quiet:
        yield None
        return
    run = RunProgress()
    over = threading.Event()
    show = _bar if sys.stderr.isatty() else _lines
    with _stderr() as stream:
        watcher = threading.Thread(target=show, args=(run, stream, over), daemon=True)
        watcher.start()
        try:
            yield run
        finally:
            over.set()
            watcher.join()


@contextmanager
def _stderr() -> Iterator[TextIO]:
    """Standard error as it is now: while Spark starts, what Java writes there goes elsewhere."""
    try:
        kept = os.dup(sys.stderr.fileno())
    except (OSError, ValueError):
        yield sys.stderr
        return
    with open(kept, "w", encoding=sys.stderr.encoding, errors="backslashreplace") as stream:
        yield stream


def _bar(run: RunProgress, stream: TextIO, over: threading.Event) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    stderr = Console(file=stream, markup=False, highlight=False, emoji=False)
    narrow = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    text = TextColumn("{task.description}", markup=False, table_column=narrow)
    columns = [text, BarColumn(bar_width=12), MofNCompleteColumn(), TimeElapsedColumn()]
    if stderr.width < _WIDE:
        del columns[1:]
    with Progress(*columns, console=stderr, transient=True, expand=True) as bar:
        shown = bar.add_task(run.text(), total=None)
        while not over.wait(_EVERY):
            done, known = run.tasks()
            bar.update(shown, description=run.text())
            if known:
                bar.update(shown, completed=done, total=known)


def _lines(run: RunProgress, stream: TextIO, over: threading.Event) -> None:
    patience = _FIRST_LINE
    while not over.wait(patience):
        patience = _A_LINE_EVERY
        done, known = run.tasks()
        tasks = f"{done} of {count(known, 'task')} done; " if known else ""
        with contextlib.suppress(OSError):  # nobody reads it
            stream.write(f"amqpscope: {tasks}{run.text()}\n")
            stream.flush()
