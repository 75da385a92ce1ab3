"""Files that grow, and times that do not: what is there is read in the order of the file, and said so."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support.capture_files import START, Record, enhanced, interface, pcap, section
from support.commands import amqpscope as command
from support.tcp_writer import Capture

import amqpscope

SECOND = 1_000_000_000


def conversation() -> Capture:
    capture = Capture()
    tcp = capture.connection("10.0.0.1:40000")
    tcp.handshake()
    for end in (tcp.client, tcp.server):
        end.send(amqp.AMQP_HEADER)
        end.send(amqp.frame(amqp.open_(container_id="c")))
    begin = {"next_outgoing_id": 0, "incoming_window": 9, "outgoing_window": 9}
    tcp.client.send(amqp.frame(amqp.begin(**begin)))
    tcp.server.send(amqp.frame(amqp.begin(remote_channel=0, **begin)))
    tcp.client.send(amqp.frame(amqp.end()))
    tcp.server.send(amqp.frame(amqp.end()))
    for end in (tcp.client, tcp.server):
        end.send(amqp.frame(amqp.close()))
    tcp.goodbye()
    return capture


NAMES = ["header", "open", "header", "open", "begin", "begin", "end", "end", "close", "close"]


@pytest.mark.parametrize("cut", [0, 7])
def test_a_file_that_grows_while_it_is_read(cut: int, tmp_path: Path) -> None:
    octets = conversation().pcap()
    half = len(octets) // 2
    path = tmp_path / "growing.pcap"
    path.write_bytes(octets[:half])
    with amqpscope.Capture(path) as capture:
        blocks = capture.blocks()
        names = [record.frame.name for record in next(blocks)]
        assert 0 < len(names) < len(NAMES)
        with path.open("ab") as file:
            file.write(octets[half : len(octets) - cut])
        names += [record.frame.name for records in blocks for record in records]
        assert names == NAMES
        codes = [note.code for note in capture.notes]
        assert codes == (["capture/truncated", "capture/growing"] if cut else ["capture/growing"])
    with amqpscope.Capture(path) as capture:
        assert [record.frame.name for record in capture] == NAMES
        assert [note.code for note in capture.notes] == (["capture/truncated"] if cut else [])


def test_one_of_several_grows(tmp_path: Path) -> None:
    """The last of a rotated set, which is still written to."""
    octets = conversation().pcap()
    half = len(octets) // 2
    paths = [tmp_path / "0.pcap", tmp_path / "1.pcap"]
    paths[0].write_bytes(pcap([Record(START, b"")]))
    paths[1].write_bytes(octets[:half])
    with amqpscope.Capture(paths) as capture:
        blocks = capture.blocks()
        records = next(blocks)
        with paths[1].open("ab") as file:
            file.write(octets[half:])
        records += [record for block in blocks for record in block]
        assert [record.frame.name for record in records] == NAMES
        (note,) = capture.notes
        assert (note.code, note.detail[: len(str(paths[1]))]) == ("capture/growing", str(paths[1]))


def test_time_that_runs_backwards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Someone has set the clock, twice. Nobody is at fault, and the order is that of the file."""
    packets = conversation().packets
    path = tmp_path / "back.pcap"
    times = [START - n // 5 * 3600 * SECOND + n * 1_000_000 for n in range(len(packets))]
    path.write_bytes(pcap([Record(time, one.data) for time, one in zip(times, packets, strict=True)]))
    with amqpscope.Capture(path) as capture:
        assert [record.frame.name for record in capture] == NAMES
        (first, *rest) = capture.notes
    assert (first.code, first.packet) == ("capture/time", 6)
    assert "3599.999 s earlier than the timestamp of the previous packet" in first.detail
    assert {note.code for note in rest} == {"capture/time"}
    result = command(capsys, "check", path)
    assert (result.status, "nothing wrong found" in result.out) == (0, True)


@pytest.mark.parametrize("late", [1, 2, 5])
def test_interfaces_out_of_step(late: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What one interface saw is written some packets later than what the other saw, with its own times."""
    packets = conversation().packets
    parts = [section(), interface(), interface()]
    order = sorted(
        range(len(packets)),
        key=lambda n: n + (late + 0.5 if packets[n].sender is not packets[0].sender else 0),
    )
    for n in order:
        of = int(packets[n].sender is not packets[0].sender)
        parts.append(enhanced(packets[n].data, START // 1000 + 200 * n, interface_id=of))
    path = tmp_path / "step.pcapng"
    path.write_bytes(b"".join(parts))
    with amqpscope.Capture(path) as capture:
        records = list(capture)
        assert capture.notes == []
    for peer in ("client", "server"):
        assert [record.frame.name for record in records if record.peer == peer] == [
            "header",
            "open",
            "begin",
            "end",
            "close",
        ]
    result = command(capsys, "check", path)
    assert (result.status, "nothing wrong found" in result.out) == (0, True)
