"""The masked octets of all streams of a capture, by their place, in a temporary file."""

import tempfile
from array import array
from bisect import bisect_right

from amqpscope.errors import CaptureError
from amqpscope.limits import MAX_ANONYMISED

__all__ = ["Overlay"]


class _Stream:
    """The pieces of one direction: offset in the stream, size, and where the octets are in the file."""

    def __init__(self) -> None:
        self.offsets = array("q")
        self.sizes = array("q")
        self.places = array("q")
        self.sorted = True


class Overlay:
    """Takes pieces of streams in any order, and gives the octets of any span.

    unread: octets given so far for which there was no piece. Raises CaptureError if the temporary file cannot
    be written.
    """

    def __init__(self) -> None:
        self.unread = 0
        self._file = tempfile.TemporaryFile(prefix="amqpscope-")  # noqa: SIM115  closed by `close`
        self._end = 0
        self._streams: dict[tuple[int, int], _Stream] = {}

    def put(self, stream: int, direction: int, offset: int, octets: bytes) -> None:
        """The octets from `offset` on of one direction of a connection."""
        if not octets:
            return
        if self._end + len(octets) > MAX_ANONYMISED:
            raise CaptureError(f"more than {MAX_ANONYMISED >> 30} GiB to anonymise: choose a part")
        try:
            self._file.seek(self._end)
            self._file.write(octets)
        except OSError as error:
            raise CaptureError(f"temporary file: {error.strerror or error}") from error
        one = self._streams.setdefault((stream, direction), _Stream())
        if len(one.offsets):
            last = one.offsets[-1] + one.sizes[-1]
            if last == offset and one.places[-1] + one.sizes[-1] == self._end:
                one.sizes[-1] += len(octets)
                self._end += len(octets)
                return
            one.sorted = one.sorted and last <= offset
        one.offsets.append(offset)
        one.sizes.append(len(octets))
        one.places.append(self._end)
        self._end += len(octets)

    def get(self, stream: int, direction: int, offset: int, otherwise: bytes) -> bytes:
        """As many octets from `offset` on as `otherwise` has, which are given where there is no piece."""
        size = len(otherwise)
        one = self._streams.get((stream, direction))
        if one is None:
            self.unread += size
            return otherwise
        found = bytearray(otherwise)
        if not one.sorted:
            _sort(one)
        filled = 0
        at = max(bisect_right(one.offsets, offset) - 1, 0)
        while at < len(one.offsets) and one.offsets[at] < offset + size:
            begin = max(one.offsets[at], offset)
            end = min(one.offsets[at] + one.sizes[at], offset + size)
            if begin < end:
                self._file.seek(one.places[at] + begin - one.offsets[at])
                found[begin - offset : end - offset] = self._file.read(end - begin)
                filled += end - begin
            at += 1
        self.unread += max(size - filled, 0)
        return bytes(found)

    def extent(self, stream: int, direction: int) -> int:
        """How many octets of one direction there are from its first one on, up to one that is missing."""
        one = self._streams.get((stream, direction))
        if one is None:
            return 0
        if not one.sorted:
            _sort(one)
        end = 0
        for offset, size in zip(one.offsets, one.sizes, strict=True):
            if offset > end:
                break
            end = max(end, offset + size)
        return end

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _sort(one: _Stream) -> None:
    """In order, and each octet once: of what overlaps, what begins earlier stays, then what came first."""
    offsets, sizes, places = array("q"), array("q"), array("q")
    end = 0
    for at in sorted(range(len(one.offsets)), key=one.offsets.__getitem__):
        known = max(end - one.offsets[at], 0) if offsets else 0
        if known < one.sizes[at]:
            offsets.append(one.offsets[at] + known)
            sizes.append(one.sizes[at] - known)
            places.append(one.places[at] + known)
            end = offsets[-1] + sizes[-1]
    one.offsets, one.sizes, one.places = offsets, sizes, places
    one.sorted = True
