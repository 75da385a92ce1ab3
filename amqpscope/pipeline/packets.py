"""Packets of several files in one number.

A connection runs through the files of a capture set, and its evidence names packets by one number each. So
the packets of file `position` are counted from `position << 40` on: the reader is reported to begin there,
and all that comes out of the analysis is split again into the file and the number that Wireshark shows for
it.
"""

import re
from typing import Final

from dissectors.wire import i64

__all__ = ["MAX_FILES", "first_number", "in_text", "split"]

_NAMED = re.compile("(?<=packet )[0-9]+")
_BITS: Final = 40  # 2**40 packets of 16 octets are more than any file holds
_NUMBER: Final = 2**40 - 1
MAX_FILES = 1 << (62 - _BITS)


def first_number(position: int) -> int:
    """What the packets of the file at this place of its set are counted from."""
    return position << _BITS


def split(packet: i64) -> tuple[i64, i64]:
    """(place of the file, number in the file)."""
    return packet >> _BITS, packet & _NUMBER


def in_text(text: str, packets: list[int], captures: list[str]) -> str:
    """A sentence that names some of these packets, with their numbers in their files.

    Of packets in another file than the first one's it says in which. captures: the files, by their places.
    """
    numbers: dict[str, str] = {}
    for packet in packets:
        position, number = split(packet)
        other = position != split(packets[0])[0]
        numbers[str(packet)] = (
            f"{number} of {captures[position].rpartition('/')[2]}" if other else str(number)
        )
    return _NAMED.sub(lambda found: numbers.get(found[0], found[0]), text)
