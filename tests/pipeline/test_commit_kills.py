"""A commit that is killed at a random moment shows the old run or the new one, whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.commit_kills import kills


@pytest.mark.skipif(os.name != "posix", reason="there are no signals")
def test_readers_see_one_run(tmp_path: Path) -> None:
    """`python -m support.commit_kills 200` does it more often."""
    assert kills(tmp_path / "lake", 4)["killed"] == 4
