"""What is known of the WebSocket of a connection: its handshake and how it was closed."""

from typing import Any, Final

from dissectors.wire import i64

__all__ = ["WebSocketClose", "WebSocketFacts"]

_AMQP: Final = ("amqp", "amqpwsb10")
"""Subprotocols of AMQP 1.0 in lower case: of the binding, and of its first draft."""


class WebSocketClose:
    """A close frame. direction: of its sender. code: -1 if it has none."""

    def __init__(self, direction: i64, code: i64, packet: i64) -> None:
        self.direction: i64 = direction
        self.code: i64 = code
        self.packet: i64 = packet

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (int(self.direction), int(self.code), int(self.packet))


class WebSocketFacts:
    """The handshake of RFC 6455. Paths, queries and other headers are not kept: they may have tokens."""

    def __init__(self) -> None:
        # Which direction is the client's.
        self.client: i64 = 0
        # The subprotocols that the client offers, and the one that the server chose.
        self.offered: list[str] = []
        self.subprotocol: str = ""
        # Messages may be compressed (RFC 7692).
        self.deflate: bool = False
        # The server's answer.
        self.status: i64 = 0
        self.reason: str = ""
        # Why something is not read; "" if all is.
        self.unread: str = ""
        self.closes: list[WebSocketClose] = []

    def for_amqp(self) -> bool:
        """Whether the subprotocol, or one that was offered, is one of AMQP 1.0."""
        names = [self.subprotocol] if self.subprotocol else self.offered
        return any(name.lower() in _AMQP for name in names)

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (int(self.client), tuple(self.offered), self.subprotocol, self.deflate),
            (int(self.status), self.reason, self.unread),
            tuple(one.dump() for one in self.closes),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "WebSocketFacts":
        """The object of what `dump` returned."""
        facts = WebSocketFacts()
        (facts.client, offered, facts.subprotocol, facts.deflate), answer, closes = state
        facts.offered = list(offered)
        facts.status, facts.reason, facts.unread = answer
        facts.closes = [WebSocketClose(*one) for one in closes]
        return facts
