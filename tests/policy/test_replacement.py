"""Reports and baselines are written whole or not at all: what was there before stays until then."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from support.commands import DEMO
from support.commands import amqpscope as command

from amqpscope.errors import OutputError
from amqpscope.policy.replacement import Replacement

OLD = "the report of yesterday"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(OLD)
    path.chmod(0o640)
    return path


def test_the_old_file_stays_until_the_new_one_is_complete(report: Path) -> None:
    file = Replacement(str(report))
    text = file.open()
    text.write("new")
    text.flush()
    assert report.read_text() == OLD
    file.complete()
    assert report.read_text() == "new"
    assert stat.S_IMODE(report.stat().st_mode) == 0o640
    assert os.listdir(report.parent) == [report.name]


def test_what_is_abandoned_leaves_nothing(report: Path) -> None:
    file = Replacement(str(report))
    file.open().write("half of it")
    file.abandon()
    assert report.read_text() == OLD
    assert os.listdir(report.parent) == [report.name]


def test_what_a_killed_run_of_the_same_process_id_left_is_in_nobodys_way(report: Path) -> None:
    Replacement(str(report)).open().write("half of it")  # and then it is killed
    (left,) = set(os.listdir(report.parent)) - {report.name}
    report.with_name(f".{report.name}.{os.getpid()}.part").write_text("of an older version")
    file = Replacement(str(report))
    file.open().write("new")
    assert report.read_text() == OLD
    file.complete()
    assert report.read_text() == "new"
    assert left in os.listdir(report.parent)


def test_a_link_stays_a_link(report: Path) -> None:
    link = report.with_name("link.json")
    link.symlink_to(report)
    file = Replacement(str(link))
    file.open().write("new")
    file.complete()
    assert link.is_symlink()
    assert report.read_text() == "new"


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    file = Replacement(str(pipe))
    file.open().write("new")
    file.complete()
    reader.join()
    assert read == ["new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_standard_stream_is_written_in_place(tmp_path: Path) -> None:
    """Else what the program writes there by itself would go into a file without a name."""
    script = (
        "from amqpscope.policy.replacement import Replacement\n"
        "file = Replacement('/dev/stdout')\n"
        "file.open().write('new')\n"
        "file.complete()\n"
    )
    path = tmp_path / "out"
    with path.open("w") as out:
        before = os.fstat(out.fileno()).st_ino
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    assert (path.read_text(), path.stat().st_ino) == ("new", before)


def test_a_disk_that_is_full_is_named_by_the_file() -> None:
    file = Replacement("/dev/full")
    with pytest.raises(OutputError, match=r"^/dev/full: No space left on device$"):
        # More than the buffer of any Python holds, so that writing fails here.
        file.open().write("x" * 10_000_000)
    file.abandon()


def test_a_report_that_does_not_fit_leaves_the_old_one(report: Path) -> None:
    """A limit on the size of files stands for a full disk."""
    script = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "from amqpscope.cli.main import run\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    line = [sys.executable, "-c", script, "check", "--format", "ndjson", "-o", str(report), str(DEMO)]
    ran = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, f"amqpscope: {report}: File too large\n")
    assert report.read_text() == OLD
    assert os.listdir(report.parent) == [report.name]


def test_nothing_is_created_before_the_file_can_be_removed_at_a_signal(tmp_path: Path) -> None:
    file = Replacement(str(tmp_path / "report.json"))
    assert os.listdir(tmp_path) == []
    file.open()
    assert len(os.listdir(tmp_path)) == 1
    file.remove()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_old_report_and_nothing_else(report: Path, number: signal.Signals) -> None:
    line = [sys.executable, "-m", "amqpscope", "check", "--format", "ndjson", "-o", str(report), "-"]
    # The signal ends the program, even if whoever runs the tests ignores it, as `nohup` does with a hang-up.
    usual = partial(signal.signal, number, signal.SIG_DFL)
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, preexec_fn=usual
    ) as process:
        assert process.stdin is not None
        process.stdin.write(DEMO.read_bytes())
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while len(os.listdir(report.parent)) < 2 and time.monotonic() < deadline:
            os.sched_yield()
        assert len(os.listdir(report.parent)) == 2
        process.send_signal(number)
        assert process.wait() == -number
    assert report.read_text() == OLD
    assert os.listdir(report.parent) == [report.name]


def test_a_report_of_an_interrupted_run_is_written(
    report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from types import SimpleNamespace

    from support.commands import Interrupted

    source = Interrupted(DEMO.read_bytes(), KeyboardInterrupt())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=source))
    assert command(capsys, "check", "-o", report, "-").status == 130
    assert '"status": "partial"' in report.read_text()


def test_a_crash_leaves_the_old_report(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from amqpscope.cli import check as module
    from amqpscope.cli.main import run

    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(module, "judge", crash)
    assert run(["check", "-o", str(report), str(DEMO)]) == 2
    assert report.read_text() == OLD
    assert os.listdir(report.parent) == [report.name]


def test_a_file_that_may_not_be_written_is_not_replaced(report: Path) -> None:
    report.chmod(0o440)
    if os.access(report, os.W_OK):
        pytest.skip("this user may write everything")
    with pytest.raises(OutputError, match="Permission denied"):
        Replacement(str(report)).open()
    assert report.read_text() == OLD
