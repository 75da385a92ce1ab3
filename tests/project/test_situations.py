"""Each situation of docs/guides/situations.md has one command, and its output names the cause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.commands import amqpscope

ROOT = Path(__file__).resolve().parent.parent.parent
ROW = re.compile(r"^\| (?P<seen>.+) \| `amqpscope (?P<command>.+)` \| `(?P<cause>.+)` \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "guides" / "situations.md").read_text("utf-8"))


@pytest.mark.parametrize(("seen", "command", "cause"), ROWS, ids=[row[2] for row in ROWS])
def test_the_command_names_the_cause(
    seen: str,
    command: str,
    cause: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    out = amqpscope(capsys, *command.split()).out
    name = cause if cause.startswith("diag/") else f"/{cause}"
    assert re.search(rf"{re.escape(name)}\b", out), out


def test_the_situations_that_users_report_are_all_there() -> None:
    assert len(ROWS) >= 25
    captures = {path.name for path in (ROOT / "captures" / "situations").glob("*.pcap")}
    assert captures == {Path(command.split()[-1]).name for _, command, _ in ROWS if "situations/" in command}
