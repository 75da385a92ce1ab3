"""Capturing on Linux through the kernel's packet ring.

Theory of operation. A packet socket shares a buffer with the kernel, a ring of blocks (`packet_ring`). A
block is copied, handed back at once, and the copy is walked (`blocks`). So no packet takes a call of its own,
and what waits to be read waits in the buffer, whose size is chosen. Measured over loopback and compiled
(tests/bench/live.py), a packet takes once to twice the processor time that `tcpdump -w /dev/null` takes, with
its IP and TCP headers decoded; and neither lost one at the highest rate there was, 300,000 packets a second.

One socket serves all interfaces, so that packets come in the order in which the kernel saw them: bound to the
interface, or if there are several to none, with a program (`programs`) in front of the filter that drops the
packets of others. Packets begin with Ethernet's header if all interfaces have one; otherwise, and for `any`,
behind the link layer, with IP's.

The socket is made for no protocol, so that it gets nothing before its filter is in place.

What the kernel had to drop, it counts; `drops` finds the places. `take` stops at each of them.

An interface that is removed takes its place in the ring with it; when one of its name is there again it is
listened to again, which takes no privilege.

Source: packet(7).
"""

import contextlib
import ctypes
import os
import select
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Final

from amqpscope.capture.link_layer import LINK_ETHERNET, LINK_RAW
from amqpscope.capture.live.blocks import DONE, LOST, BlockWalk
from amqpscope.capture.live.drops import DroppedPackets
from amqpscope.capture.live.links import InterfaceWatch, index_of, is_up, linux_interfaces, name_of
from amqpscope.capture.live.packet_ring import SOL_PACKET, packet_ring
from amqpscope.capture.live.programs import Instruction, attach, prepared
from amqpscope.capture.live.source import TAKEN_AT_ONCE, LiveInterface, LiveSource
from amqpscope.capture.packet import PacketDecoder
from amqpscope.limits import MAX_INTERFACES

__all__ = ["RingSource"]

_JOIN: Final = 1  # PACKET_ADD_MEMBERSHIP
_PROMISCUOUS: Final = 1  # PACKET_MR_PROMISC
_ALL_PROTOCOLS: Final = 3  # ETH_P_ALL

_GONE: Final = 0  # in place of an index
_NONE: Final = 0xFFFF_FFFF  # the index of no interface


