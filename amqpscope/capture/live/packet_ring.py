"""A buffer that a packet socket shares with the kernel: a ring of blocks (TPACKET_V3).

The kernel fills a block with packets and hands it over when it is full or `_HAND_OVER` milliseconds old. The
blocks that were handed over come one behind the other; a block is copied and handed back at once.

Source: the kernel's Documentation/networking/packet_mmap.rst.
"""

import mmap
import socket
import struct
from typing import Final

__all__ = ["SOL_PACKET", "PacketRing", "packet_ring"]

SOL_PACKET: Final = 263
_RING: Final = 5  # PACKET_RX_RING
_STATISTICS: Final = 6  # PACKET_STATISTICS
_VERSION: Final = 10  # PACKET_VERSION
_VERSION_3: Final = 2  # TPACKET_V3

_BLOCK: Final = 256 * 1024  # octets
_FRAME: Final = 2048  # no more than a word that version 3 asks for
_HAND_OVER: Final = 40  # milliseconds
_USER: Final = 1  # TP_STATUS_USER: the block is ours


class PacketRing:
    """The ring of a socket, so many blocks in this memory."""

    def __init__(self, receiver: socket.socket, memory: mmap.mmap, blocks: int) -> None:
        self._receiver = receiver
        self._memory = memory
        self._blocks = blocks
        # The block that is ours next.
        self._position = 0
        # Blocks taken so far.
        self.taken = 0

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()

    @property
    def ready(self) -> bool:
        """Whether the kernel has handed a block over."""
        return self._is_ours(self._position)

    def full_blocks(self) -> int:
        """How many blocks the kernel has handed over."""
        full, free = 0, self._blocks + 1  # so many are, so many are not
        while free - full > 1:
            middle = (full + free) // 2
            if self._is_ours((self._position + middle - 1) % self._blocks):
                full = middle
            else:
                free = middle
        return full

    def fill(self) -> float:
        """How full the ring is, from 0 to 1."""
        return self.full_blocks() / self._blocks

    def next_block(self) -> tuple[bytes, int, int] | None:
        """A copy of the next block, where in it the first packet is, and how many packets it has. The block
        is given back.

        None: the kernel has handed none over.
        """
        start = self._position * _BLOCK
        status, count, first, length = struct.unpack_from("=4I", self._memory, start + 8)
        if not status & _USER:
            return None
        block = self._memory[start : start + min(length, _BLOCK)]
        struct.pack_into("=I", self._memory, start + 8, 0)
        self.taken += 1
        self._position = (self._position + 1) % self._blocks
        return block, first, count

    def statistics(self) -> tuple[int, int]:
        """How many packets came, and how many of them the kernel dropped, since it was asked last."""
        arrived, dropped = struct.unpack_from("=2I", self._receiver.getsockopt(SOL_PACKET, _STATISTICS, 12))
        return arrived, dropped

    def _is_ours(self, position: int) -> bool:
        status: int = struct.unpack_from("=I", self._memory, position * _BLOCK + 8)[0]
        return status & _USER != 0


def packet_ring(receiver: socket.socket, octets: int) -> PacketRing:
    """Give a packet socket a ring of about so many octets. Raises OSError."""
    blocks = max(octets // _BLOCK, 2)
    frames = _BLOCK // _FRAME * blocks
    receiver.setsockopt(SOL_PACKET, _VERSION, _VERSION_3)
    size = struct.pack("=7I", _BLOCK, blocks, _FRAME, frames, _HAND_OVER, 0, 0)
    receiver.setsockopt(SOL_PACKET, _RING, size)
    return PacketRing(receiver, mmap.mmap(receiver.fileno(), _BLOCK * blocks), blocks)
