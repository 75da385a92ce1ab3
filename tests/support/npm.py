"""Libraries of JavaScript from npm that tests run in Chromium. NODE_PATH or `.node` has them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

__all__ = ["AXE", "MERMAID", "library"]

AXE: Final = "axe-core/axe.min.js"
"""Looks for faults in a page that keep people from using it with a screen reader or a keyboard."""

MERMAID: Final = "@mermaid-js/tiny/dist/mermaid.tiny.js"
"""Mermaid in one file: the parser and the renderer of sequence diagrams."""

_INSTALLED: Final = Path(__file__).resolve().parents[2] / ".node" / "node_modules"


def library(name: str) -> str:
    """The text of a library. Without it the test is skipped; if AMQPSCOPE_NODE is `require`, it fails."""
    folders = [Path(one) for one in os.environ.get("NODE_PATH", "").split(os.pathsep) if one]
    for folder in (*folders, _INSTALLED):
        if (folder / name).is_file():
            return (folder / name).read_text("utf-8")
    reason = f"npm has not installed {name}: .ci/run does"
    if os.environ.get("AMQPSCOPE_NODE") == "require":
        pytest.fail(reason)
    pytest.skip(reason)
