"""`pipeline run --append`: the tables of several runs are those of one run over all files."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from support.commands import amqpscope
from support.lakes import CAPTURES, contents, records

from amqpscope.pipeline import PipelineError
from amqpscope.pipeline import lease as lease_of_lakes
from amqpscope.pipeline.analysis import Analysis
from amqpscope.pipeline.appending import Addition, addition_to
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.schemas import TABLES
from amqpscope.pipeline.tasks import Chain, TaskOutput

ROTATED = {"ten": CAPTURES / "rhea-proton-ipv6.pcap", "0-9-1": CAPTURES / "rabbitmq-large.pcap"}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two runs of these tests begin at the same moment."""
    monkeypatch.setattr(lease_of_lakes, "_SETTLED", 0.0)


class Here(Analysis):
    """The tasks of the chain plan, in this process."""

    def _run(self, outlet: TaskOutput) -> Any:
        numbers = pa.RecordBatch.from_arrays([pa.array(range(len(self.plan.tasks)), pa.int64())], ["id"])
        made = Chain(self.plan, outlet)(iter([numbers]))
        rows = [SimpleNamespace(**row) for batch in made for row in batch.to_pylist()]
        return SimpleNamespace(collect=lambda: rows)


def run(lake: Path, *sources: object, append: bool = True, set_by: str = "directory") -> Addition | None:
    """A run without Spark. Gives what it had to do."""
    sets = capture_sets(map(str, sources), set_by)
    added = addition_to(Lake(str(lake)), sets, {"set-by": set_by}) if append else None
    if added is not None:
        sets = added.sets
    if sets:
        here: Any = Here(None, make_plan(sets, 1, "chain"), None, map(str, sources), set_by)
        here.write(str(lake), added=added)
    return added


