"""Kill a process that commits runs to a lake, at random moments, and look what readers see then.

    cd tests; python -m support.commit_kills [KILLS [spark]]

Each process commits one run after another, as fast as it can, and is killed after a random time. After each
kill, `sql` (DuckDB on the lake), DuckDB on the files that the Delta logs name, pandas, and polars (if it is
installed) see one run, whole: all rows of a table are of the run before or of the new one, and a reader that
asks the lake sees the same run in all tables. A second writer need not wait. With `spark`, data frames that
were made before each kill are read after it, and after the next commit: they have the rows of the run that
was the last when they were made. Prints what was seen.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from support.in_process import KILL, killed_after

from amqpscope.pipeline import lease
from amqpscope.pipeline.engines import duckdb_engine
from amqpscope.pipeline.lake import Lake, table
from amqpscope.pipeline.parts import PartWriter
from amqpscope.pipeline.runs import REPLACE, RunNotes
from amqpscope.pipeline.schemas import TABLES

__all__ = ["kills"]

NAMES = ("files", "links", "findings")
ROWS = 3
"""Tables that each run writes, and the rows in each."""

_TESTS = Path(__file__).resolve().parents[1]

_LONGEST = 0.6
"""Seconds of processor time after which a process is killed at the latest; a few commits."""

_IN_A_LAKE = 25
"""Kills in one lake, of many."""


def _commit(lake: Lake) -> None:
    """A run that writes its own name into all rows."""
    run, staging = lake.begin()
    parts = []
    for number in range(ROWS):
        writer = PartWriter(staging, f"{run}-{number}")
        for name in NAMES:
            schema = TABLES[name].schema
            row = dict.fromkeys(schema.names) | {"capture_set": run}
            if TABLES[name].partitioned:
                row["date"] = datetime.date(2026, 1, 1 + number)
            writer.write(name, pa.RecordBatch.from_pylist([row], schema=schema))
        parts += writer.close()
    lake.commit(run, parts, RunNotes(REPLACE, NAMES))


def _readers(lake: Path) -> dict[str, dict[str, list[str]]]:
    """What each reader sees: the runs of the rows, by table."""
    import deltalake
    import duckdb

    seen: dict[str, dict[str, list[str]]] = {}
    at = Lake(str(lake))
    with duckdb_engine(at, at.all_parts()) as engine:
        seen["sql"] = {
            name: engine.query(f"SELECT capture_set FROM {name}")["capture_set"].to_pylist() for name in NAMES
        }
    tables = {name: deltalake.DeltaTable(str(lake / name)) for name in NAMES}
    seen["duckdb"] = {
        name: [row[0] for row in duckdb.read_parquet(table.file_uris()).project("capture_set").fetchall()]
        for name, table in tables.items()
    }
    seen["pandas"] = {name: list(table.to_pandas()["capture_set"]) for name, table in tables.items()}
    try:
        import polars
    except ImportError:
        return seen
    seen["polars"] = {
        name: polars.scan_delta(str(lake / name)).select("capture_set").collect()["capture_set"].to_list()
        for name in NAMES
    }
    return seen


def kills(lake: Path, number: int, seed: str = "kills", spark: Any = None) -> Counter[str]:
    """Kill so many processes; gives how often what was found. AssertionError if a reader sees what it may
    not. spark: a session, whose data frames are looked at, too.
    """
    random = Random(seed)
    lease._SETTLED = 0.0
    _commit(Lake(str(lake)))
    found: Counter[str] = Counter()
    for _ in range(number):
        before = Lake(str(lake)).written()
        frames = [table(spark, str(lake), name).select("capture_set") for name in NAMES if spark is not None]
        command = [
            sys.executable,
            __file__,
            str(lake),
            str(random.uniform(0.0, _LONGEST)),
        ]
        done = subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": str(_TESTS)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == -KILL, done.stderr
        last = Lake(str(lake)).written()
        found["killed"] += 1
        found["runs committed"] += last.number > before.number
        found["killed with files staged"] += (lake / "_staging").exists()
        for reader, tables in _readers(lake).items():
            for rows in tables.values():
                assert len(rows) == ROWS and len(set(rows)) == 1, (reader, rows)
            runs = {rows[0] for rows in tables.values()}
            if reader == "sql":
                assert runs == {last.name}
            elif reader == "duckdb":
                found["killed between the tables and `runs`"] += runs != {last.name}
        found["older Spark frames read"] += _read_again(frames, before.name)
        _commit(Lake(str(lake)))  # which would be refused if the dead process still held the lease
        found["older Spark frames read"] += _read_again(frames, before.name)
    return found


def _read_again(frames: list[Any], run: str) -> int:
    """Look that each data frame has the rows of a run; gives how many there are."""
    for frame in frames:
        assert [row.capture_set for row in frame.collect()] == [run] * ROWS
    return len(frames)


def _until_killed(lake: str, seconds: str) -> None:
    lease._SETTLED = 0.0
    Lake(lake).runs()  # what is imported only when it is needed
    killed_after(float(seconds))
    while True:
        _commit(Lake(lake))


if __name__ == "__main__":
    session = None
    if sys.argv[2:] == ["spark"]:
        from amqpscope.pipeline.session import start

        session = start("local[1]")
    elif len(sys.argv) == 3:
        _until_killed(*sys.argv[1:])
    total: Counter[str] = Counter()
    left = int((sys.argv[1:] or ["200"])[0])
    while left > 0:
        # A lake anew now and then: the more runs it has, the longer a commit takes, and fewer end in time.
        with tempfile.TemporaryDirectory() as folder:
            total += kills(
                Path(folder) / "lake", min(left, _IN_A_LAKE), f"{os.getpid()} {left}", spark=session
            )
        left -= _IN_A_LAKE
        print(dict(total), flush=True)
