"""Lakes: the same rows from the same input, all or nothing, nothing left over, nothing of others touched."""

from __future__ import annotations

import contextlib
import datetime
import errno
import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from support.lakes import CAPTURES, contents, in_spark, ordered, written

from amqpscope.pipeline import PipelineError, analyse, tasks
from amqpscope.pipeline import lake as lakes
from amqpscope.pipeline import lease as lease_of_lakes
from amqpscope.pipeline import parts as lake_parts
from amqpscope.pipeline.compaction import compact_tables
from amqpscope.pipeline.delta import DeltaTables
from amqpscope.pipeline.engines import duckdb_engine
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.lake_directory import LakeDirectory
from amqpscope.pipeline.lease import Lease
from amqpscope.pipeline.parts import LakeFile, PartWriter
from amqpscope.pipeline.runs import COMPACT, REPLACE, RunNotes
from amqpscope.pipeline.schemas import TABLES

SOURCES = sorted(CAPTURES.glob("rhea-*.pcap"))


def parts(lake: Path) -> set[Path]:
    return set(lake.rglob("*.parquet"))


def test_twice(spark: Any, tmp_path: Path) -> None:
    """A second run gives the same rows. The files of the first stay, and can be read as of that run."""
    lake = tmp_path / "lake"
    first = written(spark, lake, SOURCES, set_by="file", plan="chain")
    before = parts(lake)
    again = written(spark, lake, SOURCES, set_by="file", plan="flow")
    assert again == first
    runs = Lake(str(lake)).runs()
    assert [(run.number, run.kind, run.options["plan"]) for run in runs] == [
        (1, "replace", "chain"),
        (2, "replace", "flow"),
    ]
    assert {path.name for path in lake.iterdir()} == {"runs", *TABLES}
    then, now = (
        {lake / part.path for name in TABLES for part in Lake(str(lake), run.name).parts(name)}
        for run in runs
    )
    assert then.isdisjoint(now) and then < before < parts(lake) and now < parts(lake)
    assert in_spark(lakes.table(spark, str(lake), "links", runs[0].name)) == first["links"]


def test_tables_are_readable_by_anyone(spark: Any, tmp_path: Path) -> None:
    """Whoever reads Delta tables sees the same rows, with date and protocol, and so does Spark."""
    import duckdb

    lake = tmp_path / "lake"
    written(spark, lake, SOURCES[:1])
    rows = written(spark, lake, SOURCES, set_by="file")
    for name in TABLES:
        assert in_spark(lakes.table(spark, str(lake), name)) == rows[name]
        of = deltalake.DeltaTable(str(lake / name))
        arrow = of.to_pyarrow_dataset()
        assert ordered(arrow.to_table().to_pylist()) == rows[name]
        assert duckdb.from_arrow(arrow).aggregate("count(*)").fetchall() == [(len(rows[name]),)]
        assert spark.read.parquet(*of.file_uris()).count() == len(rows[name])
    frames = lakes.table(spark, str(lake), "frames")
    assert frames.schema["packet"].metadata["comment"].startswith("packet with the frame's first octet")
    commented = deltalake.DeltaTable(str(lake / "frames")).schema().fields[2].metadata["comment"]
    assert commented == TABLES["frames"].columns[2].meaning
    part = Lake(str(lake)).parts("frames")[0]
    assert pq.read_schema(lake / part.path).equals(TABLES["frames"].schema)


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


def staged(staging: str, run: str, *tables: str) -> list[LakeFile]:
    """A row in each of these tables, written as a worker does."""
    writer = PartWriter(staging, run)
    for name in tables:
        schema = TABLES[name].schema
        row = dict.fromkeys(schema.names) | {"capture_set": run}
        if TABLES[name].partitioned:
            row["date"] = datetime.date(2026, 1, 31)
        writer.write(name, pa.RecordBatch.from_pylist([row], schema=schema))
    return writer.close()


