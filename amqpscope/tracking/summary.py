"""What is kept of a finished connection, for comparison with later connections of the same capture set."""

from abc import ABC, abstractmethod
from typing import Any

from amqpscope.model.records import Connection, MakeExcerpt
from amqpscope.protocols import protocol_of

__all__ = ["ConnectionSummary", "load_summary"]


class ConnectionSummary(ABC):
    """One connection; the subclass of its protocol says what is kept."""

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection = connection

    @property
    def weight(self) -> int:
        """The size of the summary, counted in links of AMQP 1.0."""
        return 0

    @property
    def has_excerpts(self) -> bool:
        """Whether frames are kept, to be shown with findings of later connections."""
        return False

    def make_excerpts(self, make: MakeExcerpt) -> None:
        """Replace the frames that are kept by plain values, which are dumped."""
        return

    @abstractmethod
    def dump(self) -> tuple[object, ...]:
        """All of it as plain values, its connection first."""


def load_summary(state: tuple[Any, ...]) -> ConnectionSummary:
    """The object of what a summary's `dump` returned."""
    return protocol_of(Connection.load(state[0]).protocol).load_summary(state)
