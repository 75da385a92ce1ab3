"""IP fragments: whole again in any order; what is missing, different or impossible is reported and not
used."""

from __future__ import annotations

import struct
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.capture_files import (
    A4,
    A6,
    B4,
    B6,
    SECOND,
    START,
    Record,
    Recorder,
    ethernet,
    ipv4,
    ipv6,
    packet,
    pcap,
    tcp,
)
from support.sampling import examples

from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.reader import for_magic
from amqpscope.limits import FRAGMENT_DATAGRAMS, FRAGMENT_OCTETS, FRAGMENT_TIME, MAX_NESTING, MAX_NOTES

PAYLOAD = bytes(range(256)) * 12
LOST = "IP fragments of this datagram are missing; the payload of the datagram is lost"
DIFFER = "overlapping IP fragments have different content; the datagram is not used"


def fragment4(octets: bytes, start: int, end: int, number: int = 7, **fields: str) -> bytes:
    """The octets from `start` to `end` of a datagram's payload as an IPv4 fragment."""
    more = 0x2000 if end < len(octets) else 0
    data = ipv4(octets[start:end], fragment=more | start // 8, **fields)
    return ethernet(data[:4] + struct.pack(">H", number) + data[6:])


def fragment6(
    octets: bytes, start: int, end: int, number: int = 7, before: bytes = b"", following: int = 6
) -> bytes:
    """The same for IPv6, behind a hop-by-hop header if `before` is one."""
    header = struct.pack(">BBHI", following, 0, start | (end < len(octets)), number)
    inner = ipv6(before + header + octets[start:end], next_header=0 if before else 44)
    return ethernet(inner, 0x86DD)


HOP_BY_HOP = b"\x2c\x00" + bytes(6)


def decode(packets: list[bytes], step: int = 1000, cut: int = 0) -> tuple[Recorder, PacketDecoder]:
    """The packets one after the other, `step` ns apart, each without its last `cut` octets."""
    sink = Recorder()
    decoder = PacketDecoder(sink)
    for number, data in enumerate(packets, 1):
        decoder.packet(number, START + number * step, 1, data, 0, len(data) - cut, len(data))
    return sink, decoder


@pytest.mark.parametrize("fragment", [fragment4, fragment6], ids=["IPv4", "IPv6"])
@given(
    borders=st.sets(st.integers(1, 380).map(lambda place: place * 8), max_size=8),
    order=st.randoms(use_true_random=False),
    twice=st.booleans(),
)
@settings(max_examples=examples(60))
def test_any_fragments_in_any_order(fragment, borders, order, twice) -> None:
    whole = tcp(PAYLOAD)
    places = [0, *sorted(borders), len(whole)]
    packets = [fragment(whole, begin, end) for begin, end in pairwise(places)]
    if len(packets) == 1:
        return
    order.shuffle(packets)
    if twice:  # as two taps give it
        packets = [data for data in packets for _ in range(2)]
    sink, decoder = decode(packets)
    (segment,) = sink.segments
    assert segment.payload == PAYLOAD
    assert (segment.packet, segment.cut) == (len(packets) - twice, 0)
    assert segment.time == START + segment.packet * 1000
    ends = (A4, B4) if fragment is fragment4 else (A6, B6)
    (plain,) = decode([packet() if ends[0] == A4 else ethernet(ipv6(tcp()), 0x86DD)])[0].segments
    assert (segment.key, segment.reverse) == (plain.key, plain.reverse)
    decoder.finish()
    assert sink.notes == []
    assert (decoder.packets, decoder.fragments, decoder.tcp_segments) == (len(packets), len(packets), 1)


def test_options_and_headers_before_a_fragment() -> None:
    whole = tcp(PAYLOAD)
    packets = [fragment6(whole, begin, begin + 1552, before=HOP_BY_HOP) for begin in (0, 1552)]
    assert decode(packets)[0].payloads() == [PAYLOAD]
    first = ethernet(ipv4(whole[:1552], fragment=0x2000, options=b"\1\1\1\0"))
    last = ethernet(ipv4(whole[1552:], fragment=1552 // 8))
    for each in ([first, last], [last, first]):
        assert decode(each)[0].payloads() == [PAYLOAD]


def test_datagrams_are_reported_apart() -> None:
    """By number, ends and protocol, also while they are interleaved."""
    first, second = tcp(PAYLOAD), tcp(PAYLOAD[::-1])
    packets = []
    for start, end in ((0, 800), (800, len(first))):
        packets.append(fragment4(first, start, end))
        packets.append(fragment4(second, start, end, number=8))
        packets.append(fragment4(second, start, end, source="10.9.9.9"))
        packets.append(fragment6(first, start, end))
        packets.append(fragment6(second, start, end, number=8))
    expected = [PAYLOAD, PAYLOAD[::-1], PAYLOAD[::-1], PAYLOAD, PAYLOAD[::-1]]
    assert decode(packets)[0].payloads() == expected


def test_the_largest_datagram() -> None:
    for fragment, header in ((fragment4, 20), (fragment6, 0)):
        whole = tcp(bytes(65_535 - header - 20))
        packets = [fragment(whole, at, min(at + 1480, len(whole))) for at in range(0, len(whole), 1480)]
        (segment,) = decode(packets)[0].segments
        assert len(segment.payload) == len(whole) - 20
        sink, decoder = decode(
            [fragment(bytes(65_544 - header), 65_528 - header - header % 8, 65_544 - header)]
        )
        assert sink.codes() == ["capture/ip-header"]
        assert decoder.malformed == 1


def test_fragments_cut_short_give_what_is_before_the_first_missing_octet() -> None:
    whole = tcp(PAYLOAD)
    packets = [fragment4(whole, 0, 1600), fragment4(whole, 1600, len(whole))]
    for each in (packets, packets[::-1]):
        (segment,) = decode(each, cut=100)[0].segments
        assert segment.payload == PAYLOAD[: 1600 - 20 - 100]
        assert segment.cut == len(PAYLOAD) - len(segment.payload)
    # The other tap has it whole.
    sink = Recorder()
    decoder = PacketDecoder(sink)
    for data, there in ((packets[0], 300), (packets[0], len(packets[0])), (packets[1], len(packets[1]))):
        decoder.packet(1, START, 1, data, 0, there, len(data))
    assert sink.payloads() == [PAYLOAD]


def test_a_cut_fragment_over_another() -> None:
    """What neither of them has is not captured."""
    whole = tcp(PAYLOAD)
    packets = [fragment4(whole, 0, 800), fragment4(whole, 400, 1600), fragment4(whole, 1600, len(whole))]
    sink = Recorder()
    decoder = PacketDecoder(sink)
    for number, data in enumerate(packets):
        there = len(data) - 100 * (number == 1)
        decoder.packet(number + 1, START, 1, data, 0, there, len(data))
    (segment,) = sink.segments
    assert segment.payload == PAYLOAD[: 1500 - 20]
    assert segment.cut == len(PAYLOAD) - len(segment.payload)


def test_one_datagram_after_the_other() -> None:
    whole = tcp(PAYLOAD)
    packets = []
    for number in range(5 * MAX_NESTING):
        packets += [fragment4(whole, 0, 800, number), fragment4(whole, 800, len(whole), number)]
    assert decode(packets)[0].payloads() == [PAYLOAD] * (5 * MAX_NESTING)


def test_what_is_missing_is_reported() -> None:
    whole = tcp(PAYLOAD)
    pieces = [fragment4(whole, 0, 800), fragment4(whole, 800, 1600), fragment4(whole, 1600, len(whole))]
    for missing in range(3):
        sink, decoder = decode(pieces[:missing] + pieces[missing + 1 :])
        assert (sink.segments, sink.notes) == ([], [])
        decoder.finish()
        assert [(n.code, n.packet, n.detail) for n in sink.notes] == [("capture/ip-fragment", 1, LOST)]


@pytest.mark.parametrize("back", [False, True])
def test_fragments_too_far_apart_do_not_belong_together(back: bool) -> None:
    """The number has been given to another datagram by then."""
    whole = tcp(PAYLOAD)
    pieces = [fragment4(whole, 0, 800), fragment4(whole, 800, len(whole))]
    for apart, payloads in ((FRAGMENT_TIME, [PAYLOAD]), (FRAGMENT_TIME + 1, [])):
        sink, _ = decode(pieces, step=-apart if back else apart)
        assert sink.payloads() == payloads
        reported = [note.detail for note in sink.notes if note.code != "capture/time"]
        assert reported == ([] if payloads else [LOST])
        assert ("capture/time" in sink.codes()) is back


def test_what_differs_is_not_used() -> None:
    whole = tcp(PAYLOAD)
    other = bytearray(whole)
    other[799] ^= 1
    pieces = [
        fragment4(whole, 0, 800),
        fragment4(bytes(other), 792, 1600),
        fragment4(whole, 1600, len(whole)),
    ]
    sink, decoder = decode(pieces)
    decoder.finish()
    assert sink.segments == []
    assert [(note.packet, note.detail) for note in sink.notes] == [(2, DIFFER), (3, LOST)]
    agreeing = [fragment4(whole, 0, 800), fragment4(whole, 400, 1600), fragment4(whole, 1200, len(whole))]
    assert decode(agreeing)[0].payloads() == [PAYLOAD]


def test_ends_that_contradict_one_another() -> None:
    whole = tcp(PAYLOAD)
    for pieces in (
        [fragment4(whole, 1600, len(whole)), fragment4(whole[:2400], 1600, 2400)],
        [fragment4(whole[:2400], 1600, 2400), fragment4(whole, 1600, 2800)],
        [fragment4(whole, 1600, 2800), fragment4(whole[:2400], 1600, 2400)],
    ):
        sink, _ = decode(pieces)
        assert [(note.packet, note.detail) for note in sink.notes] == [(2, DIFFER)]


def test_impossible_fragments_are_skipped() -> None:
    whole = tcp(PAYLOAD)
    odd = [fragment4(whole, 0, 803), ethernet(ipv4(b"", fragment=0x2000)), fragment6(whole, 0, 801)]
    sink, decoder = decode(odd)
    decoder.finish()
    assert sink.codes() == ["capture/ip-header"] * 3
    assert decoder.malformed == 3


@pytest.mark.parametrize("levels", [1, 2, MAX_NESTING, MAX_NESTING + 1, 5 * MAX_NESTING])
def test_a_chain_of_fragments_in_fragments_ends(levels: int) -> None:
    """Each datagram is the last fragment of the one before: to complete the last one completes all."""
    whole = tcp(PAYLOAD)
    packets = []
    for level in range(levels):
        following = 44 if level else 6
        packets.append(fragment6(whole, 0, 8, number=level, following=following))
        whole = struct.pack(">BBHI", following, 0, 8, level) + whole[8:]
    packets.append(ethernet(ipv6(whole, next_header=44), 0x86DD))
    sink, decoder = decode(packets)
    decoder.finish()
    if levels <= MAX_NESTING:
        assert (sink.payloads(), decoder.malformed) == ([PAYLOAD], 0)
    else:
        assert (sink.payloads(), decoder.malformed) == ([], 1)
    assert decoder.packets == len(packets)


def test_hostile_fragments_are_bounded() -> None:
    """First fragments of more datagrams than may wait, then each of them made as long as can be."""
    sink = Recorder()
    decoder = PacketDecoder(sink)
    tracemalloc.start()
    number = 0
    for offset, step in ((0, 1), (65_000, -1)):
        for identity in range(3 * FRAGMENT_DATAGRAMS)[::step]:
            number += 1
            data = fragment4(bytes(65_536), offset, offset + 8, number=identity)
            decoder.packet(number, START, 1, data, 0, len(data), len(data))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * FRAGMENT_OCTETS + 6 * 1024 * 1024
    decoder.finish()
    assert sink.codes() == ["capture/ip-fragment"] * (MAX_NOTES + 1)
    assert decoder.fragments == number


def test_state_moves_between_fragments() -> None:
    whole = tcp(PAYLOAD)
    records = [
        Record(START, fragment4(whole, 0, 800)),
        Record(START + SECOND, fragment4(whole, 800, len(whole))),
    ]
    octets = pcap(records)
    for at in range(24, len(octets), 97):
        sink = Recorder()
        reader = for_magic(octets, sink)
        assert reader is not None
        reader.feed(octets[:at])
        reader = type(reader).load(reader.dump(), sink)
        reader.feed(octets[at:])
        reader.finish()
        assert sink.payloads() == [PAYLOAD]
        assert sink.notes == []
