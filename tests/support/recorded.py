"""What was recorded: packets as a recorder is given them, and the blocks of a pcapng file, read anew."""

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from support.capture_files import Recorder

from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.reader import for_magic
from amqpscope.capture.recorder import Packet, PacketRecorder


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

    def packet(self, packet: Packet) -> None:
        octets = packet.buf[packet.start : packet.end]
        self.packets.append(
            Recorded(packet.number, packet.time, packet.interface, packet.link_type, octets, packet.wire)
        )


def captured(
    number: int, time: int, data: bytes, interface: int = 0, link_type: int = 1, wire: int | None = None
) -> Packet:
    """A packet for a recorder, with other octets around it."""
    packet = Packet()
    packet.number, packet.time, packet.interface, packet.link_type = number, time, interface, link_type
    packet.buf = b"before" + data + b"behind"
    packet.start, packet.end = 6, 6 + len(data)
    packet.wire = len(data) if wire is None else wire
    return packet


def packets_of(data: bytes, size: int = 1 << 20) -> tuple[list[Recorded], Recorder]:
    """The packets of a capture file as its reader gives them, fed so many octets at a time."""
    sink, kept = Recorder(), Kept()
    decoder = PacketDecoder(sink)
    decoder.recorder = kept
    reader = for_magic(data[:4], sink, decoder)
    assert reader is not None
    for at in range(0, len(data), size):
        reader.feed(data[at : at + size])
    reader.finish()
    return kept.packets, sink


@dataclass
class Block:
    kind: int
    fixed: bytes
    data: bytes = b""
    options: dict[int, list[bytes]] = field(default_factory=dict)

    @property
    def comments(self) -> list[str]:
        return [value.decode() for value in self.options.get(1, [])]

    @property
    def time(self) -> int:
        high, low = struct.unpack_from("<II", self.fixed, 4)
        return (high << 32) | low


_FIXED = {0x0A0D0D0A: 16, 1: 8, 5: 12, 6: 20}


def blocks_of(data: bytes) -> list[Block]:
    """The blocks of a little-endian file, each checked against what the format asks for."""
    found = []
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert length % 4 == 0
        assert at + length <= len(data)
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        begin = at + 8 + _FIXED[kind]
        block = Block(kind, data[at + 8 : begin])
        if kind == 6:
            (captured,) = struct.unpack_from("<I", block.fixed, 12)
            block.data = data[begin : begin + captured]
            assert not any(data[begin + captured : begin + captured + -captured % 4])
            begin += captured + -captured % 4
        end = at + length - 4
        while begin < end:
            code, size = struct.unpack_from("<HH", data, begin)
            value = data[begin + 4 : begin + 4 + size]
            assert not any(data[begin + 4 + size : begin + 4 + size + -size % 4])
            begin += 4 + size + -size % 4
            if code == 0:
                assert (size, begin) == (0, end)
            else:
                assert begin <= end - 4, "no room for the end of options"
                block.options.setdefault(code, []).append(value)
        found.append(block)
        at += length
    return found
