"""What is kept of a connection that is over, for those of the same capture set that come after it."""

from abc import ABC, abstractmethod

from amqpscope.model.records import Connection

__all__ = ["ConnectionSummary"]


class ConnectionSummary(ABC):
    """One connection; what is kept of it is its protocol's, in a subclass.

    `tracking.summaries` makes one again of what `dump` gave.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection = connection

    @property
    def weight(self) -> int:
        """How much there is of it, counted in links of AMQP 1.0."""
        return 0

    @abstractmethod
    def dump(self) -> tuple[object, ...]:
        """All of it as plain values, its connection first."""
