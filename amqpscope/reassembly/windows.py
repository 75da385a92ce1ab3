"""When a sender could not write: what its receiver's window and resent octets show (see `stalls`).

A window is looked at where its field is below 8 (the smallest frame has 8 octets), and while a sender is
stalled. Both are off the fast path.
"""

from typing import Final

from amqpscope.capture.segment import UNKNOWN_WINDOW, Segment
from amqpscope.reassembly.direction import Direction
from amqpscope.reassembly.stalls import NEVER, RESENT, WINDOW
from dissectors.wire import i64

__all__ = ["ROOM", "look_at_window", "note_resent", "stall"]

# Octets of the smallest frame of either protocol. A window that leaves less room lets nothing be said.
ROOM: Final = 8

_NO_SCALE: Final = 16  # of a SYN without the window scale option

_FLAG_SYN: Final = 0x02  # RFC 9293, section 3.1


def look_at_window(own: Direction, other: Direction, segment: Segment, acknowledged: i64) -> None:
    """What a segment of `own`, that acknowledges so much, lets the sender of `other` write."""
    window: i64 = segment.window
    if segment.flags & _FLAG_SYN:
        scale: i64 = window >> 16
        own.start.scale = scale if scale <= _NO_SCALE else 0
        return
    cause: i64 = other.stalls.cause
    other.stalls.seen = segment.time
    if window == UNKNOWN_WINDOW or acknowledged < other.acked:
        return  # the second: it is older than what was captured before
    if _room(own, other, window & 0xFFFF) < ROOM:
        if cause != WINDOW:
            stall(other, own, WINDOW, segment.packet, segment.time)
    elif cause == WINDOW or (cause == RESENT and acknowledged > other.stalls.acknowledged):
        stall(other, own, NEVER, segment.packet, segment.time)


def _room(own: Direction, other: Direction, window: i64) -> i64:
    """How many octets the window of `own` leaves for new ones of `other`."""
    if own.start.scale == 0 or other.start.scale == 0:
        return 0 if window == 0 else ROOM
    if own.start.scale != _NO_SCALE and other.start.scale != _NO_SCALE:
        # Neither is scaled unless both SYNs have the option (RFC 7323, section 2.2).
        window <<= own.start.scale - 1
    return other.acked + window - max(other.next, other.acked)


def note_resent(own: Direction, other: Direction, packet: i64, time: i64, acknowledged: bool) -> None:
    """Octets came again. acknowledged: what was captured of the other side acknowledges them."""
    if not other.seen or own.copies.in_hand or own.stalls.cause != NEVER:
        return
    if acknowledged:
        # Their sender has not heard that yet: so the clock of its direction says.
        own.stalls.extend(packet, time, max(own.high, own.waiting_end()))
    else:
        stall(own, other, RESENT, packet, time)


def stall(own: Direction, other: Direction, cause: i64, packet: i64, time: i64) -> None:
    """From now on this keeps the sender of `own` from writing; NEVER: it can write again."""
    if own.stalls.cause != NEVER:
        own.stalls.end(time)
    if cause != NEVER:
        stalls = own.stalls
        last = stalls.last(time)
        same: bool = last is not None and last.cause == WINDOW and stalls.acknowledged == own.acked
        if cause == WINDOW and same:
            stalls.resume()
        else:
            stalls.begin(cause, packet, time, max(own.high, own.waiting_end()))
        stalls.acknowledged = own.acked
    watched: bool = own.stalls.cause != NEVER or other.stalls.cause != NEVER
    for one in (own, other):
        one.stalls.watched = watched
        one.aim()
