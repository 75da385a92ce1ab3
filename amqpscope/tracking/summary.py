"""What is kept of a connection that is over, for those of the same capture set that come after it."""

from abc import ABC, abstractmethod
from typing import Any

from amqpscope.model.records import Connection
from amqpscope.protocols import protocol_of

__all__ = ["ConnectionSummary", "load_summary"]


class ConnectionSummary(ABC):
    """One connection; what is kept of it is its protocol's, in a subclass."""

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection = connection

    @property
    def weight(self) -> int:
        """How much there is of it, counted in links of AMQP 1.0."""
        return 0

    @abstractmethod
    def dump(self) -> tuple[object, ...]:
        """All of it as plain values, its connection first."""


def load_summary(state: tuple[Any, ...]) -> ConnectionSummary:
    """What a summary's `dump` gave, as an object again."""
    return protocol_of(Connection.load(state[0]).protocol).load_summary(state)
