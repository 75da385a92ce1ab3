"""A proxy with a client and a server around it, in one thread, and the packets that it makes, read anew.

    with Proxied() as proxied:
        proxied.client.give(b"hello")
        proxied.until(lambda: proxied.server.got == b"hello")

Nothing waits for a time: `until` turns the proxy and both peers until something is so.
"""

from __future__ import annotations

import array
import contextlib
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, NamedTuple

from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.proxy.source import ProxySource

__all__ = ["FIN", "RST", "SYN", "Packet", "Peer", "Proxied", "Streams", "packets_of_proxy"]

FIN, SYN, RST, ACK = 1, 2, 4, 16
PATIENCE = 60.0
"""Seconds after which a test has failed, on a machine however busy."""


class Packet(NamedTuple):
    """A packet, taken apart. by: address and port of its sender."""

    time: int
    by: tuple[str, int]
    to: tuple[str, int]
    flags: int
    seq: int
    ack: int
    window: int
    octets: bytes


def checksum(octets: bytes) -> int:
    """The one's complement sum of RFC 1071, word by word; 0xFFFF of what has a right checksum."""
    words = array.array("H", octets + bytes(len(octets) & 1))
    if sys.byteorder == "little":
        words.byteswap()
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def taken_apart(time: int, packet: bytes) -> Packet:
    """Ethernet, IP and TCP of a packet, whose lengths and checksums have to be right."""
    kind, datagram = packet[12:14], packet[14:]
    if kind == b"\x08\x00":
        assert datagram[0] == 0x45
        assert checksum(datagram[:20]) == 0xFFFF
        assert int.from_bytes(datagram[2:4], "big") == len(datagram)
        protocol, addresses, segment = datagram[9], datagram[12:20], datagram[20:]
    else:
        assert kind == b"\x86\xdd"
        assert datagram[0] >> 4 == 6
        assert int.from_bytes(datagram[4:6], "big") == len(datagram) - 40
        protocol, addresses, segment = datagram[6], datagram[8:40], datagram[40:]
    assert protocol == 6
    assert checksum(addresses + struct.pack(">HH", 6, len(segment)) + segment) == 0xFFFF
    half = len(addresses) // 2
    source, destination = (str(ip_address(part)) for part in (addresses[:half], addresses[half:]))
    ports = struct.unpack(">HH", segment[:4])
    seq, ack, offset, flags, window = struct.unpack(">IIBBH", segment[4:16])
    octets = segment[offset >> 4 << 2 :]
    return Packet(time, (source, ports[0]), (destination, ports[1]), flags, seq, ack, window, octets)


class Taken:
    """Stands for the decoder of packets."""

    def __init__(self) -> None:
        self.interface = -1
        self.packets: list[Packet] = []

    def packet(
        self, number: int, time: int, link_type: int, buf: bytes, start: int, end: int, wire: int
    ) -> None:
        assert (self.interface, link_type, start, end, wire) == (0, 1, 0, len(buf), len(buf))
        assert number == len(self.packets) + 1
        self.packets.append(taken_apart(time, buf))


def packets_of_proxy(source: ProxySource, taken: Taken | PacketDecoder) -> None:
    """Have the packets that wait taken."""
    while source.take(taken):  # type: ignore[arg-type]
        pass


class Streams:
    """The two streams that packets show. Sequence numbers and acknowledgements have to be sound."""

    def __init__(self, packets: list[Packet]) -> None:
        self.client = packets[0].by if packets else ("", 0)
        self.octets = [b"", b""]
        self.ended = ["", ""]
        self.acknowledged = [0, 0]  # octets of the client and of the server
        nexts = [-1, -1]
        origins = [0, 0]
        latest = 0
        for packet in packets:
            side = 0 if packet.by == self.client else 1
            assert packet.time >= latest
            latest = packet.time
            if packet.flags & SYN:
                assert nexts[side] == -1
                origins[side] = nexts[side] = (packet.seq + 1) & 0xFFFFFFFF
            elif packet.flags & RST and nexts[side] == -1:
                assert packet.ack == nexts[0]  # the server has refused
                self.ended[side] = "RST"
                continue
            else:
                assert packet.seq == nexts[side], packet
            if packet.flags & ACK:
                behind = (nexts[1 - side] - packet.ack) & 0xFFFFFFFF
                assert behind < 1 << 31, "octets are acknowledged that were not sent"
                reached = (packet.ack - origins[1 - side]) & 0xFFFFFFFF
                assert reached >= self.acknowledged[1 - side]
                self.acknowledged[1 - side] = reached
            self.octets[side] += packet.octets
            nexts[side] = (nexts[side] + len(packet.octets) + (1 if packet.flags & FIN else 0)) & 0xFFFFFFFF
            if packet.flags & (FIN | RST):
                self.ended[side] = "RST" if packet.flags & RST else "FIN"


