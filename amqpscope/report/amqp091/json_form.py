"""Frames, values and messages of AMQP 0-9-1 as JSON text.

`fields` of a method are its arguments by the specification's names: numbers as numbers, bits as booleans,
short strings as strings, long strings too if they are UTF-8, timestamps in ISO 8601. Of a content header they
are `class-id`, `weight`, `body-size`, and `properties` with those that are set; of a method that nobody knows
`class-id` and `method-id`. A short string that is not UTF-8 is `{"odd": {"raw": "hex"}}`. Arguments for which
there was no room are not there.

A table is an object, if its names are distinct, and what stands in it is written so that its type can be
reported, in the words of the specification's grammar:

    null, true, "text", 1.5, [..]                no field, boolean, long string, double, array
    {"short-short-int": 1} {"short-short-uint": 1} {"short-int": 1} {"short-uint": 1} {"long-int": 1}
    {"long-uint": 1} {"long-long-int": 1} {"long-long-uint": 1}
    {"float": 1.5}  {"decimal": "1.50"}  {"timestamp": "2026-01-01T00:00:00Z"}
    {"table": {..}}                              a table in a table
    {"short-string": "x"}                        tag s of the printed grammar
    {"long-string": "00ff"}                      a long string that is not UTF-8, in hex
    {"binary": "00ff"}                           a byte array, tag x of RabbitMQ
    {"raw": "hex"}                               octets that do not decode
    {"hidden": 12}                               12 octets that are a secret (0: no octets, or unknown)

A table with a name twice, with a name that is not UTF-8, with octets behind its last pair, or with `table` as
its only name is `{"table": [[name, value], ..]}`, such octets being in `rest` beside `table`. A timestamp
behind the year 9999 is its seconds, as in "253402300800s"; what JSON has no number for is {"double": "inf"}
or {"float": "nan"}.

A message (`message`, at the frame that ends it) is `{"size", "complete", "method", "properties"}`: octets of
body that came, whether that is all, the method with its name in `type`, and the properties; null where they
are not known. `body-size` says how many octets were announced, if not so many came. With bodies there is
`body`, a string or `{"binary": ..}`, and `kept`, if not all of it is.
"""

from typing import Final

from amqpscope.model.records import FrameRecord
from amqpscope.report.amqp091.secrets import guards, hides_all
from amqpscope.report.amqp091.summary import named_code, summarize
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.report.json_renderer import JsonRenderer, float_json, hidden_json, text_json
from amqpscope.report.links import LinkNames
from amqpscope.report.secrets import hides_octets, is_secret_key
from amqpscope.tracking.amqp10.identity import Link
from dissectors.amqp091.arguments import Arguments, Method, UnknownMethod
from dissectors.amqp091.content import BASIC, ContentHeader
from dissectors.amqp091.decimals import Decimal
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp091.methods import (
    BasicAck,
    BasicDeliver,
    BasicNack,
    BasicPublish,
    BasicReject,
    BasicReturn,
    ChannelClose,
    ConnectionClose,
)
from dissectors.amqp091.registry import METHODS
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
from dissectors.interface import Body, Frame
from dissectors.values import Raw
from dissectors.wire import i64

__all__ = ["Amqp091JsonRenderer", "refusal", "value_json"]

_SHORT_PROPERTIES: Final = 512
"""Octets of properties that are remembered."""

_REMEMBERED: Final = 1024
"""Properties whose JSON is remembered."""

_RECENT: Final = 4
"""Of these, those that are compared with, which takes less time than to make a key and look it up."""

_NUMBERS: Final[dict[type, str]] = {
    ShortShortInt: '{"short-short-int": ',
    ShortShortUint: '{"short-short-uint": ',
    ShortInt: '{"short-int": ',
    ShortUint: '{"short-uint": ',
    LongInt: '{"long-int": ',
    LongUint: '{"long-uint": ',
    LongLongInt: '{"long-long-int": ',
    LongLongUint: '{"long-long-uint": ',
}


# Values


def value_json(value: object) -> str:
    """A value of a table, so that its type can be determined."""
    kind = type(value)
    if kind is str:
        assert isinstance(value, str)
        return text_json(value)
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
    if isinstance(value, Table):
        return _table_json(value, '{"table": ', "}")
    if isinstance(value, FieldArray):
        return "[" + ", ".join([value_json(item) for item in value.items]) + "]"
    if isinstance(value, Amqp091Timestamp):
        return f'{{"timestamp": "{value.iso()}"}}'
    if isinstance(value, float):
        return float_json(value, "float" if isinstance(value, Amqp091Float) else "double")
    if isinstance(value, ByteArray):
        return '{"binary": "' + value.hex() + '"}'
    if isinstance(value, bytes):
        return '{"long-string": "' + value.hex() + '"}'
    if isinstance(value, Raw):
        return _raw_json(value.octets)
    if isinstance(value, ShortString):
        return '{"short-string": ' + text_json(value) + "}"
    assert isinstance(value, Decimal)
    return '{"decimal": "' + str(value) + '"}'


def _raw_json(octets: bytes) -> str:
    return hidden_json(octets) if hides_octets(octets) else '{"raw": "' + octets.hex() + '"}'


