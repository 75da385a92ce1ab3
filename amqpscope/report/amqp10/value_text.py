"""Values of AMQP 1.0 as text for people."""

from amqpscope.report.amqp10.secrets import hides_field
from amqpscope.report.line import Line
from amqpscope.report.value_text import BRIEF, ValueText, hidden_text, text_word
from dissectors.amqp10 import composite
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.types import type_name
from dissectors.amqp10.values import Array, Described, Timestamp
from dissectors.interface import Body, BodyField

__all__ = ["TEXT", "Amqp10Text", "field_text", "format_name", "value_text"]

_UNITS = {"milliseconds": " ms", "seconds": " s"}

# What a field's type leaves no doubt about: strings in it need no quotes to be distinguished from numbers.
_TEXT_TYPES = ("string", "symbol", "ietf-language-tag", "error-condition")

# Types that the text of a value tells.
_PLAIN = ("string", "boolean", "null", "list", "map", "array", "described value", "undecodable value")


class Amqp10Text(ValueText):
    """Values of AMQP 1.0 as text."""

    def value(self, value: object, most: int = BRIEF) -> str:
        inner = max(most // 2, 2) if most else 0
        if isinstance(value, Array):
            prefix = f"@{self.value(value.descriptor, inner)} " if value.descriptor is not None else ""
            return prefix + self.listed(value.items, value.count, inner)
        if isinstance(value, Described):
            return f"@{self.value(value.descriptor, inner)}({self.value(value.value, inner)})"
        return super().value(value, most)

    def means_nothing(self, field: BodyField, value: object) -> bool:
        return value is False and isinstance(field, composite.Field) and not field.choices

    def hides(self, owner: Body, field: BodyField, value: object) -> bool:
        if isinstance(owner, Composite) and isinstance(field, composite.Field):
            return hides_field(owner, field, value)
        return field.secret

    def field(self, owner: Body, field: BodyField, value: object, most: int = BRIEF) -> str:
        """A field's value: by the name of its choice, with its unit, hidden if it is a secret."""
        if self.hides(owner, field, value):
            return hidden_text(value)
        if owner.is_odd(value):
            return self.typed(value, most)
        assert isinstance(field, composite.Field)
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
            items = [text_word(item, most) if isinstance(item, str) else self.value(item) for item in value]
            return ",".join(items) or "(none)"
        return self.value(value, most)

    def type_name(self, value: object) -> str:
        name = type_name(value)
        return "" if name in _PLAIN or isinstance(value, Composite) else name

    def typed_field(self, owner: Body, field: BodyField, value: object, most: int) -> Line:
        if field.type == "*":
            return [("", self.typed(value, most))]
        if field.type == "map":
            return [("", self.field(owner, field, value, most))]
        return super().typed_field(owner, field, value, most)

    def beyond(self, body: Body, most: int) -> list[str]:
        if not isinstance(body, Composite):
            return []
        hidden = body.definition().is_sasl_frame
        return [hidden_text(item) if hidden else self.typed(item, most) for item in body.extra or ()]


TEXT = Amqp10Text()

value_text = TEXT.value

field_text = TEXT.field


def format_name(message_format: int) -> str:
    """A message format as people write it."""
    return "0" if message_format == 0 else f"0x{message_format:08x}"
