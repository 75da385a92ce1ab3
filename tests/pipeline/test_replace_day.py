"""`pipeline run --replace date=...`: a day of a lake is forgotten, and the captures are added."""

from __future__ import annotations

import datetime
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.in_process import Here
from support.lakes import CAPTURES, contents, records

from amqpscope.pipeline import PipelineError
from amqpscope.pipeline.appending import Addition, addition_to, day_of
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.schemas import TABLES

RHEA, LARGE = CAPTURES / "rhea-proton-ipv6.pcap", CAPTURES / "rabbitmq-large.pcap"

MIDNIGHT = 1_769_817_600
"""The begin of DAY."""

DAY, NEXT = "2026-01-31", "2026-02-01"
A_DAY = 86_400


def run(
    lake: Path,
    *sources: Path,
    day: str = "",
    set_by: str = "directory",
    append: bool = False,
    tables: tuple[str, ...] = tuple(TABLES),
) -> Any:
    """A run without Spark. Gives what it had to do, if it adds to the lake. tables: of a new lake."""
    sets = capture_sets(map(str, sources), set_by)
    added: Addition | None = None
    if day or append:
        of = day_of(f"date={day}") if day else None
        added = addition_to(Lake(str(lake)), sets, {"set-by": set_by}, day=of)
        sets = added.sets
    if sets:
        here: Any = Here(None, make_plan(sets, 1, "chain"), None, map(str, sources), set_by)
        here.write(str(lake), (added and added.tables) or tables, added=added)
    return added


def moved(capture: Path, begins: int, turn: int = 0, seconds: int = 0) -> tuple[bytes, list[bytes]]:
    """The header and the packets of a capture that begins at this second. From packet `turn` on, all is
    `seconds` later.
    """
    header, packets = records(capture.read_bytes())
    first = struct.unpack_from("<I", packets[0])[0]
    found = []
    for number, packet in enumerate(packets):
        time = (
            struct.unpack_from("<I", packet)[0] - first + begins + (seconds if turn and number >= turn else 0)
        )
        found.append(struct.pack("<I", time) + packet[4:])
    return header, found