def _table_json(table: Table, before: str, behind: str) -> str:
    """A table. before, behind: what stands around it if it is an object."""
    members: list[str] = []
    seen: set[str] = set()
    for name, item in table.pairs:
        if not isinstance(name, str) or name in seen:
            return _pairs_json(table)
        seen.add(name)
        shown = hidden_json(item) if is_secret_key(name) else value_json(item)
        members.append(text_json(name) + ": " + shown)
    if table.rest or (len(members) == 1 and "table" in seen):
        return _pairs_json(table)
    return before + "{" + ", ".join(members) + "}" + behind


def _pairs_json(table: Table) -> str:
    """A table that is no object."""
    pairs: list[str] = []
    for name, item in table.pairs:
        key = text_json(name) if isinstance(name, str) else value_json(name)
        # A name that is no text may be that of a secret.
        hidden = isinstance(name, Raw) and hides_octets(name.octets)
        shown = hidden_json(item) if hidden or is_secret_key(name) else value_json(item)
        pairs.append(f"[{key}, {shown}]")
    rest = f', "rest": {_raw_json(table.rest)}' if table.rest else ""
    return '{"table": [' + ", ".join(pairs) + "]" + rest + "}"


def _octets_json(octets: bytes, otherwise: str) -> str:
    """A long string or body: a string if it is text. otherwise: what it is called if it is none."""
    try:
        return text_json(octets.decode("utf-8"))
    except UnicodeDecodeError:
        return '{"' + otherwise + '": "' + octets.hex() + '"}'


# Methods and headers


def _field_json(type: str, value: object) -> str:
    """A field's value, which is of the field's type."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return f'"{Amqp091Timestamp(value).iso()}"' if type == "timestamp" else str(int(value))
    if isinstance(value, str):
        return text_json(value)
    if isinstance(value, FieldTable):
        return _table_json(value.read(), "", "")
    assert isinstance(value, bytes)
    return _octets_json(value, "long-string")


def _members(arguments: Arguments) -> list[str]:
    """The members of an object: the fields that are there."""
    members: list[str] = []
    values = arguments.values()
    odd = arguments.odd
    index: i64 = 0
    for field in arguments.definition().fields:
        if arguments.has(index):
            value = values[index]
            if field.secret:
                shown = hidden_json(value)
            elif value is None:
                shown = '{"odd": ' + value_json(None if odd is None else odd.get(int(index))) + "}"
            else:
                shown = _field_json(field.type, value)
            members.append('"' + field.name + '": ' + shown)
        index += 1
    return members


def arguments_json(arguments: Arguments) -> str:
    """The arguments of a method, or the properties of a content, as an object."""
    return "{" + ", ".join(_members(arguments)) + "}"


def _hidden_fields_json(body: Body) -> str:
    """Which fields there are in what may hold a secret anywhere."""
    members = [f'"{field.name}": {hidden_json(value)}' for field, value in body.fields()]
    return "{" + ", ".join(members) + "}"


class _Properties:
    """The properties of a content header, and their text as JSON."""

    def __init__(self, flags: i64, octets: bytes, text: str) -> None:
        self.flags: i64 = flags
        self.octets: bytes = octets
        self.text: str = text


class _Said:
    """What methods and headers say, as JSON, for the lines of their frames and of the messages they begin.

    Nearly every message's line says again what its method's and its header's said; and many headers differ
    in nothing.
    """

    def __init__(self) -> None:
        # The last method that begins a message, and its members.
        self._method: Method | None = None
        self._members: str = ""
        # Properties by their octets and which of them there are; and the last ones that were looked up.
        self._properties: dict[tuple[int, bytes], str] = {}
        self._recent: list[_Properties] = []
        self._oldest: i64 = 0
        # Names of at most 255 octets.
        self._texts: dict[str, str] = {}

    def members(self, method: Method) -> str:
        """The members of an object with the arguments of a method."""
        if method is self._method:
            return self._members
        text = self._frequent(method) or ", ".join(_members(method))
        if method.definition().content:
            self._method = method
            self._members = text
        return text

    def _frequent(self, method: Method) -> str:
        """The members of a publish, deliver or ack with all its arguments; "" of any other method."""
        if method.odd is not None:
            return ""
        if isinstance(method, BasicPublish):
            exchange, key = method.exchange, method.routing_key
            if method.present != 5 or exchange is None or key is None:
                return ""
            return (
                f'"reserved-1": {method.reserved_1}, "exchange": {self._text(exchange)}, '
                f'"routing-key": {self._text(key)}, '
                f'"mandatory": {_boolean(method.mandatory)}, "immediate": {_boolean(method.immediate)}'
            )
        if isinstance(method, BasicDeliver):
            consumer, exchange, key = method.consumer_tag, method.exchange, method.routing_key
            if method.present != 5 or consumer is None or exchange is None or key is None:
                return ""
            return (
                f'"consumer-tag": {self._text(consumer)}, "delivery-tag": {method.delivery_tag}, '
                f'"redelivered": {_boolean(method.redelivered)}, "exchange": {self._text(exchange)}, '
                f'"routing-key": {self._text(key)}'
            )
        if isinstance(method, BasicAck) and method.present == 2:
            return f'"delivery-tag": {method.delivery_tag}, "multiple": {_boolean(method.multiple)}'
        return ""

    def _text(self, text: str) -> str:
        """A name, which many methods have."""
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) >= _REMEMBERED:
                self._texts.clear()
            known = self._texts[text] = text_json(text)
        return known

    def properties(self, header: ContentHeader) -> str:
        """The properties as an object."""
        octets = header.octets
        if header.class_id != BASIC or len(octets) > _SHORT_PROPERTIES:
            return arguments_json(header.properties())
        flags = header.flags
        for one in self._recent:
            if one.flags == flags and one.octets == octets:
                return one.text
        key = (int(flags), octets)
        known = self._properties.get(key)
        if known is None:
            known = arguments_json(header.properties())
            if len(self._properties) >= _REMEMBERED:
                self._properties.clear()
            self._properties[key] = known
        self._look_first_at(_Properties(flags, octets, known))
        return known

    def _look_first_at(self, one: "_Properties") -> None:
        """Compare with these from now on, in place of the oldest that are compared with."""
        if len(self._recent) < _RECENT:
            self._recent.append(one)
            return
        self._recent[self._oldest] = one
        self._oldest = (self._oldest + 1) % _RECENT


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _fields_json(frame: Frame, guarded: bool, said: _Said) -> str:
    """The contract's `fields` of a frame. guarded: its octets may be a secret."""
    body = frame.body
    if not isinstance(body, Body):
        return "{}"
    if hides_all(frame, guarded):
        return _hidden_fields_json(body)
    if isinstance(body, UnknownMethod):
        return f'{{"class-id": {body.class_id}, "method-id": {body.method_id}}}'
    if isinstance(body, Method):
        return "{" + said.members(body) + "}"
    assert isinstance(body, ContentHeader)
    size = "null" if body.body_size < 0 else str(body.body_size)
    return (
        f'{{"class-id": {body.class_id}, "weight": {body.weight}, "body-size": {size}, '
        f'"properties": {said.properties(body)}}}'
    )


