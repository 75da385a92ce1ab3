"""Values of field tables as Python objects (AMQP 0-9-1, section 4.2.1, field-value).

Each is what it stands for and keeps its type, in the words of the grammar. What a Python type says by
itself needs no class of its own:

    boolean bool, no field None, double float, long string str (or bytes, if it is not UTF-8)

Decimals are in `dissectors.amqp091.decimals`: few captures have any, and that module takes long to load.

Not compiled: native classes cannot derive from `str` or `int`.
"""

import datetime
from collections.abc import Iterator

from dissectors.values import Moment, Pairs, Raw

__all__ = [
    "Amqp091Float",
    "Amqp091Timestamp",
    "ByteArray",
    "FieldArray",
    "LongInt",
    "LongLongInt",
    "LongLongUint",
    "LongUint",
    "Raw",
    "ShortInt",
    "ShortShortInt",
    "ShortShortUint",
    "ShortString",
    "ShortUint",
    "Table",
]

_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - only added to and printed


class ShortShortInt(int):
    """8 bits signed, tag b."""


class ShortShortUint(int):
    """8 bits unsigned, tag B."""


class ShortInt(int):
    """16 bits signed, tag U as printed, s of RabbitMQ."""


class ShortUint(int):
    """16 bits unsigned, tag u."""


class LongInt(int):
    """32 bits signed, tag I."""


class LongUint(int):
    """32 bits unsigned, tag i."""


class LongLongInt(int):
    """64 bits signed, tag L as printed, l and L of RabbitMQ."""


class LongLongUint(int):
    """64 bits unsigned, tag l as printed."""


class Amqp091Float(float):
    """IEEE 754 binary32, tag f (a `double`, tag d, is a plain Python float)."""


class ShortString(str):
    """At most 255 octets, tag s as printed."""


class ByteArray(bytes):
    """Any octets, tag x of RabbitMQ."""


class Amqp091Timestamp(Moment):
    """Seconds since 1970-01-01T00:00Z, 64 bits, tag T and the property `timestamp`."""

    def iso(self) -> str:
        """ISO 8601 in UTC; beyond the year 9999 the bare number of seconds."""
        try:
            return (_EPOCH + datetime.timedelta(seconds=int(self))).isoformat() + "Z"
        except OverflowError:
            return f"{int(self)}s"


class FieldArray:
    """An array: values, each of a type of its own, tag A."""

    __slots__ = ("items",)

    def __init__(self, items: list[object]) -> None:
        self.items = items

    def __iter__(self) -> Iterator[object]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldArray) and self.items == other.items

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FieldArray({self.items!r})"


class Table(Pairs):
    """A table, tag F. A name that is not UTF-8 stands as `Raw`.

    rest: octets at the end that are no pair, mostly none.
    """

    __slots__ = ("rest",)

    def __init__(self, pairs: list[tuple[object, object]], rest: bytes = b"") -> None:
        super().__init__(pairs)
        self.rest = rest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.pairs == other.pairs and self.rest == other.rest

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        rest = f", {self.rest!r}" if self.rest else ""
        return f"Table({self.pairs!r}{rest})"
