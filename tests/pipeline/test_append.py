"""`pipeline run --append`: the tables of several runs are those of one run over all files."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.in_process import Here
from support.lakes import CAPTURES, contents, records

from amqpscope.pipeline import PipelineError
from amqpscope.pipeline.appending import Addition, addition_to
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.schemas import TABLES

ROTATED = {"ten": CAPTURES / "rhea-proton-ipv6.pcap", "0-9-1": CAPTURES / "rabbitmq-large.pcap"}


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


PIECES = cut(ROTATED["ten"], 3)
LARGE = (PIECES[0][:24], records(ROTATED["0-9-1"].read_bytes())[1] * 4)
"""A header, and packets of more than 64 KiB."""


def put(path: Path, content: bytes) -> Path:
    """A file with its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def same_as_one_run(lake: Path, folder: Path) -> bool:
    """Whether a lake has the rows of one run over all files of a directory."""
    whole = lake.parent / "whole"
    run(whole, folder, append=False)
    return contents(lake) == contents(whole)


@pytest.mark.parametrize("name", ["two/part.pcap", "one/part.pcap"])
def test_a_shorter_copy_replaces_nothing(tmp_path: Path, name: str) -> None:
    """It has the same first 64 KiB. The command is given the shorter file alone."""
    folder = tmp_path / "in"
    header, packets = LARGE
    put(folder / "one" / "a.pcap", header + b"".join(packets))
    run(tmp_path / "lake", folder)
    part = put(folder / name, header + b"".join(packets[: len(packets) * 3 // 4]))
    assert part.stat().st_size > 64 * 1024
    added = run(tmp_path / "lake", part)
    assert added is not None and added.replaced == ({f"{folder}/one"} if name.startswith("one") else set())
    assert same_as_one_run(tmp_path / "lake", folder)


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    """The rows of the longer file stay, and the shorter file is recognised from then on."""
    header, packets = LARGE
    path = put(tmp_path / "in" / "a.pcap", header + b"".join(packets))
    run(tmp_path / "lake", path)
    before = contents(tmp_path / "lake")
    path.write_bytes(header + b"".join(packets[: len(packets) * 3 // 4]))
    added = run(tmp_path / "lake", path)
    assert added is not None and [one.name for one in added.sets] == [f"{tmp_path}/in#2"]
    after = contents(tmp_path / "lake")
    for name in TABLES:
        assert [row for row in after[name] if row["capture_set"] == f"{tmp_path}/in"] == before[name]
    added = run(tmp_path / "lake", path)
    assert added is not None and (added.sets, len(added.known)) == ([], 1)


def test_a_longer_copy_elsewhere(tmp_path: Path) -> None:
    """It takes the place of the recorded file only if that is gone."""
    folder = tmp_path / "in"
    header, packets = LARGE
    shorter = put(folder / "one" / "a.pcap", header + b"".join(packets[: len(packets) * 3 // 4]))
    run(tmp_path / "lake", folder)
    longer = put(folder / "two" / "a.pcap", header + b"".join(packets))
    added = run(tmp_path / "lake", longer)
    assert added is not None and added.replaced == set()
    assert same_as_one_run(tmp_path / "lake", folder)
    shorter.unlink()
    put(folder / "three" / "a.pcap.gz", gzip.compress(longer.read_bytes()))
    longer.unlink()
    added = run(tmp_path / "lake", folder)
    assert added is not None and (added.sets, len(added.known)) == ([], 1)


def test_a_copy_beside_a_new_file(tmp_path: Path) -> None:
    """The set of the original stays, whether its files are among the sources or not."""
    folder = tmp_path / "in"
    put(folder / "one" / "a.pcap", PIECES[0])
    put(folder / "one" / "x.pcap", PIECES[2])
    run(tmp_path / "lake", folder)
    put(folder / "two" / "copy.pcap", PIECES[0])
    put(folder / "two" / "b.pcap", PIECES[1])
    added = run(tmp_path / "lake", folder / "two")
    assert added is not None and added.replaced == set() and added.apart == []
    assert same_as_one_run(tmp_path / "lake", folder)


def test_a_copy_in_the_same_directory(tmp_path: Path) -> None:
    """The original keeps its row, also if it is not among the sources."""
    folder = tmp_path / "in"
    put(folder / "a.pcap", PIECES[0])
    run(tmp_path / "lake", folder)
    run(tmp_path / "lake", put(folder / "copy.pcap", PIECES[0]), put(folder / "b.pcap", PIECES[1]))
    assert same_as_one_run(tmp_path / "lake", folder)


def test_files_that_have_moved(tmp_path: Path) -> None:
    """A directory has another name now. Then one file of it moves to a further directory."""
    folder = tmp_path / "in"
    put(folder / "one" / "a.pcap", PIECES[0])
    put(folder / "one" / "b.pcap", PIECES[1])
    run(tmp_path / "lake", folder)
    (folder / "one").rename(folder / "two")
    put(folder / "two" / "c.pcap", PIECES[2])
    added = run(tmp_path / "lake", folder)
    assert added is not None and added.replaced == {f"{folder}/one"}
    assert same_as_one_run(tmp_path / "lake", folder)
    (folder / "three").mkdir()
    (folder / "two" / "a.pcap").rename(folder / "three" / "a.pcap")
    put(folder / "three" / "d.pcap", ROTATED["0-9-1"].read_bytes())
    added = run(tmp_path / "lake", folder)
    assert added is not None and added.replaced == set() and len(added.known) == 3
    assert [[file.path for file in one.files] for one in added.sets] == [[f"{folder}/three/d.pcap"]]


def test_directories_with_names_like_those_of_sets(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    lake = tmp_path / "lake"
    for number, name in enumerate(("job", "job#1", "job#2")):
        put(folder / name / "a.pcap", PIECES[number])
    run(lake, folder / "job#2")
    run(lake, folder / "job#1")
    run(lake, folder / "job")
    assert same_as_one_run(lake, folder)
    put(folder / "job" / "a.pcap", ROTATED["0-9-1"].read_bytes())
    added = run(lake, folder / "job")
    assert added is not None and [one.name for one in added.sets] == [f"{folder}/job#3"]
    put(folder / "job#3" / "a.pcap", PIECES[0][:24] + b"".join(records(PIECES[0])[1][2:]))
    added = run(lake, folder / "job#3")
    assert added is not None and added.replaced == set()
    assert [one.name for one in added.sets] == [f"{folder}/job#3#2"]


def test_files_with_names_like_those_of_newer_ones(tmp_path: Path) -> None:
    """Each is a set of its own, and no newer file of the other's."""
    folder, lake = tmp_path / "in", tmp_path / "lake"
    for number, name in enumerate(("x.pcap", "x.pcap#2")):
        put(folder / name, PIECES[number])
    run(lake, folder, set_by="file")
    put(folder / "x.pcap", PIECES[0] + records(PIECES[1])[1][0])
    added = run(lake, folder, set_by="file")
    assert added is not None and added.replaced == {f"{folder}/x.pcap"}
    assert [[file.path for file in one.files] for one in added.sets] == [[f"{folder}/x.pcap"]]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """Tables have them with escapes. The files are recognised, and gone ones of their sets, too."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/in\xe9"))
    put(folder / "a.pcap", PIECES[0])
    run(tmp_path / "lake", folder)
    (run_row,) = Lake(str(tmp_path / "lake")).run_rows()
    assert run_row["sources"] == [f"{tmp_path}/in\\udce9"]
    put(folder / "a.pcap", PIECES[1])
    added = run(tmp_path / "lake", folder)
    assert added is not None and added.apart == [str(folder)]
    put(folder / "b.pcap", PIECES[2])
    added = run(tmp_path / "lake", folder)
    assert added is not None and added.replaced == {f"{tmp_path}/in\\udce9#2"}
    rows = contents(tmp_path / "lake")["files"]
    assert sorted((row["capture_set"], row["capture"].rpartition("/")[2]) for row in rows) == [
        (f"{tmp_path}/in\\udce9", "a.pcap"),
        (f"{tmp_path}/in\\udce9#2", "a.pcap"),
        (f"{tmp_path}/in\\udce9#2", "b.pcap"),
    ]


def test_a_gone_file_without_identity(tmp_path: Path) -> None:
    """Nothing in its first octets is TCP. Its rows stay."""
    folder = tmp_path / "in"
    header, packets = records(PIECES[0])
    noise = b"".join(record[:16] + bytes(len(record) - 16) for record in packets)
    (folder / "a.pcap").parent.mkdir()
    put(folder / "a.pcap", header + noise * (1 + 64 * 1024 // len(noise)) + b"".join(packets))
    run(tmp_path / "lake", folder)
    before = contents(tmp_path / "lake")
    assert before["frames"] != [] and before["files"][0]["identity"] is None
    (folder / "a.pcap").unlink()
    put(folder / "b.pcap", PIECES[1])
    added = run(tmp_path / "lake", folder)
    assert added is not None and [one.name for one in added.sets] == [f"{folder}#2"]
    after = contents(tmp_path / "lake")
    assert [row for row in after["frames"] if row["capture_set"] == str(folder)] == before["frames"]


def test_new_inputs_that_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder / "a.pcap", PIECES[0])
    run(tmp_path / "lake", folder)
    note = put(tmp_path / "other" / "note.txt", b"no capture")
    added = run(tmp_path / "lake", folder, note)
    assert added is not None and added.sets == []
    assert [file.path for file in added.known] == [f"{folder}/a.pcap"]
    assert [file.path for file in added.unreadable] == [str(note)]


def test_damaged_tables(tmp_path: Path) -> None:
    """One line says which lake it is."""
    lake = tmp_path / "lake"
    run(lake, ROTATED["ten"])
    (part,) = (lake / "files").glob("*.parquet")
    part.write_bytes(b"no table")
    with pytest.raises(PipelineError, match=f"^{lake}: .*[Pp]arquet"):
        addition_to(Lake(str(lake)), capture_sets([str(ROTATED["0-9-1"])]), {})
    (part,) = (lake / "runs").glob("*.parquet")
    part.write_bytes(b"no table")
    with pytest.raises(PipelineError, match=f"^{lake}: .*[Pp]arquet"):
        Lake(str(lake)).runs()
    with pytest.raises(PipelineError, match=r"^s3://: "):
        Lake("s3://").runs()


def test_a_first_run_that_dies_while_its_files_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = tmp_path / "lake"
    moves = []
    move = Lake._move

    def dies(self: Lake, source: str, part: Any) -> Any:
        moves.append(source)
        if len(moves) > 1:
            raise OSError("the machine is switched off")
        return move(self, source, part)

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "_move", dies)
        with pytest.raises(PipelineError, match="switched off"):
            run(lake, ROTATED["ten"])
    assert Lake(str(lake)).empty()
    run(lake, ROTATED["ten"])
    run(tmp_path / "whole", ROTATED["ten"])
    assert contents(lake) == contents(tmp_path / "whole")


def test_other_options(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run(lake, ROTATED["ten"])
    with pytest.raises(PipelineError, match="--set-by was directory, and is file"):
        run(lake, ROTATED["ten"], set_by="file")
    sets = capture_sets([str(ROTATED["0-9-1"])])
    with pytest.raises(PipelineError, match="--profile was auto, and is rabbitmq"):
        addition_to(Lake(str(lake)), sets, {"spec": "final", "profile": "rabbitmq"})


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
    note = put(tmp_path.parent / "note.txt", b"no capture")
    result = amqpscope(capsys, *command, note)
    assert (result.status, result.out) == (2, f"{lake}: nothing is new\n")
    assert result.err.splitlines() == [
        "amqpscope: 2 files in the lake already",
        f"amqpscope: {note}: foreign: not a capture file (neither pcap nor pcapng): not added",
    ]
