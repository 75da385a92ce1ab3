"""Whatever happens to a capture on its way, no peer that did nothing wrong is certainly at fault.

Captures that are silent under every rule are damaged in one way at a time, at several places; the damage is
reported in a note, and what it hid makes no fault.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from support.sampling import examples, share

import amqpscope
from amqpscope.model.finding import Finding

CAPTURES = Path(__file__).parents[2] / "captures" / "rules"
CLEAN = sorted(CAPTURES.glob("*/*/clean.pcap"))

Packets = list[bytes]


def packets_of(octets: bytes) -> Packets:
    """The records of a pcap file, with their headers."""
    found = []
    at = 24
    while at < len(octets):
        size = (
            struct.unpack_from("<I", octets, at + 8)[0]
            if octets[:1] == b"\xd4" or octets[:1] == b"\x4d"
            else 0
        )
        found.append(octets[at : at + 16 + size])
        at += 16 + size
    return found


def _lost(packets: Packets, at: int) -> Packets:
    return packets[:at] + packets[at + 1 :]


def _several_lost(packets: Packets, at: int) -> Packets:
    return packets[:at] + packets[at + 4 :]


def _cut(packets: Packets, at: int) -> Packets:
    """By the snapshot length, in the middle of the payload."""
    one = packets[at]
    captured, wire = struct.unpack_from("<II", one, 8)
    keep = captured - min(9, max(captured - 60, 0))
    return [*packets[:at], one[:8] + struct.pack("<II", keep, wire) + one[16 : 16 + keep], *packets[at + 1 :]]


def _bad_header(packets: Packets, at: int) -> Packets:
    """Neither version 4 nor 6."""
    one = bytearray(packets[at])
    place = bytes(one).find(b"\x45", 16, 48)
    one[place] = 0x95
    return [*packets[:at], bytes(one), *packets[at + 1 :]]


def _twice(packets: Packets, at: int) -> Packets:
    return [copy for one in packets for copy in (one, one)]


def _late(packets: Packets, at: int) -> Packets:
    """One packet behind the next three, with its own time."""
    return packets[:at] + packets[at + 1 : at + 4] + [packets[at]] + packets[at + 4 :]


def _back(packets: Packets, at: int) -> Packets:
    """The clock is set back by an hour."""
    return packets[:at] + [
        struct.pack("<I", struct.unpack_from("<I", one)[0] - 3600) + one[4:] for one in packets[at:]
    ]


def _truncated(packets: Packets, at: int) -> Packets:
    return [*packets[:at], packets[at][: len(packets[at]) // 2 + 8]]


def _garbage(packets: Packets, at: int) -> Packets:
    return [*packets[:at], b"\xff" * 77, *packets[at:]]


def _joined_late(packets: Packets, at: int) -> Packets:
    return packets[at:]


DAMAGES = (
    _lost,
    _several_lost,
    _cut,
    _bad_header,
    _twice,
    _late,
    _back,
    _truncated,
    _garbage,
    _joined_late,
)

# Damage that leaves no trace but missing octets, which may lie where nothing says that they were sent.
UNSEEN = (_lost, _several_lost, _late, _joined_late, _cut)


def check(octets: bytes) -> tuple[list[Finding], list[str]]:
    with amqpscope.Capture(io.BytesIO(octets), amqpscope.CaptureOptions(judge=True)) as capture:
        findings = []
        for _ in capture.blocks():
            findings += capture.take_findings()
        return findings, [note.code for note in capture.notes]


def places(path: Path, damage: Callable[[Packets, int], Packets], count: int) -> Iterator[int]:
    chance = Random(f"{path.parent.name} {damage.__name__}")
    for _ in range(3):
        yield chance.randrange(count)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__.strip("_"))
def test_nobody_is_at_fault_for_damage(damage: Callable[[Packets, int], Packets]) -> None:
    noted = 0
    innocent = share(CLEAN, 4, damage.__name__)
    assert len(innocent) > examples(150)
    for path in innocent:
        octets = path.read_bytes()
        packets = packets_of(octets)
        for at in places(path, damage, len(packets)):
            findings, notes = check(octets[:24] + b"".join(damage(packets, at)))
            certain = [finding for finding in findings if finding.certain]
            assert certain == [], (str(path.parent), at, [(one.rule, one.message) for one in certain])
            noted += bool(notes)
    if damage not in UNSEEN:
        assert noted > 2 * len(innocent)
