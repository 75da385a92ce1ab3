"""A selector that notices when nobody looked at the sockets: the process was stopped, or busy for long."""

import selectors
import time
from collections.abc import Callable
from typing import Final

__all__ = ["WatchfulSelector"]

_LONG: Final = 250_000_000
"""Nanoseconds without a look that are reported. AMQP counts silences in seconds."""


class WatchfulSelector(selectors.DefaultSelector):
    """report: is given such times, from and to (ns since 1970), before anything is read."""

    def __init__(self, report: Callable[[int, int], None]) -> None:
        super().__init__()
        self._report = report
        self._looked = time.time_ns()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = time.time_ns()
        if began - self._looked > _LONG:
            self._report(self._looked, began)
        ready = super().select(timeout)
        self._looked = time.time_ns()
        if timeout is not None:
            expected = began + int(max(timeout, 0) * 1_000_000_000)
            if self._looked - expected > _LONG:
                self._report(expected, self._looked)
        return ready