class Peer:
    """One end. `got`: what it has read. It reads while `reading`."""

    def __init__(self, raw: socket.socket) -> None:
        self.raw = raw
        self.got = bytearray()
        self.ended = ""  # "FIN" or "RST": how the other end has ended
        self.reading = True
        self._waiting = bytearray()
        self._ending = False
        raw.setblocking(False)

    def give(self, octets: bytes) -> None:
        """Send these, behind those that wait."""
        self._waiting += octets
        self.turn()

    def end(self) -> None:
        """Send FIN behind all others, and go on reading."""
        self._ending = True
        self.turn()

    def reset(self) -> None:
        """Reset the connection now."""
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.raw.close()
        self.ended = "own"

    @property
    def waiting(self) -> int:
        """Octets that no host has taken."""
        return len(self._waiting)

    def turn(self) -> None:
        """Read and write what can be."""
        if self.ended in ("RST", "own"):
            return
        try:
            while self._waiting:
                del self._waiting[: self.raw.send(self._waiting)]
            if self._ending:
                self._ending = False
                self.end_stream()
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            self._waiting.clear()
        while self.reading and not self.ended:
            try:
                octets = self.raw.recv(65536)
            except (BlockingIOError, ssl.SSLWantReadError):
                break
            except OSError:
                self.ended = "RST"
                break
            self.got += octets
            if not octets:
                self.ended = "FIN"

    def end_stream(self) -> None:
        """Send FIN; TLS sends its own end before it."""
        if isinstance(self.raw, ssl.SSLSocket):
            with contextlib.suppress(ssl.SSLError):
                self.raw.unwrap()
        self.raw.shutdown(socket.SHUT_WR)


class Proxied:
    """A target that listens, a proxy before it, and clients of it. options: of `ProxySource`.

    decoder: gets the packets instead of `packets`. buffers: octets that the hosts of both peers receive at
    once.
    """

    def __init__(
        self,
        address: str = "127.0.0.1",
        buffers: int = 0,
        decoder: PacketDecoder | None = None,
        **options: Any,
    ) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = socket.create_server((address, 0), family=family)
        if buffers:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers)
        self.listener.setblocking(False)
        self.target = self.listener.getsockname()[:2]
        self.buffers = buffers
        options.setdefault("target", self.target)
        self.source = ProxySource(("127.0.0.1", 0), options.pop("target"), **options)
        self.taken = Taken()
        self._decoder = decoder or self.taken
        self.events: list[str] = []
        self._peers: list[Peer] = []

    def __enter__(self) -> Proxied:
        self.client = self.connect()
        self.server = self.accept()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def narrow(self) -> None:
        """The proxy's host keeps few octets for each peer."""
        self.until(lambda: bool(self.source._relays))
        for relay in self.source._relays:
            for side in relay.sides:
                side.raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 * 1024)

    def stopped(self, side: int) -> bool:
        """Octets wait for this side (0: the client), and the packets say that it takes none."""
        (relay,) = self.source._relays
        return relay.sides[side].waiting > 0 and not relay._connection.window_is_open(side)

    def close(self) -> None:
        for peer in self._peers:
            peer.raw.close()
        self.listener.close()
        self.source.close()

    def connect(self) -> Peer:
        """Another client."""
        raw = socket.socket()
        if self.buffers:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.buffers)
        raw.connect(self.source.address)
        return self.add(raw)

    def accept(self) -> Peer:
        """The server's end of the newest connection."""
        found: list[socket.socket] = []

        def there() -> bool:
            with contextlib.suppress(BlockingIOError):
                found.append(self.listener.accept()[0])
            return bool(found)

        self.until(there)
        return self.add(found[0])

    def add(self, raw: socket.socket) -> Peer:
        self._peers.append(Peer(raw))
        return self._peers[-1]

    @property
    def packets(self) -> list[Packet]:
        packets_of_proxy(self.source, self._decoder)
        return self.taken.packets

    @property
    def streams(self) -> Streams:
        return Streams(self.packets)

    def turn(self) -> None:
        """One turn of the proxy and of all peers."""
        self.source.wait(0.002)
        packets_of_proxy(self.source, self._decoder)
        self.events += self.source.take_events()
        for peer in self._peers:
            peer.turn()

    def until(self, so: Callable[[], bool]) -> None:
        """Turn until it is so."""
        deadline = time.monotonic() + PATIENCE
        while not so():
            assert time.monotonic() < deadline, (self.events, [peer.ended for peer in self._peers])
            self.turn()
