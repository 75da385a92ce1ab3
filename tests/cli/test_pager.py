"""A pager shows output that is longer than the screen: on a terminal only, and never what happens live."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.pseudo_terminal import PseudoTerminal

from amqpscope.cli.pager import pager_command

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
LONG = str(CAPTURES / "pika-two-threads.pcap")
SHORT = str(CAPTURES / "rhea-defaults.pcap")

RUN = "import sys; from amqpscope.cli.main import run; sys.exit(run({arguments!r}))"

PAGER = f"{sys.executable} -c \"import sys; print('PAGED', len(sys.stdin.readlines()), 'LINES')\""
"""Says how many lines it was given."""

QUITTER = f"{sys.executable} -c \"print('QUIT')\""
"""Reads nothing and ends."""


def on_terminal(
    arguments: list[str], lines: int = 24, *, pager: str = PAGER, **environment: str
) -> tuple[str, int]:
    """What a command line writes to a terminal, and its exit status."""
    given = {"AMQPSCOPE_PAGER": pager, "CI": "", **environment}
    code = RUN.format(arguments=arguments)
    if not given["CI"]:
        code = f"import os; del os.environ['CI']; {code}"
    with PseudoTerminal(code, lines=lines, **given) as terminal:
        status = terminal.end(60)
        return terminal.output.decode(), status


def test_output_longer_than_the_screen_is_paged_and_the_status_stays() -> None:
    text, status = on_terminal(["check", LONG])
    assert text.startswith("PAGED ")
    assert status == 1


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["check", LONG, "--no-pager"], {}),
        (["check", LONG], {"AMQPSCOPE_PAGER": "no-such-pager"}),
        (["check", LONG], {"CI": "true"}),
        (["check", LONG], {"TERM": "dumb"}),
    ],
)
def test_without_a_pager_all_goes_to_the_terminal(arguments: list[str], environment: dict[str, str]) -> None:
    pager = environment.pop("AMQPSCOPE_PAGER", PAGER)
    text, status = on_terminal(arguments, pager=pager, **environment)
    assert "PAGED" not in text
    assert "amqp091/F-CONTENT-HEADER-NEXT" in text
    assert status == 1


def test_what_fits_is_not_paged() -> None:
    text, status = on_terminal(["check", SHORT])
    assert "nothing wrong found" in text
    assert "PAGED" not in text
    assert status == 0


def test_to_quit_the_pager_early_is_no_failure() -> None:
    text, status = on_terminal(["check", LONG], pager=QUITTER)
    assert text.split() == ["QUIT"]
    assert status == 1


def test_a_pipe_or_standard_input_is_not_paged(tmp_path: Path) -> None:
    link = tmp_path / "input"
    link.symlink_to("/dev/null")
    text, status = on_terminal(["check", LONG, str(link)])
    assert "PAGED" not in text
    assert status == 2


def test_an_error_stands_behind_the_text_before_it() -> None:
    text, status = on_terminal(["check", SHORT, "missing.pcap"])
    assert text.index("nothing wrong found") < text.index("missing.pcap: No such file")
    assert status == 2


@pytest.mark.parametrize(
    ("environment", "command"),
    [
        ({"AMQPSCOPE_PAGER": "sh -c true", "PAGER": "cat"}, ["sh", "-c", "true"]),
        ({"AMQPSCOPE_PAGER": "", "PAGER": "sh"}, []),
        ({"PAGER": "sh -x"}, ["sh", "-x"]),
        ({"AMQPSCOPE_PAGER": "cat", "PAGER": "sh"}, []),
        ({"PAGER": "sh 'open"}, []),
        ({"PAGER": "no-such-pager"}, []),
    ],
)
def test_which_pager(
    environment: dict[str, str], command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AMQPSCOPE_PAGER", "PAGER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert pager_command() == command
