"""Logs that do not name the connection of a frame, and hardly its channel.

Such a log can be read while there is one connection at a time in it, and one session at a time in the
connection. What a log says behind the point where this is no longer certain is UNPLACED: a frame of one
connection must not be taken for one of another. A connection is over when both sides have closed it, or when
its library has closed it and says that it has ended it: then it reads nothing more.

Most of these logs do not have the channel either. `Unnamed.channel` is the one on which the library begins
its first session, and the frames of the peer are given channel 0, which is always allowed. Where the log
has the channel, several sessions can be read.
"""

import re
from typing import Final

from amqpscope.capture import unlogged
from amqpscope.capture.logs.encoding import UNLOGGED, NamedComposite, frame
from amqpscope.capture.logs.entries import DAMAGED, HEADER, LOST, UNPLACED, Entry, LineFormat, Spoken

__all__ = ["Unnamed"]

_ENDED: Final = re.compile(r"onnection .{0,200} <ConnectionState\.END: \d{1,3}>\s{0,9}$", re.ASCII)

_UNKNOWN: Final = -1


class Unnamed(LineFormat):
    """The lines of a library that names no connection. The connections are called "1", "2" and so on.

    channel: on which the library begins its only session.
    """

    prints_headers = True
    unplaced = "the log does not say to which connection or session these frames belong"
    channel = 0

    def __init__(self) -> None:
        # How many connections have begun, and whether frames can be given to the newest.
        self._number = 0
        self._unclear = False
        # Of the newest connection: who has closed it; its library says that it has ended; who has begun and
        # not ended a session; a line was lost.
        self._closed: set[bool] = set()
        self._ended = False
        self._headers: set[tuple[bytes, bool]] = set()
        self._begun: set[bool] = set()
        self._loss = False
        # The peer has not closed a connection before the newest: this may still come.
        self._late = False

    def entry(
        self,
        sent: bool,
        body: NamedComposite | None,
        time: int,
        header: bytes = b"",
        lost: bool = False,
        channel: int = _UNKNOWN,
        missing: int = 0,
    ) -> Entry | Spoken:
        """The entry of a line. body: of its frame, None for an empty one. header: it is a protocol header.

        channel: if the log has it. missing: octets of payload that the log does not hold, if it says how
        many.
        """
        if self._unclear or not self._is_of_newest(sent, header):
            self._unclear = True
            return UNPLACED
        connection = str(self._number)
        self._loss = self._loss or lost
        if header:
            self._headers.add((header, sent))
            return Entry(connection, sent, HEADER, header, time)
        if lost:
            return Entry(connection, sent, LOST, b"", time)
        if body is None:
            return Entry(connection, sent, "empty", frame(0, None), time)
        if body.name == "begin" and channel == _UNKNOWN:
            if sent in self._begun or self._loss:
                # What was lost may have begun another session.
                self._unclear = True
                return UNPLACED
            self._begun.add(sent)
            if not sent and body.fields.get("remote-channel") not in (None, self.channel):
                body = NamedComposite("begin", {**body.fields, "remote-channel": UNLOGGED})
        elif body.name == "end":
            self._begun.discard(sent)
        elif body.name == "close":
            if not sent and self._late:
                self._unclear = True
                return UNPLACED
            self._closed.add(sent)
        elif body.name == "open" and self._is_over():
            self._unclear = True
            return UNPLACED
        if channel == _UNKNOWN:
            channel = self.channel if sent and body.name not in ("open", "close") else 0
            missing = unlogged.PAYLOAD if body.name == "transfer" else 0
        return Entry(connection, sent, body.name, frame(channel, body, b"", missing), time)

    def is_begun(self) -> bool:
        """Whether the log has the beginning of a connection."""
        return self._number > 0

    def damaged(self) -> Spoken:
        """What a line says that looks like one of a frame and is cut off early."""
        self._loss = True
        return UNPLACED if self._unclear else DAMAGED

    def state(self, line: str) -> None:
        """Take a line without a frame: it may say that the library has ended a connection."""
        if True in self._closed and "<ConnectionState.END" in line and _ENDED.search(line[-300:]):
            self._ended = True

    def _is_over(self) -> bool:
        return len(self._closed) == 2 or self._ended

    def _is_of_newest(self, sent: bool, header: bytes) -> bool:
        """Whether a line can only be of the newest connection, which may begin with it."""
        if not header:
            # The answer to a connection that is not closed yet may come behind the next one's beginning.
            answered = sent or not self._late or any(not by for _, by in self._headers)
            return self._number > 0 and answered
        if (header, sent) in self._headers or self._number == 0:
            if self._number and not self._is_over():
                return False
            self._late = self._late or (self._number > 0 and False not in self._closed)
            self._number += 1
            self._closed.clear()
            self._ended = False
            self._headers.clear()
            self._begun.clear()
            self._loss = False
        return True
