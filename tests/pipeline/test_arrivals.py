"""`pipeline watch --lateness`: a file that comes late is read in its place, and nothing is read twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pipeline.test_following import rotated, same_as_one_run, under_their_names
from support.commands import amqpscope
from support.in_process import watch_of
from support.lakes import CAPTURES, contents

from amqpscope.pipeline.watching import Watch

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")

PIECES = rotated(CAPTURES / "rabbitmq-large.pcap", 6)


class Watching:
    """A watch of `in` by a clock that stands still, and what its last turn has read. today: how far the time
    of files is ahead of that clock.
    """

    def __init__(self, tmp_path: Path, **terms: Any) -> None:
        self.folder = tmp_path / "in"
        self.folder.mkdir(exist_ok=True)
        self.now = self.today = 0.0
        usual = {"follow": True, "lateness": 30.0}
        self.watch: Watch = watch_of(
            self.folder,
            tmp_path / "lake",
            lambda: self.now,
            lambda: self.now + self.today,
            **(usual | terms),
        )

    def write(self, number: int, length: int | None = None, name: str = "") -> None:
        (self.folder / (name or f"{number}.pcap")).write_bytes(PIECES[number][:length])

    def at(self, now: float) -> tuple[int, int]:
        """The files that a turn reads at this time, and the sets it reads as a whole."""
        self.now = now
        found = self.watch.turn()
        return (0, 0) if found is None or found.batch is None else (found.batch.files, found.batch.whole)


Made = Iterator[Watching]


@pytest.fixture
def watching(tmp_path: Path) -> Made:
    made = Watching(tmp_path)
    yield made
    made.watch.close()


def test_a_file_that_comes_late(watching: Watching, tmp_path: Path) -> None:
    """The later one has waited for it. What is in the lake waits no more, also while it grows."""
    watching.write(0, -30)
    assert [watching.at(now) for now in (0, 29.9, 30)] == [(0, 0), (0, 0), (1, 1)]
    watching.write(0)
    assert watching.at(31) == (1, 1)
    watching.write(2)
    assert watching.at(40) == (0, 0)
    watching.write(1)
    assert [watching.at(now) for now in (60, 69, 70)] == [(0, 0), (0, 0), (2, 0)]
    watching.write(3, -30)
    assert [watching.at(now) for now in (71, 101)] == [(0, 0), (1, 0)]
    watching.write(3)
    assert watching.at(102) == (1, 0)
    assert same_as_one_run(tmp_path)


def test_what_is_known_does_not_wait(watching: Watching, tmp_path: Path) -> None:
    """A file has another name now, or it comes before what was read: there is nothing to wait for."""
    for number in (0, 2):
        watching.write(number)
    assert [watching.at(now) for now in (0, 30)] == [(0, 0), (2, 1)]
    (watching.folder / "0.pcap").rename(watching.folder / "other.pcap")
    watching.write(1)
    assert watching.at(31) == (3, 1)
    assert same_as_one_run(tmp_path)
    watching.write(3)
    watching.watch.close()
    again = Watching(tmp_path)
    assert [again.at(now) for now in (1000, 1029, 1030)] == [(0, 0), (0, 0), (1, 0)]
    again.watch.close()


def test_a_name_that_is_used_again(watching: Watching, tmp_path: Path) -> None:
    """The newer file waits, too, from when it came."""
    read = []
    for number in range(5):
        watching.write(number, name=f"{number % 3}.pcap")
        read.append([watching.at(100 * number + seconds) for seconds in (0, 29, 30)])
    assert read == [[(0, 0), (0, 0), found] for found in [(1, 1), (2, 1), (1, 0), (1, 0), (1, 0)]]
    under_their_names(tmp_path, PIECES[:5])
    assert same_as_one_run(tmp_path)


def test_once(watching: Watching, tmp_path: Path) -> None:
    """Then the time since the last change counts, as there is no other look."""
    for number, changed in enumerate((100, 200, 300)):
        watching.write(number)
        os.utime(watching.folder / f"{number}.pcap", (changed, changed))
    for now, files in ((129, 0), (130, 1), (230, 2), (329, 2), (331, 3)):
        once = Watching(tmp_path, once=True, at_once=now < 200)
        once.at(now)
        assert once.watch.waiting == 3 - files
        once.watch.close()
        there = (tmp_path / "lake").exists()
        assert (len(contents(tmp_path / "lake")["files"]) if there else 0) == files
    assert same_as_one_run(tmp_path)


def test_what_is_there_at_the_start(watching: Watching, tmp_path: Path) -> None:
    """It waits only as long as its last change is not old enough. What comes later waits from then on."""
    for number, changed in enumerate((-1e6, -20)):
        watching.write(number)
        os.utime(watching.folder / f"{number}.pcap", (1e9 + changed, 1e9 + changed))
    watching.today = 1e9
    found = []
    for now in (0, 9, 10):
        found.append((watching.at(now), watching.watch.waiting))
    assert found == [((1, 1), 1), ((0, 0), 1), ((2, 1), 0)]
    watching.write(2)
    os.utime(watching.folder / "2.pcap", (5.0, 5.0))
    assert [watching.at(now) for now in (11, 40, 41)] == [(0, 0), (0, 0), (1, 0)]
    assert same_as_one_run(tmp_path)


def test_a_clock_that_is_set_back(watching: Watching) -> None:
    """Nothing waits longer for that, and a file of the future no longer than others."""
    watching.today = 1e9
    watching.write(0)
    assert watching.at(0) == (0, 0)
    watching.today -= 3600
    assert watching.at(30) == (1, 1)


def test_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("pipeline", "watch", tmp_path, "--out", tmp_path.parent / "lake", "--once", "--lateness")
    assert "--lateness 'soon': must be a number with a unit" in amqpscope(capsys, *command, "soon").err
    assert "--lateness '1y': must be a duration" in amqpscope(capsys, *command, "1y").err
    (tmp_path / "a.pcap").write_bytes(PIECES[0])
    assert amqpscope(capsys, *command, "1h").out.endswith("nothing is new; 1 new file waits (--lateness)\n")
    assert " batch 1: 1 file new" in amqpscope(capsys, *command, "0").out
