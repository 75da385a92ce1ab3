"""States beside the tables: the next run reads only what is new, and the rows are those of one run."""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from layers.test_tls import recorded, talk
from layers.test_tls_secrets import capture_of, secrets_block
from pipeline.test_following import rotated, same_as_one_run, under_their_names
from pipeline.test_state import Attack
from support.commands import Result, amqpscope
from support.damage import packets_in, written
from support.in_process import KILL, watch_of
from support.lakes import CAPTURES, contents
from support.tls import Ends

from amqpscope.pipeline import PipelineError, following, session, states
from amqpscope.pipeline.capture_set import CaptureSet
from amqpscope.pipeline.compaction import compact_tables
from amqpscope.pipeline.failure import FilesChanged
from amqpscope.pipeline.following import FollowedBatch, Followers
from amqpscope.pipeline.inputs import CaptureFile
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.watching import Turn

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")

TEN, NINE = CAPTURES / "proton-windows.pcap", CAPTURES / "rabbitmq-large.pcap"
IN_PROCESS = Path(__file__).resolve().parents[1] / "support" / "in_process.py"


@pytest.fixture(autouse=True)
def place(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()


def once(tmp_path: Path, **terms: Any) -> Turn:
    """A watch with `--once`."""
    watch = watch_of(tmp_path / "in", tmp_path / "lake", **{"follow": True, "at_once": True, **terms})
    found = watch.turn()
    assert found is not None
    assert watch.close() == []
    return found


def grow(tmp_path: Path, octets: bytes, name: str = "a.pcap") -> None:
    (tmp_path / "in" / name).write_bytes(octets)


def read(found: Turn) -> tuple[int, int]:
    """Octets that were read, and sets that were read as a whole."""
    assert found.batch is not None
    return found.batch.octets, found.batch.whole


def kept(tmp_path: Path) -> Path:
    (state,) = (tmp_path / "lake" / "_state").iterdir()
    return state


def test_several_runs(tmp_path: Path) -> None:
    """Each reads only what is new; all of them write the rows of one run."""
    octets = NINE.read_bytes()
    total, runs = 0, 6
    for number in range(1, runs + 1):
        grow(tmp_path, octets[: len(octets) * number // runs])
        count, whole = read(once(tmp_path))
        assert whole == (number == 1)
        total += count
        if number in (1, 3):
            assert same_as_one_run(tmp_path)
    assert total == len(octets) and same_as_one_run(tmp_path)
    assert oct(kept(tmp_path).stat().st_mode)[-3:] == "600"


Added = Callable[..., Result]


def appending(tmp_path: Path) -> list[object]:
    """`run --append` as it is without further options."""
    return ["pipeline", "run", tmp_path / "in", "--out", tmp_path / "lake", "--append", "-q", "--no-config"]


@pytest.fixture
def added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Added:
    """`run --append`, with options."""

    def run(*options: str, lake: str = "lake") -> Result:
        folder, out = str(tmp_path / "in"), str(tmp_path / lake)
        command = ("pipeline", "run", folder, "--out", out, "--append", "--engine", "pool", "-q")
        done = amqpscope(capsys, *command, *options)
        assert done.status in (0, 1), done.err
        return done

    return run


def octets_read(tmp_path: Path) -> list[int]:
    return [row["octets"] for row in Lake(str(tmp_path / "lake")).run_rows()]


def test_the_command(tmp_path: Path, added: Added) -> None:
    """`run --append` and `watch` go on with each other's states."""
    pieces = rotated(TEN, 4)
    sizes = [len(octets) for octets in pieces]
    grow(tmp_path, pieces[0], "0.pcap")
    added()
    grow(tmp_path, pieces[1], "1.pcap")
    added()
    grow(tmp_path, pieces[2], "2.pcap")
    assert read(once(tmp_path)) == (sizes[2], 0)
    grow(tmp_path, pieces[3], "3.pcap")
    assert "4 files in the lake" not in added().err
    assert octets_read(tmp_path) == sizes and same_as_one_run(tmp_path)
    assert "4 files in the lake already" in added().err
    assert len(octets_read(tmp_path)) == 4


@pytest.mark.parametrize("most", [None, 100])
def test_the_first_run_with_spark(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    most: int | None,
) -> None:
    """It keeps the state of a set that is not large, and needs no Spark for it; a large one is Spark's."""
    if most is None:
        monkeypatch.setattr(session, "start", None)
    else:
        request.getfixturevalue("lent")
        monkeypatch.setattr(following, "_AT_ONCE", most)
    octets = TEN.read_bytes()
    parts = [len(octets) // 2, len(octets)]
    for size in parts:
        grow(tmp_path, octets[:size])
        assert amqpscope(capsys, *appending(tmp_path)).status in (0, 1)
        assert (tmp_path / "lake" / "_state").exists() == (most is None or size == parts[1])
    assert octets_read(tmp_path) == [parts[0], parts[1] if most else parts[1] - parts[0]]
    assert same_as_one_run(tmp_path)


@pytest.mark.parametrize("given", [["--master", "local[2]"], ["--conf", "a.b=c"], ["--plan", "chain"]])
def test_who_asks_for_spark_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: list[str]
) -> None:
    def refused(*_: object) -> None:
        raise PipelineError("asked for")

    monkeypatch.setattr(session, "start", refused)
    grow(tmp_path, TEN.read_bytes())
    assert amqpscope(capsys, *appending(tmp_path), *given).err == "amqpscope: asked for\n"


@pytest.mark.parametrize("given", [["--master", "local[2]"], ["--conf", "a.b=c"]])
def test_who_asks_for_spark_gets_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: list[str]
) -> None:
    """So it is with `watch --once`."""

    def refused(*_: object) -> None:
        raise PipelineError("asked for")

    monkeypatch.setattr(session, "start", refused)
    grow(tmp_path, TEN.read_bytes())
    command = ("pipeline", "watch", tmp_path / "in", "--out", tmp_path / "lake", "--once", "--no-config")
    assert amqpscope(capsys, *command, *given).err == "amqpscope: asked for\n"


@pytest.mark.parametrize("earlier", [False, True])
def test_secrets_behind_what_needs_them(tmp_path: Path, added: Added, earlier: bool) -> None:
    """The set is read as a whole: as a new one, and after a change, with and without a state."""
    pytest.importorskip("cryptography")
    recording = recorded(talk(), Ends.make("1.3"))
    usual = ("--allow-empty", "--no-config")
    octets = capture_of(recording).capture.pcapng()
    if earlier:
        grow(tmp_path, octets)
        added(*usual)
        assert len(list((tmp_path / "lake" / "_state").iterdir())) == 1
    octets += secrets_block(recording.keylog)
    grow(tmp_path, octets)
    said = added(*usual).err
    assert "no state is kept: the files have secrets of TLS" in said
    assert same_as_one_run(tmp_path)
    grow(tmp_path, octets + octets)
    added(*usual)
    assert same_as_one_run(tmp_path)
    assert {row["protocol"] for row in contents(tmp_path / "lake")["connections"]} == {"amqp10"}


def test_without_states(tmp_path: Path, added: Added) -> None:
    """`--fresh-state`, and a run with other options."""
    octets = TEN.read_bytes()
    for number, options in enumerate(
        [(), ("--fresh-state",), ("--ignore", "L-CREDIT"), ("--ignore", "L-CREDIT")], 1
    ):
        grow(tmp_path, octets[: len(octets) * number // 4])
        said = added(*options).err
        assert ("is of a run with other options" in said) == (number == 3)
    parts = [len(octets) * number // 4 for number in range(1, 5)]
    assert octets_read(tmp_path) == [*parts[:3], parts[3] - parts[2]]


def test_the_exit_status(tmp_path: Path, added: Added) -> None:
    """What was found before counts as it does if the set is read again."""
    packets = packets_in((CAPTURES / "rhea-transfer-before-attach.pcap").read_bytes())
    hour = 3600 * 10**9
    later, latest = (
        [
            one._replace(time=packets[-1].time + hours * hour + at)
            for at, one in enumerate(packets_in(TEN.read_bytes()))
        ]
        for hours in (1, 2)
    )
    # What is over is final when time has gone on.
    pieces = [
        b"".join(part.octets for part in written(part, "pcap, little-endian"))
        for part in ([*packets, *later], latest)
    ]
    for name, octets in zip("ab", pieces, strict=True):
        grow(tmp_path, octets, f"{name}.pcap")
        went_on = added()
    assert octets_read(tmp_path) == [len(octets) for octets in pieces]
    anew = added(lake="other")
    assert went_on.status == anew.status == 1
    assert went_on.lines[1:] == anew.lines[1:]


def half(tmp_path: Path) -> bytes:
    """The rest of a capture whose first half was read, and whose state is kept."""
    octets = TEN.read_bytes()
    grow(tmp_path, octets[: len(octets) // 2])
    once(tmp_path)
    grow(tmp_path, octets)
    return octets


def hostile(state: bytes) -> bytes:
    """A state that is sound, but for objects that run a function."""
    import pyarrow as pa

    made = pickle.dumps(Attack())
    packed = len(made).to_bytes(8, "big") + bytes(pa.compress(made, codec="zstd", asbytes=True))
    return states.Stored.load(state)._replace(octets=packed).dump()


def of_another_version(state: bytes) -> bytes:
    return states.Stored.load(state)._replace(code="0.1.0 0123").dump()


def nested(state: bytes) -> bytes:
    """One whose lists are in each other deeper than anything can follow."""
    start = len(states._MAGIC)
    rest = b"[" * 100_000 + b"]" * 100_000 + b"\n"
    return state[:start] + hashlib.sha256(rest).digest() + rest


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda state: state[:-7], "is damaged"),
        (nested, "is damaged"),
        (lambda state: state[:100] + b"!" + state[101:], "is damaged"),
        (lambda state: b"", "is no state"),
        (lambda state: b"PAR1" * 90, "is no state"),
        (hostile, "names posix.mkdir"),
        (of_another_version, "is of another version of amqpscope (0.1.0)"),
    ],
    ids=["truncated", "nested", "damaged", "empty", "foreign", "hostile", "version"],
)
def test_a_state_that_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, line: str
) -> None:
    """One line says so, and the set is read again."""
    monkeypatch.chdir(tmp_path)
    octets = half(tmp_path)
    kept(tmp_path).write_bytes(change(kept(tmp_path).read_bytes()))
    found = once(tmp_path)
    folder = tmp_path / "in"
    assert found.said == (f"{folder}: the kept state {line}: all files of the set are read again",)
    assert read(found) == (len(octets), 1) and same_as_one_run(tmp_path)
    assert not (tmp_path / "made-by-a-state").exists()


def test_a_state_of_other_rows(tmp_path: Path) -> None:
    """One that an earlier run has kept is not used, silently: a run that dies leaves such a one."""
    octets = TEN.read_bytes()
    sizes = [len(octets) * number // 4 for number in range(1, 5)]
    grow(tmp_path, octets[: sizes[0]])
    once(tmp_path)
    before = kept(tmp_path).read_bytes()
    grow(tmp_path, octets[: sizes[1]])
    once(tmp_path)
    after = kept(tmp_path).read_bytes()
    # As if the run had died before it wrote the state.
    kept(tmp_path).write_bytes(before)
    grow(tmp_path, octets[: sizes[2]])
    found = once(tmp_path)
    assert read(found) == (sizes[2], 1) and not found.said and same_as_one_run(tmp_path)
    # As if it had died before the commit.
    unknown = states.Stored.load(after)._replace(run="0123456789ab")
    kept(tmp_path).write_bytes(unknown.dump())
    grow(tmp_path, octets)
    found = once(tmp_path)
    assert read(found) == (sizes[3], 1) and not found.said and same_as_one_run(tmp_path)


class Killed(BaseException):
    """In place of a signal."""


def dies(one: Any, *_: object) -> None:
    """Stands for a function at which the process is killed."""
    if isinstance(one, Lake):
        one.abandon()  # the lease of a process that is there would stay
    raise Killed


@pytest.mark.parametrize("where", [(Lake, "commit"), (Followers, "settle")], ids=["before", "behind"])
def test_killed_at_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any) -> None:
    """Before it or behind it: there is a state of what the lake has, and in the end no other one."""
    pieces = rotated(NINE, 4)
    sizes = [len(octets) for octets in pieces]

    for number, octets in enumerate(pieces):
        grow(tmp_path, octets, f"{number}.pcap")
        if number == 2:
            watch = watch_of(tmp_path / "in", tmp_path / "lake", follow=True, at_once=True)
            with monkeypatch.context() as patch:
                patch.setattr(*where, dies)
                with pytest.raises(Killed):
                    watch.turn()
            watch._followers.close()
            assert len(list((tmp_path / "lake" / "_state").iterdir())) == 2
            if where[1] == "settle":
                continue
        assert read(once(tmp_path)) == (sizes[number], number == 0)
    kept(tmp_path)
    assert same_as_one_run(tmp_path)


def test_killed_before_the_first_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory has a state then, and is a lake that is empty."""
    grow(tmp_path, NINE.read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "commit", dies)
        with pytest.raises(Killed):
            once(tmp_path)
    assert kept(tmp_path)
    once(tmp_path)
    kept(tmp_path)
    assert same_as_one_run(tmp_path)


def test_vacuum(tmp_path: Path) -> None:
    """It deletes the states of which no use can be made, and no other one."""
    half(tmp_path)
    state = kept(tmp_path)
    (state.parent / "other").write_bytes(of_another_version(state.read_bytes()))
    assert Lake(str(tmp_path / "lake")).vacuum(1) == 1
    assert kept(tmp_path) == state
    once(tmp_path, fresh=True, follow=False)
    Lake(str(tmp_path / "lake")).vacuum(1)
    assert not state.parent.exists()


def test_vacuum_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sets with one file, it leaves the last state. A set with more files may lose the first of them."""
    monkeypatch.setattr(states, "MAX_STATES", 1)
    captures = [NINE, TEN, CAPTURES / "rhea-proton-ipv6.pcap", CAPTURES / "amqplib-channel-errors.pcap"]
    pieces = {name: rotated(capture, 3) for name, capture in zip("abcd", captures, strict=True)}
    set_by = "([a-d])_"
    for name, octets in pieces.items():
        for number in (0, 1) if name == "a" else (0,):
            grow(tmp_path, octets[number], f"{name}_{number}.pcap")
        once(tmp_path, set_by=set_by)
    assert Lake(str(tmp_path / "lake")).vacuum(1) == 2
    found = (tmp_path / "lake" / "_state").iterdir()
    assert {states.Stored.load(path.read_bytes()).source for path in found} == {"a", "d"}
    (tmp_path / "in" / "a_0.pcap").unlink()
    grow(tmp_path, pieces["a"][2], "a_2.pcap")
    grow(tmp_path, pieces["b"][1], "b_1.pcap")
    news = len(pieces["a"][2]) + len(pieces["b"][0]) + len(pieces["b"][1])
    assert read(once(tmp_path, set_by=set_by)) == (news, 1)


def test_compaction(tmp_path: Path) -> None:
    """It leaves alone what a state goes on from."""
    octets = half(tmp_path)
    lake = Lake(str(tmp_path / "lake"))
    once(tmp_path)
    grow(tmp_path, rotated(NINE, 1)[0], "b.pcap")
    before, after = compact_tables(lake)
    assert after < before
    found = once(tmp_path)
    assert read(found)[1] == 0 and same_as_one_run(tmp_path)
    assert read(found)[0] == (tmp_path / "in" / "b.pcap").stat().st_size != len(octets)


def test_where_a_file_is_may_be_secret(tmp_path: Path) -> None:
    """A URL may have credentials; a state has only the name without them."""
    for name, path in [("a.pcap", "a.pcap"), ("a?b%41 c.pcap", "a%3Fb%2541%20c.pcap?region=x")]:
        file = CaptureFile(f"s3://bucket/{name}", f"s3://key:made-up@bucket/{path}", 1)
        state = states.Stored("s", CaptureSet("s", (file,)), (), "r", frozenset(), "", "", b"").dump()
        assert b"made-up" not in state
        (found,) = states.Stored.load(state).one.files
        assert found.capture == file.capture == file.name == found.name


def test_a_lake_that_was_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run writes to it: its states are no longer those of this watch."""
    monkeypatch.setattr(following, "_KEEP_SHARE", 1e9)
    octets = TEN.read_bytes()
    watch = watch_of(tmp_path / "in", tmp_path / "lake", follow=True, at_once=True)
    watch._lake.hold()
    for size in (len(octets) // 2, len(octets)):
        grow(tmp_path, octets[:size])
        watch.turn()
    before = kept(tmp_path).read_bytes()
    (tmp_path / "lake" / "_lease.json").write_text('{"run": "another"}')
    watch.close()
    assert kept(tmp_path).read_bytes() == before
    watch._lake.release()


def test_more_than_can_be_followed(tmp_path: Path, added: Added, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of which files are gone go on all the same, with `--once` and with `--append`."""
    monkeypatch.setattr(following, "MAX_FOLLOWERS", 2)
    pieces = {"a": rotated(NINE, 5), "b": rotated(TEN, 5)}
    for name in pieces:
        (tmp_path / "in" / name).mkdir()
    for number in range(5):
        if number == 2:
            monkeypatch.setattr(following, "MAX_FOLLOWERS", 1)
        for name in pieces:
            grow(tmp_path, pieces[name][number], f"{name}/{number % 2}.pcap")
        if number % 2:
            added()
        else:
            once(tmp_path)
        assert octets_read(tmp_path)[-1] == sum(len(pieces[name][number]) for name in pieces)
    assert len({row["capture_set"] for row in contents(tmp_path / "lake")["files"]}) == 2


def test_files_that_were_deleted(tmp_path: Path) -> None:
    """The connections go on, as with a ring buffer that nobody reads in time otherwise."""
    pieces = rotated(NINE, 5)
    for number, octets in enumerate(pieces):
        grow(tmp_path, octets, f"{number}.pcap")
        if number >= 2:
            (tmp_path / "in" / f"{number - 2}.pcap").unlink()
        assert read(once(tmp_path)) == (len(octets), number == 0)
    rows = contents(tmp_path / "lake")
    for number, octets in enumerate(pieces):
        grow(tmp_path, octets, f"{number}.pcap")
    assert len(rows["files"]) == 5 and same_as_one_run(tmp_path)


def test_names_that_come_again(tmp_path: Path, added: Added) -> None:
    """As with `tcpdump -W`: the next run goes on, whichever command it is."""
    pieces = rotated(NINE, 8)
    for number, octets in enumerate(pieces):
        grow(tmp_path, octets, f"{number % 3}.pcap")
        if number % 2:
            added()
        else:
            assert read(once(tmp_path)) == (len(octets), number == 0)
        assert octets_read(tmp_path)[-1] == len(octets)
        assert once(tmp_path).batch is None
    under_their_names(tmp_path, pieces)
    assert same_as_one_run(tmp_path)


def test_octets_that_come_again(tmp_path: Path) -> None:
    """They cannot be compared with what a state does not have: the set is read again."""
    packets = packets_in(TEN.read_bytes())
    at = max(range(len(packets)), key=lambda number: len(packets[number].data))
    first = b"".join(part.octets for part in written(packets[: at + 1], "pcap, little-endian"))
    again = packets[at]._replace(time=packets[at].time + 1000)
    every = [*packets[: at + 1], again, *packets[at + 1 :]]
    octets = b"".join(part.octets for part in written(every, "pcap, little-endian"))
    grow(tmp_path, first)
    once(tmp_path)
    grow(tmp_path, octets)
    assert read(once(tmp_path)) == (len(octets), 1) and same_as_one_run(tmp_path)


def test_octets_that_come_again_in_a_ring(tmp_path: Path) -> None:
    """The set cannot be read again: what is not known any more agrees."""
    packets = packets_in(TEN.read_bytes())
    at = max(range(len(packets)), key=lambda number: len(packets[number].data))
    again = packets[at]._replace(time=packets[at].time + 1000)
    pieces = [
        b"".join(part.octets for part in written(part, "pcap, little-endian"))
        for part in (packets[: at // 2], packets[at // 2 : at + 1], [again, *packets[at + 1 :]])
    ]
    for number, octets in enumerate(pieces):
        grow(tmp_path, octets, f"{number % 2}.pcap")
        assert read(once(tmp_path)) == (len(octets), number == 0)
    (tmp_path / "in" / "0.pcap").rename(tmp_path / "in" / "0.pcap#2")
    grow(tmp_path, pieces[0], "0.pcap")
    assert same_as_one_run(tmp_path)


def test_a_file_that_is_overwritten_while_all_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Because octets came again: then it cannot be read again any more, and goes on from its state."""
    packets = packets_in(TEN.read_bytes())
    at = max(range(len(packets)), key=lambda number: len(packets[number].data))
    again = packets[at]._replace(time=packets[at].time + 1000)
    pieces = [
        b"".join(part.octets for part in written(part, "pcap, little-endian"))
        for part in (
            packets[: at // 2],
            packets[at // 2 : at + 1],
            [again, *packets[at + 1 : at + 5]],
            packets[at + 5 :],
        )
    ]
    for number in range(2):
        grow(tmp_path, pieces[number], f"{number}.pcap")
        once(tmp_path)
    grow(tmp_path, pieces[2], "2.pcap")
    real = FollowedBatch.end

    def end(batch: FollowedBatch) -> Any:
        done = real(batch)
        grow(tmp_path, pieces[3], "0.pcap")
        return done

    watch = watch_of(tmp_path / "in", tmp_path / "lake", follow=True)
    with monkeypatch.context() as patch:
        patch.setattr(FollowedBatch, "end", end)
        with pytest.raises(FilesChanged, match="overwritten meanwhile"):
            watch.turn()
    found = watch.turn()
    watch.close()
    assert found is not None and read(found) == (len(pieces[2]) + len(pieces[3]), 0)
    for name, octets in zip(["0.pcap", "1.pcap", "2.pcap", "0.pcap#2"], pieces, strict=True):
        grow(tmp_path, octets, name)
    assert same_as_one_run(tmp_path)


def test_killed_wherever_it_is(tmp_path: Path) -> None:
    """Between any two steps of it: the rows are those of one run."""
    octets = NINE.read_bytes()
    folder, lake = tmp_path / "in", tmp_path / "lake"
    seed = random.Random(5)
    longest, deaths = 0.2, 0
    for step in range(1, 9):
        grow(tmp_path, octets[: len(octets) * step // 8])
        seconds = "0" if step in (1, 8) else str(seed.uniform(0.001, longest))
        done = subprocess.run(
            [sys.executable, str(IN_PROCESS), str(folder), str(lake), seconds, "follow"],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        deaths += done.returncode == -KILL
        assert done.returncode in (0, -KILL), done.stderr
        if done.returncode == 0:
            longest = max(longest, float(done.stdout))
    assert deaths and same_as_one_run(tmp_path)
