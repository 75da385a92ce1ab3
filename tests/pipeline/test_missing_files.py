"""A file that is missing in a series has a row; nothing else is taken for one."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.in_process import Here, watch_of
from support.lakes import CAPTURES, contents, records, written

from amqpscope.pipeline.appending import addition_to
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.inputs import CaptureFile, Trouble
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.series import missing_files

BEGIN = 1_796_000_007_000_000_000
SECOND = 10**9
HOUR = 3600 * SECOND


def files(names: Iterable[str], apart: int = 7 * SECOND) -> list[CaptureFile]:
    """Captures of these names, the first packet of each some time behind that of the one before."""
    return [
        CaptureFile(f"/c/{name}", f"/c/{name}", 100, first_time=BEGIN + at * apart)
        for at, name in enumerate(names)
    ]


def missing(*names: str, apart: int = 7 * SECOND, ordered: bool = True) -> list[str]:
    """The names of the files that are missing between these."""
    found = missing_files(files(names, apart), ordered)
    assert all(file.trouble is not None and file.trouble.reason == "missing" for file in found)
    return [file.capture.removeprefix("/c/") for file in found]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("trace_{n:05}_202611291415{n:02}.pcapng", "trace_00003_*.pcapng"),
        ("trace_202611291415{n:02}_{n:05}.pcapng", "trace_*_00003.pcapng"),
        ("trace_{n:05}_202611291415{n:02}", "trace_00003_*"),
        ("trace.pcap{n}", "trace.pcap3"),
        ("trace.pcap{n:03}", "trace.pcap003"),
        ("trace-{n}.pcap", "trace-3.pcap"),
        ("trace_{n:04}.pcapng", "trace_0003.pcapng"),
        ("{n}.pcap", "3.pcap"),
        ("tap2-run{n}.pcap.gz", "tap2-run3.pcap.gz"),
    ],
)
def test_names(pattern: str, name: str) -> None:
    def named(*numbers: int) -> list[str]:
        return [pattern.format(n=number) for number in numbers]

    # Where nothing but the number tells, as of ports and hosts, there have to be more files.
    some = [*range(6, 10)] if named(1)[0] in ("trace-1.pcap", "1.pcap", "tap2-run1.pcap.gz") else []
    assert missing(*named(1, 2, 4, 5, *some)) == [name]
    assert missing(*named(1, 2, 4, 5, *some[:-1])) == ([] if some else [name])
    assert missing(*named(8, 9, 10, 11, 12)) == missing(*named(1, 2, 3, 4)) == []
    assert missing(*named(4, 5)) == missing(*named(1, 2, 4)) == []  # too few
    assert missing(*named(1, 2, 5, 6, *some)) == missing(*named(1, 3, 4, *range(6, 12))) == []  # too many
    many = [number for number in range(1, 24) if number not in (3, 9)]
    assert len(missing(*named(*many))) == 2
    assert missing(*named(*(number for number in many if number != 12))) == []
    assert missing(*named(2, 1, 4, 5, *some)) == []  # in another order than their times


def test_the_first_file_of_tcpdump_has_no_number() -> None:
    assert missing("a.pcap", "a.pcap1", "a.pcap3", "a.pcap4") == ["a.pcap2"]
    assert missing("a.pcap", "a.pcap2", "a.pcap3", "a.pcap4") == ["a.pcap1"]
    assert missing("a.pcap1", "a.pcap2", "a.pcap3", "a.pcap4") == []
    assert missing("a.pcap", "a.pcap01", "a.pcap02", "a.pcap04", "a.pcap05") == ["a.pcap03"]


def test_a_program_that_was_started_again() -> None:
    first = [f"a_0000{number}_2026112914150{number}.pcap" for number in (1, 2, 3, 4, 5)]
    again = [f"a_0000{number}_2026112914160{number}.pcap" for number in (1, 2, 3, 5)]
    assert missing(*first, *again) == ["a_00004_*.pcap"]
    assert missing(*first, *again[:2]) == []


@pytest.mark.parametrize(
    "names",
    [
        ["2026-01-2{}.pcap", "5", "6", "8", "9"],
        ["cap-202601{}.pcap", "25", "26", "28", "29"],
        ["cap-2601{}.pcap", "25", "26", "28", "29"],
        ["10.0.0.{}.pcap", "1", "2", "4", "5"],
        ["cap-1.{}.pcap", "1", "2", "4", "5"],
        ["cap{}.pcap", "1", "2", "04", "05"],
        ["cap{}.pcap", "10", "20", "30", "40", "50"],
        ["cap{}", ".pcap", "1.pcap", "2.pcap3", "4.pcap"],
        ["{}", "a1.pcap", "b2.pcap", "c4.pcap", "d5.pcap"],
        ["{}", "a1.pcap", "a2.pcapng", "a4.pcap", "a5.pcapng"],
        ["{}", "a/1.pcap", "b/2.pcap", "a/4.pcap", "b/5.pcap"],
    ],
)
def test_what_is_no_series(names: list[str]) -> None:
    """Dates, addresses, versions, numbers that are written otherwise, names that differ."""
    assert missing(*(names[0].format(number) for number in names[1:])) == []


@pytest.mark.parametrize(("unit", "first"), [(60, 0), (3600, 0), (86_400, 0), (3600, 9), (604_800, 20)])
def test_the_numbers_of_a_clock(unit: int, first: int) -> None:
    """A rotation by time makes no file for a time without packets."""
    base = BEGIN // SECOND // unit * unit
    begins = [
        (first + number, (base + number * unit + late) * SECOND)
        for number, late in ((1, 2), (2, 9), (4, 0), (5, 11), (6, 1), (7, 2), (8, 3), (9, 4))
    ]
    found = [CaptureFile(f"/c/t-{n:02}.pcap", f"/c/t-{n:02}.pcap", 100, first_time=at) for n, at in begins]
    assert missing_files(found, True) == []
    moved = [file._replace(first_time=file.first_time // unit) for file in found]
    assert [file.capture for file in missing_files(moved, True)] == [f"/c/t-{first + 3:02}.pcap"]


def test_the_numbers_of_months() -> None:
    months = [(number, datetime.datetime(2026, number, 3, tzinfo=datetime.UTC)) for number in (1, 2, 4, 5)]
    found = [
        CaptureFile(f"/c/t-{n:02}.pcap", "", 100, first_time=int(begin.timestamp()) * SECOND)
        for n, begin in months
    ]
    assert missing_files(found, True) == []
    later = found[3]._replace(first_time=found[3].first_time + 40 * 24 * HOUR)
    assert len(missing_files([*found[:3], later], True)) == 1


def test_files_that_overlap() -> None:
    """Of several hosts, or ports, that are captured at a time; only dumpcap's names say enough then."""
    assert missing("h1.pcap", "h2.pcap", "h4.pcap", "h5.pcap", ordered=False) == []
    stamped = [f"a_0000{number}_2026112914150{number}.pcap.gz" for number in (1, 2, 4, 5)]
    assert missing(*stamped, ordered=False) == ["a_00003_*.pcap.gz"]


