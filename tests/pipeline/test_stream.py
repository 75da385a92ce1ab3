"""`spark.readStream.format("amqpscope")`: each row once, and the same rows when a batch is done again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.lakes import CAPTURES, checked

from amqpscope import pipeline
from amqpscope.errors import AmqpscopeError
from amqpscope.pipeline.source import AmqpscopeSource

pytest.importorskip("pyspark.sql.streaming.datasource")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from amqpscope.pipeline.stream import CaptureStreamReader

ONE, OTHER = CAPTURES / "rhea-transfer-before-attach.pcap", CAPTURES / "demo.pcap"
LONG_AGO = (1_000_000_000, 1_000_000_000)
ALL = ReadAllAvailable()


def reader(folder: Path, **options: str) -> CaptureStreamReader:
    """What Spark asks for. It gets options with names in small letters."""
    options = {"table": "segments", "setBy": "file", "path": str(folder)} | options
    source = AmqpscopeSource({name.lower(): value for name, value in options.items()})
    made = source.streamReader(source.schema())
    assert isinstance(made, CaptureStreamReader)
    return made


def rows(stream: CaptureStreamReader, start: Any, end: Any) -> list[tuple[Any, ...]]:
    """The rows of a batch, by what they are recognised by. Offsets travel as JSON."""
    start, end = json.loads(json.dumps(start)), json.loads(json.dumps(end))
    found = []
    for partition in stream.partitions(start, end):
        for batch in stream.read(partition):
            for row in batch.to_pylist():
                found.append((Path(row["capture"]).name, row["packet"], row.get("rule"), row.get("seq")))
    return sorted(found, key=str)


def copied(folder: Path, source: Path, octets: int | None = None, old: bool = True) -> Path:
    target = folder / source.name
    target.write_bytes(source.read_bytes()[:octets])
    if old:
        os.utime(target, LONG_AGO)
    return target


def whole(folder: Path, **options: str) -> list[tuple[Any, ...]]:
    stream = reader(folder, **options)
    return rows(stream, {}, stream.latestOffset({}, ALL))


def test_segments_of_a_file_that_grows(tmp_path: Path) -> None:
    octets = OTHER.stat().st_size
    given, at = [], {}
    stream = reader(tmp_path)
    assert stream.latestOffset(stream.initialOffset(), ALL) == {}
    for size in (30, 700, 701, octets // 2, octets, octets):
        copied(tmp_path, OTHER, size)
        end = stream.latestOffset(at, ALL)
        found = rows(stream, at, end)
        assert found == rows(reader(tmp_path), at, end)
        given += found
        at = end
    assert stream.latestOffset(at, ALL) == at and rows(stream, at, at) == []
    assert len(given) > 20 and sorted(given, key=str) == whole(tmp_path)


@pytest.mark.parametrize("settle", [True, False])
def test_findings_once(tmp_path: Path, settle: bool) -> None:
    """However a capture grows, all its findings are given, and each once."""
    folder, state = tmp_path / "captures", str(tmp_path / "state")
    folder.mkdir()
    stream = reader(folder, table="findings", stateLocation=state)
    octets = ONE.stat().st_size
    given, at = [], {}
    for size in (octets // 3, octets // 2, octets - 1, octets):
        copied(folder, ONE, size, old=settle)
        end = stream.latestOffset(at, ALL)
        found = rows(stream, at, end)
        assert rows(reader(folder, table="findings", stateLocation=state), at, end) == found
        given += found
        at = end
        stream.commit(at)
    copied(folder, ONE)
    end = stream.latestOffset(at, ALL)
    assert (end == at) == settle
    given += rows(stream, at, end)
    wanted = sorted(((ONE.name, one["packet"], one["rule"], None) for one in checked(ONE)), key=str)
    assert wanted and sorted(given, key=str) == wanted


def test_a_batch_done_again_after_its_captures_are_gone(tmp_path: Path) -> None:
    folder, state = tmp_path / "captures", str(tmp_path / "state")
    folder.mkdir()
    copied(folder, ONE)
    options = {"table": "findings", "stateLocation": state}
    stream = reader(folder, **options)
    end = stream.latestOffset({}, ALL)
    found = rows(stream, {}, end)
    (folder / ONE.name).unlink()
    assert found and rows(reader(folder, **options), {}, end) == found
    stream.commit({})
    with pytest.raises(AmqpscopeError, match="deleted or overwritten before all its rows were given"):
        rows(stream, {}, end)
    assert rows(reader(folder, **options, failOnDataLoss="false"), {}, end) == []


def test_a_file_that_was_given_may_go(tmp_path: Path) -> None:
    """As in a ring of files: what else its set has is analysed alone."""
    folder, state = tmp_path / "captures", str(tmp_path / "state")
    folder.mkdir()
    options = {"table": "findings", "stateLocation": state, "setBy": "directory"}
    copied(folder, ONE)
    stream = reader(folder, **options)
    at = stream.latestOffset({}, ALL)
    assert rows(stream, {}, at)
    stream.commit(at)
    copied(folder, OTHER)
    end = stream.latestOffset(at, ALL)
    (folder / ONE.name).unlink()
    files = {row[0] for row in rows(stream, at, end)}
    assert files <= {OTHER.name}


@pytest.mark.parametrize(("sets", "again"), [("directory", False), ("file", True)])
def test_a_renamed_capture(tmp_path: Path, sets: str, again: bool) -> None:
    """Findings come once for a set: a file by itself is a new set under its new name."""
    folder, state = tmp_path / "captures", str(tmp_path / "state")
    folder.mkdir()
    stream = reader(folder, table="findings", stateLocation=state, setBy=sets)
    copied(folder, ONE)
    at = stream.latestOffset({}, ALL)
    found = rows(stream, {}, at)
    stream.commit(at)
    (folder / ONE.name).rename(folder / "other.pcap")
    later = rows(stream, at, stream.latestOffset(at, ALL))
    assert found and len(later) == (len(found) if again else 0)


def test_a_state_that_is_missing(tmp_path: Path) -> None:
    folder, state = tmp_path / "captures", str(tmp_path / "state")
    folder.mkdir()
    copied(folder, ONE, 600)
    stream = reader(folder, table="findings", stateLocation=state)
    at = stream.latestOffset({}, ALL)
    copied(folder, ONE)
    with pytest.raises(AmqpscopeError, match=r"what the query has given of .* is not there"):
        rows(stream, at, stream.latestOffset(at, ALL))


def test_a_name_used_again(tmp_path: Path) -> None:
    """As tcpdump -W does: another capture under the name is new from its beginning."""
    stream = reader(tmp_path)
    copied(tmp_path, ONE)
    at = stream.latestOffset({}, ALL)
    (tmp_path / ONE.name).write_bytes(OTHER.read_bytes())
    end = stream.latestOffset(at, ALL)
    assert rows(stream, at, end) == whole(tmp_path)
    with pytest.raises(AmqpscopeError, match="overwritten"):
        rows(stream, {}, at)


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        ({"maxFilesPerTrigger": "1"}, [1, 1, 1]),
        ({"maxFilesPerTrigger": "2"}, [2, 1]),
        ({"maxBytesPerTrigger": "1"}, [1, 1, 1]),
        ({"maxFilesPerTrigger": "3", "maxBytesPerTrigger": "1"}, [1, 1, 1]),
        ({}, [3]),
    ],
)
def test_limits(tmp_path: Path, limits: dict[str, str], sizes: list[int]) -> None:
    copied(tmp_path, OTHER).rename(tmp_path / "again.pcap")
    for source in (ONE, OTHER):
        copied(tmp_path, source)
    stream = reader(tmp_path, **limits)
    stream.prepareForTriggerAvailableNow()
    (tmp_path / "later.pcap").write_bytes(ONE.read_bytes())
    at: Any = {}
    found, taken = [], []
    while (end := stream.latestOffset(at, stream.getDefaultReadLimit())) != at:
        found += rows(stream, at, end)
        taken.append(sum(len(one["files"]) for one in end.values()) - sum(taken))
        at = end
    assert taken == sizes
    (tmp_path / "later.pcap").unlink()
    assert sorted(found, key=str) == whole(tmp_path)
    assert len(stream.latestOffset({}, ALL)) == 3


SEVERAL = ("dynamic", "outcomes", "transfer-after-detach", "transfer-before-attach", "types")


@pytest.mark.parametrize("limit", ["maxFilesPerTrigger", "maxBytesPerTrigger"])
def test_findings_of_one_look_in_several_batches(tmp_path: Path, limit: str) -> None:
    """A set whose files come in several batches, all of them of what was there at one time: its findings are
    those of one batch, each once, and each batch can be done again.
    """
    folder, state = tmp_path / "captures", str(tmp_path / "state")
    folder.mkdir()
    for name in SEVERAL:
        copied(folder, CAPTURES / f"rhea-{name}.pcap")
    options = {"table": "findings", "setBy": "directory"}
    wanted = whole(folder, **options, stateLocation=str(tmp_path / "other"))
    assert len(wanted) == len(set(wanted)) > len(SEVERAL)
    options |= {"stateLocation": state, limit: "1"}
    stream = reader(folder, **options)
    stream.prepareForTriggerAvailableNow()
    at: Any = {}
    found, batches = [], 0
    while (end := stream.latestOffset(at, stream.getDefaultReadLimit())) != at:
        batch = rows(stream, at, end)
        assert rows(reader(folder, **options), at, end) == batch
        found += batch
        batches += 1
        stream.commit(end)
        at = end
    assert batches == len(SEVERAL)
    assert sorted(found, key=str) == wanted


def before_numbers(offset: dict[str, Any]) -> dict[str, Any]:
    """An offset as earlier versions wrote it."""
    return {name: {key: of for key, of in one.items() if key != "number"} for name, one in offset.items()}


def test_a_checkpoint_of_an_earlier_version(tmp_path: Path) -> None:
    """A query goes on from it. A batch of one whose state was overwritten is refused."""
    folder, state = tmp_path / "captures", str(tmp_path / "state")
    folder.mkdir()
    options = {"table": "findings", "stateLocation": state, "setBy": "directory"}
    copied(folder, ONE)
    stream = reader(folder, **options)
    at = before_numbers(stream.latestOffset({}, ALL))
    first = rows(stream, {}, at)
    assert first
    copied(folder, CAPTURES / "rhea-types.pcap")
    end = stream.latestOffset(at, ALL)
    second = rows(stream, at, end)
    assert second == rows(stream, at, end)
    assert sorted(first + second, key=str) == whole(folder, **options | {"stateLocation": f"{state}2"})
    one_look = before_numbers(end)
    for name, of in one_look.items():
        of["time"] = at[name]["time"]
    with pytest.raises(AmqpscopeError, match="begin with a new checkpointLocation"):
        rows(stream, at, one_look)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"table": "frames"}, "table frames: a stream has the tables segments and findings"),
        ({"table": "findings"}, "option stateLocation: a stream of findings needs a directory"),
        ({"maxFilesPerTrigger": "0"}, "option maxFilesPerTrigger: must be a number of at least 1"),
        ({"maxFiles": "1"}, r"option maxfiles: is unknown; the options are .*maxFilesPerTrigger"),
        ({"path": "/nosuch/"}, "/nosuch/: No such file or directory"),
    ],
)
def test_refusals(tmp_path: Path, options: dict[str, str], reason: str) -> None:
    with pytest.raises(AmqpscopeError, match=reason):
        reader(tmp_path, **options).initialOffset()


def test_a_query(spark: Any, tmp_path: Path) -> None:
    """Spark itself: two runs from one checkpoint give each finding once."""
    pipeline.register(spark)
    folder = tmp_path / "captures"
    folder.mkdir()
    for source in (ONE, OTHER):
        copied(folder, source)
        stream = spark.readStream.format("amqpscope").option("table", "findings").option("setBy", "file")
        stream = stream.option("stateLocation", str(tmp_path / "state")).option("maxFilesPerTrigger", "1")
        query = (
            stream.load(str(folder))
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        assert query.awaitTermination(120) and query.exception() is None
    found = sorted((row.rule, row.packet) for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert found == sorted((one["rule"], one["packet"]) for path in (ONE, OTHER) for one in checked(path))
