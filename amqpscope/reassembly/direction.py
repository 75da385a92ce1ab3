"""One direction of a connection: where its stream begins, how far it was passed on, and what waits.

`Direction` is bookkeeping only: `amqpscope.reassembly.connection` puts segments in their place, and
`amqpscope.reassembly.order` decides what is passed on when; both see both directions.

A place in a stream is an offset: 0 is the first octet after SYN, or, when the capture began in the middle
of the connection, the first octet captured. Until that is settled, the origin is a guess taken from the
other side's acknowledgements, and `rebase` moves it: only while nothing was passed on, so no offset that
was ever reported outside changes its meaning.
"""

from typing import Any, Final

from amqpscope.limits import REASSEMBLY_RECENT_GAPS, SEQUENCE_WINDOW
from amqpscope.reassembly.copies import Copies
from amqpscope.reassembly.provenance import Provenance
from amqpscope.reassembly.recent import RecentOctets
from amqpscope.reassembly.sequence import SEQUENCE_MASK, sequence_number, unwrap
from amqpscope.reassembly.stalls import RESENT, WINDOW, Stalls
from amqpscope.reassembly.stream import StreamFacts
from dissectors.wire import i64

__all__ = ["CUT", "DATA", "FIN", "MARK", "UNKNOWN", "Direction", "WaitingOctets"]

# mypyc: sentinel, an acknowledgement that a segment did not carry. Real offsets may be below 0, never here.
UNKNOWN: Final = -0x4000000000000000

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


_GONE: Final = WaitingOctets(DATA, 0, 0, b"", Provenance(0, 0, UNKNOWN))
"""Stands where a piece was taken from the front of the list, so that its octets are free."""


