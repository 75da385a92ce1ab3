"""Ctrl-C and SIGTERM end a run with one line: the lake is as it was, nothing of the run is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cluster import LIGHT_JAVA
from support.lakes import CAPTURES, records, written

from amqpscope.cli.interruptible import interruptible
from amqpscope.cli.status import Status

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there is no SIGINT")

ONE = CAPTURES / "rabbitmq-large.pcap"
DEADLINE = 120.0


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_another_thread_gets(which: signal.Signals) -> None:
    """The system may give it to any thread. The command is asked to end all the same."""
    asked = threading.Event()

    def command() -> int:
        signal.pthread_kill(threading.get_ident(), which)
        return int(asked.wait(DEADLINE))

    assert interruptible(command, ask=asked.set)() == 1


def test_a_signal_before_the_command_has_begun(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing has to be waited for. The command is not asked."""

    def start(_: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(threading.Thread, "start", start)
    cancelled: list[int] = []
    ended = interruptible(lambda: 0, lambda: cancelled.append(1), lambda: pytest.fail("it was asked"))
    assert ended() == Status.TERMINATED and len(cancelled) == 1
    assert capsys.readouterr().err.endswith("ended by a signal; the last batch was not added\n")


def _until(what: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    end = time.monotonic() + DEADLINE
    while not what():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def _tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _marked(mark: str) -> list[str]:
    """Processes that were started with this in their environment, as far as that can be seen."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
        except OSError:
            continue
    return found


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_interrupted(spark: Any, tmp_path: Path, plan: str) -> None:
    header, packets = records(ONE.read_bytes())
    large = tmp_path / "in" / "large.pcap"
    large.parent.mkdir()
    large.write_bytes(header + b"".join(packets) * 10)
    for number in range(400):
        (large.parent / f"{number}.pcap").symlink_to(large)
    lake = tmp_path / "lake"
    if plan == "chain":
        written(spark, lake, [ONE])
    before = _tree(tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    mark = uuid.uuid4().hex
    command = ["pipeline", "run", str(large.parent), "--out", str(lake), "--set-by", "file", "--plan", plan]
    command += ["--conf", f"spark.driver.defaultJavaOptions={LIGHT_JAVA}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "amqpscope", *command, "--quiet", "--master", "local[1]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ
        | {"TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(temporary), "AMQPSCOPE_TEST_MARK": mark},
    )
    try:
        # Its tasks are at work: they write, or sort on the way through the shuffle.
        _until(lambda: any(lake.glob("_staging/*/*")) or any(temporary.glob("*/*/*shuffle*")), process)
        if Path("/proc").is_dir():
            assert any("java" in one for one in _marked(mark))
        if plan == "chain":  # as a terminal does: to all processes of the group
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=DEADLINE)
    finally:
        process.kill()
    status, what = (130, "interrupted") if plan == "chain" else (143, "ended by a signal")
    assert (process.returncode, out, err) == (status, "", f"amqpscope: {what}; nothing was changed\n")
    _until(lambda: not _marked(mark))
    assert list(temporary.iterdir()) == []
    assert _tree(tmp_path) == before
    assert lake.exists() is (plan == "chain") and not (lake / "_staging").exists()
