"""How far a job of Spark's is, from its own status: tasks that are done of those that are known."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from amqpscope.cli.output import say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["progress"]

_EVERY = 0.5
_A_LINE_EVERY = 30.0
"""Seconds between two looks, and between two lines where nobody watches."""


@contextmanager
def progress(spark: "SparkSession") -> Iterator[None]:
    """Show it while the body runs."""
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, over), daemon=True)
    watcher.start()
    try:
        yield
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


def _watch(spark: "SparkSession", over: threading.Event) -> None:
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        stderr = Console(stderr=True, markup=False, highlight=False, emoji=False)
        columns = (TextColumn("tasks"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=stderr, transient=True) as bar:
            shown = bar.add_task("tasks", total=None)
            while not over.wait(_EVERY):
                done, known = _tasks(spark)
                if known:
                    bar.update(shown, completed=done, total=known)
        return
    while not over.wait(_A_LINE_EVERY):
        done, known = _tasks(spark)
        if known:
            say(f"{done} of {known} tasks done")
