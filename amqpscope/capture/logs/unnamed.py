"""Logs that name neither the connection nor the channel of a frame.

Such a log can be read while there is one connection at a time in it, and one session at a time in the
connection. What a log says behind the point where this is no longer certain is UNPLACED: a frame of one
connection must not be taken for one of another.

The channel is not in the log. `Unnamed.channel` is the one on which the library begins its first session, and
the frames of the peer are given channel 0, which is always allowed.
"""

from amqpscope.capture import unlogged
from amqpscope.capture.logs.encoding import UNLOGGED, NamedComposite, frame
from amqpscope.capture.logs.entries import HEADER, LOST, UNPLACED, Entry, LineFormat, Spoken

__all__ = ["Unnamed"]


class Unnamed(LineFormat):
    """The lines of a library that names no connection. The connections are called "1", "2" and so on.

    channel: on which the library begins its only session.
    """

    prints_headers = True
    unplaced = "the log does not say of which connection or session they are"
    channel = 0

    def __init__(self) -> None:
        # How many connections have begun, and whether frames can be given to the newest.
        self._number = 0
        self._unclear = False
        # Of the newest connection: it is over; who has begun and not ended a session.
        self._over = True
        self._headers: set[tuple[bytes, bool]] = set()
        self._begun: set[bool] = set()

    def entry(
        self, sent: bool, body: NamedComposite | None, time: int, header: bytes = b"", lost: bool = False
    ) -> Entry | Spoken:
        """The entry of a line. body: of its frame, None for an empty one. header: it is a protocol header."""
        if self._unclear or not self._is_of_newest(sent, header):
            self._unclear = True
            return UNPLACED
        connection = str(self._number)
        if header:
            self._headers.add((header, sent))
            return Entry(connection, sent, HEADER, header, time)
        if lost:
            return Entry(connection, sent, LOST, b"", time)
        if body is None:
            return Entry(connection, sent, "empty", frame(0, None), time)
        if body.name == "begin":
            if sent in self._begun:
                self._unclear = True
                return UNPLACED
            self._begun.add(sent)
            if not sent and body.fields.get("remote-channel") not in (None, self.channel):
                body = NamedComposite("begin", {**body.fields, "remote-channel": UNLOGGED})
        elif body.name == "end":
            self._begun.discard(sent)
        elif body.name == "close":
            self._over = True
        channel = self.channel if sent and body.name not in ("open", "close") else 0
        missing = unlogged.PAYLOAD if body.name == "transfer" else 0
        return Entry(connection, sent, body.name, frame(channel, body, b"", missing), time)

    def _is_of_newest(self, sent: bool, header: bytes) -> bool:
        """Whether a line can only be of the newest connection, which may begin with it."""
        if not header:
            return self._number > 0
        if (header, sent) in self._headers or self._number == 0:
            if not self._over:
                return False
            self._number += 1
            self._over = False
            self._headers.clear()
            self._begun.clear()
        return True
