"""Files of a set that overlap in time are read in the order of time, by either plan, as `--merge` does."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.lakes import CAPTURES, as_finding, as_frame, ordered, records, written

from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.pipeline import capture_set, flow, inputs, references
from amqpscope.pipeline import files as pipeline_files
from amqpscope.pipeline.capture_set import CaptureSet, capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.files import ranges
from amqpscope.pipeline.flow import FilePiece, blocks_of
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.rows import Rows
from amqpscope.report.findings import decided_object
from amqpscope.report.json_form import FrameForm
from amqpscope.report.links import LinkNames

REAL = [*sorted(CAPTURES.glob("r*.pcap")), CAPTURES / "proton-windows.pcap"]

Found = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def taps(path: Path, into: Path, seed: int, clock: bool = False) -> list[Path]:
    """The packets of a pcap file in three, as if each were a tap; some packets are seen by two of them.

    clock: in the second some are as if the clock had been set forth for a moment.
    """
    header, packets = records(path.read_bytes())
    chance = random.Random(seed)
    made: list[list[bytes]] = [[packets[0]], [], []]
    for packet in packets[1:]:
        which = chance.randrange(3)
        made[which].append(packet)
        if chance.random() < 0.05:
            made[(which + 1) % 3].append(packet)
    if clock:
        for at in range(5, len(made[1]), 9):
            seconds = struct.unpack_from("<I", made[1][at])[0] + chance.randrange(3)
            made[1][at] = struct.pack("<I", seconds) + made[1][at][4:]
    into.mkdir(parents=True)
    paths = [into / f"{name}.pcap" for name in "cab"]
    for name, kept in zip(paths, made, strict=True):
        name.write_bytes(header + b"".join(kept))
    return paths


def numbers(paths: list[Path]) -> dict[tuple[str, int], int]:
    """Numbers of all packets in the order of time: of each file's packet the latest time up to it, then the
    file's place, then its own number.
    """
    order = []
    for position, path in enumerate(paths):
        latest = (0, 0)
        for number, packet in enumerate(records(path.read_bytes())[1], 1):
            latest = max(latest, struct.unpack_from("<II", packet))
            order.append((latest, position, number))
    return {(str(paths[of]), number): place for place, (_, of, number) in enumerate(sorted(order), 1)}


def merged(paths: list[Path]) -> Found:
    """What `check --merge` and `read --merge` say."""
    form = FrameForm("", False, LinkNames())
    found, lines = [], []
    with Capture([str(path) for path in paths], CaptureOptions(keep=False, judge=True)) as capture:
        for block in capture.blocks():
            lines += form.lines(block)
            found += capture.take_findings()
        reported = [json.loads(json.dumps(decided_object(finding, ""))) for finding in found]
    return [_plain(one) for one in reported], [_plain(json.loads(line)) for line in lines]


def _plain(row: dict[str, Any], number: dict[tuple[str, int], int] | None = None) -> dict[str, Any]:
    """A row without file names, its packets numbered over all files."""
    row = dict(row)
    row.pop("message", None)  # numbers of packets are in it
    row.pop("references", None)  # the lake has none
    if number is not None:
        of = row["capture"]
        row["packet"] = number[of, row["packet"]]
        if "packets" in row:
            row["packets"] = [{"packet": number[one["capture"], one["packet"]]} for one in row["packets"]]
    elif "packets" in row:
        row["packets"] = [{"packet": one["packet"]} for one in row["packets"]]
    # Of these only the number is in the tables, and not the file that it is a number of.
    row.pop("last_packet", None)
    if row.get("reaction"):
        row["reaction"] = {name: value for name, value in row["reaction"].items() if name != "packet"}
    row["capture"] = ""
    return row


def _rows(batches: Iterator[tuple[str, pa.RecordBatch]], rows: Rows) -> dict[str, list[dict[str, Any]]]:
    made: dict[str, list[dict[str, Any]]] = {"findings": [], "frames": [], "files": []}
    for table, batch in [*batches, *rows.batches(True)]:
        made.setdefault(table, []).extend(batch.to_pylist())
    return made


def chain(one: CaptureSet) -> dict[str, list[dict[str, Any]]]:
    rows = Rows()
    return _rows(read_set(one, rows), rows)


def flowing(one: CaptureSet, split: int) -> dict[str, list[dict[str, Any]]]:
    """The flow plan's steps, without Spark between them."""
    blocks = []
    for position, file in enumerate(one.files):
        for number, part in enumerate(ranges(file, position, split, one.by_time)):
            blocks += blocks_of(flow.refer(FilePiece(0, position, number, part), [one], references.AUTO))
    blocks.sort(key=lambda block: block[:3])
    rows = Rows()
    summaries: list[tuple[int, bytes]] = []
    made = _rows(flow.analyse(blocks, [one], rows, summaries), rows)
    flow.correlate(one, [summary for _, summary in summaries], rows)
    for table, batch in rows.batches(True):
        made[table] += batch.to_pylist()
    return made


