"""Content headers (AMQP 0-9-1, section 4.2.6.1): how large a body follows, and the properties of the message.

Every message has one, so the properties are walked without making objects, and only the two numbers that
rules ask of every message are kept; `properties()` decodes the others for who wants them.
"""

from typing import Final

from dissectors.amqp091.arguments import ArgumentField, ArgumentReader
from dissectors.amqp091.methods import (
    HAS_CONTENT_ENCODING,
    HAS_CONTENT_TYPE,
    HAS_HEADERS,
    PROPERTY_FLAGS,
    PROPERTY_KINDS,
    BasicProperties,
)
from dissectors.amqp091.tables import EITHER, odd_name, plain_text, sound_table
from dissectors.interface import Body
from dissectors.wire import countable, countable_u64, i64, u16, u32, u64
from dissectors.wording import count

__all__ = ["ContentHeader", "read_content_header"]

BASIC: Final = 60
"""The only class that has content."""

FIXED: Final = 14
"""Octets of class, weight, body size and the first flag word."""


class ContentHeader(Body):
    """A content header.

    body_size: octets of the body that follows, as they are reported, -1 if a log does not have them; size:
    the same, to be counted with.
    flags: the first flag word, to be tested with `HAS_TYPE` and its like of `methods`. octets: the property
    list, as sent. delivery_mode, priority, timestamp (to be counted with): -1 if not set. sound: nothing was
    wrong with the properties.
    """

    def __init__(self, class_id: i64, weight: i64, body_size: int, flags: i64, octets: bytes) -> None:
        self.class_id: i64 = class_id
        self.weight: i64 = weight
        self.body_size: int = body_size
        self.size: i64 = countable(body_size)
        self.flags: i64 = flags
        self.octets: bytes = octets
        self.delivery_mode: i64 = -1
        self.priority: i64 = -1
        self.timestamp: i64 = -1
        self.sound: bool = True

    def properties(self, dialect: i64 = EITHER) -> BasicProperties:
        """The properties, decoded. Of another class than basic: none."""
        properties = BasicProperties()
        if self.class_id == BASIC:
            reader = ArgumentReader(dialect)
            reader.begin(self.octets, 0, len(self.octets), 0, properties, True)
            properties.decode(reader, self.flags)
        return properties

    def odd_name(self) -> str | None:
        """The first name in the table of headers that begins with no letter, '$' or '#'; of sound ones."""
        if not self.sound or self.flags & HAS_HEADERS == 0:
            return None
        octets = self.octets
        pos: i64 = 0
        if self.flags & HAS_CONTENT_TYPE != 0:
            pos += 1 + octets[pos]
        if self.flags & HAS_CONTENT_ENCODING != 0:
            pos += 1 + octets[pos]
        return odd_name(octets, pos + 4, pos + 4 + u32(octets, pos))

    def title(self) -> str:
        return "content-header"

    def fields(self) -> list[tuple[ArgumentField, object]]:
        return [
            (_CLASS_ID, int(self.class_id)),
            (_WEIGHT, int(self.weight)),
            (_BODY_SIZE, self.body_size),
            (_PROPERTIES, self.properties()),
        ]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ContentHeader)
            and self.class_id == other.class_id
            and self.weight == other.weight
            and self.body_size == other.body_size
            and self.flags == other.flags
            and self.octets == other.octets
        )

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"ContentHeader({self.class_id}, {self.body_size}, {self.properties()!r})"


