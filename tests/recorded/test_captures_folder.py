"""captures/: each file is listed, counted, small, recorded by a scenario, and tells nothing private."""

from __future__ import annotations

import importlib
import re
import struct
from pathlib import Path
from typing import Any

import pytest

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))
MAXIMUM_SIZE, MAXIMUM_TOGETHER = 60_000, 900_000  # octets
ROW = re.compile(r"^\| `([^`]+\.pcap(?:ng)?)` \|.*\| (\d+) \|[^|]*\|$", re.MULTILINE)
LISTED = {name: int(packets) for name, packets in ROW.findall((CAPTURES / "README.md").read_text("utf-8"))}


@pytest.fixture
def inspection(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The recorder's own inspection, which does not lie in a package."""
    monkeypatch.syspath_prepend(str(CAPTURES / "record"))
    return importlib.import_module("inspection")


def packets_in(content: bytes) -> int:
    """Packets of a little-endian pcap file, or packet blocks of a little-endian pcapng file."""
    count = 0
    if content[:4] == b"\x0a\x0d\x0d\x0a":
        at = 0
        while at < len(content):
            kind, size = struct.unpack_from("<II", content, at)
            count += kind == 6
            at += size
        return count
    at = 24
    while at < len(content):
        at += 16 + int(struct.unpack_from("<I", content, at + 8)[0])
        count += 1
    assert at == len(content)
    return count


def test_the_table_lists_the_files_that_are_there() -> None:
    assert FILES
    assert sorted(LISTED) == [file.name for file in FILES]


def test_the_demo_is_one_of_them() -> None:
    assert "demo.pcap" in LISTED


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_capture_has_as_many_packets_as_the_table_says(file: Path) -> None:
    assert packets_in(file.read_bytes()) == LISTED[file.name]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_capture_is_recorded_by_a_scenario(file: Path) -> None:
    scenarios = (CAPTURES / "record" / "record.py").read_text("utf-8")
    assert f'"{file.name}"' in scenarios


def test_a_scenario_names_scripts_that_are_there() -> None:
    scenarios = (CAPTURES / "record" / "record.py").read_text("utf-8")
    scripts = set(re.findall(r'"(\w+_(?:server|client)\.(?:py|js|rb|java))"', scenarios))
    assert len(scripts) >= 6
    there = [file for file in (CAPTURES / "record").iterdir() if file.stem.endswith(("_server", "_client"))]
    assert scripts == {file.name for file in there}


def test_captures_are_small() -> None:
    sizes = {file.name: file.stat().st_size for file in FILES}
    assert {name: size for name, size in sizes.items() if size > MAXIMUM_SIZE} == {}
    assert sum(sizes.values()) <= MAXIMUM_TOGETHER


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_capture_tells_nothing_private(file: Path, inspection: Any) -> None:
    assert inspection.private_text(file.read_bytes(), inspection.names_of_this_machine()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"\x00anonymous@alices-laptop\x00",
        b"Linux 6.1.0-13",
        b"/home/alice/x",
        b"AMD EPYC 7",
        b"\xa1\x04at vm\x00",
    ],
)
def test_what_is_private_is_found(content: bytes, inspection: Any) -> None:
    assert inspection.private_text(content, [b"alices-laptop", b"vm"])


def test_a_short_host_name_is_not_found_inside_binary_fields(inspection: Any) -> None:
    assert inspection.private_text(b"\x00\x01vm\x02 svms vmware", [b"vm"]) == []


def test_two_formats_of_one_recording_hold_the_same_packets() -> None:
    pcap, pcapng = ((CAPTURES / f"proton-anonymous{ending}").read_bytes() for ending in (".pcap", ".pcapng"))
    at, packets = 24, []
    while at < len(pcap):
        size = int(struct.unpack_from("<I", pcap, at + 8)[0])
        packets.append(pcap[at + 16 : at + 16 + size])
        at += 16 + size
    place = 0
    for packet in packets:
        place = pcapng.index(packet, place) + len(packet)
