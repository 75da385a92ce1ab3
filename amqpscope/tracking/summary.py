"""What is kept of a finished connection, for comparison with later connections of the same capture set."""

from abc import ABC, abstractmethod
from typing import Any

from amqpscope.model.records import Connection
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

    @abstractmethod
    def dump(self) -> tuple[object, ...]:
        """All of it as plain values, its connection first."""


def load_summary(state: tuple[Any, ...]) -> ConnectionSummary:
    """The object of what a summary's `dump` returned."""
    return protocol_of(Connection.load(state[0]).protocol).load_summary(state)
