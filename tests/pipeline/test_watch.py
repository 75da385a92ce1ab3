"""`pipeline watch`: whatever becomes of its turns, the tables are those of one run over all files."""

from __future__ import annotations

import gzip
import itertools
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.commands import amqpscope
from support.in_process import KILL, Here, watch_of
from support.lakes import CAPTURES, contents
from support.network import Conversation, converse

from amqpscope.pipeline import PipelineError, delta, runs, watching
from amqpscope.pipeline import lake as lake_module
from amqpscope.pipeline.appending import unchanged
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.failure import FilesChanged
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.schemas import LAKE_TABLES, RUNS
from amqpscope.pipeline.watching import Turn, Watch

TESTS = Path(__file__).resolve().parents[1]
TEN, NINE = CAPTURES / "rhea-proton-ipv6.pcap", CAPTURES / "rabbitmq-large.pcap"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no signals")


def turn(watch: Watch) -> Turn:
    """A turn that finds changed files."""
    found = watch.turn()
    assert found is not None
    return found


def same_as_one_run(lake: Path, folder: Path) -> bool:
    """Whether a lake has the rows of one run over all files of a directory."""
    whole = lake.parent / "whole"
    Here(Any, make_plan(capture_sets([str(folder)]), 1, "chain"), None, [str(folder)]).write(str(whole))
    return contents(lake) == contents(whole)


@pytest.mark.parametrize("follow", [False, True])
def test_files_that_come_and_grow(tmp_path: Path, follow: bool) -> None:
    """Each file ends in the middle of a record at times. A turn without news commits nothing."""
    folder, lake = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    watch = watch_of(folder, lake, follow=follow)
    assert turn(watch).batch is None and not lake.exists()
    random = Random("growth")
    content = {"a.pcap": TEN.read_bytes(), "sub/b.pcap": NINE.read_bytes()}
    fresh = 0
    for number in range(1, 6):
        for name, octets in content.items():
            (folder / name).parent.mkdir(exist_ok=True)
            length = len(octets) * number // 5 - random.randrange(20) * (number < 5)
            (folder / name).write_bytes(octets[:length])
        batch = turn(watch).batch
        assert batch is not None and batch.all_files == 2
        fresh += batch.fresh
        assert watch.turn() is None and watch_of(folder, lake).turn().batch is None  # type: ignore[union-attr]
    assert fresh == 10 and len(Lake(str(lake)).runs()) == 5
    assert same_as_one_run(lake, folder)
    watch.close()


