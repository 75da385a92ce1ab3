"""A frame whose size, type, channel or method is garbled accuses its sender alone.

Nobody can see that the size of a frame is wrong before so many octets have come. Until then whatever the
other peer does was judged as if nothing had been sent.
"""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path

import pytest
from support.sampling import share

import amqpscope
from amqpscope.model.finding import Finding
from amqpscope.rules.catalogue import severity

CAPTURES = sorted(
    path
    for path in (Path(__file__).resolve().parents[2] / "captures").glob("*.pcap")
    if path.stat().st_size < 60_000
)

HEADER = {"amqp10": 12, "amqp091": 11}
"""Octets of a frame in which its size, type and channel stand, and its performative or method."""


def judged(octets: bytes) -> list[Finding]:
    with amqpscope.Capture(io.BytesIO(octets), amqpscope.CaptureOptions(judge=True)) as capture:
        findings: list[Finding] = []
        for _ in capture.blocks():
            findings += capture.take_findings()
        return findings


def accused(findings: list[Finding]) -> set[tuple[str, str, int]]:
    """Rule, peer and packet of each error that is certain."""
    return {
        (one.rule, one.peer, one.packet) for one in findings if one.certain and severity(one.rule) == "error"
    }


def frames(octets: bytes) -> list[tuple[int, int, int]]:
    """Packet number, place in the file, and octets of the header of packets that are one frame."""
    found = []
    at, packet = 24, 0
    while at + 16 <= len(octets):
        packet += 1
        (length,) = struct.unpack_from("<I", octets, at + 8)
        ip = at + 16 + 14
        tcp = ip + (octets[ip] & 15) * 4
        payload = tcp + (octets[tcp + 12] >> 4) * 4
        end = min(ip + int.from_bytes(octets[ip + 2 : ip + 4], "big"), at + 16 + length)
        size = end - payload
        if size >= 12 and int.from_bytes(octets[payload : payload + 4], "big") == size:
            found.append((packet, payload, HEADER["amqp10"]))
        elif size >= 12 and int.from_bytes(octets[payload + 3 : payload + 7], "big") == size - 8:
            found.append((packet, payload, HEADER["amqp091"]))
        at += 16 + length
    return found


@pytest.mark.parametrize("path", share(CAPTURES, 6, "garbled frames"), ids=lambda path: path.stem)
def test_a_garbled_header_accuses_its_sender_alone(path: Path) -> None:
    octets = path.read_bytes()
    if octets[:4] != b"\xd4\xc3\xb2\xa1" or octets[20] != 1:
        pytest.skip("not Ethernet in a little-endian pcap file")
    before = accused(judged(octets))
    chance = random.Random(path.name)
    places = frames(octets)
    tried = 0
    for packet, start, header in chance.sample(places, min(6, len(places))):
        garbled = bytearray(octets)
        at = start + chance.randrange(header)
        garbled[at] ^= 1 << chance.randrange(8)
        found = accused(judged(bytes(garbled))) - before
        guilty = {
            peer
            for rule, peer, where in found
            if where == packet and rule.partition("/")[2][:2] in ("T-", "F-")
        }
        if len(guilty) == 1:
            tried += 1
            assert [one for one in found if one[1] not in guilty] == [], (packet, at - start)
    assert tried or len(places) < 6
