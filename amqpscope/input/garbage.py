"""Python's collector of cyclic garbage, reported what kind of program this is."""

import gc

__all__ = ["calm_collector", "calm_worker", "settle_collector"]

_STATE = {"calm": False}
"""Whether this process is ours, so that its collector may be changed."""


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
    """`calm_collector` in a process that only does tasks. What is loaded by its first one stays."""
    if not _STATE["calm"]:
        calm_collector()
        settle_collector()
