"""Shows how far a capture has been read, to whoever wants to see it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

__all__ = ["Measured", "Meter", "Metering", "unmeasured"]


class Measured(Protocol):
    """A capture that is read, here or by another process. size: its octets, None if they are not known."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int | None: ...

    @property
    def octets_read(self) -> int: ...


class Meter(Protocol):
    """Shows how far a capture has been read."""

    def update(self) -> None:
        """A block was read."""


Metering = Callable[[Measured], AbstractContextManager[Meter]]
"""What shows how far a capture is read while it is read."""


class _NoMeter:
    """Nobody watches."""

    def update(self) -> None:
        pass


def unmeasured(capture: Measured) -> AbstractContextManager[Meter]:
    """Nothing is shown."""
    return nullcontext(_NoMeter())
