"""Python's collector of cyclic garbage, reported what kind of program this is."""

import gc

__all__ = ["calm_collector"]


def calm_collector() -> None:
    """Let the collector run seldom.

    Millions of short-lived objects, hardly a cycle among them: it would look through all that is alive again
    and again, up to a third of the run, to find nothing.
    """
    gc.set_threshold(100_000, 20, 100)
