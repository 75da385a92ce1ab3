"""Standard output that never makes its writer wait.

A terminal may be slow, stopped with Ctrl-S, or at the far end of a bad line;
a pipe may have a reader that sleeps. Who captures must not wait for it: while
it waits, packets are lost. So text is given to a thread that writes it, and
what waits is bounded: text that does not fit is refused, and whoever gave it
says later how much was not shown.
"""

import os
import select
import threading
from collections import deque

from amqpscope.limits import OUTLET_OCTETS, OUTLET_PATIENCE

__all__ = ["NonBlockingOutput"]


class NonBlockingOutput:
    """Writes text to a file descriptor from a thread of its own. encoding: what the text is written in."""

    def __init__(self, descriptor: int, encoding: str = "utf-8") -> None:
        self._descriptor = descriptor
        self._encoding = encoding
        self._waiting: deque[bytes] = deque()
        self._octets = 0
        self._changed = threading.Condition()
        self._ending = False
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._write, name="outlet", daemon=True)
        self._thread.start()

    @property
    def error(self) -> OSError | None:
        """Why nothing can be written any more: nobody reads it (BrokenPipeError), the disk is full."""
        return self._error

    @property
    def room(self) -> bool:
        """Whether the next text fits, if it is of ordinary size: half of what may wait is free."""
        return self._octets < OUTLET_OCTETS // 2

    def offer(self, text: str) -> bool:
        """Have text written, if it may wait with what waits already. False: it was refused."""
        octets = text.encode(self._encoding, "backslashreplace")
        with self._changed:
            if self._error is not None:
                return True  # whoever reads it has seen enough; the caller looks at `error`
            if self._octets + len(octets) > OUTLET_OCTETS:
                return False
            self._waiting.append(octets)
            self._octets += len(octets)
            self._changed.notify()
        return True

    def close(self) -> bool:
        """Have the rest written, for a while. False: not all of it could be."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join(OUTLET_PATIENCE)
        return not self._thread.is_alive() and self._error is None

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ending:
                    self._changed.wait()
                if not self._waiting:
                    return
                octets = self._waiting.popleft()
            try:
                self._write_all(octets)
            except OSError as error:
                with self._changed:
                    self._error = error
                    self._waiting.clear()
                return
            with self._changed:
                self._octets -= len(octets)

    def _write_all(self, octets: bytes) -> None:
        left = memoryview(octets)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                # Another program that has this terminal open does not want to wait for it; here it is waited.
                select.select([], [self._descriptor], [], 1)
