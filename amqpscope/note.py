"""What is told of a capture itself, and how much of it: it accuses no peer.

A strange capture repeats itself for every packet: what a reader needs of one connection is the first places
of each code and how many there were. Of a connection that is not AMQP nobody wants to know; so what is noted
of one waits until it is known to be.
"""

from typing import Any

from amqpscope.limits import MAX_NOTES
from amqpscope.model import Connection
from dissectors.wire import i64

__all__ = ["ConnectionNotes", "Note"]


class Note:
    """Something wrong with the capture itself.

    code: `capture/...`. packet: the one that showed it, 0 for the file or the connection as a whole.
    detail: for a person, never octets of the wire. connection: the one concerned, or None.
    """

    def __init__(self, code: str, packet: i64, time: i64, detail: str, connection: Connection | None) -> None:
        self.code: str = code
        self.packet: i64 = packet
        self.time: i64 = time
        self.detail: str = detail
        self.connection: Connection | None = connection


class ConnectionNotes:
    """The notes about one connection. told: where they are appended."""

    def __init__(self, connection: Connection, told: list[Note]) -> None:
        self.connection: Connection = connection
        self.told: list[Note] = told
        self.counts: dict[str, int] = {}
        self.untold: list[Note] = []

    def add(self, code: str, packet: i64, time: i64, detail: str) -> None:
        """Something is to be noted."""
        count = self.counts.get(code, 0) + 1
        self.counts[code] = count
        if count <= MAX_NOTES:
            note = Note(code, packet, time, detail, self.connection)
            if self.connection.protocol.startswith("amqp"):
                self.told.append(note)
            else:
                self.untold.append(note)

    def tell(self) -> None:
        """More is known of the connection: tell what waited, if it is AMQP."""
        if self.untold and self.connection.protocol.startswith("amqp"):
            self.told += self.untold
            self.untold = []

    def finish(self) -> None:
        """The connection is over: tell how many more there were, and let go of the rest."""
        if self.connection.protocol.startswith("amqp"):
            for code, count in self.counts.items():
                if count > MAX_NOTES:
                    self.told.append(Note(code, 0, 0, f"{count - MAX_NOTES} more", self.connection))
        self.counts = {}
        self.untold = []

    def dump(self) -> tuple[object, ...]:
        """The state as plain values; what was told is the caller's."""
        untold = tuple((note.code, int(note.packet), int(note.time), note.detail) for note in self.untold)
        return (tuple(self.counts.items()), untold)

    def restore(self, state: tuple[Any, ...]) -> None:
        """Become what `dump` told."""
        counts, untold = state
        self.counts = dict(counts)
        self.untold = [
            Note(code, packet, time, detail, self.connection) for code, packet, time, detail in untold
        ]
