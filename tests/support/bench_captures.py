"""The captures of the bench: what `tests/bench/generate.py` writes."""

import importlib.util
from pathlib import Path
from typing import Any

__all__ = ["bench"]

# By its path: it is no module of a package.
_spec = importlib.util.spec_from_file_location(
    "bench_captures", Path(__file__).parents[1] / "bench" / "generate.py"
)
assert _spec
assert _spec.loader
bench: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bench)
