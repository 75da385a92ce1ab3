"""Which connections of AMQP 0-9-1 are to the same broker: those to one address and port."""

from amqpscope.tracking.amqp091.summary import Amqp091Summary

__all__ = ["address"]


def address(summary: Amqp091Summary) -> bytes:
    """Address and port of the server."""
    connection = summary.connection
    server = 1 - connection.client_end()
    width = (len(connection.key) - 4) // 2
    port = len(connection.key) - 4 + 2 * server
    return connection.key[server * width : (server + 1) * width] + connection.key[port : port + 2]
