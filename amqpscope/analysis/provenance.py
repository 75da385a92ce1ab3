"""Which packet brought an octet of a stream, when, and what its sender had acknowledged by then.

Kept only for octets that belong to no finished frame yet, so it is short: one entry a segment.
"""

from amqpscope.reassembly.provenance import Provenance
from dissectors.wire import i64

__all__ = ["OctetProvenance"]


class OctetProvenance:
    """Entries in the order of the stream; an entry holds from its offset to that of the next."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.entries: list[Provenance] = []

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offset: i64, provenance: Provenance) -> None:
        """From `offset` (above all earlier ones) on, this holds."""
        self.offsets.append(offset)
        self.entries.append(provenance)

    def at(self, offset: i64) -> Provenance:
        """The entry that holds at `offset`; the first for what lies before it."""
        return self.entries[self._find(offset)]

    def _find(self, offset: i64) -> i64:
        low: i64 = 0
        high: i64 = len(self.offsets)
        while high - low > 1:
            middle = (low + high) // 2
            if self.offsets[middle] <= offset:
                low = middle
            else:
                high = middle
        return low

    def forget(self, offset: i64) -> None:
        """Nothing before `offset` will be asked for any more."""
        last = self._find(offset)
        if last > 0:
            del self.offsets[:last]
            del self.entries[:last]

    def thin(self, offset: i64) -> None:
        """Before `offset`, only the first entry will be asked for."""
        last = self._find(offset)
        if last > 1:
            del self.offsets[1:last]
            del self.entries[1:last]

    def clear(self) -> None:
        """Forget all."""
        self.offsets = []
        self.entries = []

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (tuple(self.offsets), tuple(entry.dump() for entry in self.entries))

    @staticmethod
    def load(state: tuple[object, ...]) -> "OctetProvenance":
        """The object of what `dump` returned."""
        evidence = OctetProvenance()
        offsets, entries = state
        assert isinstance(offsets, tuple) and isinstance(entries, tuple)
        evidence.offsets = list(offsets)
        evidence.entries = [Provenance(*entry) for entry in entries]
        return evidence