def read_content_header(
    buf: bytes, pos: i64, end: i64, reader: ArgumentReader, origin: i64, cut: bool
) -> ContentHeader | None:
    """The content header in buf[pos:end], None if its fixed part is not there; problems go to `reader`.

    origin: index of the frame's first octet. cut: not all of it was captured.
    """
    reader.begin(buf, pos, end, origin, _NOBODY, cut)
    if end - pos < FIXED:
        if not cut:
            reason = f"a content header has at least {FIXED} octets, but this content header has {end - pos}"
            reader.problem("F-HEADER-DECODE", pos, -1, reason)
        return None
    class_id = u16(buf, pos)
    weight = u16(buf, pos + 2)
    flags = u16(buf, pos + 12)
    first = pos + FIXED
    header = ContentHeader(class_id, weight, u64(buf, pos + 4), flags, b"")
    if class_id != BASIC:
        reason = f"the class-id is {class_id}, but only class {BASIC} (basic) has methods with content"
        reader.problem("F-HEADER-CLASS", pos, -1, reason)
        header.sound = False
        return header
    if weight != 0:
        reader.problem("F-HEADER-WEIGHT", pos + 2, -1, f"the weight is {weight}, not 0")
    unknown = flags & 2 != 0
    if flags & 1 != 0:
        # Further flag words: only what they say is not known, not where they end.
        more = True
        while more and end - first >= 2:
            word = u16(buf, first)
            first += 2
            more = word & 1 != 0
            unknown = unknown or word > 1
        if more and not cut:
            reason = "the last flag word announces another flag word, but no other flag word follows"
            reader.problem("F-HEADER-FLAGS", pos + 12, -1, reason)
            header.sound = False
            return header
    if unknown:
        reader.problem(
            "F-HEADER-FLAGS", pos + 12, -1, "the property flags have a bit set that no property uses"
        )
        header.sound = False
    header.octets = buf[first:end]
    if not _sound_properties(buf, first, end, reader.dialect, header) or unknown:
        _report(buf, first, end, reader, header, unknown)
    return header


def _sound_properties(buf: bytes, pos: i64, end: i64, dialect: i64, header: ContentHeader) -> bool:
    """Whether the properties that the flags tell fill buf[pos:end], with nothing to be said against them."""
    left = header.flags & PROPERTY_FLAGS
    bit: i64 = 0x8000
    number: i64 = 0
    while left != 0:
        if left & bit != 0:
            left -= bit
            kind: i64 = PROPERTY_KINDS[number]
            if pos >= end:
                return False
            if kind == 0x73:  # s
                behind = pos + 1 + buf[pos]
                if behind > end or not plain_text(buf, pos + 1, behind):
                    return False
                pos = behind
            elif kind == 0x6F:  # o
                if bit == 0x1000:
                    header.delivery_mode = buf[pos]
                else:
                    header.priority = buf[pos]
                pos += 1
            elif kind == 0x46:  # F
                if end - pos < 4:
                    return False
                behind = pos + 4 + u32(buf, pos)
                if behind > end or not sound_table(buf, pos + 4, behind, dialect):
                    return False
                pos = behind
            else:
                if end - pos < 8:
                    return False
                header.timestamp = countable_u64(buf, pos)
                pos += 8
        bit >>= 1
        number += 1
    return pos == end


def _report(
    buf: bytes, pos: i64, end: i64, reader: ArgumentReader, header: ContentHeader, unknown: bool
) -> None:
    """Read the properties for what is wrong with them. unknown: there are others behind those known."""
    properties = BasicProperties()
    found = len(reader.problems)
    reader.begin(buf, pos, end, reader.origin, properties, reader.cut)
    reader.short_rule = "F-HEADER-DECODE"
    properties.decode(reader, header.flags)
    reader.short_rule = "F-METHOD-ARGS"
    header.delivery_mode = properties.delivery_mode
    header.priority = properties.priority
    if properties.timestamp >= 0:
        header.timestamp = countable(properties.timestamp)
    if reader.pos < end and not reader.stopped and not unknown:
        left = end - reader.pos
        reason = f"{count(left, 'octet')} {'follows' if left == 1 else 'follow'} the last property"
        reader.problem("F-HEADER-DECODE", reader.pos, -1, reason)
    if len(reader.problems) > found or reader.stopped:
        header.sound = False


# mypyc: null object, where there are no properties. Nothing writes to it.
_NOBODY: Final = BasicProperties()

# The words of section 4.2.6.1, and what follows them.
_CLASS_ID: Final = ArgumentField("class-id", "class-id", "short")
_WEIGHT: Final = ArgumentField("weight", "short", "short")
_BODY_SIZE: Final = ArgumentField("body-size", "longlong", "longlong")
_PROPERTIES: Final = ArgumentField("properties", "properties", "properties")