def test_what_is_there_is_not_missing() -> None:
    """Also what cannot be read, or lies there twice, as while it is being compressed."""
    found = files(f"a{number:02}.pcap" for number in (1, 2, 3, 4, 5))
    unreadable = found[2]._replace(first_time=0, trouble=Trouble("foreign", "no capture"))
    assert missing_files([*found[:2], unreadable, *found[3:]], True) == []
    twin = found[2]._replace(capture="/c/a03.pcap.gz")
    assert missing_files([*found, twin], True) == []
    assert [file.capture for file in missing_files([*found[:3], twin, found[4]], True)] == ["/c/a04.pcap"]
    texts = [file._replace(first_time=0) for file in found]
    assert missing_files([*texts[:2], *texts[3:]], True) == []


def cut(folder: Path, *numbers: int) -> list[Path]:
    """A capture as a series of seven files, those with these numbers."""
    header, packets = records((CAPTURES / "demo.pcap").read_bytes())
    share = -(-len(packets) // 7)
    paths = []
    folder.mkdir(exist_ok=True)
    for number in numbers:
        path = folder / f"cap_{number:05}_2026112914150{number}.pcap"
        path.write_bytes(header + b"".join(packets[(number - 1) * share : number * share]))
        paths.append(path)
    return paths


def run(lake: Path, folder: Path, append: bool = False) -> None:
    """A run without Spark."""
    sets = capture_sets([str(folder)])
    added = addition_to(Lake(str(lake)), sets, {}) if append else None
    here: Any = Here(None, make_plan(added.sets if added else sets, 1, "chain"), None, [str(folder)])
    here.write(str(lake), added=added)


def troubles(lake: Path) -> list[tuple[Any, ...]]:
    """Files that were not read."""
    names = ("capture", "position", "size", "status", "reason", "packets")
    return [
        (Path(row["capture"]).name, *(row[name] for name in names[1:]))
        for row in contents(lake)["files"]
        if row["status"] != "ok"
    ]


ROW = ("cap_00003_*.pcap", None, 0, "unreadable", "missing", 0)


def test_a_late_file_takes_the_place(tmp_path: Path) -> None:
    """And before it comes, the row stays as it is, or goes with the set when that has a new file."""
    folder, lake = tmp_path / "c", tmp_path / "lake"
    cut(folder, 1, 2, 4, 5, 6)
    run(lake, folder)
    assert troubles(lake) == [ROW]
    assert addition_to(Lake(str(lake)), capture_sets([str(folder)]), {}).sets == []
    cut(folder, 7)
    run(lake, folder, append=True)
    assert troubles(lake) == [ROW]
    cut(folder, 3)
    run(lake, folder, append=True)
    assert troubles(lake) == []
    run(tmp_path / "once", folder)
    assert contents(tmp_path / "once") == contents(lake)


@pytest.mark.parametrize("at_once", [False, True])
def test_sets_that_are_followed(tmp_path: Path, at_once: bool) -> None:
    """Each batch has the row that one run over all files would give; a ring that deletes the first files
    changes nothing of that.
    """
    folder, lake = tmp_path / "c", tmp_path / "lake"
    watch = watch_of(folder_of(folder), lake, follow=True, at_once=at_once)
    try:
        rows = []
        for numbers in ((1, 2), (4,), (5,), (6,), (7,)):
            cut(folder, *numbers)
            watch.turn()
            run(tmp_path / "once", folder)
            assert contents(lake) == contents(tmp_path / "once")
            rows.append(len(troubles(lake)))
        assert rows == [0, 0, 1, 1, 1]
        for number in (1, 2):
            next(folder.glob(f"*_0000{number}_*")).unlink()
        watch.turn()
        assert troubles(lake) == [ROW]
        if at_once:
            cut(folder, 1, 2, 3)
            watch.turn()
            assert troubles(lake) == []
    finally:
        watch.close()


def folder_of(path: Path) -> Path:
    path.mkdir()
    return path


def test_both_plans(spark: Any, tmp_path: Path) -> None:
    cut(tmp_path / "c", 1, 2, 4, 5)
    chain, flow = (written(spark, tmp_path / plan, [tmp_path / "c"], plan=plan) for plan in ("chain", "flow"))
    assert chain == flow
    assert troubles(tmp_path / "flow") == [ROW]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the file in one sentence, and is no failure for it."""
    folder, lake = tmp_path / "c", tmp_path / "lake"
    cut(folder, 1, 2, 4, 5)
    (folder / "notes.txt").write_text("no capture")
    usual = ("--out", lake, "--engine", "pool", "--no-config", "--fail-on", "never", "--quiet")
    result = amqpscope(capsys, "pipeline", "run", folder, *usual)
    name = folder / ROW[0]
    assert result.err.splitlines() == [
        "amqpscope: 1 file in directories is no capture",
        f"amqpscope: 1 file is missing between others of its series: {name}",
    ]
    assert result.status == 0
    assert result.lines[0] == f"{lake}: 5 files: 4 read, 0 in part, 0 unreadable, 1 no capture"
    result = amqpscope(capsys, "pipeline", "run", folder, *usual, "--append")
    assert (result.status, "missing" in result.err) == (0, False)
    cut(folder, 7)
    result = amqpscope(capsys, "pipeline", "run", folder, *usual, "--append")
    assert (result.status, "missing" in result.err) == (0, False)  # one more is too much for a series
    cut(folder, 6)
    result = amqpscope(capsys, "pipeline", "run", folder, *usual, "--append")
    assert (result.status, result.err.count(f": {name}\n")) == (0, 1)


def test_a_link_to_nothing_among_captures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was not there before, so it has not vanished meanwhile; also where the set is followed."""
    folder, lake = tmp_path / "c", tmp_path / "lake"
    cut(folder, 1, 2)
    (folder / "link.pcap").symlink_to(tmp_path / "nothing")
    usual = ("--out", lake, "--engine", "pool", "--append", "--no-config", "--fail-on", "never", "--quiet")
    for number in (3, 4, 5):
        result = amqpscope(capsys, "pipeline", "run", folder, *usual)
        assert (result.status, result.err) == (0, "amqpscope: 1 file in directories is no capture\n")
        assert [row[0] for row in troubles(lake)] == ["link.pcap"]
        cut(folder, number)
