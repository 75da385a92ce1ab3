"""Inputs that cannot be read, or not to the end: each is a row with its reason, and the rest is read."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.lakes import (
    CAPTURES,
    as_finding,
    as_frame,
    checked,
    contents,
    ordered,
    read,
    records,
    written,
)

from amqpscope.pipeline import PipelineError, analyse
from amqpscope.pipeline.capture_set import capture_sets, fit_to_replace
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.files import RangeReader, file_row, whole
from amqpscope.pipeline.rows import Rows
from amqpscope.pipeline.schemas import TABLES

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


def named(row: tuple[Any, ...]) -> dict[str, Any]:
    """A row of `files` by the names of its columns."""
    return dict(zip(TABLES["files"].schema.names, row, strict=True))


def test_growing(tmp_path: Path) -> None:
    """What is written behind the end that a file had when it was found is not read, and said."""
    header, packets = records(GOOD.read_bytes())
    path = tmp_path / "growing.pcap"
    path.write_bytes(header + b"".join(packets[:20]))
    (one,) = capture_sets([str(path)])
    with path.open("ab") as file:
        file.write(b"".join(packets[20:]))
    from amqpscope.capture.sink import SegmentSink

    reader = RangeReader(one.files[0], 0, whole(one.files[0]), SegmentSink())
    for _ in reader:
        pass
    row = named(file_row(one.name, one.files[0], 0, [reader.fate([])]))
    assert (row["status"], row["reason"], row["packets"]) == ("partial", "growing", 20)


def test_gone(tmp_path: Path) -> None:
    """What the driver has seen, and a worker does not."""
    path = tmp_path / "a.pcap"
    path.write_bytes(GOOD.read_bytes())
    (one,) = capture_sets([str(path)])
    path.unlink()
    from amqpscope.capture.sink import SegmentSink

    reader = RangeReader(one.files[0], 0, whole(one.files[0]), SegmentSink())
    for _ in reader:
        pass
    row = named(file_row(one.name, one.files[0], 0, [reader.fate([])]))
    assert (row["status"], row["reason"]) == ("unreadable", "missing")
    assert "the workers cannot see it" in row["detail"]


@contextmanager
def as_nobody() -> Iterator[None]:
    """As somebody to whom something can be forbidden."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that anyone may look into: pytest's own are only for who runs it."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_a_directory_of_trouble(spark: Any, tmp_path: Path, open_folder: Path, plan: str) -> None:
    """One capture set with everything in it; one file is not to be read, and one is written meanwhile."""
    content = GOOD.read_bytes()
    header, packets = records(content)
    (open_folder / "a-good.pcap").write_bytes(content)
    (open_folder / "b-empty.pcap").write_bytes(b"")
    (open_folder / "c-text.txt").write_bytes(b"this is no capture\n")
    (open_folder / "d-truncated.pcap").write_bytes(
        (CAPTURES / "rhea-transfer-before-attach.pcap").read_bytes()[:-10]
    )
    damaged = header + b"".join(packets[:30]) + b"\xff" * 40 + b"".join(packets[30:])
    (open_folder / "e-corrupt.pcap").write_bytes(damaged)
    (open_folder / "f-forbidden.pcap").write_bytes(content)
    (open_folder / "f-forbidden.pcap").chmod(0)
    (open_folder / "g-dangling.pcap").symlink_to(open_folder / "nowhere")
    growing = open_folder / "h-growing.pcap"
    growing.write_bytes(header + b"".join(packets[:20]))
    (open_folder / "closed").mkdir(mode=0)
    with as_nobody():
        analysis = analyse(spark, [str(open_folder)], set_by="file", plan=plan)
    with growing.open("ab") as file:
        file.write(b"".join(packets[20:]))

    analysis.write(str(tmp_path / "lake"), with_json=True)

    rows = contents(tmp_path / "lake")
    fates = {
        Path(row["capture"]).name: (row["status"], row["reason"], row["packets"]) for row in rows["files"]
    }
    assert fates == {
        "a-good.pcap": ("ok", None, len(packets)),
        "b-empty.pcap": ("unreadable", "empty", 0),
        "c-text.txt": ("unreadable", "foreign", 0),
        "closed": ("unreadable", "forbidden", 0),
        "d-truncated.pcap": ("partial", "truncated", fates["d-truncated.pcap"][2]),
        "e-corrupt.pcap": ("partial", "corrupt", fates["e-corrupt.pcap"][2]),
        "f-forbidden.pcap": ("unreadable", "forbidden", 0),
        "g-dangling.pcap": ("unreadable", "missing", 0),
        "h-growing.pcap": ("partial", "growing", 20),
    }
    reported = [
        finding
        for name in ("a-good.pcap", "d-truncated.pcap", "e-corrupt.pcap")
        for finding in checked(open_folder / name)
    ]
    kept = [as_finding(row) for row in rows["findings"] if "growing" not in row["capture"]]
    assert reported and ordered(kept) == ordered(reported)
    growing.write_bytes(header + b"".join(packets[:20]))
    frames = [as_frame(row) for row in rows["frames"] if "growing" in row["capture"]]
    assert frames and ordered(frames) == ordered(read(growing))


