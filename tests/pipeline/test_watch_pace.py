"""How often `pipeline watch` looks for new captures."""

from types import SimpleNamespace
from typing import Any

import pytest

from amqpscope.cli import lake_watch

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
    watched: Any = SimpleNamespace(turn=clock.turn, care=lambda: None, waiting=0)
    monkeypatch.setattr(lake_watch, "_STOP", clock)
    monkeypatch.setattr(lake_watch, "time", clock)
    lake_watch._follow(watched, "lake", EVERY, False)
    assert clock.began == began
