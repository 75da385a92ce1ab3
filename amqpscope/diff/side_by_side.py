"""The second capture of a comparison, read by a worker process while this one reads the first.

What is kept of a connection depends on the others of its capture: a broker makes up names, and all that is
kept has one bound. So the connections of one capture are not shared out. Two captures have only the table of
forms in common. The worker begins with an empty one, and its numbers are translated.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from amqpscope.diff.forms import CanonicalFrameTable
from amqpscope.diff.run import ComparedRun
from amqpscope.errors import CaptureError
from amqpscope.input.meter import Measured, Meter, Metering
from amqpscope.input.replay import ReplayableCapture
from amqpscope.input.workers import NotShared, Worker, Workers, may_fork
from amqpscope.limits import SHARE_PROBE
from amqpscope.policy.policy import Policy, Rulings

__all__ = ["Beside", "compared_run"]


def compared_run(material: ReplayableCapture, table: CanonicalFrameTable, policy: Policy) -> ComparedRun:
    """A capture, read to be compared. Raises CaptureError."""
    run = ComparedRun(material.name, table, Rulings(policy))
    with material.capture(judge=True, ended=True) as capture:
        run.read(capture)
    return run


class Beside(AbstractContextManager["Beside"]):
    """Reads a capture in a worker, where `jobs` allow another process and that is worth it."""

    def __init__(self, material: ReplayableCapture, policy: Policy, jobs: int) -> None:
        """Begin. material: the capture. policy: as of `compare`."""
        self._material = material
        self._policy = policy
        self._workers: Workers | None = None
        if jobs > 1 and (material.size or 0) >= SHARE_PROBE and may_fork():
            with suppress(NotShared):  # the system allows no more processes
                self._workers = Workers(1, self._work)

    def take(self, table: CanonicalFrameTable) -> ComparedRun:
        """The capture, with its forms in the table. Raises CaptureError."""
        if self._workers is not None:
            with suppress(NotShared):
                try:
                    with self._material.meter(_Awaited(self._material, self._workers)) as meter:
                        for _ in self._workers.wait():
                            meter.update()
                except CaptureError as error:
                    raise CaptureError(f"{self._material.name}: {error}") from error
                state, forms = next(self._workers.results()[0])
                run = ComparedRun(self._material.name, table, Rulings(self._policy))
                run.restore(state, [0, *map(table.number, forms)])
                if not table.full:
                    return run
        return compared_run(self._material, table, self._policy)

    def _work(self, worker: Worker) -> None:
        """In the worker: read the capture."""
        self._material.meter = _reported_by(worker)
        table = CanonicalFrameTable()
        run = compared_run(self._material, table, self._policy)
        if table.full or self._material.mishaps:
            raise NotShared
        worker.put((run.dump(), table.forms))

    def __exit__(self, *_: object) -> None:
        if self._workers is not None:
            self._workers.close()


class _Awaited:
    """The capture that the worker reads, as it is seen by whoever waits for the worker."""

    def __init__(self, material: ReplayableCapture, workers: Workers) -> None:
        self.name = material.name
        self.size = material.size
        self._workers = workers

    @property
    def octets_read(self) -> int:
        return self._workers.octets_read


def _reported_by(worker: Worker) -> Metering:
    """Reports each block, and so ends the worker if nobody waits for it."""

    class _Reports:
        def __init__(self, capture: Measured) -> None:
            self._capture = capture

        def update(self) -> None:
            worker.report(self._capture.octets_read, (0, 0))

    @contextmanager
    def metered(capture: Measured) -> Iterator[Meter]:
        yield _Reports(capture)

    return metered
