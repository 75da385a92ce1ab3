"""When a connection was opened and closed, as one of its ends knows it."""

from typing import Any

from amqpscope.tracking.amqp10.credit import UNKNOWN
from dissectors.amqp10.performatives import Close
from dissectors.wire import i64

__all__ = ["Closing", "Opening"]


class Opening:
    """Where the two opens stand."""

    def __init__(self) -> None:
        # The packet in which the endpoint's own open begins.
        self.packet: i64 = 0
        # Offset in the peer's stream behind its open.
        self.peer_end: i64 = UNKNOWN
        # The packet in which the peer's open begins.
        self.peer_packet: i64 = 0
        # When (ns) the peer's open was complete.
        self.peer_time: i64 = 0

    def dump(self) -> tuple[int, int, int, int]:
        """All of it as plain values."""
        return (int(self.packet), int(self.peer_end), int(self.peer_packet), int(self.peer_time))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Opening":
        """The object of what `dump` returned."""
        opening = Opening()
        opening.packet, opening.peer_end, opening.peer_packet, opening.peer_time = state
        return opening


class Closing:
    """Whether the endpoint has closed, and what it said."""

    def __init__(self) -> None:
        # The endpoint has sent close.
        self.sent: bool = False
        # The endpoint has received the peer's close.
        self.received: bool = False
        # The packet in which its close begins.
        self.packet: i64 = 0
        # When (ns) its close was complete.
        self.time: i64 = 0
        # The condition of the error of its close, "" if there is none.
        self.condition: str = ""
        # Nothing is missing since its close: the connection cannot have been opened anew.
        self.stands: bool = False
        # Its close was only found by a search and answers none: it may be the content of a message.
        self.guessed: bool = False

    def send(self, close: Close, packet: i64, time: i64, guessed: bool) -> None:
        """The endpoint sends close; of several the first counts."""
        if not self.sent:
            self.guessed = guessed and not self.received
            self.packet = packet
            self.time = time
            self.stands = True
            if close.error is not None and close.error.condition is not None:
                self.condition = str(close.error.condition)
        self.sent = True

    def disbelieve(self) -> None:
        """What was taken for its close was none."""
        self.sent = False
        self.guessed = False
        self.condition = ""

    def restart(self) -> None:
        """Both begin anew on the same TCP connection."""
        self.disbelieve()
        self.received = False

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (self.sent, self.received, self.stands, self.guessed),
            (int(self.packet), int(self.time), self.condition),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Closing":
        """The object of what `dump` returned."""
        closing = Closing()
        said, what = state
        closing.sent, closing.received, closing.stands, closing.guessed = said
        closing.packet, closing.time, closing.condition = what
        return closing
