"""Texts that are written in another order than they come, or after a number that is known only at the end.

A report lists the connections of a capture in the order in which they began, but connections end in any
order, and the head of the report says how many there are. Keeping all of them in memory until the end of the
capture takes gigabytes for some 100,000 connections, so their texts wait in a temporary file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from amqpscope.limits import BACKLOG_OCTETS

if TYPE_CHECKING:
    from tempfile import SpooledTemporaryFile

__all__ = ["Backlog"]

# A place in the file is the lower part of an entry, the number by which texts are ordered the upper one.
_PLACE_BITS = 48
_SIZE_OCTETS = 6


class Backlog:
    """Texts with numbers, returned in the order of their numbers; texts of one number come in their own
    order.

    Up to `BACKLOG_OCTETS` of text stay in memory. If there is more, all of it goes to a temporary file, which
    has no name and disappears with the process. Each text takes some 50 further octets of memory. Raises
    OSError with the name of the folder for temporary files when that folder is full.
    """

    def __init__(self) -> None:
        # There is none before the first text.
        self._file: SpooledTemporaryFile[bytes] | None = None
        self._end = 0
        self._places: list[int] = []

    def __len__(self) -> int:
        return len(self._places)

    def put(self, number: int, text: str) -> None:
        """Add a text. number: not negative."""
        import tempfile

        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(max_size=BACKLOG_OCTETS)  # noqa: SIM115  see `close`
        octets = text.encode("utf-8", "surrogatepass")
        try:
            self._file.write(len(octets).to_bytes(_SIZE_OCTETS, "big") + octets)
        except OSError as error:
            raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from error
        self._places.append(number << _PLACE_BITS | self._end)
        self._end += _SIZE_OCTETS + len(octets)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """All texts with their numbers. No more may be put in after that."""
        file = self._file
        if file is None:
            return
        self._places.sort()
        at = -1
        for place in self._places:
            number, offset = place >> _PLACE_BITS, place & (1 << _PLACE_BITS) - 1
            if offset != at:
                file.seek(offset)
            size = int.from_bytes(file.read(_SIZE_OCTETS), "big")
            at = offset + _SIZE_OCTETS + size
            yield number, file.read(size).decode("utf-8", "surrogatepass")

    def close(self) -> None:
        """Drop all texts."""
        if self._file is not None:
            self._file.close()
