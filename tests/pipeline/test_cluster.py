"""A standalone cluster on the loopback interface: the same tables, though a worker dies; one line where it
cannot work."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import dying_worker
from support.cluster import Cluster, python_without
from support.lakes import CAPTURES, SOME, Rows, contents, written

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def started(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(started: Cluster) -> Cluster:
    """With two workers, also after one was killed."""
    started.want(2)
    return started


@pytest.fixture(scope="module")
def local(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The tables of local mode."""
    return written(spark, tmp_path_factory.mktemp("local") / "lake", SOME, set_by="file", plan="chain")


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_a_worker_is_killed(cluster: Cluster, tmp_path: Path, local: Rows, plan: str) -> None:
    """What it had written does not count, what it had shuffled is made again."""
    lake, mark = tmp_path / "lake", tmp_path / "mark"
    arguments = cluster.command(*SOME, "--set-by", "file", "--plan", plan, "--out", lake)
    result = cluster.program(dying_worker.__file__, mark, *arguments, "--fail-on", "never")
    assert (result.returncode, result.stderr) == (0, "")
    assert mark.exists()
    assert sum(worker.process.poll() == -signal.SIGKILL for worker in cluster.workers) == 1
    assert contents(lake) == local


def test_workers_without_the_package(cluster: Cluster, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    python = python_without("amqpscope", tmp_path / "python")
    arguments = cluster.command(CAPTURES / "demo.pcap", "--out", lake)
    result = cluster.program("-m", "amqpscope", *arguments, PYSPARK_PYTHON=str(python))
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(
        "amqpscope: the workers have no amqpscope: install amqpscope[spark] where they run"
    )
    assert not list(lake.glob("*"))
