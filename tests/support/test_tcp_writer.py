"""The conversation writer, read back by scapy and by hand: a mistake here would hide one in the product."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import TCP
from scapy.layers.inet6 import IPv6
from scapy.utils import PcapNgReader, RawPcapReader, rdpcap
from support.tcp_writer import ACK, LINK_TYPES, SYN, Capture, Packet


def flags_and_numbers(packet: Packet) -> tuple[int, int, int]:
    """TCP flags, sequence and acknowledgement number of a packet on raw IPv4 without options."""
    sequence, acknowledgement = struct.unpack_from(">II", packet.data, 24)
    return packet.data[33], sequence, acknowledgement


def payload(packet: Packet) -> bytes:
    return packet.data[40:]


def dialogue(link: str = "raw", **options: Any) -> tuple[Capture, Any]:
    capture = Capture(link)
    return capture, capture.connection(client_isn=100, server_isn=200, **options)


def test_one_packet_to_the_octet() -> None:
    _, tcp = dialogue("ethernet")
    packet = tcp.client.send(b"AB")[0]
    assert (
        packet.data.hex(" ", 2)
        == (
            "0200 0000 0002 0200 0000 0001 0800"  # Ethernet
            # IPv4: 42 octets, identification 1, do not fragment, 64 hops, TCP; the sum of the words is
            # 4500+002a+0001+4000+4006+0a00+0001+0a00+0002 = d934, its complement 26cb.
            " 4500 002a 0001 4000 4006 26cb 0a00 0001 0a00 0002"
            # Ports 51034 and 5672, sequence 101, acknowledged 201, 5 words, PSH and ACK, all of the window.
            " c75a 1628 0000 0065 0000 00c9 5018 ffff " + packet.data[50:52].hex() + " 0000 4142"
        )
    )
    words = struct.unpack(">11H", packet.data[34:56])
    total = 0x0A00 + 0x0001 + 0x0A00 + 0x0002 + 6 + 22 + sum(words)
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    assert total == 0xFFFF
    assert packet.time == 1_700_000_000_000_000_000
    assert packet.wire_length == len(packet.data) == 56


@pytest.mark.parametrize(
    ("link", "version"),
    [(k, v) for k in LINK_TYPES for v in (4, 6) if (k, v) not in (("ipv4", 6), ("ipv6", 4))],
)
@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
def test_every_link_layer_is_read_back_by_scapy(link: str, version: int, suffix: str, tmp_path: Path) -> None:
    capture = Capture(link, vlan=(5, 7) if link == "ethernet" else (), padded=True)
    if version == 4:
        tcp = capture.connection(ip_options=b"\x01\x01\x01\x00", tcp_options=b"\x01\x01\x08\x0a" + bytes(8))
    else:
        tcp = capture.connection(
            "[fd00::1]:51034", "[fd00::2]:5672", ip_extensions=[(0, bytes.fromhex("00010400000000"))]
        )
    tcp.handshake()
    tcp.client.send(b"hello")
    tcp.server.send(b"world!")
    tcp.goodbye()
    read = rdpcap(str(capture.write(tmp_path / f"one.{suffix}")))
    assert len(read) == len(capture.packets) == 8
    contents = []
    for packet, written in zip(read, capture.packets, strict=True):
        if TCP not in packet:  # scapy does not know the address families of IPv6 in null and loop
            time, packet = packet.time, IPv6(packet.original[4:])
            packet.time = time
        segment = packet[TCP]
        given = segment.chksum
        segment.chksum = None  # scapy computes it again
        assert packet.__class__(bytes(packet))[TCP].chksum == given
        assert int(packet.time * 1_000_000_000) == written.time
        contents.append((segment.sport, bytes(segment.payload.original[:6] if segment.payload else b"")))
    assert contents[3:5] == [(51034, b"hello"), (5672, b"world!")]


def test_handshake_data_and_goodbye_number_their_octets() -> None:
    capture, tcp = dialogue()
    tcp.handshake()
    tcp.client.send(b"12345")
    tcp.server.send(b"123")
    tcp.goodbye()
    assert [flags_and_numbers(packet) for packet in capture.packets] == [
        (0x02, 100, 0),
        (0x12, 200, 101),
        (0x10, 101, 201),
        (0x18, 101, 201),
        (0x18, 201, 106),
        (0x11, 106, 204),
        (0x11, 204, 107),
        (0x10, 107, 205),
    ]


def test_sequence_numbers_wrap() -> None:
    capture = Capture("raw")
    tcp = capture.connection(client_isn=2**32 - 3, server_isn=2**32 - 1)
    tcp.client.send(b"1234", each=2)
    tcp.server.send(b"x")
    numbers = [flags_and_numbers(packet)[1:] for packet in capture.packets]
    assert numbers == [(2**32 - 2, 0), (0, 0), (0, 2)]


def test_send_cuts_by_sizes_by_each_and_by_mss() -> None:
    _, tcp = dialogue(mss=4)
    assert [payload(p) for p in tcp.client.send(b"abcdefghij", cut=(1, 2))] == [b"a", b"bc", b"defg", b"hij"]
    assert [payload(p) for p in tcp.client.send(b"abc", each=1)] == [b"a", b"b", b"c"]


def test_delayed_acknowledgement_rides_on_the_next_segment() -> None:
    capture, tcp = dialogue()
    tcp.client.send(b"12")
    tcp.client.send(b"34")
    tcp.server.send(b"x")
    assert len(capture.packets) == 3
    assert flags_and_numbers(capture.packets[2]) == (0x18, 201, 105)


def test_immediate_acknowledgement_is_a_packet_of_its_own() -> None:
    capture, tcp = dialogue(acks="immediate")
    tcp.client.send(b"12", each=1)
    assert [flags_and_numbers(packet) for packet in capture.packets[1::2]] == [
        (0x10, 201, 102),
        (0x10, 201, 103),
    ]


def test_nothing_is_acknowledged_until_it_is_said() -> None:
    _, tcp = dialogue(acks="none")
    tcp.client.send(b"1234")
    assert flags_and_numbers(tcp.server.send(b"x")[0])[2] == 101
    tcp.server.hears(2)
    assert flags_and_numbers(tcp.server.send(b"x")[0])[2] == 103
    assert flags_and_numbers(tcp.server.ack())[2] == 105


def test_crossing_ends_have_not_heard_each_other() -> None:
    _, tcp = dialogue()
    with tcp.crossing():
        tcp.client.send(b"12")
        assert flags_and_numbers(tcp.server.send(b"345")[0])[2] == 101
    assert flags_and_numbers(tcp.server.send(b"6")[0])[2] == 103
    assert flags_and_numbers(tcp.client.send(b"7")[0])[2] == 205


def test_a_lost_segment_is_acknowledged_only_after_its_retransmission_and_all_after_it_then_too() -> None:
    _, tcp = dialogue()
    tcp.client.send(b"1")
    with tcp.lost():
        tcp.client.send(b"23")
    lost = tcp.client.last
    tcp.client.send(b"4")
    assert flags_and_numbers(tcp.server.send(b"x")[0])[2] == 102
    tcp.client.last = lost
    again = tcp.client.retransmit()
    assert [(flags_and_numbers(p)[1], payload(p)) for p in again] == [(102, b"23")]
    assert flags_and_numbers(tcp.server.send(b"x")[0])[2] == 105


def test_retransmission_of_a_part() -> None:
    _, tcp = dialogue()
    tcp.client.send(b"0")
    tcp.client.send(b"abcdef")
    [again] = tcp.client.retransmit(skip=2, size=3)
    assert (flags_and_numbers(again)[1], payload(again)) == (104, b"cde")
    assert flags_and_numbers(tcp.server.send(b"x")[0])[2] == 108
    assert flags_and_numbers(tcp.client.send(b"g")[0])[1] == 108


def test_keep_alive_and_reset() -> None:
    _, tcp = dialogue()
    tcp.client.send(b"abc")
    assert flags_and_numbers(tcp.client.keep_alive()) == (0x10, 103, 201)
    probe = tcp.client.keep_alive(1)
    assert (flags_and_numbers(probe)[1], payload(probe)) == (103, b"\0")
    assert flags_and_numbers(tcp.server.rst()) == (0x14, 201, 104)
    assert flags_and_numbers(tcp.server.rst(ack=False)) == (0x04, 201, 0)


def test_what_the_tap_misses_was_still_heard() -> None:
    capture, tcp = dialogue()
    with capture.missed():
        tcp.client.send(b"12")
    tcp.server.send(b"x")
    assert [flags_and_numbers(packet) for packet in capture.packets] == [(0x18, 201, 103)]


def test_reordering_keeps_the_times_rising() -> None:
    capture, tcp = dialogue()
    tcp.client.send(b"0")
    with capture.reordered(2, 0, 1):
        tcp.client.send(b"abc", each=1)
    with capture.reordered():
        tcp.client.send(b"de", each=1)
    assert b"".join(payload(packet) for packet in capture.packets) == b"0cabed"
    times = [packet.time for packet in capture.packets]
    assert times == sorted(set(times))


def test_duplicates() -> None:
    capture, tcp = dialogue()
    with capture.duplicated():
        tcp.client.send(b"ab", each=1)
    assert b"".join(payload(packet) for packet in capture.packets) == b"aabb"


def test_a_delayed_direction_moves_in_the_file() -> None:
    capture, tcp = dialogue()
    first = tcp.client.send(b"a")[0]
    second = tcp.server.send(b"b")[0]
    tcp.client.send(b"c")
    capture.delay(tcp.client, milliseconds=1.5)
    assert b"".join(payload(packet) for packet in capture.packets) == b"bac"
    assert (capture.number(first), capture.number(second)) == (2, 1)
    assert first.time == 1_700_000_000_001_500_000


def test_wait_moves_the_clock() -> None:
    capture, tcp = dialogue()
    first = tcp.client.send(b"a")[0]
    capture.wait(seconds=2, milliseconds=1)
    assert tcp.client.send(b"b")[0].time - first.time == capture.step + 2_001_000_000


def test_segment_takes_any_numbers() -> None:
    _, tcp = dialogue()
    packet = tcp.client.segment(b"xy", offset=10, ack=7, flags=ACK)
    assert (flags_and_numbers(packet), payload(packet)) == ((0x10, 111, 208), b"xy")
    assert flags_and_numbers(tcp.server.segment(flags=SYN)) == (0x02, 200, 0)


def test_ip_length_zero() -> None:
    _, tcp = dialogue(ip_length_zero=True)
    assert tcp.client.send(b"a")[0].data[2:4] == b"\0\0"


@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_file_formats(byte_order: Any, nanoseconds: bool, tmp_path: Path) -> None:
    capture = Capture("raw", snaplen=41, start=1_000_000_001_234_567_891)
    capture.connection().client.send(b"abc")
    path = tmp_path / "x"
    path.write_bytes(capture.pcap(nanoseconds=nanoseconds, byte_order=byte_order))
    with RawPcapReader(str(path)) as reader:
        [(data, meta)] = list(reader)
    assert (len(data), meta.wirelen, meta.sec) == (41, 43, 1_000_000_001)
    assert meta.usec == (234_567_891 if nanoseconds else 234_567)
    path.write_bytes(capture.pcapng(nanoseconds=nanoseconds, byte_order=byte_order))
    with PcapNgReader(str(path)) as ng:
        [packet] = list(ng)
    assert (len(packet.original), packet.wirelen) == (41, 43)
    assert int(packet.time * 1_000_000_000) == 1_000_000_001_234_567_000 + (891 if nanoseconds else 0)
