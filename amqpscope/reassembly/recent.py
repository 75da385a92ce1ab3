"""The last octets of a stream that were passed on, kept to be compared with a second copy of them.

A retransmission carries the same octets again. When it does not, somebody tampers with the stream, two
connections were captured as one, or the captured packets are damaged: worth a note. Slices are copied
into a ring; references into the reader's buffer would keep a megabyte alive for each idle connection.
"""

from typing import Any, Final

from amqpscope.limits import REASSEMBLY_RECENT_OCTETS, REASSEMBLY_RECENT_SEGMENTS
from dissectors.wire import i64

__all__ = ["NOT_KNOWN", "RecentOctets"]

NOT_KNOWN: Final = "state/not-known"
"""The code of the note that a second copy came of octets that are not known any more. No output has it: who
has made octets unknown begins anew."""

_FIRST_SLOTS: Final = 4  # of a connection that says little


# mypyc: null object, the ring of a stream of which nothing is remembered. Nothing writes to it.
_EMPTY: Final[list[bytes]] = []


class RecentOctets:
    """The newest octets of one stream, without holes between them; they end where the stream is now."""

    def __init__(self) -> None:
        # Segments whose second copy contradicts the first one.
        self.differing: i64 = 0
        # Its size is a power of two, and grows with what there is: most connections say little.
        self._ring: list[bytes] = _EMPTY
        self._mask: i64 = 0  # the ring's size - 1
        self._first: i64 = 0  # slots count up for ever, and are taken modulo the ring's size
        self._after: i64 = 0
        self._octets: i64 = 0
        # Slots before this one have zeros for octets that are not known any more.
        self._unknown: i64 = 0
        # How often a second copy came of such octets.
        self.unsure: i64 = 0

    def add(self, buf: bytes, start: i64, end: i64) -> None:
        """buf[start:end] was passed on, right behind what was added before."""
        if end - start > REASSEMBLY_RECENT_OCTETS:
            start = end - REASSEMBLY_RECENT_OCTETS
        if self._after == self._first:
            self._resize(_FIRST_SLOTS)
        elif self._after - self._first > self._mask:
            if self._mask + 1 < REASSEMBLY_RECENT_SEGMENTS:
                self._resize(2 * (self._mask + 1))
            else:
                self._drop()
        self._ring[self._after & self._mask] = buf[start:end]
        self._after += 1
        self._octets += end - start
        while self._octets > REASSEMBLY_RECENT_OCTETS:
            self._drop()

    def clear(self) -> None:
        """What follows does not join what was added (a gap lies between)."""
        self._first = self._after
        self._octets = 0
        self._ring = _EMPTY

    def _resize(self, slots: i64) -> None:
        ring = [b""] * slots
        at: i64 = self._first
        while at < self._after:
            ring[at & (slots - 1)] = self._ring[at & self._mask]
            at += 1
        self._ring = ring
        self._mask = slots - 1

    def _drop(self) -> None:
        slot: i64 = self._first & self._mask
        self._octets -= len(self._ring[slot])
        self._ring[slot] = b""
        self._first += 1

    def differs(self, stream_end: i64, offset: i64, buf: bytes, start: i64, end: i64) -> bool:
        """Whether buf[start:end], said to stand at `offset`, contradicts what is remembered of it.

        `stream_end` is the offset behind the last octet added. What is no longer remembered agrees; so does
        what is not known any more, but `unsure` counts it.
        """
        stop: i64 = offset + end - start
        piece_end: i64 = stream_end
        at: i64 = self._after
        while at > self._first and piece_end > offset:
            at -= 1
            piece = self._ring[at & self._mask]
            piece_start: i64 = piece_end - len(piece)
            low: i64 = max(piece_start, offset)
            high: i64 = min(piece_end, stop)
            if low < high:
                if at < self._unknown:
                    self.unsure += 1
                    return False
                shift: i64 = start - offset
                if piece[low - piece_start : high - piece_start] != buf[low + shift : high + shift]:
                    return True
            piece_end = piece_start
        return False

    def without_octets(self) -> "RecentOctets":
        """The same, but of the octets only how many they are."""
        other = RecentOctets()
        other.differing = self.differing
        for at in range(self._first, self._after):
            piece = bytes(len(self._ring[at & self._mask]))
            other.add(piece, 0, len(piece))
        other._unknown = other._after
        return other

    def dump(self) -> tuple[Any, ...]:
        """The octets remembered, and the count, as plain values."""
        pieces = tuple(self._ring[at & self._mask] for at in range(self._first, self._after))
        return (self.differing, pieces)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "RecentOctets":
        """The object of what `dump` returned."""
        recent = RecentOctets()
        recent.differing, pieces = state
        for piece in pieces:
            recent.add(piece, 0, len(piece))
        return recent
