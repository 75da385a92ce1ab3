"""Two peers talk over TCP, and what a tap between them captured: pcap and pcapng octets for tests.

A scenario reads as the dialogue it is:

    capture = Capture()
    tcp = capture.connection("10.0.0.1:51034", "10.0.0.2:5672")
    client, server = tcp.client, tcp.server
    tcp.handshake()
    client.send(AMQP_HEADER)
    server.send(AMQP_HEADER)
    with tcp.crossing():                  # neither has heard what the other says in here
        client.send(frame(close()))
        server.send(frame(close()))
    client.fin()
    server.fin()
    capture.write(path)

How it works. Each end keeps how many octets it has sent, and how many of the other's it has heard: that is
what its segments acknowledge. The words of the scenario append packets to `capture.packets` in the order of
the scenario, `capture.step` nanoseconds apart. What the *network* does is said where it happens (`lost`,
`retransmit`, `crossing`); what only the *tap* did is said in the words of the capture (`missed`, `reordered`,
`duplicated`, `delay`). `packets` is a plain list: a test may cut, swap and repeat in it as it likes.

Positions in a stream are offsets: 0 is the first octet after SYN. Sequence numbers follow from `isn`, the
initial sequence number, and wrap. Without `handshake()` the capture starts midstream, and offset 0 is just
the first octet captured. Times are nanoseconds since the epoch. Nothing here looks at a clock or at chance.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

LINK_TYPES = {
    "null": 0,
    "ethernet": 1,
    "raw": 101,
    "loop": 108,
    "sll": 113,
    "ipv4": 228,
    "ipv6": 229,
    "sll2": 276,
}

FIN, SYN, RST, PSH, ACK, URG = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20

# "delayed": an end acknowledges with the next segment that it sends anyway, so that a scenario has no packets
# but those it names. "immediate": each data segment is answered by a bare ACK at once. "none": nothing is
# acknowledged until `hears()` or `ack()` says so.
Acknowledging = Literal["delayed", "immediate", "none"]


class Packet:
    """One captured packet: time in ns, the octets from the link layer on, and how long it was on the wire."""

    __slots__ = ("data", "sender", "time", "wire_length")

    def __init__(self, time: int, data: bytes, wire_length: int, sender: End | None = None) -> None:
        self.time = time
        self.data = data
        self.wire_length = wire_length
        self.sender = sender

    def copy(self) -> Packet:
        return Packet(self.time, self.data, self.wire_length, self.sender)


class Capture:
    """What the tap wrote down: `packets`, in the order of the file.

    link      one of LINK_TYPES; vlan adds 802.1Q tags (several: the outer one is 802.1ad) to Ethernet
    padded    short Ethernet frames filled up to 60 octets, as they are when received from a wire
    snaplen   the octets kept of each packet, 0 for all
    """

    def __init__(
        self,
        link: str = "ethernet",
        *,
        vlan: Sequence[int] = (),
        padded: bool = False,
        snaplen: int = 0,
        start: int = 1_700_000_000_000_000_000,
        step: int = 1_000_000,
    ) -> None:
        self.link = link
        self.vlan = tuple(vlan)
        self.padded = padded
        self.snaplen = snaplen
        self.clock = start
        self.step = step
        self.packets: list[Packet] = []
        self._missing = False

    def connection(
        self,
        client: str = "10.0.0.1:51034",
        server: str = "10.0.0.2:5672",
        *,
        client_isn: int = 1_000_000,
        server_isn: int = 9_000_000,
        mss: int = 1448,
        acks: Acknowledging = "delayed",
        ip_options: bytes = b"",
        ip_extensions: Sequence[tuple[int, bytes]] = (),
        tcp_options: bytes = b"",
        ip_length_zero: bool = False,
    ) -> Connection:
        """Two ends, "ADDRESS:PORT" each ("[ADDRESS]:PORT" for IPv6).

        ip_options       IPv4 options, a multiple of 4 octets
        ip_extensions    IPv6 extension headers before TCP as (type, everything after its next-header octet)
        tcp_options      on every segment, a multiple of 4 octets
        ip_length_zero   the length fields of IP are 0, as segmentation offload leaves them
        """
        connection = Connection(self, client, server, client_isn, server_isn, mss, acks)
        for end in (connection.client, connection.server):
            end.ip_options = ip_options
            end.ip_extensions = tuple(ip_extensions)
            end.tcp_options = tcp_options
            end.ip_length_zero = ip_length_zero
        return connection

    def wait(self, *, seconds: float = 0, milliseconds: float = 0) -> None:
        """Nothing is captured for this long."""
        self.clock += round(seconds * 1e9 + milliseconds * 1e6)

    def number(self, packet: Packet) -> int:
        """The packet's number in the file, from 1, as Wireshark counts."""
        return next(n for n, other in enumerate(self.packets, 1) if other is packet)

    # ---- what only the tap did ----------------------------------------------------------------------------

    @contextmanager
    def missed(self) -> Iterator[None]:
        """The peers exchange these packets, the tap does not see them."""
        before, self._missing = self._missing, True
        yield
        self._missing = before

    @contextmanager
    def reordered(self, *order: int) -> Iterator[None]:
        """These packets are captured in another order (`order` counts from 0; none given: backwards).

        The times stay where they were: the file's times still rise.
        """
        first = len(self.packets)
        yield
        block = self.packets[first:]
        times = [packet.time for packet in block]
        chosen = [block[n] for n in order] if order else block[::-1]
        if len(chosen) != len(block):
            raise ValueError(f"{len(block)} packets are to be reordered, not {len(chosen)}")
        for packet, time in zip(chosen, times, strict=True):
            packet.time = time
        self.packets[first:] = chosen

    @contextmanager
    def duplicated(self) -> Iterator[None]:
        """These packets are captured twice, as on a mirror of two ports."""
        first = len(self.packets)
        yield
        self.packets[first:] = [p for packet in self.packets[first:] for p in (packet, packet.copy())]

    def delay(self, end: End, *, milliseconds: float) -> None:
        """What `end` sent reaches the tap this much later (or earlier): the file is put in its new order."""
        for packet in self.packets:
            if packet.sender is end:
                packet.time += round(milliseconds * 1e6)
        self.packets.sort(key=lambda packet: packet.time)

    # ---- files --------------------------------------------------------------------------------------------

    def pcap(self, *, nanoseconds: bool = False, byte_order: Literal["<", ">"] = "<") -> bytes:
        return pcap(
            self.packets,
            LINK_TYPES[self.link],
            nanoseconds=nanoseconds,
            byte_order=byte_order,
            snaplen=self.snaplen,
        )

    def pcapng(self, *, nanoseconds: bool = True, byte_order: Literal["<", ">"] = "<") -> bytes:
        return pcapng(
            self.packets,
            LINK_TYPES[self.link],
            nanoseconds=nanoseconds,
            byte_order=byte_order,
            snaplen=self.snaplen,
        )

    def write(self, path: Path) -> Path:
        """As pcapng if the name says so, else as pcap with nanoseconds."""
        path.write_bytes(self.pcapng() if path.suffix == ".pcapng" else self.pcap(nanoseconds=True))
        return path

    # ---- one packet ---------------------------------------------------------------------------------------

    def add(self, sender: End, segment: bytes, ip: bytes) -> Packet:
        """One packet of `sender` at the present time; the clock moves on."""
        version = 4 if sender.address.version == 4 else 6
        data = _link_layer(self.link, self.vlan, version, sender.is_client) + ip + segment
        if self.padded and self.link == "ethernet":
            data = data.ljust(60, b"\0")
        packet = Packet(self.clock, data[: self.snaplen] if self.snaplen else data, len(data), sender)
        self.clock += self.step
        if not self._missing:
            self.packets.append(packet)
        return packet


