"""Frames and values as JSON text.

A field whose type the specification fixes is written plainly: numbers as numbers, strings and
symbols as strings, binaries as hex, timestamps in ISO 8601, several symbols as an array, a map whose
keys are all symbols (in application-properties: all strings) as an object, a composite as an object of
its fields with its name in `type`. A value that is not of its field's type is `{"odd": ..}`, and in it,
as in a field of free type, a value is written so that its AMQP type can be determined:

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
    {"hidden": 12}                                    12 octets that are a secret (0: no octets, or unknown)

Values behind a composite's last field are in `extra`. A timestamp outside the years 1 to 9999 is its
milliseconds, as in "-62135596800001ms"; what JSON has no number for is {"double": "inf"} or {"float": "nan"}.
The text is ASCII throughout.
"""

import uuid
from json.encoder import encode_basestring_ascii as quote
from typing import Final

from amqpscope.model.records import FrameRecord
from amqpscope.report.amqp10.json_quick import QuickMessages
from amqpscope.report.amqp10.secrets import hides_body, hides_field, hides_raw, is_unclear
from amqpscope.report.amqp10.summary import summarize
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.report.digits import digits
from amqpscope.report.frame_counts import FRAMES_OF_AMQP10
from amqpscope.report.json_renderer import JsonRenderer, float_json, hidden_json, problems_json, text_json
from amqpscope.report.links import LinkNames
from amqpscope.report.secrets import hides_octets, is_secret_key
from amqpscope.tracking.amqp10.identity import Link
from amqpscope.tracking.amqp10.outcomes import outcome_in
from dissectors.amqp10.composite import Composite, Field
from dissectors.amqp10.decimals import DECIMALS
from dissectors.amqp10.message import Message, Section
from dissectors.amqp10.messaging import Accepted, Rejected
from dissectors.amqp10.performatives import Disposition, Error, Transfer
from dissectors.amqp10.sasl import SaslOutcome
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
from dissectors.interface import Frame, Problem
from dissectors.wire import i64

__all__ = ["Amqp10JsonRenderer", "body_json", "composite_json", "message_json", "value_json"]

_NUMBERS: Final[dict[type, str]] = {
    UByte: '{"ubyte": ',
    UShort: '{"ushort": ',
    UInt: '{"uint": ',
    ULong: '{"ulong": ',
    Byte: '{"byte": ',
    Short: '{"short": ',
    Int: '{"int": ',
    Long: '{"long": ',
}

_DECIMALS: Final[dict[type, str]] = {kind: name for name, kind in DECIMALS.items()}


# Values


def value_json(value: object) -> str:
    """A value of free type, so that its AMQP type can be determined."""
    kind = type(value)
    if isinstance(value, str):
        if kind is str:
            return text_json(value)
        if kind is Symbol:
            return '{"symbol": ' + text_json(value) + "}"
        if kind is Char:
            return '{"char": ' + quote(value) + "}"
    name = _NUMBERS.get(kind)
    if name is not None:
        assert isinstance(value, int)
        return name + int.__repr__(value) + "}"
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, bytes):
        return '{"binary": "' + value.hex() + '"}'
    return _rarer_json(value)


def _rarer_json(value: object) -> str:
    if isinstance(value, Timestamp):
        return f'{{"timestamp": "{value.iso()}"}}'
    if isinstance(value, float):
        return float_json(value, "float" if isinstance(value, Float) else "double")
    if isinstance(value, list):
        return "[" + ", ".join([value_json(item) for item in value]) + "]"
    if isinstance(value, Map):
        pairs = [f"[{value_json(key)}, {_entry_json(key, item)}]" for key, item in value.pairs]
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
    if isinstance(value, Raw):
        if hides_octets(value.octets):
            return hidden_json(value.octets)
        return f'{{"raw": "{value.octets.hex()}"}}'
    name = _DECIMALS.get(type(value))
    return f'{{"{name}": "{value}"}}' if name is not None else quote(str(value))


def _entry_json(key: object, item: object) -> str:
    """The value of a map's entry."""
    return hidden_json(item) if is_secret_key(key) else value_json(item)


def _map_json(value: Map, keys: type) -> str:
    """A map in a place where keys are names of one type: an object, if they are that and distinct."""
    members: list[str] = []
    seen: set[str] = set()
    for key, item in value.pairs:
        if type(key) is not keys or not isinstance(key, str) or key in seen:
            return value_json(value)
        seen.add(key)
        members.append(text_json(key) + ": " + _entry_json(key, item))
    if "map" in seen and len(members) == 1:
        # Could not be reported from the other form.
        return value_json(value)
    return "{" + ", ".join(members) + "}"


# Composites


