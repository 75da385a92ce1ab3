"""Texts that are written in another order than they come, or after a number that is known only at the end.

A report lists the connections of a capture in the order in which they began, but connections end in any
order, and the head of the report says how many there are. Keeping all of them in memory until the end of the
capture takes gigabytes for some 100,000 connections, so their texts wait in a temporary file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO

from amqpscope.limits import BACKLOG_OCTETS

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
        self._file: IO[bytes] = io.BytesIO()
        self._end = 0
        self._places: list[int] = []

    def __len__(self) -> int:
        return len(self._places)

    def put(self, number: int, text: str) -> None:
        """Add a text. number: not negative."""
        octets = text.encode("utf-8", "surrogatepass")
        entry = len(octets).to_bytes(_SIZE_OCTETS, "big") + octets
        end = self._end + len(entry)
        if end > BACKLOG_OCTETS:
            self._write_to_disk(entry)
        else:
            self._file.write(entry)
        self._places.append(number << _PLACE_BITS | self._end)
        self._end = end

    def _write_to_disk(self, entry: bytes) -> None:
        """Add an entry to the temporary file, which begins with all that was in memory."""
        import tempfile  # takes long to load, and hardly a report is so large

        try:
            if isinstance(self._file, io.BytesIO):
                kept = self._file.getbuffer()
                self._file = tempfile.TemporaryFile()  # noqa: SIM115  see `close`
                self._file.write(kept)
            self._file.write(entry)
        except OSError as error:
            raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from error

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """All texts with their numbers. No more may be put in after that."""
        file = self._file
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
        self._file.close()