def cut(path: Path, pieces: int) -> list[bytes]:
    """A capture as files of a rotated set."""
    header, packets = records(path.read_bytes())
    each = -(-len(packets) // pieces)
    return [header + b"".join(packets[at : at + each]) for at in range(0, len(packets), each)]


@pytest.mark.parametrize("steps", [3, 10])
def test_as_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Files come in so many steps, are compressed later, and are given by a relative path at times."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    pieces = {name: cut(path, 10) for name, path in ROTATED.items()}
    arrivals = [(number, name) for number in range(10) for name in ROTATED]
    for step in range(steps):
        for number, name in arrivals[step * 20 // steps : (step + 1) * 20 // steps]:
            (folder / name).mkdir(parents=True, exist_ok=True)
            # The last one written has a name that is used again, as by `tcpdump -W`.
            newest = folder / name / "newest.pcap"
            if newest.exists():
                newest.rename(folder / name / f"{number - 1}.pcap")
            newest.write_bytes(pieces[name][number])
        if step == steps // 2:
            for path in sorted(folder.rglob("0.pcap")):
                (path.parent / "0.pcap.gz").write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()
        run(tmp_path / "lake", "in" if step % 2 else folder)
    nothing = run(tmp_path / "lake", folder)
    assert nothing is not None and (nothing.sets, len(nothing.known)) == ([], 20)
    run(tmp_path / "whole", folder, append=False)
    assert contents(tmp_path / "lake") == contents(tmp_path / "whole")
    assert len(Lake(str(tmp_path / "lake")).runs()) == steps


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    """The rows of other sets stay, though they are in the same files."""
    folder = tmp_path / "in"
    for name, path in ROTATED.items():
        (folder / name).mkdir(parents=True)
        shutil.copy(path, folder / name)
    lake = tmp_path / "lake"
    run(lake, folder)
    first, *rest = sorted(CAPTURES.glob("rhea-*.pcap"))[:3]
    shutil.copy(first, folder / "ten" / "more.pcap")
    added = run(lake, folder)
    assert added is not None
    assert [one.name for one in added.sets] == [f"{folder}/ten"] and added.replaced == {f"{folder}/ten"}
    for number, path in enumerate(rest, 1):  # the others of their set are read from where they were
        added = run(lake, path)
        assert added is not None and [len(one.files) for one in added.sets] == [number]
    run(tmp_path / "whole", folder, append=False)
    whole, rows = contents(tmp_path / "whole"), contents(lake)
    for name in TABLES:
        assert [row for row in rows[name] if row["capture_set"].startswith(str(folder))] == whole[name]
    assert {row["capture_set"] for row in rows["files"]} == {
        f"{folder}/ten",
        f"{folder}/0-9-1",
        str(CAPTURES),
    }


def test_files_that_are_gone(tmp_path: Path) -> None:
    """Their rows stay. What is new of their set is a set of its own, and grows as one."""
    folder = tmp_path / "in"
    folder.mkdir()
    pieces = cut(ROTATED["0-9-1"], 5)
    lake = tmp_path / "lake"
    for number in range(4):
        (folder / f"{number % 2}.pcap").write_bytes(pieces[number])
        added = run(lake, folder)
    assert added is not None and added.apart == [str(folder)]
    names = [(row["capture_set"], row["capture"]) for row in contents(lake)["files"]]
    assert sorted(names) == [
        (str(folder), f"{folder}/0.pcap"),
        (str(folder), f"{folder}/1.pcap"),
        (f"{folder}#2", f"{folder}/0.pcap"),
        (f"{folder}#2", f"{folder}/1.pcap"),
    ]
    (folder / "0.pcap").unlink()
    (folder / "1.pcap").write_bytes(pieces[3] + records(pieces[4])[1][0])
    grown = run(lake, folder)
    assert grown is not None and [file.path for file in grown.grown] == [f"{folder}/1.pcap"]
    assert grown.sets == [] and len(contents(lake)["files"]) == 4


def test_a_file_that_grows(tmp_path: Path) -> None:
    """Whether it had fewer octets than are compared, or more. A file without packets matches no other."""
    folder = tmp_path / "in"
    folder.mkdir()
    whole = ROTATED["0-9-1"].read_bytes()
    header, packets = records(whole)
    lake = tmp_path / "lake"
    small = len(header) + sum(map(len, packets[:5]))
    (folder / "empty.pcap").write_bytes(header)
    for octets in (small, small + sum(map(len, packets[5:9])), len(whole)):
        (folder / "a.pcap").write_bytes(whole[:octets])
        added = run(lake, folder)
        assert added is not None and len(added.sets) == 1
    (folder / "a.pcap").rename(folder / "b.pcap")
    added = run(lake, folder)
    assert added is not None and added.sets == []
    (folder / "b.pcap").rename(folder / "a.pcap")
    run(tmp_path / "whole", folder, append=False)
    assert contents(lake) == contents(tmp_path / "whole")


def test_copies(tmp_path: Path) -> None:
    """A set with the same capture twice, and another one with it, too: each set is analysed as a whole."""
    header, packets = records(ROTATED["ten"].read_bytes())
    lake = tmp_path / "lake"
    for name in ("one", "two"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "a.pcap").write_bytes(header + b"".join(packets[:20]))
    (tmp_path / "in" / "two" / "a.pcap.gz").write_bytes(gzip.compress(header + b"".join(packets[:20])))
    run(lake, tmp_path / "in", append=False)
    (tmp_path / "in" / "two" / "b.pcap").write_bytes(header + b"".join(packets[20:]))
    added = run(lake, tmp_path / "in")
    assert added is not None and added.replaced == {f"{tmp_path}/in/two"} and len(added.known) == 1
    run(tmp_path / "whole", tmp_path / "in", append=False)
    assert contents(lake) == contents(tmp_path / "whole")


def test_other_options(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run(lake, ROTATED["ten"])
    with pytest.raises(PipelineError, match="--set-by was directory, and is file"):
        run(lake, ROTATED["ten"], set_by="file")


def test_another_run_meanwhile(tmp_path: Path) -> None:
    """What was planned for other rows is not added."""
    lake = tmp_path / "lake"
    sets = capture_sets([str(ROTATED["ten"])])
    added = addition_to(Lake(str(lake)), sets, {})
    run(lake, ROTATED["0-9-1"], append=False)
    here: Any = Here(None, make_plan(added.sets, 1, "chain"))
    with pytest.raises(PipelineError, match="another run has written to this lake"):
        here.write(str(lake), added=added)
    assert [row["capture"] for row in contents(lake)["files"]] == [str(ROTATED["0-9-1"])]
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "manifest.json").write_text('{"schema": "amqpscope/lake/3", "tables_version": 2}')
    with pytest.raises(PipelineError, match="`amqpscope pipeline compact` converts it"):
        addition_to(Lake(str(tmp_path / "old")), sets, {})


def test_command(lent: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = tmp_path / "lake"
    shutil.copy(ROTATED["ten"], tmp_path / "a.pcap")
    command = ("pipeline", "run", tmp_path, "--out", lake, "--quiet", "--append", "--fail-on", "never")
    result = amqpscope(capsys, *command, "--tables", "connections,findings")
    assert (result.status, result.err) == (0, "")
    result = amqpscope(capsys, *command)
    assert (result.status, result.out) == (0, f"{lake}: nothing is new\n")
    assert result.err == "amqpscope: 1 file in the lake already\n"
    (tmp_path / "other").mkdir()
    shutil.copy(ROTATED["0-9-1"], tmp_path / "other")
    result = amqpscope(capsys, *command)
    assert (result.status, result.err) == (0, "amqpscope: 1 file in the lake already\n")
    rows = contents(lake)
    assert len(rows["files"]) == 2 and len(rows["connections"]) > 1 and rows["frames"] == []
    assert amqpscope(capsys, *command, "--tables", "links").status == 2
