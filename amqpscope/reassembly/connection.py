"""One TCP connection: segments in capture order in, two streams of octets in causal order out.

Theory of operation
===================

**Order.** A capture does not show what an end saw when. A mirror port may put a segment of A before the
octets of B that it acknowledges; two taps merged may shift a whole direction by any amount. But each segment
says what its sender had received: its acknowledgement. So a segment is passed on only when (1) all octets of
its own direction before it, and (2) all octets of the other direction that it acknowledges, were passed on or
reported as a gap. Until then it waits, as a piece in its direction's list (`Direction.waiting`), which holds
both what came out of order and what came too early, sorted by offset. The first piece of a list is the only
candidate; whenever something moved, both lists are looked at again, until nothing moves. FIN is a piece too,
for the end of a stream is bound by causes just like its octets; and so is the bare sequence number of an
empty segment that shows that octets before it were sent.

The acknowledgement that goes along with octets is that of the segment which showed them *first*; what a
retransmission acknowledges says nothing about when its octets were said.

**The fast path.** Nothing waits, the segment is the expected one and acknowledges nothing new: its octets go
to the sink straight from the reader's buffer. Nearly every segment of a sound capture takes it.

**Waiting for each other.** If the capture lost originals and shows only retransmissions, which carry newer
acknowledgements, the first pieces of both directions can be in order and each wait for the other. Neither
can be true to the original order; the one captured first goes first.

**Holes.** Octets are missing and later ones of the same direction wait.

* The other side acknowledged them: they reached the peer and not the capture. They are a gap once
  `REASSEMBLY_REORDER_SEGMENTS` further segments of this direction came, or its time stamps moved on by
  `REASSEMBLY_REORDER_TIME`. Only this direction's segments and time count, not the connection's: so it
  makes no difference how the other direction is shifted against this one. While more is acknowledged than
  was seen of this direction, it lags: then a retransmission that the acknowledgement is for may still be
  far away, and `REASSEMBLY_LAG_SEGMENTS` and `REASSEMBLY_LAG_TIME` count instead.
* Not acknowledged: the peer misses them too and they will be sent again. The list's bounds limit the wait.

**A direction that lags.** A acknowledges octets of B, and of B nothing later was seen: B lost nothing, it has
just not arrived. A's pieces wait, limited by amount only (`REASSEMBLY_WAITING_OCTETS`,
`REASSEMBLY_WAITING_PIECES`), never by time, so that a shift of any duration loses nothing. When a list
overflows, what its first piece waits for is reported as a gap, and only that. If of B not a single segment
was seen by then (or by the end), the capture has one direction only: A waits no more, what it acknowledges
becomes a gap of B at once, and should B show after all, its stream goes on behind what A acknowledged last.

**The first copy wins.** Octets that were passed on or wait already are not replaced. Second copies are
compared as far as the first is still there, and a contradiction is noted. Octets that arrive for a gap are
counted and dropped. A segment with at most one octet right before the expected place is a keep-alive, not a
retransmission. What it carries is rubbish. Where octets are missing, a keep-alive is recognised otherwise: it
is one octet without PSH, which the peer has acknowledged, and nothing came for a while (`PROBE_QUIET`). The
octet that it stands for is missing, too.

**Two taps** show a packet twice: that is no retransmission. What is sent again is so in another datagram,
with another identification; octets that come again with one that has been are counted apart, and noted when
the connection is over.

**Octets cut off by the snapshot length** are a gap right behind the captured part of their segment.

**Where a stream begins and ends**, and whether an RST ends it: see `beginning` and `closing`. When a sender
could not write: see `windows`.

**Numbers outside any window** (`SEQUENCE_WINDOW`) are not believed: such a segment is ignored, such an
acknowledgement is unknown. Only when several such segments follow one another is the stream taken up there,
behind a gap.

This module puts segments in their place; `amqpscope.reassembly.order` decides what is passed on when.
"""

from typing import Any, Final

