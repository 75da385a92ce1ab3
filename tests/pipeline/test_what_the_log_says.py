"""What the log of a table says of its files, and of those that have left it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow import fs

from amqpscope.pipeline import PipelineError, delta
from amqpscope.pipeline.delta import DeltaTables
from amqpscope.pipeline.parts import LakeFile
from amqpscope.pipeline.schemas import LAKE_TABLES

HOUR = 3600
FILES = LAKE_TABLES["files"]


def part(lake: Path, number: int, name: str = "part") -> LakeFile:
    """A file of the table that was written ten days ago."""
    path = lake / "files" / f"{name}-{number:04d}.parquet"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"rows")
    os.utime(path, (time.time() - 240 * HOUR,) * 2)
    return LakeFile("files", f"files/{path.name}", 1, 4, "a", "b")


@pytest.mark.parametrize("watched", [False, True])
def test_what_left_hours_ago_stays_for_days(
    watched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a watch has vacuumed the lake before, whose log lists for an hour what has left."""
    tables = DeltaTables(str(tmp_path), fs.LocalFileSystem(), "lake")
    files = [part(tmp_path, 0), part(tmp_path, 1)]
    with monkeypatch.context() as earlier:
        earlier.setattr(delta, "time", SimpleNamespace(time_ns=lambda: time.time_ns() - 2 * HOUR * 10**9))
        version = tables.commit(FILES, files, 1)
        if watched:
            tables.vacuum("files", 1, version, often=True)
        left = files.pop(0)
        tables.commit(FILES, files, 2)
    for number in range(3, 15):
        files.append(part(tmp_path, number))
        version = tables.commit(FILES, files, number)
    assert (
        DeltaTables(str(tmp_path), fs.LocalFileSystem(), "lake").vacuum("files", 168, version, often=False)
        == 0
    )
    assert (tmp_path / left.path).exists()


def test_files_of_others_are_refused_each_time(tmp_path: Path) -> None:
    tables = DeltaTables(str(tmp_path), fs.LocalFileSystem(), "lake")
    version = tables.commit(FILES, [part(tmp_path, 0), part(tmp_path, 1, "evil")], 1)
    for _ in range(2):
        with pytest.raises(PipelineError, match="is no file that amqpscope has written"):
            tables.files("files", version)
