"""How much is kept of connections for comparison with other connections."""

from amqpscope.limits import MAX_CORRELATED_MESSAGES, MAX_CORRELATED_OPERATIONS, MAX_KEPT_EXCERPTS
from dissectors.wire import i64

__all__ = ["CorrelationBudget"]


class CorrelationBudget:
    """How much more may be kept, for all connections of a capture set.

    left: messages. operations: requests. excerpts: requests with the frames around them.
    """

    def __init__(self) -> None:
        self.left: i64 = MAX_CORRELATED_MESSAGES
        self.operations: i64 = MAX_CORRELATED_OPERATIONS
        self.excerpts: i64 = MAX_KEPT_EXCERPTS