def test_lag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table `runs` has it. In a lake of an earlier version, which did not, older runs have null."""
    folder, path = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    shutil.copy(TEN, folder / "a.pcap")
    watch = watch_of(folder, path)
    older = RUNS._replace(columns=tuple(one for one in RUNS.columns if one.name != "lag"))
    with monkeypatch.context() as patch:
        for module in (lake_module, runs):
            patch.setattr(module, "RUNS", older)
        patch.setitem(LAKE_TABLES, "runs", older)
        turn(watch)
        assert "lag" not in Lake(str(path)).run_rows()[0]
    shutil.copy(NINE, folder / "b.pcap")
    began = time.time_ns()
    os.utime(folder / "b.pcap", ns=(began - 5 * 10**9, began - 5 * 10**9))
    os.utime(folder / "a.pcap", ns=(began - 7 * 10**9, began - 7 * 10**9))
    turn(watch)
    first, second = [row["lag"] for row in Lake(str(path)).run_rows()]
    assert first is None and 5 <= second <= (time.time_ns() - began) / 1e9 + 5
    Here(Any, make_plan(capture_sets([str(folder)]), 1, "chain"), None, [str(folder)]).write(str(path))
    assert [row["lag"] for row in Lake(str(path)).run_rows()] == [first, second, None]


def test_inputs_that_cannot_be_read(tmp_path: Path) -> None:
    """They are rows in `files`, and are tried again when they have grown."""
    folder, lake = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    (folder / "a.pcap").write_bytes(b"")
    (folder / "b.pcap").write_bytes(b"no capture")
    watch = watch_of(folder, lake)
    turn(watch)
    assert [(row["status"], row["reason"]) for row in contents(lake)["files"]] == [
        ("unreadable", "empty"),
        ("unreadable", "foreign"),
    ]
    shutil.copy(TEN, folder / "a.pcap")
    turn(watch)
    assert sorted(row["status"] for row in contents(lake)["files"]) == ["ok", "unreadable"]
    shutil.copy(NINE, folder / "b.pcap")
    turn(watch)
    assert same_as_one_run(lake, folder)


def test_a_file_that_is_being_compressed(tmp_path: Path) -> None:
    """As by `tcpdump -z gzip`: for a while there are both, and the packets are in the tables once."""
    folder, lake = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    shutil.copy(NINE, folder / "a.pcap")
    watch = watch_of(folder, lake)
    turn(watch)
    before = contents(lake)
    packed = gzip.compress(NINE.read_bytes())
    for octets in (len(packed) // 2, len(packed)):
        (folder / "a.pcap.gz").write_bytes(packed[:octets])
        assert turn(watch).batch is None
    (folder / "a.pcap").unlink()
    assert turn(watch).batch is None and contents(lake) == before


def test_a_file_that_is_overwritten_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by `tcpdump -W`: nothing is committed, and the next turn reads what is there then."""
    folder, lake = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    shutil.copy(NINE, folder / "a.pcap")
    watch = watch_of(folder, lake)
    real = Here._run

    def overwritten(self: Here, outlet: Any) -> Any:
        result = real(self, outlet)
        shutil.copy(TEN, folder / "a.pcap")
        return result

    with monkeypatch.context() as patch:
        patch.setattr(Here, "_run", overwritten)
        with pytest.raises(FilesChanged, match="files were overwritten meanwhile"):
            watch.turn()
    assert not lake.exists()
    turn(watch)
    assert same_as_one_run(lake, folder)
    sets = capture_sets([str(folder)])
    (folder / "a.pcap").unlink()
    assert unchanged(sets)  # it was read before that, or a worker has missed it


@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_that_vanishes_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressed: bool
) -> None:
    """As by `tcpdump -W`, or by `tcpdump -z gzip`: no row of it is lost."""
    folder, lake = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    shutil.copy(NINE, folder / "a.pcap")
    watch = watch_of(folder, lake)
    turn(watch)
    before = contents(lake)
    shutil.copy(TEN, folder / "b.pcap")
    real = Here._run

    def vanished(self: Here, outlet: Any) -> Any:
        if compressed:
            (folder / "a.pcap.gz").write_bytes(gzip.compress((folder / "a.pcap").read_bytes()))
        (folder / "a.pcap").unlink()
        return real(self, outlet)

    with monkeypatch.context() as patch:
        patch.setattr(Here, "_run", vanished)
        with pytest.raises(FilesChanged, match="1 of the files vanished meanwhile"):
            watch.turn()
    assert contents(lake) == before
    watch.turn()
    if compressed:
        assert same_as_one_run(lake, folder)
    else:
        frames = contents(lake)["frames"]
        assert all(row in frames for row in before["frames"])


def test_a_directory_of_the_lake_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lake" / "in").mkdir(parents=True)
    for folder in (tmp_path / "lake", tmp_path / "lake" / "in"):
        with pytest.raises(PipelineError, match="this directory is the lake, or belongs to it"):
            watch_of(folder, tmp_path / "lake")


