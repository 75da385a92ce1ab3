"""Frames and values as JSON text.

A field whose type the specification fixes is written plainly: numbers as numbers, strings and
symbols as strings, binaries as hex, timestamps in ISO 8601, several symbols as an array, a map whose
keys are all symbols (or all strings, in application-properties) as an object, a composite as an
object of its fields with its name in `type`. A field of free type is written so that its AMQP type
can be told:

    null, true, "text", 1.5, [..]                     null, boolean, string, double, list
    {"symbol": "x"}  {"binary": "00ff"}  {"char": "x"}
    {"timestamp": "2026-01-01T00:00:00.000Z"}  {"uuid": "..."}
    {"ubyte": 1} {"ushort": 1} {"uint": 1} {"ulong": 1} {"byte": 1} {"short": 1} {"int": 1} {"long": 1}
    {"float": 1.5}  {"decimal32": "1.50"}  {"decimal64": "1.50"}  {"decimal128": "1.50"}
    {"map": [[key, value], ..]}
    {"array": "symbol", "count": 2, "items": [..], "descriptor": ..}
    {"described": {"descriptor": .., "value": ..}}
    {"type": "source", ..}                            a composite
    {"raw": "hex"}                                    octets that do not decode
    {"hidden": 12}                                    12 octets that are a secret

A number that JSON has no form for (infinity, NaN) is a string. The text is ASCII throughout.
"""

import math
import uuid
from json.encoder import encode_basestring_ascii as quote

from amqpscope.model import FrameRecord
from amqpscope.report.links import LinkOf
from amqpscope.report.moment import iso
from amqpscope.report.secrets import hides_body, hides_raw
from dissectors.amqp10.composite import Composite, Field
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.message import Message
from dissectors.amqp10.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Long,
    Map,
    Raw,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from dissectors.interface import Frame, Problem

__all__ = ["composite_json", "frame_json", "message_json", "value_json"]

_NUMBERS: dict[type, str] = {
    UByte: "ubyte",
    UShort: "ushort",
    UInt: "uint",
    ULong: "ulong",
    Byte: "byte",
    Short: "short",
    Int: "int",
    Long: "long",
}

_DECIMALS: dict[type, str] = {Decimal32: "decimal32", Decimal64: "decimal64", Decimal128: "decimal128"}

_SECTION_KEYS = (
    "header",
    "delivery-annotations",
    "message-annotations",
    "properties",
    "application-properties",
    "footer",
)


def _float_json(number: float) -> str:
    if math.isfinite(number):
        return repr(float(number))
    return f'"{float(number)!r}"'


def value_json(value: object) -> str:
    """A value of free type, so that its AMQP type can be told."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    kind = type(value)
    if isinstance(value, str):
        if kind is Symbol:
            return f'{{"symbol": {quote(value)}}}'
        if kind is Char:
            return f'{{"char": {quote(value)}}}'
        return quote(value)
    name = _NUMBERS.get(kind)
    if name is not None:
        assert isinstance(value, int)
        return f'{{"{name}": {int(value)}}}'
    if isinstance(value, bytes):
        return f'{{"binary": "{value.hex()}"}}'
    if isinstance(value, Timestamp):
        return f'{{"timestamp": "{value.iso()}"}}'
    if isinstance(value, float):
        text = _float_json(value)
        return f'{{"float": {text}}}' if isinstance(value, Float) else text
    if isinstance(value, list):
        return "[" + ", ".join([value_json(item) for item in value]) + "]"
    if isinstance(value, Map):
        pairs = [f"[{value_json(key)}, {value_json(item)}]" for key, item in value.pairs]
        return '{"map": [' + ", ".join(pairs) + "]}"
    if isinstance(value, Composite):
        return composite_json(value)
    if isinstance(value, Array):
        items = ", ".join([value_json(item) for item in value.items])
        text = f'{{"array": {quote(value.element)}, "count": {value.count}, "items": [{items}]'
        if value.descriptor is not None:
            text += f', "descriptor": {value_json(value.descriptor)}'
        return text + "}"
    if isinstance(value, Described):
        descriptor = value_json(value.descriptor)
        return f'{{"described": {{"descriptor": {descriptor}, "value": {value_json(value.value)}}}}}'
    if isinstance(value, uuid.UUID):
        return f'{{"uuid": "{value}"}}'
    name = _DECIMALS.get(kind)
    if name is not None:
        return f'{{"{name}": "{value}"}}'
    if isinstance(value, Raw):
        return f'{{"raw": "{value.octets.hex()}"}}'
    return quote(str(value))


def _field_json(field: Field, value: object, typed: bool) -> str:
    """A field's value. typed: it is of the field's declared type."""
    if field.secret:
        size = len(value) if isinstance(value, (bytes, str)) else 0
        return f'{{"hidden": {size}}}'
    if not typed or field.type == "*":
        return value_json(value)
    if value is True:
        return "true"
    if value is False:
        return "false"
    if field.type == "timestamp" and isinstance(value, int):
        return f'"{Timestamp(value).iso()}"'
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bytes):
        return f'"{value.hex()}"'
    if isinstance(value, list):
        return (
            "["
            + ", ".join([quote(item) if isinstance(item, str) else value_json(item) for item in value])
            + "]"
        )
    if isinstance(value, Map):
        return map_json(value)
    return value_json(value)


def map_json(value: Map) -> str:
    """A map in a place where keys are names: an object, if they are that and distinct."""
    keys = [key for key, _ in value.pairs]
    names = all(type(key) is Symbol for key in keys) or all(type(key) is str for key in keys)
    if not names or len(set(keys)) < len(keys):
        return value_json(value)
    pairs = [f"{quote(str(key))}: {value_json(item)}" for key, item in value.pairs]
    return "{" + ", ".join(pairs) + "}"


def _fields_json(composite: Composite) -> list[str]:
    """The members of an object: a composite's present fields, and what stood beyond them."""
    members: list[str] = []
    values = composite.values()
    odd = composite.odd
    index = 0
    for field in composite.definition().fields:
        value = values[index]
        typed = True
        if value is None and odd is not None and index in odd:
            value = odd[index]
            typed = False
        if value is not None:
            members.append(f'"{field.name}": {_field_json(field, value, typed)}')
        index += 1
    if composite.extra is not None:
        if any(field.secret for field in composite.definition().fields):
            members.append(f'"extra": [{{"hidden": {len(composite.extra)}}}]')
        else:
            members.append('"extra": [' + ", ".join([value_json(item) for item in composite.extra]) + "]")
    return members


