"""Lakes: the same rows from the same input, all or nothing, nothing left over, nothing of others touched."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.lakes import CAPTURES, contents, in_spark, written

from amqpscope.pipeline import PipelineError, analyse, tasks
from amqpscope.pipeline import lake as lakes
from amqpscope.pipeline import lease as lease_of_lakes
from amqpscope.pipeline import parts as lake_parts
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.parts import LakeFile, PartWriter
from amqpscope.pipeline.schemas import TABLES

SOURCES = sorted(CAPTURES.glob("rhea-*.pcap"))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two runs of these tests begin at the same moment."""
    monkeypatch.setattr(lease_of_lakes, "_SETTLED", 0.0)


def parts(lake: Path) -> set[Path]:
    return set(lake.rglob("*.parquet"))


def test_twice(spark: Any, tmp_path: Path) -> None:
    """A second run gives the same rows. The files of the first stay, out of sight, until the third."""
    lake = tmp_path / "lake"
    first = written(spark, lake, SOURCES, set_by="file", plan="chain")
    before = parts(lake)
    again = written(spark, lake, SOURCES, set_by="file", plan="flow")
    assert again == first
    manifest = Lake(str(lake)).manifest()
    assert manifest is not None
    assert {lake / part["path"] for part in manifest["parts"]} == parts(lake) - before
    assert before < parts(lake)
    runs = {f"run-{manifest['run']}", f"run-{manifest['before']}"}
    assert {path.name for path in lake.iterdir()} == {"manifest.json", "latest", *runs}
    assert {path.name for path in (lake / "latest").iterdir()} == set(TABLES)
    assert (lake / "latest").resolve() == lake / f"run-{manifest['run']}"
    commit(lake)
    assert parts(lake).isdisjoint(before)


def test_directories_are_readable_by_anyone(spark: Any, tmp_path: Path) -> None:
    """Spark without amqpscope sees the same rows, with date and protocol."""
    lake = tmp_path / "lake"
    rows = written(spark, lake, SOURCES, set_by="file")
    for name in TABLES:
        assert in_spark(lakes.table(spark, str(lake), name)) == rows[name]
    for name in ("findings", "frames"):
        plain = spark.read.parquet(str(lake / "latest" / name))
        assert plain.count() == len(rows[name])
        assert dict(plain.dtypes)["date"] == "date" and dict(plain.dtypes)["protocol"] == "string"
    frames = lakes.table(spark, str(lake), "frames")
    assert frames.schema["packet"].metadata["comment"].startswith("packet with the frame's first octet")
    assert pq.read_schema(next(iter(parts(lake / "latest" / "frames")))).equals(TABLES["frames"].schema)


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_some_tables(spark: Any, tmp_path: Path, plan: str) -> None:
    """Those asked for have the same rows as with all of them; the others are empty."""
    sources = [str(path) for path in SOURCES]
    whole = written(spark, tmp_path / "whole", sources, set_by="file", plan=plan)
    analysis = analyse(spark, sources, set_by="file", plan=plan)
    analysis.write(str(tmp_path / "lake"), ["findings", "links"])
    rows = contents(tmp_path / "lake")
    for name in TABLES:
        assert rows[name] == (whole[name] if name in ("files", "findings", "links") else [])
    assert rows["findings"] and rows["links"]
    with pytest.raises(PipelineError, match="fingers: there is no such table"):
        analysis.write(str(tmp_path / "lake"), ["fingers"])


class Breaks(tasks.StagedFiles):
    """Writes some, then fails."""

    def take(self, made: Any, rows: Any) -> Any:
        yield from super().take(made, rows)
        raise RuntimeError("as if the machine had gone")


def test_a_run_that_fails_changes_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    before = written(spark, lake, SOURCES[:2], set_by="file")
    files = parts(lake)
    monkeypatch.setattr("amqpscope.pipeline.analysis.StagedFiles", _breaking())
    with pytest.raises(PipelineError, match="as if the machine had gone"):
        analyse(spark, [str(path) for path in SOURCES], set_by="file").write(str(lake))
    assert parts(lake) == files
    assert contents(lake) == before


def _breaking() -> Any:
    """What breaks, in a form that workers can load: they cannot import a test module."""
    import sys

    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return Breaks


def commit(lake: Path, table: str = "files") -> None:
    """A run without Spark: one row in one table."""
    one = Lake(str(lake))
    run, staging = one.begin()
    schema = TABLES[table].schema
    writer = PartWriter(staging, run)
    writer.write(table, pa.RecordBatch.from_pylist([dict.fromkeys(schema.names)], schema=schema))
    one.commit(run, writer.close(), {"tables": [table]})


def committed(lake: Path) -> list[str]:
    """The run that readers of the manifest see, and that which readers of the directories see."""
    manifest = Lake(str(lake)).written()
    assert all((lake / part["path"]).exists() for part in manifest["parts"])
    return [f"run-{manifest['run']}", os.readlink(lake / "latest")]


