"""TCP inside tunnels: the segment that comes out, to a bounded depth, and nothing of what is none."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from support.capture_files import A4, B4, START, Record, Recorder, ethernet, ipv4, pcap
from support.tshark import tshark_version
from support.tunnels import (
    CONTROL_WORD,
    INSIDE,
    PAYLOAD,
    TUNNELS,
    V4,
    V6,
    geneve,
    gre,
    isl,
    label,
    over4,
    over6,
    pppoe,
    udp,
    vxlan,
)

from amqpscope.capture.packet import PacketDecoder
from amqpscope.limits import MAX_NESTING


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
        ethernet(label(16, True) + CONTROL_WORD + ethernet(bytes(60), 0x0806), 0x8847),
        isl(INSIDE, 1),
        b"\x02" + isl(INSIDE)[1:],
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


def in_fragments(packet: bytes, size: int) -> list[bytes]:
    """An Ethernet packet with IP in it, in fragments of `size` octets each."""
    if packet[12:14] == b"\x86\xdd":
        return in_fragments6(packet, size)
    header, payload = packet[14:34], packet[34:]
    parts = []
    for at in range(0, len(payload), size):
        part = payload[at : at + size]
        more = 0x2000 if at + size < len(payload) else 0
        fields = (
            header[:2] + struct.pack(">H", 20 + len(part)) + header[4:6] + struct.pack(">H", more | at >> 3)
        )
        parts.append(packet[:14] + fields + header[8:] + part)
    return parts


def in_fragments6(packet: bytes, size: int) -> list[bytes]:
    header, payload = packet[14:54], packet[54:]
    parts = []
    for at in range(0, len(payload), size):
        part = payload[at : at + size]
        more = at + size < len(payload)
        fragment = struct.pack(">BBHI", header[6], 0, at | more, 7)
        fields = header[:4] + struct.pack(">HB", 8 + len(part), 44) + header[7:]
        parts.append(packet[:14] + fields + fragment + part)
    return parts


def renumbered(part: bytes, number: int) -> bytes:
    """A fragment, of another datagram."""
    if part[12:14] == b"\x86\xdd":
        return part[:58] + struct.pack(">I", number) + part[62:]
    return part[:18] + struct.pack(">H", number) + part[20:]


def decode_all(packets: list[bytes]) -> Recorder:
    sink = Recorder()
    decoder = PacketDecoder(sink)
    for number, data in enumerate(packets, 1):
        decoder.packet(number, 77, 1, data, 0, len(data), len(data))
    decoder.finish()
    return sink


FRAGMENTED = (
    "IP in IP",
    "IPv6 in IPv4",
    "IPv4 in IPv6",
    "GRE",
    "GRE IPv6",
    "ERSPAN III",
    "VXLAN",
    "VXLAN over IPv6",
    "GENEVE with options",
)


@pytest.mark.parametrize("name", FRAGMENTED)
@pytest.mark.parametrize("size", [8, 24, 40])
def test_a_tunnel_in_fragments(name: str, size: int) -> None:
    """As a tunnel makes them whose packets are too large for the path."""
    parts = in_fragments(TUNNELS[name], size)
    whole = decode_all([TUNNELS[name]])
    sink = decode_all(parts)
    assert sink.payloads() == whole.payloads() == [PAYLOAD]
    assert [segment.packet for segment in sink.segments] == [len(parts)]
    assert sink.notes == []
    assert decode_all([parts[0], *parts[:0:-1]]).payloads() == [PAYLOAD]


AROUND = {
    "IPv4": (lambda inner: over4(inner[14:], 4 if inner[14] >> 4 == 4 else 41)),
    "IPv6": (lambda inner: over6(inner[14:], 4 if inner[14] >> 4 == 4 else 41)),
    "GRE": (lambda inner: over4(gre(int.from_bytes(inner[12:14]), inner[14:]), 47)),
    "GRE over IPv6": (lambda inner: over6(gre(int.from_bytes(inner[12:14]), inner[14:]), 47)),
    "ERSPAN II": (lambda inner: over4(gre(0x88BE, b"\x10" + bytes(7) + inner, 0x1000, bytes(4)), 47)),
    "VXLAN": (lambda inner: over4(udp(4789, vxlan(inner)), 17)),
    "VXLAN over IPv6": (lambda inner: over6(udp(4789, vxlan(inner)), 17)),
    "GENEVE": (lambda inner: over4(udp(6081, geneve(0x6558, inner)), 17)),
    "MPLS": (lambda inner: ethernet(label(16, True) + inner[14:], 0x8847)),
    "PPPoE": (lambda inner: ethernet(pppoe(0x0021 if inner[14] >> 4 == 4 else 0x0057, inner[14:]), 0x8864)),
    "ISL": isl,
}
"""Around an Ethernet packet with IP in it, the tunnels."""


@pytest.mark.parametrize("inside", [INSIDE, ethernet(V6, 0x86DD)], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize("size", [8, 16])
def test_fragments_in_a_tunnel(name: str, size: int, inside: bytes) -> None:
    """What was sent in fragments goes through a tunnel fragment by fragment."""
    fragments = in_fragments(inside, size)
    assert len(fragments) == -(-28 // size)
    (plain,) = decode_all([inside]).segments
    parts = [AROUND[name](fragment) for fragment in fragments]
    for each in (parts, parts[::-1]):
        sink = decode_all(each)
        assert sink.segments == [plain._replace(packet=len(parts))]
        assert sink.notes == []
    sink = decode_all(parts[1:])
    assert (sink.segments, sink.codes()) == ([], ["capture/ip-fragment"])


@pytest.mark.parametrize("inside", [INSIDE, ethernet(V6, 0x86DD)], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("name", ["VXLAN", "GRE over IPv6"])
def test_fragments_in_a_tunnel_in_fragments(name: str, inside: bytes) -> None:
    """Each fragment is too large for the tunnel, too."""
    parts = [
        renumbered(part, number)
        for number, fragment in enumerate(in_fragments(inside, 16))
        for part in in_fragments(AROUND[name](fragment), 24)
    ]
    sink = decode_all(parts)
    assert (sink.payloads(), sink.notes) == ([PAYLOAD], [])


def test_fragments_of_what_is_no_tunnel_are_not_kept() -> None:
    """Large datagrams of UDP: nothing to be said of them, whole or not."""
    parts = in_fragments(over4(udp(53, bytes(400)), 17), 96)
    assert decode_all(parts[:-1]).notes == []
    # And of a tunnel what came before the first one.
    parts = in_fragments(TUNNELS["VXLAN"], 24)
    assert decode_all(parts[:0:-1]).notes == []
    assert decode_all(parts[:-1]).codes() == ["capture/ip-fragment"]


def test_isl_with_check_sequences_behind_it() -> None:
    sink, _ = decode(isl(INSIDE + bytes(4)) + bytes(4))
    assert sink.payloads() == [PAYLOAD]


# tshark takes the port for nothing, and of ISL the last octets for check sequences.
UNREAD = ("VXLAN as Linux had it", "ISL")


@pytest.mark.tshark
def test_tshark_finds_the_same_inside(tmp_path: Path) -> None:
    """All tunnels, and those in fragments: what tshark has as the payload of the innermost TCP segment."""
    assert tshark_version()
    packets = [data for name, data in TUNNELS.items() if name not in UNREAD]
    packets.append(isl(INSIDE + bytes(4)) + bytes(4))  # with check sequences, which tshark takes away
    for name in FRAGMENTED:
        # Not the same datagram again.
        packets += [renumbered(part, 500 + len(packets)) for part in in_fragments(TUNNELS[name], 40)]
    path = tmp_path / "tunnels.pcap"
    path.write_bytes(pcap([Record(START + number, data) for number, data in enumerate(packets)]))
    command = ["tshark", "-r", str(path), "-T", "fields", "-e", "frame.number", "-e", "tcp.payload"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs = [line.split("\t") for line in said.splitlines()]
    found = {int(number): bytes.fromhex(payload) for number, payload in theirs if payload}
    assert found == {segment.packet: segment.payload for segment in decode_all(packets).segments}
    assert len(found) == len(TUNNELS) - len(UNREAD) + 1 + len(FRAGMENTED)
