"""Worker processes that each analyse a share of the connections of a capture: forked, watched, read.

A worker is a fork of this process at a point where nothing is under way. It writes its results into a
temporary file, which has no name. Only when all workers are done are the results read. So either all results
are there or none is used, whatever happens to a worker.
"""

import contextlib
import mmap
import os
import pickle
import select
import signal
import struct
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final

from amqpscope.errors import CaptureError
from amqpscope.limits import WORKER_WAIT

__all__ = ["NotShared", "Worker", "Workers", "may_fork"]

_NOT_SHARED: Final = 3
"""The exit status of a worker that found that the capture has to be read in one process."""

_COUNTS: Final = struct.Struct("=7Q")
"""Of each worker: octets of the capture that were read; how many blocks and steps that were; and how much it
has kept for other connections, of each kind of `CorrelationBudget.rest`."""


class NotShared(Exception):
    """The connections of this capture have to be analysed in one process."""


class Worker:
    """In a worker: where its results go. number: of the worker. counts: shared with all workers."""

    def __init__(self, number: int, of: int, out: BinaryIO, counts: mmap.mmap, parent: int) -> None:
        self.number = number
        self.of = of
        self._out = out
        self._counts = counts
        self._parent = parent

    def put(self, values: object) -> None:
        """Write one result, of plain values."""
        pickle.dump(values, self._out, pickle.HIGHEST_PROTOCOL)

    def flush(self) -> None:
        """All results were put."""
        self._out.flush()

    def report(self, octets: int, way: tuple[int, int], kept: Sequence[int] = (0, 0, 0, 0)) -> list[int]:
        """Report how far the capture was read, and what is kept. Returns what all workers keep.

        octets: of the capture. way: how many blocks and steps that were. kept: of each kind.
        """
        if os.getppid() != self._parent:
            os._exit(1)  # nobody waits for the results any more
        _COUNTS.pack_into(self._counts, self.number * _COUNTS.size, octets, *way, *kept)
        rows = list(_COUNTS.iter_unpack(self._counts))
        return [sum(row[kind] for row in rows) for kind in range(3, 7)]


class _Process:
    """A worker as its parent sees it. pipe: has an end when the worker has ended."""

    def __init__(self, pid: int, pipe: int, results: BinaryIO) -> None:
        self.pid = pid
        self.pipe = pipe
        self.results = results
        self.running = True


def may_fork() -> bool:
    """Whether this process can be forked: the system has forks, and no other thread is in the middle of
    something.
    """
    return hasattr(os, "fork") and threading.active_count() == 1


class Workers:
    """So many processes, each of which does `work` until it has all its results."""

    def __init__(self, count: int, work: Callable[[Worker], None]) -> None:
        """Start them. Raises NotShared if the system refuses: it allows no more processes or files."""
        self._processes: list[_Process] = []
        self._counts = mmap.mmap(-1, count * _COUNTS.size)
        parent = os.getpid()
        try:
            for number in range(count):
                results = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`
                reading, writing = os.pipe()
                try:
                    with warnings.catch_warnings():
                        # Python also counts threads of libraries. They only wait for work; see `may_fork`.
                        warnings.simplefilter("ignore", DeprecationWarning)
                        pid = os.fork()
                    if pid == 0:
                        _run(work, Worker(number, count, results, self._counts, parent))
                except OSError:
                    os.close(reading)
                    raise
                finally:
                    os.close(writing)
                self._processes.append(_Process(pid, reading, results))
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise NotShared from error
            raise

    @property
    def octets_read(self) -> int:
        """Octets of the capture that all workers have read."""
        return min(int(row[0]) for row in _COUNTS.iter_unpack(self._counts))

    @property
    def running(self) -> int:
        """How many of them have not ended yet."""
        open_pipes = [one.pipe for one in self._processes if one.running]
        return len(open_pipes) - len(_ended(open_pipes, 0))

    def agree(self) -> bool:
        """Whether all workers have seen the same blocks and steps."""
        return len({row[1:3] for row in _COUNTS.iter_unpack(self._counts)}) == 1

    def wait(self) -> Iterator[None]:
        """Wait until all workers are done; gives way now and then.

        Raises NotShared if a worker found that one process has to read the capture, and CaptureError if a
        worker was ended by a signal.
        """
        running = {one.pipe: one for one in self._processes}
        while running:
            for pipe in _ended(running, WORKER_WAIT):
                _check(running.pop(pipe))
            yield

    def results(self) -> list[Iterator[Any]]:
        """What each worker has put, in order."""
        return [_loaded(one.results) for one in self._processes]

    def close(self) -> None:
        """End the workers that still run, and drop all results."""
        for one in self._processes:
            if one.running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one.pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(one.pid, 0)
            os.close(one.pipe)
            one.results.close()
        self._processes = []


def _ended(pipes: Iterable[int], seconds: float) -> list[int]:
    """Which of these pipes have an end; waits so long for one. `select` refuses descriptors from 1,024 on."""
    poll = select.poll()
    for pipe in pipes:
        poll.register(pipe, select.POLLIN)
    return [pipe for pipe, _ in poll.poll(seconds * 1000)]


def _run(work: Callable[[Worker], None], worker: Worker) -> None:
    """In the fork: do the work. It never returns, and nothing of the parent is closed, written or removed."""
    status = _NOT_SHARED
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, too, and ends its workers
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                signal.signal(number, signal.SIG_DFL)
        work(worker)
        worker.flush()
        status = 0
    except BaseException:
        # Whatever it is comes up again when one process reads the capture, and is reported there.
        status = _NOT_SHARED
    finally:
        os._exit(status)


def _check(process: _Process) -> None:
    """A worker has ended: raises what `Workers.wait` says."""
    try:
        _, status = os.waitpid(process.pid, 0)
    except ChildProcessError:  # whoever started this program ignores SIGCHLD: nobody knows how it ended
        process.running = False
        raise NotShared from None
    process.running = False
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        why = " (perhaps for want of memory)" if number == signal.SIGKILL else ""
        raise CaptureError(
            f"a worker process was ended by signal {number}{why}; with --jobs 1, one process reads all of it"
        )
    if os.WEXITSTATUS(status) != 0:
        raise NotShared


def _loaded(results: BinaryIO) -> Iterator[Any]:
    """The results in a file, in order."""
    results.seek(0)
    while True:
        try:
            # Made by a fork of this process, of plain values.
            yield pickle.load(results)  # noqa: S301
        except EOFError:
            return
