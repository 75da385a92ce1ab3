"""Shows how far a capture has been read, to whoever wants to see it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from amqpscope.input.capture import Capture

__all__ = ["Meter", "Metering", "unmeasured"]


class Meter(Protocol):
    """Shows how far a capture has been read."""

    def update(self) -> None:
        """A block was read."""


Metering = Callable[[Capture], AbstractContextManager[Meter]]
"""What shows how far a capture is read while it is read."""


class _NoMeter:
    """Nobody watches."""

    def update(self) -> None:
        pass


def unmeasured(capture: Capture) -> AbstractContextManager[Meter]:
    """Nothing is shown."""
    return nullcontext(_NoMeter())