def test_one_watch_alone(tmp_path: Path) -> None:
    """The lease is held between the batches, and a lake that was not written is not left behind."""
    folder, path = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    lake = Lake(str(path))
    watch = watch_of(folder, path)
    watch._lake = lake
    lake.hold()
    for _ in range(2):
        for start in (Lake(str(path)).refuse, Lake(str(path)).hold, Lake(str(path)).begin):
            with pytest.raises(PipelineError, match=rf"another run writes .* \(process {os.getpid()} on "):
                start()
        shutil.copy(TEN, folder / "a.pcap")
        watch.turn()
    lake.release()
    assert {one.name for one in path.iterdir()} == {"runs", *contents(path)}
    Lake(str(path)).refuse()
    empty = Lake(str(tmp_path / "empty"))
    empty.hold()
    empty.release()
    assert not (tmp_path / "empty").exists()


def test_care(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After many batches the small files are put together, and old ones are deleted; the rows stay."""
    monkeypatch.setattr(watching, "MOST_NEEDLESS", 2)
    monkeypatch.setattr(watching, "_VACUUM_AFTER", -1.0)
    folder, path = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    watch = watch_of(folder, path, keep=0)
    for capture in sorted(CAPTURES.glob("rhea-*.pcap"))[:3]:
        (folder / capture.stem).mkdir()
        shutil.copy(capture, folder / capture.stem)
        turn(watch)
        watch.care()
    assert [run.kind for run in Lake(str(path)).runs()] == ["append"] * 3 + ["compact"]
    assert len(list((path / "files").glob("*.parquet"))) == 1
    assert same_as_one_run(path, folder)


def test_care_of_what_others_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that looks once, as `cron` calls it, puts the files of those before it together, too."""
    monkeypatch.setattr(watching, "MOST_NEEDLESS", 2)
    folder, path = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    for capture in sorted(CAPTURES.glob("rhea-*.pcap"))[:3]:
        (folder / capture.stem).mkdir()
        shutil.copy(capture, folder / capture.stem)
        watch = watch_of(folder, path, once=True, keep=0)
        turn(watch)
        watch.care()
        watch.close()
    assert [run.kind for run in Lake(str(path)).runs()] == ["append"] * 3 + ["compact"]
    assert {len(list((path / name).rglob("*.parquet"))) for name in ("files", "runs")} == {1}
    assert same_as_one_run(path, folder)


def test_a_batch_opens_few_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there were before: the log of a table is read once, and then only what comes to it."""
    folder, path = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    watch = watch_of(folder, path)
    octets = TEN.read_bytes()
    opened: list[str] = []
    real = delta.DeltaTable.__init__

    def counted(table: Any, table_uri: str, *rest: Any, **more: Any) -> None:
        opened.append(table_uri)
        real(table, table_uri, *rest, **more)

    monkeypatch.setattr(delta.DeltaTable, "__init__", counted)
    many = []
    for number in range(1, 13):
        opened.clear()
        (folder / "a.pcap").write_bytes(octets[: len(octets) * number // 12])
        turn(watch)
        many.append(len(opened))
    assert sum(many[2:]) <= 9  # behind a checkpoint, each once
    assert len(list(path.glob("files/_delta_log/*.checkpoint.parquet"))) == 1
    assert same_as_one_run(path, folder)


def test_killed(tmp_path: Path) -> None:
    """At random moments of its turns, while the files grow: each row is there exactly once."""
    folder, lake = tmp_path / "in", tmp_path / "lake"
    (folder / "b").mkdir(parents=True)
    random = Random("kills")
    whole = {folder / "a.pcap": TEN.read_bytes(), folder / "b" / "b.pcap": NINE.read_bytes()}
    longest, deaths = 0.2, 0
    for step in range(1, 11):
        for path, octets in whole.items():
            path.write_bytes(octets[: len(octets) * step // 10])
        command = [sys.executable, str(TESTS / "support" / "in_process.py"), str(folder), str(lake)]
        seconds = [] if step in (1, 10) else [str(random.uniform(0.001, longest))]
        done = subprocess.run(
            [*command, *seconds], cwd=TESTS, capture_output=True, text=True, check=False, timeout=120
        )
        deaths += done.returncode == -KILL
        assert done.returncode in (0, -KILL), done.stderr
        if done.returncode == 0:
            longest = max(longest, float(done.stdout))
    assert deaths
    assert same_as_one_run(lake, folder)
    assert not (lake / "_staging").exists()


def replay(conversation: Conversation, port: socket.socket) -> None:
    """Let the two peers say over loopback what they say in a conversation."""
    with socket.create_connection(port.getsockname()) as client:
        server, _ = port.accept()
        with server:
            ends = (client, server)
            for segment in conversation.segments:
                ends[segment.side].sendall(segment.octets)
                left = len(segment.octets)
                while left:
                    left -= len(ends[1 - segment.side].recv(left))


@pytest.mark.skipif(shutil.which("dumpcap") is None, reason="there is no dumpcap")
def test_dumpcap(tmp_path: Path) -> None:
    """dumpcap -b writes real traffic into several files while the directory is watched."""
    folder, lake = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as port:
        number = port.getsockname()[1]
        command = ["dumpcap", "-q", "-i", "lo", "-f", f"tcp port {number}", "-b", "packets:40"]
        with subprocess.Popen(
            [*command, "-w", str(folder / "live.pcapng")], stderr=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stderr is not None
            try:
                for line in writer.stderr:
                    if line.startswith("File: "):
                        break
                else:
                    pytest.skip("dumpcap may not capture here")
                watch = watch_of(folder, lake, follow=True)
                batches = 0
                for one in range(40):
                    protocol = ("amqp10", "amqp091")[one % 2]
                    replay(converse(f"watch {one}", protocol=protocol, races=False, lossy=False), port)
                    found = watch.turn()
                    batches += found is not None and found.batch is not None
                    if one >= 5 and len(list(folder.iterdir())) > 2 and batches > 2:
                        break
            finally:
                writer.send_signal(signal.SIGINT)
                writer.communicate(timeout=60)
    watch.turn()
    watch.close()
    assert batches > 2 and same_as_one_run(lake, folder)
    rows = contents(lake)
    assert {row["protocol"] for row in rows["connections"]} >= {"amqp10", "amqp091"}
    assert {row["status"] for row in rows["files"]} == {"ok"} and len(rows["files"]) > 2


FAST = """
import sys
from types import SimpleNamespace
import amqpscope.pipeline.analysis as analysis
import amqpscope.pipeline.session as session
from support.commands import amqpscope
from support.in_process import Here

analysis.Analysis = Here
here = SimpleNamespace(stop=lambda: None)
session.start = lambda *_: here
session.cores = lambda spark: 1
from amqpscope.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
"""The command, but for Spark."""


def started(*arguments: object) -> subprocess.Popen[str]:
    """`pipeline watch` in a process of its own, without Spark."""
    return subprocess.Popen(
        [sys.executable, "-c", FAST, "pipeline", "watch", *map(str, arguments)],
        cwd=TESTS,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )


def test_who_asks_to_stop_while_the_command_begins_is_heard(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    shutil.copy(TEN, tmp_path / "in")
    early = FAST.replace(
        "sys.exit(", "from amqpscope.cli import lake_watch\nlake_watch._STOP.set()\nsys.exit("
    )
    command = ["pipeline", "watch", "in", "--out", "lake", "--every", "1h"]
    ran = subprocess.run(
        [sys.executable, "-c", early, *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "lake: nothing is new\n", "")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_signals(tmp_path: Path, which: signal.Signals) -> None:
    """The command ends by itself, and lets others write then. A second one is refused before that."""
    folder, lake = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    shutil.copy(TEN, folder)
    with started(folder, "--out", lake, "--every", "1h") as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "batch 1: 1 file new or longer; 1 file, 0.0 MB analyzed in " in line
            assert line.endswith("; lake: 1 file, 0.0 MB\n") and "; lag " in line
            with started(folder, "--out", lake, "--once") as second:
                out, err = second.communicate(timeout=120)
            assert (second.returncode, out) == (2, "")
            assert (
                err.count("\n") == 1 and f"another run writes to this lake (process {process.pid} on" in err
            )
            process.send_signal(which)
            assert process.communicate(timeout=120) == ("", "")
        finally:
            process.kill()
    assert process.returncode == 0
    assert same_as_one_run(lake, folder)
    assert {one.name for one in lake.iterdir()} == {"runs", *contents(lake)}


def longer(capture: bytes, octets: int) -> bytes:
    """The capture with at least so many octets more: records behind its first one, which are no frames."""
    seconds, microseconds, size, _ = struct.unpack_from("<4I", capture, 24)
    record = struct.pack("<4I", seconds, microseconds, 60_000, 60_000) + bytes(60_000)
    second = 24 + 16 + size
    return capture[:second] + record * -(-octets // len(record)) + capture[second:]


@pytest.mark.parametrize("size", [0, 8 << 20])
def test_a_followed_set(tmp_path: Path, size: int) -> None:
    """The command reads what is new, and its processes end with it. It does so from the third batch on; from
    the second one on, if the set was large when it was found, and somebody seemed to be writing to it.
    """
    folder, lake = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    octets = NINE.read_bytes()
    ends = [len(octets) * number // 4 for number in range(5)]
    pieces = [octets[start:end] for start, end in itertools.pairwise(ends)]
    pieces[0] = longer(pieces[0], size)
    with started(folder, "--out", lake, "--every", "0.1s") as process:
        try:
            assert process.stdout is not None
            capture = tmp_path / "a.pcap"
            for number, piece in enumerate(pieces, 1):
                # At once, and not empty at first: a look may begin at any moment.
                with capture.open("ab", buffering=0) as file:
                    file.write(piece)
                if number == 1:
                    later = time.time() + 3600
                    os.utime(capture, (later, later))
                    capture = capture.rename(folder / "a.pcap")
                assert f" batch {number}: 1 file new or longer; 1 file" in process.stdout.readline()
            children = Path(f"/proc/{process.pid}/task")
            processes = [pid for one in children.glob("*/children") for pid in one.read_text().split()]
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=120) == ("", "")
        finally:
            process.kill()
    assert process.returncode == 0 and same_as_one_run(lake, folder)
    rows = Lake(str(lake)).run_rows()
    sizes = [len(piece) for piece in pieces]
    read_twice = 0 if size else sizes[0]
    assert [row["octets"] for row in rows] == [sizes[0], read_twice + sizes[1], *sizes[2:]]
    # One follows the set, and one waits for another set.
    assert len(processes) == 2 and not any(Path(f"/proc/{pid}").exists() for pid in processes)


def test_command(lent: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On Spark: once, without news, and with what it refuses."""
    folder, lake = tmp_path / "in", tmp_path / "lake"
    folder.mkdir()
    command = ("pipeline", "watch", folder, "--out", lake, "--once", "--keep", "1d")
    result = amqpscope(capsys, *command)
    assert (result.status, result.out, result.err) == (0, f"{lake}: nothing is new\n", "")
    assert not lake.exists()
    shutil.copy(TEN, folder)
    result = amqpscope(capsys, *command, "--tables", "connections,findings")
    assert (result.status, result.err) == (0, "") and " batch 1: 1 file new" in result.out
    assert amqpscope(capsys, *command).out == f"{lake}: nothing is new\n"
    shutil.copy(NINE, folder)
    assert amqpscope(capsys, *command, "--set-by", "file").err.endswith("was directory, and is file\n")
    assert "nosuch: not a directory" in amqpscope(capsys, "pipeline", "watch", "nosuch", "--out", lake).err
    assert amqpscope(capsys, *command).status == 0
    rows = contents(lake)
    assert len(rows["files"]) == 2 and rows["connections"] and not rows["frames"]
