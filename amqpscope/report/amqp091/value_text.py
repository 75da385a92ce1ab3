"""Values of AMQP 0-9-1 as text for people, with their types in the words of the specification's grammar."""

from amqpscope.report.line import Line
from amqpscope.report.value_text import BRIEF, ValueText, hidden_text, octets_text, text_word
from dissectors.amqp091.decimals import Decimal
from dissectors.amqp091.tables import FieldTable
from dissectors.amqp091.values import (
    Amqp091Float,
    Amqp091Timestamp,
    ByteArray,
    FieldArray,
    LongInt,
    LongLongInt,
    LongLongUint,
    LongUint,
    ShortInt,
    ShortShortInt,
    ShortShortUint,
    ShortString,
    ShortUint,
    Table,
)
from dissectors.interface import Body, BodyField
from dissectors.wording import count

__all__ = ["TEXT", "Amqp091Text"]

_TYPES: dict[type, str] = {
    ByteArray: "byte array",
    Decimal: "decimal",
    Amqp091Float: "float",
    LongInt: "long-int",
    LongLongInt: "long-long-int",
    LongLongUint: "long-long-uint",
    LongUint: "long-uint",
    ShortInt: "short-int",
    ShortShortInt: "short-short-int",
    ShortShortUint: "short-short-uint",
    ShortString: "short-string",
    ShortUint: "short-uint",
    Amqp091Timestamp: "timestamp",
    bytes: "long-string",
    float: "double",
}

_UNITS = {"heartbeat": " s"}


class Amqp091Text(ValueText):
    """Values of AMQP 0-9-1 as text."""

    def opened(self, value: object) -> object:
        return value.read() if isinstance(value, FieldTable) else value

    def value(self, value: object, most: int = BRIEF) -> str:
        value = self.opened(value)
        if isinstance(value, FieldArray):
            return self.listed(value.items, len(value), max(most // 2, 2) if most else 0)
        text = super().value(value, most)
        if isinstance(value, Table) and value.rest:
            return f"{text} and {count(len(value.rest), 'octet')} behind"
        return text

    def field(self, owner: Body, field: BodyField, value: object, most: int = BRIEF) -> str:
        if self.hides(owner, field, value):
            return hidden_text(value)
        if field.type == "timestamp" and isinstance(value, int):
            return Amqp091Timestamp(value).iso()
        if isinstance(value, str):
            return text_word(value, most)
        if isinstance(value, bytes):
            return _long_string(value, most)
        return self.value(value, most) + (_UNITS.get(field.name, "") if isinstance(value, int) else "")

    def type_name(self, value: object) -> str:
        return _TYPES.get(type(value), "")

    def typed_field(self, owner: Body, field: BodyField, value: object, most: int) -> Line:
        if field.type == "table":
            return [("", self.field(owner, field, value, most))]
        return super().typed_field(owner, field, value, most)


def _long_string(octets: bytes, most: int) -> str:
    """A long string of a method: a word if it is text."""
    try:
        return text_word(octets.decode("utf-8"), most)
    except UnicodeDecodeError:
        return octets_text(octets, most)


TEXT = Amqp091Text()
