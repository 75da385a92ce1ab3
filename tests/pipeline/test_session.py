"""Before the plan is made: how many cores there are, and masters that are not there."""

from __future__ import annotations

import logging
import socket
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from amqpscope.pipeline import PipelineError, session


class Cluster:
    """A cluster whose executors come at these times (s), with four cores each; and its clock."""

    def __init__(self, master: str, times: list[float]) -> None:
        self.master = master
        self.now = 1000.0
        self._times = [self.now + time for time in times]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def size(self) -> int:
        return 1 + sum(time <= self.now for time in self._times)

    @property
    def defaultParallelism(self) -> int:
        return max(4 * (self.size() - 1), 2)

    @property
    def sparkContext(self) -> Any:
        return self

    @property
    def _jsc(self) -> Any:
        return self

    def sc(self) -> Any:
        return self

    def getExecutorMemoryStatus(self) -> Any:
        return self


@pytest.mark.parametrize(
    ("times", "cores", "most"),
    [
        ([3.0], 4, 4.5),
        ([0.0, 0.9, 1.8, 2.7], 16, 4.5),
        ([5.0, 20.0], 4, 6.5),  # the second is too late to be waited for
        ([], 2, 31.0),  # none: Spark waits for one then, when there is work
    ],
)
def test_executors_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, times: list[float], cores: int, most: float
) -> None:
    cluster = Cluster("spark://host:7077", times)
    monkeypatch.setattr("time.monotonic", lambda: cluster.now)
    monkeypatch.setattr("time.sleep", cluster.sleep)
    assert session.cores(cluster) == cores  # type: ignore[arg-type]
    assert cluster.now - 1000 <= most


def test_local_mode_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("local[2]", [])
    monkeypatch.setattr("time.sleep", None)
    assert session.cores(cluster) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "master", ["spark://127.0.0.1:{}", "spark://127.0.0.1:{0},[::1]:{0}", "spark://host", "spark://:"]
)
def test_no_master(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    """Said before Spark is started, which would try for a minute."""
    monkeypatch.setattr(session, "find_java", None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(PipelineError, match=r"^no master answers at spark://[^\n]*: .+$"):
        session.start(master.format(port))


def test_unknown_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_java", None)
    with pytest.raises(PipelineError, match=r"^master lokal: must be local"):
        session.start("lokal")


def test_one_master_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found(Exception):
        pass

    def find_java(_: object) -> str:
        raise Found

    monkeypatch.setattr(session, "find_java", find_java)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as standing, pytest.raises(Found):
        session.start(f"spark://127.0.0.1:1,127.0.0.1:{standing.getsockname()[1]}")


def test_sessions_of_servers_are_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are open, and no longer once they were stopped."""

    class Remote:
        interrupted = 0

        def interruptAll(self) -> None:
            self.interrupted += 1

        def stop(self) -> None:
            pass

    open_one, stopped = Remote(), Remote()
    monkeypatch.setattr(session, "_remote", [open_one, stopped])
    session.stop(stopped)  # type: ignore[arg-type]
    session.cancel()
    assert (open_one.interrupted, stopped.interrupted) == (1, 0)


def test_py4j_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It would log a traceback for a Java process that was killed, in the name of nobody."""
    program = "import logging; logging.error('lost'); logging.getLogger('py4j.java_gateway').error('lost')"
    try:
        session._hush()
        exec(compile(program, str(Path("site-packages", "py4j", "clientserver.py")), "exec"), {})
        assert caplog.records == []
        exec(compile(program, str(Path("site-packages", "other", "clientserver.py")), "exec"), {})
        assert [record.message for record in caplog.records] == ["lost"]
    finally:
        logging.getLogger().removeFilter(session._not_of_py4j)


def test_server_that_was_killed() -> None:
    """Reported as that, also if an error of grpc's is the cause of another one; its text is one line."""

    def details() -> str:
        return "failed to connect\nto all addresses"

    error = type(
        "RpcError", (Exception,), {"__module__": "grpc._channel", "details": staticmethod(details)}
    )()
    remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    answered = PipelineError("Spark: it is gone")
    answered.__cause__ = error
    for one in (error, answered):
        with pytest.raises(PipelineError, match=r"its server does not answer any more$"):
            session.explain_lost(remote, one)
    assert session._first_line(error) == "failed to connect"


class Ended:
    """A session whose Java process has ended, or not."""

    def __init__(self, ended: bool) -> None:
        self.sparkContext = self._gateway = self.proc = self
        self._ended = ended

    def wait(self, seconds: float) -> int:
        if self._ended:
            return -9
        raise subprocess.TimeoutExpired("java", seconds)

    def stop(self) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


def test_java_that_was_killed() -> None:
    """It is reported as that, and neither as an output nor as whatever the connection to it fails with."""
    lost: Any = Ended(True)
    answered = PipelineError("Spark: Answer from Java side is empty")
    answered.__cause__ = ConnectionResetError(104, "Connection reset by peer")
    for error in (ConnectionRefusedError(111, "Connection refused"), answered):
        with pytest.raises(PipelineError, match=r"^Spark ended before the command did: its Java process "):
            session.explain_lost(lost, error)
        session.explain_lost(Ended(False), error)  # type: ignore[arg-type]
    session.explain_lost(lost, PipelineError("nothing is replaced"))
    session.stop(lost)


@pytest.mark.parametrize("master", ["sc://h:443;token=X", "sc://u:X@127.0.0.1:1", "SC://h/;token=X"])
def test_an_address_is_shown_without_secrets(master: str) -> None:
    with pytest.raises(PipelineError) as caught:
        session.start(master)
    assert "X" not in str(caught.value)
    assert "://" in str(caught.value)


def test_workers_are_reached_by_files(spark: Any) -> None:
    """Not by TCP, which would make each task wait; in a directory that nobody else may enter."""
    folder = Path(spark.sparkContext.getConf().get("spark.python.unix.domain.socket.dir"))
    assert spark.sparkContext.getConf().get("spark.python.unix.domain.socket.enabled") == "true"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_ISSOCK(path.stat().st_mode) for path in folder.iterdir())
    assert list(folder.iterdir())


def test_path_too_long_for_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where temporary files are in a directory with a long path, workers are reached by TCP."""
    deep = tmp_path / ("d" * 60)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    monkeypatch.setattr("atexit.register", lambda *_, **__: None)
    assert session._by_files() == {}
    (folder,) = deep.iterdir()
    monkeypatch.setattr(session, "_LONGEST_PATH", len(f"{folder}/.01234567-89ab-cdef-0123-456789abcdef.sock"))
    settings = session._by_files()
    assert Path(settings["spark.python.unix.domain.socket.dir"]).parent == deep