class Connection:
    """The two ends, and what concerns both."""

    def __init__(
        self,
        capture: Capture,
        client: str,
        server: str,
        client_isn: int,
        server_isn: int,
        mss: int,
        acks: Acknowledging,
    ) -> None:
        self.capture = capture
        self.mss = mss
        self.acks: Acknowledging = acks
        self.client = End(self, client, client_isn, is_client=True)
        self.server = End(self, server, server_isn, is_client=False)
        self.client.peer, self.server.peer = self.server, self.client
        self.losing = False

    def handshake(self) -> None:
        """SYN, SYN and ACK, ACK."""
        mss = b"\x02\x04" + self.mss.to_bytes(2, "big")
        self.client.segment(flags=SYN, options=mss)
        self.server.segment(flags=SYN | ACK, options=mss)
        self.client.segment(flags=ACK)

    def goodbye(self) -> None:
        """The client ends its stream, then the server."""
        self.client.fin()
        self.server.fin()
        self.client.ack()

    @contextmanager
    def crossing(self) -> Iterator[None]:
        """Neither end has heard anything that the other says in here before it is over."""
        before, self.acks = self.acks, "none"
        yield
        self.acks = before
        if before != "none":
            self.client.hears()
            self.server.hears()

    @contextmanager
    def lost(self) -> Iterator[None]:
        """These segments pass the tap and never reach the other end, which does not acknowledge them."""
        before, self.losing = self.losing, True
        yield
        self.losing = before


