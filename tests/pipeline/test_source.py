"""The data source `amqpscope`: what it takes, and what it refuses instead of giving no rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, GreaterThan, In
from pyspark.sql.types import StructType
from support.lakes import CAPTURES, checked

from amqpscope import pipeline
from amqpscope.errors import AmqpscopeError
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.source import AmqpscopeSource, CaptureSetReader, FilteringReader, FilteringSource

ONE, OTHER = CAPTURES / "rhea-transfer-before-attach.pcap", CAPTURES / "demo.pcap"


def test_several_paths_and_some_columns(spark: Any) -> None:
    pipeline.register(spark)
    source = spark.read.format("amqpscope").option("table", "findings").option("setBy", "file")
    rows = source.schema("rule string, packet bigint").load([str(ONE), str(OTHER)])
    assert rows.columns == ["rule", "packet"]
    found = sorted((row.rule, row.packet) for row in rows.collect())
    assert found == sorted((one["rule"], one["packet"]) for path in (ONE, OTHER) for one in checked(path))


def reader(schema: str = "", **options: str) -> CaptureSetReader:
    """What Spark asks for when it is given these options, whose names it has in small letters."""
    source = AmqpscopeSource({name.lower(): value for name, value in options.items()})
    return source.reader(StructType().add(*schema.split()) if schema else source.schema())


@pytest.mark.parametrize(
    ("options", "schema", "reason"),
    [
        ({"path": "nosuch/"}, "", "/nosuch: No such file"),
        ({"paths": f'["{OTHER}", "nosuch"]'}, "", "/nosuch: No such file"),
        ({"path": "EMPTY"}, "", "no capture in the directory"),
        ({"path": ""}, "", r"load\(PATH\): PATH must be a file"),
        (
            {"path": str(OTHER), "tabel": "frames"},
            "",
            "option tabel: is unknown; the options are table, setBy,",
        ),
        ({"path": str(OTHER), "plan": "flow"}, "", "option plan: must be auto or chain, not flow"),
        ({"path": str(OTHER), "json": "perhaps"}, "", "option json: must be true or false"),
        ({"path": str(OTHER), "tlsKeylog": "[1]"}, "", "option tlsKeylog: must be a path, or a list"),
        ({"path": str(OTHER), "table": "nosuch"}, "", "nosuch: there is no such table"),
        ({"path": str(OTHER), "profile": "nosuch"}, "", "nosuch"),
        ({"path": str(OTHER), "spec": "nosuch"}, "", "nosuch"),
        ({"path": str(OTHER)}, "nosuch string", "the table frames has no such column"),
        ({"path": str(OTHER)}, "packet string", "the table frames has it of type bigint"),
    ],
)
def test_refusals(tmp_path: Path, options: dict[str, str], schema: str, reason: str) -> None:
    if options.get("path") == "EMPTY":
        options = options | {"path": str(tmp_path)}
    with pytest.raises(AmqpscopeError, match=reason):
        reader(schema, **options).partitions()


def filtered(table: str, *filters: Filter) -> tuple[list[Filter], list[dict[str, Any]]]:
    """The filters that a reader leaves to Spark, and the rows that it gives."""
    source = FilteringSource({"table": table, "setby": "file", "paths": f'["{ONE}", "{OTHER}"]'})
    one = source.reader(source.schema())
    assert isinstance(one, FilteringReader)
    left = list(one.pushFilters(list(filters)))
    one = pickle.loads(pickle.dumps(one))
    rows = [row for part in one.partitions() for batch in one.read(part) for row in batch.to_pylist()]
    return left, rows


def test_filters_that_are_taken() -> None:
    """The rows are those that a filter on all rows gives."""
    (_, findings), (_, frames) = filtered("findings"), filtered("frames")
    rule = findings[0]["rule"]
    assert any(row["rule"] != rule for row in findings)
    of_rule = [row for row in findings if row["rule"] == rule]
    assert filtered("findings", EqualTo(("rule",), rule)) == ([], of_rule)
    chosen = In(("rule",), (rule, "x")), EqualTo(("protocol",), "amqp10"), In(("severity",), ("error",))
    assert filtered("findings", *chosen) == ([], [row for row in of_rule if row["severity"] == "error"])
    assert filtered("findings", EqualTo(("rule",), rule), EqualTo(("rule",), "x")) == ([], [])
    expected = [row for row in frames if row["kind"] == "sasl"]
    assert expected and filtered("frames", EqualTo(("kind",), "sasl")) == ([], expected)
    assert len(expected) < len(frames)
    assert filtered("frames", EqualTo(("protocol",), "amqp091")) == ([], [])


def test_filters_that_are_left_to_spark() -> None:
    """Of other columns, of another kind, and of what the table does not have."""
    filters = [
        *(EqualTo(("packet",), 1), GreaterThan(("rule",), "a"), EqualTo(("rule", "x"), "a")),
        *(EqualTo(("kind",), "amqp"), In(("rule",), ("a", None))),
    ]
    left, rows = filtered("findings", *filters)
    assert left == filters and rows == filtered("findings")[1]


def test_who_is_given_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a Spark that gives each query its own reader, if sources may take filters."""
    registered = []

    class Session:
        def __init__(self, allowed: str | None) -> None:
            self.conf = self.dataSource = self
            self._allowed = allowed

        def get(self, name: str, usual: None) -> str | None:
            return self._allowed

        def register(self, source: type) -> None:
            registered.append(source)

    for allowed in ("true", "false", None):
        pipeline.register(Session(allowed))  # type: ignore[arg-type]
    monkeypatch.setattr(DataSourceReader, "pushLimit", None, raising=False)
    for allowed in ("true", "false", None):
        pipeline.register(Session(allowed))  # type: ignore[arg-type]
    assert registered == [AmqpscopeSource] * 3 + [FilteringSource] + [AmqpscopeSource] * 2


