"""What is in the tree is in the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from project import address

from amqpscope import __version__

ROOT = Path(__file__).parents[2]


def test_every_package_is_installed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for top in ("amqpscope", "dissectors")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert sorted(listed) == sorted({*found, "amqpscope.rules.captures"})


def test_the_page_of_a_package_index_has_no_relative_link() -> None:
    script = (ROOT / "setup.py").read_text().partition("\nsetup(")[0]
    names: dict[str, Any] = {"__file__": str(ROOT / "setup.py")}
    exec(compile(script, "setup.py", "exec"), names)
    targets = re.findall(r"\]\(([^)]*)\)", names["readme"]())
    source = address.current()
    assert len(targets) > 10
    assert all(target.startswith(f"{source}/") and f"/v{__version__}/" in target for target in targets)


def test_the_address_of_the_repository_is_the_same_everywhere() -> None:
    assert set(address.mentioned()) == {address.current()}


def test_the_address_can_be_changed() -> None:
    text = "uses: OWNER/amqpscope@REF\nurl: https://github.com/OWNER/amqpscope/issues"
    changed = address.changed(text, "https://github.com/OWNER/amqpscope", "https://forge.example/acme/scope")
    assert changed == "uses: acme/scope@REF\nurl: https://forge.example/acme/scope/issues"
