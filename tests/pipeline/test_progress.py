"""How far a run is: reported on standard error, by what the tasks have counted, and nowhere else."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.lakes import CAPTURES

from amqpscope.cli import spark_progress
from amqpscope.pipeline import analyse

REAL = sorted(CAPTURES.glob("r*.pcap"))


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_what_is_counted(spark: Any, tmp_path: Path, plan: str) -> None:
    """What the tasks report as they end is what the run has counted."""
    from amqpscope.pipeline.tally import tally

    counted = tally(spark)
    analysis = analyse(spark, [str(path) for path in REAL], set_by="file", plan=plan)
    outcome = analysis.write(str(tmp_path / "lake"), tally=counted)
    assert counted.value == outcome.counts
    assert counted.value["frame",] > 100 and counted.value["file", "ok"] == len(REAL)


class Tracked:
    """What is asked of a session: Spark's status, which ends the showing when it was looked at often."""

    def __init__(self, over: threading.Event, looks: int) -> None:
        self._over = over
        self._looks = looks
        self.sparkContext = self
        self.numTasks, self.numCompletedTasks = 9, 4

    def statusTracker(self) -> Tracked:
        self._looks -= 1
        if not self._looks:
            self._over.set()
        return self

    def getActiveStageIds(self) -> list[int]:
        return [7]

    def getStageInfo(self, stage: int) -> Tracked:
        return self


class Counted:
    """What is asked of an accumulator."""

    def __init__(self) -> None:
        self.value: Any = Counter(
            {("file", "ok"): 3, ("file", "partial"): 1, ("frame",): 1234, ("finding", "error", "certain"): 1}
        )


def shown(over: threading.Event, looks: int) -> spark_progress.RunProgress:
    """A run under way, of ten files."""
    run = spark_progress.RunProgress()
    run._spark = Tracked(over, looks)  # type: ignore[assignment]
    run._counted, run._files = Counted(), 10
    return run


def test_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(spark_progress, "_FIRST_LINE", 0.001)
    monkeypatch.setattr(spark_progress, "_A_LINE_EVERY", 0.001)
    over = threading.Event()
    stream = io.StringIO()
    spark_progress._lines(shown(over, 2), stream, over)
    line = "amqpscope: 4 of 9 tasks done; 4 of 10 files, 1234 frames, 1 finding\n"
    assert stream.getvalue() == line * 2
    assert capsys.readouterr() == ("", "")


def test_before_the_tasks_begin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What takes long then is reported, too, although the standard error goes elsewhere meanwhile."""
    monkeypatch.setattr(spark_progress, "_FIRST_LINE", 0.001)
    monkeypatch.setattr(spark_progress, "_A_LINE_EVERY", 0.001)
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with spark_progress.progress(False) as run:
        assert run is not None
        _until(lambda: "amqpscope: looking at the captures\n" in written.getvalue())
        run.starts()
        _until(lambda: "amqpscope: starting Spark\n" in written.getvalue())


def _until(what: Any) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end, "it did not come"
        threading.Event().wait(0.005)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [20, 79, 80, 200])
@pytest.mark.parametrize("colour", [False, True])
def test_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int, colour: bool
) -> None:
    """It fits, however narrow; what was counted comes first; and it is gone at the end."""
    monkeypatch.setattr(spark_progress, "_EVERY", 0.001)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    over = threading.Event()
    spark_progress._bar(shown(over, 300), terminal, over)
    drawn = terminal.getvalue()
    assert ("\x1b[3" in drawn) is (colour and columns >= 80)
    texts = [re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", text) for text in re.split("[\r\n]", drawn)]
    assert max(map(len, texts)) <= columns
    assert any(text.startswith("4 of 10 files") for text in texts)
    assert any("4/9" in text for text in texts) is (columns >= 80)
    assert not texts[-1].strip()
    assert capsys.readouterr().out == ""


def test_in_a_run(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spark_progress, "_FIRST_LINE", 0.01)
    monkeypatch.setattr(spark_progress, "_A_LINE_EVERY", 0.01)
    for quiet in (False, True):
        with spark_progress.progress(quiet) as run:
            tally = run and run.runs(spark, 10)
            analyse(spark, [str(REAL[0])]).write(str(tmp_path / "lake"), tally=tally)
        written = capsys.readouterr()
        assert written.out == ""
        assert bool(re.search(r"amqpscope: \d+ of \d+ tasks? done; ", written.err)) is not quiet
        assert not quiet or written.err == ""
