"""Recording on standard output, for a program that reads it meanwhile."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

from support.capture_files import START
from support.recorded import blocks_of

ROOT = Path(__file__).parents[3]

PROGRAM = f"""
import sys
from amqpscope.capture.recorder import Packet
from amqpscope.capture.recording.output import Rotation
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.errors import CaptureError

def put(number, seconds):
    data = b"%d" % number
    packet = Packet()
    packet.number, packet.time, packet.link_type = number, {START} + seconds * 10**9, 1
    packet.buf, packet.end, packet.wire = data, len(data), len(data)
    recorder.packet(packet)

try:
    rotation = Rotation(packets=1) if "rotate" in sys.argv else None
    recorder = PcapngRecorder("-", "a test", rotation=rotation)
    recorder.interface(0, "lo", 1, "", "")
    recorder.flush()
    for number in range(1, 4):
        put(number, number)
        recorder.flush()
        sys.stdin.read(1)
    recorder.flush({START} + 10 * 10**9)
    recorder.comment(3, "it is gone")
    sys.stdin.read(1)
    put(4, 20)
    recorder.comment(2, "this, too")
    sys.stdin.read(1)
    recorder.finish({START} + 20 * 10**9, [4], [0])
except CaptureError as error:
    sys.stderr.write(f"{{error}}\\n")
"""


def start(*arguments: str, stdout: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        bufsize=0,
    )


def read(process: "subprocess.Popen[bytes]", content: bytes, blocks: int) -> bytes:
    """What has come, and then comes, until there are so many whole blocks."""
    assert process.stdout
    while True:
        count = at = 0
        while at + 8 <= len(content):
            at += int.from_bytes(content[at + 4 : at + 8], "little")
            count += at <= len(content)
        if count >= blocks:
            assert at == len(content)
            return content
        assert select.select([process.stdout], [], [], 60)[0], "nothing comes"
        more = process.stdout.read(1 << 16)
        assert more, "it ended"
        content += more


def test_packets_leave_when_they_were_in_hand_long_enough_also_the_newest() -> None:
    process = start()
    assert process.stdin
    assert process.stdout
    content = read(process, b"", 2)
    assert [block.kind for block in blocks_of(content)] == [0x0A0D0D0A, 1]
    process.stdin.write(b"..")
    content = read(process, content, 4)
    process.stdin.write(b".")
    content = read(process, content, 5)
    assert [block.data for block in blocks_of(content)[2:]] == [b"1", b"2", b"3"]
    process.stdin.write(b"..")
    content += process.stdout.read()
    process.communicate()
    last, statistics = blocks_of(content)[5:]
    assert (last.data, last.comments) == (b"4", ["packet 3: it is gone", "packet 2: this, too"])
    assert statistics.kind == 5


def test_a_reader_that_went_away_is_reported() -> None:
    process = start()
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    _, error = process.communicate(b".....")
    assert error == b"standard output: Broken pipe\n"
    assert process.returncode == 0


def test_a_terminal_is_no_place_for_packets() -> None:
    master, slave = pty.openpty()
    try:
        process = start(stdout=slave)
        _, error = process.communicate(b".....")
    finally:
        os.close(master)
        os.close(slave)
    assert error == b"standard output: is a terminal; name a file, or give it to a program by |\n"


def test_it_cannot_be_a_set_of_files() -> None:
    process = start("rotate")
    output, error = process.communicate(b".....")
    assert output == b""
    assert error == b"standard output: cannot be split into several files; name a file\n"
