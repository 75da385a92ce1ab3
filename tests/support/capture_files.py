"""Capture files and packets put together octet by octet, independent of the product's readers."""

import struct
from collections.abc import Sequence
from ipaddress import ip_address
from typing import NamedTuple

from amqpscope.capture.packet import SegmentSink
from amqpscope.capture.segment import Segment as Captured

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND

A4, B4 = "10.0.0.1", "10.0.0.2"
A6, B6 = "2001:db8::1", "2001:db8::2"


def tcp(
    payload: bytes = b"",
    source_port: int = 40000,
    destination_port: int = 5672,
    seq: int = 1000,
    ack: int = 2000,
    flags: int = 0x18,
    options: bytes = b"",
    data_offset: int | None = None,
) -> bytes:
    words = 5 + len(options) // 4 if data_offset is None else data_offset
    header = struct.pack(">HHIIBBHHH", source_port, destination_port, seq, ack, words << 4, flags, 512, 0, 0)
    return header + options + payload


def ipv4(
    payload: bytes,
    source: str = A4,
    destination: str = B4,
    protocol: int = 6,
    options: bytes = b"",
    total: int | None = None,
    fragment: int = 0x4000,
    header_words: int | None = None,
) -> bytes:
    words = 5 + len(options) // 4 if header_words is None else header_words
    length = 20 + len(options) + len(payload) if total is None else total
    header = struct.pack(">BBHHHBBH", 0x40 | words, 0, length, 7, fragment, 64, protocol, 0)
    return header + ip_address(source).packed + ip_address(destination).packed + options + payload


def ipv6(
    payload: bytes,
    source: str = A6,
    destination: str = B6,
    next_header: int = 6,
    length: int | None = None,
) -> bytes:
    size = len(payload) if length is None else length
    header = struct.pack(">IHBB", 0x60000000, size, next_header, 64)
    return header + ip_address(source).packed + ip_address(destination).packed + payload


def ethernet(payload: bytes, ethertype: int = 0x0800, tags: Sequence[int] = ()) -> bytes:
    header = b"\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02"
    for tag in tags:
        header += struct.pack(">HH", tag, 42)
    return header + struct.pack(">H", ethertype) + payload


def packet(payload: bytes = b"", **fields: int) -> bytes:
    """An ordinary packet: Ethernet, IPv4, TCP."""
    return ethernet(ipv4(tcp(payload, **fields)))


class Record(NamedTuple):
    time: int
    data: bytes
    wire: int | None = None  # octets on the wire, if not those captured


def pcap_header(
    order: str = "<", magic: int = 0xA1B2C3D4, snaplen: int = 262144, link_type: int = 1, major: int = 2
) -> bytes:
    return struct.pack(order + "IHHiIII", magic, major, 4, 0, 0, snaplen, link_type)


def pcap_record(record: Record, order: str = "<", magic: int = 0xA1B2C3D4) -> bytes:
    unit = 1 if magic == 0xA1B23C4D else 1000
    wire = len(record.data) if record.wire is None else record.wire
    header = struct.pack(
        order + "IIII", record.time // SECOND, record.time % SECOND // unit, len(record.data), wire
    )
    if magic == 0xA1B2CD34:
        header += struct.pack(order + "IHBB", 1, 0x0800, 0, 0)
    return header + record.data


def pcap(
    records: Sequence[Record],
    order: str = "<",
    magic: int = 0xA1B2C3D4,
    snaplen: int = 262144,
    link_type: int = 1,
) -> bytes:
    return pcap_header(order, magic, snaplen, link_type) + b"".join(
        pcap_record(record, order, magic) for record in records
    )


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def block(
    kind: int, body: bytes, order: str = "<", length: int | None = None, again: int | None = None
) -> bytes:
    """A pcapng block; `length` and `again` replace the correct lengths in front and behind."""
    size = 12 + len(padded(body)) if length is None else length
    trailer = size if again is None else again
    return struct.pack(order + "II", kind, size) + padded(body) + struct.pack(order + "I", trailer)


def section(order: str = "<", major: int = 1) -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, major, 0, -1), order)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + padded(value)


def interface(link_type: int = 1, snaplen: int = 0, order: str = "<", options: bytes = b"") -> bytes:
    return block(1, struct.pack(order + "HHI", link_type, 0, snaplen) + options, order)


def enhanced(
    data: bytes,
    ticks: int = 0,
    order: str = "<",
    interface_id: int = 0,
    captured: int | None = None,
    wire: int | None = None,
    options: bytes = b"",
    length: int | None = None,
    again: int | None = None,
) -> bytes:
    fixed = struct.pack(
        order + "IIIII",
        interface_id,
        ticks >> 32,
        ticks & 0xFFFFFFFF,
        len(data) if captured is None else captured,
        len(data) if wire is None else wire,
    )
    return block(6, fixed + padded(data) + options, order, length, again)


def simple(data: bytes, order: str = "<", wire: int | None = None) -> bytes:
    return block(3, struct.pack(order + "I", len(data) if wire is None else wire) + data, order)


def obsolete(data: bytes, ticks: int = 0, order: str = "<", interface_id: int = 0, lost: int = 0) -> bytes:
    fixed = struct.pack(
        order + "HHIIII", interface_id, lost, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data)
    )
    return block(2, fixed + padded(data), order)


def statistics(options: bytes, order: str = "<", interface_id: int = 0) -> bytes:
    return block(5, struct.pack(order + "III", interface_id, 0, 0) + options, order)


def time_option(code: int, ticks: int, order: str = "<") -> bytes:
    return option(code, struct.pack(order + "II", ticks >> 32, ticks & 0xFFFFFFFF), order)


def count_option(code: int, count: int, order: str = "<") -> bytes:
    return option(code, struct.pack(order + "Q", count), order)


class Segment(NamedTuple):
    key: bytes
    reverse: bytes
    packet: int
    time: int
    seq: int
    ack: int
    flags: int
    payload: bytes
    cut: int
    window: int
    identification: int


class Note(NamedTuple):
    code: str
    packet: int
    time: int
    detail: str


class Recorder(SegmentSink):
    """Keeps what it is handed."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.notes: list[Note] = []
        self.lost: list[tuple[int, int, int]] = []  # packet, time, count

    def segment(self, segment: Captured) -> None:
        assert 0 <= segment.start <= segment.end <= len(segment.buf)
        one = segment.kept()
        self.segments.append(
            Segment(
                one.key,
                one.reverse,
                one.packet,
                one.time,
                one.seq,
                one.ack,
                one.flags,
                one.buf,
                one.cut,
                one.window,
                one.identification,
            )
        )

    def note(self, code: str, packet: int, time: int, detail: str) -> None:
        self.notes.append(Note(code, packet, time, detail))

    def dropped(self, packet: int, time: int, count: int) -> None:
        self.lost.append((packet, time, count))

    def payloads(self) -> list[bytes]:
        return [segment.payload for segment in self.segments]

    def codes(self) -> list[str]:
        return [note.code for note in self.notes]
