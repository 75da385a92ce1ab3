"""How many messages are kept to be found again on other connections."""

from amqpscope.limits import MAX_CORRELATED_MESSAGES
from dissectors.wire import i64

__all__ = ["Allowance"]


class Allowance:
    """How many more messages may be kept, of all connections of a capture set."""

    def __init__(self) -> None:
        self.left: i64 = MAX_CORRELATED_MESSAGES
