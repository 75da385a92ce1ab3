"""A recorder is given every captured packet, as it was captured, and nothing else."""

from typing import NamedTuple

from support.capture_files import (
    START,
    Record,
    Recorder,
    enhanced,
    ethernet,
    interface,
    ipv4,
    obsolete,
    packet,
    pcap,
    section,
    simple,
    tcp,
)

from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.reader import for_magic
from amqpscope.capture.recorder import PacketRecorder


class Recorded(NamedTuple):
    number: int
    time: int
    interface: int
    link_type: int
    data: bytes
    wire: int


class Kept(PacketRecorder):
    def __init__(self) -> None:
        self.packets: list[Recorded] = []

    def packet(
        self,
        number: int,
        time: int,
        interface: int,
        link_type: int,
        buf: bytes,
        start: int,
        end: int,
        wire: int,
    ) -> None:
        self.packets.append(Recorded(number, time, interface, link_type, buf[start:end], wire))


def record(data: bytes) -> tuple[list[Recorded], Recorder]:
    sink, kept = Recorder(), Kept()
    decoder = PacketDecoder(sink)
    decoder.recorder = kept
    reader = for_magic(data[:4], sink, decoder)
    assert reader is not None
    reader.feed(data)
    reader.finish()
    return kept.packets, sink


def test_packets_of_a_pcap_file() -> None:
    records = [Record(START, packet(b"abc")), Record(START + 1000, b"no packet at all", 1700)]
    assert record(pcap(records, link_type=1))[0] == [
        Recorded(1, START, 0, 1, packet(b"abc"), 57),
        Recorded(2, START + 1000, 0, 1, b"no packet at all", 1700),
    ]


def test_packets_of_a_pcapng_file_and_their_interfaces() -> None:
    first, second = packet(b"a"), packet(b"b")[14:]
    data = section() + interface(1) + interface(101)
    data += enhanced(second, 7, interface_id=1) + simple(first) + obsolete(second, 8, interface_id=1)
    data += enhanced(first, 9, wire=99)
    assert record(data)[0] == [
        Recorded(1, 7000, 1, 101, second, 41),
        Recorded(2, 0, 0, 1, first, 55),
        Recorded(3, 8000, 1, 101, second, 41),
        Recorded(4, 9000, 0, 1, first, 99),
    ]


def test_a_packet_found_within_another_is_not_one_of_its_own() -> None:
    inside = ipv4(tcp(b"AMQP"))
    tunnel = ethernet(ipv4(inside, protocol=4))
    whole = ethernet(inside)
    # The same in two fragments: the datagram is whole with the second.
    parts = [
        ethernet(ipv4(inside[20:36], fragment=0x2000)),
        ethernet(ipv4(inside[36:], fragment=2)),
    ]
    kept, sink = record(pcap([Record(START, data) for data in (tunnel, whole, *parts)]))
    assert [one.data for one in kept] == [tunnel, whole, *parts]
    assert sink.payloads() == [b"AMQP"] * 3