def _field_json(field: Field, value: object) -> str:
    """A field's value, which is of the field's type."""
    if isinstance(value, str):
        return text_json(value) if field.type != "*" else value_json(value)
    if field.type == "*":
        return value_json(value)
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        if field.type == "timestamp":
            return f'"{Timestamp(value).iso()}"'
        return str(int(value))
    if isinstance(value, bytes):
        return '"' + value.hex() + '"'
    if isinstance(value, list):
        items = [text_json(item) if isinstance(item, str) else value_json(item) for item in value]
        return "[" + ", ".join(items) + "]"
    if isinstance(value, Map):
        return _map_json(value, Symbol)
    return value_json(value)


def _fields_json(composite: Composite) -> list[str]:
    """The members of an object: a composite's present fields, and what stood beyond them."""
    members: list[str] = []
    values = composite.values()
    definition = composite.definition()
    odd = composite.odd
    secretive = definition.is_sasl_frame or definition.secret
    index: i64 = 0
    for field in definition.fields:
        value = values[index]
        if value is not None:
            if secretive and hides_field(composite, field, value):
                members.append(f'"{field.name}": {hidden_json(value)}')
            else:
                members.append('"' + field.name + '": ' + _field_json(field, value))
        elif odd is not None and index in odd:
            value = odd[index]
            shown = hidden_json(value) if secretive else f'{{"odd": {value_json(value)}}}'
            members.append(f'"{field.name}": {shown}')
        index += 1
    extra = composite.extra
    if extra is not None:
        items = [hidden_json(item) if secretive else value_json(item) for item in extra]
        members.append('"extra": [' + ", ".join(items) + "]")
    return members


def composite_json(composite: Composite) -> str:
    """A composite as an object of its fields."""
    members = [f'"type": "{composite.definition().name}"']
    members += _fields_json(composite)
    return "{" + ", ".join(members) + "}"


def _guarded_json(composite: Composite) -> str:
    """The fields of a malformed performative whose octets may be a secret: numbers only."""
    members: list[str] = []
    for field, value in composite.fields():
        shown = hidden_json(value)
        # In this order: compiled, what is known to be an int is a plain number, and nothing else.
        if value is True or value is False:
            shown = _bool_json(value is True)
        elif isinstance(value, int):
            shown = str(int(value))
        members.append(f'"{field.name}": {shown}')
    return "{" + ", ".join(members) + "}"


def _bool_json(value: bool) -> str:
    return "true" if value else "false"


def _transfer_json(transfer: Transfer) -> str:
    """What `_fields_json` gives, for the frame that most frames are."""
    text = ""
    if transfer.handle is not None:
        text = f', "handle": {digits(i64(transfer.handle))}'
    if transfer.delivery_id is not None:
        text += f', "delivery-id": {transfer.delivery_id}'
    if transfer.delivery_tag is not None:
        text += f', "delivery-tag": "{transfer.delivery_tag.hex()}"'
    if transfer.message_format is not None:
        text += f', "message-format": {digits(i64(transfer.message_format))}'
    if transfer.settled is not None:
        text += ', "settled": true' if transfer.settled else ', "settled": false'
    if transfer.more is not None:
        text += ', "more": true' if transfer.more else ', "more": false'
    if transfer.rcv_settle_mode is not None:
        text += f', "rcv-settle-mode": {transfer.rcv_settle_mode}'
    if transfer.state is not None:
        text += ', "state": ' + value_json(transfer.state)
    if transfer.resume is not None:
        text += ', "resume": true' if transfer.resume else ', "resume": false'
    if transfer.aborted is not None:
        text += ', "aborted": true' if transfer.aborted else ', "aborted": false'
    if transfer.batchable is not None:
        text += ', "batchable": true' if transfer.batchable else ', "batchable": false'
    return "{" + text[2:] + "}"


def _disposition_json(disposition: Disposition) -> str:
    """What `_fields_json` gives, for the next in number."""
    text = ""
    if disposition.role is not None:
        text = ', "role": true' if disposition.role else ', "role": false'
    if disposition.first is not None:
        text += f', "first": {disposition.first}'
    if disposition.last is not None:
        text += f', "last": {disposition.last}'
    if disposition.settled is not None:
        text += ', "settled": true' if disposition.settled else ', "settled": false'
    state = disposition.state
    if state is not None:
        text += ', "state": '
        if isinstance(state, Accepted) and state.extra is None:
            text += '{"type": "accepted"}'
        else:
            text += value_json(state)
    if disposition.batchable is not None:
        text += ', "batchable": true' if disposition.batchable else ', "batchable": false'
    return "{" + text[2:] + "}"


