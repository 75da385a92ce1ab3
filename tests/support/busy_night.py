"""A capture of 103 connections of which three fail, as it lies before somebody at three in the morning.

    python tests/support/busy_night.py night.pcap

One hundred connections are in order: recorded ones on ports of their own, and some of the bench's generator.
Among them `till` writes into one channel from two threads, `cart` sends on a link that is closed, and `desk`
falls silent until the server gives it up. The packets of all stand in the order of time.
"""

from __future__ import annotations

import struct
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from bench.generate import generate  # noqa: E402  the path is set above
from support.capture_files import SECOND, Record, pcap  # noqa: E402
from support.rewritten import Rewriting, rewritten_records  # noqa: E402

__all__ = ["busy_night"]

CAPTURES = HERE.parent.parent / "captures"

HEALTHY = {
    "pika-publish-consume": 22,
    "pika-confirm": 14,
    "amqplib-types": 12,
    "java-errands": 8,
    "rhea-defaults": 8,
    "rhea-any-interface": 8,
    "proton-heartbeat": 8,
    "rabbitmq-rhea": 6,
}
"""Recordings with one connection each, and how often they occur."""

GENERATED = 14
"""Connections of the bench's generator."""

CULPRITS = {
    "pika-two-threads": b"till",
    "rhea-transfer-after-detach": b"cart",
    "pika-heartbeat-missed": b"desk",
}
"""Recordings of the connections that fail, and what each client is called."""

_PORTS = 331
"""What separates the ports of two connections."""

_APART = SECOND // 5
"""What separates their beginnings, in nanoseconds."""


def busy_night(most: int = 100) -> bytes:
    """The capture as a pcap file. most: of each healthy recording, and of the generated connections."""
    often = {name: min(times, most) for name, times in HEALTHY.items()}
    evenly = sorted((number / times, name) for name, times in often.items() for number in range(times))
    runs = [(name, b"shop") for _, name in evenly]
    # Those that fail come late.
    for place, culprit in zip((48, 67, 81), CULPRITS.items(), strict=True):
        runs.insert(place, culprit)
    records = _generated(min(GENERATED, most))
    for number, (name, called) in enumerate(runs):
        how = Rewriting(ports=_PORTS * number, time=_APART * number, sequence=7919 * number, called=called)
        records += rewritten_records(CAPTURES / f"{name}.pcap", how)
    return pcap(sorted(records, key=lambda record: record.time))


def _generated(count: int) -> list[Record]:
    """So many connections of the generator."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "generated.pcap")
        generate("many", 8_000 * count, path, connections=count)
        content = path.read_bytes()
    records = []
    at = 24
    while at < len(content):
        seconds, microseconds, size, wire = struct.unpack_from("<IIII", content, at)
        at += 16 + size
        time = seconds * SECOND + microseconds * 1000
        records.append(Record(time, content[at - size : at], wire))
    return records


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(busy_night())