@pytest.mark.parametrize("step", range(12))
def test_a_run_that_dies_in_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Each reader sees the run before or the new one, whole; the next run removes what is left."""
    lake = tmp_path / "lake"
    commit(lake)
    before = committed(lake)
    done = 0

    def dying(name: str, real: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal done
            done += 1
            if done > step:
                raise KeyboardInterrupt  # as if killed: what cleans up dies, too
            return real(*given, **named)

        return call

    class Dying:
        """The file system of a lake, until it is called too often."""

        def __init__(self, real: Any) -> None:
            self._real = real

        def __getattr__(self, name: str) -> Any:
            return dying(name, getattr(self._real, name))

    one = Lake(str(lake))
    run, staging = one.begin()
    writer = PartWriter(staging, run)
    schema = TABLES["files"].schema
    writer.write("files", pa.RecordBatch.from_pylist([dict.fromkeys(schema.names)], schema=schema))
    made = writer.close()
    with monkeypatch.context() as patch:
        patch.setattr(one, "_system", Dying(one._system))
        patch.setattr("amqpscope.pipeline.lake.os.replace", dying("replace", os.replace))
        with contextlib.suppress(KeyboardInterrupt):
            one.commit(run, made, {"tables": ["files"]})
    one._lease.release()
    for seen in committed(lake):
        assert seen in (before[0], f"run-{run}")
        assert len(parts(lake / seen)) == 1
    commit(lake)
    now = committed(lake)
    assert now[0] == now[1]
    assert {path.name for path in lake.glob("_*")} == set()
    assert len(list(lake.glob("run-*"))) == 2


def test_a_frame_outlives_a_commit(spark: Any, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    commit(lake, "connections")
    commit(lake, "files")
    frame = lakes.table(spark, str(lake), "files")
    commit(lake, "files")
    assert frame.count() == 1
    with pytest.raises(PipelineError, match=r"did not write the table frames \(`--tables` left it out\)"):
        lakes.table(spark, str(lake), "frames")


class TestLease:
    """One run at a time writes to a lake."""

    def test_the_second_is_refused(self, tmp_path: Path) -> None:
        first, second = Lake(str(tmp_path / "lake")), Lake(str(tmp_path / "lake"))
        first.begin()
        for start in (second.refuse, second.begin):
            with pytest.raises(PipelineError, match=rf"another run writes .* \(process {os.getpid()} on "):
                start()
        second.abandon()
        assert {path.name for path in (tmp_path / "lake").iterdir()} == {"_lease.json", "_staging"}
        first.abandon()
        assert not (tmp_path / "lake").exists()
        second.begin()
        second.abandon()

    def test_of_a_dead_process(self, tmp_path: Path) -> None:
        """It is taken over at once on the same machine; elsewhere when it was not renewed for a minute."""
        lake = tmp_path / "lake"
        lake.mkdir()
        lease = lake / "_lease.json"
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        machine = lease_of_lakes._machine()
        for holder, age, refused in (
            ({"run": "x", "machine": machine, "process": dead.pid}, 0, not machine),
            ({"run": "x", "machine": "other", "process": dead.pid}, 0, True),
            ({"run": "x", "machine": "other", "process": dead.pid}, 50, True),
            ({"run": "x", "machine": "other", "process": dead.pid}, 70, False),
            ({"run": "x", "machine": machine, "process": os.getpid()}, 70, False),
        ):
            lease.write_text(json.dumps(holder))
            now = time.time() - age
            os.utime(lease, (now, now))
            one = Lake(str(lake))
            if refused:
                with pytest.raises(PipelineError, match="another run writes"):
                    one.begin()
            else:
                one.begin()
                one.abandon()

    def test_lost(self, tmp_path: Path) -> None:
        """A run whose lease was taken over commits nothing, and leaves the other's work alone."""
        lake = tmp_path / "lake"
        commit(lake)
        first, second = Lake(str(lake)), Lake(str(lake))
        run, staging = first.begin()
        os.utime(lake / "_lease.json", (0, 0))
        other, others = second.begin()
        manifest = (lake / "manifest.json").read_bytes()
        with pytest.raises(PipelineError, match="another run writes"):
            first.commit(run, [], {"tables": []})
        assert (lake / "manifest.json").read_bytes() == manifest
        assert Path(others).is_dir() and not Path(staging).exists()
        second.commit(other, [], {"tables": []})
        assert (
            committed(lake) == [f"run-{other}", f"run-{other}"] or Lake(str(lake)).written()["run"] == other
        )

    def test_left_by_a_killed_run(self, tmp_path: Path) -> None:
        """A run that was killed as it took the lease leaves a file, which goes when nobody can need it."""
        lake = tmp_path / "lake"
        commit(lake)
        for name, age in (("_lease-0123456789ab", 70), ("_lease-ba9876543210", 0)):
            (lake / name).write_text("{}")
            os.utime(lake / name, (time.time() - age, time.time() - age))
        commit(lake)
        assert [path.name for path in lake.glob("_lease*")] == ["_lease-ba9876543210"]

    def test_renewed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lease_of_lakes, "RENEWED_EVERY", 0.01)
        one = Lake(str(tmp_path / "lake"))
        one.begin()
        lease = tmp_path / "lake" / "_lease.json"
        os.utime(lease, (0, 0))
        end = time.monotonic() + 20
        while lease.stat().st_mtime == 0 and time.monotonic() < end:
            threading.Event().wait(0.01)
        assert lease.stat().st_mtime > 0
        one.abandon()


