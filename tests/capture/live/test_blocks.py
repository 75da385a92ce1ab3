"""The walk through a block of the ring, with blocks as the kernel makes them, and as it does not."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpscope.capture.live.blocks import DONE, LOST, STRANGER, BlockWalk
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.recorder import Packet, PacketRecorder
from amqpscope.capture.sink import SegmentSink

FIRST = 48  # where the first packet of a block stands
LOSING, TAGGED, TAG_TYPED = 4, 0x10, 0x40
ETHERNET, LOOPBACK = 1, 772


@dataclass
class Made:
    """A packet in a block."""

    octets: bytes = bytes(60)
    seconds: int = 1_700_000_000
    nanoseconds: int = 1
    wire: int = 60
    status: int = 1
    tag: int = 0
    tag_type: int = 0
    protocol: int = 0x0800
    index: int = 2
    hardware: int = ETHERNET
    room: int = 0  # octets between the headers and the packet, which are a multiple of 16 with them


def block(packets: list[Made]) -> bytes:
    octets = bytes(FIRST)
    for place, one in enumerate(packets):
        start = 68 + 14 + one.room
        size = (start + len(one.octets) + 15) & ~15
        following = size if place < len(packets) - 1 else 0
        header = struct.pack(
            "=6I", following, one.seconds, one.nanoseconds, len(one.octets), one.wire, one.status
        )
        header += struct.pack("=2H4xIH10x", start, start + 14, one.tag, one.tag_type)
        address = struct.pack("=H", 17) + struct.pack("!H", one.protocol)
        address += struct.pack("=iHBB8x", one.index, one.hardware, 0, 6)
        octets += (header + address).ljust(start, b"\0") + one.octets
        octets += bytes(-len(octets) % 16)
    return octets


class Kept(PacketRecorder):
    """What was handed on, as number, time, interface, link type, octets, octets on the wire."""

    def __init__(self) -> None:
        self.all: list[tuple[int, int, int, int, bytes, int]] = []

    def packet(self, packet: Packet) -> None:
        octets = packet.buf[packet.start : packet.end]
        self.all.append((packet.number, packet.time, packet.interface, packet.link_type, octets, packet.wire))


def walker(ethernet: bool = True, **places: int) -> tuple[BlockWalk, PacketDecoder, Kept]:
    walk = BlockWalk(ethernet)
    for name, place in places.items():
        walk.places[int(name[1:])] = place
    decoder = PacketDecoder(SegmentSink())
    kept = Kept()
    decoder.recorder = kept
    return walk, decoder, kept


made = st.builds(
    Made,
    octets=st.binary(min_size=14, max_size=100),
    seconds=st.integers(0, 2**32 - 1),
    nanoseconds=st.integers(0, 999_999_999),
    wire=st.integers(0, 2**18),
    index=st.sampled_from([2, 3, 70_000]),
    room=st.integers(0, 5),
)


@given(packets=st.lists(made, max_size=6))
def test_every_packet_is_handed_on_as_it_is(packets: list[Made]) -> None:
    walk, decoder, kept = walker(i2=0, i3=1, i70000=4)
    walk.begin(FIRST, len(packets))
    assert walk.walk(decoder, block(packets)) == DONE
    places = {2: 0, 3: 1, 70_000: 4}
    assert kept.all == [
        (
            number,
            one.seconds * 1_000_000_000 + one.nanoseconds,
            places[one.index],
            1,
            one.octets,
            max(one.wire, len(one.octets)),
        )
        for number, one in enumerate(packets, 1)
    ]
    assert walk.number == len(packets)


def test_it_stops_before_a_packet_behind_lost_ones_and_goes_on() -> None:
    statuses = [1, 1 | LOSING, 1 | LOSING, 1, 1 | LOSING]
    octets = block([Made(status=status) for status in statuses])
    walk, decoder, _ = walker(i2=0)
    walk.begin(FIRST, len(statuses))
    reported = []
    while (why := walk.walk(decoder, octets)) != DONE:
        reported.append((why, walk.number))
    assert reported == [(LOST, 1), (LOST, 4)]
    assert walk.number == 5
    # In the next block a mark may be of another loss.
    walk.begin(FIRST, 1)
    assert walk.walk(decoder, block([Made(status=1 | LOSING)])) == LOST
    assert walk.number == 5


def test_it_stops_before_a_packet_of_an_interface_not_met_before() -> None:
    octets = block([Made(index=2), Made(index=9, hardware=LOOPBACK), Made(index=2)])
    walk, decoder, kept = walker(i2=0)
    walk.begin(FIRST, 3)
    assert walk.walk(decoder, octets) == STRANGER
    assert (walk.stranger, walk.number) == (9, 1)
    walk.places[9] = 5
    assert walk.walk(decoder, octets) == DONE
    assert [interface for _, _, interface, *_ in kept.all] == [0, 5, 0]


@pytest.mark.parametrize(
    ("status", "tag_type", "tag"),
    [
        (TAGGED, 0, "8100a005"),
        (TAGGED | TAG_TYPED, 0x88A8, "88a8a005"),
        (0, 0x88A8, ""),
    ],
)
def test_a_tag_that_was_taken_out_is_put_back(status: int, tag_type: int, tag: str) -> None:
    packet = bytes(range(40))
    walk, decoder, kept = walker(i2=0)
    walk.begin(FIRST, 1)
    walk.walk(decoder, block([Made(packet, wire=50, status=1 | status, tag=0xA005, tag_type=tag_type)]))
    whole = packet[:12] + bytes.fromhex(tag) + packet[12:]
    assert kept.all[0][3:] == (1, whole, 50 + len(whole) - len(packet))


IPV4 = b"\x45" + bytes(19)
IPV6 = b"\x60" + bytes(39)


@pytest.mark.parametrize(
    ("protocol", "status", "octets", "before"),
    [
        (0x0800, 0, IPV4, 0),
        (0x86DD, 0, IPV6, 0),
        (0x0806, 0, bytes(28), None),
        (0x0004, 0, bytes(28), None),
        # A second tag, which the kernel leaves, with the type of either.
        (0x8100, TAGGED, b"\x00\x05\x08\x00" + IPV4, 4),
        (0x0800, TAGGED, b"\x00\x05\x08\x00" + IPV4, 4),
        (0x8100, TAGGED, b"\x00\x05\x81\x00\x00\x06\x86\xdd" + IPV6, 8),
        # It goes out with the tag before what is captured.
        (0x8100, 0, IPV4, 0),
        (0x0800, TAGGED, IPV4, 0),
        (0x8100, TAGGED, b"\x00\x05\x08\x06" + bytes(28), None),
        (0x8100, TAGGED, b"\x00\x05", None),
    ],
)
def test_behind_the_link_layer_packets_begin_with_ip(
    protocol: int, status: int, octets: bytes, before: int | None
) -> None:
    walk, decoder, kept = walker(False, i2=0)
    walk.begin(FIRST, 1)
    assert walk.walk(decoder, block([Made(octets, wire=100, status=1 | status, protocol=protocol)])) == DONE
    if before is None:
        assert kept.all == []
        assert walk.number == 0  # what cannot be written as such a packet has no number
    else:
        assert [one[3:] for one in kept.all] == [(101, octets[before:], 100 - before)]


@given(octets=st.binary(max_size=400), first=st.integers(0, 500), count=st.integers(0, 2**32 - 1))
def test_a_block_that_is_none_ends_the_walk(octets: bytes, first: int, count: int) -> None:
    for ethernet in (True, False):
        walk, decoder, _ = walker(ethernet, i2=0, i0=1)
        walk.begin(first, count)
        for _ in range(50):
            why = walk.walk(decoder, octets)
            if why == DONE:
                break
            if why == STRANGER:
                walk.places[int(walk.stranger)] = 0
        assert why == DONE
