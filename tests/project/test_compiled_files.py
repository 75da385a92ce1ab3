"""The list of the files that `setup.py` compiles."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def names(of: str) -> list[str]:
    """A list of `setup.py`, which is read and not run."""
    for node in ast.parse((ROOT / "setup.py").read_text(encoding="utf-8")).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == of
        ):
            found: list[str] = ast.literal_eval(node.value)
            return found
    raise AssertionError(of)


@pytest.mark.parametrize("of", ["COMPILED_FOLDERS", "NOT_COMPILED", "COMPILED_FILES"])
def test_what_the_lists_name_is_there(of: str) -> None:
    assert [name for name in names(of) if not (ROOT / name).exists()] == []


def test_each_file_is_named_where_it_has_to_be() -> None:
    folders = names("COMPILED_FOLDERS")
    assert all(str(Path(name).parent.as_posix()) in folders for name in names("NOT_COMPILED"))
    assert not any(str(Path(name).parent.as_posix()) in folders for name in names("COMPILED_FILES"))
