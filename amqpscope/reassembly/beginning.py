"""Where the stream of one direction begins.

A stream begins behind its SYN if that was captured. If not, at the direction's first segment, whatever the
other side acknowledged before: octets between are the past of a capture that began in the middle, not a loss,
and a later acknowledgement of the past counts as 0. The rule looks at this direction only, so again a shift
changes nothing. One exception: if the *other* side's SYN was captured, and what came next of it, its
acknowledgement there names the begin of this stream, though its SYN was lost. Until a direction shows, the
other side's data wait for it (they could not be given an offset to acknowledge). An empty first segment can
be a keep-alive, one before the next octet; if data follow one octet further, the stream begins there.
"""

from typing import Final

from amqpscope.limits import REASSEMBLY_REORDER_SEGMENTS
from amqpscope.reassembly.direction import Direction
from amqpscope.reassembly.sequence import unwrap
from dissectors.wire import i64

__all__ = ["begin_stream", "settled_offset"]

# TCP flag bits (RFC 9293, section 3.1).
_FLAG_SYN: Final = 0x02
_FLAG_RST: Final = 0x04


def begin_stream(own: Direction, other: Direction, seq: i64, flags: i64, size: i64) -> None:
    """The first segment of a direction: settles its origin."""
    own.seen = True
    if flags & _FLAG_SYN:
        _settle(own, other, seq + 1)
    elif not own.start.known:
        own.start.midstream = True
        own.set_origin(seq)
        own.start.empty = size == 0
    else:
        ahead: i64 = unwrap(seq, own.origin, 0)
        if own.start.opened and own.next == 0 and ahead >= 0:
            pass  # the other side's first acknowledgement was that of our SYN
        elif flags & _FLAG_RST:
            own.start.midstream = True  # its number may be taken from the other side's acknowledgement
        else:
            own.start.midstream = True
            own.start.empty = size == 0
            _settle(own, other, seq)
    own.aim()


def _settle(own: Direction, other: Direction, sequence: i64) -> None:
    """Offset 0 has this sequence number, if nothing was said yet that rests on another one."""
    if not own.start.known:
        own.set_origin(sequence)
    elif own.next == 0:
        _rebase(own, other, unwrap(sequence, own.origin, 0))


def _rebase(own: Direction, other: Direction, by: i64) -> None:
    own.rebase(by)
    own.aim()
    other.waiting.move_acks(by)


def settled_offset(own: Direction, other: Direction, offset: i64, size: i64) -> i64:
    """A segment elsewhere than at the first one's place, when nothing was passed on from the middle yet.

    Returns its offset, after the origin was moved to it if it belongs there.
    """
    if offset == 1 and own.start.empty and own.waiting.count() == 0:
        pass  # the empty first segment was a keep-alive
    elif (
        offset < 0
        and other.next == 0
        and own.segments <= REASSEMBLY_REORDER_SEGMENTS
        and size > (1 if offset == -1 else 0)
    ):
        pass  # octets from before a first segment that was late
    else:
        return offset
    _rebase(own, other, offset)
    own.start.empty = False
    return 0
