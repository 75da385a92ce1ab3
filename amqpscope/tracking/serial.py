"""Serial numbers of 32 bits (RFC 1982) as counts that never wrap.

transfer-ids, delivery-ids and delivery-counts go up by one and wrap at 2^32. Compared raw they lie at
every wrap; and RFC 1982's own comparison is undefined at a distance of 2^31, which credit and windows
(up to 2^32 - 1) exceed. So each is turned, once, into the count nearest to one that is known, and
from then on compared as the plain number it is.
"""

from dissectors.wire import i64

__all__ = ["nearest", "raw"]


def raw(count: i64) -> i64:
    """The 32 bits that stand for a count on the wire."""
    return count & 0xFFFFFFFF


def nearest(serial: i64, reference: i64) -> i64:
    """The count that `serial` (32 bits) stands for nearest to `reference`.

    At a distance of exactly 2^31, which RFC 1982 leaves undefined, the one above.
    """
    distance = (serial - reference) & 0xFFFFFFFF
    if distance > 0x80000000:
        distance -= 0x100000000
    return reference + distance
