"""What is shown about a capture itself, and how much of it: it accuses no peer.

A strange capture repeats itself for every packet: what a reader needs of one connection is the first places
of each code and how many there were. Of a connection that is not AMQP nobody wants to know; so what is noted
of one waits until it is known to be.
"""

import os
import sys
import traceback
from typing import Any, Final

from amqpscope.limits import MAX_NOTES
from amqpscope.model.records import Connection
from amqpscope.protocols import is_amqp
from dissectors.wire import i64

__all__ = ["DAMAGE", "INTERNAL", "TRACEBACK", "ConnectionNotes", "Note", "mishap"]

INTERNAL: Final = "internal/analysis"
"""The code of a note that is not about the capture, but about amqpscope itself."""

DAMAGE: Final = ("capture/truncated", "capture/corrupt", "capture/compression")
"""Codes of notes that say that the file is not all there, or damaged."""

TRACEBACK: Final = "AMQPSCOPE_TRACEBACK"
"""The environment variable that, if it is set, lets `mishap` print a traceback on standard error."""


class Note:
    """Something wrong with the capture itself.

    code: `capture/...`, or INTERNAL. packet: the one that showed it, 0 for the file or the connection as a
    whole. detail: for a person, never octets of the wire. connection: the one concerned, or None.
    """

    def __init__(self, code: str, packet: i64, time: i64, detail: str, connection: Connection | None) -> None:
        self.code: str = code
        self.packet: i64 = packet
        self.time: i64 = time
        self.detail: str = detail
        self.connection: Connection | None = connection


def mishap(
    error: Exception,
    packet: i64,
    time: i64,
    connection: Connection | None,
    what: str = "reading this connection",
) -> Note:
    """What is given when amqpscope itself fails: its own fault, never a peer's. To be called where `error` is
    caught.

    packet, time (ns): of the packet that was looked at, 0 if it was none. connection: the one that is given
    up, if it is one. what: what the error ended. Of the error its type and its place are reported; its text
    may have octets of the wire in it.
    """
    if os.environ.get(TRACEBACK):
        lines = "".join(traceback.format_exception(error)).splitlines()
        print("\n".join(ascii(line)[1:-1] for line in lines), file=sys.stderr, flush=True)
    frames = traceback.extract_tb(error.__traceback__)
    where = ""
    if frames:
        parts = frames[-1].filename.replace("\\", "/").split("/")
        own = [at for at, part in enumerate(parts) if part in ("amqpscope", "dissectors")]
        where = f" at {'/'.join(parts[own[-1] :] if own else parts[-1:])}:{frames[-1].lineno}"
    if connection is not None:
        connection.failed = True
    detail = (
        f"an error in amqpscope ({type(error).__name__}{where}) ended {what}; it is no fault of a peer: "
        f"please report it, with the packets if you can; {TRACEBACK}=1 in the environment shows all of it"
    )
    return Note(INTERNAL, packet, time, detail, connection)


class ConnectionNotes:
    """The notes about one connection. reported: where they are appended."""

    def __init__(self, connection: Connection, reported: list[Note]) -> None:
        self.connection: Connection = connection
        self.reported: list[Note] = reported
        self.counts: dict[str, int] = {}
        self.unreported: list[Note] = []

    def add(self, code: str, packet: i64, time: i64, detail: str) -> None:
        """Something is to be noted."""
        count = self.counts.get(code, 0) + 1
        self.counts[code] = count
        if count <= MAX_NOTES:
            note = Note(code, packet, time, detail, self.connection)
            if is_amqp(self.connection.protocol):
                self.reported.append(note)
            else:
                self.unreported.append(note)

    def report(self, code: str, packet: i64, time: i64, detail: str) -> None:
        """Something is to be noted whatever the connection speaks."""
        self.reported.append(Note(code, packet, time, detail, self.connection))

    def tell(self) -> None:
        """More is known of the connection: tell what waited, if it is AMQP."""
        if self.unreported and is_amqp(self.connection.protocol):
            self.reported += self.unreported
            self.unreported = []

    def finish(self) -> None:
        """The connection is over: tell how many more there were, and let go of the rest."""
        if is_amqp(self.connection.protocol):
            for code, count in self.counts.items():
                if count > MAX_NOTES:
                    self.reported.append(Note(code, 0, 0, f"{count - MAX_NOTES} more", self.connection))
        self.counts = {}
        self.unreported = []

    def dump(self) -> tuple[object, ...]:
        """The state as plain values; what was reported is the caller's."""
        unreported = tuple(
            (note.code, int(note.packet), int(note.time), note.detail) for note in self.unreported
        )
        return (tuple(self.counts.items()), unreported)

    def restore(self, state: tuple[Any, ...]) -> None:
        """Become what `dump` returned."""
        counts, unreported = state
        self.counts = dict(counts)
        self.unreported = [
            Note(code, packet, time, detail, self.connection) for code, packet, time, detail in unreported
        ]
