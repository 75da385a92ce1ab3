"""Values and fields as text for people: short, safe to show, and in the specification's words."""

import uuid

from amqpscope.report.printable import printable, quoted
from dissectors.amqp10.composite import Composite, Field
from dissectors.amqp10.types import type_name
from dissectors.amqp10.values import Array, Described, Map, Raw, Symbol, Timestamp

__all__ = ["field_text", "octets_text", "value_text"]

_UNITS = {"milliseconds": "ms", "seconds": "s"}

# Fields of these types are counters or tags whose octets are best read in hex.
_HEX = ("delivery-tag",)

LONGEST = 64
"""Characters of one string shown in a line; `most=0` shows all."""


def octets_text(octets: bytes, most: int) -> str:
    """Octets as hex, or as a quoted string if they are printable ASCII."""
    if octets and octets.isascii() and octets.decode("ascii").isprintable():
        text = octets.decode("ascii")
        if most and len(text) > most:
            text = text[: most - 1] + "…"
        return f'b"{text}"'
    shown = octets if not most else octets[: most // 2]
    return f"0x{shown.hex()}" + ("…" if len(shown) < len(octets) else "")


def value_text(value: object, most: int = LONGEST) -> str:
    """Any value. most: characters of a string, and items of a collection, before it is cut; 0 for all."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Timestamp):
        return value.iso()
    if isinstance(value, str):
        return quoted(value, most)
    if isinstance(value, (bytes, bytearray)):
        return octets_text(bytes(value), most)
    if isinstance(value, list):
        return "[" + _items([value_text(item, most) for item in _first(value, most)], len(value)) + "]"
    if isinstance(value, Map):
        pairs = value.pairs if not most else value.pairs[: most // 2]
        shown = [f"{value_text(key, most)}={value_text(item, most)}" for key, item in pairs]
        return "{" + _items(shown, len(value.pairs)) + "}"
    if isinstance(value, Array):
        shown = [value_text(item, most) for item in _first(value.items, most)]
        prefix = f"@{value_text(value.descriptor, most)} " if value.descriptor is not None else ""
        return prefix + "[" + _items(shown, value.count) + "]"
    if isinstance(value, Composite):
        fields = [f"{field.name}={field_text(field, item, most)}" for field, item in value.fields()]
        return value.definition().name + (f"({', '.join(fields)})" if fields else "")
    if isinstance(value, Described):
        return f"@{value_text(value.descriptor, most)}({value_text(value.value, most)})"
    if isinstance(value, Raw):
        octets = value.octets if not most else value.octets[: most // 2]
        return f"undecodable 0x{octets.hex()}" + ("…" if len(octets) < len(value.octets) else "")
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, uuid.UUID):
        return str(value)
    return printable(str(value))


def _first(items: list[object], most: int) -> list[object]:
    return items if not most else items[: most // 2]


def _items(shown: list[str], count: int) -> str:
    text = ", ".join(shown)
    return f"{text}, … {count - len(shown)} more" if count > len(shown) else text


def field_text(field: Field, value: object, most: int = LONGEST) -> str:
    """A field's value: by the name of its choice, with its unit, hidden if it is a secret."""
    if field.secret:
        size = len(value) if isinstance(value, (bytes, str)) else 0
        return f"(hidden, {size} octets)"
    if field.choices and isinstance(value, (bool, int, str)):
        name = field.choices.get(value)
        if name is not None:
            return name
    if field.type in _UNITS and isinstance(value, int):
        return f"{value}{_UNITS[field.type]}"
    if field.type == "timestamp" and isinstance(value, int):
        return Timestamp(value).iso()
    if field.type in _HEX and isinstance(value, bytes):
        shown = value if not most else value[: most // 2]
        return (shown.hex() or "(empty)") + ("…" if len(shown) < len(value) else "")
    if field.multiple and isinstance(value, list):
        return (
            ",".join(value_text(Symbol(item) if isinstance(item, str) else item, most) for item in value)
            or "(none)"
        )
    return value_text(value, most)


def typed_text(value: object, most: int = LONGEST) -> str:
    """A value with its AMQP type, where the type is worth knowing."""
    name = type_name(value)
    text = value_text(value, most)
    if name in ("string", "boolean", "null", "list", "map", "array", "described value", "undecodable value"):
        return text
    return text if isinstance(value, Composite) else f"{text} ({name})"
