"""A recorder is given every captured packet, as it was captured, and nothing else."""

from support.capture_files import (
    START,
    Record,
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
from support.recorded import Recorded, packets_of


def test_packets_of_a_pcap_file() -> None:
    records = [Record(START, packet(b"abc")), Record(START + 1000, b"no packet at all", 1700)]
    assert packets_of(pcap(records, link_type=1))[0] == [
        Recorded(1, START, 0, 1, packet(b"abc"), 57),
        Recorded(2, START + 1000, 0, 1, b"no packet at all", 1700),
    ]


def test_packets_of_a_pcapng_file_and_their_interfaces() -> None:
    first, second = packet(b"a"), packet(b"b")[14:]
    data = section() + interface(1) + interface(101)
    data += enhanced(second, 7, interface_id=1) + simple(first) + obsolete(second, 8, interface_id=1)
    data += enhanced(first, 9, wire=99)
    assert packets_of(data)[0] == [
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
    kept, sink = packets_of(pcap([Record(START, data) for data in (tunnel, whole, *parts)]))
    assert [one.data for one in kept] == [tunnel, whole, *parts]
    assert sink.payloads() == [b"AMQP"] * 3
