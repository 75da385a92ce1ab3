"""One direction of a connection: where its stream begins, how far it was passed on, and what waits.

`Direction` is bookkeeping only: `amqpscope.reassembly.connection` puts segments in their place, and
`amqpscope.reassembly.order` decides what is passed on when; both see both directions.

A place in a stream is an offset: 0 is the first octet after SYN, or, when the capture began in the middle
of the connection, the first octet captured. Until that is settled, the origin is a guess taken from the
other side's acknowledgements, and `rebase` moves it: only while nothing was passed on, so no offset that
was ever reported outside changes its meaning.
"""

from typing import Any

from amqpscope.limits import SEQUENCE_WINDOW
from amqpscope.reassembly.bounds import NO_CLOSE, NO_RESET, PendingReset, StreamClose, StreamStart
from amqpscope.reassembly.copies import Copies
from amqpscope.reassembly.gaps import NO_GAPS, Gaps
from amqpscope.reassembly.recent import RecentOctets
from amqpscope.reassembly.sequence import SEQUENCE_MASK, UNKNOWN, sequence_number, unwrap
from amqpscope.reassembly.stalls import RESENT, WINDOW, Stalls
from amqpscope.reassembly.strays import NO_STRAYS, Strays
from amqpscope.reassembly.stream import StreamFacts
from amqpscope.reassembly.waiting import NOTHING_WAITS, WaitingOctets, WaitingPieces
from dissectors.wire import i64

__all__ = ["Direction"]