def commit(lake: Path, *tables: str, kind: str = REPLACE) -> str:
    """A run without Spark: one row in each table. Gives the run."""
    tables = tables or ("files", "links")
    one = Lake(str(lake))
    run, staging = one.begin()
    one.commit(run, staged(staging, run, *tables), RunNotes(kind, tables))
    return run


def seen(lake: Path, as_of: str = "") -> list[str]:
    """Which runs the rows of each table come from, as readers see the lake."""
    at = Lake(str(lake), as_of)
    rows = [at.dataset(name, at.parts(name)).to_table().to_pylist() for name in at.written().versions]
    return [row["capture_set"] for table in rows for row in table]


class Dying:
    """Lets so many steps be done, and then none: as if killed, since what cleans up dies, too."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def let(self, real: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            self.steps -= 1
            if self.steps < 0:
                raise KeyboardInterrupt
            return real(*given, **named)

        return call


STEPS = (
    (Lake, "_move"),
    (LakeDirectory, "delete"),
    (DeltaTables, "make"),
    (DeltaTables, "commit"),
    (DeltaTable, "create_write_transaction"),
)


def test_a_run_that_dies_in_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each step, readers see the run before or the new one, whole. The next run mends the tables."""
    lake = tmp_path / "lake"
    before = commit(lake)
    outcomes = []
    steps = 0
    while not outcomes or not outcomes[-1]:
        one = Lake(str(lake))
        run, staging = one.begin()
        made = staged(staging, run, "files", "links")
        dying = Dying(steps)
        with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
            for of, name in STEPS:
                patch.setattr(of, name, dying.let(getattr(of, name)))
            one.commit(run, made, RunNotes(REPLACE, ("files", "links")))
        one._lease.release()
        visible = seen(lake)
        assert visible in ([before] * 2, [run] * 2)
        outcomes.append(dying.steps >= 0)
        steps += 1
        if visible[0] == run:
            before = run
        other = Lake(str(lake))
        other.begin()  # which sees to what the dead one has left
        for name in ("files", "links"):
            table = deltalake.DeltaTable(lake / name).to_pyarrow_table()
            assert table["capture_set"].to_pylist() == [before]
        other.abandon()
    assert steps > 10
    assert {path.name for path in lake.iterdir()} == {"files", "links", "runs"}
    commit(lake)
    Lake(str(lake)).vacuum(1)
    assert len(parts(lake)) > 6  # younger than an hour


@pytest.mark.parametrize("name", [b"lake\xff", b"lake/\xff"])
def test_names_that_are_not_utf8(tmp_path: Path, name: bytes) -> None:
    """Of the lake itself, or in its directory."""
    place = os.path.join(os.fsencode(tmp_path), name)
    os.makedirs(place)
    lake = os.fsdecode(place if name.endswith(b"e\xff") else os.path.dirname(place))
    with pytest.raises(PipelineError, match="is not UTF-8"):
        Lake(lake).begin()


def test_vacuum(tmp_path: Path) -> None:
    """Deletes what is old and belongs to no table; the last run stays whole, and earlier ones are refused."""
    lake = tmp_path / "lake"
    first = commit(lake)
    last = commit(lake)
    (lake / "links" / "part-dead-0.parquet").write_bytes(b"left by a killed run")
    assert Lake(str(lake)).vacuum(1) == 0
    assert seen(lake, first) == [first] * 2
    old = time.time() - 7200
    for path in lake.rglob("*.parquet"):
        os.utime(path, (old, old))
    assert Lake(str(lake)).vacuum(0) == 3
    assert seen(lake) == [last] * 2
    with pytest.raises(PipelineError, match=f"`vacuum` has deleted the table files of the run {first}"):
        seen(lake, first)
    with pytest.raises(PipelineError, match="there is no run nonsense"):
        seen(lake, "nonsense")


