"""The last snapshot of a connection, and what follows from it and the one before."""

from amqpscope.model.records import CLIENT, SERVER
from amqpscope.tracking.snapshot import ConnectionSnapshot

__all__ = ["LastSnapshot"]

_SECOND = 1_000_000_000

Which = tuple[int, str, str]
"""A link, by its session, name and sender; or a channel, and who publishes or delivers."""


class LastSnapshot:
    """The last snapshot of one connection."""

    __slots__ = ("_counts", "_rates", "frames", "snapshot", "time", "unsettled")

    def __init__(self) -> None:
        # None if there was none.
        self.snapshot: ConnectionSnapshot | None = None
        # How many frames had come when the snapshot was made, -1 if there was none.
        self.frames = -1
        # When (ns) the snapshot was made, 0 if there was none.
        self.time = 0
        # Deliveries (and publishes) that nobody has settled yet.
        self.unsettled = 0
        # Deliveries of each link or channel so far, and how many a second since the snapshot before.
        self._counts: dict[Which, int] = {}
        self._rates: dict[Which, float] = {}

    def take(self, snapshot: ConnectionSnapshot, frames: int, now: int) -> None:
        """Take the snapshot of `now` (ns), when so many frames had come."""
        counts = _deliveries(snapshot)
        passed = (now - self.time) / _SECOND
        if self.time and passed > 0:
            self._rates = {
                which: max(count - self._counts.get(which, 0), 0) / passed for which, count in counts.items()
            }
        self.snapshot = snapshot
        self.frames = frames
        self.time = now
        self.unsettled = _unsettled(snapshot)
        self._counts = counts

    def rate(self, number: int, name: str, sender: str) -> float:
        """Deliveries a second that this peer sends: on this link of a session, or on a channel (name "")."""
        return self._rates.get((number, name, sender), 0.0)


def _unsettled(snapshot: ConnectionSnapshot) -> int:
    """Deliveries (and publishes) of a connection that nobody has settled yet."""
    total = 0
    for session in snapshot.sessions:
        for end in (session.client, session.server):
            if end is not None:
                total += end.unsettled
    for channel in snapshot.channels:
        total += channel.unacknowledged + channel.unconfirmed
    return total


def _deliveries(snapshot: ConnectionSnapshot) -> dict[Which, int]:
    """How many deliveries there were on each link so far, or deliveries and publishes on each channel."""
    counts: dict[Which, int] = {}
    for session in snapshot.sessions:
        for link in session.links:
            counts[int(session.number), link.name, link.sender] = int(link.deliveries)
    for channel in snapshot.channels:
        counts[int(channel.number), "", SERVER] = channel.deliveries
        counts[int(channel.number), "", CLIENT] = channel.published
    return counts