@pytest.mark.parametrize("clock", [False, True])
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_taps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Path, clock: bool) -> None:
    monkeypatch.setattr(references, "BLOCK_OCTETS", 500)
    monkeypatch.setattr(pipeline_files, "BLOCK", 1024)
    taps(path, tmp_path / "set", 7, clock)
    (one,) = capture_sets([str(tmp_path / "set")])
    assert one.by_time
    paths = [Path(file.capture) for file in one.files]
    number = numbers(paths)
    findings, frames = merged(paths)
    rows = chain(one)
    assert [_plain(as_frame(row), number) for row in rows["frames"]] == frames
    assert [_plain(as_finding(row), number) for row in rows["findings"]] == findings
    for split in (2000, 1024 * 1024):
        other = flowing(one, split)
        assert {name: ordered(kept) for name, kept in other.items()} == {
            name: ordered(kept) for name, kept in rows.items()
        }
    assert [row["packets"] for row in sorted(rows["files"], key=lambda row: row["position"])] == [
        len(records(path.read_bytes())[1]) for path in paths
    ]


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_with_spark(spark: Any, tmp_path: Path, plan: str) -> None:
    for path in REAL:
        taps(path, tmp_path / "sets" / path.stem, 11)
    rows = written(spark, tmp_path / "lake", [tmp_path / "sets"], plan=plan)
    for path in REAL:
        folder = str(tmp_path / "sets" / path.stem)
        (one,) = capture_sets([folder])
        expected = chain(one)
        for name in ("findings", "frames"):
            kept = [row for row in rows[name] if row["capture_set"] == folder]
            assert ordered(kept) == ordered(expected[name])


def _set(folder: Path) -> CaptureSet:
    (one,) = capture_sets([str(folder)])
    return one


def test_what_overlaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reported from the first and the last octets; where that cannot be, it may."""
    header, packets = records((CAPTURES / "rhea-credit.pcap").read_bytes())
    assert len(packets) > 100
    half = len(packets) // 2
    first, second = tmp_path / "a.pcap", tmp_path / "b.pcap"
    for look in (64 * 1024, 3000):
        monkeypatch.setattr(inputs, "FIRST_LOOK", look)
        monkeypatch.setattr(capture_set, "FIRST_LOOK", look)
        monkeypatch.setattr(capture_set, "_LAST_LOOK", look)
        first.write_bytes(header + b"".join(packets[:half]))
        second.write_bytes(header + b"".join(packets[half:]))
        assert not _set(tmp_path).by_time
        second.write_bytes(header + b"".join(packets[half - 1 :]))
        assert not _set(tmp_path).by_time  # at the same time: in the order of files
        second.write_bytes(header + b"".join(packets[half - 20 :]))
        assert _set(tmp_path).by_time
        first.write_bytes(header + b"".join(packets[: half - 30]))
        assert not _set(tmp_path).by_time
    first.write_bytes(pa.compress(first.read_bytes(), "zstd", asbytes=True))
    assert _set(tmp_path).by_time


def test_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_set, "MAX_MERGE_OPEN", 3)
    for number in range(3):
        (tmp_path / f"{number}.pcap").write_bytes((CAPTURES / "demo.pcap").read_bytes())
    one = _set(tmp_path)
    assert (one.by_time, one.too_many) == (True, False)
    assert any("read in the order of time" in line for line in make_plan([one], 1).explain())
    (tmp_path / "3.pcap").write_bytes((CAPTURES / "demo.pcap").read_bytes())
    one = _set(tmp_path)
    assert (one.by_time, one.too_many) == (False, True)
    assert any("one after another, though" in line for line in make_plan([one], 1).explain())
    assert chain(one)["frames"]


@pytest.mark.parametrize("files", [1, 2])
def test_packets_of_two_taps_are_no_retransmissions(files: int, tmp_path: Path, spark: Any) -> None:
    """They are reported by the identification of their datagrams, which goes with them by either plan."""
    header, packets = records((CAPTURES / "rhea-credit.pcap").read_bytes())
    into = tmp_path / "taps"
    into.mkdir()
    if files == 1:
        (into / "both.pcap").write_bytes(header + b"".join(packet * 2 for packet in packets))
    else:
        for name in ("a.pcap", "b.pcap"):
            (into / name).write_bytes(header + b"".join(packets))
    chain = written(spark, tmp_path / "chain", [into], plan="chain")
    (connection,) = chain["connections"]
    assert connection["client_retransmitted"] == connection["server_retransmitted"] == 0
    for peer in ("client", "server"):
        assert connection[f"{peer}_captured_twice"] == connection[f"{peer}_octets"] > 0
    assert {note["code"] for note in connection["notes"]} == {"capture/duplicate"}
    assert written(spark, tmp_path / "flow", [into], plan="flow") == chain
