"""How a peer of AMQP 0-9-1 introduces itself: by the properties of connection.start or start-ok."""

from amqpscope.model.peer_name import PeerName
from dissectors.amqp091.methods import ConnectionStart, ConnectionStartOk
from dissectors.amqp091.tables import FieldTable
from dissectors.amqp091.values import Table
from dissectors.interface import Frame

__all__ = ["introduction"]


def introduction(frame: Frame) -> PeerName | None:
    """What the sender of a frame calls itself in it; None if it is neither of these methods."""
    body = frame.body
    properties: FieldTable | None = None
    if isinstance(body, ConnectionStart):
        properties = body.server_properties
    elif isinstance(body, ConnectionStartOk):
        properties = body.client_properties
    if properties is None:
        return None
    table = properties.read()
    words = [_text(table, "product"), _text(table, "version")]
    name = _text(table, "connection_name") or _text(table, "cluster_name")
    return PeerName(name, " ".join([word for word in words if word]))


def _text(table: Table, name: str) -> str:
    value: object = table.get(name)
    return value if isinstance(value, str) else ""