class Direction:
    """The state of one direction. Attributes are written by `TcpConnection` only."""

    def __init__(self, index: i64) -> None:
        self.index: i64 = index
        # Where the stream begins.
        self.origin: i64 = 0  # the sequence number of offset 0
        self.known: bool = False  # origin is set, if only from an acknowledgement of the other side
        self.opened: bool = False  # that was the acknowledgement of the SYN: it came with the first octet
        self.seen: bool = False  # a segment of this direction was captured
        self.syn: i64 = 0  # 1: SYN, 2: SYN with ACK
        self.midstream: bool = False
        self.empty_start: bool = False  # the first segment was empty: perhaps a keep-alive
        # How far it is. next <= high.
        self.next: i64 = 0  # the offset passed on next
        self.high: i64 = 0  # the highest offset passed on or acknowledged
        self.acked: i64 = 0  # the offset that the other side's newest acknowledgement means
        self.expected: i64 = -1  # the sequence number of `next`; -1: no segment is to be passed on at once
        self.limit: i64 = -1  # the offset at which the stream ends, once known
        self.ended: str = ""
        # Of the FIN or RST that ends the stream: what it acknowledged, as in its header, and the sequence
        # number behind the FIN. -1: none.
        self.end_acknowledgement: i64 = -1
        self.end_sequence: i64 = -1
        # Of the RST that ends the stream unless more of it follows: its offset, UNKNOWN while there is none,
        # its packet and time, and what `next` was when it came.
        self.reset_at: i64 = UNKNOWN
        self.reset_packet: i64 = 0
        self.reset_time: i64 = 0
        self.reset_next: i64 = 0
        # When its sender could not write, and what of its octets has to be acknowledged before it can again.
        self.stalls: Stalls = Stalls()
        self.stalled_at: i64 = 0
        self.scale: i64 = 0  # of its windows: 0 not known, 16 none, else one more than its shift count
        self.watched: bool = False  # this direction or the other one is stalled
        self.alone: bool = False  # the other side never shows: it is no longer waited for
        # What waits: waiting[head:], sorted by offset, without overlaps.
        self.waiting: list[WaitingOctets] = []
        self.head: i64 = 0
        self.covered: i64 = 0  # waiting[head:covered] have covered_at set
        self.waiting_octets: i64 = 0
        # What was passed on lately.
        self.recent: RecentOctets = RecentOctets()
        self.gaps: list[tuple[int, int]] = []
        # Segments far outside the window that follow one another.
        self.strays: i64 = 0
        self.stray_next: i64 = -1
        self.stray_segments: i64 = -1  # `segments` when the last of them came
        # Facts.
        self.segments: i64 = 0
        self.missing: i64 = 0
        self.retransmitted: i64 = 0
        # Of what came more than once, what was sent once.
        self.copies: Copies = Copies()
        self.late: i64 = 0
        self.stray: i64 = 0
        self.differing: i64 = 0
        self.first_packet: i64 = 0
        self.first_time: i64 = 0
        self.packet: i64 = 0
        self.time: i64 = 0

    # -- the origin --------------------------------------------------------------------------------

    def set_origin(self, sequence: i64) -> None:
        """Offset 0 has this sequence number, as far as is known now."""
        self.origin = sequence & SEQUENCE_MASK
        self.known = True

    def rebase(self, by: i64) -> None:
        """What was offset `by` becomes offset 0. The other direction's waiting `ack`s are to be moved too."""
        self.origin = (self.origin + by) & SEQUENCE_MASK
        self.high = max(self.high - by, 0)
        self.acked = max(self.acked - by, 0)
        self.stalled_at -= by
        if self.reset_at != UNKNOWN:
            self.reset_at -= by
        if self.limit >= 0:
            self.limit -= by
        at: i64 = self.head
        while at < len(self.waiting):
            piece = self.waiting[at]
            piece.offset -= by
            piece.end -= by
            at += 1

    def move_acks(self, by: i64) -> None:
        """The other direction was rebased."""
        at: i64 = self.head
        while at < len(self.waiting):
            piece = self.waiting[at]
            if piece.ack != UNKNOWN:
                piece.ack -= by
            at += 1

    def aim(self) -> None:
        """Sets `expected` from `next`."""
        if self.ended or not self.seen or self.reset_at != UNKNOWN or self.watched:
            self.expected = -1
        else:
            self.expected = sequence_number(self.next, self.origin)

    # -- acknowledgements of this stream -----------------------------------------------------------

    def acknowledged(self, raw: i64) -> i64:
        """The offset that an acknowledgement number means, UNKNOWN if it lies outside any window.

        Raises `high`: the other side has what is below.
        """
        if not self.known:
            self.set_origin(raw)
        offset: i64 = unwrap(raw, self.origin, self.high)
        if offset - self.high > SEQUENCE_WINDOW or self.high - offset > SEQUENCE_WINDOW:
            return UNKNOWN
        if offset > self.acked:
            self.acked = offset
        if offset > self.high:
            self.high = offset
            self.cover()
        return offset

    def clamped(self, ack: i64) -> i64:
        """`ack` without the sequence number that a FIN takes."""
        if self.limit >= 0 and ack > self.limit:
            return self.limit
        return ack

    def cover(self) -> None:
        """Marks the pieces before which all is acknowledged, unless this direction lags.

        It lags when more is acknowledged than was seen of it.
        """
        if self.covered < self.head:
            self.covered = self.head
        if self.high > self.waiting_end():
            return
        while self.covered < len(self.waiting):
            piece = self.waiting[self.covered]
            if piece.offset > self.high:
                return
            piece.covered_at = self.segments
            piece.covered_time = self.time
            self.covered += 1

    # -- what waits --------------------------------------------------------------------------------

    def first(self) -> WaitingOctets | None:
        """The waiting piece with the lowest offset."""
        if self.head < len(self.waiting):
            return self.waiting[self.head]
        return None

    def waiting_pieces(self) -> i64:
        """How many pieces wait."""
        return len(self.waiting) - self.head

    def find(self, offset: i64) -> i64:
        """The index of the first waiting piece that ends behind `offset`."""
        low: i64 = self.head
        high: i64 = len(self.waiting)
        if high > low and self.waiting[high - 1].end <= offset:
            return high  # nearly always: what comes is the newest
        while low < high:
            middle: i64 = (low + high) >> 1
            if self.waiting[middle].end > offset:
                high = middle
            else:
                low = middle + 1
        return low

    def insert(self, at: i64, piece: WaitingOctets) -> None:
        """Puts `piece` in at index `at`, which is where its offset belongs."""
        if at == len(self.waiting):
            self.waiting.append(piece)
        else:
            self.waiting.insert(at, piece)
        self.waiting_octets += len(piece.octets)
        piece.came_at = self.segments
        if at < self.covered:
            # All before the next piece is acknowledged, and so is all before this one.
            piece.covered_at = self.segments
            piece.covered_time = self.time
            self.covered += 1
        else:
            self.cover()

    def pop(self) -> None:
        """Takes the first piece away."""
        self.waiting_octets -= len(self.waiting[self.head].octets)
        self.waiting[self.head] = _GONE
        self.head += 1
        if self.head == len(self.waiting):
            self.waiting.clear()
            self.head = 0
            self.covered = 0
        elif self.head >= 256 and self.head * 2 >= len(self.waiting):
            # Cutting the list at each pop would move all that waits each time.
            del self.waiting[: self.head]
            self.covered -= self.head
            self.head = 0

    def drop_last(self, kind: i64, offset: i64) -> bool:
        """Takes the last piece away if it is of this kind and at `offset`. Returns whether it was."""
        last: i64 = len(self.waiting) - 1
        if last < self.head:
            return False
        piece = self.waiting[last]
        if piece.kind != kind or piece.offset != offset:
            return False
        self.waiting.pop()
        self.covered = min(self.covered, last)
        if last == self.head:
            self.waiting.clear()
            self.head = 0
            self.covered = 0
        return True

    def stands_reset(self) -> bool:
        """Whether an RST ended the stream, or will unless more of it follows."""
        return self.ended == "rst" or (self.ended == "" and self.limit < 0 and self.reset_at != UNKNOWN)

    def has_end(self) -> bool:
        """Whether a FIN, or an RST that stands, was captured."""
        return self.ended != "" or self.limit >= 0 or self.reset_at != UNKNOWN

    def waiting_end(self) -> i64:
        """The offset behind the last piece that waits, `next` if none does."""
        if self.head < len(self.waiting):
            return max(self.waiting[len(self.waiting) - 1].end, self.next)
        return self.next

    # -- what was passed on ------------------------------------------------------------------------

    def remember_gap(self, size: i64) -> None:
        """`size` octets from `next` on were passed on as a gap."""
        self.missing += size
        self.recent.clear()
        if self.gaps:
            start, end = self.gaps[-1]
            if end == self.next:
                self.gaps[-1] = (start, self.next + size)
                return
        self.gaps.append((self.next, self.next + size))
        if len(self.gaps) > REASSEMBLY_RECENT_GAPS:
            del self.gaps[0]

    def count_old(self, start: i64, end: i64) -> None:
        """Octets came whose place was passed on before: counts them as sent twice, or as too late."""
        late: i64 = min(end, 0) - start if start < 0 else 0
        for gap_start, gap_end in self.gaps:
            low: i64 = max(start, gap_start)
            high: i64 = min(end, gap_end)
            if low < high:
                late += high - low
        self.late += late
        self.count_again(end - start - late)

    def count_again(self, size: i64) -> None:
        """So many octets came a second time."""
        self.retransmitted += size
        if self.copies.in_hand and size > 0:
            self.copies.count(size, self.segments, self.packet, self.time)

    # -- outside -----------------------------------------------------------------------------------

    def release(self) -> None:
        """Lets go of what only further segments would need."""
        self.waiting = []
        self.head = 0
        self.covered = 0
        self.waiting_octets = 0
        self.recent.clear()
        self.gaps = []

    def delivered(self) -> i64:
        """Octets that were passed on."""
        return self.next - self.missing

    def facts(self, now: i64) -> StreamFacts:
        """What a summary tells of this direction. now (ns): when the connection's last segment came."""
        return StreamFacts(
            seen=self.seen,
            syn=self.syn != 0,
            midstream=self.midstream,
            delivered=self.delivered(),
            missing=self.missing,
            retransmitted=self.retransmitted - self.copies.octets,
            duplicated=self.copies.octets,
            late=self.late,
            stray=self.stray,
            differing=self.differing,
            segments=self.segments,
            first_packet=self.first_packet,
            first_time=self.first_time,
            last_packet=self.packet,
            last_time=self.time,
            shut=self.stalls.total(WINDOW, now),
            unheard=self.stalls.total(RESENT, now),
            ended="rst" if self.stands_reset() else self.ended,
        )

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        pieces: list[tuple[Any, ...]] = []
        at: i64 = self.head
        while at < len(self.waiting):
            piece = self.waiting[at]
            pieces.append(
                (
                    piece.kind,
                    piece.offset,
                    piece.end,
                    piece.octets,
                    piece.packet,
                    piece.time,
                    piece.ack,
                    piece.came_at,
                    piece.covered_at,
                    piece.covered_time,
                )
            )
            at += 1
        return (
            (self.index, self.origin, self.known, self.opened, self.seen, self.syn),
            (self.midstream, self.empty_start),
            (self.next, self.high, self.acked, self.limit, self.ended, self.alone),
            (self.end_acknowledgement, self.end_sequence),
            (self.reset_at, self.reset_packet, self.reset_time, self.reset_next),
            (self.stalls.dump(), self.stalled_at, self.scale, self.watched),
            tuple(pieces),
            self.recent.dump(),
            tuple(self.gaps),
            (self.strays, self.stray_next, self.stray_segments),
            (self.segments, self.missing, self.retransmitted, self.late, self.stray, self.differing),
            self.copies.dump(),
            (self.first_packet, self.first_time, self.packet, self.time),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Direction":
        """The object of what `dump` returned."""
        (
            start,
            start_of_stream,
            place,
            end,
            reset,
            stalled,
            pieces,
            recent,
            gaps,
            strays,
            counts,
            copies,
            times,
        ) = state
        own = Direction(start[0])
        own.origin, own.known, own.opened, own.seen, own.syn = start[1:]
        own.midstream, own.empty_start = start_of_stream
        own.next, own.high, own.acked, own.limit, own.ended, own.alone = place
        own.end_acknowledgement, own.end_sequence = end
        own.reset_at, own.reset_packet, own.reset_time, own.reset_next = reset
        stalls, own.stalled_at, own.scale, own.watched = stalled
        own.stalls.restore(stalls)
        for kind, offset, upto, octets, packet, time, ack, came_at, covered_at, covered_time in pieces:
            piece = WaitingOctets(kind, offset, upto, octets, Provenance(packet, time, ack))
            piece.came_at = came_at
            piece.covered_at = covered_at
            piece.covered_time = covered_time
            own.waiting.append(piece)
            own.waiting_octets += len(piece.octets)
            if covered_at >= 0:
                own.covered += 1
        own.recent = RecentOctets.load(recent)
        own.gaps = list(gaps)
        own.strays, own.stray_next, own.stray_segments = strays
        own.segments, own.missing, own.retransmitted, own.late, own.stray, own.differing = counts
        own.copies = Copies.load(copies)
        own.first_packet, own.first_time, own.packet, own.time = times
        own.aim()
        return own