def test_other_peoples_directories(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear reader")
    with pytest.raises(PipelineError, match="is not empty and is not a lake"):
        Lake(str(tmp_path)).begin()
    (tmp_path / "manifest.json").write_text('{"schema": "something/else"}')
    with pytest.raises(PipelineError, match="not a lake of this version"):
        Lake(str(tmp_path)).begin()
    assert (tmp_path / "letter").read_text() == "dear reader"
    with pytest.raises(PipelineError, match="the name of the lake is empty"):
        Lake("")


def test_many_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More dates and protocols than files may be open: all rows are written, few at a time are open."""
    monkeypatch.setattr(lake_parts, "MAX_OPEN_PARTS", 3)
    schema = TABLES["links"].schema
    writer = PartWriter(str(tmp_path), "stem")
    most = 0
    for _ in range(2):
        for day in range(10):
            row = dict.fromkeys(schema.names) | {"date": day, "protocol": "tls", "number": day}
            row["date"] = pa.scalar(day, pa.int32()).cast(pa.date32()).as_py()
            other = row | {"protocol": None}
            writer.write("links", pa.RecordBatch.from_pylist([row, other], schema=schema))
            most = max(most, len(writer._open))
    made = writer.close()
    assert most == 3
    assert sum(part.rows for part in made) == 40
    assert len({part.path for part in made}) == len(made)
    assert all(pq.ParquetFile(tmp_path / part.path).metadata.num_rows == part.rows for part in made)
    assert any("protocol=__HIVE_DEFAULT_PARTITION__" in part.path for part in made)
    assert isinstance(made[0], LakeFile)


def test_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows wait for a row group that is large enough, and all files together hold back no more than one."""
    schema = TABLES["deliveries"].schema
    first = 1_769_817_600_000_000_000

    def batch(protocol: str, start: int) -> pa.RecordBatch:
        rows = []
        for number in range(start, start + 1000):
            row = dict.fromkeys(schema.names)
            row |= {
                "packet": number,
                "time_ns": first + number * 1000,
                "address": f"queue-{number % 3}",
                "payload": number % 5,
            }
            rows.append(row | {"protocol": protocol, "date": datetime.date(2026, 1, 31)})
        return pa.RecordBatch.from_pylist(rows, schema=schema)

    monkeypatch.setattr(lake_parts, "ROW_GROUP_ROWS", 4000)
    octets = sum(one.nbytes for one in batch("amqp10", 0).columns if one.null_count < 1000)
    monkeypatch.setattr(lake_parts, "ROW_GROUP_OCTETS", 10 * octets)
    writer = PartWriter(str(tmp_path), "stem")
    for number in range(9):
        writer.write("deliveries", batch("amqp10", number * 1000))
    for number in range(12):
        writer.write("deliveries", batch(f"protocol-{number}", 0))
        assert writer._held < lake_parts.ROW_GROUP_OCTETS
    made = writer.close()
    assert writer._held == 0
    files = [pq.ParquetFile(tmp_path / part.path) for part in made]
    (whole,) = [one for one in files if one.metadata.num_rows == 9000]
    assert [whole.metadata.row_group(n).num_rows for n in range(3)] == [4000, 4000, 1000]
    assert all(one.metadata.num_row_groups == 1 for one in files if one is not whole)
    assert whole.read().column("packet").to_pylist() == list(range(9000))
    columns = [whole.metadata.row_group(0).column(n) for n in range(whole.metadata.num_columns)]
    encodings = {column.path_in_schema: column.encodings for column in columns}
    assert "DELTA_BINARY_PACKED" in encodings["packet"] and "DELTA_BINARY_PACKED" in encodings["time_ns"]
    assert "RLE_DICTIONARY" in encodings["address"] and "RLE_DICTIONARY" in encodings["payload"]
    sizes = {column.path_in_schema: column.total_uncompressed_size for column in columns}
    assert sizes["packet"] < 1000


def test_workers_are_reported_the_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a cluster have another working directory."""
    monkeypatch.chdir(tmp_path)
    one = Lake("relative")
    _, staging = one.begin()
    assert staging.startswith(f"{tmp_path}/relative/")
    assert Path(staging).is_dir()
    one.abandon()