# Messages


def _message_json(message: Amqp091Message, bodies: bool, said: _Said) -> str:
    """A message. bodies: with what is kept of its body."""
    text = f'{{"size": {message.seen}, "complete": ' + ("true" if message.complete else "false")
    if message.announced != message.seen and message.announced >= 0:
        text += f', "body-size": {message.body_size}'
    method = message.method
    if method is None:
        text += ', "method": null'
    else:
        members = said.members(method)
        text += (
            f', "method": {{"type": "{method.definition().name}"' + (", " + members if members else "") + "}"
        )
    header = message.header
    text += ', "properties": ' + ("null" if header is None else said.properties(header))
    if bodies:
        text += ', "body": ' + _octets_json(message.body, "binary")
        if message.kept != message.seen:
            text += f', "kept": {message.kept}'
    return text + "}"


# What the reports ask

# Fields that name an exchange, a queue, or what is bound to them.
_PLACES: Final = ("exchange", "queue", "routing-key", "source", "destination")


class Amqp091JsonRenderer(JsonRenderer):
    """AMQP 0-9-1 as data."""

    def __init__(self) -> None:
        self._said: _Said = _Said()

    def names(self) -> tuple[str, ...]:
        return (*[method.name for method in METHODS], "content-header", "body", "heartbeat", "unknown")

    def guards(self, record: FrameRecord, link: Link | None, names: LinkNames) -> bool:
        return guards(record, names)

    def fields(self, frame: Frame, guarded: bool) -> str:
        return _fields_json(frame, guarded, self._said)

    def properties(self, header: ContentHeader) -> str:
        """What `properties` is in the fields of a content header that hides nothing, as JSON."""
        return self._said.properties(header)

    def has_payload(self, frame: Frame) -> bool:
        return frame.kind == "body"

    def message(self, record: FrameRecord, link: Link | None, names: LinkNames, bodies: bool) -> str:
        message: object = record.message
        return _message_json(message, bodies, self._said) if isinstance(message, Amqp091Message) else "null"

    def summarize(self, summary: ConnectionOverview, record: FrameRecord, link: Link | None) -> None:
        summarize(summary, record, link)

    def addresses(self, frame: Frame) -> list[str] | None:
        body = frame.body
        if isinstance(body, Method):
            fields = body.fields()
            return [value for field, value in fields if field.name in _PLACES and isinstance(value, str)]
        return None if frame.kind == "content-header" or frame.kind == "body" else []

    def condition(self, condition: str) -> str:
        return named_code(int(condition)) if condition.isdecimal() else condition

    def reports_error(self, frame: Frame) -> bool:
        return refusal(frame.body)


def refusal(body: object) -> bool:
    """Whether a method says that something failed: a close for a reason, a return, a refused delivery."""
    if isinstance(body, ConnectionClose):
        return body.reply_code != 200
    if isinstance(body, ChannelClose):
        return body.reply_code != 200
    return isinstance(body, (BasicReturn, BasicNack, BasicReject))
