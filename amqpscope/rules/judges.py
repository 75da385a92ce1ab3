"""Which rules a connection is judged by: those of its protocol."""

from typing import Any

from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection
from amqpscope.rules.amqp091.judge import Judge as Judge091
from amqpscope.rules.amqp10.judge import Judge as Judge10
from amqpscope.rules.judge import Judge
from amqpscope.tracking.correlation_budget import CorrelationBudget

__all__ = ["load_judge", "new_judge"]


def new_judge(
    connection: Connection, findings: list[Finding], context: bool, allowance: CorrelationBudget | None
) -> Judge:
    """The judge of a connection whose protocol is known, see `Judge`.

    allowance: of what is kept for other connections, shared with these; None for its own.
    """
    if connection.protocol == "amqp091":
        return Judge091(connection, findings, context, allowance)
    return Judge10(connection, findings, context, allowance)


def load_judge(state: tuple[Any, ...], connection: Connection, findings: list[Finding]) -> Judge:
    """A judge that goes on where its `dump` left off."""
    if connection.protocol == "amqp091":
        return Judge091.load(state, connection, findings)
    return Judge10.load(state, connection, findings)
