"""The published JSON Schemas as tests apply them: an output has no field that its schema does not name."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from amqpscope.schemas import schema

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

__all__ = ["closed", "validator"]


def closed(part: Any) -> Any:
    """The same schema, which takes no field that it does not name."""
    if isinstance(part, list):
        return [closed(one) for one in part]
    if not isinstance(part, dict):
        return part
    made = {name: closed(one) for name, one in part.items()}
    if "properties" in part and "type" in part and "additionalProperties" not in part:
        made["additionalProperties"] = False
    return made


@functools.cache
def validator(name: str, part: str = "") -> Draft202012Validator:
    """Of an object, or of one of its parts that others have, too."""
    import jsonschema  # some environments of the tests do not have it

    whole = closed(schema(name))
    if part:
        whole = {"$defs": whole["$defs"], "$ref": f"#/$defs/{part}"}
    return jsonschema.Draft202012Validator(whole)