def test_what_is_no_capture_is_only_skipped_in_a_directory(tmp_path: Path, folder: Path) -> None:
    """As `check` does; but named, or where there is nothing else, it is a failure."""
    (one,) = capture_sets([str(folder)])
    assert {Path(file.capture).name for file in one.files if file.skipped} == {
        "empty.pcap",
        "three.pcap",
        "text.txt",
        "dangling.pcap",
        "no.pcap.gz",
        "pipe",
    }
    for sources in ([folder / "text.txt", folder], [folder, folder / "text.txt"], [folder / "te*"]):
        found = [file for one in capture_sets(map(str, sources)) for file in one.files]
        assert ["text.txt" in file.capture for file in found if file.trouble and not file.skipped] == [True]
    alone = tmp_path / "alone"
    alone.mkdir()
    for sources in ([alone], [f"file://{alone}"]):
        (one,) = capture_sets(map(str, sources))
        assert [(file.trouble.reason, file.skipped) for file in one.files if file.trouble] == [
            ("missing", False)
        ]
    (alone / "text").write_bytes(b"this is no capture\n")
    for sources in ([alone], [f"file://{alone}"], [folder, alone]):
        found = [file for one in capture_sets(map(str, sources)) for file in one.files]
        assert [file.skipped for file in found if "alone" in file.capture] == [False]


def test_names_of_any_kind(tmp_path: Path) -> None:
    """Names that are no text, and such with the characters of patterns and URLs."""
    names = [b"\xff\xfe.pcap", b"a b,[c]{d}%20*?.pcap", b"new\nline.pcap"]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(GOOD.read_bytes())
    odd = str(tmp_path / os.fsdecode(names[1]))
    for sources in ([str(tmp_path)], [odd, str(tmp_path), odd]):
        sets = capture_sets(sources, "file")
        assert len(sets) == 3
        for one in sets:
            rows = Rows(("files", "frames"))
            made = dict([*read_set(one, rows), *rows.batches(True)])
            assert made["files"].to_pylist()[0]["status"] == "ok"
            assert made["frames"].num_rows == len(read(GOOD))


def test_a_lake_is_no_capture(tmp_path: Path) -> None:
    """What lies in one is passed over; in a directory with another one called `runs`, nothing is."""
    for name, beside in (("lake", "runs/_delta_log"), ("other", "runs/log")):
        (tmp_path / name / beside).mkdir(parents=True)
        (tmp_path / name / beside / "0.json").write_text("{}")
        (tmp_path / name / "frames").mkdir()
        (tmp_path / name / "frames" / "a.pcap").write_bytes(GOOD.read_bytes())
    for source in (str(tmp_path), f"file://{tmp_path}"):
        found = [file for one in capture_sets([source]) for file in one.files]
        assert len(found) == 2 and all("/other/" in file.path for file in found)


def test_sources_that_are_none() -> None:
    with pytest.raises(PipelineError, match="standard input"):
        capture_sets(["-"])
    for source in ("s3://[bad", "nosuch://x/y"):
        with pytest.raises(PipelineError, match=re.escape(source)):
            capture_sets([source])


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    sets = capture_sets([str(tmp_path / "none.pcap"), str(tmp_path / "*.pcap"), f"file://{tmp_path}/no"])
    reasons = [file.trouble.reason for one in sets for file in one.files if file.trouble]
    assert reasons == ["missing"] * 3


def test_what_may_take_the_place_of_a_lake(tmp_path: Path) -> None:
    """Not a run in which a source is missing, unless that is allowed; never one in which nothing is read."""
    good, text, no = tmp_path / "good.pcap", tmp_path / "text", tmp_path / "no.pcap"
    good.write_bytes(GOOD.read_bytes())
    text.write_bytes(b"this is no capture\n")
    (tmp_path / "folder").mkdir()
    for sources, allowed, reason in (
        ([good], False, ""),
        ([good, text], False, ""),  # a failure, but none of what is there is lost
        ([no], False, "no.pcap: No such file, or a symbolic link to a missing file: nothing is replaced$"),
        ([no], True, "no.pcap: No such file, or a symbolic link to a missing file: nothing is replaced$"),
        ([tmp_path / "folder"], False, "folder: no capture in the directory: nothing is replaced$"),
        ([text], False, "text: not a capture file .*: nothing is replaced$"),
        (
            [good, no],
            False,
            "no.pcap: .*: nothing is replaced; --allow-missing continues without the missing files$",
        ),
        ([good, no, tmp_path / "x*"], False, r"no.pcap: .* \(and 1 more\): nothing is replaced; --allow"),
        ([good, no], True, ""),
    ):
        sets = capture_sets(map(str, sources))
        if reason:
            with pytest.raises(PipelineError, match=reason):
                fit_to_replace(sets, allowed)
        else:
            fit_to_replace(sets, allowed)