def composite_json(composite: Composite) -> str:
    """A composite as an object of its fields."""
    members = [f'"type": "{composite.definition().name}"']
    members += _fields_json(composite)
    return "{" + ", ".join(members) + "}"


def _body_json(frame: Frame) -> str:
    body = frame.body
    if isinstance(body, Composite):
        return "{" + ", ".join(_fields_json(body)) + "}"
    if isinstance(body, ProtocolHeader):
        return (
            f'{{"protocol": "{body.protocol()}", "protocol-id": {body.protocol_id}, "major": {body.major}, '
            f'"minor": {body.minor}, "revision": {body.revision}}}'
        )
    if body is not None:
        if hides_raw(frame):
            return f'{{"hidden": {frame.size}}}'
        return f'{{"value": {value_json(body)}}}'
    return "{}"


def _problems_json(problems: list[Problem]) -> str:
    if not problems:
        return "[]"
    items = [
        f'{{"code": "{p.code}", "offset": {p.offset}, "path": {quote(p.path)}, "reason": {quote(p.reason)}}}'
        for p in problems
    ]
    return "[" + ", ".join(items) + "]"


def message_json(message: Message, link: LinkOf | None, bodies: bool) -> str:
    """A message: its sections by name, its body as kinds and sizes, or with the values if `bodies`."""
    members = [
        f'"format": {message.message_format}, "size": {message.size}, '
        f'"complete": {"true" if message.complete else "false"}'
    ]
    body: list[str] = []
    hidden = hides_body(message, link)
    for section in message.sections():
        value = section.value
        if section.name in _SECTION_KEYS:
            if isinstance(value, Composite):
                members.append(f'"{section.name}": {{{", ".join(_fields_json(value))}}}')
            elif isinstance(value, Map):
                members.append(f'"{section.name}": {map_json(value)}')
            else:
                members.append(f'"{section.name}": {value_json(value)}')
            continue
        text = f'{{"section": "{section.name}", "size": {section.size}'
        if hidden:
            text += f', "value": {{"hidden": {section.size}}}'
        elif bodies:
            text += f', "value": {value_json(value)}'
        body.append(text + "}")
    members.append('"body": [' + ", ".join(body) + "]")
    batch = message.batch()
    if batch:
        members.append('"batch": [' + ", ".join([message_json(inner, link, bodies) for inner in batch]) + "]")
    if message.problems:
        members.append(f'"problems": {_problems_json(message.problems)}')
    return "{" + ", ".join(members) + "}"


def frame_json(record: FrameRecord, capture: str, link: LinkOf | None, bodies: bool) -> str:
    """One frame as one line of JSON (the contract of `read --format ndjson`).

    capture: the file's name, already as JSON text.
    """
    frame = record.frame
    connection = record.connection
    channel = "null" if frame.channel < 0 else str(frame.channel)
    text = (
        f'{{"capture": {capture}, "packet": {record.packet}, "time": "{iso(record.time)}", '
        f'"connection": "{connection.id}", "peer": "{record.peer}", "protocol": "{connection.protocol}", '
        f'"kind": "{frame.kind}", "name": "{frame.name}", "channel": {channel}, "size": {frame.size}, '
        f'"fields": {_body_json(frame)}, "problems": {_problems_json(frame.problems)}'
    )
    if record.last_packet != record.packet:
        text += f', "last_packet": {record.last_packet}'
    if frame.missing:
        text += f', "missing": {frame.missing}'
    if frame.name == "transfer":
        text += f', "payload": {frame.payload_size}'
    if link is not None:
        text += f', "link": {quote(link.name)}'
        if link.address is not None:
            text += f', "address": {quote(link.address)}'
    if record.message is not None:
        text += f', "message": {message_json(record.message, link, bodies)}'
    return text + "}"
