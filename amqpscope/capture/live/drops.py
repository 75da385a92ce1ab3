"""Packets that the kernel dropped: how many, and where among the packets that came.

Theory of operation. Packets are dropped while all blocks of the ring are full, so between the last full one
and the next. The count is asked for before each block is taken, and where it has grown, the loss stands
behind the blocks that are full then. If packets have come since, in a block handed back meanwhile, they bear
a mark, for which the loss is moved before them; but one packet of several stays, since there may have been a
loss behind them, too.
"""

__all__ = ["DroppedPackets"]


class DroppedPackets:
    """The packets dropped, by the place of the interface of the packet that came before them."""

    def __init__(self, interfaces: int) -> None:
        self._by_interface = [0] * interfaces
        # Packets dropped that have no place yet, by the number of blocks that come before their place.
        self._pending: list[tuple[int, int]] = []
        # The last block that packets are known to be dropped before.
        self._explained = -1

    @property
    def total(self) -> int:
        """All that have a place."""
        return sum(self._by_interface)

    def of(self, interface: int) -> int:
        """Those behind a packet of this interface."""
        return self._by_interface[interface] if interface < len(self._by_interface) else 0

    def expect(self, blocks: int, count: int) -> None:
        """So many packets were dropped behind the first so many blocks."""
        self._pending.append((blocks, count))

    def reach(self, blocks: int, interface: int) -> bool:
        """So many blocks are walked, the last packet of this interface. Whether a loss stands there."""
        found = False
        while self._pending and self._pending[0][0] <= blocks:
            self._place(self._pending.pop(0)[1], interface)
            self._explained = blocks
            found = True
        return found

    def move(self, blocks: int, interface: int) -> bool:
        """The next packet, behind so many blocks, is marked. Whether a loss that had no place stands before
        it now."""
        if not self._pending or self._explained == blocks:
            return False
        place, count = self._pending.pop(0)
        if count > 1:
            self._pending.insert(0, (place, 1))
        self._place(max(count - 1, 1), interface)
        return True

    def _place(self, count: int, interface: int) -> None:
        while len(self._by_interface) <= interface:
            self._by_interface.append(0)
        self._by_interface[interface] += count
