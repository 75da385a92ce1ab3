"""Parts of which declarations are made. A schema is a plain dict."""

from typing import Any, Final

__all__ = [
    "ANY", "CERTAINTY", "FLAG", "INDEX", "NUMBER", "PEER", "SEVERITY", "TEXT", "TIME", "any_of", "listed",
    "mapped", "named", "nullable", "per_peer", "record", "said",
]  # fmt: skip

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
TIME: Final[Schema] = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"}
INDEX: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}
ANY: Final[Schema] = {}
PEER: Final[Schema] = {"enum": ["client", "server"]}
SEVERITY: Final[Schema] = {"enum": ["error", "warning", "note"]}
CERTAINTY: Final[Schema] = {"enum": ["certain", "possible"]}


def any_of(*words: str) -> Schema:
    """One of these words."""
    return {"enum": list(words)}


def named(name: str) -> Schema:
    """What stands by this name in `$defs`."""
    return {"$ref": f"#/$defs/{name}"}


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def listed(schema: Schema) -> Schema:
    """A list of such."""
    return {"type": "array", "items": schema}


def mapped(schema: Schema) -> Schema:
    """An object whose names are data."""
    return {"type": "object", "additionalProperties": schema}


def said(schema: Schema, words: str) -> Schema:
    """The same, with what it means."""
    return {**schema, "description": words}


def record(fields: dict[str, Schema], words: str = "") -> Schema:
    """An object of these fields. A name that ends with `?` may be missing."""
    made: Schema = {"type": "object"}
    if words:
        made["description"] = words
    made["properties"] = {name.removesuffix("?"): schema for name, schema in fields.items()}
    made["required"] = [name for name in fields if not name.endswith("?")]
    return made


def per_peer(schema: Schema) -> Schema:
    """One for each of the two peers."""
    return record({"client": schema, "server": schema})
