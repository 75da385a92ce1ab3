"""`--color always|never|auto`, before the command or behind it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.commands import DEMO, SGR, amqpscope


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    before = dict(os.environ)
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        os.environ.pop(name, None)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize(
    ("arguments", "coloured"),
    [
        (["read", DEMO], False),
        (["read", "--color", "auto", DEMO], False),
        (["--color", "always", "read", DEMO], True),
        (["read", DEMO, "--color=always"], True),
        (["check", "--color", "always", DEMO], True),
    ],
)
def test_text_has_colours_where_it_is_asked_for(
    arguments: list[object], coloured: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, *arguments)
    assert result.status == 0
    assert bool(SGR.search(result.out)) == coloured


def test_never_is_stronger_than_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    os.environ["FORCE_COLOR"] = "1"
    os.environ["TERM"] = "xterm"
    assert SGR.search(amqpscope(capsys, "read", DEMO).out)
    assert not SGR.search(amqpscope(capsys, "read", "--color", "never", DEMO).out)


@pytest.mark.parametrize("arguments", [["read", "--color", "blue", DEMO], ["read", DEMO, "--color"]])
def test_what_is_no_choice_is_refused(arguments: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, *arguments)
    assert result.status == 2
    assert "--color" in result.err


def test_what_stands_behind_two_dashes_is_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--color: No such file" in amqpscope(capsys, "read", "--", "--color").err
