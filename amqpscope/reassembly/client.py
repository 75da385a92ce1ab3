"""Which end of a connection is the client.

The strongest evidence wins: who sent SYN; else who speaks as a client (the caller knows, from the
protocol); else who is not on AMQP's registered ports; else who has the higher port, since clients
mostly get theirs from the ephemeral range.
"""

from typing import Final

from dissectors.wire import i64

__all__ = ["AMQPS_PORT", "AMQP_PORT", "client_direction"]

# IANA service names "amqp" and "amqps".
AMQP_PORT: Final = 5672
AMQPS_PORT: Final = 5671


def client_direction(opener: i64, hint: i64, port_0: i64, port_1: i64) -> i64:
    """The direction (0 or 1) in which the client sends.

    `opener`: the direction that opened the connection (`TcpConnection.opener`), -1 when no SYN was
    captured. `hint`: the direction that speaks as the client does, -1 when the protocol said nothing.
    `port_0`, `port_1`: source ports of the two directions. With nothing to tell the ends apart the
    client is whoever was captured first.
    """
    if opener >= 0:
        return opener
    if hint >= 0:
        return hint
    registered_0: bool = port_0 in (AMQP_PORT, AMQPS_PORT)
    registered_1: bool = port_1 in (AMQP_PORT, AMQPS_PORT)
    if registered_0 != registered_1:
        return 1 if registered_0 else 0
    return 1 if port_0 < port_1 else 0
