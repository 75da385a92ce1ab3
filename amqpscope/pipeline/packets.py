"""Packets of several files in one number.

A connection runs through the files of a capture set, and its evidence names packets by one number each. So
the packets of file `position` are counted from `position << 40` on: the reader is told to begin there, and
all that comes out of the analysis is split again into the file and the number that Wireshark shows for it.
"""

__all__ = ["MAX_FILES", "first_number", "in_text", "split"]

_BITS = 40  # 2**40 packets of 16 octets are more than any file holds
MAX_FILES = 1 << (62 - _BITS)


def first_number(position: int) -> int:
    """What the packets of the file at this place of its set are counted from."""
    return position << _BITS


def split(packet: int) -> tuple[int, int]:
    """(place of the file, number in the file)."""
    return packet >> _BITS, packet & ((1 << _BITS) - 1)


def in_text(text: str, packets: list[int]) -> str:
    """A sentence that names some of these packets, with their numbers in their files."""
    for packet in packets:
        position, number = split(packet)
        if position:
            text = text.replace(str(packet), str(number))
    return text
