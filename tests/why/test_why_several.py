"""`amqpscope why` of several files: one capture with --merge, each in turn with --end; and through tshark."""

from __future__ import annotations

import io
import json
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.sampling import share

ROOT = Path(__file__).parent.parent.parent / "captures"
CREDIT = ROOT / "rules" / "amqp10" / "L-CREDIT" / "violating.pcap"
ERRORS = ROOT / "pika-connection-errors.pcap"


def divided(capture: Path, after: int, folder: Path) -> list[Path]:
    """A pcap file as two, the second one from behind so many packets on."""
    octets = capture.read_bytes()
    parts = [octets[:24], octets[:24]]
    at, number = 24, 0
    while at < len(octets):
        size = 16 + int(struct.unpack_from("<I", octets, at + 8)[0])
        parts[number >= after] += octets[at : at + size]
        at += size
        number += 1
    files = [folder / f"part.pcap{index}" for index in (0, 1)]
    for file, part in zip(files, parts, strict=True):
        file.write_bytes(part)
    return files


def explained(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    result = amqpscope(capsys, "why", "--format", "json", *arguments)
    assert (result.status, result.err) == (0, "")
    found = json.loads(result.out)
    assert isinstance(found, dict)
    return found


def named(found: Any, name: str) -> Any:
    """The same, of a capture of that name."""
    if isinstance(found, dict):
        return {key: name if key == "capture" else named(one, name) for key, one in found.items()}
    return [named(one, name) for one in found] if isinstance(found, list) else found


@pytest.mark.parametrize("packet", [3, 9, 10, 12, 16, 18])
def test_a_set_is_explained_as_the_whole(
    packet: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = divided(CREDIT, 9, tmp_path)
    whole = explained(capsys, CREDIT, packet)
    assert whole["origin"] is None
    expected = {"capture": "x", "packet": packet if packet <= 9 else packet - 9}
    for arguments in ((first, second), (second, first), (tmp_path,)):
        found = explained(capsys, "--merge", *arguments, packet)
        assert found["capture"].endswith(" and 1 more")
        assert found["origin"]["capture"] == str(first if packet <= 9 else second)
        assert named(found, "x") == named({**whole, "origin": expected}, "x")


def test_a_finding_of_the_set_is_explained_by_its_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = divided(CREDIT, 9, tmp_path)
    reported = amqpscope(capsys, "check", "--merge", "--format", "ndjson", *files)
    finding = json.loads(reported.out)
    found = explained(capsys, "--merge", *files, finding["packet"])
    ((explained_finding,),) = (frame["findings"] for frame in found["frames"])
    assert explained_finding == {name: finding[name] for name in explained_finding}


def test_text_tells_where_the_packet_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "\x1b[31mred"
    folder.mkdir()
    files = divided(CREDIT, 9, folder)
    result = amqpscope(capsys, "why", "--merge", *files, 16)
    assert "\x1b" not in result.out
    assert result.lines[0].startswith("packet 16 of ")
    shown = str(files[1]).replace("\x1b", "\\x1b")
    assert f" and 1 more (packet 7 of {shown}), 0." in result.lines[0]
    assert "(packet 16 of " not in amqpscope(capsys, "why", CREDIT, 16).out


def test_standard_input_can_be_one_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = divided(CREDIT, 9, tmp_path)

    class Input:
        buffer = io.BytesIO(first.read_bytes())

    monkeypatch.setattr(sys, "stdin", Input())
    found = explained(capsys, "--merge", "-", second, 16)
    assert (found["capture"], found["origin"]["packet"]) == ("standard input and 1 more", 7)
    assert [one["rule"] for one in found["frames"][0]["findings"]] == ["amqp10/L-CREDIT"]


def test_ends_of_a_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = divided(ERRORS, 40, tmp_path)
    whole = explained(capsys, "--end", ERRORS)
    found = explained(capsys, "--merge", "--end", *files)
    assert named(found, "x") == named(whole, "x")
    assert amqpscope(capsys, "why", "--end", *files, "--connection", 0).status == 0


def test_ends_of_several_captures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(ERRORS, tmp_path / "a.pcap")
    shutil.copy(CREDIT, tmp_path / "b.pcap")
    alone = [amqpscope(capsys, "why", "--end", tmp_path / name) for name in ("a.pcap", "b.pcap")]
    result = amqpscope(capsys, "why", "--end", tmp_path)
    assert (result.status, result.err) == (0, "")
    assert result.out == f"{alone[0].out}\n{alone[1].out}"
    result = amqpscope(capsys, "why", "--format", "json", "--end", tmp_path / "b.pcap", tmp_path / "a.pcap")
    reported = [json.loads(line)["capture"] for line in result.lines]
    assert reported == [str(tmp_path / "b.pcap"), str(tmp_path / "a.pcap")]


def test_of_several_the_others_are_reported_when_one_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none.pcap").write_bytes(b"no capture at all")
    (tmp_path / "empty.pcap").write_bytes(CREDIT.read_bytes()[:24])
    result = amqpscope(capsys, "why", "--end", tmp_path / "none.pcap", tmp_path / "nowhere", CREDIT)
    assert result.status == 2
    assert [line.rpartition(": ")[2] for line in result.err.splitlines()] == [
        "not a capture file (neither pcap nor pcapng)",
        "No such file or directory",
    ]
    assert "connection was closed by the client" in result.out
    assert result.out == amqpscope(capsys, "why", "--end", CREDIT).out
    assert amqpscope(capsys, "why", "--end", tmp_path / "empty.pcap", CREDIT).status == 3


def test_a_packet_of_several_is_of_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = divided(CREDIT, 9, tmp_path)
    (tmp_path / "without").mkdir()
    for option in ("--end", "--merge"):
        result = amqpscope(capsys, "why", option, tmp_path / "without", *([] if option == "--end" else [16]))
        assert result.status == 2
        assert result.err.endswith("without: no captures in this directory (the directory is empty)\n")
    for arguments in (files, [tmp_path]):
        result = amqpscope(capsys, "why", *arguments, 16)
        assert (result.status, result.out) == (2, "")
        assert result.err == "amqpscope: packet 16: give one of the 2 captures, or merge them with --merge\n"
    result = amqpscope(capsys, "why", "--merge", *files, 99)
    assert (result.status, result.out) == (2, "")
    assert result.err == "amqpscope: packet 99: the capture has only 21\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "a FILE and a PACKET are needed"),
        (
            ["3"],
            "a PACKET is needed: amqpscope why 3 PACKET; `amqpscope check` names packets with findings, "
            "and `amqpscope why --end 3` explains how connections ended",
        ),
        (["x.pcap", "y.pcap"], "packet y.pcap: must be a number"),
        (["x.pcap", "\x1b[2J"], "packet \\x1b[2J: must be a number"),
        (["x.pcap", "٣"], "packet ٣: must be a number"),
        (["x.pcap", "9" * 5000], f"packet {'9' * 5000}: must be a number"),
        (["--end"], "--end: a FILE is needed"),
        (["--end", "--frame", "2", "x.pcap"], "--end: cannot be combined with a packet or --frame"),
        (["-", "-", "1"], "- (standard input) can be read only once"),
        (["--via", "tshark", "-", "1"], "--via tshark: reads only single files; cannot be combined with -"),
    ],
)
def test_what_makes_no_sense(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "why", *arguments)
    assert (result.status, result.out, result.err) == (2, "", f"amqpscope: {words}\n")


