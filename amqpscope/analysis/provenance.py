"""Which packet brought an octet of a stream, when, and what its sender had acknowledged by then.

Kept only for octets that belong to no finished frame yet, so it is short: one entry a segment.
"""

from dissectors.wire import i64

__all__ = ["OctetProvenance"]


class OctetProvenance:
    """Entries in the order of the stream; an entry holds from its offset to that of the next."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.packets: list[int] = []
        self.times: list[int] = []
        self.acknowledged: list[int] = []

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offset: i64, packet: i64, time: i64, acknowledged: i64) -> None:
        """From `offset` (above all earlier ones) on, these hold."""
        self.offsets.append(offset)
        self.packets.append(packet)
        self.times.append(time)
        self.acknowledged.append(acknowledged)

    def find(self, offset: i64) -> i64:
        """The index of the entry that holds at `offset`; the first for what lies before it."""
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
        last = self.find(offset)
        if last > 0:
            del self.offsets[:last]
            del self.packets[:last]
            del self.times[:last]
            del self.acknowledged[:last]

    def thin(self, offset: i64) -> None:
        """Before `offset`, only the first entry will be asked for."""
        last = self.find(offset)
        if last > 1:
            del self.offsets[1:last]
            del self.packets[1:last]
            del self.times[1:last]
            del self.acknowledged[1:last]

    def clear(self) -> None:
        """Forget all."""
        self.offsets = []
        self.packets = []
        self.times = []
        self.acknowledged = []

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (tuple(self.offsets), tuple(self.packets), tuple(self.times), tuple(self.acknowledged))

    @staticmethod
    def load(state: tuple[object, ...]) -> "OctetProvenance":
        """What `dump` gave, as an object again."""
        evidence = OctetProvenance()
        offsets, packets, times, acknowledged = state
        assert isinstance(offsets, tuple) and isinstance(packets, tuple)
        assert isinstance(times, tuple) and isinstance(acknowledged, tuple)
        evidence.offsets = list(offsets)
        evidence.packets = list(packets)
        evidence.times = list(times)
        evidence.acknowledged = list(acknowledged)
        return evidence