from amqpscope.capture.segment import Segment
from amqpscope.limits import (
    NEW_CONNECTION_HEADER,
    NEW_CONNECTION_JUMP,
    NEW_CONNECTION_SILENCE,
    PROBE_QUIET,
    REASSEMBLY_LIVE_WAIT,
    REASSEMBLY_WAITING_OCTETS,
    REASSEMBLY_WAITING_PIECES,
    SEQUENCE_WINDOW,
)
from amqpscope.reassembly.beginning import begin_stream, settled_offset
from amqpscope.reassembly.bounds import NO_CLOSE
from amqpscope.reassembly.closing import end_by_reset, hold_against_reset, take_fin, take_reset
from amqpscope.reassembly.direction import Direction
from amqpscope.reassembly.order import CausalOrder
from amqpscope.reassembly.provenance import Provenance
from amqpscope.reassembly.recent import NOT_KNOWN
from amqpscope.reassembly.sequence import NOWHERE_NEAR, SEQUENCE_MASK, UNKNOWN, unwrap
from amqpscope.reassembly.stalls import NEVER, WINDOW
from amqpscope.reassembly.strays import Strays
from amqpscope.reassembly.stream import StreamFacts, StreamSink
from amqpscope.reassembly.waiting import CUT, DATA, FIN, MARK
from amqpscope.reassembly.windows import ROOM, look_at_window, note_resent, stall
from dissectors.wire import i64

__all__ = ["TcpConnection"]

_VERSION: Final = 8

_NOWHERE: Final = StreamSink()

# TCP flag bits (RFC 9293, section 3.1).
_FLAG_FIN: Final = 0x01
_FLAG_SYN: Final = 0x02
_FLAG_RST: Final = 0x04
_FLAGS_FIN_PSH: Final = 0x09
_FLAG_ACK: Final = 0x10
_FLAGS_FIN_SYN_RST: Final = 0x07


