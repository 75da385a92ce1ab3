"""What the kernel had no room for is announced where it is missing: with a kernel made up for it.

It keeps the real one's rules: packets go into a block until it is full or old; then into the next, if that
was handed back, and are dropped and counted as long as it was not. While the count is above 0, packets are
marked. Asking for it takes it back to 0. All that happens at any moment between two steps of whoever reads.
"""

from __future__ import annotations

import struct
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.loopback import refusal
from support.sampling import examples, thorough

if sys.platform != "linux":
    pytest.skip("packet sockets are Linux's", allow_module_level=True)

from amqpscope.capture.live.opening import open_source
from amqpscope.capture.live.packet_ring import PacketRing
from amqpscope.capture.live.ring import RingSource
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.recorder import Packet, PacketRecorder
from amqpscope.capture.sink import SegmentSink

if "permission" in refusal(lambda: open_source(["lo"])):
    pytest.skip("there is no permission to capture", allow_module_level=True)

BLOCK = 256 * 1024
BLOCKS = 5
FIRST = 48
LOSING = 4


class Memory(bytearray):
    """What is cut out of it is `bytes`, as of the kernel's."""

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        found = super().__getitem__(place)
        return bytes(found) if isinstance(found, bytearray) else found


class Kernel:
    """Puts packets in the ring, or drops them. sent: how many; accepted: the numbers of those put in."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self.ring = Memory(BLOCK * BLOCKS)
        self._position = 0
        self._open: list[bytes] = []
        self._count = 0
        self.sent = 0
        self.accepted: list[int] = []

    def happen(self, steps: int) -> None:
        """Some packets come, and some time goes by."""
        for _ in range(self._random.randrange(steps)):
            if self._random.random() < 0.3:
                self.hand_over()
            else:
                self._packet()

    def hand_over(self) -> None:
        """The block that is being filled is old enough."""
        if not self._open:
            return
        octets = b"".join(self._open[:-1]) + struct.pack("=I", 0) + self._open[-1][4:]
        start = self._position * BLOCK
        self.ring[start + FIRST : start + FIRST + len(octets)] = octets
        struct.pack_into("=4I", self.ring, start + 8, 1, len(self._open), FIRST, FIRST + len(octets))
        self._position = (self._position + 1) % BLOCKS
        self._open = []

    def _packet(self) -> None:
        number = self.sent
        self.sent += 1
        if not self._open and struct.unpack_from("=I", self.ring, self._position * BLOCK + 8)[0]:
            self._count += 1
            return
        self.accepted.append(number)
        octets = bytes(12) + struct.pack("!HI", 0x0806, number)
        status = 1 | (LOSING if self._count else 0)
        header = struct.pack("=6I2H16x", 112, 1, 1, len(octets), len(octets), status, 84, 98)
        self._open.append((header + struct.pack("=HHiHBB8x", 17, 0, 7, 772, 0, 6)).ljust(84, b"\0") + octets)
        self._open[-1] = self._open[-1].ljust(112, b"\0")

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        self.happen(4)
        reported = struct.pack("=3I", 0, self._count, 0)
        self._count = 0
        return reported


class MadeUpRing(PacketRing):
    """The ring of the kernel that is made up."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, kernel.ring, BLOCKS)  # type: ignore[arg-type]
        self._kernel = kernel

    def next_block(self) -> tuple[bytes, int, int] | None:
        self._kernel.happen(4)
        found = super().next_block()
        self._kernel.happen(4)
        return found


class Numbers(PacketRecorder):
    def __init__(self) -> None:
        self.all: list[int] = []

    def packet(self, packet: Packet) -> None:
        self.all.append(int.from_bytes(packet.buf[packet.end - 4 : packet.end], "big"))


@settings(max_examples=1000 if thorough() else examples(40))
@given(seed=st.integers(0, 2**64), pace=st.integers(1, 40))
def test_every_loss_is_announced_where_it_is(seed: int, pace: int) -> None:
    kernel = Kernel(str(seed))
    decoder = PacketDecoder(SegmentSink())
    numbers = Numbers()
    decoder.recorder = numbers
    announced: set[int] = set()
    with open_source(["lo"], ports=[1], buffer_octets=BLOCK * BLOCKS) as source:
        assert isinstance(source, RingSource)
        real_ring, source._ring = source._ring, MadeUpRing(kernel)
        try:
            reported = 0
            for step in range(60):
                if step < 40:
                    kernel.happen(pace)
                elif step == 40:
                    kernel.happen = lambda steps: None  # type: ignore[method-assign]
                    kernel.hand_over()
                source.take(decoder)
                if source.dropped() > reported:
                    reported = source.dropped()
                    announced.add(source.number)
        finally:
            source._ring = real_ring
    assert numbers.all == kernel.accepted
    assert reported == kernel.sent - len(kernel.accepted)
    expected = [-1, *kernel.accepted, kernel.sent]
    missing = {place for place in range(len(expected) - 1) if expected[place + 1] != expected[place] + 1}
    assert missing <= announced
