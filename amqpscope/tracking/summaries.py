"""What is kept of connections that are over, whatever their protocol."""

from typing import Any

from amqpscope.model.records import Connection
from amqpscope.tracking.amqp091.summary import Summary as Summary091
from amqpscope.tracking.amqp10.summary import Summary as Summary10
from amqpscope.tracking.summary import ConnectionSummary

__all__ = ["load_summary"]


def load_summary(state: tuple[Any, ...]) -> ConnectionSummary:
    """What a summary's `dump` gave, as an object again."""
    if Connection.load(state[0]).protocol == "amqp091":
        return Summary091.load(state)
    return Summary10.load(state)