def test_filters_in_spark(spark: Any) -> None:
    """Spark's own filters, one query for each data frame: what the reader takes Spark does not do again."""

    def findings() -> Any:
        source = spark.read.format("amqpscope").option("table", "findings").option("setBy", "file")
        return source.load([str(ONE), str(OTHER)]).filter(f"severity = 'error' AND rule IN ('x', '{rule}')")

    rule = checked(ONE)[0]["rule"]
    both = [one for path in (ONE, OTHER) for one in checked(path)]
    expected = sorted(one["packet"] for one in both if one["rule"] == rule and one["severity"] == "error")
    assert expected

    setting = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(setting, "true")
    try:
        for source in (AmqpscopeSource, FilteringSource):
            spark.dataSource.register(source)
            plan = findings()._jdf.queryExecution().executedPlan().toString()
            assert (" = error" in plan) == (" IN (" in plan) == (source is AmqpscopeSource), plan
            assert sorted(row.packet for row in findings().collect()) == expected
    finally:
        spark.conf.unset(setting)
        pipeline.register(spark)


def test_terms() -> None:
    """Options of the command that findings depend on."""
    options = {"spec": "csd01", "profile": "none", "dialect": "final", "json": "true"}
    terms = [reader(path="x")._terms, reader(path="x", **options)._terms]
    found = [(one.policy.profile, one.policy.spec, one.dialect, one.with_json) for one in terms]
    assert found == [("auto", "final", "", False), ("none", "csd01", "final", True)]


def test_names_do_not_depend_on_where_the_command_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "one.pcap").write_bytes(OTHER.read_bytes())
    monkeypatch.chdir(tmp_path / "a b")
    sources = ("one.pcap", "./one.pcap", "../a b", "*.pcap", ".", f"{tmp_path}/a b")
    urls = (
        f"file:{tmp_path}/a%20b/one.pcap",
        f"file://{tmp_path}/a%20b",
        f"file://localhost{tmp_path}/a%20b/",
    )
    found = {
        (one.name, file.capture, file.path, file.trouble)
        for source in (*sources, *urls)
        for one in capture_sets([source])
        for file in one.files
    }
    path = f"{tmp_path}/a b/one.pcap"
    assert found == {(f"{tmp_path}/a b", path, path, None)}
