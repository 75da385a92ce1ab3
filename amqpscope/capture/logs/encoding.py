"""Frames of AMQP 1.0 put into octets again, from the fields that a log holds.

A log names the fields, and the definition of the performative says their types. Where a log does not tell the
type of a value (in a map, for example) an ordinary one is taken.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final

from amqpscope.capture import unlogged
from dissectors.amqp10.composite import CompositeType, Field
from dissectors.amqp10.registry import FINAL
from dissectors.amqp10.values import Symbol

__all__ = ["AS_NULL", "UNLOGGED", "NamedComposite", "Tagged", "definition", "frame", "header"]


class _Unlogged:
    """Stands for a value that the log does not hold."""


UNLOGGED: Final = _Unlogged()

AS_NULL: Final = _Unlogged()
"""Stands for a value that the log shows like null: it is null, or it forbids more than null does."""


class NamedComposite:
    """A composite: the name of its type, and its fields by their names."""

    def __init__(self, name: str, fields: Mapping[str, object]) -> None:
        self.name = name
        self.fields = fields


class Tagged:
    """A described value of a type that is no composite known here."""

    def __init__(self, descriptor: object, value: object) -> None:
        self.descriptor = descriptor
        self.value = value


_UNSIGNED: Final = {
    "ubyte": (0x50, 1),
    "ushort": (0x60, 2),
    "uint": (0x70, 4),
    "ulong": (0x80, 8),
}
"""The constructor and the octets of an unsigned number."""

_PRIMITIVES: Final = {
    "role": "boolean",
    "sender-settle-mode": "ubyte",
    "receiver-settle-mode": "ubyte",
    "sasl-code": "ubyte",
    "handle": "uint",
    "milliseconds": "uint",
    "seconds": "uint",
    "delivery-number": "uint",
    "sequence-no": "uint",
    "transfer-number": "uint",
    "message-format": "uint",
    "terminus-durability": "uint",
    "terminus-expiry-policy": "symbol",
    "ietf-language-tag": "symbol",
    "delivery-tag": "binary",
    "fields": "map",
    "filter-set": "map",
    "node-properties": "map",
}
"""The primitive type of each restricted type of the specification."""

_HEADERS: Final = {"AMQP": 0, "TLS": 2, "SASL": 3}
"""The protocol id of each layer."""


def definition(name: str) -> CompositeType | None:
    """The definition of the composite of this name, None if there is none."""
    return _DEFINITIONS.get(name)


def header(layer: str) -> bytes:
    """The protocol header of AMQP, TLS or SASL, all 1.0.0."""
    return b"AMQP" + bytes([_HEADERS[layer], 1, 0, 0])


def frame(channel: int, body: NamedComposite | None, payload: bytes = b"", missing: int = 0) -> bytes:
    """A frame; None for an empty one. missing: octets of payload that the log does not hold."""
    octets = b"" if body is None else _composite(body)
    sasl = body is not None and body.name.startswith("sasl-")
    extended = missing.to_bytes(4, "big") if missing else b""
    size = 8 + len(extended) + len(octets) + len(payload)
    words = 2 + len(extended) // 4
    place = 0 if sasl else channel
    return struct.pack(">IBBH", size, words, 1 if sasl else 0, place) + extended + octets + payload


def _composite(body: NamedComposite) -> bytes:
    known = _DEFINITIONS[body.name]
    values = [_field(field, body.fields.get(field.name)) for field in known.fields]
    while values and values[-1] == b"\x40":
        values.pop()
    return b"\x00\x53" + bytes([known.code]) + _list(values)


def _field(field: Field, value: object) -> bytes:
    """The value of a field, as its definition has it; UNLOGGED if the log has something else there."""
    if value is None:
        return b"\x40"
    if value is UNLOGGED:
        return unlogged.VALUE
    if value is AS_NULL:
        return unlogged.NULL
    kind = _PRIMITIVES.get(field.type, field.type)
    try:
        if field.multiple:
            return _several(value)
        if kind == "*" or isinstance(value, (NamedComposite, Tagged)):
            return _any(value)
        return _primitive(kind, value)
    except (ValueError, TypeError, OverflowError, struct.error, RecursionError):
        return unlogged.VALUE


def _several(value: object) -> bytes:
    """The value of a field that may have several: an array of symbols."""
    items = value if isinstance(value, (list, tuple)) else [value]
    octets = [_text(item).encode("ascii") for item in items]
    body = b"\xb3" + b"".join(struct.pack(">I", len(one)) + one for one in octets)
    return b"\xf0" + struct.pack(">II", len(body) + 4, len(octets)) + body


def _primitive(kind: str, value: object) -> bytes:
    """A value as the primitive type of its field. Raises TypeError or ValueError if it is none."""
    if kind == "boolean" and isinstance(value, bool):
        return b"\x41" if value else b"\x42"
    if kind in _UNSIGNED and isinstance(value, int) and not isinstance(value, bool):
        code, width = _UNSIGNED[kind]
        return bytes([code]) + value.to_bytes(width, "big")
    if kind == "string":
        return _variable(0xB1, _text(value).encode())
    if kind == "symbol":
        return _variable(0xB3, _text(value).encode("ascii"))
    if kind == "binary" and isinstance(value, bytes):
        return _variable(0xB0, value)
    if kind == "map" and isinstance(value, dict):
        return _map(value)
    raise TypeError(kind)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _any(value: object) -> bytes:
    """A value whose type nothing but itself tells."""
    if value is UNLOGGED:
        return unlogged.VALUE
    if value is None:
        return b"\x40"
    if isinstance(value, bool):
        return b"\x41" if value else b"\x42"
    if isinstance(value, int):
        if value < 0:
            return b"\x81" + value.to_bytes(8, "big", signed=True)
        return b"\x70" + value.to_bytes(4, "big") if value < 1 << 32 else b"\x80" + value.to_bytes(8, "big")
    if isinstance(value, float):
        return b"\x82" + struct.pack(">d", value)
    if isinstance(value, Symbol):
        return _variable(0xB3, value.encode("ascii"))
    if isinstance(value, str):
        return _variable(0xB1, value.encode())
    if isinstance(value, bytes):
        return _variable(0xB0, value)
    if isinstance(value, dict):
        return _map(value)
    if isinstance(value, NamedComposite):
        return _composite(value)
    if isinstance(value, Tagged):
        return b"\x00" + _any(value.descriptor) + _any(value.value)
    if isinstance(value, (list, tuple)):
        return _list([_any(one) for one in value])
    raise TypeError("no value of AMQP")


def _variable(code: int, octets: bytes) -> bytes:
    return bytes([code]) + struct.pack(">I", len(octets)) + octets


def _list(values: Sequence[bytes]) -> bytes:
    body = b"".join(values)
    return b"\xd0" + struct.pack(">II", len(body) + 4, len(values)) + body


def _map(value: dict[object, object]) -> bytes:
    body = b"".join(_any(key) + _any(one) for key, one in value.items())
    return b"\xd1" + struct.pack(">II", len(body) + 4, 2 * len(value)) + body


def _definitions() -> dict[str, CompositeType]:
    found = {}
    for code in range(256):
        composite = FINAL.new(code)
        if composite is not None:
            found[composite.definition().name] = composite.definition()
    return found


_DEFINITIONS: Final = _definitions()
