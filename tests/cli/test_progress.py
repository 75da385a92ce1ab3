"""Who waits for a long capture sees how far it has been read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.commands import DEMO, amqpscope


@pytest.mark.parametrize(
    ("arguments", "readings"),
    [
        (["check", DEMO], 1),
        (["summary", DEMO], 1),
        (["triage", DEMO], 1),
        (["why", DEMO, 20], 2),
        (["why", "--end", DEMO], 2),
        (["diff", DEMO, DEMO], 4),
    ],
    ids=lambda one: " ".join(map(str, one[:-1])) if isinstance(one, list) else "",
)
def test_each_reading_has_a_bar_on_a_terminal(
    arguments: list[object],
    readings: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bars: list[str] = []
    monkeypatch.setattr("amqpscope.cli.output._WORTH_A_BAR", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("rich.progress.Progress.add_task", lambda bar, name, **_: bars.append(name) or 0)
    monkeypatch.setattr("rich.progress.Progress.update", lambda *_, **__: None)
    assert amqpscope(capsys, *arguments).status in (0, 1)
    assert 1 <= len(bars) <= readings
    assert set(bars) == {str(DEMO)}


def test_who_waits_for_another_process_has_a_bar_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.pcap"
    other.write_bytes(DEMO.read_bytes())
    bars: list[str] = []
    read: list[int] = []
    monkeypatch.setattr("amqpscope.diff.side_by_side.SHARE_PROBE", 0)
    monkeypatch.setattr("amqpscope.cli.output._WORTH_A_BAR", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("rich.progress.Progress.add_task", lambda bar, name, **_: bars.append(name) or 0)
    monkeypatch.setattr("rich.progress.Progress.update", lambda *_, completed, **__: read.append(completed))
    assert amqpscope(capsys, "diff", "--jobs", "2", DEMO, other).status == 0
    # The worker has no bar here; what it has read is seen where its results are awaited.
    assert bars[:2] == [str(DEMO), str(other)]
    assert other.stat().st_size in read
