"""JSON Schemas (2020-12) of every object `amqpscope/.../1` that a command writes.

    amqpscope.schemas.schema("findings")          # a dict
    python -m amqpscope.schemas                   # writes findings-1.json and the others beside this file
    python -m amqpscope.schemas --check           # writes nothing; exit status 1 if a file differs

`declared` has the declarations. Fields that a schema does not name may come with any release: a program that
reads these objects ignores them.
"""

import json
from importlib import resources
from typing import Any

__all__ = ["schema"]


def schema(name: str) -> dict[str, Any]:
    """The schema of an object: `findings` for `amqpscope/findings/1`. Raises FileNotFoundError."""
    text = resources.files("amqpscope.schemas").joinpath(f"{name}-1.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
