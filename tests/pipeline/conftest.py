"""One Spark session for all tests that need one, started by the first. They are skipped without pyspark or
Java, unless AMQPSCOPE_SPARK is `require`."""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REQUIRED = os.environ.get("AMQPSCOPE_SPARK") == "require"

if not REQUIRED and importlib.util.find_spec("pyspark") is None:
    collect_ignore_glob = ["test_*.py"]


LONGEST = (
    "test_following.py",
    "test_kept_states.py",
    "test_same_verdicts.py",
    "test_watch.py",
    "test_cluster.py",
    "test_interrupt.py",
    "test_overlap.py",
    "test_object_store.py",
    "test_append.py",
    "test_lake.py",
    "test_tags.py",
)
"""The files of tests that take longest. They come first: one that began last would run alone, while the other
processes of `pytest -n` have nothing to do."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    files = [Path(__file__).with_name(name) for name in LONGEST]
    items.sort(key=lambda item: files.index(item.path) if item.path in files else len(files))


@pytest.fixture(autouse=True, scope="session")
def no_pause() -> Iterator[None]:
    """No two runs of these tests take a lease at the same moment, so none waits for another one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("amqpscope.pipeline.lease._SETTLED", 0.0)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from support.cluster import LIGHT_JAVA

    from amqpscope.pipeline import PipelineError, session

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.defaultJavaOptions": LIGHT_JAVA,
        # For the tests of Spark Connect, which start its server in this session.
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.shuffle.partitions": "2",
    }
    before = Path.cwd()
    os.chdir(Path(__file__).resolve().parents[2])
    try:
        started = session.start("local[2]", configuration=settings)
    except PipelineError as error:
        if REQUIRED:
            raise
        pytest.skip(str(error))
    finally:
        os.chdir(before)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All captures there are, also those in AMQPSCOPE_CAPTURES; then two large ones that have faults, and
    one whose writer lost packets. Each is a capture set of its own.
    """
    from support.lakes import BUNDLED, CAPTURES
    from support.large_captures import faulty_captures, with_loss

    folders = os.environ.get("AMQPSCOPE_CAPTURES", "").split(os.pathsep)
    further = [
        path for folder in folders if folder for path in sorted(Path(folder).resolve().rglob("*.pcap*"))
    ]
    made = tmp_path_factory.mktemp("large")
    whole = CAPTURES / "rules" / "amqp091" / "Q-EXCL-ACCESS" / "violating.pcap"
    return [*BUNDLED, *further, *faulty_captures(made), with_loss(whole, made)]


@pytest.fixture(scope="session")
def by_chain(spark: Any, alone: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake that Spark makes of them by the plan `chain`: several tests compare with it."""
    from support.lakes import written

    path = tmp_path_factory.mktemp("chain") / "lake"
    written(spark, path, alone, set_by="file", plan="chain")
    return path


class Lent:
    """A session that stays when it is stopped."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        pass


@pytest.fixture
def lent(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpscope.pipeline.session.start", lambda *_: Lent(spark))
