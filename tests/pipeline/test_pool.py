"""`pipeline run --engine pool`: the rows of Spark, from processes without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.lakes import CAPTURES, SOME, contents, written

from amqpscope.pipeline import PipelineError, analyse
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.pool import Pool


def test_same_rows_as_spark(by_chain: Path, alone: list[Path], tmp_path: Path) -> None:
    """All tables of all captures there are, in two processes."""
    assert written(Pool(2), tmp_path / "two", alone, set_by="file") == contents(by_chain)
    options = [Lake(str(lake)).runs()[0].options["engine"] for lake in (by_chain, tmp_path / "two")]
    assert options == ["spark", "pool"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_processes_do_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes take part, and this one does not."""
    seen = tmp_path / "seen"
    seen.mkdir()

    def read(*given: Any) -> Any:
        (seen / str(os.getpid())).touch()
        return read_set(*given)

    monkeypatch.setattr("amqpscope.pipeline.tasks.read_set", read)
    written(Pool(2), tmp_path / "lake", SOME, set_by="file")
    processes = {int(path.name) for path in seen.iterdir()}
    assert len(processes) == 2 and os.getpid() not in processes


def test_an_error_in_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised here, and the lake stays as it was."""
    before = written(Pool(2), tmp_path / "lake", SOME[:3], set_by="file")

    def fails(*given: Any) -> Any:
        raise PipelineError("as if the disk were full")

    monkeypatch.setattr("amqpscope.pipeline.tasks.read_set", fails)
    with pytest.raises(PipelineError, match="as if the disk were full"):
        written(Pool(2), tmp_path / "lake", SOME, set_by="file")
    assert contents(tmp_path / "lake") == before
    assert not (tmp_path / "lake" / "_staging").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_process_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = os.getpid()

    def dies(*given: Any) -> Any:
        assert os.getpid() != parent
        os.kill(os.getpid(), 9)

    monkeypatch.setattr("amqpscope.pipeline.tasks.read_set", dies)
    with pytest.raises(PipelineError, match=r"ended by signal 9 \(perhaps for want of memory\)$"):
        written(Pool(2), tmp_path / "lake", SOME, set_by="file")
    assert not (tmp_path / "lake").exists()


def test_a_run_that_is_cancelled(tmp_path: Path) -> None:
    """By Ctrl-C, whose handler is in another thread."""
    for processes in (1, 2):
        pool = Pool(processes)
        pool.cancel()
        with pytest.raises(PipelineError, match="interrupted"):
            written(pool, tmp_path / "lake", SOME, set_by="file")
    assert not (tmp_path / "lake").exists()


def test_what_only_spark_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual = ["pipeline", "run", SOME[0], "--out", tmp_path / "lake", "--engine", "pool"]
    for more in (["--master", "local[2]"], ["--conf", "a=b"], ["--plan", "flow"]):
        done = amqpscope(capsys, *usual, *more)
        assert done.status == 2
        assert "cannot be combined with --engine pool, which runs without Spark" in done.err
    pool: Any = Pool(2)
    with pytest.raises(PipelineError, match="a pool has no data frames"):
        analyse(pool, [str(SOME[0])]).table("frames")
    with pytest.raises(PipelineError, match="there is only the plan chain"):
        analyse(pool, [str(SOME[0])], plan="flow")


def test_command_without_spark(tmp_path: Path) -> None:
    """The command starts no Java, and imports nothing of Spark, nor pandas, which takes long to import."""
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from amqpscope.cli.main import run; status = run(sys.argv[1:])\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] in ('py4j', 'pandas')]\n"
        "sys.exit(int(status))"
    )
    given = [
        "pipeline",
        "run",
        str(CAPTURES / "demo.pcap"),
        "--out",
        str(tmp_path / "lake"),
        "--engine",
        "pool",
    ]
    done = subprocess.run(
        [sys.executable, "-c", program, *given, "--no-config", "--fail-on", "never"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAVA_HOME": "/nowhere"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert contents(tmp_path / "lake")["frames"]


def test_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = amqpscope(
        capsys, "pipeline", "run", SOME[0], "--out", tmp_path / "lake", "--engine", "pool", "--explain"
    )
    assert done.status == 0
    assert done.out.startswith("chain plan: without Spark, each process reads whole capture sets\n")
