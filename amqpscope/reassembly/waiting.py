"""What of a direction waits until it can be passed on, sorted by offset and without overlaps."""

from typing import Any, Final

from amqpscope.reassembly.provenance import Provenance
from amqpscope.reassembly.sequence import UNKNOWN
from dissectors.wire import i64

__all__ = ["CUT", "DATA", "FIN", "MARK", "NOTHING_WAITS", "WaitingOctets", "WaitingPieces"]

# What a piece is.
DATA: Final = 0
CUT: Final = 1  # octets that were on the wire and are not in the capture (snaplen)
FIN: Final = 2
MARK: Final = 3  # nothing: the sequence number of an empty segment, which says that all before it was sent


class WaitingOctets:
    """Octets of a direction (or its end) that wait for their turn."""

    def __init__(self, kind: i64, offset: i64, end: i64, octets: bytes, provenance: Provenance) -> None:
        self.kind: i64 = kind
        self.offset: i64 = offset
        self.end: i64 = end
        self.octets: bytes = octets
        self.packet: i64 = provenance.packet
        self.time: i64 = provenance.time
        self.ack: i64 = provenance.acknowledged
        # The direction's count of segments when this one came.
        self.came_at: i64 = 0
        # The same, and its time, when all before `offset` was acknowledged and the acknowledgement was
        # not ahead of this direction. From then on a hole before this piece is a fault of the capture.
        self.covered_at: i64 = -1
        self.covered_time: i64 = 0

    def cover(self, segments: i64, time: i64) -> None:
        """All before it is acknowledged."""
        self.covered_at = segments
        self.covered_time = time

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        source = (self.packet, self.time, self.ack)
        came = (self.came_at, self.covered_at, self.covered_time)
        return (self.kind, self.offset, self.end, self.octets, source, came)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "WaitingOctets":
        """The object of what `dump` returned."""
        kind, offset, end, octets, (packet, time, ack), came = state
        piece = WaitingOctets(kind, offset, end, octets, Provenance(packet, time, ack))
        piece.came_at, piece.covered_at, piece.covered_time = came
        return piece


_GONE: Final = WaitingOctets(DATA, 0, 0, b"", Provenance(0, 0, UNKNOWN))
"""Stands where a piece was taken from the front of the list, so that its octets are free."""


class WaitingPieces:
    """The pieces of one direction that wait: `pieces[head:]`."""

    def __init__(self) -> None:
        self.pieces: list[WaitingOctets] = []
        self.head: i64 = 0
        # pieces[head:covered] have `covered_at` set.
        self.covered: i64 = 0
        # How many octets wait.
        self.octets: i64 = 0
        # The other side never shows: the pieces no longer wait for it.
        self.alone: bool = False

    def first(self) -> WaitingOctets | None:
        """The piece with the lowest offset."""
        if self.head < len(self.pieces):
            return self.pieces[self.head]
        return None

    def count(self) -> i64:
        """How many pieces wait."""
        return len(self.pieces) - self.head

    def end(self, least: i64) -> i64:
        """The offset behind the last piece, at least this one."""
        if self.head < len(self.pieces):
            return max(self.pieces[len(self.pieces) - 1].end, least)
        return least

    def find(self, offset: i64) -> i64:
        """The index of the first piece that ends behind `offset`."""
        low: i64 = self.head
        high: i64 = len(self.pieces)
        if high > low and self.pieces[high - 1].end <= offset:
            return high  # nearly always: what comes is the newest
        while low < high:
            middle: i64 = (low + high) >> 1
            if self.pieces[middle].end > offset:
                high = middle
            else:
                low = middle + 1
        return low

    def insert(self, at: i64, piece: WaitingOctets) -> bool:
        """Puts `piece` in at index `at`, which is where its offset belongs.

        Returns whether all before the next piece is acknowledged, and so all before this one.
        """
        if at == len(self.pieces):
            self.pieces.append(piece)
        else:
            self.pieces.insert(at, piece)
        self.octets += len(piece.octets)
        if at < self.covered:
            self.covered += 1
            return True
        return False

    def cover(self, offset: i64, segments: i64, time: i64) -> None:
        """All below `offset` is acknowledged, as of so many segments of this direction and this time."""
        if self.covered < self.head:
            self.covered = self.head
        while self.covered < len(self.pieces):
            piece = self.pieces[self.covered]
            if piece.offset > offset:
                return
            piece.cover(segments, time)
            self.covered += 1

    def pop(self) -> None:
        """Takes the first piece away."""
        self.octets -= len(self.pieces[self.head].octets)
        self.pieces[self.head] = _GONE
        self.head += 1
        if self.head == len(self.pieces):
            self._clear()
        elif self.head >= 256 and self.head * 2 >= len(self.pieces):
            # Cutting the list at each pop would move all that waits each time.
            del self.pieces[: self.head]
            self.covered -= self.head
            self.head = 0

    def drop_last(self, kind: i64, offset: i64) -> bool:
        """Takes the last piece away if it is of this kind and at `offset`. Returns whether it was."""
        last: i64 = len(self.pieces) - 1
        if last < self.head:
            return False
        piece = self.pieces[last]
        if piece.kind != kind or piece.offset != offset:
            return False
        self.pieces.pop()
        self.covered = min(self.covered, last)
        if last == self.head:
            self._clear()
        return True

    def _clear(self) -> None:
        """The last piece went."""
        self.pieces.clear()
        self.head = 0
        self.covered = 0

    def move(self, by: i64) -> None:
        """What was offset `by` of this direction becomes offset 0."""
        at: i64 = self.head
        while at < len(self.pieces):
            piece = self.pieces[at]
            piece.offset -= by
            piece.end -= by
            at += 1

    def move_acks(self, by: i64) -> None:
        """What was offset `by` of the other direction becomes offset 0."""
        at: i64 = self.head
        while at < len(self.pieces):
            piece = self.pieces[at]
            if piece.ack != UNKNOWN:
                piece.ack -= by
            at += 1

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        return (self.alone, tuple([piece.dump() for piece in self.pieces[self.head :]]))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "WaitingPieces":
        """The object of what `dump` returned."""
        alone, pieces = state
        if not alone and not pieces:
            return NOTHING_WAITS
        waiting = WaitingPieces()
        waiting.alone = alone
        for one in pieces:
            piece = WaitingOctets.load(one)
            waiting.pieces.append(piece)
            waiting.octets += len(piece.octets)
            if piece.covered_at >= 0:
                waiting.covered += 1
        return waiting


# mypyc: null object, of a direction of which nothing has waited so far. Nothing writes to it.
NOTHING_WAITS: Final = WaitingPieces()
