"""What a record of TLS looks like from outside."""

import re
from typing import Final

from amqpscope.limits import MAX_TLS_RECORD

__all__ = ["HEADER", "LIKELY", "SMALLEST", "plausible"]

HEADER: Final = 5
"""Octets of the header of a record: type, version, size of the body."""

SMALLEST: Final = 22
"""Octets of the smallest protected record: its header, a type, a tag."""

LIKELY: Final = re.compile(rb"[\x14-\x18]\x03[\x01-\x03][\x00-\x48]")
"""How the header of a record begins."""


def plausible(buf: bytes | bytearray, pos: int) -> bool:
    """Whether the five octets there may be the header of a record."""
    size = buf[pos + 3] << 8 | buf[pos + 4]
    return 20 <= buf[pos] <= 24 and buf[pos + 1] == 3 and buf[pos + 2] <= 4 and 0 < size <= MAX_TLS_RECORD
