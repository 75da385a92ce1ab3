"""Values and fields as text for people: short, safe to show, and in the specification's words."""

import uuid

from amqpscope.report.printable import printable, quoted, word
from amqpscope.report.secrets import (
    hides_field,
    hides_octets,
    is_odd,
    is_secret_key,
    size_of,
    without_password,
)
from dissectors.amqp10.composite import Composite, Field
from dissectors.amqp10.types import type_name
from dissectors.amqp10.values import Array, Described, Map, Raw, Timestamp

__all__ = ["field_text", "format_name", "hidden_text", "octets_text", "text_word", "typed_text", "value_text"]

_UNITS = {"milliseconds": " ms", "seconds": " s"}

# What a field's type leaves no doubt about: strings in it need no quotes to be told from numbers.
_TEXT_TYPES = ("string", "symbol", "ietf-language-tag", "error-condition")

BRIEF = 64
"""Characters of one string shown in a line."""


def hidden_text(value: object) -> str:
    """What stands for a secret."""
    size = size_of(value)
    return f"(hidden, {size} octets)" if size else "(hidden)"


def text_word(text: str, most: int = BRIEF) -> str:
    """A string or symbol of the wire where only such can stand, as one word."""
    return word(without_password(text), most)


def octets_text(octets: bytes, most: int = BRIEF) -> str:
    """Octets as a quoted string if they are printable ASCII, else in hex."""
    if octets.isascii():
        text = octets.decode("ascii")
        if text.isprintable():
            if most and len(text) > most:
                text = text[: most - 1] + "…"
            return 'b"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    shown = octets[: most // 2] if most else octets
    return f"0x{shown.hex()}" + ("…" if len(shown) < len(octets) else "")


def value_text(value: object, most: int = BRIEF) -> str:
    """Any value. most: characters of a string, items of a collection, halved for those in it; 0 for all."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Timestamp):
        return value.iso()
    if isinstance(value, str):
        return quoted(without_password(value), most)
    if isinstance(value, (bytes, bytearray)):
        return octets_text(bytes(value), most)
    inner = max(most // 2, 2) if most else 0
    if isinstance(value, list):
        return "[" + _items([value_text(item, inner) for item in _first(value, inner)], len(value)) + "]"
    if isinstance(value, Map):
        pairs = value.pairs[:inner] if inner else value.pairs
        return "{" + _items([_pair(key, item, inner) for key, item in pairs], len(value.pairs)) + "}"
    if isinstance(value, Array):
        shown = [value_text(item, inner) for item in _first(value.items, inner)]
        prefix = f"@{value_text(value.descriptor, inner)} " if value.descriptor is not None else ""
        return prefix + "[" + _items(shown, value.count) + "]"
    if isinstance(value, Composite):
        fields = [
            f"{field.name}={field_text(value, field, item, inner)}"
            for field, item in value.fields()
            if item is not False or field.choices
        ]
        return value.definition().name + (f"({', '.join(fields)})" if fields else "")
    if isinstance(value, Described):
        return f"@{value_text(value.descriptor, inner)}({value_text(value.value, inner)})"
    if isinstance(value, Raw):
        return _raw_text(value, inner)
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, uuid.UUID):
        return str(value)
    return printable(str(value))


def _raw_text(value: Raw, most: int) -> str:
    if not value.octets:
        return "(nothing)"
    if hides_octets(value.octets):
        return f"undecodable ({len(value.octets)} octets, hidden)"
    octets = value.octets[:most] if most else value.octets
    return f"undecodable 0x{octets.hex()}" + ("…" if len(octets) < len(value.octets) else "")


def _pair(key: object, item: object, most: int) -> str:
    shown = hidden_text(item) if is_secret_key(key) else value_text(item, most)
    return f"{value_text(key, most)}={shown}"


def _first(items: list[object], most: int) -> list[object]:
    return items[:most] if most else items


def _items(shown: list[str], count: int) -> str:
    if count > len(shown):
        shown.append(f"… {count - len(shown)} more")
    return ", ".join(shown)


def field_text(owner: Composite, field: Field, value: object, most: int = BRIEF) -> str:
    """A field's value: by the name of its choice, with its unit, hidden if it is a secret."""
    if hides_field(owner, field, value):
        return hidden_text(value)
    if owner.odd is not None and is_odd(owner, value):
        return typed_text(value, most)
    if isinstance(value, str):
        if field.type in _TEXT_TYPES and not field.choices:
            return text_word(value, most)
    elif field.type == "timestamp" and isinstance(value, int):
        return Timestamp(value).iso()
    elif field.type == "message-format" and isinstance(value, int):
        return format_name(value)
    elif field.type in _UNITS and isinstance(value, int):
        return f"{value}{_UNITS[field.type]}"
    if field.choices and isinstance(value, (bool, int, str)):
        name = field.choices.get(value)
        if name is not None:
            return name
    if field.requires == "address" and isinstance(value, str):
        return text_word(value, most)
    if field.multiple and isinstance(value, list):
        items = [text_word(item, most) if isinstance(item, str) else value_text(item) for item in value]
        return ",".join(items) or "(none)"
    return value_text(value, most)


def format_name(message_format: int) -> str:
    """A message format as people write it."""
    return "0" if message_format == 0 else f"0x{message_format:08x}"


def typed_text(value: object, most: int = BRIEF) -> str:
    """A value with its AMQP type, where the text does not tell."""
    name = type_name(value)
    text = value_text(value, most)
    if name in ("string", "boolean", "null", "list", "map", "array", "described value", "undecodable value"):
        return text
    return text if isinstance(value, Composite) else f"{text} ({name})"
