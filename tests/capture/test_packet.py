"""Link layers, IP and TCP: which segment comes out of one captured packet."""

import struct
from ipaddress import ip_address

import pytest
from support.capture_files import A4, A6, B4, B6, Recorder, ethernet, ipv4, ipv6, tcp

from amqpscope.capture.packet import PacketDecoder
from amqpscope.limits import MAX_LARGE_PACKET, MAX_LINK_TYPES, MAX_NOTES

PAYLOAD = b"AMQP\x00\x01\x00\x00"
ETHERNET = 1


def decode(data: bytes, link_type: int = ETHERNET, wire: int | None = None) -> tuple[Recorder, PacketDecoder]:
    """The packet as it would lie in a block: with other octets around it."""
    sink = Recorder()
    decoder = PacketDecoder(sink)
    around = b"\x45" * 13
    decoder.packet(
        9, 77, link_type, around + data + around, 13, 13 + len(data), len(data) if wire is None else wire
    )
    return sink, decoder


def key(source: str, destination: str, source_port: int = 40000, destination_port: int = 5672) -> bytes:
    ports = struct.pack(">HH", source_port, destination_port)
    return ip_address(source).packed + ip_address(destination).packed + ports


def sll(payload: bytes, protocol: int) -> bytes:
    return struct.pack(">HHH8sH", 0, 1, 6, bytes(8), protocol) + payload


def sll2(payload: bytes, protocol: int) -> bytes:
    return struct.pack(">HHIHBB8s", protocol, 0, 3, 1, 0, 6, bytes(8)) + payload


V4 = ipv4(tcp(PAYLOAD))
V6 = ipv6(tcp(PAYLOAD))
SNAP = b"\xaa\xaa\x03\x00\x00\x00"
TAG = b"\x00\x2a"

WAYS_TO_IP = {
    "ethernet": (1, ethernet(V4)),
    "ethernet ipv6": (1, ethernet(V6, 0x86DD)),
    "802.1Q": (1, ethernet(V4, tags=[0x8100])),
    "802.1ad and 802.1Q": (1, ethernet(V6, 0x86DD, tags=[0x88A8, 0x8100])),
    "old stacked tags": (1, ethernet(V4, tags=[0x9100, 0x9200, 0x9300, 0x8100])),
    "802.3 SNAP": (1, ethernet(SNAP + b"\x08\x00" + V4, ethertype=len(V4) + 8)),
    "802.3 SNAP bridge-tunnel": (
        1,
        ethernet(b"\xaa\xaa\x03\x00\x00\xf8\x86\xdd" + V6, ethertype=len(V6) + 8),
    ),
    "802.3 SNAP tagged": (1, ethernet(SNAP + b"\x81\x00" + TAG + b"\x08\x00" + V4, ethertype=len(V4) + 12)),
    "802.3 IP": (1, ethernet(b"\x06\x06\x03" + V4, ethertype=len(V4) + 3)),
    "802.1Q 802.3 SNAP": (1, ethernet(SNAP + b"\x08\x00" + V4, ethertype=len(V4) + 8, tags=[0x8100])),
    "null 2 little": (0, b"\x02\x00\x00\x00" + V4),
    "null 2 big": (0, b"\x00\x00\x00\x02" + V4),
    "null 10": (0, struct.pack("<I", 10) + V6),
    "null 24": (0, struct.pack("<I", 24) + V6),
    "null 28": (0, struct.pack(">I", 28) + V6),
    "null 30": (0, struct.pack("<I", 30) + V6),
    "loop": (108, b"\x00\x00\x00\x02" + V4),
    "loop ipv6": (108, struct.pack(">I", 24) + V6),
    "raw": (101, V4),
    "raw ipv6": (101, V6),
    "raw 12": (12, V4),
    "raw 14": (14, V6),
    "ipv4": (228, V4),
    "ipv6": (229, V6),
    "cooked": (113, sll(V4, 0x0800)),
    "cooked ipv6": (113, sll(V6, 0x86DD)),
    "cooked tagged": (113, sll(TAG + b"\x08\x00" + V4, 0x8100)),
    "cooked LLC": (113, sll(SNAP + b"\x08\x00" + V4, 4)),
    "cooked 2": (276, sll2(V4, 0x0800)),
    "cooked 2 ipv6": (276, sll2(V6, 0x86DD)),
    "cooked 2 tagged": (276, sll2(TAG + b"\x86\xdd" + V6, 0x88A8)),
    "cooked 2 LLC": (276, sll2(SNAP + b"\x08\x00" + V4, 4)),
}


