"""What is recorded is read by Wireshark's programs: packets, times, comments, losses, interfaces."""

import subprocess
from pathlib import Path

import pytest
from support.capture_files import SECOND, START, packet
from support.recorded import captured

from amqpscope.capture.recording.output import Rotation
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder

pytestmark = pytest.mark.tshark


def tshark(path: Path, *fields: str) -> list[list[str]]:
    wanted = [word for name in fields for word in ("-e", name)]
    run = subprocess.run(
        ["tshark", "-n", "-r", str(path), "-T", "fields", *wanted], capture_output=True, text=True, check=True
    )
    return [line.split("\t") for line in run.stdout.splitlines()]


def capinfos(path: Path) -> str:
    return subprocess.run(["capinfos", str(path)], capture_output=True, text=True, check=True).stdout


def test_tshark_shows_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    recorder = PcapngRecorder(str(path), "amqpscope 9.9")
    recorder.interface(0, "lo", 1, "127.0.0.1", "tcp port 5672")
    recorder.interface(1, "tun0", 101, "", "")
    first, second = packet(b"one"), packet(b"other")[14:]
    recorder.packet(captured(1, START + 123_456_789, first))
    recorder.lost(1, 12)
    recorder.packet(captured(2, START + SECOND + 1, second[:-2], 1, 101, len(second)))
    recorder.comment(2, "amqp10/L-CREDIT: credit → 0")
    recorder.comment(2, "amqp10/S-WIN-IN: \x1b window")
    recorder.finish(START + 2 * SECOND, [1, 1], [0, 12])
    shown = tshark(
        path,
        "frame.time_epoch",
        "frame.cap_len",
        "frame.len",
        "frame.interface_name",
        "frame.drop_count",
        "tcp.dstport",
        "frame.comment",
    )
    assert shown == [
        ["1700000000.123456789", str(len(first)), str(len(first)), "lo", "", "5672", ""],
        [
            "1700000001.000000001",
            str(len(second) - 2),
            str(len(second)),
            "tun0",
            "12",
            "5672",
            "amqp10/L-CREDIT: credit → 0,amqp10/S-WIN-IN: \\x1b window",
        ],
    ]
    reported = capinfos(path)
    assert "Capture application: amqpscope 9.9" in reported
    assert "Filter string = tcp port 5672" in reported
    assert "Time precision = nanoseconds (9)" in reported


def test_each_file_of_a_set_is_read_by_itself(tmp_path: Path) -> None:
    recorder = PcapngRecorder(str(tmp_path / "set.pcapng"), "amqpscope 9.9", rotation=Rotation(packets=2))
    for number in range(1, 6):
        data = packet(b"%d" % number, source_port=40000 + number)
        recorder.packet(captured(number, START + number, data))
        recorder.comment(number, f"about {number}")
    recorder.finish(START + SECOND, [5], [0])
    shown = [
        tshark(Path(name), "frame.time_epoch", "tcp.srcport", "frame.comment") for name in recorder.files
    ]
    assert shown == [
        [[f"1700000000.00000000{n}", str(40000 + n), f"about {n}"] for n in numbers]
        for numbers in ([1, 2], [3, 4], [5])
    ]


def test_the_file_of_a_flight_recorder_says_why_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "flight.pcapng"
    recorder = PcapngRecorder(str(path), "amqpscope 9.9", before=10 * SECOND)
    for number in range(1, 60):
        data = packet(b"%d" % number)
        recorder.packet(captured(number, START + number * SECOND, data))
        recorder.flush()
    recorder.comment(59, "amqp10/L-CREDIT: no credit")
    recorder.trigger("amqp10/L-CREDIT in packet 59")
    recorder.finish(START + 60 * SECOND, [59], [0])
    shown = tshark(path, "frame.time_epoch", "frame.comment")
    assert shown[-1] == ["1700000059.000000000", "amqp10/L-CREDIT: no credit"]
    assert shown[0][0] == "1700000049.000000000"
    reported = capinfos(path)
    assert "amqp10/L-CREDIT in packet 59; packet 1 of this file is packet 49 of the capture" in reported
    assert "Number of packets:   11" in reported
