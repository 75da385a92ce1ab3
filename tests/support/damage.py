"""Captures taken apart into packets, and written again with one thing wrong with them.

Independent of the product's readers: what should still be read of a damaged file is reported by who damaged
it.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

from support.capture_files import SECOND, block, enhanced, interface, option, section
from support.compressed import ZSTD, zstd

__all__ = ["DAMAGES", "FORMS", "Damaged", "Packet", "Part", "forms_for", "packets_in", "written"]

_MAGICS = {0xA1B2C3D4: (1000, 16), 0xA1B23C4D: (1, 16), 0xA1B2CD34: (1000, 24)}
_NANOSECONDS = 0xA1B23C4D


class Packet(NamedTuple):
    """One captured packet. time: ns since 1970; wire: its octets on the wire."""

    time: int
    link_type: int
    data: bytes
    wire: int


def packets_in(octets: bytes) -> list[Packet]:
    """The packets of a pcap or pcapng file, up to where it ends or makes no sense; none of anything else."""
    for order in "<>":
        (magic,) = struct.unpack_from(order + "I", octets.ljust(4, b"\0"))
        if magic in _MAGICS and len(octets) >= 24:
            return _of_pcap(octets, order, *_MAGICS[magic])
    return _of_pcapng(octets) if octets[:4] == b"\x0a\x0d\x0d\x0a" else []


def _of_pcap(octets: bytes, order: str, unit: int, header: int) -> list[Packet]:
    (link_type,) = struct.unpack_from(order + "I", octets, 20)
    found = []
    at = 24
    while at + header <= len(octets):
        seconds, fraction, captured, wire = struct.unpack_from(order + "IIII", octets, at)
        at += header + captured
        if at > len(octets):
            break
        found.append(
            Packet(seconds * SECOND + fraction * unit, link_type & 0xFFFF, octets[at - captured : at], wire)
        )
    return found


def _of_pcapng(octets: bytes) -> list[Packet]:
    """Interfaces with decimal units and no offset, and enhanced packet blocks: what tools write."""
    found = []
    order = "<"
    interfaces: list[tuple[int, int]] = []
    at = 0
    while at + 12 <= len(octets):
        kind, size = struct.unpack_from(order + "II", octets, at)
        if kind == 0x0A0D0D0A:
            order = "<" if octets[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            (size,) = struct.unpack_from(order + "I", octets, at + 4)
            interfaces = []
        if at + size > len(octets):
            break
        if kind == 1:
            unit = 1000
            option_at = at + 16
            while option_at + 4 < at + size - 4:
                code, length = struct.unpack_from(order + "HH", octets, option_at)
                if code == 9:
                    unit = 10 ** (9 - octets[option_at + 4])
                option_at += 4 + (length + 3 & ~3)
            interfaces.append((struct.unpack_from(order + "H", octets, at + 8)[0], unit))
        elif kind == 6:
            index, high, low, captured, wire = struct.unpack_from(order + "IIIII", octets, at + 8)
            link_type, unit = interfaces[index]
            data = octets[at + 28 : at + 28 + captured]
            found.append(Packet((high << 32 | low) * unit, link_type, data, wire))
        at += size
    return found


class Part(NamedTuple):
    """A stretch of a file. packet: the one that it is the record of, None for what is no packet."""

    octets: bytes
    packet: Packet | None


JsonRenderer = Callable[[Sequence[Packet]], list[Part]]


def _pcap(packets: Sequence[Packet], order: str) -> list[Part]:
    (link_type,) = {packet.link_type for packet in packets}
    parts = [Part(struct.pack(order + "IHHiIII", _NANOSECONDS, 2, 4, 0, 0, 262_144, link_type), None)]
    for packet in packets:
        header = struct.pack(
            order + "IIII", packet.time // SECOND, packet.time % SECOND, len(packet.data), packet.wire
        )
        parts.append(Part(header + packet.data, packet))
    return parts


def _pcapng(packets: Sequence[Packet], order: str) -> list[Part]:
    links = list(dict.fromkeys(packet.link_type for packet in packets))
    nanoseconds = option(9, b"\x09", order)
    parts = [Part(section(order), None)]
    parts += [Part(interface(link, 0, order, nanoseconds), None) for link in links]
    # A block that says nothing about packets, as tools put in.
    parts.append(Part(block(5, bytes(12), order), None))
    for packet in packets:
        one = enhanced(packet.data, packet.time, order, links.index(packet.link_type), wire=packet.wire)
        parts.append(Part(one, packet))
    return parts


FORMS: dict[str, JsonRenderer] = {
    "pcap, little-endian": lambda packets: _pcap(packets, "<"),
    "pcap, big-endian": lambda packets: _pcap(packets, ">"),
    "pcapng, little-endian": lambda packets: _pcapng(packets, "<"),
    "pcapng, big-endian": lambda packets: _pcapng(packets, ">"),
}


def forms_for(packets: Sequence[Packet]) -> list[str]:
    """The forms that can hold these packets: of several link types only pcapng can."""
    several = len({packet.link_type for packet in packets}) > 1
    return [form for form in FORMS if "pcapng" in form or not several]


def written(packets: Sequence[Packet], form: str) -> list[Part]:
    """The packets in one of `FORMS`: a file's head, and the records."""
    return FORMS[form](packets)


