"""A message that a broker has traced: what its log says of it, and no frame."""

from collections.abc import Sequence

__all__ = ["TracedMessage"]


class TracedMessage:
    """One message, as it came in or went out.

    line: of the log, from 1. time: nanoseconds since 1970, 0 if the log has none. published: it came from a
    client; else it went to one. connection: as the broker names it; channel: -1 if the log does not say it.
    exchange, routing_keys: it was published with. queues: it went to, or the one that it came from.
    properties: name and text of those that are texts or numbers. size: octets of its body, -1 if the log
    does not have it.
    """

    def __init__(self, line: int, time: int, published: bool) -> None:
        self.line: int = line
        self.time: int = time
        self.published: bool = published
        self.connection: str = ""
        self.channel: int = -1
        self.virtual_host: str = ""
        self.user: str = ""
        self.exchange: str = ""
        self.routing_keys: Sequence[str] = ()
        self.queues: Sequence[str] = ()
        self.properties: Sequence[tuple[str, str]] = ()
        self.size: int = -1

    def content(self) -> tuple[object, ...]:
        """What is known of the message, without where its log says so."""
        return (
            *(self.published, self.connection, self.channel, self.virtual_host, self.user, self.exchange),
            *(tuple(self.routing_keys), tuple(self.queues), tuple(self.properties), self.size),
        )
