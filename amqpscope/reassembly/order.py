"""What waits in both directions of a connection, and when it is passed on.

The rules and their reasons stand at the top of `amqpscope.reassembly.connection`, under "Order", "Waiting for
each other", "Holes" and "A direction that lags". Between two calls of `TcpConnection` nothing waits that
could be passed on: `pump` has seen to it.
"""

from amqpscope.limits import (
    NEW_CONNECTION_JUMP,
    REASSEMBLY_LAG_SEGMENTS,
    REASSEMBLY_LAG_TIME,
    REASSEMBLY_OVERLAP_NOTES,
    REASSEMBLY_REORDER_SEGMENTS,
    REASSEMBLY_REORDER_TIME,
)
from amqpscope.reassembly.direction import Direction
from amqpscope.reassembly.provenance import Provenance
from amqpscope.reassembly.sequence import NOWHERE_NEAR, SEQUENCE_MASK, UNKNOWN
from amqpscope.reassembly.stream import StreamSink
from amqpscope.reassembly.waiting import CUT, DATA, FIN, MARK, WaitingOctets
from dissectors.wire import i64
from dissectors.wording import count, were

__all__ = ["CausalOrder"]


class CausalOrder:
    """Both directions of a connection, and the sink they go to."""

    def __init__(self, sink: StreamSink, first: Direction, second: Direction) -> None:
        self.sink: StreamSink = sink
        self.first: Direction = first
        self.second: Direction = second
        self.waiting: i64 = first.waiting.count() + second.waiting.count()

    # -- what waits --------------------------------------------------------------------------------

    def wait(
        self,
        own: Direction,
        kind: i64,
        offset: i64,
        stop: i64,
        buf: bytes,
        start: i64,
        provenance: Provenance,
    ) -> None:
        """Puts [offset, stop) among what waits, as far as it is not there already.

        `provenance` has the acknowledgement as an offset that is not settled yet, or UNKNOWN.
        """
        differs: i64 = -1
        # A keep-alive repeats the last octet as any octet (RFC 9293, section 3.8.4).
        probe = stop - offset == 1 and stop == own.waiting_end()
        shift: i64 = start - offset
        at: i64 = own.waiting.find(offset)
        while offset < stop:
            upto: i64 = stop
            pieces = own.waiting.pieces
            if at < len(pieces):
                piece = pieces[at]
                if piece.offset <= offset:
                    upto = min(piece.end, stop)
                    if upto > offset:
                        own.count_again(upto - offset)
                        if kind == DATA and piece.kind == DATA and differs < 0 and not probe:
                            there = piece.octets[offset - piece.offset : upto - piece.offset]
                            if there != buf[offset + shift : upto + shift]:
                                differs = offset
                        offset = upto
                    at += 1
                    continue
                upto = min(piece.offset, stop)
            octets = buf[offset + shift : upto + shift] if kind == DATA else b""
            own.insert(at, WaitingOctets(kind, offset, upto, octets, provenance))
            self.waiting += 1
            at += 1
            offset = upto
        if differs >= 0:
            self.differs(own, provenance.packet, provenance.time, differs)

    def wait_end(self, own: Direction, kind: i64, offset: i64, provenance: Provenance) -> None:
        """Puts the end of a stream, or an empty segment's place in it, behind all that waits."""
        own.insert(len(own.waiting.pieces), WaitingOctets(kind, offset, offset, b"", provenance))
        self.waiting += 1

    # -- passing on --------------------------------------------------------------------------------

    def pass_on(self, own: Direction, buf: bytes, start: i64, end: i64, provenance: Provenance) -> None:
        """Octets of `own` at its next offset go out."""
        offset: i64 = own.next
        own.next = offset + (end - start)
        if own.expected >= 0:
            own.expected = (own.expected + (end - start)) & SEQUENCE_MASK
        if own.next > own.high:
            own.high = own.next
        own.recent.add(buf, start, end)
        self.sink.data(own.index, offset, buf, start, end, provenance)

    def gap(self, own: Direction, upto: i64, packet: i64, time: i64) -> None:
        """The octets of `own` from its next offset to `upto` are given up."""
        offset: i64 = own.next
        own.remember_gap(upto - offset)
        own.next = upto
        own.aim()
        if upto > own.high:
            own.high = upto
        self.sink.gap(own.index, offset, upto - offset, packet, time)
        if upto - offset > NEW_CONNECTION_JUMP:
            # What goes on there may be another connection's.
            self.sink.doubt(own.index, NOWHERE_NEAR)

    def end(self, own: Direction, reason: str, packet: i64, time: i64) -> None:
        """The stream of `own` is over: `fin` or `rst`."""
        own.ended = reason  # nothing waits behind: `limit` kept it out
        own.aim()
        self.sink.end(own.index, reason, packet, time)

    def differs(self, own: Direction, packet: i64, time: i64, offset: i64) -> None:
        """A second copy of the octets at `offset` contradicts the first."""
        own.recent.differing += 1
        # Which of the two its receiver took is not known, nor whether both are of one sender.
        self.sink.doubt(own.index, NOWHERE_NEAR)
        if own.recent.differing <= REASSEMBLY_OVERLAP_NOTES:
            detail = (
                f"octets around stream offset {offset} were sent again with other content; amqpscope "
                "uses the first copy"
            )
            self.sink.note(own.index, "capture/overlap-differs", packet, time, detail)

    def tell_copies(self, own: Direction) -> None:
        """At the end: packets that were captured twice, if there were any."""
        copies = own.copies
        if copies.packets > 0:
            detail = (
                f"{count(copies.packets, 'packet')} of this direction with {count(copies.octets, 'octet')} "
                f"{were(copies.packets)} captured twice, as with two capture points; the second copies do "
                "not count as retransmissions"
            )
            self.sink.note(own.index, "capture/duplicate", copies.first_packet, copies.first_time, detail)

    def reported(self, other: Direction, acknowledged: i64) -> i64:
        """An acknowledgement as the sink is given it."""
        if acknowledged == UNKNOWN:
            return -1
        return max(other.clamped(acknowledged), 0)

    def ready(self, own: Direction, other: Direction, acknowledged: i64, packet: i64, time: i64) -> bool:
        """Whether what `own` acknowledges was passed on."""
        if acknowledged == UNKNOWN:
            return True
        upto: i64 = other.clamped(acknowledged)
        if other.seen:
            return upto <= other.next
        if not own.waiting.alone:
            return False
        if upto > other.next:
            self.gap(other, upto, packet, time)
        return True

    def pump(self) -> None:
        """Passes on what can be, until nothing moves."""
        first = self.first
        second = self.second
        while self.waiting > 0:
            moved: bool = self._drain(first, second)
            if self._drain(second, first):
                moved = True
            if moved:
                continue
            a = first.waiting.first()
            b = second.waiting.first()
            if a is None or b is None or a.offset > first.next or b.offset > second.next:
                return
            if a.packet <= b.packet:
                self._pass_on_piece(first, second, a)
            else:
                self._pass_on_piece(second, first, b)

    def _drain(self, own: Direction, other: Direction) -> bool:
        """Passes on pieces of one direction until one has to wait. Returns whether there were any."""
        moved: bool = False
        piece = own.waiting.first()
        while piece is not None:
            if piece.offset > own.next:
                if not self._given_up(own, piece):
                    break
                self.gap(own, piece.offset, piece.packet, piece.time)
                moved = True
            if not self.ready(own, other, piece.ack, piece.packet, piece.time):
                break
            self._pass_on_piece(own, other, piece)
            moved = True
            piece = own.waiting.first()
        return moved

    def _given_up(self, own: Direction, piece: WaitingOctets) -> bool:
        """Whether the hole before the first piece will not be filled any more."""
        if piece.offset > own.high or self._may_be_fin(own, piece):
            return False
        if piece.covered_at >= 0 and (
            own.segments - piece.covered_at >= REASSEMBLY_REORDER_SEGMENTS
            or own.time - piece.covered_time >= REASSEMBLY_REORDER_TIME
        ):
            return True
        return (
            own.segments - piece.came_at >= REASSEMBLY_LAG_SEGMENTS
            or own.time - piece.time >= REASSEMBLY_LAG_TIME
        )

    def _may_be_fin(self, own: Direction, piece: WaitingOctets) -> bool:
        """Whether the hole before the first piece may be nothing but a FIN that was not captured."""
        return piece.kind == MARK and piece.offset == own.next + 1 and own.waiting.count() == 1

    def _pass_on_piece(self, own: Direction, other: Direction, piece: WaitingOctets) -> None:
        """The first piece, which is in order, goes out."""
        own.waiting.pop()
        self.waiting -= 1
        if piece.kind == FIN:
            self.end(own, "fin", piece.packet, piece.time)
        elif piece.end > own.next:
            if piece.kind == CUT:
                self.gap(own, piece.end, piece.packet, piece.time)
            else:
                start: i64 = own.next - piece.offset
                size: i64 = piece.end - piece.offset
                ack: i64 = self.reported(other, piece.ack)
                self.pass_on(own, piece.octets, start, size, Provenance(piece.packet, piece.time, ack))

    # -- giving up ---------------------------------------------------------------------------------

    def force(self, own: Direction, other: Direction) -> None:
        """The first piece of `own`, which has to wait, waits no longer for what it waited for first."""
        piece = own.waiting.first()
        if piece is None:
            return
        if self._may_be_fin(own, piece):
            own.waiting.pop()
            self.waiting -= 1
        elif piece.offset > own.next:
            self.gap(own, piece.offset, piece.packet, piece.time)
        else:
            upto: i64 = other.clamped(piece.ack)
            later = other.waiting.first()
            shown = piece
            if later is not None and later.offset > other.next:
                upto = min(upto, later.offset)
                shown = later  # what stands behind a hole shows it, whoever waits for it
            if upto > other.next:
                self.gap(other, upto, shown.packet, shown.time)
            if not other.seen:
                own.waiting.alone = True
        self.pump()

    def force_older(self, own: Direction, other: Direction, than: i64) -> None:
        """What came before the time `than` (ns) waits no longer."""
        piece = own.waiting.first()
        while piece is not None and piece.time < than:
            self.force(own, other)
            piece = own.waiting.first()

    def finish(self) -> None:
        """Nothing follows: all that waits goes out, holes as gaps."""
        first = self.first
        second = self.second
        while self.waiting > 0:
            self.imply_fin(first)
            self.imply_fin(second)
            # A piece in order says for certain what is missing; of two holes, the one captured first.
            own = first
            a = first.waiting.first()
            b = second.waiting.first()
            if a is None:
                own = second
            elif b is not None and a.offset > first.next:
                if b.offset <= second.next or b.packet < a.packet:
                    own = second
            self.force(own, second if own is first else first)
        self._finish_tail(first, second)
        self._finish_tail(second, first)

    def imply_fin(self, own: Direction) -> None:
        """At the end: if all that is missing of `own` is one octet behind all others, it was its FIN."""
        if own.end.limit >= 0 or own.high > own.next + 1:
            return
        shown: bool = own.high > own.next
        if own.waiting.drop_last(MARK, own.next + 1):
            self.waiting -= 1
            shown = True
        if shown and own.waiting.count() == 0:
            own.own_end().limit = own.next

    def _finish_tail(self, own: Direction, other: Direction) -> None:
        """What was acknowledged behind the last octet seen was not captured."""
        self.imply_fin(own)
        upto: i64 = own.clamped(own.high)
        if upto > own.next:
            # What shows it is an acknowledgement, or an empty segment of its own behind it.
            shown = other if other.packet > 0 else own
            self.gap(own, upto, shown.packet, shown.time)
