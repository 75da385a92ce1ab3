"""Serial numbers of 32 bits (RFC 1982) as counts that never wrap.

transfer-ids, delivery-ids and delivery-counts increase by one and wrap at 2^32. A raw comparison is wrong at
every wrap. RFC 1982's own comparison is undefined at a distance of 2^31, which credit and windows (up to 2^32
- 1) exceed. Each number is therefore converted once, into the count that is nearest to a known count, and
compared as a plain number from then on.
"""

from dissectors.wire import i64

__all__ = ["nearest", "raw"]


def raw(count: i64) -> i64:
    """The 32 bits that represent a count on the wire."""
    return count & 0xFFFFFFFF


def nearest(serial: i64, reference: i64) -> i64:
    """The count nearest to `reference` that `serial` (32 bits) can represent.

    At a distance of exactly 2^31, which RFC 1982 leaves undefined, the count above.
    """
    distance = (serial - reference) & 0xFFFFFFFF
    if distance > 0x80000000:
        distance -= 0x100000000
    return reference + distance
