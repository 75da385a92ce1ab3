"""A TCP segment that its receiver ignores changes nothing: all frames are read, nobody is certainly at fault.

Into conversations that are silent under every rule, one segment is put that no peer sent (as a middlebox, an
attacker or an older connection on the same ports would): RST, FIN, SYN or SYN with ACK, of either direction,
at sequence numbers around the expected one and far from it.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import pytest
from support.sampling import share

import amqpscope

CAPTURES = Path(__file__).parents[2] / "captures" / "rules"
CLEAN = sorted(CAPTURES.glob("*/*/clean.pcap"))

FIN, SYN, RST, ACK = 1, 2, 4, 16

# Flags, and how far from the next expected sequence number.
JUNK = [
    *((RST, shift) for shift in (-100_000_000, -1000, -100, -1, 0, 1, 100, 1000, 30_000, 2**29, 2**31 - 1)),
    *((RST | ACK, shift) for shift in (-100, 0, 100)),
    *((FIN | ACK, shift) for shift in (-1000, -1, 1, 100_000_000)),
    *((SYN, shift) for shift in (-1000, 0, 1000, 2**29)),
    *((SYN | ACK, shift) for shift in (-1000, 0, 1000, 2**29)),
]

Records = list[bytes]


def records_of(octets: bytes) -> Records:
    """The records of a pcap file of Ethernet and IPv4, with their headers."""
    assert octets[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
    found = []
    at = 24
    while at < len(octets):
        size = struct.unpack_from("<I", octets, at + 8)[0]
        found.append(octets[at : at + 16 + size])
        at += 16 + size
    return found


@cache
def clean(path: Path) -> tuple[bytes, Records, int]:
    """The head of a capture file, its records, and how many frames are read of it."""
    octets = path.read_bytes()
    return octets[:24], records_of(octets), judged(octets)[0]


def junk(records: Records, at: int, turned: bool, flags: int, shift: int) -> bytes:
    """A record made like the one at `at`, of its sender (turned: of its receiver), with nothing in it.

    shift: of its sequence number, against the one that is expected next.
    """
    one = records[at]
    ip = 16 + 14
    tcp = ip + (one[ip] & 15) * 4
    octets = struct.unpack_from(">H", one, ip + 2)[0] - (tcp - ip) - (one[tcp + 12] >> 4) * 4
    seq, ack = struct.unpack_from(">II", one, tcp + 4)
    seq += octets + bin(one[tcp + 13] & (SYN | FIN)).count("1")
    addresses, ports = one[ip + 12 : ip + 20], one[tcp : tcp + 4]
    if turned:
        seq, ack = ack, seq
        addresses, ports = addresses[4:] + addresses[:4], ports[2:] + ports[:2]
    header = ports + struct.pack(
        ">IIBBHHH", (seq + shift) & 0xFFFFFFFF, ack if flags & ACK else 0, 0x50, flags, 65_535, 0, 0
    )
    datagram = struct.pack(">BBHHHBBH", 0x45, 0, 40, 0, 0x4000, 64, 6, 0) + addresses + header
    return one[:8] + struct.pack("<II", 54, 54) + one[16:ip] + datagram


def judged(octets: bytes) -> tuple[int, list[str]]:
    """How many frames are read, and the certain findings."""
    with amqpscope.Capture(io.BytesIO(octets), amqpscope.CaptureOptions(judge=True)) as capture:
        frames = 0
        certain = []
        for block in capture.blocks():
            frames += sum(record.frame.kind != "skipped" for record in block)
            certain += [str(one.rule) for one in capture.take_findings() if one.certain]
        certain += [str(one.rule) for one in capture.take_findings() if one.certain]
        return frames, certain


def places(records: Records, of: str) -> Iterator[int]:
    """Some places behind the handshake at which the capture goes on."""
    chance = Random(of)
    for _ in range(2):
        yield chance.randrange(3, len(records) - 1)


@pytest.mark.parametrize(("flags", "shift"), JUNK)
def test_junk_changes_nothing(flags: int, shift: int) -> None:
    innocent = share(CLEAN, 24, f"{flags} {shift}")
    for path in innocent:
        head, records, frames = clean(path)
        if len(records) < 6:
            continue
        for at in places(records, f"{path.parent.name} {flags} {shift}"):
            for turned in (False, True):
                one = junk(records, at, turned, flags, shift)
                found, certain = judged(head + b"".join([*records[: at + 1], one, *records[at + 1 :]]))
                where = (path.parent.name, at, turned)
                assert certain == [], where
                assert found == frames, where


def test_a_fin_in_its_place_that_its_sender_did_not_send_accuses_nobody() -> None:
    """Its receiver may have taken it: what follows is not read, and nothing is certain."""
    for path in share(CLEAN, 12, "FIN in place"):
        head, records, frames = clean(path)
        if len(records) < 6:
            continue
        for at in places(records, f"{path.parent.name} in place"):
            for turned in (False, True):
                one = junk(records, at, turned, FIN | ACK, 0)
                octets = head + b"".join([*records[: at + 1], one, *records[at + 1 :]])
                found, certain = judged(octets)
                assert certain == [], (path.parent.name, at, turned)
                assert found <= frames
