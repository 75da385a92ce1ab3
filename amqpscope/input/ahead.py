"""Several captures of one run, read side by side: each by a process of its own, before its turn comes.

Results are taken in the order of the captures, as those of the connections are that several processes share
(`amqpscope.input.sharing`): here, a worker has all connections of one capture. What a worker cannot do, this
process does when the turn of the capture comes.
"""

import os
from collections.abc import Callable, Sequence

from amqpscope.errors import CaptureError
from amqpscope.input.capture import Capture
from amqpscope.limits import MAX_AHEAD_PER_JOB, MIN_AHEAD_OCTETS, MIN_SHARED_OCTETS, SHARE_PROBE

__all__ = ["ReadAhead", "size_of"]


class ReadAhead:
    """Opens the captures of a run one after the other, and has the next ones read meanwhile.

    jobs: how many processes read at a time, at most. sizes: octets of each capture, 0 if it is unknown.
    prepare: opens a capture by its number, with all that watches it. Raises CaptureError.
    """

    def __init__(self, jobs: int, sizes: Sequence[int], prepare: Callable[[int], Capture]) -> None:
        self._jobs = jobs
        self._prepare = prepare
        worth = [size >= MIN_AHEAD_OCTETS for size in sizes]
        # A large one may be shared out when its turn comes; not where other captures give enough to do.
        large = MIN_SHARED_OCTETS + SHARE_PROBE if sum(worth) < jobs else max(sizes, default=0) + 1
        ahead = [number for number, size in enumerate(sizes) if worth[number] and size < large]
        # Of these, the captures that no process has begun to read.
        self._waiting = ahead if jobs > 1 and sum(worth) > 1 else []
        self._begun: dict[int, Capture] = {}
        # The capture whose turn it is.
        self._present: Capture | None = None

    def open(self, number: int) -> Capture:
        """The next capture. Raises CaptureError."""
        self._present = None
        if self._waiting[:1] == [number]:
            self._begin(self._waiting.pop(0))
        present = self._begun.pop(number, None) or self._prepare(number)
        present.room = self._room
        self._present = present
        self.go_on()
        return present

    def go_on(self) -> None:
        """Let processes begin that may begin. To be called now and then."""
        while self._waiting and len(self._begun) < self._jobs * MAX_AHEAD_PER_JOB:
            present = 0 if self._present is None else self._present.readers
            if present >= self._room():
                return
            self._begin(self._waiting.pop(0))

    def _room(self) -> int:
        """How many processes there may be for the capture whose turn it is."""
        return self._jobs - sum(capture.readers for capture in self._begun.values())

    def _begin(self, number: int) -> None:
        """Let a process read this capture, if it can be opened."""
        try:
            capture = self._prepare(number)
        except CaptureError:
            return  # it is reported when its turn comes
        if capture.read_ahead():
            self._begun[number] = capture
        else:
            capture.close()

    def close(self) -> None:
        """End the processes that still read."""
        self._waiting = []
        for capture in self._begun.values():
            capture.close()
        self._begun.clear()


def size_of(paths: Sequence[str]) -> int:
    """Octets of files. One that cannot be looked at, or is no regular file, has 0."""
    try:
        return sum(os.path.getsize(path) if os.path.isfile(path) else 0 for path in paths)
    except OSError:
        return 0
