"""What is kept of an AMQP 0-9-1 connection that is over, for those of the same capture set beside it."""

from typing import Any

from amqpscope.model import Connection
from amqpscope.tracking.amqp091.deeds import Deed
from amqpscope.tracking.summary import ConnectionSummary
from dissectors.wire import i64

__all__ = ["Summary"]

# Deeds that take as much as a link of AMQP 1.0.
_DEEDS_A_LINK = 4


class Summary(ConnectionSummary):
    """One AMQP 0-9-1 connection.

    virtual_host: that it opened. product: of the server, "" if it does not say. ended: the time (ns) of
    the last frame. over: it was closed, or a stream of it ended. whole: both streams were captured from the
    start, and all that was done on it is kept. deeds: what was, in the order of the client's stream.
    """

    def __init__(
        self,
        connection: Connection,
        virtual_host: str,
        product: str,
        ended: i64,
        over: bool,
        whole: bool,
        deeds: list[Deed],
    ) -> None:
        super().__init__(connection)
        self.virtual_host: str = virtual_host
        self.product: str = product
        self.ended: i64 = ended
        self.over: bool = over
        self.whole: bool = whole
        self.deeds: list[Deed] = deeds

    @property
    def weight(self) -> int:
        return 1 + len(self.deeds) // _DEEDS_A_LINK

    @property
    def rabbitmq(self) -> bool:
        """Whether the server says that it is RabbitMQ, or LavinMQ."""
        return self.product in ("RabbitMQ", "LavinMQ")

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            self.connection.dump(),
            (self.virtual_host, self.product),
            (int(self.ended), self.over, self.whole),
            tuple(deed.dump() for deed in self.deeds),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Summary":
        """What `dump` gave, as an object again."""
        about, (virtual_host, product), (ended, over, whole), deeds = state
        connection = Connection.load(about)
        loaded = [Deed.load(deed, connection) for deed in deeds]
        return Summary(connection, virtual_host, product, ended, over, whole, loaded)
