"""The pipeline's bench: its captures are what it says they are. How fast anything is, no test asserts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import amqpscope


@pytest.fixture
def pipeline_bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    path = Path(__file__).with_name("pipeline.py")
    spec = importlib.util.spec_from_file_location("pipeline_bench", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "pipeline_bench", module)  # dataclasses look their module up
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(
        sys.modules, "bench", raising=False
    )  # the folder, where another test imported from it
    spec.loader.exec_module(module)
    return module


def frames(*paths: Path) -> list[tuple[str, str, int]]:
    with amqpscope.Capture(list(map(str, paths)) if len(paths) > 1 else str(paths[0])) as capture:
        return [(record.connection.id, record.frame.name, record.frame.offset) for record in capture]


def test_the_rotated_files_hold_the_capture(pipeline_bench: Any, tmp_path: Path) -> None:
    case = pipeline_bench.cases(["rotated"], 1_000_000, tmp_path)["rotated"]
    parts = sorted(case.sources[0].iterdir())
    assert len(parts) == 10
    assert max(part.stat().st_size for part in parts) < 150_000
    whole = next(path for path in tmp_path.iterdir() if path.is_file())
    assert case.octets == whole.stat().st_size + 9 * 24
    assert frames(*parts) == frames(whole)


def test_ten_sets_and_one_connection(pipeline_bench: Any, tmp_path: Path) -> None:
    found = pipeline_bench.cases(["sets", "elephant"], 1_000_000, tmp_path)
    files = [next(source.iterdir()) for source in found["sets"].sources]
    assert len({file.read_bytes() for file in files}) == 10
    alone = next(found["elephant"].sources[0].iterdir())
    assert len({connection for connection, _, _ in frames(alone)}) == 1
    assert alone.stat().st_size > 1_400_000


def test_the_table_compares_with_the_first_way(pipeline_bench: Any) -> None:
    ways = (pipeline_bench.Way("plain"), pipeline_bench.Way("chain", "local[2]"))
    case = pipeline_bench.Case(
        [],
        "directory",
        ways,
        seconds={"plain": [2.0, 4.0, 4.0], "chain": [1.0, 1.0, 3.0]},
        processor={"plain": [2.0, 2.0, 2.0], "chain": [3.0, 5.0, 6.0]},
    )
    case.worker["chain"] = 7_000_000
    lines = [line.split() for line in pipeline_bench.table(case).splitlines()]
    assert lines[1] == ["plain", "4.00", "(2.00-4.00)", "1.00", "(1.00-1.00)", "2.00", "1.00"]
    assert lines[2] == ["chain", "1.00", "(1.00-3.00)", "0.50", "(0.25-0.75)", "5.00", "2.50", "7"]
