"""What a recording must be before it is kept: whole, small, and free of anything about its machine."""

from __future__ import annotations

import platform
import re
import socket
import subprocess
from pathlib import Path

from recording import RecordingFailed, tool

MAXIMUM_SIZE = 60_000  # octets: captures are read in tests and kept for ever in the repository

# Text that is private wherever it comes from: home folders, kernel releases, what kind of processor it is.
PRIVATE = re.compile(
    rb"/(?:home|root|Users)/|\bLinux [0-9]+\.[0-9]+|-x86_64-with-|-aarch64-with-"
    rb"|\b(?:Intel|EPYC|Xeon|Ryzen)\b"
)


def names_of_this_machine() -> list[bytes]:
    """The host's names and its kernel, as they would stand in a capture."""
    names = {socket.gethostname(), socket.getfqdn(), platform.release(), platform.platform()}
    return sorted(name.encode() for name in names if name not in ("", "localhost"))


def private_text(content: bytes, names: list[bytes]) -> list[str]:
    """What in a capture's octets is private: any of `names`, as whole words, and what PRIVATE matches.

    A name of two or three letters comes up by chance in binary fields: it counts only beside other text.
    """
    found = [match.group() for match in PRIVATE.finditer(content)]
    for name in names:
        word = rb"(?<![0-9A-Za-z_])" + re.escape(name) + rb"(?![0-9A-Za-z_])"
        pattern = word if len(name) > 3 else rb"[ -~]{2}" + word + rb"|" + word + rb"[ -~]{2}"
        found += [match.group() for match in re.finditer(pattern, content)]
    return [octets.decode(errors="replace") for octets in found]


def inspect(capture: Path) -> int:
    """Raises RecordingFailed when the capture is not fit to be kept; returns how many packets it has."""
    content = capture.read_bytes()
    if len(content) > MAXIMUM_SIZE:
        raise RecordingFailed(f"{capture.name} has {len(content)} octets, more than {MAXIMUM_SIZE}")
    private = private_text(content, names_of_this_machine())
    if private:
        raise RecordingFailed(f"{capture.name} names this machine: {private}")
    columns = [
        "tcp.stream",
        "tcp.srcport",
        "tcp.flags.syn",
        "tcp.flags.fin",
        "tcp.flags.reset",
        "tcp.analysis.lost_segment",
        "tcp.analysis.ack_lost_segment",
    ]
    fields = [option for column in columns for option in ("-e", column)]
    done = subprocess.run(
        [tool("tshark"), "-n", "-r", str(capture), "-T", "fields", *fields],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    opened: dict[str, set[str]] = {}
    ended: dict[str, set[str]] = {}
    reset: set[str] = set()
    for row in rows:
        row += [""] * (len(columns) - len(row))
        stream, port, syn, fin, rst = row[:5]
        if any(row[5:]):
            raise RecordingFailed(f"{capture.name}: packets are missing")
        if syn == "1":
            opened.setdefault(stream, set()).add(port)
        if fin == "1":
            ended.setdefault(stream, set()).add(port)
        if rst == "1":
            reset.add(stream)
    streams = {row[0] for row in rows}
    if not streams:
        raise RecordingFailed(f"{capture.name} is empty")
    for stream in streams:
        ends = {row[1] for row in rows if row[0] == stream}
        if opened.get(stream) != ends or (ended.get(stream) != ends and stream not in reset):
            raise RecordingFailed(f"{capture.name}: connection {stream} is not there from SYN to FIN")
    return len(rows)