def test_runs_as_of_a_run(tmp_path: Path) -> None:
    """Readers see the rows of `runs` up to their own run, also after all rows have come into one file."""
    lake = tmp_path / "lake"
    names = [commit(lake) for _ in range(3)]

    def seen_runs(as_of: str = "") -> list[str]:
        at = Lake(str(lake), as_of)
        with duckdb_engine(at, at.all_parts()) as engine:
            return [row["run"] for row in engine.query("SELECT run FROM runs ORDER BY number").to_pylist()]

    for _ in range(2):
        assert [seen_runs(run) for run in names] == [names[:1], names[:2], names]
        assert seen_runs()[:3] == names
        at = Lake(str(lake), names[0])
        assert at.written().name == names[0] and [run.name for run in at.runs()][:3] == names
        compact_tables(Lake(str(lake)))
    at = Lake(str(lake))
    last = at.written()
    commit(lake)
    assert max(at.dataset("runs", at.parts("runs")).to_table()["number"].to_pylist()) == last.number


def test_runs_as_of_a_run_in_spark(spark: Any, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    first, _ = commit(lake), commit(lake)
    assert [row["run"] for row in lakes.table(spark, str(lake), "runs", first).collect()] == [first]
    assert lakes.table(spark, str(lake), "runs").count() == 2


def test_compact(tmp_path: Path) -> None:
    """The same rows in fewer files; earlier runs can be read as before."""
    lake = tmp_path / "lake"
    one = Lake(str(lake))
    run, staging = one.begin()
    made = [file for number in range(3) for file in staged(staging, f"{run}-{number}", "files", "links")]
    one.commit(run, made, RunNotes(REPLACE, ("files", "links"), options={"json": True}))
    rows = seen(lake)
    assert compact_tables(Lake(str(lake))) == (6, 2)
    assert (seen(lake), seen(lake, run)) == (rows, rows) and len(rows) == 6
    runs = Lake(str(lake)).runs()
    assert [one.kind for one in runs] == ["replace", "compact"]
    assert runs[0].options == runs[1].options == {"json": True}
    assert compact_tables(Lake(str(lake))) == (2, 2)
    assert len(Lake(str(lake)).runs()) == 2


def test_what_is_known_of_a_lake_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of `runs` never change: only new ones are read. And a run looks at a table as it begins, and as
    it commits.
    """
    lake = tmp_path / "lake"
    commit(lake)
    one = Lake(str(lake))
    real, read = one._all_rows, list[int]()

    def rows(name: str, files: list[LakeFile]) -> list[dict[str, Any]]:
        read.append(len(files))
        return real(name, files)

    monkeypatch.setattr(one, "_all_rows", rows)
    for kind in (REPLACE, REPLACE, COMPACT, REPLACE):
        commit(lake, kind=kind)
        assert one.runs() == Lake(str(lake)).runs() and one.runs()[-1] == Lake(str(lake)).written()
    assert read == [2, 1, 1, 1]

    opened = Counter[str]()
    look = DeltaTables.open

    def counted(tables: DeltaTables, table: str, version: int | None = None) -> DeltaTable | None:
        opened[table] += 1
        return look(tables, table, version)

    monkeypatch.setattr(DeltaTables, "open", counted)
    commit(lake)
    assert (opened["files"], opened["links"]) == (2, 2)


def test_old_logs_are_deleted(tmp_path: Path) -> None:
    """By `vacuum`, as files are: what is younger than it keeps can be read, and always the last run, whatever
    was done to its tables after it.
    """
    lake = tmp_path / "lake"
    for _ in range(25):
        commit(lake)
    rows = contents(lake)
    names = [run.name for run in Lake(str(lake)).runs()]
    log = lake / "files" / "_delta_log"
    assert (log / f"{0:020}.json").exists()
    assert len(list(log.glob("*.checkpoint.parquet"))) == 2
    for file in lake.glob("*/_delta_log/*"):
        number = int(file.name.partition(".")[0]) if file.name[0].isdigit() else 0
        os.utime(file, (time.time() - (26 - number) * 3600 - 1800,) * 2)
    Lake(str(lake)).vacuum(9)
    kept = sorted(int(file.stem) for file in log.glob("*.json"))
    assert kept[0] == 10 and kept[-1] >= 25
    for name in (names[-1], names[-9]):
        Lake(str(lake), name).all_parts()
    with pytest.raises(PipelineError, match=f"`vacuum` has deleted the table .* of the run {names[5]}"):
        Lake(str(lake), names[5]).all_parts()
    Lake(str(lake)).vacuum(0, often=True)
    assert min(int(file.stem) for file in log.glob("*.json")) == 20
    assert contents(lake) == rows
    commit(lake)
    assert len(Lake(str(lake)).runs()) == 26
    tables = DeltaTables(str(lake), LakeDirectory(str(lake)).system, "lake")
    opened = tables.open("files")
    assert opened is not None
    assert opened.metadata().configuration == {"delta.deletedFileRetentionDuration": "interval 1 hours"}


def test_a_lake_of_the_time_before(tmp_path: Path) -> None:
    """A manifest and a directory of files: readers refuse it, and a run makes a lake of it."""
    lake = tmp_path / "lake"
    place = lake / "run-0123456789ab"
    place.mkdir(parents=True)
    made = staged(str(place), "0123456789ab-1", "connections", "files", "links")
    (connections,) = [place / one.path for one in made if one.table == "connections"]
    table = pq.ParquetFile(connections).read()
    for name, exact in (("start", 1_769_817_600_000_001_234), ("end", 1_769_817_601_000_000_000)):
        at = table.schema.names.index(f"{name}_rest_ns")
        of_us = pa.array([exact // 1000]).cast(table.schema.field(name).type)
        table = table.set_column(at - 1, name, of_us).set_column(at, f"{name}_ns", pa.array([exact]))
    pq.write_table(table, connections)
    entries = [
        {"table": one.table, "path": f"run-0123456789ab/{one.path}", "rows": one.rows, "octets": one.octets}
        for one in made
    ]
    manifest = {"schema": "amqpscope/lake/3", "tables_version": 2, "run": "0123456789ab", "before": None}
    text = json.dumps(manifest | {"tables": ["connections", "files", "links"], "parts": entries})
    (lake / "manifest.json").write_text(text)
    (lake / "latest").symlink_to("run-0123456789ab")
    with pytest.raises(PipelineError, match="an earlier version of amqpscope wrote this lake"):
        seen(lake)
    compact_tables(Lake(str(lake)))
    assert seen(lake) == ["0123456789ab-1"] * 3
    (row,) = contents(lake)["connections"]
    assert (row["start_rest_ns"], row["end_rest_ns"]) == (234, 0) and row["start"].microsecond == 1
    assert {path.name for path in lake.iterdir()} == {"connections", "files", "links", "runs"}
    (other := tmp_path / "other").mkdir()
    entries[0]["path"] = "../secret.parquet"
    (other / "manifest.json").write_text(json.dumps(json.loads(text) | {"parts": entries}))
    with pytest.raises(PipelineError, match=r"\.\./secret.parquet is no file of connections"):
        compact_tables(Lake(str(other)))


def test_a_log_names_no_file_of_others(tmp_path: Path) -> None:
    tables = DeltaTables(str(tmp_path), LakeDirectory(str(tmp_path)).system, "lake")
    for number, path in enumerate(("../../other.parquet", "/etc/part-1.parquet", "s3://x/part-1.parquet"), 1):
        tables.commit(TABLES["files"], [LakeFile("files", f"files/{path}", 1, 1)], number)
        with pytest.raises(PipelineError, match="is no file that amqpscope has written"):
            tables.files("files")
    tables.commit(TABLES["files"], [], 4)
    assert tables.files("files") == []


def test_a_number_is_committed_once(tmp_path: Path) -> None:
    """So the same batch twice is refused, and so is a run that another one has overtaken."""
    tables = DeltaTables(str(tmp_path), LakeDirectory(str(tmp_path)).system, "lake")
    one, two = (
        LakeFile("files", "files/part-1.parquet", 1, 1),
        LakeFile("files", "files/part-2.parquet", 1, 1),
    )
    assert tables.commit(TABLES["files"], [one], 5) == 1
    for number in (4, 5):
        with pytest.raises(PipelineError, match="another run has written to the table files"):
            tables.commit(TABLES["files"], [one, two], number)
    assert tables.commit(TABLES["files"], [one, two], 6) == 2
    assert tables.files("files") == [one, two] and tables.files("files", 1) == [one]


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

    def test_at_the_same_moment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of two that have both seen no lease, the first one has it at once, without a wait."""
        first, second = Lake(str(tmp_path / "lake")), Lake(str(tmp_path / "lake"))
        look = Lease.refuse_if_held
        begun: list[str] = []

        def late(lease: Lease, run: str) -> None:
            look(lease, run)
            if not begun:
                begun.append(run)
                first.begin()

        monkeypatch.setattr(Lease, "refuse_if_held", late)
        monkeypatch.setattr("time.sleep", None)
        with pytest.raises(PipelineError, match="another run writes"):
            second.begin()
        first._lease.check()
        assert {path.name for path in (tmp_path / "lake").iterdir()} == {"_lease.json", "_staging"}
        first.abandon()

    def test_without_second_names(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where a file cannot have two names, a run waits until another one would have been seen."""

        def refused(*_: object) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

        waited: list[float] = []
        monkeypatch.setattr("os.link", refused)
        monkeypatch.setattr("time.sleep", waited.append)
        one = Lake(str(tmp_path / "lake"))
        one.begin()
        one._lease.check()
        assert waited == [lease_of_lakes._SETTLED]
        one.abandon()

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
        before = commit(lake)
        first, second = Lake(str(lake)), Lake(str(lake))
        run, staging = first.begin()
        os.utime(lake / "_lease.json", (0, 0))
        other, others = second.begin()
        with pytest.raises(PipelineError, match="another run writes"):
            first.commit(run, [], RunNotes(REPLACE, ()))
        assert Lake(str(lake)).written().name == before
        assert Path(others).is_dir() and not Path(staging).exists()
        second.commit(other, [], RunNotes(REPLACE, ()))
        assert Lake(str(lake)).written().name == other

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
    (tmp_path / "manifest.json").write_text('{"schema": "amqpscope/lake/3", "tables_version": 1}')
    with pytest.raises(PipelineError, match="not a lake of this version"):
        Lake(str(tmp_path)).begin()
    assert (tmp_path / "letter").read_text() == "dear reader"
    with pytest.raises(PipelineError, match="the name of the lake is empty"):
        Lake("")


@pytest.mark.parametrize("name", ["a%20b", "a%C3%BCb", "100%25", "a%2Fb"])
def test_a_path_that_delta_takes_for_another(tmp_path: Path, name: str) -> None:
    """It is refused before anything is written, and the lake that it would be taken for stays as it was."""
    other = tmp_path / unquote(name)
    run = commit(other)
    for path in (tmp_path / name, tmp_path / name / "lake"):
        with pytest.raises(
            PipelineError, match=r"lake cannot have %[0-9A-F]{2}, which Delta takes for another"
        ):
            commit(path)
    with pytest.raises(PipelineError, match="which Delta takes for another"):
        Lake((tmp_path / name).as_uri())
    assert seen(other) == [run] * 2 and len(Lake(str(other)).runs()) == 1
    assert not (tmp_path / name).exists()


@pytest.mark.skipif(os.sep == "\\", reason="it is between directories there")
def test_a_path_with_a_backslash(tmp_path: Path) -> None:
    """Delta would take it for a slash."""
    with pytest.raises(PipelineError, match="which Delta takes for another"):
        commit(tmp_path / "a\\b")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("name", ["a b", "a%b", "100%", "%zz", "a#b", "a?b", "a[b]", "ü", "a+b"])
def test_paths_with_special_characters(tmp_path: Path, name: str) -> None:
    """A lake is where its path says, and all that reads and writes it agrees."""
    lake = tmp_path / name
    first, last = commit(lake), commit(lake)
    assert (seen(lake, first), seen(lake)) == ([first] * 2, [last] * 2)
    assert compact_tables(Lake(str(lake))) == (2, 2)
    assert Lake(lake.as_uri()).vacuum(0) == 2
    with duckdb_engine(Lake(str(lake)), Lake(str(lake)).all_parts()) as engine:
        assert engine.query("SELECT capture_set FROM links").to_pylist() == [{"capture_set": last}]
    assert [path.name for path in tmp_path.iterdir()] == [name]


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


def test_a_finished_file_leaves_nothing_behind(tmp_path: Path) -> None:
    """Its metadata is gone at once: the collector comes seldom to a process that writes files for days."""
    gc.collect()
    gc.disable()
    try:
        made = staged(str(tmp_path), "name", "links", "findings")
        assert [one.first_set for one in made] == ["name", "name"]
        assert not any(isinstance(one, pq.FileMetaData) for one in gc.get_objects())
    finally:
        gc.enable()


def test_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows wait for a row group that is large enough, and all files together hold back no more than one."""
    schema = TABLES["deliveries"].schema
    first = 1_769_817_600_000_000

    def batch(protocol: str, start: int) -> pa.RecordBatch:
        rows = []
        for number in range(start, start + 1000):
            row = dict.fromkeys(schema.names)
            row |= {
                "packet": number,
                "time": first + number,
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
    assert "DELTA_BINARY_PACKED" in encodings["packet"] and "DELTA_BINARY_PACKED" in encodings["time"]
    assert "RLE_DICTIONARY" in encodings["address"] and "RLE_DICTIONARY" in encodings["payload"]
    sizes = {column.path_in_schema: column.total_uncompressed_size for column in columns}
    assert sizes["packet"] < 1000


def test_rows_of_a_peer_stand_together(tmp_path: Path) -> None:
    """In the order in which they were made. What grows from row to row then takes little room."""
    schema = TABLES["frames"].schema
    made = [
        (f"connection {number % 3}", "client" if number % 2 else "server", number) for number in range(3000)
    ]
    writer = PartWriter(str(tmp_path), "stem")
    for start in range(0, 3000, 1000):
        rows = [
            dict.fromkeys(schema.names)
            | {"connection": connection, "peer": peer, "packet": number, "delivery_tag": f"{number:08x}"}
            | {"protocol": "amqp10", "date": datetime.date(2026, 1, 31)}
            for connection, peer, number in made[start : start + 1000]
        ]
        writer.write("frames", pa.RecordBatch.from_pylist(rows, schema=schema))
    (part,) = writer.close()
    file = pq.ParquetFile(tmp_path / part.path)
    found = [(row["connection"], row["peer"], row["packet"]) for row in file.read().to_pylist()]
    places = {pair: place for place, pair in enumerate(dict.fromkeys(row[:2] for row in found))}
    assert len(places) == 6
    assert found == sorted(made, key=lambda row: (places[row[:2]], row[2]))
    columns = [file.metadata.row_group(0).column(n) for n in range(file.metadata.num_columns)]
    (tags,) = [column for column in columns if column.path_in_schema == "delivery_tag"]
    assert not tags.has_dictionary_page and tags.total_compressed_size < 8000
    bounded = {column.path_in_schema for column in columns if column.statistics is not None}
    assert {"connection", "packet", "time"} < bounded and bounded.isdisjoint({"peer", "kind", "size"})


def test_workers_are_reported_the_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a cluster have another working directory."""
    monkeypatch.chdir(tmp_path)
    one = Lake("relative")
    _, staging = one.begin()
    assert staging.startswith(f"{tmp_path}/relative/")
    assert Path(staging).is_dir()
    one.abandon()
