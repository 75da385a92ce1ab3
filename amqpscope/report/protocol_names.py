"""What people call the protocol of a connection."""

from typing import Final

from amqpscope.protocols import label

__all__ = ["protocol_name"]

_OTHERS: Final = {"unknown": "not AMQP", "": "no data"}


def protocol_name(protocol: str) -> str:
    """The name of a protocol for people; for `amqp091>http`, of both protocols."""
    client, both, server = protocol.partition(">")
    if both:
        return f"{protocol_name(client)} by the client, {protocol_name(server)} by the server"
    return _OTHERS.get(protocol) or label(protocol)