class Damaged(NamedTuple):
    """A damaged capture. packets: those that are to be read of it; notes: of these codes one has to be
    reported, if there are any; whole: nothing is lost by it, and nothing is reported by another."""

    octets: bytes
    packets: list[Packet]
    notes: tuple[str, ...] = ()
    whole: bool = False


def _octets(parts: Sequence[Part]) -> bytes:
    return b"".join(part.octets for part in parts)


def _read_of(parts: Sequence[Part]) -> list[Packet]:
    return [part.packet for part in parts if part.packet is not None]


def _one(parts: Sequence[Part], chance: Random) -> int:
    """Where the record of one of the packets is."""
    return chance.choice([at for at, part in enumerate(parts) if part.packet is not None])


def _packets_from(parts: Sequence[Part]) -> int:
    return next(at for at, part in enumerate(parts) if part.packet is not None)


Damage = Callable[[list[Part], Random, str], Damaged]


def undamaged(parts: list[Part], chance: Random, form: str) -> Damaged:
    return Damaged(_octets(parts), _read_of(parts), whole=True)


def ends_inside_a_record(parts: list[Part], chance: Random, form: str) -> Damaged:
    at = _one(parts, chance)
    size = chance.randrange(1, len(parts[at].octets))
    return Damaged(
        _octets(parts[:at]) + parts[at].octets[:size], _read_of(parts[:at]), ("capture/truncated",)
    )


def ends_inside_its_head(parts: list[Part], chance: Random, form: str) -> Damaged:
    size = chance.randrange(4, len(parts[0].octets))
    return Damaged(parts[0].octets[:size], [], ("capture/truncated",))


def starts_late(parts: list[Part], chance: Random, form: str) -> Damaged:
    """As of a rotated set whose first files are gone."""
    begin = _packets_from(parts)
    kept = parts[:begin] + parts[_one(parts, chance) :]
    return Damaged(_octets(kept), _read_of(kept))


def lost(parts: list[Part], chance: Random, form: str) -> Damaged:
    at = _one(parts, chance)
    kept = parts[:at] + parts[at + chance.randrange(1, 4) :]
    return Damaged(_octets(kept), _read_of(kept))


_NETWORK = {0: 4, 1: 14, 113: 16, 276: 20}
"""Octets before the IP header, by link type; none before it in raw IP."""


def _resets(part: Part) -> bool:
    """Whether it has a TCP segment with the flag RST, in IP without options."""
    packet = part.packet
    assert packet is not None
    data = packet.data[_NETWORK.get(packet.link_type, 0) :].ljust(54, b"\0")
    return bool(data[(40 if data[0] >> 4 == 6 else 20) + 13] & 4)


