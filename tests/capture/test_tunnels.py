"""TCP inside tunnels: the segment that comes out, to a bounded depth, and nothing of what is none."""

from __future__ import annotations

import struct

import pytest
from support.capture_files import A4, B4, Recorder, ethernet, ipv4, ipv6, tcp

from amqpscope.capture.packet import PacketDecoder
from amqpscope.limits import MAX_NESTING

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
    "ERSPAN II": over4(gre(0x88BE, bytes(8) + INSIDE, 0x1000, bytes(4)), 47),
    "ERSPAN III": over4(gre(0x22EB, bytes(12) + INSIDE, 0x1000, bytes(4)), 47),
    "ERSPAN III platform": over4(gre(0x22EB, bytes(11) + b"\1" + bytes(8) + INSIDE, 0x1000, bytes(4)), 47),
    "VXLAN": over4(udp(4789, vxlan(INSIDE)), 17),
    "VXLAN over IPv6": over6(udp(4789, vxlan(ethernet(V6, 0x86DD, tags=[0x8100]))), 17),
    "VXLAN as Linux had it": over4(udp(8472, vxlan(INSIDE)), 17),
    "GENEVE": over4(udp(6081, geneve(0x6558, INSIDE)), 17),
    "GENEVE with options": over4(udp(6081, geneve(0x6558, INSIDE, bytes(12))), 17),
    "GENEVE IP": over4(udp(6081, geneve(0x0800, V4)), 17),
    "MPLS": ethernet(label(16, True) + V4, 0x8847),
    "MPLS of three labels": ethernet(label(16, False) + label(17, False) + label(18, True) + V6, 0x8848),
    "PPPoE": ethernet(pppoe(0x0021, V4), 0x8864),
    "PPPoE IPv6, tagged": ethernet(pppoe(0x0057, V6), 0x8864, tags=[0x8100]),
    "VXLAN in GRE": over4(gre(0x6558, over4(udp(4789, vxlan(INSIDE)), 17)), 47),
}


def decode(data: bytes, size: int | None = None) -> tuple[Recorder, PacketDecoder]:
    sink = Recorder()
    decoder = PacketDecoder(sink)
    before = b"\x45" * 13
    there = data if size is None else data[:size]
    decoder.packet(9, 77, 1, before + there, 13, 13 + len(there), len(data))
    return sink, decoder


@pytest.mark.parametrize("name", TUNNELS)
def test_the_segment_inside(name: str) -> None:
    data = TUNNELS[name]
    (plain,) = decode(ethernet(V4) if data.endswith(V4) else ethernet(V6, 0x86DD))[0].segments
    sink, decoder = decode(data)
    assert sink.segments == [plain]
    assert sink.notes == []
    assert (decoder.packets, decoder.tcp_segments, decoder.truncated, decoder.malformed) == (1, 1, 0, 0)
    assert (plain.packet, plain.time, plain.payload) == (9, 77, PAYLOAD)


@pytest.mark.parametrize("name", TUNNELS)
def test_cut_anywhere(name: str) -> None:
    data = TUNNELS[name]
    for size in range(len(data)):
        sink, _ = decode(data, size)
        missing = len(data) - size
        if missing <= len(PAYLOAD):
            assert [(s.payload, s.cut) for s in sink.segments] == [
                (PAYLOAD[: len(PAYLOAD) - missing], missing)
            ]
        else:
            assert sink.segments == []
        assert sink.notes == []


@pytest.mark.parametrize(
    "data",
    [
        over4(udp(4788, vxlan(INSIDE)), 17),
        over4(udp(4789, vxlan(INSIDE, 0)), 17),
        over4(udp(6081, b"\x40" + geneve(0x6558, INSIDE)[1:]), 17),
        over4(udp(6081, geneve(0x0806, V4)), 17),
        over4(gre(0x0800, V4, 0x4000), 47),
        over4(gre(0x880B, V4, 0x0001), 47),
        over4(gre(0x0800, V4, 0x0001), 47),
        over4(gre(0x0806, V4), 47),
        ethernet(label(16, True) + bytes(60), 0x8847),
        ethernet(pppoe(0xC021, V4), 0x8864),
        ethernet(ipv4(V4, protocol=4, fragment=0x2000)),
        ethernet(ipv4(V4, protocol=4, fragment=0x0010)),
    ],
)
def test_what_is_no_packet_inside(data: bytes) -> None:
    sink, decoder = decode(data)
    assert (sink.segments, sink.notes, decoder.malformed) == ([], [], 0)


@pytest.mark.parametrize("levels", [1, MAX_NESTING, MAX_NESTING + 1, 60])
def test_tunnels_in_tunnels_end(levels: int) -> None:
    data = V4
    for _ in range(levels):
        data = ipv4(data, source=A4, destination=B4, protocol=4)
    sink, decoder = decode(ethernet(data))
    if levels <= MAX_NESTING:
        assert [segment.payload for segment in sink.segments] == [PAYLOAD]
    else:
        assert sink.codes() == ["capture/ip-header"]
    assert decoder.packets == 1


def test_one_after_the_other() -> None:
    sink = Recorder()
    decoder = PacketDecoder(sink)
    for number in range(5 * MAX_NESTING):
        data = TUNNELS["VXLAN in GRE"]
        decoder.packet(number, 77, 1, data, 0, len(data), len(data))
    assert sink.payloads() == [PAYLOAD] * (5 * MAX_NESTING)
