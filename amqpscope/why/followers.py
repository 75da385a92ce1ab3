"""Which protocols the ends of things are followed of: the place where a new one is named."""

from amqpscope.model.records import Connection
from amqpscope.why.endings import Following
from amqpscope.why.endings091 import Following091
from amqpscope.why.endings10 import Following10

__all__ = ["follower"]


def follower(connection: Connection) -> Following:
    """What follows a connection of its protocol."""
    return Following091(connection) if connection.protocol == "amqp091" else Following10(connection)