def out_of_order(parts: list[Part], chance: Random, form: str) -> Damaged:
    """Some packets come behind the next three, with their own times.

    None comes behind a reset, which ends all, or is late by what is no disorder any more; nor are the first,
    with which a stream begins whose SYN is missing.
    """
    begin = _packets_from(parts)
    places: list[tuple[float, Part]] = []
    for at, part in enumerate(parts[begin:]):
        following = parts[begin + at : begin + at + 4]
        times = [packet.time for packet in _read_of(following)]
        late = at > 3 and chance.random() < 0.15 and max(times) - min(times) < SECOND // 2
        late = late and not any(map(_resets, following))
        places.append((at + 3.5 * late, part))
    kept = parts[:begin] + [part for _, part in sorted(places, key=lambda place: place[0])]
    return Damaged(_octets(kept), _read_of(kept), whole=True)


def _again(parts: list[Part], form: str, change: Callable[[int, Packet], Packet]) -> list[Part]:
    """The same file with its packets changed."""
    return written([change(number, packet) for number, packet in enumerate(_read_of(parts))], form)


def clock_set_back(parts: list[Part], chance: Random, form: str) -> Damaged:
    """By an hour, or to 1970, at one packet but the first."""
    packets = _read_of(parts)
    begin = chance.randrange(1, max(len(packets), 2))
    hour = chance.random() < 0.7

    def change(number: int, packet: Packet) -> Packet:
        back = 3600 * SECOND if hour else packets[min(begin, len(packets) - 1)].time - SECOND
        # No file can hold a time before 1970.
        return packet._replace(time=max(packet.time - back, 0)) if number >= begin else packet

    kept = _again(parts, form, change)
    notes = ("capture/time",) if begin < len(packets) else ()
    return Damaged(_octets(kept), _read_of(kept), notes, whole=True)


def no_times(parts: list[Part], chance: Random, form: str) -> Damaged:
    kept = _again(parts, form, lambda number, packet: packet._replace(time=0))
    return Damaged(_octets(kept), _read_of(kept), whole=True)


def each_twice(parts: list[Part], chance: Random, form: str) -> Damaged:
    """As of a port that is mirrored in both directions."""
    begin = _packets_from(parts)
    kept = parts[:begin] + [copy for part in parts[begin:] for copy in (part, part)]
    return Damaged(_octets(kept), _read_of(kept), whole=True)


def second_tap(parts: list[Part], chance: Random, form: str) -> Damaged:
    """Each once more behind the next few, as of a tap further on."""
    begin = _packets_from(parts)
    lag = chance.randrange(1, 6) + 0.5
    places = [(at + behind, part) for at, part in enumerate(parts[begin:]) for behind in (0, lag)]
    kept = parts[:begin] + [part for _, part in sorted(places, key=lambda place: place[0])]
    return Damaged(_octets(kept), _read_of(kept), whole=True)


def _cut_packet(packet: Packet, most: int) -> Packet:
    return packet._replace(data=packet.data[:most])


def snapshot_length(parts: list[Part], chance: Random, form: str) -> Damaged:
    most = chance.choice([40, 54, 68, 96, 120])
    kept = _again(parts, form, lambda number, packet: _cut_packet(packet, most))
    return Damaged(_octets(kept), _read_of(kept))


def impossible_length(parts: list[Part], chance: Random, form: str) -> Damaged:
    """A record that claims more octets than any has. Behind it there are enough to be found again."""
    at = _one(parts, chance)
    place = 4 if "pcapng" in form else 8
    one = bytearray(parts[at].octets)
    one[place : place + 4] = b"\x7f\xff\xff\xff"
    return _found_again(parts, at, bytes(one))


def wrong_length(parts: list[Part], chance: Random, form: str) -> Damaged:
    """A record that claims some octets more, or fewer, than it has."""
    at = _one(parts, chance)
    one = bytearray(parts[at].octets)
    order = ">" if "big" in form else "<"
    place = 4 if "pcapng" in form else 8
    if "pcapng" in form:
        (size,) = struct.unpack_from(order + "I", one, place)
        following = _octets(parts[at:])
        size += (
            4
            * chance.choice(
                [
                    more
                    for more in range(1, 9)  # but not such that by chance it stands where the block would end
                    if following[size + 4 * more - 4 :][:4] != struct.pack(order + "I", size + 4 * more)
                ]
            )
        )
    else:  # a length that another packet could have is believed: the next record is misread then
        size = 262_145 + chance.randrange(9)
    struct.pack_into(order + "I", one, place, size)
    return _found_again(parts, at, bytes(one))


