"""Findings about an operation of a client, or a server's answer, that contradicts an earlier operation."""

from typing import Final

from amqpscope.model.finding import Finding
from amqpscope.model.reaction import OTHER_ERROR, Reaction
from amqpscope.model.records import FrameRef
from amqpscope.tracking.amqp091.topology_operations import PENDING, TopologyOperation
from dissectors.wire import i64

__all__ = ["about_answer", "about_request", "shown"]

# How many characters of a name a message shows.
_SHOWN: Final = 60


def about_request(
    rule: str,
    certainty: i64,
    message: str,
    operation: TopologyOperation,
    earlier: TopologyOperation | None = None,
) -> Finding:
    """The client is at fault, because it sent this request. earlier: the operation that proves the fault.

    The reaction is the server's answer: a close, or no error.
    """
    finding = _finding(rule, certainty, message, operation, operation.spot, earlier)
    answer = operation.outcome.answer
    if operation.outcome.refused and answer is not None:
        after: i64 = answer.time - operation.spot.time
        finding.reaction = Reaction(answer.name, str(int(operation.outcome.code)), after, answer.packet)
    elif operation.outcome is not PENDING:
        finding.reaction = OTHER_ERROR
    finding.around, finding.around_made = operation.around, operation.around_made
    finding.around_whole = len(operation.around)
    return finding


def about_answer(
    rule: str,
    certainty: i64,
    message: str,
    operation: TopologyOperation,
    earlier: TopologyOperation | None = None,
) -> Finding:
    """The server is at fault, because it answered so. earlier: the operation that proves the fault."""
    spot = operation.outcome.answer
    if spot is None:
        spot = operation.spot
    finding = _finding(rule, certainty, message, operation, spot, earlier)
    if operation.spot.packet not in finding.others:
        finding.others.insert(0, int(operation.spot.packet))
    finding.around, finding.around_made = operation.outcome.around, operation.outcome.around_made
    finding.around_whole = len(operation.outcome.around)
    return finding


def _finding(
    rule: str,
    certainty: i64,
    message: str,
    operation: TopologyOperation,
    spot: FrameRef,
    earlier: TopologyOperation | None,
) -> Finding:
    evidence: dict[str, object] = {}
    for name, value in (
        ("queue", operation.queue),
        ("exchange", operation.exchange),
        ("destination", operation.destination),
        ("consumer_tag", operation.tag),
    ):
        if value:
            evidence[name] = value
    if operation.outcome.code > 0:
        evidence["reply_code"] = int(operation.outcome.code)
    others: list[int] = []
    if earlier is not None:
        if earlier.connection is not operation.connection:
            evidence["other_connection"] = earlier.connection.id
        if earlier.connection.capture == operation.connection.capture:
            others.append(int((earlier.outcome.answer or earlier.spot).packet))
    finding = Finding(rule, certainty, message, operation.connection, spot, evidence, others)
    finding.addresses = tuple(
        [name for name in (operation.queue, operation.exchange, operation.destination) if name]
    )
    return finding


def shown(name: str) -> str:
    """The name of a queue or an exchange, quoted."""
    return repr(name if len(name) <= _SHOWN else name[:_SHOWN] + "...")