@pytest.mark.parametrize("way", WAYS_TO_IP)
def test_every_link_layer_leads_to_the_segment(way: str) -> None:
    link_type, data = WAYS_TO_IP[way]
    sink, decoder = decode(data, link_type)
    ends = (A6, B6) if data.endswith(V6) else (A4, B4)
    (segment,) = sink.segments
    assert segment.key == key(*ends)
    assert segment.reverse == key(ends[1], ends[0], 5672, 40000)
    assert (segment.packet, segment.time) == (9, 77)
    assert (segment.seq, segment.ack, segment.flags) == (1000, 2000, 0x18)
    assert (segment.payload, segment.cut) == (PAYLOAD, 0)
    assert sink.notes == []
    assert (decoder.packets, decoder.tcp_segments) == (1, 1)


@pytest.mark.parametrize("way", WAYS_TO_IP)
def test_a_packet_cut_anywhere_is_counted_or_gives_a_cut_segment(way: str) -> None:
    link_type, data = WAYS_TO_IP[way]
    for size in range(len(data)):
        sink, decoder = decode(data[:size], link_type, len(data))
        missing = len(data) - size
        if missing <= len(PAYLOAD):
            assert [(s.payload, s.cut) for s in sink.segments] == [
                (PAYLOAD[: len(PAYLOAD) - missing], missing)
            ]
        else:
            assert sink.segments == []
            assert decoder.truncated == 1, size
        assert sink.notes == []


@pytest.mark.parametrize(
    ("link_type", "data"),
    [
        (1, ethernet(bytes(46), 0x0806)),
        (1, ethernet(SNAP + b"\x08\x06" + bytes(46), 54)),
        (1, ethernet(b"\xaa\xaa\x03\x00\x00\x0c\x08\x00" + V4, 54)),
        (1, ethernet(b"\x42\x42\x03" + bytes(46), 49)),
        (1, ethernet(SNAP + b"\x00\x40" + SNAP + b"\x08\x00" + V4, 54)),
        (0, struct.pack("<I", 7) + V4),
        (276, sll2(V4, 0x0806)),
        (113, sll(bytes(46), 0x88CC)),
        (1, ethernet(ipv4(bytes(20), protocol=17))),
        (1, ethernet(ipv4(bytes(20), protocol=17, fragment=0x2000))),
        (1, ethernet(ipv6(bytes(20), next_header=58), 0x86DD)),
        (1, ethernet(ipv6(bytes(20), next_header=59), 0x86DD)),
        (1, ethernet(ipv6(struct.pack(">BBHI", 17, 0, 1, 5) + bytes(20), next_header=44), 0x86DD)),
    ],
)
def test_what_is_not_tcp_is_skipped_silently(link_type: int, data: bytes) -> None:
    sink, decoder = decode(data, link_type)
    assert sink.segments == []
    assert sink.notes == []
    assert (decoder.packets, decoder.truncated, decoder.malformed, decoder.fragments) == (1, 0, 0, 0)


def test_padding_is_no_payload() -> None:
    data = ethernet(ipv4(tcp(b"x"))) + bytes(5)
    assert decode(data)[0].payloads() == [b"x"]


def test_ipv6_padding_is_no_payload() -> None:
    data = ethernet(ipv6(tcp(b"")), 0x86DD) + bytes(6)
    assert decode(data)[0].payloads() == [b""]


@pytest.mark.parametrize(
    "data", [ethernet(ipv4(tcp(PAYLOAD), total=0)), ethernet(ipv6(tcp(PAYLOAD), length=0), 0x86DD)]
)
def test_length_zero_goes_to_the_end_of_the_packet(data: bytes) -> None:
    assert decode(data)[0].payloads() == [PAYLOAD]
    (segment,) = decode(data, wire=len(data) + 60000)[0].segments
    assert (segment.payload, segment.cut) == (PAYLOAD, 60000)
    # What no packet can have had on the wire is not made a hole in the stream.
    (segment,) = decode(data, wire=0xFFFFFFFF)[0].segments
    assert segment.cut == MAX_LARGE_PACKET - len(data)
    # A length on the wire below the captured one takes nothing away.
    assert decode(data, wire=3)[0].payloads() == [PAYLOAD]


def test_jumbogram() -> None:
    jumbo = struct.pack(">BBBBI", 6, 0, 0xC2, 4, 28 + len(PAYLOAD))
    data = ethernet(ipv6(jumbo + tcp(PAYLOAD), next_header=0, length=0), 0x86DD)
    assert decode(data)[0].payloads() == [PAYLOAD]


