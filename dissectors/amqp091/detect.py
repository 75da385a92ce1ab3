"""How AMQP 0-9-1 begins, and how its frames are recognised where a segment begins.

What is detected from some octets holds for any longer beginning of the same stream.
"""

from typing import Final

from dissectors.detect import MORE, UNDECODED, UNKNOWN
from dissectors.wire import i64, u16, u32

__all__ = ["BEGINS", "has_frames", "opening"]

BEGINS: Final = "begins"
"""A stream of AMQP 0-9-1 begins so."""

# The numbers of the classes: connection to queue, basic, confirm, tx; access of 0-8.
_CLASSES: Final = (10, 20, 30, 40, 50, 60, 85, 90)

# A frame whose end was not captured yet is believed up to this size: the default of every broker.
_MAX_FRAME: Final = 131_072


def opening(buf: bytes) -> str:
    """What begins with these octets, six at least: BEGINS, the name of AMQP 0-8, MORE or UNKNOWN."""
    size: i64 = len(buf)
    found = _start(buf, size)
    if found != UNKNOWN:
        return found
    if _begins(buf, 0, size):
        return BEGINS
    return MORE if size < 11 and buf[0] in (1, 2, 8) else UNKNOWN


def has_frames(buf: bytes, at: i64, end: i64) -> bool:
    """Whether AMQP 0-9-1 frames begin at `at`: type, channel, size, body, 0xCE.

    A body is only believed when another frame follows it, and no frame when its end is there and wrong.
    """
    count: i64 = 0
    while end - at >= 8:
        kind: i64 = buf[at]
        behind = at + 8 + u32(buf, at + 3)
        if kind == 0 or (kind > 3 and kind != 8) or (behind <= end and buf[behind - 1] != 0xCE):
            return False
        if kind != 3:
            return _begins(buf, at, end)
        count += 1
        if behind > end:
            return False
        if count == 2:
            return True
        at = behind
    return False


def _start(buf: bytes, size: i64) -> str:
    """What a server of AMQP 0-9-1 or 0-8 says first: connection.start on channel 0, with its version."""
    if not buf.startswith(b"\x01\x00\x00") or u16(buf, 3) > 1:
        return UNKNOWN
    method = buf[7:11]
    if method != b"\x00\x0a\x00\x0a":
        return MORE if size < 11 and b"\x00\x0a\x00\x0a".startswith(method) else UNKNOWN
    if size < 12:
        return MORE
    return UNDECODED["AMQP 0-8"] if buf[11] == 8 else BEGINS


def _begins(buf: bytes, at: i64, end: i64) -> bool:
    """Whether a method, a content header or a heartbeat of AMQP 0-9-1 begins at `at`.

    They have enough fixed octets to be believed without their end: class and method, class and weight, all.
    """
    if end - at < 8:
        return False
    kind: i64 = buf[at]
    size = u32(buf, at + 3)
    if kind == 8:
        return u16(buf, at + 1) == 0 and size == 0 and buf[at + 7] == 0xCE
    if (kind != 1 and kind != 2) or end - at < 11 or size < 4 or size > _MAX_FRAME:
        return False
    detail = u16(buf, at + 9)
    return u16(buf, at + 7) in _CLASSES and (detail < 128 if kind == 1 else detail == 0)