class End:
    """One end. `sent` octets of its stream are out, and it acknowledges `heard` octets of the other's."""

    peer: End

    def __init__(self, connection: Connection, name: str, isn: int, is_client: bool) -> None:
        address, _, port = name.rpartition(":")
        self.connection = connection
        self.address = ipaddress.ip_address(address.strip("[]"))
        self.port = int(port)
        self.isn = isn
        self.is_client = is_client
        self.sent = 0
        self.heard = 0
        self.finished = False  # this end has sent FIN
        self.heard_fin = False
        self.last = (0, b"")  # offset and octets of the last call of send, for retransmit
        self.window = 0xFFFF  # of its segments
        self.ip_options = b""
        self.ip_extensions: tuple[tuple[int, bytes], ...] = ()
        self.tcp_options = b""
        self.ip_length_zero = False
        self._identification = 0
        self._beyond: list[tuple[int, int]] = []  # what arrived after a hole: (start, end)

    def send(self, octets: bytes, *, cut: Iterable[int] = (), each: int = 0) -> list[Packet]:
        """Octets of the stream, in segments of the connection's mss.

        cut    sizes of the first segments; what is left then goes by the mss
        each   the size of every segment instead of the mss
        """
        self.last = (self.sent, octets)
        sizes = iter(cut)
        packets = []
        position = 0
        while position < len(octets):
            size = next(sizes, 0) or each or self.connection.mss
            packets.append(self.segment(octets[position : position + size], flags=PSH | ACK))
            position += size
        return packets

    def retransmit(self, *, skip: int = 0, size: int | None = None) -> list[Packet]:
        """The octets of the last `send` again, or `size` of them after the first `skip`."""
        offset, octets = self.last
        again = octets[skip:] if size is None else octets[skip : skip + size]
        mss = self.connection.mss
        return [
            self.segment(again[n : n + mss], offset=offset + skip + n, flags=PSH | ACK)
            for n in range(0, len(again), mss)
        ]

    def ack(self, upto: int | None = None) -> Packet:
        """A bare acknowledgement of what the other end has sent so far, or of its octets below `upto`."""
        self.hears(upto)
        return self.segment(flags=ACK)

    def hears(self, upto: int | None = None) -> None:
        """From now on acknowledges all that the other end has sent, or its octets below `upto`. No packet."""
        self.heard = self.peer.sent if upto is None else upto
        self.heard_fin = self.peer.finished and self.heard >= self.peer.sent

    def fin(self, octets: bytes = b"") -> Packet:
        """The end of this end's stream, with last octets if there are any."""
        return self.segment(octets, flags=FIN | ACK | (PSH if octets else 0))

    def rst(self, *, ack: bool = True) -> Packet:
        return self.segment(flags=RST | (ACK if ack else 0))

    def keep_alive(self, octets: int = 0) -> Packet:
        """A keep-alive probe: one before the next sequence number, with no or one octet of rubbish."""
        return self.segment(b"\0" * octets, offset=self.sent - 1, flags=ACK)

    def segment(
        self,
        octets: bytes = b"",
        *,
        offset: int | None = None,
        ack: int | None = None,
        flags: int = ACK,
        options: bytes = b"",
        window: int | None = None,
    ) -> Packet:
        """One segment, as freely as one likes.

        offset   where its octets stand in this end's stream; the next ones by default
        ack      how many octets of the other's stream it acknowledges; `heard` by default
        flags    as in TCP; SYN stands one before offset 0
        window   the field of the header; `window` of this end by default
        """
        start = self.sent if offset is None else offset
        sequence = self.isn if flags & SYN else self.isn + 1 + start
        if self.finished and offset is None and not flags & FIN:
            sequence += 1
        acknowledged = 0
        if flags & ACK:
            known = self.heard if ack is None else ack
            acknowledged = self.peer.isn + 1 + known + (1 if ack is None and self.heard_fin else 0)
        all_options = options + self.tcp_options
        header = struct.pack(
            ">HHIIBBHHH",
            self.port,
            self.peer.port,
            sequence & 0xFFFFFFFF,
            acknowledged & 0xFFFFFFFF,
            (5 + len(all_options) // 4) << 4,
            flags,
            self.window if window is None else window,
            0,
            0,
        )
        segment = header + all_options + octets
        addresses = self.address.packed + self.peer.address.packed
        checksum = _checksum(addresses + struct.pack(">II", len(segment), 6) + segment)
        segment = segment[:16] + checksum.to_bytes(2, "big") + segment[18:]
        packet = self.connection.capture.add(self, segment, self._ip_header(len(segment)))
        self.sent = max(self.sent, start + len(octets))
        if flags & FIN:
            self.finished = True
        if not self.connection.losing and self.connection.acks != "none":
            self.peer._receive(start, len(octets))
        return packet

    def _receive(self, start: int, size: int) -> None:
        """A segment of the other end arrived: acknowledge what is now there without a hole."""
        self._beyond = sorted([*self._beyond, (start, start + size)])
        while self._beyond and self._beyond[0][0] <= self.heard:
            self.heard = max(self.heard, self._beyond.pop(0)[1])
        self.heard_fin = self.peer.finished and self.heard >= self.peer.sent
        if self.connection.acks == "immediate" and size:
            self.segment(flags=ACK)

    def _ip_header(self, size: int) -> bytes:
        """The IP header in front of a TCP segment of `size` octets."""
        if self.address.version == 4:
            length = 20 + len(self.ip_options)
            self._identification = (self._identification + 1) & 0xFFFF
            header = struct.pack(
                ">BBHHHBBH4s4s",
                0x40 | length // 4,
                0,
                0 if self.ip_length_zero else length + size,
                self._identification,
                0x4000,
                64,
                6,
                0,
                self.address.packed,
                self.peer.address.packed,
            )
            header += self.ip_options
            return header[:10] + _checksum(header).to_bytes(2, "big") + header[12:]
        kinds = [kind for kind, _ in self.ip_extensions] + [6]
        chain = b"".join(
            bytes([following]) + rest
            for following, (_, rest) in zip(kinds[1:], self.ip_extensions, strict=True)
        )
        length = 0 if self.ip_length_zero else len(chain) + size
        fixed = struct.pack(">IHBB", 0x60000000, length, kinds[0], 64)
        return fixed + self.address.packed + self.peer.address.packed + chain


def _checksum(octets: bytes) -> int:
    """The Internet checksum (RFC 1071): the complement of the sum of 16 bit words with end-around carry."""
    padded = octets + b"\0" if len(octets) % 2 else octets
    return 0xFFFF - int.from_bytes(padded, "big") % 0xFFFF


def _link_layer(link: str, vlan: Sequence[int], version: int, from_client: bool) -> bytes:
    """What stands before the IP header."""
    ethertype = b"\x08\x00" if version == 4 else b"\x86\xdd"
    source = b"\x02\0\0\0\0" + (b"\x01" if from_client else b"\x02")
    if link == "ethernet":
        target = b"\x02\0\0\0\0" + (b"\x02" if from_client else b"\x01")
        tags = b"".join(
            (b"\x88\xa8" if n + 1 < len(vlan) else b"\x81\x00") + tag.to_bytes(2, "big")
            for n, tag in enumerate(vlan)
        )
        return target + source + tags + ethertype
    if link == "sll":  # packet type, ARPHRD, address length, address of 8, protocol
        return struct.pack(">HHH", 4 if from_client else 0, 1, 6) + source + b"\0\0" + ethertype
    if link == "sll2":  # protocol, reserved, interface, ARPHRD, packet type, address length, address of 8
        return ethertype + struct.pack(">HIHBB", 0, 2, 1, 4 if from_client else 0, 6) + source + b"\0\0"
    if link == "null":  # address family in the order of the machine: 2 for IPv4, 30 for IPv6 on a Mac
        return struct.pack("<I", 2 if version == 4 else 30)
    if link == "loop":  # the same in network order
        return struct.pack(">I", 2 if version == 4 else 24)
    if link in ("raw", "ipv4", "ipv6"):
        return b""
    raise ValueError(f"no such link layer: {link}")


def pcap(
    packets: Iterable[Packet],
    link_type: int = 1,
    *,
    nanoseconds: bool = False,
    byte_order: Literal["<", ">"] = "<",
    snaplen: int = 0,
) -> bytes:
    """A classic pcap file, version 2.4."""
    magic, unit = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    parts = [struct.pack(byte_order + "IHHiIII", magic, 2, 4, 0, 0, snaplen or 262_144, link_type)]
    for packet in packets:
        seconds, rest = divmod(packet.time, 1_000_000_000)
        parts.append(
            struct.pack(byte_order + "IIII", seconds, rest // unit, len(packet.data), packet.wire_length)
        )
        parts.append(packet.data)
    return b"".join(parts)


def pcapng(
    packets: Iterable[Packet],
    link_type: int = 1,
    *,
    nanoseconds: bool = True,
    byte_order: Literal["<", ">"] = "<",
    snaplen: int = 0,
) -> bytes:
    """A pcapng file: one section, one interface, enhanced packet blocks."""

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        length = struct.pack(byte_order + "I", len(body) + 12)
        return struct.pack(byte_order + "I", kind) + length + body + length

    def option(code: int, content: bytes) -> bytes:
        head = struct.pack(byte_order + "HH", code, len(content))
        return head + content + b"\0" * (-len(content) % 4)

    resolution = option(9, bytes([9 if nanoseconds else 6])) + option(0, b"")
    parts = [
        block(0x0A0D0D0A, struct.pack(byte_order + "IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack(byte_order + "HHI", link_type, 0, snaplen) + resolution),
    ]
    for packet in packets:
        units = packet.time if nanoseconds else packet.time // 1000
        head = struct.pack(
            byte_order + "IIIII", 0, units >> 32, units & 0xFFFFFFFF, len(packet.data), packet.wire_length
        )
        parts.append(block(6, head + packet.data))
    return b"".join(parts)
