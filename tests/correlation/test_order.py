"""Packets that are captured in another order than they were sent accuse nobody of having done things so."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from support.damage import Packet, packets_in, written

import amqpscope
from amqpscope.rules.catalogue import severity

CLEAN = sorted((Path(__file__).parents[2] / "captures" / "rules").glob("*/*/clean.pcap"))
HEADERS = 14 + 20 + 20  # Ethernet, IPv4, TCP


def found(packets: list[Packet]) -> set[str]:
    octets = b"".join(part.octets for part in written(packets, "pcap, little-endian"))
    return {one.rule for one in amqpscope.check(io.BytesIO(octets)) if severity(one.rule) != "note"}


@pytest.mark.parametrize("path", CLEAN, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_two_packets_of_a_peer_change_places(path: Path) -> None:
    packets = packets_in(path.read_bytes())
    for at in range(len(packets) - 1):
        one, other = packets[at], packets[at + 1]
        if one.data[26:38] == other.data[26:38] and min(len(one.data), len(other.data)) > HEADERS:
            late = one._replace(time=other.time)
            early = other._replace(time=one.time)
            assert found([*packets[:at], early, late, *packets[at + 2 :]]) == set(), at
