"""Workers that cannot work: one line says what they lack, and the lake stays as it was."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.cluster import python_without
from support.lakes import CAPTURES

import amqpscope
from amqpscope.pipeline import PipelineError, analyse


@pytest.mark.parametrize("missing", ["amqpscope", "librt", "pyarrow"])
def test_a_package_is_missing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    python = python_without(missing, tmp_path / "python")
    refused(spark, tmp_path, monkeypatch, python, f"the workers have no {missing}: install amqpscope")


def test_no_python(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "no" / "python"
    refused(
        spark, tmp_path, monkeypatch, python, f"the workers have no Python at {python}: set PYSPARK_PYTHON"
    )


def test_another_error(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Python itself says is the last line of what Spark says."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    refused(spark, tmp_path, monkeypatch, python, "Spark: ")


def test_another_version(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpscope.pipeline.tasks.__version__", "9.9")
    line = f"the workers have amqpscope {amqpscope.__version__}, but this machine has amqpscope 9.9"
    refused(spark, tmp_path, monkeypatch, Path(sys.executable), line)


def refused(spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, python: Path, line: str) -> None:
    """A run whose workers use this Python ends with this line."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    lake = folder / "lake"
    with pytest.raises(PipelineError) as raised:
        analyse(spark, [str(CAPTURES / "demo.pcap")]).write(str(lake))
    reported = str(raised.value)
    assert reported.startswith(line) and len(reported.splitlines()) == 1
    assert "..." not in reported and "\tat " not in reported
    assert not list(lake.glob("*"))