def test_ip_and_tcp_options() -> None:
    data = ethernet(ipv4(tcp(PAYLOAD, options=bytes(12)), options=b"\x01" * 8))
    (segment,) = decode(data)[0].segments
    assert segment.payload == PAYLOAD
    assert segment.key == key(A4, B4)
    assert segment.reverse == key(B4, A4, 5672, 40000)


def test_tcp_options_not_captured() -> None:
    data = ethernet(ipv4(tcp(PAYLOAD, options=bytes(12), seq=5)))
    cut_in_options = data[: -len(PAYLOAD) - 4]
    (segment,) = decode(cut_in_options, wire=len(data))[0].segments
    assert (segment.seq, segment.payload, segment.cut) == (5, b"", len(PAYLOAD))


def test_no_ack_flag_no_acknowledgement() -> None:
    (segment,) = decode(ethernet(ipv4(tcp(flags=0x02, ack=77))))[0].segments
    assert (segment.ack, segment.flags) == (-1, 2)


def test_numbers_with_the_high_bit() -> None:
    (segment,) = decode(ethernet(ipv4(tcp(seq=0xFFFFFFFE, ack=0x80000000, flags=0xFF))))[0].segments
    assert (segment.seq, segment.ack, segment.flags) == (0xFFFFFFFE, 0x80000000, 0xFF)