def body_json(frame: Frame, guarded: bool) -> str:
    """The contract's `fields` of a frame. guarded: its octets may be a secret."""
    body = frame.body
    if isinstance(body, Composite):
        if body.odd is None and body.extra is None and not guarded:
            if isinstance(body, Transfer):
                return _transfer_json(body)
            if isinstance(body, Disposition):
                return _disposition_json(body)
        if guarded and not body.definition().is_sasl_frame:
            return _guarded_json(body)
        return "{" + ", ".join(_fields_json(body)) + "}"
    if body is None:
        return "{}"
    return f'{{"hidden": {frame.size}}}' if guarded else f'{{"value": {value_json(body)}}}'


# Messages


def _section_json(section: Section) -> str:
    """The value of a section that is no body."""
    value = section.value
    if isinstance(value, Composite):
        return "{" + ", ".join(_fields_json(value)) + "}"
    if isinstance(value, Map):
        return _map_json(value, str if section.name == "application-properties" else Symbol)
    return f'{{"odd": {value_json(value)}}}'


def message_json(message: Message, hidden: bool, bodies: bool) -> str:
    """A message: its sections by name, its body as kinds and sizes, or with the values if `bodies`.

    hidden: its body is a secret. A section that stands twice is in the list `body` the second time.
    """
    text = '{"format": ' + str(message.message_format) + ', "size": ' + str(message.size)
    text += ', "complete": true' if message.complete else ', "complete": false'
    body: list[str] = []
    names: list[str] = []
    sections = message.sections()
    unclear = hidden and is_unclear(message)
    for section in sections:
        name = section.name
        is_body = name == "data" or name == "amqp-value" or name == "amqp-sequence" or name == "unknown"
        if not is_body and not unclear and name not in names:
            names.append(name)
            if not hidden or isinstance(section.value, (Composite, Map)):
                text += ', "' + name + '": ' + _section_json(section)
                continue
        item = '{"section": "' + name + '", "size": ' + str(section.size)
        if hidden:
            item += f', "value": {{"hidden": {section.size}}}'
        elif not is_body:
            item += ', "value": ' + _section_json(section)
        elif bodies:
            item += ', "value": ' + value_json(section.value)
        body.append(item + "}")
    text += ', "body": [' + ", ".join(body) + "]"
    batch = message.batch()
    if batch:
        text += ', "batch": [' + ", ".join([message_json(inner, hidden, bodies) for inner in batch]) + "]"
    if message.problems:
        text += ', "problems": ' + problems_json(message.problems, hidden)
    return text + "}"


# What the reports ask


class Amqp10JsonRenderer(JsonRenderer):
    """AMQP 1.0 as data."""

    def __init__(self) -> None:
        self._quick: QuickMessages = QuickMessages()

    def names(self) -> tuple[str, ...]:
        return FRAMES_OF_AMQP10

    def guards(self, record: FrameRecord, link: Link | None, names: LinkNames) -> bool:
        frame = record.frame
        body = frame.body
        if frame.kind == "amqp" and isinstance(body, Transfer) and not frame.problems:
            return False
        if hides_raw(frame):
            return True
        if not frame.problems:
            return False
        if isinstance(body, Composite) and not isinstance(body, Transfer) and body.definition().is_frame:
            return False
        return names.may_hold_token(record, link)

    def fields(self, frame: Frame, guarded: bool) -> str:
        return body_json(frame, guarded)

    def has_payload(self, frame: Frame) -> bool:
        return isinstance(frame.body, Transfer)

    def message(self, record: FrameRecord, link: Link | None, names: LinkNames, bodies: bool) -> str:
        message = record.message
        assert isinstance(message, Message)
        quick = ""
        if message.complete and message.message_format == 0 and (link is None or not link.tokens):
            quick = self._quick.text(message.octets, bodies)
        if quick:
            return quick
        return message_json(message, self.message_hidden(record, link, names, True), bodies)

    def message_hidden(self, record: FrameRecord, link: Link | None, names: LinkNames, whole: bool) -> bool:
        message = record.message
        assert isinstance(message, Message)
        unclear = is_unclear(message)
        if not whole and not unclear:
            return False
        return hides_body(message, link, unclear and names.may_hold_token(record, link))

    def message_unclear(self, record: FrameRecord) -> bool:
        message = record.message
        assert isinstance(message, Message)
        return is_unclear(message)

    def message_problems(self, record: FrameRecord) -> list[Problem]:
        message = record.message
        assert isinstance(message, Message)
        if not message.is_sound():
            message.sections()
        return message.problems

    def summarize(self, summary: ConnectionOverview, record: FrameRecord, link: Link | None) -> None:
        summarize(summary, record, link)

    def reports_error(self, frame: Frame) -> bool:
        body = frame.body
        if isinstance(body, SaslOutcome):
            return bool(body.code)
        if isinstance(getattr(body, "error", None), Error):
            return True
        state = getattr(body, "state", None)
        return isinstance(outcome_in(state), Rejected)
