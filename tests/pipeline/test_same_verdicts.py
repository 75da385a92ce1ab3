"""Frames and findings of the pipeline are those of `read` and `check`, row for row, by either plan."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.cluster import LIGHT_JAVA
from support.lakes import (
    CAPTURES,
    SOME,
    Reported,
    checked,
    in_spark,
    ordered,
    rotated,
    written,
)

from amqpscope.pipeline import lake
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.files import ranges

REAL = sorted(CAPTURES.glob("*.pcap"))

MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def reported(alone: list[Path]) -> Reported:
    """What `check` and `read` say of all captures there are, and of large ones that have faults."""
    reported = Reported(alone)
    assert len(reported.findings) > 200 and len(reported.frames) > 15_000
    # What another connection would show may have been lost.
    assert not [one for one in reported.findings if one["capture"] == str(alone[-1])]
    for path in alone[-3:-1]:
        # What is large is cut, through connections, and has something to be found in several ranges.
        (one,) = capture_sets([str(path)])
        parts = ranges(one.files[0], 0, MEBIBYTE)
        assert len(parts) >= 5
        assert len([finding for finding in reported.findings if finding["capture"] == str(path)]) >= 3
    print(f"{len(alone)} captures, {len(reported.frames)} frames, {len(reported.findings)} findings")
    return reported


def test_each_capture_alone_by_chain(by_chain: Path, reported: Reported) -> None:
    reported.compare(by_chain)


def test_each_capture_alone_by_flow(spark: Any, tmp_path: Path, reported: Reported) -> None:
    """Only the large ones are cut into ranges."""
    written(spark, tmp_path / "lake", reported.captures, set_by="file", plan="flow", split=MEBIBYTE)
    reported.compare(tmp_path / "lake")


def test_with_one_core(tmp_path: Path, alone: list[Path]) -> None:
    """The command as it is started, in a process of its own, with ranges of 1 MiB."""
    lake = tmp_path / "lake"
    # Of the two that are cut, the one with fewer frames: JSON has the most of its messages, which are large.
    reported = Reported([path for path in alone if path in SOME or path in alone[-2:]])
    command = ["pipeline", "run", *map(str, reported.captures), "--out", str(lake), "--set-by", "file"]
    options = ["--plan", "flow", "--split", "1", "--master", "local[1]", "--json"]
    options += ["--conf", f"spark.driver.defaultJavaOptions={LIGHT_JAVA}"]
    result = subprocess.run(
        [sys.executable, "-m", "amqpscope", *command, *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 1, result.stderr
    reported.compare(lake, with_json=True)


FILES = 3
"""Into so many a capture is cut, to be a rotated set."""


def _places(row: dict[str, Any]) -> list[tuple[str, int]]:
    """The packets of a finding by file and number; those of a whole capture as if it had been rotated."""
    packets = [(Path(packet["capture"]).name, packet["packet"]) for packet in row["packets"]]
    assert packets[0] == (Path(row["capture"]).name, row["packet"])
    if packets[0][0] != "all.pcap":
        return packets
    each = -(-_packets(CAPTURES / f"{row['capture_set']}.pcap") // FILES)
    return [(f"{'zyx'[(packet - 1) // each]}.pcap", (packet - 1) % each + 1) for _, packet in packets]


def _without_place(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Rows without what tells the file and its own numbers."""
    packets = ("packet", "packets", "last_packet", "settled_packet", "ended_packet")
    places = ("capture", *packets, "notes", "message", "errors")

    def without(row: dict[str, Any]) -> dict[str, Any]:
        row = {name: value for name, value in row.items() if name not in places}
        if row.get("reaction"):
            row["reaction"] = {**row["reaction"], "packet": 0}
        return row

    kept = {name: ordered(map(without, kept)) for name, kept in rows.items() if name != "files"}
    kept["findings"] = ordered({**without(row), "places": _places(row)} for row in rows["findings"])
    return kept


