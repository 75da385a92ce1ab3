"""The tasks of the pipeline in this process, without Spark; and a process that watches and is killed at it.

    python -m support.in_process DIRECTORY LAKE [SECONDS [follow]]

looks once, adds what is new, and prints the processor time it took; with SECONDS that are not 0, it is killed
after so many; with `follow`, it goes on from states and keeps them.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from amqpscope.pipeline import lease
from amqpscope.pipeline.analysis import Analysis
from amqpscope.pipeline.capture_set import CaptureSet
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.schemas import TABLES
from amqpscope.pipeline.tasks import Chain, TaskOutput
from amqpscope.pipeline.watching import Watch, WatchTerms
from amqpscope.policy.policy import Policy

__all__ = ["KILL", "Here", "killed_after", "watch_of"]

KILL = signal.SIGPROF
"""The signal that kills. It comes after a processor time, so it hits alike on a machine that is busy."""


class Here(Analysis):
    """The tasks of the chain plan, in this process."""

    def _run(self, outlet: TaskOutput) -> Any:
        numbers = pa.RecordBatch.from_arrays([pa.array(range(len(self.plan.tasks)), pa.int64())], ["id"])
        made = Chain(self.plan, outlet)(iter([numbers]))
        rows = [SimpleNamespace(**row) for batch in made for row in batch.to_pylist()]
        return SimpleNamespace(collect=lambda: rows)


def watch_of(
    directory: Path,
    lake: Path,
    clock: Callable[[], float] = time.monotonic,
    today: Callable[[], float] = time.time,
    **terms: Any,
) -> Watch:
    """A watch of a directory whose lease is not held. Nothing is followed, unless the terms say so."""

    def analysis(sets: list[CaptureSet]) -> Analysis:
        spark: Any = None
        return Here(spark, make_plan(sets, 1, "chain"), None, [str(directory)], asked.set_by)

    usual = WatchTerms("directory", tuple(TABLES), False, Policy, follow=False)
    asked = usual._replace(**terms)
    return Watch(str(directory), Lake(str(lake)), asked, analysis, clock, today)


def killed_after(seconds: float) -> None:
    """Be killed after this processor time, wherever it is then: as by SIGKILL, nothing cleans up."""
    signal.signal(KILL, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _main(directory: str, lake: str, seconds: str = "0", follow: str = "") -> None:
    lease._SETTLED = 0.0
    watch = watch_of(Path(directory), Path(lake), follow=bool(follow), at_once=bool(follow))
    began = time.process_time()
    if float(seconds):
        killed_after(float(seconds))
    watch.turn()
    watch.close()
    print(time.process_time() - began)


if __name__ == "__main__":
    _main(*sys.argv[1:])
