"""A file read in ranges is the file: every segment with its number, its octets and its place, once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from support.lakes import CAPTURES, records

from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.pipeline import files
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.files import RangeReader, ranges, whole
from amqpscope.pipeline.references import Payloads, Referrer, replay


class Seen(SegmentSink):
    """All that a sink is given."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def segment(self, segment: Segment) -> None:
        one = segment.kept()
        numbers = (one.packet, one.time, one.seq, one.ack, one.flags, one.window, one.identification)
        self.calls.append((one.key, one.reverse, *numbers, one.buf, one.cut))

    def note(self, code: str, packet: int, time: int, detail: str) -> None:
        self.calls.append((code, packet, detail))


def damaged(path: Path) -> bytes:
    header, packets = records(path.read_bytes())
    return header + b"".join(packets[:40]) + b"\xff" * 700 + b"".join(packets[40:]) + b"\x00" * 9


@pytest.mark.parametrize("block", [100, 1021, 4096])
@pytest.mark.parametrize("kind", ["pcap", "pcapng", "damaged"])
def test_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, block: int) -> None:
    name = "proton-anonymous.pcapng" if kind == "pcapng" else "proton-windows.pcap"
    path = tmp_path / "a"
    path.write_bytes(damaged(CAPTURES / name) if kind == "damaged" else (CAPTURES / name).read_bytes())
    (one,) = capture_sets([str(path)])
    file = one.files[0]
    expected = Seen()
    for _ in RangeReader(file, 5, whole(file), expected):
        pass

    monkeypatch.setattr(files, "BLOCK", block)
    parts = ranges(file, 5, 3000)
    assert len(parts) > 1
    got = Seen()
    for part in parts:
        for _ in RangeReader(file, 5, pickle.loads(pickle.dumps(part)), got):
            pass
    assert got.calls == expected.calls


class Measured(Payloads):
    """Keeps how much was read at a time."""

    sizes: list[int]

    def read(self, position: int, offset: int, size: int) -> bytes:
        self.sizes.append(size)
        return super().read(position, offset, size)


@pytest.mark.parametrize("inline", [False, True])
def test_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline: bool) -> None:
    """Segments come out of the blocks as they went in, with the payload of the right place."""
    monkeypatch.setattr("amqpscope.pipeline.references.BLOCK_OCTETS", 1000)
    monkeypatch.setattr("amqpscope.pipeline.references.WINDOW", 2000)
    path = tmp_path / "a.pcap"
    path.write_bytes((CAPTURES / "rabbitmq-large.pcap").read_bytes())
    (one,) = capture_sets([str(path)])
    file = one.files[0]
    expected = Seen()
    for _ in RangeReader(file, 0, whole(file), expected):
        pass
    referrer = Referrer(inline)
    blocks = []
    for _ in RangeReader(file, 0, whole(file), referrer, referrer.fed_by):
        blocks += referrer.take(False)
    blocks += referrer.take(True)
    assert len(blocks) > 2
    got = Seen()
    payloads = Measured(one)
    payloads.sizes = []
    for pair, _, segments in sorted(blocks):
        replay(pair, segments, payloads, got)  # type: ignore[arg-type]
    payloads.close()
    assert sorted(got.calls) == sorted(expected.calls)
    longest = max(len(call[-2]) for call in expected.calls)
    assert max(payloads.sizes, default=0) <= max(2000, longest) and bool(payloads.sizes) is not inline


def test_a_file_that_became_shorter(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes((CAPTURES / "demo.pcap").read_bytes())
    (one,) = capture_sets([str(path)])
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(OSError, match="became shorter"):
        Payloads(one).read(0, 900, 200)
