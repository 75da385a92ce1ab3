"""A standalone Spark cluster on the loopback interface: a master and workers, from the PySpark package.

Every process leads a group of its own, which is ended with it: a worker's executors are in it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import site
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType

import pyspark

import amqpscope
from amqpscope.pipeline.session import find_java

__all__ = ["LIGHT_JAVA", "SETTINGS", "Cluster", "Daemon", "python_without"]

SPARK_HOME = Path(pyspark.__file__).parent
ROOT = Path(amqpscope.__file__).resolve().parents[1]

_NOT_INSTALLED = {} if ROOT.name == "site-packages" else {"PYTHONPATH": str(ROOT)}
"""What lets other programs find an amqpscope that is used from where its sources are."""

_PATIENCE = 300.0
"""Seconds until something that should come is taken for lost: long, for a machine with much else to do."""

LIGHT_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For Java processes of some minutes at most: to compile their code thoroughly takes longer than it saves."""

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.driver.defaultJavaOptions": LIGHT_JAVA,
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": LIGHT_JAVA,
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # both executors are there when the work begins
    "spark.sql.shuffle.partitions": "2",
}
"""For a program on the cluster."""


class Daemon:
    """A process that tells on standard error what it does."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._said: list[str] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first of the lines to come that has it."""
        while True:
            line = self._lines.get(timeout=_PATIENCE)
            if line is None:
                raise AssertionError(f"ended without `{pattern}`:\n{''.join(self._said)}")
            self._said.append(line)
            found = re.search(pattern, line)
            if found:
                return found

    def end(self) -> None:
        """Kill it, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(_PATIENCE)


class Cluster:
    """A master, and as many workers as `want` says. folder: for all that they write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._daemons: list[Daemon] = []
        self.workers: list[Daemon] = []
        java = find_java(folder)
        self._environment = {
            **os.environ,
            "JAVA_HOME": java,
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{LIGHT_JAVA} -Dspark.master.rest.enabled=false",
            **_NOT_INSTALLED,
        }
        self.master = ""

    def __enter__(self) -> Cluster:
        master = self._start("master.Master")
        self.master = master.wait_for(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)").group(1)
        master.wait_for("ALIVE")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for daemon in reversed(self._daemons):
            daemon.end()

    def _start(self, name: str, *arguments: str) -> Daemon:
        program = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
        program += ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        daemon = Daemon([*program, *arguments], self._environment)
        self._daemons.append(daemon)
        return daemon

    def want(self, workers: int) -> None:
        """Have so many workers that live, with two cores each. SETTINGS take one of them."""
        self.workers = [worker for worker in self.workers if worker.process.poll() is None]
        new = []
        for number in range(len(self._daemons), len(self._daemons) + workers - len(self.workers)):
            place = ("--work-dir", str(self._folder / f"worker-{number}"))
            new.append(self._start("worker.Worker", "--cores", "2", "--memory", "1g", *place, self.master))
        for worker in new:
            worker.wait_for("Successfully registered with master")
        self.workers += new

    def program(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program to its end. environment: variables beside those there are."""
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=self._folder,
            env={**os.environ, **_NOT_INSTALLED, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )

    def command(self, *arguments: object) -> list[str]:
        """The arguments of `amqpscope` for a run on the cluster."""
        settings = [part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}")]
        # Quiet: how far it is would be reported if it takes long.
        return ["pipeline", "run", *map(str, arguments), "--quiet", "--master", self.master, *settings]


def python_without(missing: str, folder: Path) -> Path:
    """A Python that has every package that this one has, but one."""
    packages = folder / "packages"
    packages.mkdir(parents=True)
    own = ("dissectors", "__editable__") if missing == "amqpscope" else ()
    for place in map(Path, (*site.getsitepackages(), *sys.path)):
        if place.name not in ("site-packages", "dist-packages") or not place.is_dir():
            continue
        for package in place.iterdir():
            known = packages / package.name
            if package.suffix != ".pth" and not package.name.startswith((missing, *own)):
                if not known.is_symlink():
                    known.symlink_to(package)
    sources = "" if missing == "amqpscope" else f":{ROOT}"
    if ROOT.name == "site-packages":
        sources = ""
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={packages}{sources} exec {sys.executable} -S -P "$@"\n')
    script.chmod(0o755)
    return script
