"""Capturing on Linux through the kernel's packet ring.

Theory of operation. A packet socket shares a buffer with the kernel (TPACKET_V3), a ring of blocks. The
kernel fills a block with packets and hands it over when it is full or `_HAND_OVER` milliseconds old; the
block is copied, handed back at once, and the copy is walked (`blocks`). So no packet takes a call of its own,
and what waits to be read waits in the buffer, whose size is chosen. Measured over loopback and compiled
(tests/bench/live.py), a packet takes once to twice the processor time that `tcpdump -w /dev/null` takes, with
its IP and TCP headers decoded; and neither lost one at the highest rate there was, 300,000 packets a second.

One socket serves all interfaces, so that packets come in the order in which the kernel saw them: bound to the
interface, or if there are several to none, with a program (`programs`) in front of the filter that drops the
packets of others. Packets begin with Ethernet's header if all interfaces have one; otherwise, and for `any`,
behind the link layer, with IP's.

The socket is made for no protocol, so that it gets nothing before its filter is in place.

What the kernel had to drop, it counts: packets are dropped while all blocks are full, so between the last
full one and the next. The count is asked for before each block is taken, and where it has grown, the loss
stands behind the blocks that are full then. If packets have come since, in a block handed back meanwhile,
they bear a mark, for which the loss is moved before them; but one packet of several stays, since there may
have been a loss behind them, too. `take` stops at each of these places.

An interface that is removed takes
its place in the ring with it; when one of its name is there again it is listened to again, which takes no
privilege.

Sources: the kernel's Documentation/networking/packet_mmap.rst; packet(7).
"""

import contextlib
import ctypes
import mmap
import os
import select
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Final

from amqpscope.capture.link_layer import LINK_ETHERNET, LINK_RAW
from amqpscope.capture.live.blocks import DONE, LOST, BlockWalk
from amqpscope.capture.live.links import LinkWatch, index_of, is_up, linux_interfaces, name_of
from amqpscope.capture.live.programs import Instruction, attach, prepared
from amqpscope.capture.live.source import TAKEN_AT_ONCE, LiveInterface, LiveSource
from amqpscope.capture.packet import PacketDecoder
from amqpscope.limits import MAX_INTERFACES

__all__ = ["RingSource"]

_PACKET: Final = 263  # SOL_PACKET
_JOIN: Final = 1  # PACKET_ADD_MEMBERSHIP
_RING: Final = 5  # PACKET_RX_RING
_STATISTICS: Final = 6  # PACKET_STATISTICS
_VERSION: Final = 10  # PACKET_VERSION
_VERSION_3: Final = 2  # TPACKET_V3
_PROMISCUOUS: Final = 1  # PACKET_MR_PROMISC
_ALL_PROTOCOLS: Final = 3  # ETH_P_ALL

_BLOCK: Final = 256 * 1024  # octets
_FRAME: Final = 2048  # no more than a word that version 3 asks for
_HAND_OVER: Final = 40  # milliseconds
_USER: Final = 1  # TP_STATUS_USER: the block is ours

_GONE: Final = 0  # in place of an index
_NONE: Final = 0xFFFF_FFFF  # the index of no interface


