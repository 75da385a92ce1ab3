"""Views: `open_connections` and `open_deliveries`, the same rows for every reader by SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.in_process import Here
from support.lakes import CAPTURES, contents, in_spark, ordered, records

from amqpscope.pipeline import PipelineError
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.engines import SparkEngine, duckdb_engine
from amqpscope.pipeline.lake import Lake, table
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.schemas import TABLES
from amqpscope.pipeline.tags import tags_of
from amqpscope.pipeline.views import VIEWS

ENDED = (
    "demo.pcap",
    "amqplib-crossing-close.pcap",
    "pika-two-threads.pcap",
    "amqplib-no-ack.pcap",
    "pika-prefetch.pcap",
    "proton-settle-modes.pcap",
    "rules/amqp10/D-ABORT-ONLYOPEN/clean.pcap",
)
"""By FIN, by RST, with one direction open; with deliveries acked by nobody, sent settled, aborted."""


UNDER_WAY = "SELECT * FROM open_deliveries SEMI JOIN open_connections USING (capture_set, connection)"


def run(lake: Path, *sources: Path, tables: tuple[str, ...] = tuple(TABLES), site: str = "") -> None:
    """A run without Spark."""
    here: Any = Here(
        None, make_plan(capture_sets(map(str, sources), "file"), 1, "chain"), None, ["x"], "file"
    )
    here.write(str(lake), tables, tags={"site": site} if site else {})


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """Captures whose connections have ended, and one that ends earlier."""
    header, packets = records((CAPTURES / "demo.pcap").read_bytes())
    short = tmp_path / "short.pcap"
    short.write_bytes(header + b"".join(packets[:20]))
    return [*(CAPTURES / name for name in ENDED), short]


def expected(lake: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of the views, from those of the tables."""
    rows = contents(lake)
    return {
        "open_connections": [
            row for row in rows["connections"] if row["client_tcp_ended"] is row["server_tcp_ended"] is None
        ],
        "open_deliveries": [
            row for row in rows["deliveries"] if row["settled_by"] is None and row["aborted"] is not True
        ],
    }


def test_what_is_open(tmp_path: Path, sources: list[Path]) -> None:
    """A reset ends both directions, and half an end is one. Nothing that was sent settled, or needs nobody to
    settle it, is open, nor what was aborted.
    """
    lake = tmp_path / "lake"
    run(lake, *sources)
    with duckdb_engine(Lake(str(lake)), Lake(str(lake)).all_parts()) as engine:
        found = {name: engine.query(f"SELECT * FROM {name}").to_pylist() for name in VIEWS}
        described = engine.query("DESCRIBE open_connections")["column_name"].to_pylist()
        under_way = engine.query(UNDER_WAY).to_pylist()
    assert {name: ordered(rows) for name, rows in found.items()} == expected(lake)
    assert described == TABLES["connections"].schema.names
    assert [Path(row["capture_set"]).name for row in found["open_connections"]] == ["short.pcap"]
    of = sorted(Path(row["capture"]).name for row in found["open_deliveries"])
    assert of == ["pika-prefetch.pcap"] * 4 + ["short.pcap"]
    assert [row["capture_set"] for row in under_way] == [str(sources[-1])]
    rows = contents(lake)["deliveries"]
    assert any(row["aborted"] and row["settled_by"] is None for row in rows)
    assert any(row["settled_by"] == row["sender"] and row["protocol"] == "amqp10" for row in rows)
    assert any(row["settled_by"] == row["sender"] and row["protocol"] == "amqp091" for row in rows)


def test_spark_gives_the_same(spark: Any, tmp_path: Path, sources: list[Path]) -> None:
    """By SQL and as data frames, as of an earlier run, and with the sentences about the columns."""
    lake = tmp_path / "lake"
    run(lake, *sources)
    first, rows = Lake(str(lake)).written().name, expected(lake)
    run(lake, sources[0])
    assert expected(lake) == {name: [] for name in VIEWS}
    engine = SparkEngine(spark, Lake(str(lake), first))
    assert engine.query(UNDER_WAY).num_rows == 1
    for name, view in VIEWS.items():
        assert in_spark(table(spark, str(lake), name, first)) == rows[name] != []
        assert ordered(engine.query(f"SELECT * FROM {name}").to_pylist()) == rows[name]
        assert table(spark, str(lake), name).count() == 0
        described = engine.query(f"DESCRIBE {name}")
        assert described.num_rows and described == engine.query(f"DESCRIBE {view.table}")


def test_commands(tmp_path: Path, sources: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """`sql`, `summary`, `tables`; as of a run, and with a tag only."""
    lake = tmp_path / "lake"
    run(lake, *sources, site="here")
    first = Lake(str(lake)).written().name
    run(lake, sources[0])

    def numbers(*options: str) -> list[int]:
        query = (
            "SELECT (SELECT count(*) FROM open_connections) AS c, (SELECT count(*) FROM open_deliveries) AS d"
        )
        result = amqpscope(capsys, "pipeline", "sql", lake, query, "--format", "json", *options)
        assert (result.status, result.err) == (0, "")
        return list(json.loads(result.out).values())

    assert (numbers(), numbers("--as-of", first[:6])) == ([0, 0], [1, 5])
    assert numbers("--as-of", first, "--tag", "site=here") == [1, 5]
    assert Lake(str(lake), first, tags_of(["site=there"])).only("connections") == {"site": "there"}
    assert numbers("--as-of", first, "--tag", "site=there") == [0, 0]
    result = amqpscope(capsys, "pipeline", "summary", lake, "--as-of", first, "--format", "json")
    assert sum(row["open"] for row in json.loads(result.out)["connections"]) == 1
    listed = amqpscope(capsys, "pipeline", "tables").lines
    assert all(any(line.startswith(f"{name}: ") for line in listed) for name in VIEWS)


def test_a_lake_without_the_table(
    lent: None, spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same error as for the table itself; the other view is there."""
    lake = tmp_path / "lake"
    run(lake, CAPTURES / "demo.pcap", tables=("files", "connections"))
    for options, reason in (([], "DuckDB SQL: Catalog Error: "), (["--master", "local[2]"], "Spark SQL: ")):
        for name in ("deliveries", "open_deliveries"):
            if options:
                spark.catalog.dropTempView(name)
            result = amqpscope(capsys, "pipeline", "sql", lake, f"SELECT * FROM {name}", *options)
            assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
            assert result.err.startswith(f"amqpscope: {reason}") and name in result.err
        query = "SELECT * FROM open_connections"
        assert amqpscope(capsys, "pipeline", "sql", lake, query, *options).status == 0
    for name in ("deliveries", "open_deliveries"):
        with pytest.raises(PipelineError, match="did not write the table deliveries"):
            table(spark, str(lake), name)
    with pytest.raises(PipelineError, match=r"open_doors: there is no such table; .*, open_deliveries$"):
        table(spark, str(lake), "open_doors")
