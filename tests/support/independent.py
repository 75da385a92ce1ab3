"""A second opinion on a capture: which AMQP 1.0 frames go which way. It shares nothing with the product.

    for walk in walk_capture(path):
        walk.source, walk.destination       "10.0.0.1:51034", "[fd00::2]:5672"
        walk.counts                         Counter: "open", "transfer", "sasl-init", "empty", "header 0", ...
        walk.frames                         [(packet number of the first octet, name, channel), ...]
        walk.bodies                         the octets of each frame after its header, in the same order
        walk.stopped                        why the walk ended before the octets did, or ""

One walk is one direction of one TCP connection, in the order of its first segment in the file. A SYN with
another initial sequence number begins a new one. Everything here is done in the plainest way: scapy reads
packets, segments are put where their sequence numbers say (the copy captured first wins), and the walk stops
at the first hole and at the first thing that is no frame: nothing is guessed or skipped.

Names are the performative's from its descriptor, numeric or symbolic; "header N" for a protocol header with
protocol id N and version 1.0.0, "empty" for a frame without a body, "unknown D" for any other descriptor.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet
from scapy.utils import PcapReader

NAMES = {
    0x10: "open",
    0x11: "begin",
    0x12: "attach",
    0x13: "flow",
    0x14: "transfer",
    0x15: "disposition",
    0x16: "detach",
    0x17: "end",
    0x18: "close",
    0x40: "sasl-mechanisms",
    0x41: "sasl-init",
    0x42: "sasl-challenge",
    0x43: "sasl-response",
    0x44: "sasl-outcome",
}


@dataclass
class Walk:
    """One direction of one connection."""

    source: str
    destination: str
    frames: list[tuple[int, str, int]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    stopped: str = ""

    @property
    def counts(self) -> Counter[str]:
        return Counter(name for _, name, _ in self.frames)


class _Direction:
    """The octets of one direction, and the packet that brought each."""

    def __init__(self, source: str, destination: str, base: int, has_syn: bool) -> None:
        self.source = source
        self.destination = destination
        self.base = base  # the sequence number of offset 0
        self.has_syn = has_syn
        self.pieces: list[tuple[int, bytes, int]] = []  # (offset, octets, packet), sorted, never overlapping

    def add(self, sequence: int, octets: bytes, packet: int) -> None:
        offset = (sequence - self.base + 2**31) % 2**32 - 2**31
        if offset < 0:  # a keep-alive, or from before the capture
            octets, offset = octets[-offset:], 0
        place = bisect_right(self.pieces, offset, key=lambda piece: piece[0])
        if place:  # what the piece before already has
            before, had, _ = self.pieces[place - 1]
            covered = max(0, before + len(had) - offset)
            octets, offset = octets[covered:], offset + covered
        while octets:
            following = self.pieces[place] if place < len(self.pieces) else None
            room = following[0] - offset if following else len(octets)
            if octets[:room]:
                self.pieces.insert(place, (offset, octets[:room], packet))
                place += 1
            if following is None:
                return
            past = following[0] + len(following[1]) - offset
            octets, offset = octets[past:], offset + past
            place += 1

    def contiguous(self) -> tuple[bytes, list[tuple[int, int]], bool]:
        """The octets up to the first hole, (offset, packet) of each piece, and whether there was a hole."""
        octets = bytearray()
        origins: list[tuple[int, int]] = []
        for offset, piece, packet in self.pieces:
            if offset != len(octets):
                return bytes(octets), origins, True
            origins.append((offset, packet))
            octets += piece
        return bytes(octets), origins, False


def walk_capture(path: Path) -> list[Walk]:
    """All directions that carried any octets."""
    directions: list[_Direction] = []
    present: dict[tuple[str, str], _Direction] = {}
    with PcapReader(_file(path)) as reader:  # reads pcapng too
        for number, packet in enumerate(_packets(reader), 1):
            ip = _ip(packet)
            if ip is None or TCP not in ip:
                continue
            tcp = ip[TCP]
            pair = (_end(ip.src, tcp.sport), _end(ip.dst, tcp.dport))
            syn = bool(tcp.flags.S)
            first = (tcp.seq + syn) % 2**32
            octets = _payload(ip)
            direction = present.get(pair)
            if direction is None or (syn and (not direction.has_syn or direction.base != first)):
                if not syn and not octets:
                    continue
                direction = present[pair] = _Direction(*pair, base=first, has_syn=syn)
                directions.append(direction)
            if octets:
                direction.add(first, octets, number)
    return [_walk(direction) for direction in directions if direction.pieces]


def _packets(reader: Any) -> Iterator[Packet]:
    """Its packets, whole: iterating over the reader cuts them to 65535 octets, link layer included."""
    while True:
        try:
            yield reader.read_packet(size=1 << 24)
        except EOFError:
            return


def _file(path: Path) -> Any:
    """The file; the pcap of Kuznetzov, with record headers 8 octets longer, made into one scapy knows."""
    octets = path.read_bytes()
    if octets[:4] != b"\x34\xcd\xb2\xa1":
        return BytesIO(octets)
    plain = bytearray(b"\xd4\xc3\xb2\xa1" + octets[4:24])
    position = 24
    while position + 24 <= len(octets):
        end = position + 24 + int.from_bytes(octets[position + 8 : position + 12], "little")
        plain += octets[position : position + 16] + octets[position + 24 : end]
        position = end
    return BytesIO(plain)


def _ip(packet: Packet) -> Packet | None:
    """The IP layer; scapy does not know every address family of the null and loop link types."""
    for layer in (IP, IPv6):
        if layer in packet:
            found: Packet = packet[layer]
            return found
    return IPv6(packet.original[4:]) if "Loopback" in str(packet.name) else None


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _payload(ip: Packet) -> bytes:
    """What the segment carries: scapy has already cut it by IP's length field, unless that is 0."""
    tcp = ip[TCP]
    octets: bytes = tcp.original[tcp.dataofs * 4 :]
    return octets


