"""Sets that are followed: their rows are those of one run over all files, whatever the batches were."""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from layers.test_tls import recorded, talk
from layers.test_tls_secrets import capture_of, secrets_block
from support.damage import forms_for, packets_in, written
from support.in_process import Here, watch_of
from support.lakes import BUNDLED, CAPTURES, Rows, contents, ordered
from support.sampling import share
from support.tls import Ends

from amqpscope.pipeline import follower, following, watching
from amqpscope.pipeline import rows as rows_of_tables
from amqpscope.pipeline.capture_set import CaptureSet, capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.failure import FilesChanged, PipelineError
from amqpscope.pipeline.followed import FollowedFiles
from amqpscope.pipeline.follower import FollowerTerms, ReadOn, Step
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.object_classes import NotKept
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.schemas import TABLES
from amqpscope.pipeline.watching import Watch, WatchedBatch
from amqpscope.policy.policy import Policy, load_policy

TEN, NINE = CAPTURES / "proton-windows.pcap", CAPTURES / "rabbitmq-large.pcap"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")


class Gathered:
    """Takes rows in place of `PartWriter`, and gives them in place of the files."""

    def __init__(self, *_: object) -> None:
        self._rows: list[Any] = []

    def write(self, name: str, batch: pa.RecordBatch) -> None:
        self._rows += [(name, row) for row in batch.to_pylist()]

    def close(self) -> list[Any]:
        return self._rows


def by_table(found: list[Any]) -> Rows:
    """Rows of `Gathered` by table, in an order of their own."""
    return {name: ordered(row for of, row in found if of == name) for name in TABLES}


def whole(one: CaptureSet) -> Rows:
    """The rows of one run over a set."""
    rows = rows_of_tables.Rows()
    found = Gathered()
    for batches in (read_set(one, rows), rows.batches(True)):
        for name, batch in batches:
            found.write(name, batch)
    return by_table(found.close())


class Following:
    """Follows the set of a directory, and compares its rows with those of one run after each step."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        terms = FollowerTerms(str(folder), tuple(TABLES), rows_of_tables.USUAL_TERMS, {})
        self._followed = follower._FollowedSet(terms)
        self.final: list[Any] = []

    def read_on(self, inode: int = 0) -> int:
        """Read on in the files. How many octets of the last one were read by now. inode: as which the files
        are known, if not as what they are.
        """
        (one,) = capture_sets([str(self._folder)])
        files = FollowedFiles.of(one)
        if files is not None:
            start = max(len(self._followed._fates) - 1, 0)
            news = tuple(file for _, file in files.read[start:])
            inodes = tuple(inode or os.stat(file.path).st_ino for file in news)
            self._followed.read_on(ReadOn(start, news, inodes))
        return self._followed._octets

    def keep(self) -> bytes:
        """The state."""
        return self._followed.keep()

    def step(self) -> bool:
        """The next step. False if there is nothing to be read yet."""
        (one,) = capture_sets([str(self._folder)])
        files = FollowedFiles.of(one)
        if files is None:
            return False
        done = self._followed.step(Step(files.read, files.empty, "", ""))
        self.final += done.final
        assert by_table(self.final + done.open) == whole(one)
        return True


@pytest.fixture
def gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "PartWriter", Gathered)


@pytest.mark.parametrize("ahead", [False, True], ids=["", "read on"])
@pytest.mark.parametrize("capture", share(BUNDLED, 25, "followed"), ids=lambda path: path.stem)
def test_a_file_that_grows(gathered: None, tmp_path: Path, capture: Path, ahead: bool) -> None:
    """It ends in the middle of a record at times, and anywhere in a connection."""
    octets = capture.read_bytes()
    file = tmp_path / capture.name
    random = Random(capture.name)
    followed = Following(tmp_path)
    lengths = sorted(random.randrange(40, len(octets)) for _ in range(12 if ahead else 4))
    for number, length in enumerate((*lengths, len(octets))):
        file.write_bytes(octets[:length])
        if ahead and number % 3:
            assert followed.read_on() in (0, length)
        else:
            stepped = followed.step()
    assert stepped


def test_what_was_read_on_belongs_to_the_next_step(gathered: None, tmp_path: Path) -> None:
    """Until then there is no state, since the lake has other rows. No other file of that name is read."""
    octets = NINE.read_bytes()
    file = tmp_path / "a.pcap"
    followed = Following(tmp_path)
    file.write_bytes(octets[:5000])
    assert followed.step() and followed.keep()
    file.write_bytes(octets[:9000])
    assert followed.read_on(inode=1) == 5000 and followed.keep()
    assert followed.read_on() == 9000
    with pytest.raises(NotKept, match="were read on since the last batch"):
        followed.keep()
    assert followed.step() and followed.keep()


def test_rows_that_wait_are_bounded(gathered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    octets = NINE.read_bytes()
    file = tmp_path / "a.pcap"
    followed = Following(tmp_path)
    file.write_bytes(octets[:5000])
    assert followed.step()
    monkeypatch.setattr(follower, "MAX_AHEAD", 1000)
    file.write_bytes(octets[:9000])
    (tmp_path / "b.pcap").write_bytes(rotated(NINE, 4)[3])
    assert followed.read_on() == 5500
    assert followed.read_on() <= 6000
    assert followed.step()


@pytest.mark.parametrize("how", ["replaced", "overwritten", "shorter", "cut"])
def test_what_was_read_on_was_another_file(
    gathered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The set is given up: what its process knows is wrong."""
    octets = NINE.read_bytes()
    file = tmp_path / "a.pcap"
    followed = Following(tmp_path)
    file.write_bytes(octets[:5000])
    assert followed.step()
    file.write_bytes(octets)
    if how == "cut":
        (one,) = capture_sets([str(tmp_path)])
        file.write_bytes(octets[:7000])
        with pytest.raises(PipelineError, match="fewer octets than were to be read"):
            followed._followed.read_on(ReadOn(0, one.files, (file.stat().st_ino,)))
    elif how == "overwritten":
        (one,) = capture_sets([str(tmp_path)])
        file.write_bytes(octets[:24] + bytes(len(octets)))
        with pytest.raises(PipelineError, match="was overwritten when it was read"):
            followed._followed.read_on(ReadOn(0, one.files, (file.stat().st_ino,)))
    elif how == "replaced":
        answers = iter([True, False])
        monkeypatch.setattr(follower, "_is", lambda *_: next(answers))
        with pytest.raises(PipelineError, match="was replaced when it was read"):
            followed.read_on()
    else:
        assert followed.read_on() == len(octets)
        file.write_bytes(octets[:7000])
        with pytest.raises(PipelineError, match="fewer octets than were read"):
            followed.step()


