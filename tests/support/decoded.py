"""What the product decoded, put as the meanings of `support.strategies`, to be compared with what was drawn.

Types are reported by the product's classes, and in a composite's fields by the encoder's own table of fields:
none of this asks the product what it thinks a value is.
"""

from __future__ import annotations

import struct
import uuid
from typing import Any

from support import amqp10_encode as amqp

from dissectors.amqp10.composite import Composite
from dissectors.amqp10.decimals import Decimal32, Decimal64, Decimal128
from dissectors.amqp10.types import ValueReader
from dissectors.amqp10.values import (
    Array,
    Byte,
    Char,
    Described,
    Float,
    Int,
    Long,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from dissectors.interface import Frame, Problem

Meaning = tuple[Any, ...]

_INTEGERS = {
    UByte: "ubyte",
    UShort: "ushort",
    UInt: "uint",
    ULong: "ulong",
    Byte: "byte",
    Short: "short",
    Int: "int",
    Long: "long",
    Timestamp: "timestamp",
}
_DECIMALS = {Decimal32: "decimal32", Decimal64: "decimal64", Decimal128: "decimal128"}


def meaning(value: object) -> Meaning:
    """A decoded value as (type, value), see `support.strategies`."""
    kind: type = type(value)
    if value is None:
        return ("null", None)
    if kind is bool:
        return ("boolean", value)
    if kind in _INTEGERS:
        assert isinstance(value, int)
        return (_INTEGERS[kind], int(value))
    if isinstance(value, float):
        return ("float", struct.pack(">f", value)) if kind is Float else ("double", struct.pack(">d", value))
    if kind in _DECIMALS:
        assert isinstance(value, (Decimal32, Decimal64, Decimal128))
        return (_DECIMALS[kind], value.as_tuple())
    if isinstance(value, str):
        if kind is Char:
            return ("char", ord(value))
        return ("symbol" if kind is Symbol else "string", str(value))
    if isinstance(value, uuid.UUID):
        return ("uuid", value.bytes)
    if isinstance(value, bytes):
        return ("binary", value)
    if isinstance(value, list):
        return ("list", tuple(meaning(item) for item in value))
    if isinstance(value, Map):
        return ("map", tuple((meaning(key), meaning(item)) for key, item in value.pairs))
    if isinstance(value, Array):
        assert value.count == len(value.items)
        return ("array", tuple(_described(value.descriptor, meaning(item)) for item in value.items))
    if isinstance(value, Described):
        return ("described", meaning(value.descriptor), meaning(value.value))
    if isinstance(value, Composite):
        return ("composite", value.definition().name, fields(value))
    raise AssertionError(f"{value!r} has no meaning")


def _described(descriptor: object, item: Meaning) -> Meaning:
    """An array's item with the array's descriptors around it, the outermost outside."""
    if descriptor is None:
        return item
    if isinstance(descriptor, Described):
        return _described(descriptor.descriptor, _described(descriptor.value, item))
    return ("described", meaning(descriptor), item)


def fields(composite: Composite) -> dict[str, Meaning]:
    """The fields that are set, each as a meaning; of one that may be `multiple` always as an array."""
    assert composite.odd is None
    assert composite.extra is None
    result: dict[str, Meaning] = {}
    table = amqp.COMPOSITES[composite.definition().name][1]
    for (name, kind), value in zip(table, composite.values(), strict=True):
        if value is None:
            continue
        if kind == "symbols":
            assert isinstance(value, list)
            result[name] = ("array", tuple(meaning(symbol) for symbol in value))
        elif kind in ("*", "message-id", "boolean"):
            result[name] = meaning(value)
        elif isinstance(value, int):
            result[name] = (kind, int(value))
        elif isinstance(value, str):
            result[name] = (kind, str(value))
        else:
            result[name] = meaning(value)
    return result


def expected(drawn: Meaning) -> Meaning:
    """A drawn meaning in the form that decoding gives: a lone symbol of a `multiple` field as an array."""
    if drawn[0] in ("list", "array"):
        return (drawn[0], tuple(expected(item) for item in drawn[1]))
    if drawn[0] == "map":
        return ("map", tuple((expected(key), expected(item)) for key, item in drawn[1]))
    if drawn[0] == "described":
        return ("described", expected(drawn[1]), expected(drawn[2]))
    if drawn[0] != "composite":
        return drawn
    several = {name for name, kind in amqp.COMPOSITES[drawn[1]][1] if kind == "symbols"}
    return (
        "composite",
        drawn[1],
        {
            name: ("array", (item,)) if name in several and item[0] == "symbol" else expected(item)
            for name, item in drawn[2].items()
        },
    )


def read_value(octets: bytes) -> tuple[object, ValueReader]:
    """One value from the beginning of some octets, and the reader behind it."""
    reader = ValueReader(octets, 0, len(octets), 0)
    return reader.value(), reader


def problems(found: list[Problem]) -> list[tuple[str, int, str]]:
    """Problems as (code, offset, path)."""
    return [(problem.code, int(problem.offset), problem.path) for problem in found]


def frame_state(frame: Frame) -> tuple[Any, ...]:
    """Everything a frame says, as plain values to be compared."""
    return (
        int(frame.offset),
        int(frame.size),
        frame.kind,
        frame.name,
        int(frame.channel),
        repr(frame.body),
        int(frame.missing),
        bytes(frame.raw),
        bytes(frame.extended_header),
        bytes(frame.payload),
        [
            (*found, problem.reason)
            for found, problem in zip(problems(frame.problems), frame.problems, strict=True)
        ],
    )
