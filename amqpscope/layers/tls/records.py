"""What a record of TLS looks like from outside."""

import re
from heapq import heappop, heappush
from typing import Final

from amqpscope.limits import MAX_TLS_RECORD
from dissectors.wire import i64

__all__ = ["HEADER", "SMALLEST", "Candidates", "plausible"]

HEADER: Final = 5
"""Octets of the header of a record: type, version, size of the body."""

SMALLEST: Final = 22
"""Octets of the smallest protected record: its header, a type, a tag."""

_LIKELY: Final = re.compile(rb"[\x14-\x18]\x03[\x01-\x03][\x00-\x48]")
"""How the header of a record begins."""


def plausible(buf: bytes | bytearray, pos: int) -> bool:
    """Whether the five octets there may be the header of a record."""
    size = buf[pos + 3] << 8 | buf[pos + 4]
    return 20 <= buf[pos] <= 24 and buf[pos + 1] == 3 and buf[pos + 2] <= 4 and 0 < size <= MAX_TLS_RECORD


class Candidates:
    """Where a record may begin in a stream that is searched from an offset on.

    What looks like a record and is not whole may be none, so it holds up no other one.
    """

    def __init__(self, offset: i64) -> None:
        # Up to here they were looked for.
        self._sought: i64 = offset
        # Those that are not whole, as a heap: where each ends, and where it begins.
        self._begun: list[tuple[int, int]] = []

    def take_whole(self, held: bytes, at: i64) -> list[int]:
        """The offsets of those that are whole now, each once. held: the octets from the offset `at` on."""
        end = at + len(held)
        whole: list[int] = []
        while self._begun and self._begun[0][0] <= end:
            whole.append(heappop(self._begun)[1])
        pos = max(self._sought - at, 0)
        while True:
            match = _LIKELY.search(held, pos)
            if match is None:
                pos = max(pos, len(held) - HEADER)
                break
            pos = match.start()
            if len(held) - pos < HEADER:
                break
            if plausible(held, pos):
                behind = at + pos + HEADER + (held[pos + 3] << 8 | held[pos + 4])
                if behind > end:
                    heappush(self._begun, (int(behind), int(at + pos)))
                else:
                    whole.append(int(at + pos))
            pos += 1
        self._sought = at + pos
        return sorted(whole)

    def needed(self, end: i64) -> i64:
        """From which offset on octets are needed. end: of those that there are."""
        if self._begun:
            return max(end - HEADER - MAX_TLS_RECORD, 0)
        return self._sought
