"""The data source `amqpscope`: what it takes, and what it refuses instead of giving no rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType
from support.lakes import CAPTURES, checked

from amqpscope import pipeline
from amqpscope.errors import AmqpscopeError
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.source import AmqpscopeSource, CaptureSetReader

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