def rotated(capture: Path, pieces: int) -> list[bytes]:
    """A capture as files of a rotated set, in one of the forms of captures."""
    packets = packets_in(capture.read_bytes())
    each = -(-len(packets) // pieces)
    form = Random(capture.name).choice(forms_for(packets))
    return [
        b"".join(part.octets for part in written(packets[at : at + each], form))
        for at in range(0, len(packets), each)
    ]


@pytest.mark.parametrize("capture", [TEN, NINE], ids=lambda path: path.stem)
def test_files_that_follow_one_another(gathered: None, tmp_path: Path, capture: Path) -> None:
    """Connections go on in the next file. What is over is written when it is over."""
    pieces = rotated(capture, 4)
    followed = Following(tmp_path)
    random = Random(capture.name)
    (tmp_path / "notes.txt").write_text("no capture\n")
    kept = []
    for number, octets in enumerate(pieces):
        file = tmp_path / f"{number}.pcap"
        for length in (0, 24, random.randrange(40, len(octets)), len(octets)):
            file.write_bytes(octets[:length])
            if number % 2 or length == 24:
                followed.read_on()
            if number != 2 or length != len(octets):
                followed.step()
        kept.append(len([row for name, row in followed.final if name == "frames"]))
    assert 0 < kept[0] < kept[1] <= kept[2] < kept[3]


Watched = Callable[..., Watch]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Watches of `in`, for the lake `lake`, whose processes end with the test. They read on when asked to."""
    monkeypatch.setattr(watching, "_LOOKS_APART", 0.0)
    (tmp_path / "in").mkdir()
    made: list[Watch] = []

    def make(**terms: Any) -> Watch:
        made.append(watch_of(tmp_path / "in", tmp_path / "lake", **{"follow": True, **terms}))
        return made[-1]

    yield make
    for watch in made:
        watch.close()


def turn(watch: Watch) -> WatchedBatch:
    """A turn that commits."""
    found = watch.turn()
    assert found is not None and found.batch is not None
    return found.batch


def same_as_one_run(tmp_path: Path) -> bool:
    """Whether the lake has the rows of one run over all files."""
    folder, one = str(tmp_path / "in"), tmp_path / "whole"
    spark: Any = None
    Here(spark, make_plan(capture_sets([folder]), 1, "chain"), None, [folder]).write(str(one))
    return contents(tmp_path / "lake") == contents(one)


def processes(watch: Watch) -> dict[str, int]:
    """The processes that follow sets, by the names of their sets."""
    return {one.one.name: one._process.pid for one in watch._followers._followed.values()}


def test_only_what_is_new_is_read(watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second change of a set on. Its rows stay as they are where small files are put together."""
    monkeypatch.setattr(watching, "MOST_NEEDLESS", 2)
    watch = watched()
    pieces = rotated(NINE, 6)
    read = []
    for number, octets in enumerate(pieces):
        (tmp_path / "in" / f"{number}.pcap").write_bytes(octets)
        batch = turn(watch)
        read.append((batch.files, batch.octets))
        watch.care()
        assert same_as_one_run(tmp_path)
    sizes = [len(octets) for octets in pieces]
    assert read == [(1, sizes[0]), (2, sum(sizes[:2])), *((1, size) for size in sizes[2:])]
    assert [run.kind for run in Lake(str(tmp_path / "lake")).runs()] == [
        *(*["append"] * 3, "compact"),
        *(*["append"] * 2, "compact"),
        "append",
    ]
    rows = Lake(str(tmp_path / "lake")).run_rows()
    assert [(row["files"], row["octets"]) for row in rows if row["kind"] == "append"] == read
    assert watch.turn() is None
    os.utime(tmp_path / "in" / "0.pcap")
    found = watch.turn()
    assert found is not None and found.batch is None


@pytest.mark.parametrize("killed", [False, True])
def test_a_process_is_there_before_it_is_needed(watched: Watched, tmp_path: Path, killed: bool) -> None:
    """It follows the set that changes next, unless it was killed meanwhile: then another one takes its place.
    It ends with the watch.
    """
    watch = watched(written=2)
    a, b = tmp_path / "in" / "a", tmp_path / "in" / "b"
    followers = watch._followers
    for folder in (a, b):
        folder.mkdir()
        (folder / "0.pcap").write_bytes(rotated(NINE, 2)[0])
    turn(watch)
    waiting = followers._spare
    assert waiting is not None and waiting.poll() is None and not processes(watch)
    if killed:
        waiting.kill()
        waiting.wait()
    (a / "1.pcap").write_bytes(rotated(NINE, 2)[1])
    turn(watch)
    assert same_as_one_run(tmp_path)
    assert (processes(watch) == {str(a): waiting.pid}) == (not killed)
    last = followers._spare
    assert len(processes(watch)) == 1 and last is not None and followers.ready
    watch.close()
    assert last.returncode is not None and followers._spare is None


def test_who_is_followed(watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as may be; the one without news for longest makes room."""
    monkeypatch.setattr(following, "MAX_FOLLOWERS", 1)
    watch = watched()
    a, b = tmp_path / "in" / "a", tmp_path / "in" / "b"
    pieces = {a: rotated(TEN, 4), b: rotated(NINE, 4)}

    def write(folder: Path, number: int) -> None:
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.pcap").write_bytes(pieces[folder][number])

    write(a, 0)
    turn(watch)
    assert not processes(watch)
    write(a, 1)
    turn(watch)
    assert list(processes(watch)) == [str(a)]
    write(b, 0)
    turn(watch)
    assert list(processes(watch)) == [str(a)]
    write(a, 2)
    write(b, 1)
    turn(watch)
    assert list(processes(watch)) == [str(a)] and same_as_one_run(tmp_path)
    write(b, 2)
    turn(watch)
    assert list(processes(watch)) == [str(b)] and same_as_one_run(tmp_path)
    write(a, 3)
    write(b, 3)
    turn(watch)
    assert list(processes(watch)) == [str(b)] and same_as_one_run(tmp_path)
    for path in b.iterdir():
        path.unlink()
    watch.turn()
    assert not processes(watch)


@pytest.mark.parametrize("octets", [1, 1 << 20])
def test_who_is_followed_at_once(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, octets: int
) -> None:
    """Of new sets, with `--once`, those that one process reads in reasonable time."""
    monkeypatch.setattr(following, "_AT_ONCE", octets)
    (tmp_path / "in" / "a.pcap").write_bytes(NINE.read_bytes())
    watch = watched(at_once=True)
    turn(watch)
    assert bool(processes(watch)) == (octets > 1)


@pytest.mark.parametrize("seconds", [-5, 1, 3])
def test_a_set_that_is_written_is_followed_at_once(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """By a process that is there already. No set is read twice then. seconds: since the last change."""
    monkeypatch.setattr(watching, "_WORTH_IT", 0)
    watch = watched(written=2, today=lambda: 1000 + seconds)
    pieces = rotated(NINE, 4)

    def write(number: int, changed: int) -> None:
        path = tmp_path / "in" / f"{number}.pcap"
        path.write_bytes(pieces[number])
        os.utime(path, (changed, changed))

    assert watch.turn() is not None
    spare = watch._followers._spare
    assert spare is not None
    write(0, 500)
    write(1, 1000)
    assert turn(watch).octets == len(pieces[0]) + len(pieces[1])
    written = seconds < 2
    assert processes(watch) == ({str(tmp_path / "in"): spare.pid} if written else {})
    write(2, 1000)
    assert turn(watch).octets == sum(len(piece) for piece in pieces[2 if written else 0 : 3])
    write(3, 1000)
    assert turn(watch).octets == len(pieces[3])
    assert same_as_one_run(tmp_path)


def test_which_new_sets_are_followed_at_once(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One a batch that is large enough. A set makes room for it only if its state is written already."""
    monkeypatch.setattr(following, "MAX_FOLLOWERS", 2)
    monkeypatch.setattr(following, "_KEEP_SHARE", 1e9)  # no state is written until it is asked for
    pieces = dict(zip("zabcdef", rotated(NINE, 7), strict=True))
    least = min(map(len, pieces.values()))
    monkeypatch.setattr(watching, "_WORTH_IT", least)
    watch = watched(written=2, today=lambda: 1000, set_by="file")

    def write(name: str, octets: bytes = b"") -> None:
        path = tmp_path / "in" / f"{name}.pcap"
        path.write_bytes(octets or pieces[name])
        os.utime(path, (1000, 1000))

    def followed() -> list[str]:
        return sorted(Path(name).stem for name in processes(watch))

    watch.turn()
    write("z", pieces["z"][: least - 1])
    turn(watch)
    assert followed() == []
    write("a")
    write("b")
    turn(watch)
    assert followed() == ["a"] and watch._followers.ready
    write("c")
    turn(watch)
    assert followed() == ["a", "c"]
    write("d")
    turn(watch)
    assert followed() == ["a", "c"]
    assert watch._states is not None
    watch._followers.keep(watch._states, True)
    write("e")
    turn(watch)
    assert followed() == ["c", "e"]
    write("a", pieces["a"] + pieces["f"][24:])
    assert turn(watch).octets == len(pieces["f"]) - 24
    assert followed() == ["a", "e"]
    folder, one, spark = str(tmp_path / "in"), tmp_path / "whole", None
    Here(spark, make_plan(capture_sets([folder], "file"), 1, "chain"), None, [folder]).write(str(one))
    assert contents(tmp_path / "lake") == contents(one)


def test_what_its_process_cannot_go_on_with(watched: Watched, tmp_path: Path) -> None:
    """The set is analysed as a whole then, and followed again later."""
    watch = watched()
    folder = tmp_path / "in"
    pieces = rotated(NINE, 8)

    def write(number: int, length: int | None = None) -> bool:
        (folder / f"{number}.pcap").write_bytes(pieces[number][:length])
        turn(watch)
        assert same_as_one_run(tmp_path)
        return bool(processes(watch))

    assert [write(2), write(3), write(4)] == [False, True, True]
    # A file comes late.
    assert [write(1), write(5, -9), write(6)] == [False, True, True]
    # A file that is not the last grows.
    assert [write(5), write(7)] == [False, True]
    # A file overlaps others in time.
    packets = packets_in(NINE.read_bytes())
    pieces.append(b"".join(part.octets for part in written(packets[1::2], "pcap, little-endian")))
    assert [write(8), write(0)] == [False, False]


def test_a_watch_that_begins_again(watched: Watched, tmp_path: Path) -> None:
    """A set that has changed meanwhile is analysed as a whole once, and followed, if there is no state."""
    pieces = rotated(TEN, 4)
    for number, octets in enumerate(pieces):
        (tmp_path / "in" / f"{number}.pcap").write_bytes(octets)
        if number % 2 == 0:
            watch = watched(fresh=True)
        batch = turn(watch)
        assert (batch.whole, bool(processes(watch))) == [(1, False), (1, True), (1, True), (0, True)][number]
    assert same_as_one_run(tmp_path)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_process_that_is_killed(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    """Nothing is added then. The next turn goes on from the state, or analyses the set as a whole."""
    monkeypatch.setattr(following, "_KEEP_SHARE", 0.0)
    watch = watched(fresh=fresh)
    pieces = rotated(TEN, 6)
    for number, octets in enumerate(pieces):
        (tmp_path / "in" / f"{number}.pcap").write_bytes(octets)
        if number == 3:
            watch.cancel()
            before = contents(tmp_path / "lake")
            with pytest.raises(FilesChanged, match="the process that follows the files was killed"):
                watch.turn()
            assert contents(tmp_path / "lake") == before and not processes(watch)
        assert turn(watch).whole == (number in (0, 1, 3 if fresh else 0))
        assert bool(processes(watch)) == (number > 0)
    assert same_as_one_run(tmp_path)
    assert not (tmp_path / "lake" / "_staging").exists()


def test_a_file_that_is_overwritten(watched: Watched, tmp_path: Path) -> None:
    """It is another capture, or its beginning is another one: no row of what was there stays wrongly."""
    watch = watched()
    one, other = rotated(TEN, 3), rotated(NINE, 3)
    for number in range(2):
        (tmp_path / "in" / f"{number}.pcap").write_bytes(one[number])
        turn(watch)
    assert processes(watch)
    (tmp_path / "in" / "1.pcap").write_bytes(other[1])
    turn(watch)
    assert list(processes(watch)) == [f"{tmp_path / 'in'}#2"]
    frames = contents(tmp_path / "lake")["frames"]
    assert {row["capture"].rpartition("/")[2] for row in frames} == {"0.pcap", "1.pcap"}
    assert len({row["capture_set"] for row in frames}) == 2


def test_ring_buffer(watched: Watched, tmp_path: Path) -> None:
    """What was read of files that are deleted is known: the set goes on."""
    watch = watched()
    pieces = rotated(NINE, 8)
    read = []
    for number, octets in enumerate(pieces):
        (tmp_path / "in" / f"{number}.pcap").write_bytes(octets)
        if number >= 4:
            (tmp_path / "in" / f"{number - 4}.pcap").unlink()
        read.append(turn(watch).files)
        assert "".join(name.rpartition("/")[2] for name in processes(watch)) == ("in" if number else "")
    assert read == [1, 2, 1, 1, 1, 1, 1, 1]
    for number, octets in enumerate(pieces):
        (tmp_path / "in" / f"{number}.pcap").write_bytes(octets)
    assert same_as_one_run(tmp_path)


def ring_name(number: int, files: int = 3) -> str:
    """What tables call a piece in a ring of so many files whose names come again."""
    again = number // files
    return f"{number % files}.pcap" + (f"#{again + 1}" if again else "")


def under_their_names(tmp_path: Path, pieces: list[bytes], files: int = 3) -> None:
    """All files that were ever in a ring, as the tables call them, in its directory."""
    for file in (tmp_path / "in").iterdir():
        file.unlink()
    for number, octets in enumerate(pieces):
        (tmp_path / "in" / ring_name(number, files)).write_bytes(octets)


@pytest.mark.parametrize(
    ("capture", "files"), [(TEN, 2), (NINE, 3)], ids=["proton-windows", "rabbitmq-large"]
)
def test_ring_whose_names_come_again(watched: Watched, tmp_path: Path, capture: Path, files: int) -> None:
    """As with `tcpdump -W`: a newer file has a name of its own in the tables, and connections go on. In the
    end one has come there for the third time.
    """
    watch = watched()
    pieces = rotated(capture, 2 * files + 1)
    random = Random(capture.name)
    whole = 0
    for number, octets in enumerate(pieces):
        lengths = {random.randrange(40, len(octets)), len(octets)} | ({0, 24} if number == files else set())
        for length in sorted(lengths) if number else [len(octets)]:
            (tmp_path / "in" / f"{number % files}.pcap").write_bytes(octets[:length])
            batch = turn(watch)
            whole += batch.whole
            assert batch.files == 1 or number <= 1
        assert watch.turn() is None
        assert list(processes(watch)) == ([str(tmp_path / "in")] if number else [])
    assert whole == 2
    rows = contents(tmp_path / "lake")
    places = {(row["connection"], row["capture"]) for row in rows["frames"]}
    # The first or the last has no frame of it.
    assert max(Counter(name for name, _ in places).values()) >= len(pieces) - 1
    under_their_names(tmp_path, pieces, files)
    assert same_as_one_run(tmp_path)


def test_ring_that_goes_on_meanwhile(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is overwritten during a batch that does not read it, or the batch fails: the set goes on."""
    monkeypatch.setattr(following, "_KEEP_SHARE", 0.0)
    watch = watched()
    pieces = rotated(NINE, 8)
    real = following.FollowedBatch.end
    meanwhile: list[int] = []

    def end(batch: following.FollowedBatch) -> Any:
        done = real(batch)
        for number in meanwhile:
            (tmp_path / "in" / f"{number % 3}.pcap").write_bytes(pieces[number])
        meanwhile.clear()
        return done

    monkeypatch.setattr(following.FollowedBatch, "end", end)
    for number, octets in enumerate(pieces):
        if number == 5:
            continue
        meanwhile += [5] if number == 4 else []
        (tmp_path / "in" / f"{number % 3}.pcap").write_bytes(octets)
        if number == 7:
            watch.cancel()
            with pytest.raises(FilesChanged):
                watch.turn()
        batch = turn(watch)
        assert (batch.files, batch.whole) == (1, 0) or number in (0, 1, 6)
    under_their_names(tmp_path, pieces)
    assert same_as_one_run(tmp_path)


def test_ring_with_a_file_of_such_a_name(watched: Watched, tmp_path: Path) -> None:
    """The name that the tables would give the newer file is that of another one."""
    watch = watched()
    pieces = rotated(NINE, 5)
    for name, octets in zip(["0.pcap", "0.pcap#2", "1.pcap", "0.pcap"], pieces, strict=False):
        (tmp_path / "in" / name).write_bytes(octets)
        turn(watch)
    (tmp_path / "in" / "0.pcap").rename(tmp_path / "in" / "0.pcap#3")
    (tmp_path / "in" / "0.pcap").write_bytes(pieces[0])
    assert len(contents(tmp_path / "lake")["files"]) == 4 and same_as_one_run(tmp_path)


def test_ring_and_other_files(watched: Watched, tmp_path: Path) -> None:
    """What comes in place of a file is no capture at first; and a file has the name that a newer one got."""
    watch = watched()
    pieces = rotated(NINE, 4)
    noise = b"no capture" * len(pieces[0])
    for name, octets in [
        ("0.pcap", pieces[0]),
        ("1.pcap", pieces[1]),
        ("0.pcap", noise),
        ("0.pcap", pieces[2]),
        ("0.pcap#2", pieces[3]),
    ]:
        (tmp_path / "in" / name).write_bytes(octets)
        assert turn(watch).whole == (octets in pieces[:2])
    for name, octets in zip(["0.pcap", "1.pcap", "0.pcap#2", "0.pcap#2#2"], pieces, strict=True):
        (tmp_path / "in" / name).write_bytes(octets)
    assert same_as_one_run(tmp_path)


def test_states_of_files_that_follow_one_another(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be of a ring, which a kill would set apart: they are kept more often than others."""
    monkeypatch.setattr(following, "_KEEP_SHARE", 1e9)
    monkeypatch.setattr(following, "_ROTATED_SHARE", 0.0)
    watch = watched()
    pieces = rotated(NINE, 3)
    lake = Lake(str(tmp_path / "lake"))
    fits = []
    for name, octets in [
        ("0.pcap", pieces[0][:-60]),
        ("0.pcap", pieces[0][:-30]),
        ("0.pcap", pieces[0]),
        ("1.pcap", pieces[1][:-30]),
        ("1.pcap", pieces[1]),
    ]:
        (tmp_path / "in" / name).write_bytes(octets)
        turn(watch)
        fits.append([name.rpartition("-")[2] for name in lake.directory.states()] == [lake.runs()[-1].name])
    assert fits == [False, False, False, True, True]


def test_rings_that_take_turns(watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are more than can be followed at a time: each goes on from its state."""
    monkeypatch.setattr(following, "MAX_FOLLOWERS", 1)
    watch = watched()
    pieces = {"a": rotated(TEN, 6), "b": rotated(NINE, 6)}
    for name in pieces:
        (tmp_path / "in" / name).mkdir()
        for number in range(3):
            (tmp_path / "in" / name / f"{number % 2}.pcap").write_bytes(pieces[name][number])
            turn(watch)
    for number in range(3, 6):
        for name in pieces:
            (tmp_path / "in" / name / f"{number % 2}.pcap").write_bytes(pieces[name][number])
            assert turn(watch).whole == 0 and list(processes(watch)) == [str(tmp_path / "in" / name)]
    assert len({row["capture_set"] for row in contents(tmp_path / "lake")["files"]}) == 2


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_rings_with_news_at_once(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """There are more than can be followed at a time: for a batch, all are, whichever it was before."""
    monkeypatch.setattr(following, "MAX_FOLLOWERS", 1)
    watch = watched()
    pieces = {"a": rotated(TEN, 6), "b": rotated(NINE, 6)}

    def write(name: str, number: int) -> None:
        (tmp_path / "in" / name / f"{number % 2}.pcap").write_bytes(pieces[name][number])

    for name in order:
        (tmp_path / "in" / name).mkdir()
        for number in range(3):
            write(name, number)
            turn(watch)
    for number in range(3, 6):
        for name in order:
            write(name, number)
        batch = turn(watch)
        assert (batch.files, batch.whole, len(processes(watch))) == (2, 0, 1)
    assert len({row["capture_set"] for row in contents(tmp_path / "lake")["files"]}) == 2
    watch.close()
    for name in order:
        for number in range(6):
            (tmp_path / "in" / name / ring_name(number, 2)).write_bytes(pieces[name][number])
    assert same_as_one_run(tmp_path)


def test_a_set_that_made_room(watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its state was kept then: it goes on with its next change, also if a file of it is gone by then."""
    monkeypatch.setattr(following, "MAX_FOLLOWERS", 1)
    monkeypatch.setattr(following, "_ROTATED_SHARE", 1e9)
    monkeypatch.setattr(following, "_KEEP_SHARE", 1e9)
    watch = watched()
    pieces = {"a": rotated(TEN, 3), "b": rotated(NINE, 3)}
    for name in pieces:
        (tmp_path / "in" / name).mkdir()
        for number in range(2):
            (tmp_path / "in" / name / f"{number}.pcap").write_bytes(pieces[name][number])
            turn(watch)
    assert list(processes(watch)) == [str(tmp_path / "in" / "b")]
    (tmp_path / "in" / "a" / "0.pcap").write_bytes(pieces["a"][2])
    assert turn(watch).whole == 0
    assert list(processes(watch)) == [str(tmp_path / "in" / "a")]


def test_a_ring_that_could_not_go_on_at_once(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch of a watch fails, for whatever reason: the state is used once more."""
    watch = watched()
    for number, octets in enumerate(rotated(NINE, 5)):
        (tmp_path / "in" / f"{number % 2}.pcap").write_bytes(octets)
        if number == 4:
            watch.close()
            watch = watched()
            with monkeypatch.context() as patch:
                patch.setattr(following.FollowedBatch, "end", fails)
                with pytest.raises(FilesChanged, match="made up"):
                    watch.turn()
        assert turn(watch).whole == (number < 2)


def fails(*_: object) -> None:
    raise FilesChanged("made up")


@pytest.mark.parametrize("close", [False, True])
def test_files_are_read_on_between_turns(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, close: bool
) -> None:
    """From the first batch on that was committed. A watch that ends without another turn keeps no state."""
    monkeypatch.setattr(following, "_KEEP_SHARE", 1e9)
    watch = watched()
    octets = NINE.read_bytes()
    file = tmp_path / "in" / "a.pcap"
    lengths = [*range(5000, len(octets), 4000), len(octets)]
    for number, length in enumerate(lengths):
        with file.open("ab") as growing:
            growing.write(octets[growing.tell() : length])
        watch.read_on()
        assert watch.ahead == (number > 1)
        if number % 3 == 2:
            watch.read_on()  # nothing is new
        if length < len(octets) and (number % 2 or number < 2):
            turn(watch)
            assert not watch.ahead and same_as_one_run(tmp_path)
    assert watch.ahead
    if close:
        assert watch.close() == [
            f"{tmp_path / 'in'}: no state is kept: the files were read on since the last batch"
        ]
        watch = watched()
    turn(watch)
    assert same_as_one_run(tmp_path)


@pytest.mark.parametrize("how", ["late", "deleted", "rewritten", "grows"])
def test_what_contradicts_files_that_were_read_on(watched: Watched, tmp_path: Path, how: str) -> None:
    """The set goes on from its state of the last batch."""
    watch = watched()
    pieces = rotated(NINE, 6)
    folder = tmp_path / "in"

    def write(number: int, length: int | None = None) -> None:
        (folder / f"{number}.pcap").write_bytes(pieces[number][:length])

    for number in range(3):
        write(number)
        turn(watch)
    if how == "late":
        write(4)
    elif how == "grows":
        write(3, -20)
        write(4)
    else:
        write(3)
    watch.read_on()
    assert watch.ahead
    if how == "deleted":
        (folder / "3.pcap").unlink()
        write(4)
    elif how == "rewritten":
        (folder / "3.pcap").write_bytes(pieces[4])
    else:
        write(3)
    assert turn(watch).whole == 0
    assert same_as_one_run(tmp_path)


def test_looks_between_turns_take_a_share_of_the_time(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it takes long to find out what files there are, that is done seldom."""
    watch = watched()
    pieces = rotated(NINE, 4)
    for number in range(2):
        (tmp_path / "in" / f"{number}.pcap").write_bytes(pieces[number])
        turn(watch)
    monkeypatch.setattr(watching, "_LOOKS_APART", 1e9)
    watch.read_on()
    (tmp_path / "in" / "2.pcap").write_bytes(pieces[2])
    watch.read_on()
    assert not watch.ahead
    watch._read_on_at = 0.0
    watch.read_on()
    assert watch.ahead


def test_a_set_that_has_lost_files_is_not_read_on(watched: Watched, tmp_path: Path) -> None:
    """If what was read ahead proved wrong, no other process could take over."""
    watch = watched()
    pieces = rotated(NINE, 5)
    for number in range(5):
        (tmp_path / "in" / f"{number}.pcap").write_bytes(pieces[number])
        watch.read_on()
        assert watch.ahead == (number == 2)
        if number == 2:
            (tmp_path / "in" / "0.pcap").unlink()
        turn(watch)


def test_reading_on_that_fails(watched: Watched, tmp_path: Path) -> None:
    """The next turn says so, and the one behind it goes on from the state, also if a file was cut."""
    watch = watched()
    octets = NINE.read_bytes()
    file = tmp_path / "in" / "a.pcap"
    for length in (5000, 6000):
        file.write_bytes(octets[:length])
        turn(watch)
    (followed,) = watch._followers._followed.values()
    longer = followed.one.files[0]._replace(size=20000)
    followed._ask(ReadOn(0, (longer,), (file.stat().st_ino,)))
    file.write_bytes(octets[:8000])
    with pytest.raises(FilesChanged, match="fewer octets than were to be read"):
        watch.turn()
    assert turn(watch).octets == 2000 and same_as_one_run(tmp_path)
    file.write_bytes(octets[:9000])
    turn(watch)
    file.write_bytes(octets[:12000])
    watch.read_on()
    assert watch.ahead
    file.write_bytes(octets[:11000])
    assert turn(watch).whole == 0
    assert same_as_one_run(tmp_path)


def test_a_process_that_was_closed(watched: Watched, tmp_path: Path) -> None:
    """Nothing is added, as by one that was killed."""
    watch = watched()
    for number, octets in enumerate(rotated(NINE, 3)):
        (tmp_path / "in" / f"{number}.pcap").write_bytes(octets)
        if number == 2:
            for one in watch._followers._followed.values():
                one.close()
            with pytest.raises(FilesChanged, match="the process that follows the files was killed"):
                watch.turn()
        turn(watch)
    assert same_as_one_run(tmp_path)


@pytest.mark.parametrize("set_by", [r"([a-z]+)\.pcap[0-9]$", r"([a-z]+)\.pcap", "directory"])
def test_ring_whose_set_has_a_name_of_its_own(watched: Watched, tmp_path: Path, set_by: str) -> None:
    """Without a state, what is new is a set of its own, and no row is there twice."""
    watch = watched(set_by=set_by)
    pieces = rotated(NINE, 5)
    for number in range(4):
        (tmp_path / "in" / f"tap.pcap{number % 3}").write_bytes(pieces[number])
        turn(watch)
    watch.close()
    before = contents(tmp_path / "lake")["files"]
    assert [row["capture"].rpartition("/")[2] for row in before].count("tap.pcap0#2") == 1
    watch = watched(set_by=set_by, fresh=True)
    (tmp_path / "in" / "tap.pcap1").write_bytes(pieces[4])
    turn(watch)
    (name,) = {row["capture_set"] for row in before}
    found = [(row["capture_set"], row["capture"]) for row in contents(tmp_path / "lake")["files"]]
    earlier = [(name, row["capture"]) for row in before]
    assert sorted(found) == sorted([*earlier, (f"{name}#2", f"{tmp_path / 'in'}/tap.pcap1")])


def test_a_file_with_the_name_of_a_newer_one(watched: Watched, tmp_path: Path) -> None:
    """It is no newer one, so what is allowed for the other file is not for this one."""
    allow = tmp_path / "amqpscope.toml"
    allow.write_text('[[allow]]\nreason = "known"\nrule = "*"\ncapture = "0.pcap"\n')
    policy = load_policy(str(allow))
    watch = watched(policy=lambda: policy)
    pieces = rotated(CAPTURES / "amqplib-channel-errors.pcap", 4)
    for name, octets in zip(["0.pcap", "0.pcap#2", "1.pcap", "0.pcap"], pieces, strict=True):
        (tmp_path / "in" / name).write_bytes(octets)
        turn(watch)
    found = contents(tmp_path / "lake")["findings"]
    excused = {(row["capture"].rpartition("/")[2], bool(row["suppressed"])) for row in found}
    assert excused == {("0.pcap", True), ("0.pcap#2", False), ("1.pcap", False), ("0.pcap#3", True)}


def test_ring_and_the_allow_list(watched: Watched, tmp_path: Path) -> None:
    """An entry names a file as it is called in its directory."""
    allow = tmp_path / "amqpscope.toml"
    allow.write_text('[[allow]]\nreason = "known"\nrule = "*"\ncapture = "0.pcap"\n')
    policy = load_policy(str(allow))
    watch = watched(policy=lambda: policy)
    for number, octets in enumerate(rotated(CAPTURES / "amqplib-channel-errors.pcap", 4)):
        (tmp_path / "in" / f"{number % 2}.pcap").write_bytes(octets)
        turn(watch)
    found = contents(tmp_path / "lake")["findings"]
    excused = {(row["capture"].rpartition("/")[2], bool(row["suppressed"])) for row in found}
    assert excused == {("0.pcap", True), ("1.pcap", False), ("0.pcap#2", True), ("1.pcap#2", False)}


def test_ring_that_was_faster(watched: Watched, tmp_path: Path) -> None:
    """The newest file was not read to its end when it was overwritten: what follows is a set of its own."""
    watch = watched()
    pieces = rotated(NINE, 7)
    for number in range(3):
        octets = pieces[number]
        (tmp_path / "in" / f"{number}.pcap").write_bytes(octets[: len(octets) - 20 * (number == 2)])
        turn(watch)
    for number in range(3, 6):
        (tmp_path / "in" / f"{number - 3}.pcap").write_bytes(pieces[number])
    turn(watch)
    found = {(row["capture_set"], row["capture"]) for row in contents(tmp_path / "lake")["files"]}
    folder = str(tmp_path / "in")
    assert found == {
        (name, f"{folder}/{number}.pcap") for name in (folder, f"{folder}#2") for number in range(3)
    }
    assert list(processes(watch)) == [f"{folder}#2"]
    (tmp_path / "in" / "0.pcap").write_bytes(pieces[6])
    assert turn(watch).whole == 0
    found = {(row["capture_set"], row["capture"]) for row in contents(tmp_path / "lake")["files"]}
    assert len(found) == 7 and (f"{folder}#2", f"{folder}/0.pcap#2") in found


@pytest.mark.parametrize("fresh", [False, True])
def test_ring_and_another_watch(watched: Watched, tmp_path: Path, fresh: bool) -> None:
    """It knows the files under their names in the tables. Without a state, new ones are another set."""
    watch = watched()
    folder = tmp_path / "in"
    pieces = rotated(NINE, 8)
    for number in range(5):
        (folder / f"{number % 3}.pcap").write_bytes(pieces[number][: -20 if number == 4 else None])
        turn(watch)
    watch.close()
    before = contents(tmp_path / "lake")
    watch = watched(fresh=fresh)
    found = watch.turn()
    assert found is not None and found.batch is None and contents(tmp_path / "lake") == before
    (folder / "1.pcap").write_bytes(pieces[4])
    found = watch.turn()
    assert found is not None and (found.batch is None) == fresh
    assert [file.path for file in found.added.grown] == ([str(folder / "1.pcap")] if fresh else [])
    (folder / "2.pcap").write_bytes(pieces[5])
    turn(watch)
    found_files = [
        (row["capture_set"], row["capture"].rpartition("/")[2])
        for row in contents(tmp_path / "lake")["files"]
    ]
    names = [(str(folder), ring_name(number)) for number in range(5)]
    newest = (f"{folder}#2", "2.pcap") if fresh else (str(folder), ring_name(5))
    assert sorted(found_files) == sorted([*names, newest])
    if not fresh:
        under_their_names(tmp_path, pieces[:6])
        assert same_as_one_run(tmp_path)


def test_ring_buffer_that_nobody_has_followed(watched: Watched, tmp_path: Path) -> None:
    """The files after one that was deleted are a set of their own, which is followed, too."""
    pieces = rotated(NINE, 6)
    watch = watched(follow=False)
    for number, octets in enumerate(pieces):
        (tmp_path / "in" / f"{number}.pcap").write_bytes(octets)
        if number >= 2:
            (tmp_path / "in" / f"{number - 2}.pcap").unlink()
        if number == 3:
            watch = watched()
        turn(watch)
    assert list(processes(watch)) == [f"{tmp_path / 'in'}#2"]
    rows = contents(tmp_path / "lake")
    assert len(rows["files"]) == 6


def test_a_policy_that_changes(watched: Watched, tmp_path: Path) -> None:
    """As on the day on which an entry of the allow-list expires."""
    policies = [Policy() for _ in range(5)]
    policies[3]._allowances["x"] = []
    given = iter(policies)
    watch = watched(policy=lambda: next(given))
    seen = []
    for number, octets in enumerate(rotated(TEN, 5)):
        (tmp_path / "in" / f"{number}.pcap").write_bytes(octets)
        turn(watch)
        seen.append(bool(processes(watch)))
    assert seen == [False, True, True, False, True]


def test_secrets_that_come_later(gathered: None, tmp_path: Path) -> None:
    """A connection that was read may have needed them: the set is to be read as a whole."""
    pytest.importorskip("cryptography")
    recording = recorded(talk(), Ends.make("1.3"))
    octets = capture_of(recording).capture.pcapng()
    followed = Following(tmp_path)
    (tmp_path / "a.pcapng").write_bytes(octets)
    followed.step()
    (tmp_path / "a.pcapng").write_bytes(octets + secrets_block(recording.keylog))
    with pytest.raises(PipelineError, match="secrets of TLS that an earlier connection may have needed"):
        followed.step()


def test_a_set_whose_secrets_came_later(watched: Watched, tmp_path: Path) -> None:
    """Behind the batch that has read it as a whole, it is followed no more; other sets are."""
    pytest.importorskip("cryptography")
    recording = recorded(talk(), Ends.make("1.3"))
    octets = capture_of(recording).capture.pcapng()
    names = struct.pack("<IIHHI", 4, 16, 0, 0, 16)  # a block without any
    (tmp_path / "in" / "b").mkdir()
    watch = watched()
    for number, piece in enumerate(rotated(NINE, 6)):
        secrets = secrets_block(recording.keylog) if number else b""
        (tmp_path / "in" / "a.pcapng").write_bytes(octets + secrets + names * number)
        (tmp_path / "in" / "b" / f"{number}.pcap").write_bytes(piece)
        assert turn(watch).whole == (1 if number > 1 else 2)
        assert list(processes(watch)) == ([str(tmp_path / "in" / "b")] if number else [])
    assert same_as_one_run(tmp_path)
