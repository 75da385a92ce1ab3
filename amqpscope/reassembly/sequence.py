"""TCP sequence numbers (RFC 9293, section 3.4) as absolute stream offsets.

A sequence number has 32 bits and starts anywhere, so by itself it names infinitely many places of a
stream. Beside a place known to be near, it names one. Everything above this module counts in offsets:
plain integers that never wrap, 0 for the first octet after SYN.
"""

from typing import Final

from dissectors.wire import i64

__all__ = ["NOWHERE_NEAR", "SEQUENCE_MASK", "UNKNOWN", "sequence_number", "unwrap"]

SEQUENCE_MASK: Final = 0xFFFFFFFF

# mypyc: sentinel, an acknowledgement that a segment did not carry. Real offsets may be below 0, never here.
UNKNOWN: Final = -0x4000000000000000

# An offset that nobody acknowledges.
NOWHERE_NEAR: Final = 0x4000000000000000

_HALF: Final = 0x80000000
_ALL: Final = 0x100000000


def unwrap(raw: i64, origin: i64, near: i64) -> i64:
    """The offset nearest to the offset `near` whose sequence number is `raw`.

    `origin` is the sequence number of offset 0. The answer lies in [near - 2**31, near + 2**31), and
    is negative for what was sent before the origin. Only the low 32 bits of `raw` and `origin` count.
    """
    ahead: i64 = (raw - origin - near) & SEQUENCE_MASK
    if ahead >= _HALF:
        ahead -= _ALL
    return near + ahead


def sequence_number(offset: i64, origin: i64) -> i64:
    """The 32-bit sequence number of the octet at `offset` of the stream whose offset 0 has `origin`."""
    return (origin + offset) & SEQUENCE_MASK
