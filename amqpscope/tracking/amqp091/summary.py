"""What is kept of an AMQP 0-9-1 connection that is over, for those of the same capture set beside it."""

from typing import Any

from amqpscope.model.records import Connection
from amqpscope.tracking.amqp091.contents import Content
from amqpscope.tracking.amqp091.topology_operations import TopologyOperation
from amqpscope.tracking.summary import ConnectionSummary
from dissectors.wire import i64

__all__ = ["Summary"]

# Operations that take as much as a link of AMQP 1.0.
_OPERATIONS_A_LINK = 4


class Summary(ConnectionSummary):
    """One AMQP 0-9-1 connection.

    virtual_host: that it opened. product: of the server, "" if it does not say. ended: the time (ns) of
    the last frame. over: it was closed, or a stream of it ended. whole: both streams were captured from the
    start, and all that was done on it is kept. operations: what was, in the order of the client's stream.
    contents: the first messages of either peer; all_contents: whether these are all.
    """

    def __init__(
        self,
        connection: Connection,
        virtual_host: str,
        product: str,
        ended: i64,
        over: bool,
        whole: bool,
        operations: list[TopologyOperation],
        contents: list[Content],
        all_contents: bool,
    ) -> None:
        super().__init__(connection)
        self.virtual_host: str = virtual_host
        self.product: str = product
        self.ended: i64 = ended
        self.over: bool = over
        self.whole: bool = whole
        self.operations: list[TopologyOperation] = operations
        self.contents: list[Content] = contents
        self.all_contents: bool = all_contents

    @property
    def weight(self) -> int:
        return 1 + (len(self.operations) + len(self.contents)) // _OPERATIONS_A_LINK

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
            tuple(operation.dump() for operation in self.operations),
            (tuple(content.dump() for content in self.contents), self.all_contents),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Summary":
        """What `dump` gave, as an object again."""
        about, (virtual_host, product), (ended, over, whole), operations, (contents, everything) = state
        connection = Connection.load(about)
        loaded = [TopologyOperation.load(operation, connection) for operation in operations]
        kept = [Content.load(content, connection) for content in contents]
        return Summary(connection, virtual_host, product, ended, over, whole, loaded, kept, everything)
