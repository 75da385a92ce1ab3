"""Where the clock of the capturing machine is set forward, or it sleeps, nobody has waited for so long."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from scenarios.diagnoses.troubles import channel091
from support.diagnosed import diagnosed

from amqpscope.diagnoses.limits import Limits
from amqpscope.diagnoses.notebook import SECOND, Notebook
from amqpscope.limits import MAX_UNATTESTED
from amqpscope.model.records import Connection

DIAGNOSED = Path(__file__).parents[2] / "captures" / "rules" / "diag"

NO_HEARTBEAT = ("credit-on-receipt", "publisher-blocked", "unsettled-pile")
"""Diagnoses in whose captures neither peer has to be heard from time to time."""

CODES = sorted(path.parent.name for path in DIAGNOSED.glob("*/fine.pcap"))

MOST = 12
"""Places that are tried in a capture."""


def packets(octets: bytes) -> list[bytes]:
    """The records of a pcap file."""
    found = []
    at = 24
    while at < len(octets):
        (size,) = struct.unpack_from("<I", octets, at + 8)
        found.append(octets[at : at + 16 + size])
        at += 16 + size
    return found


def later(record: bytes, seconds: int) -> bytes:
    (time,) = struct.unpack_from("<I", record)
    return struct.pack("<I", time + seconds) + record[4:]


def codes(octets: bytes) -> set[str]:
    # A long silence that a reset ends is called one: nothing tells it from a step of the clock.
    return {one.code for one in diagnosed(octets)} - {"diag/silence"}


def stepped(code: str, seconds: int) -> list[set[str]]:
    """The usual diagnoses of a capture, then those with a step of the clock at one place and another."""
    octets = (DIAGNOSED / code / "fine.pcap").read_bytes()
    assert octets[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
    records = packets(octets)
    found = [codes(octets)]
    for at in range(1, len(records), max(len(records) // MOST, 1)):
        moved = records[:at] + [later(one, seconds) for one in records[at:]]
        found.append(codes(octets[:24] + b"".join(moved)))
    return found


@pytest.mark.parametrize("seconds", [600, 3600])
@pytest.mark.parametrize("code", [code for code in CODES if code not in NO_HEARTBEAT])
def test_a_step_of_the_clock_is_no_wait(code: str, seconds: int) -> None:
    usual, *others = stepped(code, seconds)
    assert all(other <= usual for other in others)


@pytest.mark.parametrize("code", NO_HEARTBEAT)
def test_without_heartbeats_a_long_silence_is_a_wait(code: str) -> None:
    """Nothing tells it from a step of the clock, and people look for it."""
    usual, *others = stepped(code, 3600)
    assert any(other - usual for other in others)


def test_who_looks_for_long_sees_a_wait_all_the_time() -> None:
    notebook = Notebook(Connection("", 0, 0, bytes(12)), Limits({}))
    notebook.beats = True
    notebook.pace.saw(SECOND)
    notebook.pace.saw(2 * SECOND)
    until = 2 * SECOND + 2 * MAX_UNATTESTED
    assert notebook.passed(SECOND, until) == SECOND
    notebook.begin_looking(until)
    assert notebook.passed(SECOND, until) == until - SECOND


@pytest.mark.parametrize("asleep", [0, 600])
def test_a_machine_that_sleeps_later_excuses_no_late_heartbeat(asleep: int) -> None:
    d = channel091(heartbeat=10)
    for _ in range(60):
        d.wait(seconds=5)
        d.server.heartbeat()
        d.client.acknowledge()
    for sleep in (0, asleep):
        d.wait(seconds=sleep)
        for _ in range(20):
            d.wait(seconds=5)
            d.server.heartbeat()
            d.client.heartbeat()
    d.goodbye()
    assert [(one.code, one.seconds // 100) for one in diagnosed(d.pcap())] == [("diag/heartbeat-late", 3)]
