"""Python's collector of cyclic garbage, reported what kind of program this is."""

import gc
import itertools

__all__ = ["calm_collector", "calm_worker", "settle_collector"]

_STATE = {"calm": False}
"""Whether this process is ours, so that its collector may be changed."""

_TASKS_THAT_LOAD = 3
"""The first tasks of a worker load modules that later tasks need, too: after so many, all are loaded."""

_tasks = itertools.count()
"""Counts the tasks that have begun in this process."""


def calm_collector() -> None:
    """Let the collector run seldom.

    Millions of short-lived objects, hardly a cycle among them: it would look through all that is alive again
    and again, up to a third of the run, to find nothing.
    """
    gc.set_threshold(100_000, 20, 100)
    _STATE["calm"] = True


def settle_collector() -> None:
    """All that is loaded by now stays: let the collector never look through it again.

    It does nothing in the process of a program that only uses amqpscope.
    """
    if _STATE["calm"]:
        gc.freeze()


def calm_worker() -> None:
    """`calm_collector` where a task begins, in a process that only does tasks.

    What its first tasks have loaded stays. Spark collects garbage after each task, so hardly any is there.
    """
    calm_collector()
    if next(_tasks) < _TASKS_THAT_LOAD:
        settle_collector()
