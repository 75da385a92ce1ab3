"""Where the stream of one direction ends: at its FIN, or at an RST that its receiver takes.

Acknowledgements cover the FIN: they are cut to the end of the octets. A FIN that was not captured leaves an
acknowledged octet that never existed; so a hole of one octet at the very end of a stream is not reported.

An RST is judged by its sequence number, as its receiver does (RFC 9293, section 3.10.7.4; RFC 5961, section
3). One that lies outside the receive window ends nothing: before what the receiver has acknowledged, or
behind what its window allows. Any other one has its place in the stream, as a FIN does: it may be captured
before octets that were sent before it. It ends the stream when the connection is over and its sender has said
nothing more. Who sent RST says nothing more; so if new octets or a FIN lie behind it, it was not the sender's
(a middlebox, an attacker, an older connection on the same ports), they are read, and a note tells it. Its
receiver may have taken it all the same: until the receiver acknowledges what lies behind, that is in doubt
(`StreamSink.doubt`).
"""

from amqpscope.limits import SEQUENCE_WINDOW
from amqpscope.reassembly.bounds import NO_RESET, PendingReset
from amqpscope.reassembly.direction import Direction
from amqpscope.reassembly.order import CausalOrder
from amqpscope.reassembly.provenance import Provenance
from amqpscope.reassembly.sequence import UNKNOWN
from amqpscope.reassembly.waiting import FIN, MARK
from dissectors.wire import i64

__all__ = ["end_by_reset", "hold_against_reset", "take_fin", "take_reset"]


def take_fin(order: CausalOrder, own: Direction, offset: i64, provenance: Provenance) -> None:
    """A FIN behind the octet at `offset - 1`."""
    if own.end.limit >= 0 or own.ended:
        return
    if offset == own.next - 1 and own.gaps.last_is(offset, own.next):
        offset += 1  # it was taken for an octet that is missing
    if own.waiting.drop_last(MARK, offset + 1):
        order.waiting -= 1  # an empty segment that counts this FIN came before it
    if offset < own.waiting_end():
        return  # octets behind it were captured: it is an old connection's, or damaged
    own.own_end().limit = offset
    order.wait_end(own, FIN, offset, provenance)


def take_reset(order: CausalOrder, own: Direction, time: i64, packet: i64, offset: i64, ack: i64) -> None:
    """RST at `offset`, that acknowledges `ack`."""
    if own.ended or own.end.limit >= 0 or own.reset.at != UNKNOWN:
        return  # it only says again that the stream is over
    behind: i64 = offset - own.acked
    if behind == -1 and offset >= own.waiting_end():
        behind = 0  # what was acknowledged in between may be a FIN, which some stacks do not count
    if behind < 0 or behind > SEQUENCE_WINDOW:
        where = f"{-behind} octets before" if behind < 0 else f"{behind} octets behind"
        own.count_stray()
        _report_ignored(
            order,
            own,
            packet,
            time,
            (f"the sequence number of the RST lies {where} the octets that the receiver already has"),
        )
        return
    own.reset = PendingReset(offset, packet, time, own.waiting_end())
    own.own_end().acknowledgement = ack
    own.aim()


def hold_against_reset(order: CausalOrder, own: Direction, end: i64, fin: bool) -> None:
    """Octets up to `end` come, and perhaps a FIN, from a sender of whom an RST was captured before."""
    if fin and end < own.reset.at - 1:
        _withdraw(order, own, own.reset.highest, "the FIN of the same peer has a lower sequence number")
    elif end > own.reset.at if fin else end > max(own.reset.at, own.reset.highest):
        _withdraw(order, own, own.reset.at, "more octets of the same peer follow")


def _withdraw(order: CausalOrder, own: Direction, offset: i64, reason: str) -> None:
    """The RST of `own` did not end its stream: who acknowledges more than `offset` has not taken it."""
    _report_ignored(order, own, own.reset.packet, own.reset.time, reason)
    order.sink.doubt(own.index, offset)
    own.reset = NO_RESET
    own.own_end().acknowledgement = -1
    own.aim()


def _report_ignored(order: CausalOrder, own: Direction, packet: i64, time: i64, reason: str) -> None:
    """An RST ended nothing."""
    order.sink.note(own.index, "capture/ignored", packet, time, f"an RST is ignored: {reason}")


def end_by_reset(order: CausalOrder, own: Direction) -> None:
    """Nothing more comes: the RST of `own`, if one stands, ends its stream."""
    if own.reset.at == UNKNOWN:
        return
    if own.ended:
        own.reset = NO_RESET
    elif own.next < own.reset.at and own.next > own.reset.highest and own.end.limit < 0:
        _withdraw(
            order,
            own,
            own.reset.highest,
            ("the octets after the RST do not reach the sequence number of the RST"),
        )
    else:
        if own.next < own.reset.at and own.end.limit < 0:
            order.gap(own, own.reset.at, own.reset.packet, own.reset.time)
        order.end(own, "rst", own.reset.packet, own.reset.time)
