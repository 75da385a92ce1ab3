"""How far a run on Spark is: tasks from Spark's own status; files, frames and findings from what the tasks
that are done have counted. On standard error: a bar on a terminal, now and then a line elsewhere."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from amqpscope.cli.output import say
from dissectors.wording import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["progress"]

_EVERY = 0.5
_A_LINE_EVERY = 30.0
"""Seconds between two looks, and between two lines where nobody watches."""

_WIDE = 80
"""Columns of a terminal that has room for a bar."""


@contextmanager
def progress(spark: "SparkSession", files: int, quiet: bool) -> Iterator[Any]:
    """Show it while the body runs. files: how many there are. Gives the tally for `Analysis.write`."""
    from amqpscope.pipeline.tally import tally

    if quiet:
        yield None
        return
    counted = tally(spark)
    over = threading.Event()
    show = _bar if sys.stderr.isatty() else _lines
    watcher = threading.Thread(target=show, args=(spark, counted, files, over), daemon=True)
    watcher.start()
    try:
        yield counted
    finally:
        over.set()
        watcher.join()


def _tasks(spark: "SparkSession") -> tuple[int, int]:
    """Tasks done, and all, of the stages at work."""
    tracker = spark.sparkContext.statusTracker()
    done = known = 0
    for stage in tracker.getActiveStageIds():
        information = tracker.getStageInfo(stage)
        if information is not None:
            done += information.numCompletedTasks
            known += information.numTasks
    return done, known


def _so_far(counted: Any, files: int) -> str:
    """What was counted."""
    totals = {"file": 0, "frame": 0, "finding": 0}
    for key, number in list(counted.value.items()):
        if key[0] in totals:
            totals[key[0]] += number
    read = f"{totals['file']} of {count(files, 'file')}"
    return f"{read}, {count(totals['frame'], 'frame')}, {count(totals['finding'], 'finding')}"


def _bar(spark: "SparkSession", counted: Any, files: int, over: threading.Event) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    stderr = Console(stderr=True, markup=False, highlight=False, emoji=False)
    narrow = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    text = TextColumn("{task.description}", markup=False, table_column=narrow)
    columns = [text, BarColumn(bar_width=12), MofNCompleteColumn(), TimeElapsedColumn()]
    if stderr.width < _WIDE:
        del columns[1:]
    with Progress(*columns, console=stderr, transient=True, expand=True) as bar:
        shown = bar.add_task(_so_far(counted, files), total=None)
        while not over.wait(_EVERY):
            done, known = _tasks(spark)
            bar.update(shown, description=_so_far(counted, files))
            if known:
                bar.update(shown, completed=done, total=known)


def _lines(spark: "SparkSession", counted: Any, files: int, over: threading.Event) -> None:
    while not over.wait(_A_LINE_EVERY):
        done, known = _tasks(spark)
        if known:
            say(f"{done} of {count(known, 'task')} done; {_so_far(counted, files)}")
