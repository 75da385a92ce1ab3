"""`--tag`: a column in all tables. `--replace date=...`: one day of a lake."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from support.commands import amqpscope
from support.in_process import Here
from support.lakes import CAPTURES

from amqpscope.pipeline import PipelineError, questions
from amqpscope.pipeline.appending import addition_to, day_of
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.compaction import compact_tables
from amqpscope.pipeline.engines import duckdb_engine
from amqpscope.pipeline.lake import Lake, table
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.schemas import TABLES
from amqpscope.pipeline.tags import tags_of

ONE, OTHER, THIRD = sorted(CAPTURES.glob("rhea-*.pcap"))[:3]


def run(
    lake: Path, *sources: Path, append: bool = False, day: str = "", tags: dict[str, str] | None = None
) -> None:
    """A run without Spark."""
    sets = capture_sets(map(str, sources), "file")
    added = None
    if append or day:
        added = addition_to(
            Lake(str(lake)), sets, {"set-by": "file"}, day=day_of(f"date={day}") if day else None
        )
        sets = added.sets
    here: Any = Here(None, make_plan(sets, 1, "chain"), None, map(str, sources), "file")
    here.write(str(lake), added=added, tags=tags or {})


def sites(lake: Lake, name: str) -> set[tuple[str, str | None]]:
    """Capture set and site of the rows of a table, by DuckDB."""
    with duckdb_engine(lake, lake.all_parts()) as engine:
        rows = engine.query(f"SELECT DISTINCT capture_set, site FROM {name}").to_pylist()
    return {(Path(row["capture_set"]).name, row["site"]) for row in rows}


def test_a_first_tag_comes_later(tmp_path: Path) -> None:
    """Older rows have null in its column, for DuckDB, Delta readers and after `compact`."""
    lake = tmp_path / "lake"
    run(lake, ONE)
    assert Lake(str(lake)).tag_names() == ()
    run(lake, OTHER, append=True, tags={"site": "berlin"})
    run(lake, THIRD, append=True, tags={"tap": "7", "site": "oslo"})
    expected = {(ONE.name, None), (OTHER.name, "berlin"), (THIRD.name, "oslo")}
    for compacted in (False, True):
        if compacted:
            compact_tables(Lake(str(lake)))
        at = Lake(str(lake))
        assert at.tag_names() == ("site", "tap")
        for name in TABLES:
            found = sites(at, name)
            assert found == {one for one in expected if one[0] in dict(found)}
            assert len(found) == 3 or name in ("findings", "diagnoses")
            delta = DeltaTable(str(lake / name)).to_pyarrow_table(columns=["capture_set", "tap"]).to_pylist()
            assert {(Path(row["capture_set"]).name, row["tap"]) for row in delta} == {
                (name, "7" if name == THIRD.name else None) for name in dict(found)
            }
    runs = Lake(str(lake)).runs()
    assert [one.options.get("tags") for one in runs[:3]] == [
        None,
        {"site": "berlin"},
        {"tap": "7", "site": "oslo"},
    ]
    assert Lake(str(lake), runs[0].name).tag_names() == ()


def test_rows_that_stay_keep_their_tags(tmp_path: Path) -> None:
    """Also if the other rows of their file go. What is analysed anew has the tags of its run."""
    folder = tmp_path / "in"
    for path in (ONE, OTHER):
        (folder / path.stem).mkdir(parents=True)
        shutil.copy(path, folder / path.stem)
    lake = tmp_path / "lake"

    def add(tags: dict[str, str]) -> None:
        sets = capture_sets([str(folder)])
        added = addition_to(Lake(str(lake)), sets, {})
        here: Any = Here(None, make_plan(added.sets, 1, "chain"))
        here.write(str(lake), added=added, tags=tags)

    add({"site": "berlin"})
    shutil.copy(THIRD, folder / OTHER.stem)
    add({"site": "oslo"})
    found = sites(Lake(str(lake)), "frames")
    assert found == {(ONE.stem, "berlin"), (OTHER.stem, "oslo")}


def test_a_new_lake_forgets_tags(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run(lake, ONE, tags={"site": "berlin"})
    run(lake, ONE, OTHER)
    at = Lake(str(lake))
    assert at.tag_names() == () and "site" not in at.schema("frames").schema.names
    run(lake, ONE, tags={"site": "oslo"})
    assert sites(Lake(str(lake)), "links") == {(ONE.name, "oslo")}


def test_in_spark(spark: Any, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run(lake, ONE)
    run(lake, OTHER, append=True, tags={"site": "berlin"})
    frame = table(spark, str(lake), "connections")
    found = {(Path(row.capture_set).name, row.site) for row in frame.select("capture_set", "site").collect()}
    assert found == {(ONE.name, None), (OTHER.name, "berlin")}
    only = table(spark, Lake(str(lake), tags={"site": "berlin"}), "connections")
    assert {Path(row.capture_set).name for row in only.collect()} == {OTHER.name}
    assert "site" not in table(spark, str(lake), "runs").columns


def test_commands_read_one_tag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`sql`, `summary` and `report` with `--tag` answer as for a lake that has no other rows."""
    lake, alone = tmp_path / "lake", tmp_path / "alone"
    run(lake, ONE)
    run(lake, OTHER, append=True, tags={"site": "berlin"})
    run(alone, OTHER)
    tag = ["--tag", "site=berlin"]
    query = "SELECT count(*) AS n FROM frames"
    both, all_rows = (amqpscope(capsys, "pipeline", "sql", str(lake), query, *more).out for more in (tag, []))
    assert both == amqpscope(capsys, "pipeline", "sql", str(alone), query).out != all_rows
    one, other = (
        amqpscope(capsys, "pipeline", "summary", *given).out for given in ([str(lake), *tag], [str(alone)])
    )
    assert one == other
    made = json.loads(amqpscope(capsys, "pipeline", "report", str(lake), "--format", "json", *tag).out)
    plain = json.loads(amqpscope(capsys, "pipeline", "report", str(alone), "--format", "json").out)
    assert made["tags"] == {"site": "berlin"} and plain["tags"] == {}
    assert made["answers"]["rules"] == plain["answers"]["rules"]
    text = amqpscope(capsys, "pipeline", "report", str(lake), *tag).out
    assert text.startswith(f"report of {lake}, only site=berlin\n")
    assert f'rows: amqpscope pipeline sql {lake} --tag site=berlin "' in text
    unknown = amqpscope(capsys, "pipeline", "sql", str(lake), query, "--tag", "town=x")
    assert (unknown.status, unknown.err) == (
        2,
        f"amqpscope: {lake}: no run has given the tag town; the tags are site\n",
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["site"], "must be NAME=VALUE"),
        (["site="], "must be NAME=VALUE"),
        (["Site=x"], "must be NAME=VALUE"),
        (["packet=7"], "packet is a column of the table"),
        (["site=a\nb"], "must be printable"),
        (["site=a", "site=b"], "is given twice"),
    ],
)
def test_what_is_no_tag(given: list[str], problem: str) -> None:
    with pytest.raises(PipelineError, match=problem):
        tags_of(given)


def test_no_tag_has_the_name_of_what_a_question_computes() -> None:
    """It would stand beside a column of this name, and be taken for it."""
    text = Path(questions.__file__).read_text("utf-8")
    beside = [name for part in text.split("SELECT *")[1:] for name in re.findall(r"AS (\w+)", part[:200])]
    asked = [name for one in re.findall(r"AS (?:product|container|place|hour)", text) for name in [one[3:]]]
    assert {"hour", "product", "place"} <= {*beside, *asked}
    for name in {*asked, "accepted", "alike", "container"}:
        with pytest.raises(PipelineError, match="choose another name"):
            tags_of([f"{name}=x"])
