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

    def may_excerpt(self, refused: bool) -> bool:
        """Whether the frames around one more request may be kept. refused: by the server.

        Half of the excerpts are for refused requests, because most findings are about these.
        """
        return self.excerpts > (0 if refused else MAX_KEPT_EXCERPTS // 2)

    def rest(self) -> list[int]:
        """How much more of each kind may be kept: messages, requests, excerpts of any request, and of refused
        ones.
        """
        excerpts = int(self.excerpts)
        return [int(self.left), int(self.operations), excerpts - MAX_KEPT_EXCERPTS // 2, excerpts]
