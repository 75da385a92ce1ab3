"""permessage-deflate (RFC 7692): messages of one direction are compressed, maybe with those before them."""

import zlib
from collections.abc import Iterator
from typing import Any, Final

from amqpscope.limits import MAX_INFLATE_KEPT, MAX_INFLATED, MAX_INFLATED_RATIO

__all__ = ["Inflater"]

_TAIL: Final = b"\0\0\xff\xff"
"""What the sender takes off the end of a message (section 7.2.1)."""

_PIECE: Final = 256 * 1024


_WINDOW: Final = 32 * 1024
"""Octets behind which nothing refers back."""


class Inflater:
    """Decompresses the messages of a direction. takeover: a message may refer to those before it."""

    def __init__(self, takeover: bool) -> None:
        self.takeover = takeover
        # Why nothing more can be decompressed; "" while it can.
        self.failed = ""
        # How many octets were taken and given, in all.
        self.taken = 0
        self.given = 0
        # What the inflater knew when the message began, the octets of the message since, and what it knows
        # now.
        self.before = b""
        self.message = b""
        self.window = b""
        self.inflater = _inflater(b"")

    def feed(self, octets: bytes, last: bool) -> Iterator[bytes]:
        """What these octets of a message are, in pieces. last: they end it."""
        self.taken += len(octets)
        if len(self.message) < MAX_INFLATE_KEPT:
            self.message += octets
        rest = octets + _TAIL if last else octets
        try:
            while rest and not self.failed:
                piece = self.inflater.decompress(rest, _PIECE)
                rest = self.inflater.unconsumed_tail
                self.given += len(piece)
                self.window = (self.window + piece)[-_WINDOW:]
                if self.given > MAX_INFLATED + MAX_INFLATED_RATIO * self.taken:
                    self.failed = "the decompressed messages exceed the size limit of amqpscope"
                elif piece:
                    yield piece
                if self.inflater.eof:
                    break  # what ends a message behind a last block is empty (section 7.2.3.5)
        except zlib.error:
            self.failed = "a compressed message is damaged"
        if last:
            self.begin(self.window if self.takeover else b"")

    def begin(self, window: bytes) -> None:
        """A message begins that may refer to this."""
        self.inflater = _inflater(window)
        self.before = self.window = window
        self.message = b""

    def lose(self) -> None:
        """Octets of a message are missing."""
        if self.takeover:
            self.failed = (
                "octets of an earlier compressed message are missing, so later messages cannot "
                "be decompressed"
            )
        self.begin(b"")

    def dump(self) -> tuple[Any, ...]:
        """The state, as plain values."""
        return (self.takeover, self.failed, self.taken, self.given, self.before, self.message)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Inflater":
        """The object of what `dump` returned."""
        inflater = Inflater(state[0])
        _, inflater.failed, taken, given, before, message = state
        if len(message) >= MAX_INFLATE_KEPT:
            inflater.failed = inflater.failed or "a compressed message is too large to be continued"
        inflater.inflater = _inflater(before)
        inflater.before = inflater.window = before
        for _ in inflater.feed(message, False) if not inflater.failed else ():
            pass  # it was given already
        inflater.taken, inflater.given = taken, given
        return inflater


def _inflater(window: bytes) -> Any:
    """What decompresses octets that may refer to these."""
    return zlib.decompressobj(-15, zdict=window) if window else zlib.decompressobj(-15)
