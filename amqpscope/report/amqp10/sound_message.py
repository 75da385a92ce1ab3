"""What the timeline's line says of a sound message, straight from its octets.

`brief` decodes a message into objects to say it. Nearly every message is sound, a line shows little of it,
and decoding took half of the time of `read`. Tests hold the two ways to the same text.
"""

import uuid
from typing import Final

from amqpscope.report.amqp10.value_text import value_text
from amqpscope.report.line import Line
from amqpscope.report.value_text import octets_text, text_word
from amqpscope.tracking.amqp10.identity import Link
from dissectors.amqp10.message import Message
from dissectors.amqp10.outline import entries, pairs
from dissectors.wire import i64
from dissectors.wording import count

__all__ = ["VALUE", "describe_sound"]

VALUE: Final = 40
"""Characters of a field of properties."""

_REMEMBERED: Final = 4096
_SHORT: Final = 48
"""Octets of a value whose text is remembered: most messages have few subjects, addresses and types."""

_PROPERTIES_CODE: Final = 0x73
_APPLICATION_CODE: Final = 0x74
_DATA_CODE: Final = 0x75
_SEQUENCE_CODE: Final = 0x76
_VALUE_CODE: Final = 0x77

# Fields of properties in the order in which they are shown: their numbers in the list, and their names.
_SHOWN: Final[list[int]] = [0, 5, 3, 2, 4, 10, 6]
_NAMES: Final[list[str]] = [
    "message-id=",
    "correlation-id=",
    "subject=",
    "to=",
    "reply-to=",
    "group-id=",
    "content-type=",
]
_IDS: Final = 2
"""So many of them, the first ones, may be of several types."""

_TO: Final = 3
"""Of `_SHOWN`: the address that may be the link's."""

_texts: Final[dict[bytes, str]] = {}


def describe_sound(line: Line, message: Message, link: Link | None) -> None:
    """Put into a line what is shown of a message that `is_sound`."""
    octets = message.octets
    line.append(("", f"{count(message.size, 'octet')} "))
    bodies: dict[str, int] = {}
    start: i64 = 0
    for behind in message.section_ends():
        end: i64 = behind
        code: i64 = octets[start + 2]
        if code == _PROPERTIES_CODE:
            _properties(line, octets, start, end, link)
        elif code == _APPLICATION_CODE:
            line.append(("key", "application-properties="))
            line.append(("", f"{pairs(octets, start)} "))
        elif code == _DATA_CODE:
            bodies["data"] = bodies.get("data", 0) + 1
        elif code == _SEQUENCE_CODE:
            bodies["amqp-sequence"] = bodies.get("amqp-sequence", 0) + 1
        elif code == _VALUE_CODE:
            bodies["amqp-value"] = bodies.get("amqp-value", 0) + 1
        start = end
    if bodies:
        kinds = [f"{number} × {kind}" if number > 1 else kind for kind, number in bodies.items()]
        line.append(("key", "body="))
        line.append(("", f"{', '.join(kinds)} "))


def _properties(line: Line, octets: bytes, start: i64, end: i64, link: Link | None) -> None:
    places = entries(octets, start, end)
    last = len(places) - 1
    for shown in range(len(_SHOWN)):
        index = _SHOWN[shown]
        if index >= last:
            continue
        at = places[index]
        code: i64 = octets[at]
        if code == 0x40:
            continue
        value = octets[at : places[index + 1]]
        if shown == _TO and link is not None and link.address is not None and _string(value) == link.address:
            continue
        line.append(("key", _NAMES[shown]))
        line.append(("", _id_text(value) if shown < _IDS else _word(value)))


def _string(value: bytes) -> str:
    """An encoded string or symbol. It is ASCII, or its message would not be sound."""
    return value[2 if value[0] < 0xB0 else 5 :].decode("ascii")


def _word(value: bytes) -> str:
    """The text of an encoded string or symbol, and a space."""
    known = _texts.get(value)
    if known is None:
        known = text_word(_string(value), VALUE) + " "
        if len(value) <= _SHORT:
            if len(_texts) >= _REMEMBERED:
                _texts.clear()
            _texts[value] = known
    return known


def _id_text(value: bytes) -> str:
    """The text of an encoded message-id or correlation-id, and a space."""
    code: i64 = value[0]
    if code == 0xA0 or code == 0xB0:
        return octets_text(value[2 if code == 0xA0 else 5 :], VALUE) + " "
    if code == 0xA1 or code == 0xB1:
        return value_text(_string(value), VALUE) + " "
    if code == 0x98:
        return f"{uuid.UUID(bytes=value[1:])} "
    return f"{int.from_bytes(value[1:], 'big')} "
