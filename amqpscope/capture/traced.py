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

    __slots__ = (
        "channel",
        "connection",
        "exchange",
        "line",
        "properties",
        "published",
        "queues",
        "routing_keys",
        "size",
        "time",
        "user",
        "virtual_host",
    )

    def __init__(self, line: int, time: int, published: bool) -> None:
        self.line = line
        self.time = time
        self.published = published
        self.connection = ""
        self.channel = -1
        self.virtual_host = ""
        self.user = ""
        self.exchange = ""
        self.routing_keys: Sequence[str] = ()
        self.queues: Sequence[str] = ()
        self.properties: Sequence[tuple[str, str]] = ()
        self.size = -1