def test_a_file_whose_name_is_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(CREDIT, tmp_path / "17")
    assert amqpscope(capsys, "why", "--end", "17").status == 0
    assert explained(capsys, "17", "16")["capture"] == "17"


@pytest.mark.tshark
def test_through_tshark(capsys: pytest.CaptureFixture[str]) -> None:
    for packet in share((12, 16, 17), 3, "through tshark"):
        assert explained(capsys, "--via", "tshark", CREDIT, packet) == explained(capsys, CREDIT, packet)
    assert explained(capsys, "--via", "tshark", "--end", CREDIT) == explained(capsys, "--end", CREDIT)
    result = amqpscope(capsys, "why", "--via", "tshark", CREDIT, 4000)
    assert (result.status, result.out) == (2, "")
    assert result.err == "amqpscope: packet 4000: this packet is not a TCP segment that could be read\n"


@pytest.mark.tshark
def test_through_tshark_a_link_layer_that_is_not_known_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same packets, said to be PPP in HDLC-like framing: two octets of its protocol before IPv4."""
    octets = CREDIT.read_bytes()
    assert struct.unpack_from("<I", octets, 20) == (1,)
    whole = octets[:20] + struct.pack("<I", 9)
    at = 24
    while at < len(octets):
        seconds, part, size, wire = struct.unpack_from("<IIII", octets, at)
        whole += struct.pack("<IIII", seconds, part, size - 12, wire - 12) + b"\x00\x21"
        whole += octets[at + 16 + 14 : at + 16 + size]
        at += 16 + size
    file = tmp_path / "ppp.pcap"
    file.write_bytes(whole)
    assert amqpscope(capsys, "why", file, 16).status == 2
    found = explained(capsys, "--via", "tshark", file, 16)
    assert [one["rule"] for one in found["frames"][0]["findings"]] == ["amqp10/L-CREDIT"]
