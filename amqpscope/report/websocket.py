"""What the WebSocket of a connection shows: for people and for JSON."""

from typing import Any

from amqpscope.model.records import Connection
from amqpscope.report.line import Line
from amqpscope.report.value_text import text_word

__all__ = ["websocket_lines", "websocket_object"]

_WIDTH = 64

_ACCEPTED = 101
"""The status with which a server begins WebSocket."""

_LOST = 0
"""Instead of a status, where the response was not captured."""


def websocket_lines(connection: Connection) -> list[Line]:
    """Lines of a summary."""
    facts = connection.websocket
    if facts is None or facts.status not in (_ACCEPTED, _LOST):
        return []
    words = ["WebSocket"]
    words.append(
        f"subprotocol {text_word(facts.subprotocol, _WIDTH)}" if facts.subprotocol else "no subprotocol"
    )
    if facts.deflate:
        words.append("compressed")
    words += [f"closed with {one.code} by the {connection.peer(one.direction)}" for one in facts.closes[:2]]
    return [[("", "  " + ", ".join(words))]]


def websocket_object(connection: Connection) -> dict[str, Any] | None:
    """The same for JSON; None without WebSocket."""
    facts = connection.websocket
    if facts is None:
        return None
    return {
        "status": int(facts.status) or None,
        "reason": facts.reason or None,
        "subprotocols_offered": facts.offered,
        "subprotocol": facts.subprotocol or None,
        "compressed": facts.deflate,
        "not_read_because": facts.unread or None,
        "closes": [
            {
                "peer": connection.peer(one.direction),
                "code": None if one.code < 0 else int(one.code),
                "packet": int(one.packet),
            }
            for one in facts.closes
        ],
    }
