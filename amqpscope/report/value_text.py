"""Values and fields as text for people: short, safe to show, and in the specification's words.

`ValueText` knows what values of every protocol have in common; what else a protocol has is in a subclass.
"""

import uuid

from amqpscope.model.passwords import without_password
from amqpscope.report.line import Line
from amqpscope.report.printable import printable, quoted, word
from amqpscope.report.secrets import hides_octets, is_secret_key, size_of
from dissectors.interface import Body, BodyField
from dissectors.values import Moment, Pairs, Raw
from dissectors.wire import i64
from dissectors.wording import count

__all__ = ["BRIEF", "ValueText", "first", "hidden_text", "items_text", "octets_text", "text_word"]

BRIEF = 64
"""Characters of one string shown in a line."""


def hidden_text(value: object) -> str:
    """What stands for a secret."""
    size = size_of(value)
    return f"(hidden, {count(size, 'octet')})" if size else "(hidden)"


def text_word(text: str, most: int = BRIEF) -> str:
    """A string or symbol of the wire where only such can stand, as one word."""
    return word(without_password(text), most)


def _is_printable(octets: bytes) -> bool:
    """Whether octets are printable ASCII."""
    at: i64 = 0
    end: i64 = len(octets)
    while at < end:
        octet: i64 = octets[at]
        if octet < 0x20 or octet >= 0x7F:
            return False
        at += 1
    return True


def octets_text(octets: bytes, most: int = BRIEF) -> str:
    """Octets as a quoted string if they are printable ASCII, else in hex."""
    if not _is_printable(octets):
        shown = octets[: most // 2] if most else octets
        return "0x" + shown.hex() + ("…" if len(shown) < len(octets) else "")
    text = octets.decode("ascii")
    if most and len(text) > most:
        text = text[: most - 1] + "…"
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return 'b"' + text + '"'


def first(items: list[object], most: int) -> list[object]:
    """The first so many; 0 for all."""
    return items[:most] if most else items


def items_text(shown: list[str], count: int) -> str:
    """Items of a collection of `count`, and how many are not among them."""
    if count > len(shown):
        shown.append(f"… {count - len(shown)} more")
    return ", ".join(shown)


class ValueText:
    """Values of one protocol as text.

    most, everywhere: characters of a string, items of a collection, halved for those in it; 0 for all.
    """

    def value(self, value: object, most: int = BRIEF) -> str:
        """Any value."""
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, Moment):
            return value.iso()
        if isinstance(value, str):
            return quoted(without_password(value), most)
        if isinstance(value, (bytes, bytearray)):
            return octets_text(bytes(value), most)
        inner = max(most // 2, 2) if most else 0
        if isinstance(value, list):
            return self.listed(value, len(value), inner)
        if isinstance(value, Pairs):
            pairs = value.pairs[:inner] if inner else value.pairs
            shown = [f"{self.value(key, inner)}={self.entry(key, item, inner)}" for key, item in pairs]
            return "{" + items_text(shown, len(value.pairs)) + "}"
        if isinstance(value, Body):
            fields = [
                f"{field.name}={self.field(value, field, item, inner)}"
                for field, item in value.fields()
                if not self.means_nothing(field, item)
            ]
            return value.title() + (f"({', '.join(fields)})" if fields else "")
        if isinstance(value, Raw):
            return _raw_text(value, inner)
        if isinstance(value, float):
            return repr(float(value))
        if isinstance(value, int):
            return str(int(value))
        if isinstance(value, uuid.UUID):
            return str(value)
        return printable(str(value))

    def entry(self, key: object, item: object, most: int = BRIEF) -> str:
        """The value of a pair with this key."""
        return hidden_text(item) if is_secret_key(key) else self.value(item, most)

    def listed(self, items: list[object], count: int, most: int) -> str:
        """Some of `count` items."""
        return "[" + items_text([self.value(item, most) for item in first(items, most)], count) + "]"

    def field(self, owner: Body, field: BodyField, value: object, most: int = BRIEF) -> str:
        """A field's value: as its type asks for it, hidden if it is a secret."""
        return hidden_text(value) if self.hides(owner, field, value) else self.value(value, most)

    def means_nothing(self, field: BodyField, value: object) -> bool:
        """Whether this value of a field of a nested body is not worth showing."""
        return False

    def hides(self, owner: Body, field: BodyField, value: object) -> bool:
        """Whether a field's value is never shown."""
        return field.secret

    def type_name(self, value: object) -> str:
        """The type of a value in the specification's word; "" where the text tells it."""
        return ""

    def typed(self, value: object, most: int = BRIEF) -> str:
        """A value with its type, where the text does not tell."""
        name = self.type_name(value)
        text = self.value(value, most)
        return f"{text} ({name})" if name else text

    def typed_field(self, owner: Body, field: BodyField, value: object, most: int) -> Line:
        """A field's value, which is no body and no pairs, with its type."""
        return [("", self.field(owner, field, value, most)), ("dim", f" ({field.type})")]

    def opened(self, value: object) -> object:
        """A value that is decoded only when it is looked at."""
        return value

    def beyond(self, body: Body, most: int) -> list[str]:
        """The values behind the last field that a body's definition has."""
        return []


def _raw_text(value: Raw, most: int) -> str:
    if not value.octets:
        return "(nothing)"
    if hides_octets(value.octets):
        return f"undecodable ({count(len(value.octets), 'octet')}, hidden)"
    octets = value.octets[:most] if most else value.octets
    return f"undecodable 0x{octets.hex()}" + ("…" if len(octets) < len(value.octets) else "")