class TcpConnection:
    """Both directions of one connection. Direction 0 is that of the first segment captured."""

    def __init__(self, sink: StreamSink) -> None:
        self._first: Direction = Direction(0)
        self._second: Direction = Direction(1)
        self._order: CausalOrder = CausalOrder(sink, self._first, self._second)
        self._finished: bool = False

    def segment(self, direction: i64, segment: Segment) -> None:
        """The next captured segment, of direction 0 or 1. It is not kept."""
        own: Direction
        other: Direction
        if direction == 0:
            own = self._first
            other = self._second
        else:
            own = self._second
            other = self._first
        ack: i64 = segment.ack
        if (
            segment.seq == own.expected
            and self._order.waiting == 0
            and (segment.flags & _FLAGS_FIN_SYN_RST) == 0
            and segment.cut == 0
            and segment.window >= ROOM
            and ack >= 0
            and other.seen
        ):
            behind: i64 = (other.origin + other.high - ack) & SEQUENCE_MASK
            acknowledged: i64 = other.high - behind
            if behind <= SEQUENCE_WINDOW and acknowledged <= other.next and own.acked <= own.next:
                own.segments += 1
                own.time = segment.time
                own.packet = segment.packet
                other.acked = acknowledged
                if segment.identification > 0:
                    own.copies.identify(segment.identification)
                if segment.start < segment.end:
                    if acknowledged < 0:
                        acknowledged = 0
                    provenance = Provenance(segment.packet, segment.time, acknowledged)
                    self._order.pass_on(own, segment.buf, segment.start, segment.end, provenance)
                return
        self._segment(own, other, segment)

    def forget(self) -> None:
        """Both directions are over: what still comes again is counted, and compared with nothing."""
        self._first.recent.clear()
        self._second.recent.clear()

    def finish(self) -> None:
        """No segment follows (end of the capture, eviction): passes on all that waits, holes as gaps."""
        if self._finished:
            return
        for own, other in ((self._first, self._second), (self._second, self._first)):
            if own.reset.at != UNKNOWN and own.end.acknowledgement >= 0:
                other.acknowledged(own.end.acknowledgement)
        self._order.finish()
        end_by_reset(self._order, self._first)
        end_by_reset(self._order, self._second)
        self._finished = True
        self._order.tell_copies(self._first)
        self._order.tell_copies(self._second)
        self._first.expected = -1
        self._second.expected = -1

    def release(self) -> None:
        """After `finish`: lets go of the sink, and of all that only further segments would need."""
        self._order.sink = _NOWHERE
        self._first.release()
        self._second.release()

    def tick(self, now: i64) -> None:
        """For a live capture: at `now` (ns), passes on what waited longer than `REASSEMBLY_LIVE_WAIT`."""
        if not self._finished:
            self._order.force_older(self._first, self._second, now - REASSEMBLY_LIVE_WAIT)
            self._order.force_older(self._second, self._first, now - REASSEMBLY_LIVE_WAIT)

    def starts_new(self, direction: i64, seq: i64, flags: i64, time: i64, header: bool) -> bool:
        """Whether a segment belongs to a new connection between the same ports. To be asked before `segment`.

        With SYN: its initial sequence number is not this connection's. Without: nothing was captured for
        `NEW_CONNECTION_SILENCE`, and the sequence number is further than `NEW_CONNECTION_JUMP` from the
        expected one; or its payload begins with a protocol header, further than `NEW_CONNECTION_HEADER`
        from there.
        """
        own = self._first if direction == 0 else self._second
        other = self._second if direction == 0 else self._first
        if flags & _FLAG_RST:
            return False
        if flags & _FLAG_SYN:
            if not own.start.known:
                # Only SYN can come before anything was acknowledged; an answering SYN is no new connection.
                return not (flags & _FLAG_ACK) and other.seen and other.start.syn == 0
            # The first octet after SYN is offset 0, also when SYN comes late or only acknowledged yet. What
            # would begin just where the stream goes on cannot be distinguished from it: it is none, by any
            # odds.
            return 0 != unwrap(seq + 1, own.origin, own.next) != own.next
        if header and own.start.known and seq != own.expected:
            # No header stands far behind the begin of a stream: a layer of security before it is short.
            place: i64 = unwrap(seq, own.origin, own.next)
            if place < -NEW_CONNECTION_HEADER or place > max(own.high, 0) + NEW_CONNECTION_HEADER:
                return True
        if not own.start.known or time - max(own.time, other.time) < NEW_CONNECTION_SILENCE:
            return False
        # The next segment of this connection lies where the stream is, or where its acknowledgements are.
        ahead: i64 = unwrap(seq, own.origin, own.next) - own.next
        if ahead >= -NEW_CONNECTION_JUMP and ahead <= own.high - own.next + NEW_CONNECTION_JUMP:
            return False
        ahead = unwrap(seq, own.origin, own.high) - own.high
        return ahead > NEW_CONNECTION_JUMP or ahead < -NEW_CONNECTION_JUMP

    def continues(self, direction: i64, seq: i64) -> bool:
        """Whether a sequence number lies where this direction of the connection is, or has been."""
        own = self._first if direction == 0 else self._second
        ahead: i64 = unwrap(seq, own.origin, own.next) - own.next
        return own.start.known and -SEQUENCE_WINDOW <= ahead <= own.high - own.next + NEW_CONNECTION_HEADER

    def opener(self) -> i64:
        """The direction that opened the connection: it sent SYN, or the other answered one; -1 unknown."""
        if self._first.start.syn == 1 or self._second.start.syn == 2:
            return 0
        if self._second.start.syn == 1 or self._first.start.syn == 2:
            return 1
        return -1

    def waiting(self) -> int:
        """How many pieces wait: 0 means that everything captured was passed on."""
        return self._order.waiting

    def stream(self, direction: i64) -> Direction:
        """One direction as it is now, to be read."""
        return self._first if direction == 0 else self._second

    def facts(self, direction: i64) -> StreamFacts:
        """What a summary tells of one direction."""
        return self.stream(direction).facts(self.last_time())

    def is_over(self) -> bool:
        """Whether all was passed on up to the end: both directions ended, or one was reset."""
        first = self._first
        second = self._second
        if first.stands_reset() or second.stands_reset():
            return True
        return first.ended != "" and second.ended != ""

    def delivered(self) -> i64:
        """Octets of both directions that were passed on."""
        return self._first.delivered() + self._second.delivered()

    def last_time(self) -> i64:
        """When (ns) the last segment came."""
        return max(self._first.time, self._second.time)

    def end_acknowledged(self, direction: i64) -> i64:
        """How many octets of the other stream were acknowledged by the FIN or RST that ended this one.

        -1 if it did not say, or the stream did not end.
        """
        own = self._first if direction == 0 else self._second
        other = self._second if direction == 0 else self._first
        if own.end.acknowledgement < 0:
            return -1
        return self._order.reported(other, other.acknowledged(own.end.acknowledgement))

    def ended_after(self, direction: i64) -> bool:
        """Whether this stream's FIN acknowledges the other's: who sent it had received that.

        So it does if it acknowledges more than was captured of the other stream: that may be its FIN.
        """
        own = self._first if direction == 0 else self._second
        other = self._second if direction == 0 else self._first
        if other.end.sequence >= 0 or own.end.acknowledgement < 0:
            return other.end.sequence >= 0 and own.end.acknowledgement == other.end.sequence
        return other.acknowledged(own.end.acknowledgement) > other.next

    def dump(self) -> tuple[Any, ...]:
        """All of the state as plain values, octets that wait included."""
        return (_VERSION, self._finished, self._first.dump(), self._second.dump())

    @staticmethod
    def load(state: tuple[Any, ...], sink: StreamSink) -> "TcpConnection":
        """The object of what `dump` returned, that goes on with `sink`."""
        version, finished, first, second = state
        if version != _VERSION:
            raise ValueError(f"state of a TCP connection in version {version}, expected {_VERSION}")
        connection = TcpConnection(sink)
        connection._finished = finished
        connection._first = Direction.load(first)
        connection._second = Direction.load(second)
        connection._order = CausalOrder(sink, connection._first, connection._second)
        if finished:
            connection._first.expected = -1
            connection._second.expected = -1
        return connection

    # -- a segment off the fast path ---------------------------------------------------------------

    def _segment(self, own: Direction, other: Direction, segment: Segment) -> None:
        if self._finished:
            return
        time: i64 = segment.time
        packet: i64 = segment.packet
        seq: i64 = segment.seq
        ack: i64 = segment.ack
        flags: i64 = segment.flags
        captured: i64 = max(segment.end - segment.start, 0)
        cut: i64 = max(segment.cut, 0)
        if flags & _FLAG_RST:
            captured = 0  # what an RST carries is an explanation, not part of the stream
            cut = 0
        size: i64 = captured + cut
        begins: bool = not own.seen
        if begins:
            own.start.packet = packet
            own.start.time = time
            begin_stream(own, other, seq, flags, size)
        quiet: i64 = time - own.time
        own.segments += 1
        own.time = time
        own.packet = packet
        own.copies.identify(segment.identification)
        if flags & _FLAG_SYN:
            seq += 1
            if ((own.origin - seq) & SEQUENCE_MASK) == 0 and own.start.syn == 0:
                own.start.syn = 2 if ack >= 0 else 1
                own.start.midstream = False
        offset: i64 = unwrap(seq, own.origin, own.next)
        if flags & _FLAG_RST:
            take_reset(self._order, own, time, packet, offset, ack)
            return
        distance: i64 = offset - own.next
        if distance > SEQUENCE_WINDOW or distance + SEQUENCE_WINDOW < 0 or size > SEQUENCE_WINDOW:
            if not self._take_up(own, other, own.count_stray(), seq, size):
                return
            offset = own.next
        acknowledged: i64 = UNKNOWN
        if ack >= 0:
            if not other.start.known:
                other.start.opened = own.start.syn != 0 and offset == 0
            acknowledged = other.acknowledged(ack)
        if own.start.midstream and own.next == 0 and offset != 0 and not own.ended:
            offset = settled_offset(own, other, offset, size)
        look_at_window(own, other, segment, acknowledged)
        if own.stalls.cause != NEVER and offset + size > own.waiting_end() and acknowledged <= other.next:
            if size > 1 or own.stalls.cause != WINDOW:
                stall(own, other, NEVER, packet, time)  # else it is a window probe
        if own.reset.at != UNKNOWN and (size > 0 or flags & _FLAG_FIN):
            hold_against_reset(self._order, own, offset + size, flags & _FLAG_FIN != 0)
        if size > 0:
            if (
                size == 1
                and not flags & _FLAGS_FIN_PSH
                and own.next <= offset < own.acked
                and quiet >= PROBE_QUIET
            ):
                captured, cut = 0, 1  # a keep-alive in place of octets that are missing: none of them
            self._octets(own, other, segment, offset, captured, cut, acknowledged)
        elif not flags & _FLAGS_FIN_SYN_RST and offset > own.waiting_end() and own.end.limit < 0:
            self._order.wait_end(own, MARK, offset, Provenance(packet, time, UNKNOWN))
        if flags & _FLAG_FIN:
            end = own.own_end()
            if end.limit < 0 and not own.ended:
                # Of an RST before it that was another's, it takes the place.
                end.acknowledgement = ack
                end.sequence = (seq + size + 1) & SEQUENCE_MASK
            take_fin(self._order, own, offset + size, Provenance(packet, time, acknowledged))
        self._order.pump()
        while (
            own.waiting.octets > REASSEMBLY_WAITING_OCTETS or own.waiting.count() > REASSEMBLY_WAITING_PIECES
        ):
            self._order.force(own, other)

    def _take_up(self, own: Direction, other: Direction, strays: Strays, seq: i64, size: i64) -> bool:
        """A segment outside the window: whether the stream goes on there, behind a gap."""
        if own.ended or size > SEQUENCE_WINDOW:
            return False
        seq &= SEQUENCE_MASK
        if not strays.follow(seq, size, own.segments):
            return False
        while own.waiting.count() > 0:
            self._order.force(own, other)
        if own.ended:
            return False
        self._order.gap(own, own.next + ((seq - own.origin - own.next) & SEQUENCE_MASK), own.packet, own.time)
        return True

    def _octets(
        self,
        own: Direction,
        other: Direction,
        segment: Segment,
        offset: i64,
        size: i64,
        cut: i64,
        acknowledged: i64,
    ) -> None:
        """Payload: what of it is new is passed on or waits. cut: octets behind the captured ones, `size`."""
        time: i64 = segment.time
        packet: i64 = segment.packet
        buf = segment.buf
        start: i64 = segment.start
        own.start.empty = False
        if own.ended:
            if own.ended == "fin" and own.gaps.late == 0 and size > 1 and offset + size > own.next:
                # The FIN was not its sender's. Where the receiver took the stream to end is not known.
                self._order.sink.note(
                    own.index, "capture/ignored", packet, time, "octets after a FIN are not read"
                )
                self._order.sink.doubt(own.index, NOWHERE_NEAR)
            own.count_late(offset + size - max(offset, own.next))
            if offset < own.next:
                own.count_old(offset, min(offset + size, own.next))
            return
        if offset < own.next:
            if size + cut <= 1 and offset == own.next - 1:
                return  # a keep-alive
            old: i64 = min(own.next - offset, size + cut)
            own.count_old(offset, offset + old)
            note_resent(own, other, packet, time, own.acked >= offset + old)
            known: i64 = min(old, size)
            if own.recent.differs(own.next, offset, buf, start, start + known):
                self._order.differs(own, packet, time, offset)
            if own.recent.unsure > 0:
                self._order.sink.note(own.index, NOT_KNOWN, packet, time, "octets came again")
            start += known
            size -= known
            cut -= old - known
            offset += old
            if size + cut == 0:
                return
        stop: i64 = offset + size
        last: i64 = stop + cut
        if own.end.limit >= 0 and last > own.end.limit and own.waiting.drop_last(FIN, own.end.limit):
            # While it waits for octets before it, a FIN ends nothing: its receiver drops it for these.
            self._order.waiting -= 1
            self._order.sink.note(
                own.index,
                "capture/ignored",
                packet,
                time,
                "a FIN is ignored, because the same peer sends more octets after the FIN",
            )
            own.end = NO_CLOSE
        if own.end.limit >= 0 and last > own.end.limit:
            own.count_late(stop - max(own.end.limit, offset))
            last = own.end.limit
            stop = min(stop, last)
            if last <= offset:
                return
        head = own.waiting.first()
        if offset == own.next and (head is None or last <= head.offset):
            if self._order.ready(own, other, acknowledged, packet, time):
                if stop > offset:
                    ack: i64 = self._order.reported(other, acknowledged)
                    provenance = Provenance(packet, time, ack)
                    self._order.pass_on(own, buf, start, start + (stop - offset), provenance)
                if last > stop:
                    self._order.gap(own, last, packet, time)
                return
        waits = Provenance(packet, time, acknowledged)
        if stop > offset:
            again: i64 = own.copies.again
            self._order.wait(own, DATA, offset, stop, buf, start, waits)
            if own.copies.again > again:
                note_resent(own, other, packet, time, own.acked >= stop)
        if last > stop:
            self._order.wait(own, CUT, stop, last, b"", 0, waits)