def _walk(direction: _Direction) -> Walk:
    octets, origins, hole = direction.contiguous()
    walk = Walk(direction.source, direction.destination)
    position = 0
    while position < len(octets):
        rest = octets[position : position + 8]
        if len(rest) < 8:
            walk.stopped = "hole" if hole else "cut off"
            break
        packet = origins[bisect_right(origins, position, key=lambda origin: origin[0]) - 1][1]
        if rest[:4] == b"AMQP":
            name = f"header {rest[4]}" if rest[5:] == b"\x01\x00\x00" else f"header {rest[4:].hex()}"
            walk.frames.append((packet, name, 0))
            walk.bodies.append(b"")
            position += 8
            if rest[5:] != b"\x01\x00\x00":
                walk.stopped = "another protocol" if position < len(octets) else ""
                break
            continue
        size, doff, kind, channel = struct.unpack(">IBBH", rest)
        if size < 8 or not 8 <= doff * 4 <= size or kind > 1:
            walk.stopped = "not a frame"
            break
        if position + size > len(octets):
            walk.stopped = "hole" if hole else "cut off"
            break
        body = octets[position + doff * 4 : position + size]
        walk.frames.append((packet, _name(body), channel))
        walk.bodies.append(body)
        position += size
    if position == len(octets) and hole:
        walk.stopped = "hole"
    return walk


def _name(body: bytes) -> str:
    """The name of a frame's body by its descriptor."""
    if not body:
        return "empty"
    if body[0] != 0 or len(body) < 2:
        return "undescribed"
    code = body[1]
    if code in (0x44, 0x53, 0x80):  # ulong0, smallulong, ulong
        size = {0x44: 0, 0x53: 1, 0x80: 8}[code]
        number = int.from_bytes(body[2 : 2 + size], "big")
        return NAMES.get(number, f"unknown {number:#x}")
    if code in (0xA3, 0xB3):  # sym8, sym32
        start = 3 if code == 0xA3 else 6
        symbol = body[start : start + int.from_bytes(body[2:start], "big")].decode("latin-1")
        name = symbol.removeprefix("amqp:").removesuffix(":list")
        return name if symbol == f"amqp:{name}:list" and name in NAMES.values() else f"unknown {symbol}"
    return f"unknown descriptor {code:#04x}"
