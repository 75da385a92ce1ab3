"""How often `pipeline watch` looks for new captures."""

from types import SimpleNamespace
from typing import Any

import pytest

from amqpscope.cli import lake_watch
from amqpscope.pipeline.failure import FilesChanged

EVERY = 10.0


class _Clock:
    """A clock that only a look and a wait move on, and the event that ends the watch after some looks."""

    def __init__(self, looks: list[float]) -> None:
        self.now = 0.0
        self.began: list[float] = []
        self._looks = looks

    def monotonic(self) -> float:
        return self.now

    def turn(self) -> None:
        """A look, which takes its time."""
        self.began.append(self.now)
        self.now += self._looks[len(self.began) - 1]

    def is_set(self) -> bool:
        return len(self.began) == len(self._looks)

    def wait(self, seconds: float) -> bool:
        assert seconds >= 0
        self.now += seconds
        return self.is_set()


@pytest.mark.parametrize(
    ("looks", "began"),
    [
        ([0.0, 0.0, 0.0], [0, 10, 20]),
        ([4.0, 9.0, 1.0], [0, 10, 20]),
        ([14.0, 3.0, 1.0], [0, 14, 24]),
    ],
)
def test_a_look_begins_every_so_often_however_long_the_last_one_took(
    looks: list[float], began: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Clock(looks)
    read: list[float] = []
    watched: Any = SimpleNamespace(
        turn=clock.turn, care=lambda: None, waiting=0, ahead=False, read_on=lambda: read.append(clock.now)
    )
    monkeypatch.setattr(lake_watch, "_STOP", clock)
    monkeypatch.setattr(lake_watch, "time", clock)
    lake_watch._follow(watched, "lake", EVERY, False)
    assert clock.began == began
    pauses = [(start + took, until) for start, took, until in zip(began, looks, began[1:], strict=False)]
    assert read == [at + n for at, until in pauses for n in range(1, int(until - at))]


@pytest.mark.parametrize("ahead", [False, True])
def test_a_last_look_adds_what_was_read_ahead(ahead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody asks to stop while the next look is waited for."""
    clock = _Clock([1.0])
    watched: Any = SimpleNamespace(care=lambda: None, waiting=0, ahead=False)

    def turn() -> None:
        watched.ahead = False
        clock.began.append(clock.now)

    def read_on() -> None:
        watched.ahead = ahead

    watched.turn, watched.read_on = turn, read_on
    monkeypatch.setattr(clock, "is_set", lambda: clock.now > 4)
    monkeypatch.setattr(lake_watch, "_STOP", clock)
    monkeypatch.setattr(lake_watch, "time", clock)
    lake_watch._follow(watched, "lake", EVERY, False)
    assert clock.began == ([0, 5] if ahead else [0])


@pytest.mark.parametrize("failures", [0, 1, 2, 5])
def test_a_last_look_that_fails_is_tried_again(
    failures: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A few times, since the next watch would have to read all again."""
    clock = _Clock([1.0])
    watched: Any = SimpleNamespace(care=lambda: None, waiting=0, ahead=True, read_on=lambda: None)

    def turn() -> None:
        watched.ahead = False
        clock.began.append(clock.now)
        if len(clock.began) <= failures:
            raise FilesChanged("changed")

    watched.turn = turn
    monkeypatch.setattr(clock, "is_set", lambda: True)
    monkeypatch.setattr(lake_watch, "_STOP", clock)
    monkeypatch.setattr(lake_watch, "time", clock)
    lake_watch._follow(watched, "lake", EVERY, False)
    assert len(clock.began) == min(failures + 1, 3)
    lines = capsys.readouterr().err.splitlines()
    assert [line.endswith("they are read again") for line in lines] == [True] * min(failures, 2) + [False] * (
        failures > 2
    )
