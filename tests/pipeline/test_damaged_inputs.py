"""Inputs that cannot be read, or not to the end: each is a row with its reason, and the rest is read."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.lakes import CAPTURES, checked, records, written

from amqpscope.pipeline.files import FileReader, file_row, whole
from amqpscope.pipeline.inputs import capture_sets

GOOD = CAPTURES / "rabbitmq-frames-after-close.pcap"

EXPECTED = {
    "good.pcap": ("ok", None),
    "good.pcap.gz": ("ok", None),
    "good.pcap.zst": ("ok", None),
    "ng.pcapng": ("ok", None),
    "empty.pcap": ("unreadable", "empty"),
    "three.pcap": ("unreadable", "foreign"),
    "text.txt": ("unreadable", "foreign"),
    "dangling.pcap": ("unreadable", "missing"),
    "truncated.pcap": ("partial", "truncated"),
    "corrupt.pcap": ("partial", "corrupt"),
    "rubbish.pcap": ("unreadable", "corrupt"),
    "cut.pcap.gz": ("partial", "truncated"),
    "no.pcap.gz": ("unreadable", "corrupt"),
    "pipe": ("unreadable", "foreign"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "inputs"
    folder.mkdir()
    content = GOOD.read_bytes()
    header, packets = records(content)
    (folder / "good.pcap").write_bytes(content)
    (folder / "good.pcap.gz").write_bytes(gzip.compress(content))
    (folder / "good.pcap.zst").write_bytes(pa.compress(content, "zstd", asbytes=True))
    (folder / "ng.pcapng").write_bytes((CAPTURES / "proton-anonymous.pcapng").read_bytes())
    (folder / "empty.pcap").write_bytes(b"")
    (folder / "three.pcap").write_bytes(content[:3])
    (folder / "text.txt").write_bytes(b"this is no capture\n")
    (folder / "dangling.pcap").symlink_to(folder / "nowhere")
    (folder / "truncated.pcap").write_bytes(content[:-10])
    damaged = header + b"".join(packets[:30]) + b"\xff" * 40 + b"".join(packets[30:])
    (folder / "corrupt.pcap").write_bytes(damaged)
    (folder / "rubbish.pcap").write_bytes(header + b"\xff" * 5000)
    packed = gzip.compress(content, 0)
    (folder / "cut.pcap.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "no.pcap.gz").write_bytes(b"\x1f\x8b\x08\x00rest of something else")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_every_input_has_its_row(spark: Any, tmp_path: Path, folder: Path, plan: str) -> None:
    rows = written(spark, tmp_path / "lake", [folder], set_by="file", plan=plan)

    fates = {Path(row["capture"]).name: (row["status"], row["reason"]) for row in rows["files"]}
    assert fates == EXPECTED
    assert all(row["detail"] for row in rows["files"] if row["status"] != "ok")
    for name in ("good.pcap", "good.pcap.gz", "good.pcap.zst"):
        found = [row for row in rows["findings"] if Path(row["capture"]).name == name]
        assert sorted(row["packet"] for row in found) == [finding["packet"] for finding in checked(GOOD)]
    assert [row["capture"] for row in rows["frames"] if "truncated" in row["capture"]]
    assert [row["capture"] for row in rows["frames"] if "corrupt" in row["capture"]]
    assert [row["capture"] for row in rows["frames"] if "cut.pcap.gz" in row["capture"]]


def test_growing(tmp_path: Path) -> None:
    """What is written behind the end that a file had when it was found is not read, and said."""
    header, packets = records(GOOD.read_bytes())
    path = tmp_path / "growing.pcap"
    path.write_bytes(header + b"".join(packets[:20]))
    (one,) = capture_sets([str(path)])
    with path.open("ab") as file:
        file.write(b"".join(packets[20:]))
    from amqpscope.capture.sink import SegmentSink

    reader = FileReader(one.files[0], 0, whole(one.files[0]), SegmentSink())
    for _ in reader:
        pass
    row = file_row(one.name, one.files[0], 0, [reader.fate([])])
    assert row[4:6] == ("partial", "growing")
    assert row[7] == 20


def test_gone(tmp_path: Path) -> None:
    """What the driver has seen, and a worker does not."""
    path = tmp_path / "a.pcap"
    path.write_bytes(GOOD.read_bytes())
    (one,) = capture_sets([str(path)])
    path.unlink()
    from amqpscope.capture.sink import SegmentSink

    reader = FileReader(one.files[0], 0, whole(one.files[0]), SegmentSink())
    for _ in reader:
        pass
    row = file_row(one.name, one.files[0], 0, [reader.fate([])])
    assert row[4:6] == ("unreadable", "missing")
    assert "not where the workers look" in row[6]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_forbidden(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(GOOD.read_bytes())
    path.chmod(0)
    (one,) = capture_sets([str(tmp_path)])
    assert one.files[0].trouble is not None and one.files[0].trouble.reason == "forbidden"


def test_forbidden_as_the_system_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from amqpscope.pipeline import inputs

    path = tmp_path / "a.pcap"
    path.write_bytes(GOOD.read_bytes())

    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(inputs, "open_file", refuse)
    (one,) = capture_sets([str(tmp_path)])
    assert one.files[0].trouble is not None and one.files[0].trouble.reason == "forbidden"


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    sets = capture_sets([str(tmp_path / "none.pcap"), str(tmp_path / "*.pcap"), f"file://{tmp_path}/no"])
    reasons = [file.trouble.reason for one in sets for file in one.files if file.trouble]
    assert reasons == ["missing"] * 3
