"""What a frame that was made of the fields in a log does not say: see `amqpscope.capture.unlogged`."""

from typing import Final

from amqpscope.capture.unlogged import BODY, DESCRIPTOR, HEADERS, PAYLOAD, TABLE, TIMESTAMP
from amqpscope.model.unlogged import PAYLOAD as PAYLOAD_PATH
from amqpscope.model.unlogged import UNLOGGED
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.tables import FieldTable
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.values import Described
from dissectors.interface import Frame, Problem
from dissectors.wire import i64

__all__ = ["settle_unlogged"]

_REASON: Final = "the log does not hold this value"

_DEPTH: Final = 4
"""Composites within one another in a frame; no performative has more."""


def settle_unlogged(frame: Frame) -> None:
    """Take out of a frame what stands for values that the log does not hold, so that these are unread.

    All other problems of its octets are ours, not a peer's, and go.
    """
    if frame.kind == "skipped":
        return  # it stands for lines that were lost
    if frame.problems:
        frame.problems = []
    size = frame.extended_header
    if len(size) == 4:
        missing: i64 = int.from_bytes(size, "big")
        if missing == PAYLOAD or frame.payload_size == 0:
            frame.add_problem(Problem(UNLOGGED, 0, f"{frame.name}.{PAYLOAD_PATH}", _REASON))
        else:
            frame.missing = missing
        if missing != PAYLOAD:
            frame.uncaptured = missing
    body = frame.body
    if isinstance(body, Composite):
        _settle(frame, body, body.definition().name, 0)
    elif isinstance(body, Method):
        _settle_method(frame, body)
    elif isinstance(body, ContentHeader):
        _settle_header(frame, body)


def _settle_method(frame: Frame, body: Method) -> None:
    """The tables of a method of AMQP 0-9-1."""
    for field, value in zip(body.definition().fields, body.values(), strict=False):
        if isinstance(value, FieldTable) and value.octets == TABLE:
            setattr(body, field.name.replace("-", "_"), None)
            frame.add_problem(Problem(UNLOGGED, 0, f"method.{field.name}", _REASON, True))


def _settle_header(frame: Frame, body: ContentHeader) -> None:
    """A content header of AMQP 0-9-1."""
    for mark, name in ((BODY, "body"), (HEADERS, "headers"), (TIMESTAMP, "timestamp")):
        if body.weight & mark:
            frame.add_problem(Problem(UNLOGGED, 0, f"{frame.name}.{name}", _REASON))
    if body.weight & BODY:
        body.body_size = -1
    body.weight = 0


def _settle(frame: Frame, body: Composite, path: str, depth: i64) -> None:
    values = body.values()
    for index, field in enumerate(body.definition().fields):
        value = values[index]
        if value is None and body.odd is not None:
            value = body.odd.get(index)
        if isinstance(value, Composite) and depth < _DEPTH:
            _settle(frame, value, f"{path}.{field.name}", depth + 1)
        elif isinstance(value, Described) and value.descriptor == DESCRIPTOR:
            if body.odd is None:
                body.odd = {}
            body.odd[index] = None
            setattr(body, field.name.replace("-", "_"), None)
            unread = value.value is not True
            frame.add_problem(Problem(UNLOGGED, 0, f"{path}.{field.name}", _REASON, unread))
