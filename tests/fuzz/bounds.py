"""What an input of a few kB may cost: time and memory, checked around an entry.

Entries run interpreted here, and several times over what a command does once (cut up, moved, shown in every
form), with the fuzzer's counters in between. So the second per MB is not compared with the size of so small
an input: it is what the whole of it may take.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

__all__ = ["MOST_MEMORY", "MOST_OCTETS", "Watch", "most_memory"]

MOST_OCTETS = 4096
"""Octets of an input. Time that grows with the square of them shows with these."""

MOST_SECONDS = 2.0
"""Processor time of one input."""

MOST_MEMORY = 64 * 1024 * 1024
"""Octets by which the process may grow, over all inputs."""


class Watch:
    """Runs an entry, and fails if it takes too much. `start`: the growth is counted from the next run on."""

    def __init__(self, entry: Callable[[bytes], None]) -> None:
        self._entry = entry
        self._size = 0
        self.slowest = 0.0

    def start(self) -> None:
        self._size = most_memory()

    @property
    def growth(self) -> int:
        """Octets by which the process has grown since `start`."""
        return most_memory() - self._size

    def __call__(self, octets: bytes) -> None:
        if not self._size:
            self.start()
        began = time.process_time()
        self._entry(octets)
        taken = time.process_time() - began
        self.slowest = max(self.slowest, taken)
        assert taken < MOST_SECONDS, f"{taken:.1f} s for {len(octets)} octets"
        assert self.growth < MOST_MEMORY, f"memory grew by {self.growth} octets"


def most_memory() -> int:
    """The most memory that this program has had so far, in octets."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    # Counts what the process had before it ran this program, too: less is seen by it.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