@pytest.fixture(scope="module")
def merged(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("merged")
    for path in REAL:
        (folder / path.stem).mkdir()
        (folder / path.stem / "all.pcap").write_bytes(path.read_bytes())
    rows = written(spark, folder / "lake", [folder / path.stem for path in REAL], plan="chain")
    return _comparable(rows, folder)


def _comparable(rows: dict[str, list[dict[str, Any]]], folder: Path) -> Any:
    for kept in rows.values():
        for row in kept:
            row["capture_set"] = Path(row["capture_set"]).relative_to(folder).as_posix()
    return _without_place(rows)


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_rotated_set(spark: Any, tmp_path: Path, plan: str, merged: Any) -> None:
    """Connections run through the files of a set, which follow one another by time, not by name."""
    for path in REAL:
        rotated(path, tmp_path / path.stem, FILES)

    rows = written(spark, tmp_path / "lake", [tmp_path / path.stem for path in REAL], plan=plan)

    positions = {Path(row["capture"]).name: row["position"] for row in rows["files"]}
    assert positions == {"z.pcap": 0, "y.pcap": 1, "x.pcap": 2}
    assert {Path(row["capture"]).name for row in rows["findings"]} == {"z.pcap", "y.pcap", "x.pcap"}
    assert _comparable(rows, tmp_path) == merged


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_connections_are_judged_against_each_other_within_their_set(
    spark: Any, tmp_path: Path, plan: str
) -> None:
    """A link attached again on a later connection, in a later file; of several sets, each for itself."""
    path = CAPTURES / "rules" / "amqp10" / "L-ATTACH-UNSETTLED" / "violating.pcap"
    (found,) = [finding for finding in checked(path) if finding["rule"] == "amqp10/L-ATTACH-UNSETTLED"]
    for number in range(5):
        rotated(path, tmp_path / "sets" / str(number), 2)
    apart = sorted((tmp_path / "sets").rglob("*.pcap"))

    rows = written(spark, tmp_path / "lake", [tmp_path / "sets"], plan=plan)
    reported = [row for row in rows["findings"] if row["rule"] == "amqp10/L-ATTACH-UNSETTLED"]
    assert sorted(Path(row["capture_set"]).name for row in reported) == ["0", "1", "2", "3", "4"]
    for row in reported:
        assert row["fingerprint"] == found["fingerprint"]
        assert [Path(packet["capture"]).parent.name for packet in row["packets"]] == (
            [Path(row["capture_set"]).name] * len(found["packets"])
        )
        assert {Path(packet["capture"]).name for packet in row["packets"]} == {"y.pcap", "z.pcap"}
    rows = written(spark, tmp_path / "lake", apart, set_by="file", plan=plan)
    assert not [row for row in rows["findings"] if row["rule"] == "amqp10/L-ATTACH-UNSETTLED"]


def test_packets_are_those_of_their_files(spark: Any, tmp_path: Path) -> None:
    """A finding of a rotated set names its packet as the file alone has it, also in its sentence."""
    path = CAPTURES / "rabbitmq-frames-after-close.pcap"
    whole = checked(path)
    files = rotated(path, tmp_path / "set", 2)
    packets = [-(-_packets(path) // 2), 0]

    rows = written(spark, tmp_path / "lake", [tmp_path / "set"], plan="chain")

    of_second = [row for row in rows["findings"] if row["capture"] == str(files[1])]
    assert of_second
    places = {(row["rule"], row["packet"] + packets[0]) for row in of_second}
    assert places <= {(finding["rule"], finding["packet"]) for finding in whole}
    for row in of_second:
        closed = next(
            packet for packet in row["packets"] if row["message"].endswith(f"in packet {packet['packet']}")
        )
        assert closed["capture"] == str(files[1])


def _packets(path: Path) -> int:
    from support.lakes import records

    return len(records(path.read_bytes())[1])


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_profiles_as_chosen(spark: Any, tmp_path: Path, plan: str) -> None:
    """A habit is a note there as here, or none is, by the same option; and it is counted as what it is."""
    from amqpscope.pipeline import analyse
    from amqpscope.policy.policy import Given, Policy

    analysis = analyse(spark, [str(CAPTURES / "rabbitmq-credit.pcap")], plan=plan)
    for choice, found in (("auto", ("note", "rabbitmq-3")), ("none", ("error", None))):
        given = Given()
        given.profile = choice
        outcome = analysis.write(str(tmp_path / choice), ["findings"], policy=Policy(None, given))
        rows = [row.asDict() for row in lake.table(spark, str(tmp_path / choice), "findings").collect()]
        assert [(row["severity"], row["profile"]) for row in rows] == [found] * 2
        assert outcome.counts["finding", found[0], "possible"] == 2


def test_a_table_at_a_time(spark: Any, tmp_path: Path) -> None:
    """`Analysis.table` gives what a lake has."""
    from amqpscope.pipeline import analyse

    sources = [str(path) for path in REAL[:6]]
    lake = written(spark, tmp_path / "lake", sources, set_by="file", plan="flow")
    for plan in ("chain", "flow"):
        analysis = analyse(spark, sources, set_by="file", plan=plan)
        for name in ("files", "deliveries"):
            assert in_spark(analysis.table(name)) == lake[name]


def test_source(spark: Any, tmp_path: Path) -> None:
    """The data source gives the same rows, and the segments."""
    from amqpscope.pipeline import register

    register(spark)
    folder = tmp_path / "captures"
    folder.mkdir()
    for path in REAL[:4]:
        (folder / path.name).write_bytes(path.read_bytes())
    lake = written(spark, tmp_path / "lake", [folder], set_by="file")
    source = spark.read.format("amqpscope").option("setBy", "file")
    for name in ("findings", "links"):
        frame = source.option("table", name).load(str(folder))
        assert in_spark(frame) == lake[name]
    segments = source.option("table", "segments").load(str(folder)).collect()
    assert len(segments) == sum(row["segments"] for row in lake["files"])
    assert sum(row.payload for row in segments) >= sum(
        row["client_octets"] + row["server_octets"] for row in lake["connections"]
    )