class _NamedInterface:
    """An interface that was asked for by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        # The kernel's index of it, `_GONE` while it is not there.
        self.index = index_of(name)
        # It was up when it was last looked at.
        self.up = True
        # The index of another interface that has its name and cannot be listened to.
        self.refused = _GONE


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
        # Those that are listened to; none: all that there are.
        self._named = [_NamedInterface(one) for one in names]
        # The indexes of those that are listened to now.
        self._joined: list[int] = []
        self._bound = False
        # Of `any`: the places of the interfaces met so far.
        self._by_name: dict[str, int] = {}
        ethernet = bool(names) and all(one.link_type == LINK_ETHERNET for one in self.interfaces)
        self._link_type = LINK_ETHERNET if ethernet else LINK_RAW
        for interface in self.interfaces:
            interface.link_type = self._link_type
        self._walk = BlockWalk(ethernet)
        # The copy of the block taken last, and whether packets of it are left.
        self._block = b""
        self._walking = False
        self._drops = DroppedPackets(len(names))
        # Packets that have come so far, dropped ones among them.
        self._arrived = 0
        self._promiscuous = promiscuous
        self._closed = False
        self._program = program(self._link_type)
        self._watch = InterfaceWatch()
        try:
            self._socket = socket.socket(
                socket.AF_PACKET, socket.SOCK_RAW if ethernet else socket.SOCK_DGRAM, 0
            )
            try:
                self._ring = packet_ring(self._socket, buffer_octets)
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
                walked = self._ring.taken - 1 if more else self._ring.taken
                if self._drops.reach(walked, int(walk.place)) or not more:
                    break
            why = walk.walk(decoder, self._block)
            if why == DONE:
                self._walking = False
            elif why == LOST:
                if self._drops.move(self._ring.taken - 1, int(walk.place)):
                    break
            elif self._meet(int(walk.stranger)):
                break
        return self.number - before

    def dropped(self) -> int:
        return self._drops.total

    def drops(self, index: int) -> int:
        return self._drops.of(index)

    def arrived(self) -> int:
        if not self._closed:
            self._count_drops()
        return self._arrived

    def fill(self) -> float:
        return 0.0 if self._closed else self._ring.fill()

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
        return self._walking or self._ring.ready

    def _stirred(self, descriptor: int) -> bool:
        if descriptor == self._watch.fileno():
            self._watch.settle()
        elif not self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return True
        self._look()  # something about an interface, perhaps another one
        return bool(self._events)

    def _next_block(self) -> bool:
        """Take the next block that the kernel has handed over; whether there is one."""
        found = self._ring.next_block()
        if found is None:
            return False
        self._block, first, count = found
        self._walk.begin(first, count)
        self._walking = True
        return True

    def _count_drops(self) -> None:
        """Ask the kernel how many packets it dropped since it was asked last: behind the blocks that are full
        now."""
        arrived, dropped = self._ring.statistics()
        self._arrived += arrived
        if dropped:
            # Meanwhile no block can have been both begun and filled: that takes more than these microseconds.
            self._drops.expect(self._ring.taken + self._ring.full_blocks(), dropped)

    def _meet(self, index: int) -> bool:
        """The next packet is of an interface that is not known; whether it is one more of `interfaces`."""
        places = self._walk.places
        if len(places) >= 2 * MAX_INTERFACES:
            places.clear()
        if self._named:
            places[index] = next((at for at, one in enumerate(self._named) if one.index == index), 0)
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
        indexes = [one.index for one in self._named if one.index != _GONE]
        several = len(self._named) != 1
        seen = (indexes or [_NONE]) if several and self._named else []
        attach(self._socket, prepared(self._program, seen))
        if not several:
            if indexes:
                self._socket.bind((self._named[0].name, _ALL_PROTOCOLS))
        elif not self._bound:
            _bind_to_all(self._socket)
        self._bound = True
        if self._promiscuous:
            for index in indexes:
                if index not in self._joined:
                    with contextlib.suppress(OSError):  # not all kinds of interfaces know of it
                        self._socket.setsockopt(
                            SOL_PACKET, _JOIN, struct.pack("=iHH8x", index, _PROMISCUOUS, 0)
                        )
        self._joined = indexes

    def _look(self) -> None:
        """See what has become of the interfaces, and listen to those that are there again."""
        changed = False
        for place, one in enumerate(self._named):
            changed = self._look_at(place, one) or changed
        if changed:
            try:
                self._listen()
            except OSError:  # gone again; the kernel will tell when it is back
                for one in self._named:
                    if not name_of(one.index):
                        one.index = _GONE

    def _look_at(self, place: int, one: _NamedInterface) -> bool:
        """See what has become of an interface; whether it went or came back."""
        changed = False
        there = index_of(one.name)
        if one.index not in (_GONE, there):
            renamed = name_of(one.index)
            if renamed:
                self._events.append(f"the interface {one.name} was renamed to {renamed}")
                one.name, there = renamed, one.index
            else:
                self._walk.places[one.index] = place  # what waits in the ring is still of it
                one.index = _GONE
                one.up = True
                self._events.append(f"the interface {one.name} is gone: waiting until it returns")
                changed = True
        if one.index == _GONE:
            if not there or there == one.refused:
                return changed
            if not self._fits(there):
                one.refused = there
                self._events.append(
                    f"{one.name} is back with another link type: its packets are not captured"
                )
                return changed
            one.index = there
            self._events.append(f"{one.name} is back")
            changed = True
        up = is_up(one.name)
        if up != one.up:
            one.up = up
            self._events.append(f"{one.name} is {'up' if up else 'down: waiting for it to come up'}")
        return changed

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
