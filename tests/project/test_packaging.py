"""What is in the tree is in the package."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_package_is_installed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for top in ("amqpscope", "dissectors")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert sorted(listed) == sorted({*found, "amqpscope.rules.captures"})
