"""TCP inside tunnels: the segment that comes out, to a bounded depth, and nothing of what is none."""

from __future__ import annotations

import pytest
from support.capture_files import A4, B4, Recorder, ethernet, ipv4
from support.tunnels import (
    INSIDE,
    PAYLOAD,
    TUNNELS,
    V4,
    V6,
    geneve,
    gre,
    label,
    over4,
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
