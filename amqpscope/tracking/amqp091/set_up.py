"""What the peers of an AMQP 0-9-1 connection agree on during the set-up, the state of the whole connection,
and its end.
"""

from typing import Any

from amqpscope.tracking.amqp091.closing import CloseReason
from amqpscope.tracking.amqp091.states import OPEN
from dissectors.wire import i64

__all__ = ["Blocking", "ConnectionEnd", "Login", "Tuning", "VirtualHostOpen"]


class Tuning:
    """The limits that the server proposes by connection.tune, or that the client agrees to by
    connection.tune-ok.
    """

    def __init__(self) -> None:
        # Each as said, -1 until then: channels, octets of a frame, seconds between heartbeats.
        self.channel_max: i64 = -1
        self.frame_max: i64 = -1
        self.heartbeat: i64 = -1
        # The offset behind the method, -1 until it is said.
        self.end: i64 = -1
        # The packet of the method, and when it was complete (ns).
        self.packet: i64 = 0
        self.time: i64 = 0

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        limits = (int(self.channel_max), int(self.frame_max), int(self.heartbeat))
        return (*limits, int(self.end), int(self.packet), int(self.time))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Tuning":
        """The object of what `dump` returned."""
        one = Tuning()
        one.channel_max, one.frame_max, one.heartbeat, one.end, one.packet, one.time = state
        return one


class VirtualHostOpen:
    """The virtual host that the client opens, by connection.open."""

    def __init__(self) -> None:
        # The virtual host that it names, "" until then.
        self.virtual_host: str = ""
        # The offset behind it, -1 until it is said.
        self.end: i64 = -1
        # Its packet, and when it was complete (ns).
        self.packet: i64 = 0
        self.time: i64 = 0

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (self.virtual_host, int(self.end), int(self.packet), int(self.time))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "VirtualHostOpen":
        """The object of what `dump` returned."""
        one = VirtualHostOpen()
        one.virtual_host, one.end, one.packet, one.time = state
        return one


class Login:
    """How the client may log in, and how it does. No other part of the login is ever kept."""

    def __init__(self) -> None:
        # The mechanisms and the locales that the server offers.
        self.mechanisms: list[str] = []
        self.locales: list[str] = []
        # The mechanism that the client chooses, "" until then.
        self.mechanism: str = ""
        # The user that logged in, None if that is not known.
        self.user: str | None = None
        # How many times the client was challenged.
        self.challenges: i64 = 0

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        offered = (tuple(self.mechanisms), tuple(self.locales))
        return (*offered, self.mechanism, self.user, int(self.challenges))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Login":
        """The object of what `dump` returned."""
        one = Login()
        mechanisms, locales, one.mechanism, one.user, one.challenges = state
        one.mechanisms, one.locales = list(mechanisms), list(locales)
        return one


class Blocking:
    """Whether the server accepts messages: connection.blocked and connection.unblocked."""

    def __init__(self) -> None:
        # It takes none now.
        self.blocked: bool = False
        # The packet of the last connection.blocked.
        self.packet: i64 = 0
        # When the last connection.unblocked was complete (ns).
        self.unblocked_time: i64 = 0

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (self.blocked, int(self.packet), int(self.unblocked_time))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Blocking":
        """The object of what `dump` returned."""
        one = Blocking()
        one.blocked, one.packet, one.unblocked_time = state
        return one


class ConnectionEnd:
    """How the connection is closed."""

    def __init__(self) -> None:
        # As in `states.CHANNEL`, where OPEN says that nobody has closed it yet.
        self.state: str = OPEN
        # The first connection.close of each peer, None if there is none.
        self.by_client: CloseReason | None = None
        self.by_server: CloseReason | None = None
        # The packet of each peer's close-ok, 0 if there is none.
        self.client_done: i64 = 0
        self.server_done: i64 = 0
        # When the last of these was complete (ns).
        self.done_time: i64 = 0

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        closes = tuple(None if one is None else one.dump() for one in (self.by_client, self.by_server))
        return (self.state, closes, int(self.client_done), int(self.server_done), int(self.done_time))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "ConnectionEnd":
        """The object of what `dump` returned."""
        one = ConnectionEnd()
        one.state, (by_client, by_server), one.client_done, one.server_done, one.done_time = state
        one.by_client = None if by_client is None else CloseReason.load(by_client)
        one.by_server = None if by_server is None else CloseReason.load(by_server)
        return one
