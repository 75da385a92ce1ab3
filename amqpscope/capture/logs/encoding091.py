"""Frames of AMQP 0-9-1 put into octets again, from the fields that a log holds.

What a log does not hold is marked as `amqpscope.capture.unlogged` says.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final

from amqpscope.capture import unlogged
from amqpscope.capture.logs.encoding import UNLOGGED
from dissectors.amqp091.arguments import ArgumentField, MethodType
from dissectors.amqp091.methods import BASIC_PROPERTIES
from dissectors.amqp091.registry import METHODS

__all__ = ["GREETING", "HEARTBEAT", "content_header", "method", "method_type"]

GREETING: Final = b"AMQP\x00\x00\x09\x01"
"""The protocol header."""

HEARTBEAT: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"
"""A heartbeat."""

_METHOD: Final = 1
_HEADER: Final = 2
_BASIC: Final = 60
_END: Final = b"\xce"
_NUMBERS: Final = {"octet": ">B", "short": ">H", "long": ">I", "longlong": ">Q", "timestamp": ">Q"}
_TYPES: Final = {one.name: one for one in METHODS}


def method_type(name: str) -> MethodType | None:
    """The definition of the method of this name, None if there is none."""
    return _TYPES.get(name)


def method(channel: int, kind: MethodType, values: Sequence[object]) -> bytes:
    """The frame of a method. values: of its fields. Raises ValueError if one does not fit its field."""
    octets = struct.pack(">HH", int(kind.class_id), int(kind.method_id))
    bits: list[bool] = []
    for field, value in zip(kind.fields, values, strict=True):
        if field.type == "bit":
            bits.append(bool(value))
            continue
        octets += _packed(bits)
        bits = []
        octets += _value(field, value)
    return _frame(_METHOD, channel, octets + _packed(bits))


def content_header(channel: int, properties: Mapping[str, object], unknown: int) -> bytes:
    """The frame of a content header whose body is not in the log. properties: those that are set.

    unknown: what else is not in the log, marks of `unlogged`. Raises ValueError if one does not fit its
    field.
    """
    flags = 0
    octets = b""
    for index, field in enumerate(BASIC_PROPERTIES.fields):
        value = properties.get(field.name)
        if value is not None:
            flags |= 1 << (15 - index)
            octets += _value(field, value)
    weight = unlogged.BODY | unknown
    return _frame(_HEADER, channel, struct.pack(">HHQH", _BASIC, weight, 0, flags) + octets)


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + _END


def _packed(bits: list[bool]) -> bytes:
    """Bits in octets, the first one lowest."""
    octets = bytearray((len(bits) + 7) // 8)
    for index, bit in enumerate(bits):
        octets[index // 8] |= bit << (index % 8)
    return bytes(octets)


def _value(field: ArgumentField, value: object) -> bytes:
    pattern = _NUMBERS.get(field.type)
    try:
        if pattern is not None and isinstance(value, int):
            return struct.pack(pattern, value)
        if field.type == "shortstr" and isinstance(value, str):
            octets = value.encode()
            return bytes([len(octets)]) + octets
        if field.type == "longstr" and isinstance(value, str):
            octets = value.encode()
            return struct.pack(">I", len(octets)) + octets
        if field.type == "table" and value is UNLOGGED:
            return struct.pack(">I", len(unlogged.TABLE)) + unlogged.TABLE
        if field.type == "table" and isinstance(value, dict):
            return _table(value)
    except (struct.error, ValueError) as error:
        raise ValueError("out of range") from error
    raise ValueError("no value of this field")


def _table(pairs: Mapping[str, object]) -> bytes:
    """A table of truth values, texts and tables."""
    octets = b""
    for name, value in pairs.items():
        octets += bytes([len(name)]) + name.encode("ascii")
        if isinstance(value, bool):
            octets += b"t" + bytes([value])
        elif isinstance(value, dict):
            octets += b"F" + _table(value)
        else:
            text = str(value).encode()
            octets += b"S" + struct.pack(">I", len(text)) + text
    return struct.pack(">I", len(octets)) + octets