def overwritten(parts: list[Part], chance: Random, form: str) -> Damaged:
    """A record's header and all behind it, as by a bad block of a disk."""
    at = _one(parts, chance)
    return _found_again(parts, at, b"\xff" * len(parts[at].octets))


def inserted(parts: list[Part], chance: Random, form: str) -> Damaged:
    at = _one(parts, chance)
    rubbish = b"\xff" * (4 * chance.randrange(3, 30))
    kept = Part(rubbish, None)
    return _found_again([*parts[:at], kept, *parts[at:]], at, rubbish)


def _found_again(parts: list[Part], at: int, instead: bytes) -> Damaged:
    """What is at `at` is damaged, and read on from behind it: if three records follow, else not at all."""
    behind = parts[at + 1 :]
    read = _read_of(parts[:at])
    if len(_read_of(behind)) >= 3:
        read += _read_of(behind)
    return Damaged(
        _octets(parts[:at]) + instead + _octets(behind), read, ("capture/corrupt", "capture/truncated")
    )


def zeros_at_the_end(parts: list[Part], chance: Random, form: str) -> Damaged:
    """What a file system leaves of a file that was being written when the power failed."""
    return Damaged(
        _octets(parts) + bytes(4096), _read_of(parts), ("capture/corrupt", "capture/truncated"), whole=True
    )


def joined(parts: list[Part], chance: Random, form: str) -> Damaged:
    """Two files end to end."""
    begin = _packets_from(parts)
    at = _one(parts, chance)
    return Damaged(
        _octets(parts[:at] + parts[:begin] + parts[at:]),
        _read_of(parts),
        () if "pcapng" in form else ("capture/joined",),
        whole=True,
    )


def bad_network_header(parts: list[Part], chance: Random, form: str) -> Damaged:
    """An IP header of neither version, in one packet."""
    at = _one(parts, chance)
    packet = parts[at].packet
    assert packet is not None
    place = min((packet.data.find(first) for first in (b"\x45", b"\x60") if first in packet.data), default=0)
    data = packet.data[:place] + b"\x95" + packet.data[place + 1 :]
    kept = _again(parts, form, lambda number, one: one._replace(data=data) if one is packet else one)
    return Damaged(_octets(kept), [one for one in _read_of(kept) if one.data is not data])


def gzipped(parts: list[Part], chance: Random, form: str) -> Damaged:
    half = len(parts) // 2
    members = gzip.compress(_octets(parts[:half])) + gzip.compress(_octets(parts[half:]))
    return Damaged(members, _read_of(parts), whole=True)


def gzip_cut(parts: list[Part], chance: Random, form: str) -> Damaged:
    return _compressed_cut(
        parts, chance, gzip.compress(_octets(parts), 1), lambda cut: zlib.decompressobj(31).decompress(cut)
    )


def zstd_compressed(parts: list[Part], chance: Random, form: str) -> Damaged:
    return Damaged(zstd(_octets(parts)), _read_of(parts), whole=True)


def zstd_cut(parts: list[Part], chance: Random, form: str) -> Damaged:
    return _compressed_cut(
        parts, chance, zstd(_octets(parts)), lambda cut: ZSTD.ZstdDecompressor().decompress(cut)
    )


def _compressed_cut(
    parts: list[Part], chance: Random, whole: bytes, expand: Callable[[bytes], bytes]
) -> Damaged:
    cut = whole[: chance.randrange(20, max(len(whole) - 8, 21))]
    there = len(expand(cut))
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part.octets))
    kept = [part for part, (_, end) in zip(parts, pairwise(ends), strict=True) if end <= there]
    return Damaged(cut, _read_of(kept), ("capture/truncated",))


DAMAGES: dict[str, Damage] = {
    damage.__name__: damage
    for damage in (
        undamaged,
        ends_inside_a_record,
        ends_inside_its_head,
        starts_late,
        lost,
        out_of_order,
        clock_set_back,
        no_times,
        each_twice,
        second_tap,
        snapshot_length,
        impossible_length,
        wrong_length,
        overwritten,
        inserted,
        zeros_at_the_end,
        joined,
        bad_network_header,
        gzipped,
        gzip_cut,
        *((zstd_compressed, zstd_cut) if ZSTD is not None else ()),
    )
}
