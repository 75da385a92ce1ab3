"""One number of a conversation is written as another one.

    with counting() as written:
        scenario.dialogue()
    len(written.widths)                              how many numbers it has, and of how many octets each
    with another(3, 2**63):                          the fourth of them is this one
        scenario.dialogue()

The encoders write every number of fixed width with `fixed`: fields of frames and values, and the sizes and
counts around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

__all__ = ["LARGE", "another", "counting", "fitting", "fixed", "replaced"]

LARGE = (0, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
"""What any number of the wire may be."""


class Numbers:
    """The numbers written so far: of how many octets each is. place: of the one that is another one."""

    def __init__(self, place: int = -1, number: int = 0) -> None:
        self.place = place
        self.number = number
        self.widths: list[int] = []


_now = Numbers()


def replaced(width: int) -> bytes | None:
    """A number is written that may take so many octets: what stands in its place, None if it stays."""
    _now.widths.append(width)
    if len(_now.widths) - 1 != _now.place:
        return None
    # (A dialogue that says less than when its numbers were counted may have a smaller one there.)
    return min(_now.number, (1 << 8 * width) - 1).to_bytes(width, "big")


def fixed(octets: bytes) -> bytes:
    """A number is written with these octets: those that are written."""
    instead = replaced(len(octets))
    return octets if instead is None else instead


def fitting(width: int) -> list[int]:
    """What a number of so many octets may be: of the large ones those that it can be, and its largest."""
    most = (1 << 8 * width) - 1
    return sorted({min(number, most) for number in LARGE})


@contextmanager
def _in_force(numbers: Numbers) -> Iterator[Numbers]:
    global _now
    before, _now = _now, numbers
    try:
        yield numbers
    finally:
        _now = before


def counting() -> AbstractContextManager[Numbers]:
    """Within, the numbers that are written are counted."""
    return _in_force(Numbers())


def another(place: int, number: int) -> AbstractContextManager[Numbers]:
    """Within, the number at this place, of all that are written, is another one."""
    return _in_force(Numbers(place, number))
