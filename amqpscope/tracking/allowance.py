"""How much is kept of connections to be held against others."""

from amqpscope.limits import MAX_CORRELATED_DEEDS, MAX_CORRELATED_MESSAGES
from dissectors.wire import i64

__all__ = ["Allowance"]


class Allowance:
    """How much more may be kept, of all connections of a capture set: messages (`left`), and deeds."""

    def __init__(self) -> None:
        self.left: i64 = MAX_CORRELATED_MESSAGES
        self.deeds: i64 = MAX_CORRELATED_DEEDS
