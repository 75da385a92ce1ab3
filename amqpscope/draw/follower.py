"""What follows one connection that is drawn, and the walk that all of it shares."""

from typing import Protocol, TypeVar

from amqpscope.model.records import Connection, FrameRecord
from amqpscope.report.links import LinkNames

__all__ = ["Follower", "Walk"]


class _Walker(Protocol):
    def take(self, record: FrameRecord) -> object: ...


_W = TypeVar("_W", bound=_Walker)


class Walk:
    """One connection, walked once, however many followers subscribe to its events.

    names: walks connections of AMQP 1.0, and is asked for the link of each frame before the frame is taken.
    """

    def __init__(self, names: LinkNames, connection: Connection) -> None:
        self.names = names
        self.connection = connection
        self._walkers: dict[type[_Walker], _Walker] = {}
        self._followers: list[Follower] = []

    def by(self, kind: type[_W]) -> _W:
        """The walker of this kind: the same one for each follower that asks."""
        walker = self._walkers.get(kind)
        if not isinstance(walker, kind):
            walker = self._walkers[kind] = kind()
        return walker

    def add(self, follower: "Follower") -> None:
        """Let a follower subscribe. No frame was taken yet."""
        self._followers.append(follower)
        follower.follow(self)

    def take(self, record: FrameRecord) -> None:
        """The next frame of the connection."""
        for walker in self._walkers.values():
            walker.take(record)
        for follower in self._followers:
            follower.take(record)

    def finish(self) -> None:
        """All frames have come."""
        for follower in self._followers:
            follower.finish()


class Follower:
    """Follows one connection. A protocol has a subclass that knows its events."""

    def follow(self, walk: Walk) -> None:
        """Called before the first frame of the connection is taken: subscribe to what is needed."""

    def take(self, record: FrameRecord) -> None:
        """The next frame, which the walk has taken."""

    def finish(self) -> None:
        """All frames have come."""
