"""Lakes: the same rows from the same input, all or nothing, nothing left over, nothing of others touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.lakes import CAPTURES, contents, in_spark, written

from amqpscope.pipeline import PipelineError, analyse, tasks
from amqpscope.pipeline import lake as lakes
from amqpscope.pipeline.lake import Lake, LakeFile, PartWriter
from amqpscope.pipeline.schemas import TABLES

SOURCES = sorted(CAPTURES.glob("rhea-*.pcap"))


def parts(lake: Path) -> set[Path]:
    return set(lake.rglob("*.parquet"))


def test_twice(spark: Any, tmp_path: Path) -> None:
    """A second run gives the same rows, and replaces the files of the first."""
    lake = tmp_path / "lake"
    first = written(spark, lake, SOURCES, set_by="file", plan="chain")
    before = parts(lake)
    again = written(spark, lake, SOURCES, set_by="file", plan="flow")
    assert again == first
    assert parts(lake).isdisjoint(before)
    manifest = Lake(str(lake)).manifest()
    assert manifest is not None
    assert {lake / part["path"] for part in manifest["parts"]} == parts(lake)
    assert {path.name for path in lake.iterdir()} == {"manifest.json", *TABLES}


def test_directories_are_readable_by_anyone(spark: Any, tmp_path: Path) -> None:
    """Spark without amqpscope sees the same rows, with date and protocol."""
    lake = tmp_path / "lake"
    rows = written(spark, lake, SOURCES, set_by="file")
    for name in TABLES:
        assert in_spark(lakes.table(spark, str(lake), name)) == rows[name]
    for name in ("findings", "frames"):
        plain = spark.read.parquet(str(lake / name))
        assert plain.count() == len(rows[name])
        assert dict(plain.dtypes)["date"] == "date" and dict(plain.dtypes)["protocol"] == "string"
    assert pq.read_schema(next(iter(parts(lake / "frames")))).equals(TABLES["frames"].stored)


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


def test_what_a_dead_run_left_goes_with_the_next(spark: Any, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    dead = lake / "_staging" / "dead" / "frames"
    dead.mkdir(parents=True)
    (dead / "part-dead.parquet").write_bytes(b"half")
    orphan = lake / "frames" / "date=2000-01-01" / "protocol=amqp10" / "part-dead.parquet"
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"half")
    with pytest.raises(PipelineError, match="is not a lake"):
        Lake(str(lake)).begin()
    orphan.unlink()
    orphan.parent.rmdir()
    orphan.parent.parent.rmdir()
    (lake / "frames").rmdir()
    written(spark, lake, SOURCES[:1])
    orphan.parent.mkdir(parents=True, exist_ok=True)
    orphan.write_bytes(b"half")
    rows = written(spark, lake, SOURCES[:1])
    assert rows["frames"]
    assert not orphan.exists() and not orphan.parent.parent.exists()
    assert not (lake / "_staging").exists()


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
    monkeypatch.setattr(lakes, "MAX_OPEN_PARTS", 3)
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


def test_workers_are_reported_the_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a cluster have another working directory."""
    monkeypatch.chdir(tmp_path)
    _, staging = Lake("relative").begin()
    assert staging.startswith(f"{tmp_path}/relative/")
    assert Path(staging).is_dir()
