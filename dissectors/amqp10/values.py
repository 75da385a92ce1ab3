"""AMQP 1.0 values as Python objects.

Each is what it stands for (a `Symbol` is a str, a `UInt` an int), so that values compare and print as
anyone expects, and keeps its AMQP type. What a Python type says by itself needs no class of its own:

    null None, boolean bool, string str, binary bytes, double float, uuid uuid.UUID, list list

Decimals are in `dissectors.amqp10.decimals`: few captures have any, and that module takes long to load.

Not compiled: native classes cannot derive from `str` or `int`.
"""

import datetime
from collections.abc import Iterator

from dissectors.values import Moment, Pairs, Raw

__all__ = [
    "Array",
    "Byte",
    "Char",
    "Described",
    "Float",
    "Int",
    "Long",
    "Map",
    "Raw",
    "Short",
    "Symbol",
    "Timestamp",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
]


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class UByte(int):
    """ubyte, 8 bits unsigned."""


class UShort(int):
    """ushort, 16 bits unsigned."""


class UInt(int):
    """uint, 32 bits unsigned."""


class ULong(int):
    """ulong, 64 bits unsigned."""


class Byte(int):
    """byte, 8 bits signed."""


class Short(int):
    """short, 16 bits signed."""


class Int(int):
    """int, 32 bits signed."""


class Long(int):
    """long, 64 bits signed."""


class Float(float):
    """float, IEEE 754 binary32 (a `double` is a plain Python float)."""


class Char(str):
    """char, one Unicode character."""


class Symbol(str):
    """symbol, seven-bit ASCII from a constrained domain."""


class Timestamp(Moment):
    """timestamp, milliseconds since 1970-01-01T00:00Z, 64 bits signed."""

    def iso(self) -> str:
        """ISO 8601 in UTC with milliseconds; outside the years 1 to 9999 the bare number of ms."""
        try:
            moment = _EPOCH + datetime.timedelta(milliseconds=int(self))
        except OverflowError:
            return f"{int(self)}ms"
        return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


class Map(Pairs):
    """map."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Map) and self.pairs == other.pairs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Map({self.pairs!r})"


class Array:
    """array: items of one type. `element` is the type's name, `descriptor` that of a described one.

    Items of a described type stand there without their descriptor, those of a known composite as that.
    Of several descriptors in a row the outer one stands as `Described(outer, inner)`.
    `count` is what the wire declared: more than len(items) where a bound cut the decoding short.
    """

    __slots__ = ("count", "descriptor", "element", "items")

    def __init__(self, element: str, items: list[object], count: int, descriptor: object = None) -> None:
        self.element = element
        self.items = items
        self.count = count
        self.descriptor = descriptor

    def __iter__(self) -> Iterator[object]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Array)
            and self.element == other.element
            and self.items == other.items
            and self.count == other.count
            and self.descriptor == other.descriptor
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Array({self.element!r}, {self.items!r}, {self.count}, {self.descriptor!r})"


class Described:
    """A value with a descriptor that no table of ours knows, or that its table does not fit."""

    __slots__ = ("descriptor", "value")

    def __init__(self, descriptor: object, value: object) -> None:
        self.descriptor = descriptor
        self.value = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Described) and self.descriptor == other.descriptor and self.value == other.value
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Described({self.descriptor!r}, {self.value!r})"