def put(path: Path, capture: Path, begins: int, turn: int = 0, seconds: int = 0) -> Path:
    """`moved` as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header, packets = moved(capture, begins, turn, seconds)
    path.write_bytes(header + b"".join(packets))
    return path


def days(lake: Path, table: str = "frames") -> set[tuple[str, str]]:
    """Capture set and day of the rows of a table."""
    return {(Path(row["capture_set"]).name, str(row["date"])) for row in contents(lake)[table]}


def test_as_one_run(tmp_path: Path) -> None:
    """A day whose captures are others now: the lake is as one that never had the earlier ones."""
    before = put(tmp_path / "in" / "30" / "a.pcap", RHEA, MIDNIGHT - A_DAY)
    put(tmp_path / "in" / "31" / "a.pcap", LARGE, MIDNIGHT + 50)
    lake = tmp_path / "lake"
    run(lake, tmp_path / "in")
    old = contents(lake)
    other = put(tmp_path / "in" / "31" / "b.pcap", RHEA, MIDNIGHT + 70)
    (tmp_path / "in" / "31" / "a.pcap").unlink()
    for _ in range(2):
        added = run(lake, other, day=DAY)
        assert [one.name for one in added.sets] == [str(other.parent)]
        run(tmp_path / "whole", before, other)
        assert contents(lake) == contents(tmp_path / "whole") != old
    runs = Lake(str(lake)).runs()
    assert [one.kind for one in runs] == ["replace", "replace-day", "replace-day"]
    assert runs[1].options["replace"] == f"date={DAY}"
    as_of = Lake(str(lake), runs[0].name)
    assert as_of.dataset("frames", as_of.parts("frames")).count_rows() == len(old["frames"])


def test_captures_after_midnight(tmp_path: Path) -> None:
    """A capture set that is all of that day goes with its rows after midnight, and they come back."""
    put(tmp_path / "in" / "30" / "a.pcap", RHEA, MIDNIGHT - A_DAY)
    put(tmp_path / "in" / "31" / "a.pcap", LARGE, MIDNIGHT + 50, 20, A_DAY)
    lake = tmp_path / "lake"
    run(lake, tmp_path / "in")
    assert {("31", DAY), ("31", NEXT)} < days(lake)
    before = contents(lake)
    run(lake, tmp_path / "in" / "31", day=DAY)
    assert contents(lake) == before
    put(tmp_path / "in" / "31" / "a.pcap", RHEA, MIDNIGHT + 60)
    run(lake, tmp_path / "in" / "31", day=DAY)
    assert days(lake) == {("30", "2026-01-30"), ("31", DAY)}
    run(tmp_path / "whole", tmp_path / "in")
    assert contents(lake) == contents(tmp_path / "whole")


def test_by_another_directory(tmp_path: Path) -> None:
    """A set that is all of that day leaves nothing, also no connection that began after midnight."""
    header, packets = moved(LARGE, MIDNIGHT + 50)
    same, others = moved(RHEA, MIDNIGHT + A_DAY)
    assert header[20:24] == same[20:24]  # the link type
    old = tmp_path / "old" / "a.pcap"
    old.parent.mkdir()
    old.write_bytes(header + b"".join(packets + others))
    lake = tmp_path / "lake"
    run(lake, old)
    assert ("old", NEXT) in days(lake, "connections")
    new = put(tmp_path / "new" / "a.pcap", RHEA, MIDNIGHT + 60)
    run(lake, new, day=DAY)
    run(tmp_path / "whole", new)
    assert contents(lake) == contents(tmp_path / "whole")


def test_a_set_of_several_days(tmp_path: Path) -> None:
    """Its other files are read from where they are: a connection may run through all of them."""
    folder = tmp_path / "in"
    folder.mkdir()
    header, packets = moved(LARGE, MIDNIGHT - 10, 30, 3600)
    middle = len(packets) // 2
    for name, some in (("a", packets[:30]), ("b", packets[30:middle]), ("c", packets[middle:])):
        (folder / f"{name}.pcap").write_bytes(header + b"".join(some))
    lake = tmp_path / "lake"
    run(lake, folder)
    before = contents(lake)
    added = run(lake, folder / "b.pcap", folder / "c.pcap", day=DAY)
    assert [len(one.files) for one in added.sets] == [3]
    assert contents(lake) == before


def test_a_capture_of_the_day_before(tmp_path: Path) -> None:
    """Its rows of the day go, and come back if it is given, too. Nothing is there twice."""
    late = put(tmp_path / "in" / "30" / "a.pcap", LARGE, MIDNIGHT - 10, 30, 3600)
    day = put(tmp_path / "in" / "31" / "a.pcap", RHEA, MIDNIGHT + 7200)
    lake = tmp_path / "lake"
    run(lake, late, day)
    whole = contents(lake)
    run(lake, day, day=DAY)
    assert days(lake) == {("30", "2026-01-30"), ("31", DAY)}
    assert len(contents(lake)["files"]) == 2
    run(lake, late, day, day=DAY)
    assert contents(lake) == whole


@pytest.mark.parametrize(
    "tables", [("frames",), ("connections", "findings"), ("deliveries",), ("connections", "links")]
)
def test_whose_rows_of_the_day_go(tmp_path: Path, tables: tuple[str, ...]) -> None:
    """Whatever tables the lake has, a capture of the day before whose rows do not come back is named: its
    set, where a table has nothing but that.
    """
    late = tmp_path / "in" / "30" / "a.pcap"
    header, packets = moved(LARGE, MIDNIGHT - 10, 2, 3600)
    _, others = moved(RHEA, MIDNIGHT + 3600)
    late.parent.mkdir(parents=True)
    late.write_bytes(header + b"".join([*packets, *others]))
    day = put(tmp_path / "in" / "31" / "a.pcap", RHEA, MIDNIGHT + 7200)
    lake = tmp_path / "lake"
    run(lake, late, day, tables=tables)
    assert any(("30", DAY) in days(lake, table) for table in tables)
    only_sets = "capture" not in {name for table in tables for name in contents(lake)[table][0]}
    added = run(lake, day, day=DAY)
    assert added.cut == (str(late.parent if only_sets else late),)
    assert not any(("30", DAY) in days(lake, table) for table in tables)
    assert run(lake, day, day=DAY).cut == ()


def test_a_set_with_files_that_are_gone(tmp_path: Path) -> None:
    """What its file of that day has shown goes, also after midnight. The new one is a set of its own."""
    folder = tmp_path / "in"
    gone = put(folder / "30.pcap", RHEA, MIDNIGHT - A_DAY)
    put(folder / "31.pcap", LARGE, MIDNIGHT + 50, 20, A_DAY)
    lake = tmp_path / "lake"
    run(lake, folder)
    gone.unlink()
    added = run(lake, folder, day=DAY)
    assert added.apart == [str(folder)] and added.cut == ()
    assert days(lake) == {("in", "2026-01-30"), ("in#2", DAY), ("in#2", NEXT)}
    names = sorted((row["capture_set"], row["capture"]) for row in contents(lake)["files"])
    assert names == [(str(folder), str(gone)), (f"{folder}#2", f"{folder}/31.pcap")]
    frames = contents(lake)["frames"]
    assert len({(row["capture"], row["packet"], row["peer"], row["offset"]) for row in frames}) == len(frames)


def test_a_wrong_day_replaces_nothing(tmp_path: Path) -> None:
    """The captures must have rows of that day, or it was mistyped."""
    put(tmp_path / "in" / "30" / "a.pcap", RHEA, MIDNIGHT - A_DAY)
    day = put(tmp_path / "in" / "31" / "a.pcap", RHEA, MIDNIGHT + 50)
    lake = tmp_path / "lake"
    run(lake, tmp_path / "in")
    before = contents(lake)
    with pytest.raises(PipelineError, match="nothing is replaced: the captures have no rows of 2026-01-30"):
        run(lake, day, day="2026-01-30")
    assert contents(lake) == before and len(Lake(str(lake)).runs()) == 1


@pytest.mark.parametrize(
    "given",
    ["", "2026-01-31", "date=2026-02-31", "date=20260131", "date=2026-W05-6", "day=2026-01-31", "date="],
)
def test_what_is_no_day(given: str) -> None:
    with pytest.raises(PipelineError, match="must be date=YYYY-MM-DD"):
        day_of(given)
    assert day_of("date=2026-01-31") == datetime.date(2026, 1, 31)


def test_command(lent: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "in"
    put(folder / "30" / "a.pcap", RHEA, MIDNIGHT - A_DAY)
    put(folder / "31" / "a.pcap", RHEA, MIDNIGHT + 50)
    lake = tmp_path / "lake"
    usual = ["pipeline", "run", "--out", lake, "--quiet", "--no-config", "--fail-on", "never"]
    amqpscope(capsys, *usual, folder)
    before = contents(lake)
    done = amqpscope(capsys, *usual, folder / "31", "--replace", f"date={DAY}", "--tag", "site=oslo")
    assert done.status == 0, done.err
    after = contents(lake)
    tags = {(Path(row["capture_set"]).name, row.pop("site", None)) for row in after["frames"]}
    assert tags == {("30", None), ("31", "oslo")}
    assert after["frames"] == before["frames"]
    shutil.rmtree(folder / "31")
    assert amqpscope(capsys, *usual, folder / "31", "--replace", f"date={DAY}").status == 2
    assert len(Lake(str(lake)).runs()) == 2


def test_an_empty_day_replaces_nothing(
    lent: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable of the shell that is not set must not cost the lake."""
    put(tmp_path / "in" / "a.pcap", RHEA, MIDNIGHT)
    usual = ["pipeline", "run", "--out", tmp_path / "lake", "--quiet", "--no-config", "--fail-on", "never"]
    amqpscope(capsys, *usual, tmp_path / "in")
    assert amqpscope(capsys, *usual, tmp_path / "in", "--replace", "").status == 2
    assert len(Lake(str(tmp_path / "lake")).runs()) == 1


def test_a_capture_that_reaches_into_the_day_is_named(
    lent: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rows of the day go. If it is given, too, they are made again and nothing is said."""
    put(tmp_path / "30" / "night.pcap", RHEA, MIDNIGHT - 5, turn=20, seconds=10)
    put(tmp_path / "31" / "a.pcap", LARGE, MIDNIGHT + 50)
    usual = ["pipeline", "run", "--out", tmp_path / "lake", "--quiet", "--no-config", "--fail-on", "never"]
    amqpscope(capsys, *usual, tmp_path / "30", tmp_path / "31")
    both = [tmp_path / "30", tmp_path / "31", "--replace", f"date={DAY}"]
    assert "loses rows" not in amqpscope(capsys, *usual, *both).err
    done = amqpscope(capsys, *usual, tmp_path / "31", "--replace", f"date={DAY}")
    assert done.status == 0
    assert f"loses rows of {DAY}" in done.err and "night.pcap" in done.err