def extension(following: int, size: int = 8) -> bytes:
    return bytes([following, size // 8 - 1]) + bytes(size - 2)


IPV6_CHAINS = {
    "hop-by-hop": (0, extension(6)),
    "hop-by-hop, destination, routing, destination": (
        0,
        extension(60) + extension(43, 16) + extension(60, 24) + extension(6),
    ),
    "mobility, HIP, shim6": (135, extension(139) + extension(140) + extension(6)),
    "authentication": (51, b"\x06\x04" + bytes(22)),
    "atomic fragment": (44, struct.pack(">BBHI", 6, 0, 0, 5)),
    "atomic fragment with reserved bits": (44, struct.pack(">BBHI", 6, 9, 6, 5)),
    "hop-by-hop, atomic fragment, destination": (
        0,
        extension(44) + struct.pack(">BBHI", 60, 0, 0, 5) + extension(6),
    ),
}


@pytest.mark.parametrize("chain", IPV6_CHAINS)
def test_ipv6_extension_headers(chain: str) -> None:
    next_header, headers = IPV6_CHAINS[chain]
    data = ethernet(ipv6(headers + tcp(PAYLOAD), next_header=next_header), 0x86DD)
    (segment,) = decode(data)[0].segments
    assert segment.payload == PAYLOAD
    assert segment.key == key(A6, B6)
    for size in range(14 + 40, len(data) - len(PAYLOAD)):
        sink, decoder = decode(data[:size], wire=len(data))
        assert (sink.segments, sink.notes, decoder.truncated) == ([], [], 1)


def test_authentication_header_over_ipv4() -> None:
    data = ethernet(ipv4(b"\x06\x04" + bytes(22) + tcp(PAYLOAD), protocol=51))
    (segment,) = decode(data)[0].segments
    assert (segment.key, segment.payload) == (key(A4, B4), PAYLOAD)


@pytest.mark.parametrize(
    "data",
    [
        ethernet(ipv4(tcp(PAYLOAD + bytes(4)), fragment=0x2000)),
        ethernet(ipv4(tcp(PAYLOAD + bytes(4)), fragment=0x0001)),
        ethernet(ipv4(tcp(PAYLOAD + bytes(4)), fragment=0x0100)),
        ethernet(ipv6(struct.pack(">BBHI", 6, 0, 1, 5) + tcp(PAYLOAD + bytes(4)), next_header=44), 0x86DD),
        ethernet(
            ipv6(struct.pack(">BBHI", 6, 0, 0x100, 5) + tcp(PAYLOAD + bytes(4)), next_header=44), 0x86DD
        ),
    ],
)
def test_fragments_are_counted_and_reported_when_they_are_not_whole(data: bytes) -> None:
    """The same one again and again: see test_fragments.py for those that belong together."""
    sink = Recorder()
    decoder = PacketDecoder(sink)
    for number in range(1, 6):
        decoder.packet(number, 5, ETHERNET, data, 0, len(data), len(data))
    assert (sink.segments, sink.notes) == ([], [])
    assert decoder.fragments == 5
    decoder.finish()
    assert [(n.code, n.packet) for n in sink.notes] == [("capture/ip-fragment", 1)]


@pytest.mark.parametrize(
    ("code", "data"),
    [
        ("capture/ip-header", ethernet(ipv4(tcp(PAYLOAD), header_words=4))),
        ("capture/ip-header", ethernet(ipv4(tcp(PAYLOAD), total=19))),
        ("capture/ip-header", ethernet(b"\x55" + V4[1:])),
        ("capture/ip-header", ethernet(ipv6(extension(6, 64)[:8] + tcp(PAYLOAD), next_header=0), 0x86DD)),
        ("capture/ip-header", ethernet(ipv6(extension(6)[:4], next_header=0) + bytes(60), 0x86DD)),
        (
            "capture/ip-header",
            ethernet(ipv6(extension(60) * 17 + extension(6) + tcp(), next_header=60), 0x86DD),
        ),
        ("capture/tcp-header", ethernet(ipv4(tcp(PAYLOAD), total=39) + bytes(20))),
        ("capture/tcp-header", ethernet(ipv4(tcp(PAYLOAD, data_offset=4)))),
        ("capture/tcp-header", ethernet(ipv4(tcp(PAYLOAD, data_offset=8)))),
        ("capture/tcp-header", ethernet(ipv6(tcp(PAYLOAD), length=19), 0x86DD)),
    ],
)
def test_malformed_headers_are_noted_a_few_times(code: str, data: bytes) -> None:
    sink = Recorder()
    decoder = PacketDecoder(sink)
    for number in range(1, 101):
        decoder.packet(number, 5, ETHERNET, data, 0, len(data), len(data))
    decoder.finish()
    assert sink.segments == []
    assert decoder.malformed == 100
    assert sink.codes() == [code] * (MAX_NOTES + 1)
    assert [n.packet for n in sink.notes] == [*range(1, MAX_NOTES + 1), 0]
    assert sink.notes[-1].detail == f"{100 - MAX_NOTES} more"


def test_a_data_offset_that_just_fits() -> None:
    assert decode(ethernet(ipv4(tcp(PAYLOAD, data_offset=7))))[0].payloads() == [b""]


def test_unknown_link_types_are_noted_once_each_and_counted() -> None:
    sink = Recorder()
    decoder = PacketDecoder(sink)
    for number in range(1, 301):
        decoder.packet(number, 5, 1000 + number % 100, V4, 0, len(V4), len(V4))
    decoder.finish()
    assert decoder.unknown_link == 300
    assert decoder.packets == 300
    assert sink.codes() == ["capture/link-type"] * MAX_LINK_TYPES
    assert "1001" in sink.notes[0].detail
    assert len(decoder.link_types) == MAX_LINK_TYPES
    assert decoder.link_types[1001] == 3


def test_many_flows_keep_their_keys_apart() -> None:
    """More flows than are remembered, so that what is remembered is thrown away on the way."""
    sink = Recorder()
    decoder = PacketDecoder(sink)
    for number in range(70_000):
        data = ipv4(tcp(source_port=number & 0xFFFF), source=str(ip_address(number)))
        decoder.packet(number + 1, 5, 101, data, 0, len(data), len(data))
    assert len(decoder.reverses) < 70_000
    for number in (0, 1, 65_535, 65_536, 69_999):
        segment = sink.segments[number]
        ends = (str(ip_address(number)), B4)
        assert segment.key == key(*ends, source_port=number & 0xFFFF)
        assert segment.reverse == key(*ends[::-1], 5672, number & 0xFFFF)


@pytest.mark.parametrize(
    ("flags", "options", "window"),
    [
        (0x18, b"", 512),
        (0x18, b"\3\3\7\0", 512),  # only a SYN tells the scale
        (0x02, b"", 512 | 16 << 16),
        (0x12, b"\2\4\5\xb4\1\3\3\7", 512 | 8 << 16),
        (0x02, b"\3\3\0\0", 512 | 1 << 16),
        (0x02, b"\3\3\xff\0", 512 | 15 << 16),  # as 14: RFC 7323, section 2.3
        (0x02, b"\0\3\3\7", 512 | 16 << 16),  # behind the end of the options
        (0x02, b"\4\0\3\3\7\0\0\0", 512 | 8 << 16),  # a length that cannot be
        (0x02, b"\2\x28\5\xb4", 512 | 16 << 16),  # longer than all options
        (0x02, b"\1\1\1\3", 512 | 16 << 16),
    ],
)
def test_the_window_and_its_scale(flags: int, options: bytes, window: int) -> None:
    sink, _ = decode(ethernet(ipv4(tcp(b"", flags=flags, options=options))))
    assert len(sink.segments) == 1
    assert sink.segments[0].window == window


def test_the_scale_of_a_window_is_not_known_if_options_were_not_captured() -> None:
    whole = ethernet(ipv4(tcp(b"", flags=2, options=b"\1\1\1\1\1\3\3\7")))
    sink, _ = decode(whole[:-4], wire=len(whole))
    assert sink.segments[0].window == 512
