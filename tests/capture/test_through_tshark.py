"""`--via tshark`: the same as without where both can read it, and more where only tshark can."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support.capture_files import START, Record, ethernet, ipv4, pcap, tcp
from support.commands import amqpscope
from support.sampling import share
from support.tcp_writer import Capture

CAPTURES = Path(__file__).parents[2] / "captures"

LINK_WIFI = 105


def wifi(datagram: bytes) -> bytes:
    """IEEE 802.11, a data frame from an access point, with LLC and SNAP in front of IP."""
    header = (
        struct.pack("<HH", 0x0208, 0) + bytes.fromhex("020000000001 020000000002 020000000003") + bytes(2)
    )
    return header + bytes.fromhex("aaaa03000000") + struct.pack(">H", 0x0800) + datagram


def on_wifi(path: Path) -> Path:
    """A connection on a link that only tshark knows, with a fault in it."""
    capture = Capture(link="raw")
    connection = capture.connection()
    connection.handshake()
    for end in (connection.client, connection.server):
        end.send(amqp.AMQP_HEADER)
        end.send(amqp.frame(amqp.open_(container_id="c")))
    connection.client.send(amqp.frame(amqp.end()))
    connection.goodbye()
    records = [Record(one.time // 1000 * 1000, wifi(one.data)) for one in capture.packets]
    path.write_bytes(pcap(records, link_type=LINK_WIFI))
    return path


@pytest.mark.tshark
@pytest.mark.parametrize(
    "name",
    ["demo.pcap", "rhea-transfer-before-attach.pcap", "proton-anonymous.pcapng", "rhea-proton-ipv6.pcap"],
)
def test_the_same_frames_and_findings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    ways = (
        ["read", "--format", "ndjson", "--bodies"],
        ["check", "--fail-on", "never", "--format", "ndjson"],
        ["summary", "--all"],
    )
    for way in share(ways, 3, f"tshark {name}"):
        alone = amqpscope(capsys, *way, CAPTURES / name)
        through = amqpscope(capsys, *way, "--via", "tshark", CAPTURES / name)
        assert through == alone
        assert alone.status == 0
        assert alone.lines or way[0] == "check"


@pytest.mark.tshark
def test_a_link_type_that_only_tshark_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = on_wifi(tmp_path / "wifi.pcap")
    alone = amqpscope(capsys, "check", path)
    assert alone.status == 3
    assert "amqpscope does not decode link type 105" in alone.out
    assert "--via tshark" in alone.out
    through = amqpscope(capsys, "check", "--via", "tshark", path)
    assert through.status == 1
    assert "S-BEGIN-FIRST" in through.out
    read = amqpscope(capsys, "read", "--via", "tshark", path)
    assert [line.split()[0] for line in read.lines if "open" in line] == ["5", "7"]


@pytest.mark.tshark
def test_damage_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    octets = (CAPTURES / "demo.pcap").read_bytes()
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(octets[:-10])
    result = amqpscope(capsys, "read", "--via", "tshark", cut)
    assert result.status == 0
    assert "note: capture/truncated: " in result.out
    for name, content, reason in (
        ("none.pcap", b"no capture", "tshark cannot read the file"),
        ("empty.pcap", b"", "the file is empty"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        result = amqpscope(capsys, "check", "--via", "tshark", path)
        assert result.status == 2
        assert result.err.count("\n") == 1
        assert reason in result.err


@pytest.mark.tshark
def test_what_an_error_message_quotes_is_no_segment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = tcp(amqp.AMQP_HEADER + amqp.frame(amqp.open_(container_id="c")))
    quoting = ipv4(struct.pack(">BBHI", 3, 1, 0, 0) + ipv4(said), protocol=1)
    records = [
        Record(START, ethernet(quoting)),
        Record(START + 1000, ethernet(ipv4(said, source="10.0.0.3"))),
    ]
    path = tmp_path / "quoted.pcap"
    path.write_bytes(pcap(records))
    result = amqpscope(capsys, "read", "--via", "tshark", path)
    assert [line.split()[0] for line in result.lines if " open " in line] == ["2"]
    reported = amqpscope(capsys, "summary", "--all", "--via", "tshark", path)
    assert "10.0.0.3" in reported.out
    assert "10.0.0.1" not in reported.out


def test_without_pyshark_or_tshark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyshark", None)
    result = amqpscope(capsys, "read", "--via", "tshark", CAPTURES / "demo.pcap")
    assert (result.status, result.out) == (2, "")
    assert result.err == "amqpscope: --via tshark needs pyshark: pip install 'amqpscope[tshark]'\n"
    monkeypatch.undo()
    finding = pytest.importorskip("pyshark.tshark.tshark")

    def missing() -> str:
        raise finding.TSharkNotFoundException("TShark not found")

    monkeypatch.setattr(finding, "get_process_path", missing)
    result = amqpscope(capsys, "check", "--via", "tshark", CAPTURES / "demo.pcap")
    assert (result.status, result.out) == (2, "")
    assert result.err == "amqpscope: --via tshark needs tshark, which is not on the PATH\n"


@pytest.mark.parametrize("arguments", [["-"], ["--merge", "a", "b"]])
def test_files_each_on_its_own(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("read", "check", "summary"):
        result = amqpscope(capsys, command, "--via", "tshark", *arguments)
        assert (result.status, result.out) == (2, "")
        assert (
            result.err
            == f"amqpscope: --via tshark: reads only single files; cannot be combined with {arguments[0]}\n"
        )
    assert amqpscope(capsys, "read", "--via", "wireshark", "a").status == 2