class RingSource(LiveSource):
    """Captures from `names`, or from all interfaces if there are none. program: the filter, for a link type.
    buffer_octets: of the ring. promiscuous: packets to other machines, too.

    Raises OSError, PermissionError among them.
    """

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        program: Callable[[int], Sequence[Instruction]],
        buffer_octets: int,
        promiscuous: bool,
    ) -> None:
        super().__init__(name)
        known = linux_interfaces()
        by_name = {interface.name: interface for interface in known.values()}
        self.interfaces = [by_name[one] for one in names]
        self._names = list(names)
        self._indexes = [index_of(one) for one in names]
        self._was_up = [True] * len(names)
        self._refused = [_GONE] * len(names)  # an interface of the name that cannot be listened to
        self._joined: list[int] = []
        self._bound = False
        self._by_name: dict[str, int] = {}
        ethernet = bool(names) and all(one.link_type == LINK_ETHERNET for one in self.interfaces)
        self._link_type = LINK_ETHERNET if ethernet else LINK_RAW
        for interface in self.interfaces:
            interface.link_type = self._link_type
        self._walk = BlockWalk(ethernet)
        self._block = b""
        self._walking = False
        self._position = 0  # of the block that is ours next
        self._dropped: list[int] = [0] * len(names)
        self._blocks_taken = 0
        self._arrived = 0
        # Packets dropped, by the number of blocks that come before their place.
        self._pending: list[tuple[int, int]] = []
        self._explained = -1  # the last block that packets are known to be dropped before
        self._promiscuous = promiscuous
        self._closed = False
        self._program = program(self._link_type)
        self._blocks = max(buffer_octets // _BLOCK, 2)
        self._watch = LinkWatch()
        try:
            self._socket = socket.socket(
                socket.AF_PACKET, socket.SOCK_RAW if ethernet else socket.SOCK_DGRAM, 0
            )
            try:
                self._socket.setsockopt(_PACKET, _VERSION, _VERSION_3)
                self._socket.setsockopt(
                    _PACKET,
                    _RING,
                    struct.pack(
                        "=7I",
                        _BLOCK,
                        self._blocks,
                        _FRAME,
                        _BLOCK // _FRAME * self._blocks,
                        _HAND_OVER,
                        0,
                        0,
                    ),
                )
                self._ring = mmap.mmap(self._socket.fileno(), _BLOCK * self._blocks)
                self._listen()
            except BaseException:
                self._socket.close()
                raise
        except BaseException:
            self._watch.close()
            super().close()
            raise
        self._poll.register(self._socket, select.POLLIN | select.POLLERR)
        self._poll.register(self._watch, select.POLLIN)
        self._look()

    @property
    def number(self) -> int:
        return int(self._walk.number)

    def take(self, decoder: PacketDecoder) -> int:
        walk = self._walk
        before = self.number
        room = TAKEN_AT_ONCE
        while not self._closed:
            if not self._walking:
                if room <= 0:
                    break
                self._count_drops()
                more = self._next_block()
                room -= len(self._block)
                if self._come_to_drops() or not more:
                    break
            why = walk.walk(decoder, self._block)
            if why == DONE:
                self._walking = False
            elif why == LOST:
                if self._move_drops():
                    break
            elif self._meet(int(walk.stranger)):
                break
        return self.number - before

    def dropped(self) -> int:
        return sum(self._dropped)

    def drops(self, index: int) -> int:
        return self._dropped[index] if index < len(self._dropped) else 0

    def arrived(self) -> int:
        if not self._closed:
            self._count_drops()
        return self._arrived

    def fill(self) -> float:
        return 0.0 if self._closed else self._full_blocks() / self._blocks

    def ended(self) -> bool:
        return self._closed

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._poll.unregister(self._socket)
        self._poll.unregister(self._watch)
        self._ring.close()
        self._socket.close()
        self._watch.close()
        super().close()

    def _waiting(self) -> bool:
        return self._walking or self._is_ours(self._position)

    def _stirred(self, descriptor: int) -> bool:
        if descriptor == self._watch.fileno():
            self._watch.settle()
        elif not self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return True
        self._look()  # something about an interface, perhaps another one
        return bool(self._events)

    def _is_ours(self, position: int) -> bool:
        status: int = struct.unpack_from("=I", self._ring, position * _BLOCK + 8)[0]
        return status & _USER != 0

    def _full_blocks(self) -> int:
        """How many blocks the kernel has handed over: they come one behind the other."""
        full, free = 0, self._blocks + 1  # so many are, so many are not
        while free - full > 1:
            middle = (full + free) // 2
            if self._is_ours((self._position + middle - 1) % self._blocks):
                full = middle
            else:
                free = middle
        return full

    def _next_block(self) -> bool:
        """The next block that the kernel has handed over, copied and given back; whether there is one."""
        start = self._position * _BLOCK
        status, count, first, length = struct.unpack_from("=4I", self._ring, start + 8)
        if not status & _USER:
            return False
        self._block = self._ring[start : start + min(length, _BLOCK)]
        struct.pack_into("=I", self._ring, start + 8, 0)
        self._blocks_taken += 1
        self._walk.begin(first, count)
        self._walking = True
        self._position = (self._position + 1) % self._blocks
        return True

    def _count_drops(self) -> None:
        """Ask the kernel how many came, and how many of them it dropped, since it was asked last: behind the
        blocks that are full now."""
        arrived, dropped = struct.unpack_from("=2I", self._socket.getsockopt(_PACKET, _STATISTICS, 12))
        self._arrived += arrived
        if dropped:
            # Meanwhile no block can have been both begun and filled: that takes more than these microseconds.
            self._pending.append((self._blocks_taken + self._full_blocks(), dropped))

    def _come_to_drops(self) -> bool:
        """Whether packets were dropped before the block taken now, or if all are taken, before the next."""
        before = self._blocks_taken - 1 if self._walking else self._blocks_taken
        found = False
        while self._pending and self._pending[0][0] <= before:
            self._place_drops(self._pending.pop(0)[1])
            self._explained = before
            found = True
        return found

    def _move_drops(self) -> bool:
        """The next packet is marked. Whether packets were dropped before it that have no place yet."""
        if not self._pending or self._explained == self._blocks_taken - 1:
            return False
        place, count = self._pending.pop(0)
        if count > 1:
            self._pending.insert(0, (place, 1))
        self._place_drops(max(count - 1, 1))
        return True

    def _place_drops(self, count: int) -> None:
        """So many packets were dropped behind the last one that was handed on."""
        place = int(self._walk.place)
        while len(self._dropped) <= place:
            self._dropped.append(0)
        self._dropped[place] += count

    def _meet(self, index: int) -> bool:
        """The next packet is of an interface that is not known; whether it is one more of `interfaces`."""
        places = self._walk.places
        if len(places) >= 2 * MAX_INTERFACES:
            places.clear()
        if self._names:
            places[index] = self._indexes.index(index) if index in self._indexes else 0
            return False
        name = name_of(index) or f"interface {index}"
        if name not in self._by_name and len(self.interfaces) >= MAX_INTERFACES - 1:
            name = "other interfaces"
        new = name not in self._by_name
        if new:
            self._by_name[name] = len(self.interfaces)
            self.interfaces.append(LiveInterface(name, "", self._link_type, True))
        places[index] = self._by_name[name]
        return new

    def _listen(self) -> None:
        """Take packets from the interfaces that are there."""
        indexes = [index for index in self._indexes if index != _GONE]
        several = len(self._names) != 1
        seen = (indexes or [_NONE]) if several and self._names else []
        attach(self._socket, prepared(self._program, seen))
        if not several:
            if indexes:
                self._socket.bind((self._names[0], _ALL_PROTOCOLS))
        elif not self._bound:
            _bind_to_all(self._socket)
        self._bound = True
        if self._promiscuous:
            for index in indexes:
                if index not in self._joined:
                    with contextlib.suppress(OSError):  # not all kinds of interfaces know of it
                        self._socket.setsockopt(_PACKET, _JOIN, struct.pack("=iHH8x", index, _PROMISCUOUS, 0))
        self._joined = indexes

    def _look(self) -> None:
        """See what has become of the interfaces, and listen to those that are there again."""
        changed = False
        for place, name in enumerate(self._names):
            index = self._indexes[place]
            there = index_of(name)
            if index not in (_GONE, there):
                renamed = name_of(index)
                if renamed:
                    self._names[place] = renamed
                    self._events.append(f"{name} is called {renamed} now")
                    name, there = renamed, index
                else:
                    self._walk.places[index] = place  # what waits in the ring is still of it
                    self._indexes[place] = _GONE
                    self._was_up[place] = True
                    self._events.append(f"{name} is gone: waiting for it")
                    changed = True
            if self._indexes[place] == _GONE:
                if not there or there == self._refused[place]:
                    continue
                if not self._fits(there):
                    self._refused[place] = there
                    self._events.append(f"{name} is back as another kind of interface: not listened to")
                    continue
                self._indexes[place] = there
                self._events.append(f"{name} is back")
                changed = True
            up = is_up(name)
            if up != self._was_up[place]:
                self._was_up[place] = up
                self._events.append(f"{name} is up" if up else f"{name} is down: waiting for it to come up")
        if changed:
            try:
                self._listen()
            except OSError:  # gone again; the kernel will tell when it is back
                self._indexes = [index if name_of(index) else _GONE for index in self._indexes]

    def _fits(self, index: int) -> bool:
        """Whether packets of an interface are of the kind that is read."""
        try:
            interface = linux_interfaces().get(index)
        except OSError:
            return False
        return interface is not None and self._link_type in (interface.link_type, LINK_RAW)


def _bind_to_all(receiver: socket.socket) -> None:
    """Bind a packet socket to every interface, which Python's own `bind` has no way to say."""
    address = struct.pack("=H", socket.AF_PACKET) + struct.pack("!H", _ALL_PROTOCOLS) + bytes(16)
    library = ctypes.CDLL(None, use_errno=True)
    if library.bind(receiver.fileno(), address, len(address)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
