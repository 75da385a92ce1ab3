"""Decoded values as plain Python values and back, to carry them from one process to another.

Compiled objects do not pickle. What they hold does: None, bool, int, float, str, bytes and tuples of
these. A value that is one of these already stands for itself; any other is a tuple that begins with its
type's name. Values that must not be shown (`Field.secret`) are not carried either: what is left of them
is that they were there.
"""

import uuid

from dissectors.amqp10.composite import Composite, TypeTable
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.registry import FINAL
from dissectors.amqp10.values import (
    Array,
    Byte,
    Char,
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

__all__ = ["dump_value", "load_value"]

_NUMBERS: dict[str, type[int]] = {
    "ubyte": UByte,
    "ushort": UShort,
    "uint": UInt,
    "ulong": ULong,
    "byte": Byte,
    "short": Short,
    "int": Int,
    "long": Long,
    "timestamp": Timestamp,
}
_TEXTS: dict[str, type[str]] = {"symbol": Symbol, "char": Char}
_NAMES: dict[type, str] = {kind: name for table in (_NUMBERS, _TEXTS) for name, kind in table.items()}


def dump_value(value: object) -> object:
    """Any decoded value, composite or protocol header, as plain values."""
    if value is None or type(value) in (bool, int, float, str, bytes):
        return value
    name = _NAMES.get(type(value))
    if name is not None:
        if isinstance(value, int):
            return (name, int(value))
        return (name, str(value))
    if isinstance(value, Composite):
        return _dump_composite(value)
    if isinstance(value, Float):
        return ("float", float(value))
    if isinstance(value, uuid.UUID):
        return ("uuid", value.bytes)
    if isinstance(value, list):
        return ("list", _dump_all(value))
    if isinstance(value, Map):
        return ("map", tuple((dump_value(key), dump_value(item)) for key, item in value.pairs))
    if isinstance(value, Array):
        descriptor = dump_value(value.descriptor)
        return ("array", value.element, _dump_all(value.items), int(value.count), descriptor)
    if isinstance(value, Described):
        return ("described", dump_value(value.descriptor), dump_value(value.value))
    if isinstance(value, Raw):
        return ("raw", value.octets)
    if isinstance(value, ProtocolHeader):
        return ("header", *(int(n) for n in (value.protocol_id, value.major, value.minor, value.revision)))
    from dissectors.amqp10.decimals import DECIMALS  # takes long to load

    for name, kind in DECIMALS.items():
        if type(value) is kind:
            return (name, str(value))
    raise TypeError(f"no decoded value: {type(value).__name__}")


def _dump_all(values: list[object]) -> tuple[object, ...]:
    return tuple(dump_value(value) for value in values)


def _dump_composite(value: Composite) -> tuple[object, ...]:
    definition = value.definition()
    fields = tuple(
        _hidden(content) if field.secret else dump_value(content)
        for field, content in zip(definition.fields, value.values(), strict=True)
    )
    odd = None if value.odd is None else tuple((key, dump_value(item)) for key, item in value.odd.items())
    extra = None if value.extra is None else _dump_all(value.extra)
    return ("composite", definition.code, fields, odd, extra, int(value.broken_at))


def _hidden(content: object) -> object:
    """That a secret was there: empty, of its own type."""
    if content is None:
        return None
    return b"" if isinstance(content, bytes) else ""


def load_value(state: object, table: TypeTable = FINAL) -> object:
    """What `dump_value` gave, as objects again. Raises ValueError for what it never gives."""
    if not isinstance(state, tuple):
        return state
    name = state[0]
    if name in _NUMBERS:
        return _NUMBERS[name](state[1])
    if name in _TEXTS:
        return _TEXTS[name](state[1])
    if name == "composite":
        return _load_composite(state, table)
    if name == "float":
        return Float(state[1])
    if name == "uuid":
        return uuid.UUID(bytes=state[1])
    if name == "list":
        return [load_value(item, table) for item in state[1]]
    if name == "map":
        return Map([(load_value(key, table), load_value(item, table)) for key, item in state[1]])
    if name == "array":
        _, element, items, count, descriptor = state
        return Array(
            element, [load_value(item, table) for item in items], count, load_value(descriptor, table)
        )
    if name == "described":
        return Described(load_value(state[1], table), load_value(state[2], table))
    if name == "raw":
        return Raw(state[1])
    if name == "header":
        return ProtocolHeader(state[1], state[2], state[3], state[4])
    from dissectors.amqp10.decimals import DECIMALS  # takes long to load

    if name in DECIMALS:
        return DECIMALS[name](state[1])
    raise ValueError(f"no dumped value: {name!r}")


def _load_composite(state: tuple[object, ...], table: TypeTable) -> Composite:
    _, code, fields, odd, extra, broken_at = state
    assert isinstance(code, int) and isinstance(fields, tuple) and isinstance(broken_at, int)
    composite = table.new(code)
    if composite is None:
        raise ValueError(f"no composite has the descriptor {code:#x}")
    for field, content in zip(composite.definition().fields, fields, strict=True):
        if content is not None:
            setattr(composite, field.name.replace("-", "_"), load_value(content, table))
    if isinstance(odd, tuple):
        composite.odd = {key: load_value(item, table) for key, item in odd}
    if isinstance(extra, tuple):
        composite.extra = [load_value(item, table) for item in extra]
    composite.broken_at = broken_at
    return composite