class Direction:
    """The state of one direction. Attributes are written by `TcpConnection` only."""

    def __init__(self, index: i64) -> None:
        self.index: i64 = index
        self.start: StreamStart = StreamStart()
        # The sequence number of offset 0.
        self.origin: i64 = 0
        # A segment of this direction was captured.
        self.seen: bool = False
        # How far it is: the offset passed on next; never above `high`.
        self.next: i64 = 0
        # The highest offset passed on or acknowledged.
        self.high: i64 = 0
        # The offset that the other side's newest acknowledgement means.
        self.acked: i64 = 0
        # The sequence number of `next`; -1: no segment is to be passed on at once.
        self.expected: i64 = -1
        self.end: StreamClose = NO_CLOSE
        # How the stream ended: "fin" or "rst", "" as long as it has not.
        self.ended: str = ""
        self.reset: PendingReset = NO_RESET
        # When its sender could not write.
        self.stalls: Stalls = Stalls()
        self.waiting: WaitingPieces = NOTHING_WAITS
        # What was passed on lately.
        self.recent: RecentOctets = RecentOctets()
        self.gaps: Gaps = NO_GAPS
        self.strays: Strays = NO_STRAYS
        # What came more than once.
        self.copies: Copies = Copies()
        # Segments captured, the packet of the newest, and its time (ns).
        self.segments: i64 = 0
        self.packet: i64 = 0
        self.time: i64 = 0

    # -- the origin --------------------------------------------------------------------------------

    def set_origin(self, sequence: i64) -> None:
        """Offset 0 has this sequence number, as far as is known now."""
        self.origin = sequence & SEQUENCE_MASK
        self.start.known = True

    def rebase(self, by: i64) -> None:
        """What was offset `by` becomes offset 0. The other direction's waiting `ack`s are to be moved too."""
        self.origin = (self.origin + by) & SEQUENCE_MASK
        self.high = max(self.high - by, 0)
        self.acked = max(self.acked - by, 0)
        self.stalls.acknowledged -= by
        if self.reset.at != UNKNOWN:
            self.reset.at -= by
        if self.end.limit >= 0:
            self.end.limit -= by
        self.waiting.move(by)

    def aim(self) -> None:
        """Sets `expected` from `next`."""
        if self.ended or not self.seen or self.reset.at != UNKNOWN or self.stalls.watched:
            self.expected = -1
        else:
            self.expected = sequence_number(self.next, self.origin)

    # -- acknowledgements of this stream -----------------------------------------------------------

    def acknowledged(self, raw: i64) -> i64:
        """The offset that an acknowledgement number means, UNKNOWN if it lies outside any window.

        Raises `high`: the other side has what is below.
        """
        if not self.start.known:
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
        limit: i64 = self.end.limit
        return limit if 0 <= limit < ack else ack

    def cover(self) -> None:
        """Marks the pieces before which all is acknowledged, unless this direction lags.

        It lags when more is acknowledged than was seen of it.
        """
        if self.high <= self.waiting_end():
            self.waiting.cover(self.high, self.segments, self.time)

    # -- what waits --------------------------------------------------------------------------------

    def insert(self, at: i64, piece: WaitingOctets) -> None:
        """Puts `piece` in at index `at` of what waits, which is where its offset belongs."""
        if self.waiting is NOTHING_WAITS:
            self.waiting = WaitingPieces()
        piece.came_at = self.segments
        if self.waiting.insert(at, piece):
            piece.cover(self.segments, self.time)
        else:
            self.cover()

    def waiting_end(self) -> i64:
        """The offset behind the last piece that waits, `next` if none does."""
        return self.waiting.end(self.next)

    # -- the end -----------------------------------------------------------------------------------

    def own_end(self) -> StreamClose:
        """The end of the stream, to be written to."""
        if self.end is NO_CLOSE:
            self.end = StreamClose()
        return self.end

    def stands_reset(self) -> bool:
        """Whether an RST ended the stream, or will unless more of it follows."""
        return self.ended == "rst" or (self.ended == "" and self.end.limit < 0 and self.reset.at != UNKNOWN)

    def has_end(self) -> bool:
        """Whether a FIN, or an RST that stands, was captured."""
        return self.ended != "" or self.end.limit >= 0 or self.reset.at != UNKNOWN

    # -- what was passed on ------------------------------------------------------------------------

    def remember_gap(self, size: i64) -> None:
        """`size` octets from `next` on were passed on as a gap."""
        self.recent.clear()
        self._own_gaps().add(self.next, size)

    def _own_gaps(self) -> Gaps:
        """What is missing, to be written to."""
        if self.gaps is NO_GAPS:
            self.gaps = Gaps()
        return self.gaps

    def count_late(self, octets: i64) -> None:
        """So many octets came too late."""
        if octets > 0:
            self._own_gaps().late += octets

    def count_old(self, start: i64, end: i64) -> None:
        """Octets came whose place was passed on before: counts them as sent twice, or as too late."""
        late: i64 = min(end, 0) - start if start < 0 else 0
        late += self.gaps.overlap(start, end)
        self.count_late(late)
        self.count_again(end - start - late)

    def count_again(self, size: i64) -> None:
        """So many octets came a second time."""
        self.copies.count(size, self.segments, self.packet, self.time)

    def count_stray(self) -> Strays:
        """A segment lies outside any window; returns the strays, to be written to."""
        if self.strays is NO_STRAYS:
            self.strays = Strays()
        self.strays.count += 1
        return self.strays

    # -- outside -----------------------------------------------------------------------------------

    def release(self) -> None:
        """Lets go of what only further segments would need."""
        self.waiting = NOTHING_WAITS
        self.recent.clear()
        if self.gaps.newest:
            self.gaps.newest = []

    def delivered(self) -> i64:
        """Octets that were passed on."""
        return self.next - self.gaps.missing

    def facts(self, now: i64) -> StreamFacts:
        """What a summary tells of this direction. now (ns): when the connection's last segment came."""
        facts = StreamFacts()
        facts.seen = self.seen
        facts.syn = self.start.syn != 0
        facts.midstream = self.start.midstream
        facts.delivered = self.delivered()
        facts.missing = self.gaps.missing
        facts.retransmitted = self.copies.again - self.copies.octets
        facts.duplicated = self.copies.octets
        facts.late = self.gaps.late
        facts.stray = self.strays.count
        facts.differing = self.recent.differing
        facts.segments = self.segments
        facts.first_packet = self.start.packet
        facts.first_time = self.start.time
        facts.last_packet = self.packet
        facts.last_time = self.time
        facts.shut = self.stalls.total(WINDOW, now)
        facts.unheard = self.stalls.total(RESENT, now)
        facts.ended = self.end_kind()
        return facts

    def end_kind(self) -> str:
        """How this direction ended: `fin`, `rst`, or "" if it did not."""
        return "rst" if self.stands_reset() else self.ended

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        return (
            (self.index, self.origin, self.seen, self.next, self.high, self.acked),
            (self.segments, self.packet, self.time),
            (self.start.dump(), self.end.dump(), self.ended, self.reset.dump()),
            (self.stalls.dump(), self.waiting.dump(), self.recent.dump()),
            (self.gaps.dump(), self.strays.dump(), self.copies.dump()),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Direction":
        """The object of what `dump` returned."""
        place, newest, bounds, (stalls, waiting, recent), (gaps, strays, copies) = state
        own = Direction(place[0])
        own.origin, own.seen, own.next, own.high, own.acked = place[1:]
        own.segments, own.packet, own.time = newest
        start, end, own.ended, reset = bounds
        own.start = StreamStart.load(start)
        own.end = StreamClose.load(end)
        own.reset = PendingReset.load(reset)
        own.stalls.restore(stalls)
        own.waiting = WaitingPieces.load(waiting)
        own.recent = RecentOctets.load(recent)
        own.gaps = Gaps.load(gaps)
        own.strays = Strays.load(strays)
        own.copies = Copies.load(copies)
        own.aim()
        return own
