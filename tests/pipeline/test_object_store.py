"""Captures in an object store and a lake in one: the rows that files give, and what is not there is said."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.lakes import CAPTURES, Rows, contents, in_spark, rotated, written

from amqpscope.pipeline import PipelineError, analyse, lake
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.inputs import shown
from amqpscope.pipeline.schemas import TABLES

if importlib.util.find_spec("moto") is None and os.environ.get("AMQPSCOPE_SPARK") != "require":
    pytest.skip("needs moto", allow_module_level=True)

from support.object_store import BUCKET, SECRET, ObjectStore, options

NAMES = ("rabbitmq-large", "rhea-proton-ipv6", "rhea-transfer-before-attach")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with ObjectStore() as started:
        yield started


@pytest.fixture(scope="module")
def captures(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of rotated sets, which the store has below `captures`, too; one name is a hard one."""
    folder = tmp_path_factory.mktemp("captures")
    for number, name in enumerate(NAMES):
        files = rotated(CAPTURES / f"{name}.pcap", folder / (name if number else "50% of [it] é"), 2)
        for path in files:
            store.put(f"captures/{path.relative_to(folder)}", path.read_bytes())
    return folder


def comparable(rows: Rows, root: str) -> Rows:
    """Rows as if captures were named from where they are."""
    return json.loads(json.dumps(rows, default=str).replace(json.dumps(f"{root}/")[1:-1], ""))


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_same_rows(
    lent: None,
    spark: Any,
    store: ObjectStore,
    captures: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    plan: str,
) -> None:
    local = comparable(written(spark, tmp_path / "local", [captures], plan=plan), str(captures))
    url = store.url(f"{BUCKET}/lake-{plan}")
    for _ in range(2):  # the second replaces the first
        source = store.url(f"{BUCKET}/captures")
        result = amqpscope(capsys, "pipeline", "run", source, "--out", url, "--plan", plan, "--quiet")
        assert (result.status, result.err) == (1, "")
        assert SECRET not in result.out
    rows = contents(store.fetch(f"lake-{plan}", tmp_path / "fetched"))
    assert SECRET not in repr(rows)
    assert comparable(rows, f"s3://{BUCKET}/captures") == local
    at = lake.Lake(url)
    assert SECRET not in json.dumps(at.run_rows(), default=str)
    first, last = at.runs()
    objects = {name for name in store.objects(f"lake-{plan}") if "/_delta_log/" not in name}
    named = [lake.Lake(url, run.name).all_parts() for run in (first, last)]
    assert objects == {part.path for parts in named for files in parts.values() for part in files}
    for name in TABLES:
        assert in_spark(lake.table(spark, url, name)) == rows[name]


def test_questions(
    lent: None,
    spark: Any,
    store: ObjectStore,
    captures: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A lake in the store answers as its copy does."""
    url = store.url(f"{BUCKET}/asked")
    analyse(spark, [store.url(f"{BUCKET}/captures")]).write(url)
    copy = store.fetch("asked", tmp_path / "copy")
    query = "SELECT date, protocol, rule, count(*) AS n FROM findings GROUP BY ALL ORDER BY ALL"
    there, here = (
        amqpscope(capsys, "pipeline", "sql", place, query, "--format", "json") for place in (url, copy)
    )
    assert (there.status, there.err, there.out) == (0, "", here.out)
    assert len(there.lines) > 1
    asked = amqpscope(capsys, "pipeline", "summary", url, "--format", "json")
    assert (asked.status, asked.err) == (0, "")
    answers = json.loads(asked.out)
    assert all(answers[name] for name in ("files", "connections", "rules", "latency"))


def test_what_is_found(store: ObjectStore, captures: Path) -> None:
    """By directory, pattern and name, as local files are; credentials and options are in no name."""

    def found(path: str) -> list[str]:
        sets = capture_sets([store.url(f"{BUCKET}/{path}")])
        assert all(one.name.startswith(f"s3://{BUCKET}") for one in sets)
        files = [file for one in sets for file in one.files]
        assert all(file.trouble is None for file in files)
        return sorted(file.capture.removeprefix(f"s3://{BUCKET}/captures/") for file in files)

    everything = sorted(str(path.relative_to(captures)) for path in captures.rglob("*.pcap"))
    assert found("captures") == found("captures/") == everything
    assert found("captures/*/z.pcap") == [name for name in everything if name.endswith("z.pcap")]
    assert found("captures/rhea-*") == [name for name in everything if name.startswith("rhea")]
    assert found("captures/50%25%20of%20%5Bit%5D%20%C3%A9/y.pcap") == ["50% of [it] é/y.pcap"]


def test_what_is_not_there(
    lent: None, store: ObjectStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has its row and its line, and the rest is read."""
    good = store.url(f"{BUCKET}/captures/{NAMES[1]}/z.pcap")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    sources = {
        "s3://nobody/captures": "missing",
        f"s3://{BUCKET}/none.pcap": "missing",
        f"s3://{BUCKET}/none/*.pcap": "missing",
    }
    refused = f"s3://user:{SECRET}@{BUCKET}/refused.pcap{options('127.0.0.1', port)}"
    urls = [store.url(name.removeprefix("s3://")) for name in sources]
    arguments = (
        "run",
        good,
        *urls,
        refused,
        "--out",
        tmp_path / "lake",
        "--allow-missing",
        "--allow-empty",
        "--fail-on",
        "never",
        "--quiet",
    )
    result = amqpscope(capsys, "pipeline", *arguments)
    assert result.status == 2
    assert SECRET not in result.out + result.err
    reported = [line.removeprefix("amqpscope: ").split(": ")[:2] for line in result.err.splitlines()]
    expected = [[name, reason] for name, reason in sources.items()]
    assert reported == sorted([*expected, [f"s3://{BUCKET}/refused.pcap", "failed"]])
    rows = contents(tmp_path / "lake")
    assert [row["status"] for row in rows["files"]].count("ok") == 1
    assert rows["frames"]

    # Where a connection is refused, it is tried again for many seconds.
    into = ("run", good, "--quiet", "--out")
    for command, place in (
        (into, store.url("nobody/lake")),
        (into, refused),
        (("summary",), store.url("nobody/lake")),
    ):
        result = amqpscope(capsys, "pipeline", *command, place)
        assert result.status == 2 and len(result.err.splitlines()) == 1
        assert shown(place) in result.err and SECRET not in result.err


def test_a_url_that_is_none() -> None:
    for url in ("ftp://user:sesame@host/x", "s3://user:sesame@bucket/a b?wrong=1"):
        with pytest.raises(PipelineError) as raised:
            capture_sets([url])
        assert "sesame" not in str(raised.value) and "\n" not in str(raised.value)
