"""What is kept of a finished AMQP 0-9-1 connection, for comparison with others of the same capture set."""

from typing import Any, Final

from amqpscope.model.records import Connection, MakeExcerpt
from amqpscope.tracking.amqp091.contents import Content
from amqpscope.tracking.amqp091.topology_operations import TopologyOperation
from amqpscope.tracking.summary import ConnectionSummary
from dissectors.wire import i64

__all__ = ["Amqp091Summary"]

# Operations that take as much as a link of AMQP 1.0.
_OPERATIONS_A_LINK: Final = 4


class Amqp091Summary(ConnectionSummary):
    """One AMQP 0-9-1 connection."""

    def __init__(
        self, connection: Connection, operations: list[TopologyOperation], contents: list[Content]
    ) -> None:
        super().__init__(connection)
        # What was done on it, in the order of the client's stream.
        self.operations: list[TopologyOperation] = operations
        # The first messages of either peer, and whether these are all.
        self.contents: list[Content] = contents
        self.all_contents: bool = True
        # The virtual host that it opened.
        self.virtual_host: str = ""
        # The server's product, "" if it does not say.
        self.product: str = ""
        # When its last frame was complete (ns).
        self.ended: i64 = 0
        # It was closed, or a stream of it ended.
        self.over: bool = False
        # Both streams were captured from the start, and all that was done on it is kept.
        self.whole: bool = True

    @property
    def weight(self) -> int:
        return 1 + (len(self.operations) + len(self.contents)) // _OPERATIONS_A_LINK

    @property
    def rabbitmq(self) -> bool:
        """Whether the server says that it is RabbitMQ, or LavinMQ."""
        return self.product in ("RabbitMQ", "LavinMQ")

    @property
    def has_excerpts(self) -> bool:
        return any(operation.around or operation.outcome.around for operation in self.operations)

    def make_excerpts(self, make: MakeExcerpt) -> None:
        for operation in self.operations:
            operation.make_excerpts(make)

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
    def load(state: tuple[Any, ...]) -> "Amqp091Summary":
        """The object of what `dump` returned."""
        about, (virtual_host, product), (ended, over, whole), operations, (contents, everything) = state
        connection = Connection.load(about)
        loaded = [TopologyOperation.load(operation, connection) for operation in operations]
        kept = [Content.load(content, connection) for content in contents]
        summary = Amqp091Summary(connection, loaded, kept)
        summary.virtual_host, summary.product = virtual_host, product
        summary.ended, summary.over, summary.whole = ended, over, whole
        summary.all_contents = everything
        return summary
