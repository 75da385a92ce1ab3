"""The tasks of a run in processes of this machine, without Spark: for captures that are read in less time
than a Java takes to start.

The tasks and what they write are those of the chain plan on Spark. The processes are forks of this one (see
`amqpscope.input.workers`). They are forked while other threads wait, for the end of the command or for a
worker that asks for secrets: none of these holds what a worker needs.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from amqpscope.errors import CaptureError
from amqpscope.input.workers import NotShared, Worker, Workers
from amqpscope.pipeline.columns import batch_of
from amqpscope.pipeline.failure import PipelineError

__all__ = ["Pool", "ReportRow"]


class ReportRow(NamedTuple):
    """A row of `tasks.REPORT`."""

    kind: str
    name: str
    rows: int
    octets: int
    first_set: str
    last_set: str


class Pool:
    """So many processes, which do tasks of runs. Where it is one, or there are no forks, it is this one."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._cancelled = False

    def cancel(self) -> None:
        """End the run that is under way, and all later ones, from another thread."""
        self._cancelled = True

    def report(
        self, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], tasks: int
    ) -> list[ReportRow]:
        """What so many tasks report. task: takes their numbers, as Spark gives them.

        If a process fails, all is done again in this one, so that the error is raised here.
        """
        processes = min(self.processes, tasks)
        if processes > 1 and hasattr(os, "fork"):
            try:
                return self._by_workers(task, tasks, processes)
            except NotShared:
                pass
            except CaptureError as error:
                raise PipelineError(str(error).partition("; ")[0]) from error
        return [ReportRow(*row.values()) for batch in task(self._all(tasks)) for row in batch.to_pylist()]

    def _all(self, tasks: int) -> Iterator[pa.RecordBatch]:
        for number in range(tasks):
            self._look()
            yield _batch(number)

    def _look(self) -> None:
        if self._cancelled:
            raise PipelineError("interrupted")

    def _by_workers(
        self, task: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]], tasks: int, processes: int
    ) -> list[ReportRow]:
        def work(worker: Worker) -> None:
            for batch in task(_share(worker, tasks)):
                for row in batch.to_pylist():
                    worker.put(tuple(row.values()))

        workers = Workers(processes, work)
        try:
            for _ in workers.wait():
                self._look()
            return [ReportRow(*row) for rows in workers.results() for row in rows]
        finally:
            workers.close()


def _share(worker: Worker, tasks: int) -> Iterator[pa.RecordBatch]:
    """The numbers of a worker's tasks. The largest tasks are the first ones, so shares are alike."""
    for number in range(worker.number, tasks, worker.of):
        worker.report(0, (0, 0))  # ends a worker that nobody waits for
        yield _batch(number)


def _batch(number: int) -> pa.RecordBatch:
    return batch_of([(number,)], _NUMBERS)


_NUMBERS = pa.schema([("id", pa.int64())])
