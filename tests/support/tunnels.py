"""TCP inside tunnels: a packet of each kind, put together octet by octet."""

import struct

from support.capture_files import ethernet, ipv4, ipv6, tcp

PAYLOAD = b"AMQP\x00\x01\x00\x00"
V4 = ipv4(tcp(PAYLOAD), source="192.0.2.1", destination="192.0.2.2")
V6 = ipv6(tcp(PAYLOAD))
INSIDE = ethernet(V4)


def gre(ethertype: int, inner: bytes, flags: int = 0, words: bytes = b"") -> bytes:
    return struct.pack(">HH", flags, ethertype) + words + inner


def udp(port: int, inner: bytes) -> bytes:
    return struct.pack(">HHHH", 50000, port, 8 + len(inner), 0) + inner


def vxlan(inner: bytes, flags: int = 8) -> bytes:
    return bytes([flags, 0, 0, 0, 0, 0, 42, 0]) + inner


def geneve(ethertype: int, inner: bytes, options: bytes = b"") -> bytes:
    return struct.pack(">BBH4x", len(options) // 4, 0, ethertype) + options + inner


def over4(payload: bytes, protocol: int) -> bytes:
    return ethernet(ipv4(payload, protocol=protocol))


def over6(payload: bytes, protocol: int) -> bytes:
    return ethernet(ipv6(payload, next_header=protocol), 0x86DD)


def label(number: int, last: bool) -> bytes:
    return struct.pack(">I", number << 12 | last << 8 | 64)


def pppoe(protocol: int, inner: bytes) -> bytes:
    return struct.pack(">BBHHH", 0x11, 0, 9, 2 + len(inner), protocol) + inner


def isl(inner: bytes, kind: int = 0) -> bytes:
    """Cisco's Inter-Switch Link: 26 octets before the frame. (Behind it stand check sequences, if any.)"""
    head = (
        b"\x01\x00\x0c\x00\x00"
        + bytes([kind << 4])
        + b"\x02\0\0\0\0\x09"
        + struct.pack(">H", 12 + len(inner))
    )
    return head + b"\xaa\xaa\x03" + b"\x02\0\0" + struct.pack(">HHH", 42 << 1, 7, 0) + inner


CONTROL_WORD = bytes(4)

# From cards of makers that there are: what tshark judges by where nothing says that this is Ethernet.
WIRED = bytes.fromhex("001b21000001 001b21000002") + INSIDE[12:]
WIRED6 = bytes.fromhex("001b21000001 001b21000002") + ethernet(V6, 0x86DD, tags=[0x8100])[12:]

TUNNELS = {
    "IP in IP": over4(V4, 4),
    "IPv6 in IPv4": over4(V6, 41),
    "IPv4 in IPv6": over6(V4, 4),
    "GRE": over4(gre(0x0800, V4), 47),
    "GRE IPv6": over6(gre(0x86DD, V6), 47),
    "GRE bridged": over4(gre(0x6558, INSIDE), 47),
    "GRE checksum, key, sequence": over4(gre(0x0800, V4, 0xB000, bytes(12)), 47),
    "GRE key": over4(gre(0x0800, V4, 0x2000, bytes(4)), 47),
    "ERSPAN I": over4(gre(0x88BE, INSIDE), 47),
    "ERSPAN II": over4(gre(0x88BE, b"\x10" + bytes(7) + INSIDE, 0x1000, bytes(4)), 47),
    "ERSPAN III": over4(gre(0x22EB, b"\x20" + bytes(11) + INSIDE, 0x1000, bytes(4)), 47),
    "ERSPAN III platform": over4(
        gre(0x22EB, b"\x20" + bytes(10) + b"\1" + bytes(8) + INSIDE, 0x1000, bytes(4)), 47
    ),
    "VXLAN": over4(udp(4789, vxlan(INSIDE)), 17),
    "VXLAN over IPv6": over6(udp(4789, vxlan(ethernet(V6, 0x86DD, tags=[0x8100]))), 17),
    "VXLAN as Linux had it": over4(udp(8472, vxlan(INSIDE)), 17),
    "GENEVE": over4(udp(6081, geneve(0x6558, INSIDE)), 17),
    "GENEVE with options": over4(udp(6081, geneve(0x6558, INSIDE, bytes(12))), 17),
    "GENEVE IP": over4(udp(6081, geneve(0x0800, V4)), 17),
    "MPLS": ethernet(label(16, True) + V4, 0x8847),
    "MPLS of three labels": ethernet(label(16, False) + label(17, False) + label(18, True) + V6, 0x8848),
    "MPLS, Ethernet with a control word": ethernet(label(16, True) + CONTROL_WORD + WIRED, 0x8847),
    "MPLS, Ethernet without": ethernet(label(16, False) + label(17, True) + WIRED, 0x8847),
    "MPLS, tagged Ethernet": ethernet(label(16, True) + CONTROL_WORD + WIRED6, 0x8847),
    "ISL": isl(INSIDE),
    "PPPoE": ethernet(pppoe(0x0021, V4), 0x8864),
    "PPPoE IPv6, tagged": ethernet(pppoe(0x0057, V6), 0x8864, tags=[0x8100]),
    "VXLAN in GRE": over4(gre(0x6558, over4(udp(4789, vxlan(INSIDE)), 17)), 47),
}
