"""Captures that the pipeline cuts into ranges, and one whose writer lost packets."""

from __future__ import annotations

from pathlib import Path

from support.bench_captures import bench
from support.lakes import CAPTURES, harmed

from amqpscope.capture.reader import for_magic
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.capture.sink import SegmentSink

_MEBIBYTE = 1024 * 1024


def faulty_captures(folder: Path) -> list[Path]:
    """Two captures of some 5 MiB in this folder, of small and of large messages, with a fault in each MiB."""
    strange = (CAPTURES / "rabbitmq-frames-after-close.pcap").read_bytes()
    made = []
    for kind in ("small", "large"):
        path = folder / f"{kind}.pcap"
        bench.generate(kind, 5 * _MEBIBYTE, path, seed=3)
        path.write_bytes(harmed(path.read_bytes(), _MEBIBYTE, strange))
        made.append(path)
    return made


def with_loss(path: Path, folder: Path) -> Path:
    """The same capture in this folder, whose writer says that packets were lost."""
    recorder = PcapngRecorder(str(folder / "lost.pcapng"), "test")
    reader = for_magic(path.read_bytes()[:4], SegmentSink())
    assert reader is not None
    reader.decoder.recorder = recorder
    recorder.lost(0, 3)
    reader.feed(path.read_bytes())
    recorder.finish(0, [], [])
    return folder / "lost.pcapng"
