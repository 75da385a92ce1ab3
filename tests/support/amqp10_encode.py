"""An AMQP 1.0 encoder for tests, written from the specification's text and sharing nothing with the product.

Every function gives back octets. A piece of traffic is the concatenation of pieces, so anything wrong can be
made by putting other octets in a piece's place:

    frame(open_(container_id="c", max_frame_size=512)) + frame(begin(...), channel=1)
    frame(raw(b"\\x00\\x53\\x14\\xc0\\xff"))                  # a transfer whose list claims too much
    list_([uint(1), raw(b"\\x3f")], count=9)                # a wrong item and a wrong count

Values. One function a primitive type. The last argument chooses the encoding: "smallest" (the default),
"widest", or a format code (`uint(7, 0x70)`). Where an item is wanted (`list_`, `map_`, `array`, `described`),
octets are taken as they are, and None, bool and str stand for null, boolean and string.

Composites. `composite("transfer", handle=0, delivery_tag=b"t")`, or `transfer(handle=0, ...)`: keyword
fields by the specification's names with `-` as `_`, put in the specification's order, converted from Python
values by the field's type. What an encoder returned (`Encoded`, also `raw(...)`) is taken as it is in every
field; plain `bytes` is the *content* in a field that can hold a binary, and octets as they are in any other.

Sources: types.xml, transport.xml, messaging.xml, transactions.xml, security.xml (AMQP 1.0, October 2011).
"""

from __future__ import annotations

import struct
import uuid as uuid_module
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Literal, Self

from support.number_fields import fixed, replaced

Choice = int | Literal["smallest", "widest"]
Pairs = Mapping[Any, Any] | Iterable[tuple[Any, Any]]
ListEncoder = Callable[[list[bytes], Choice], bytes]


class Encoded(bytes):
    """The octets of one encoded value; the first `constructor` of them are its constructor.

    composite: of a composite its name, and the fields that it was made of.
    """

    constructor: int
    composite: tuple[str, dict[str, Any]] | None = None

    def __new__(cls, octets: bytes, constructor: int = 1) -> Self:
        self = super().__new__(cls, octets)
        self.constructor = constructor
        return self


def raw(octets: bytes | str, constructor: int = 1) -> Encoded:
    """Any octets (or their hexadecimal text, spaces allowed) in the place of a value."""
    return Encoded(bytes.fromhex(octets) if isinstance(octets, str) else octets, constructor)


# ---- primitive types (types.xml, section encodings) -------------------------------------------------------

# The octets that follow a format code of each subcategory 4 to 15: data if fixed, else the size before it.
_WIDTHS = (0, 1, 2, 4, 8, 16, 1, 4, 1, 4, 1, 4)

# The format codes of each type, the shortest encoding first.
CODES: dict[str, tuple[int, ...]] = {
    "null": (0x40,),
    "boolean": (0x41, 0x42, 0x56),
    "ubyte": (0x50,),
    "ushort": (0x60,),
    "uint": (0x43, 0x52, 0x70),
    "ulong": (0x44, 0x53, 0x80),
    "byte": (0x51,),
    "short": (0x61,),
    "int": (0x54, 0x71),
    "long": (0x55, 0x81),
    "float": (0x72,),
    "double": (0x82,),
    "decimal32": (0x74,),
    "decimal64": (0x84,),
    "decimal128": (0x94,),
    "char": (0x73,),
    "timestamp": (0x83,),
    "uuid": (0x98,),
    "binary": (0xA0, 0xB0),
    "string": (0xA1, 0xB1),
    "symbol": (0xA3, 0xB3),
    "list": (0x45, 0xC0, 0xD0),
    "map": (0xC1, 0xD1),
    "array": (0xE0, 0xF0),
}


def _width(code: int) -> int:
    """Octets of data of a fixed width code; octets of the size of any other."""
    return _WIDTHS[(code >> 4) - 4]


def _choose(kind: str, choice: Choice, fitting: Sequence[int]) -> int:
    """The format code to use, out of those of `kind` that can hold the value (shortest first)."""
    if not fitting:
        raise ValueError(f"no encoding of {kind} holds this value")
    if choice == "smallest":
        return fitting[0]
    if choice == "widest":
        return fitting[-1]
    if choice not in fitting:
        raise ValueError(f"format code {choice:#04x} cannot hold this {kind}")
    return choice


def _integer(kind: str, value: int, choice: Choice, signed: bool) -> Encoded:
    widest = CODES[kind][-1]
    instead = replaced(_width(widest))
    if instead is not None:
        return Encoded(bytes([widest]) + instead)
    fitting = []
    for code in CODES[kind]:
        bits = 8 * _width(code)
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        if low <= value <= high:
            fitting.append(code)
    code = _choose(kind, choice, fitting)
    return Encoded(bytes([code]) + value.to_bytes(_width(code), "big", signed=signed))


def null() -> Encoded:
    return Encoded(b"\x40")


def boolean(value: bool, choice: Choice = "smallest") -> Encoded:
    code = _choose("boolean", choice, (0x41 if value else 0x42, 0x56))
    return Encoded(bytes([0x56, value]) if code == 0x56 else bytes([code]))


def ubyte(value: int) -> Encoded:
    return _integer("ubyte", value, "smallest", signed=False)


def ushort(value: int) -> Encoded:
    return _integer("ushort", value, "smallest", signed=False)


def uint(value: int, choice: Choice = "smallest") -> Encoded:
    return _integer("uint", value, choice, signed=False)


def ulong(value: int, choice: Choice = "smallest") -> Encoded:
    return _integer("ulong", value, choice, signed=False)


def byte(value: int) -> Encoded:
    return _integer("byte", value, "smallest", signed=True)


def short(value: int) -> Encoded:
    return _integer("short", value, "smallest", signed=True)


def int_(value: int, choice: Choice = "smallest") -> Encoded:
    return _integer("int", value, choice, signed=True)


def long(value: int, choice: Choice = "smallest") -> Encoded:
    return _integer("long", value, choice, signed=True)


def float_(value: float) -> Encoded:
    return Encoded(b"\x72" + fixed(struct.pack(">f", value)))


def double(value: float) -> Encoded:
    return Encoded(b"\x82" + fixed(struct.pack(">d", value)))


def decimal32(value: Decimal) -> Encoded:
    return Encoded(b"\x74" + _decimal_pattern(value, 32, digits=7, exponent_bits=8, bias=101))


def decimal64(value: Decimal) -> Encoded:
    return Encoded(b"\x84" + _decimal_pattern(value, 64, digits=16, exponent_bits=10, bias=398))


def decimal128(value: Decimal) -> Encoded:
    return Encoded(b"\x94" + _decimal_pattern(value, 128, digits=34, exponent_bits=14, bias=6176))


def _decimal_pattern(value: Decimal, bits: int, digits: int, exponent_bits: int, bias: int) -> bytes:
    """IEEE 754-2008 binary integer decimal: one number's bit pattern, most significant octet first.

    A finite number is (-1)^sign * coefficient * 10^exponent. With c bits left for the coefficient after
    sign and exponent, a coefficient below 2^c stands there whole: [sign][exponent + bias][coefficient].
    A larger one loses its leading bits 100 and two bits 11 say so: [sign][11][exponent + bias][rest].
    """
    sign, digit_tuple, exponent = value.as_tuple()
    coefficient = int("".join(map(str, digit_tuple)) or "0")
    pattern = sign << (bits - 1)
    if exponent == "F":  # infinity: 11110 after the sign
        return (pattern | 0b11110 << (bits - 6)).to_bytes(bits // 8, "big")
    if exponent == "n" or exponent == "N":  # not a number: 11111, then 0 for quiet, 1 for signalling
        pattern |= (0b111111 if exponent == "N" else 0b111110) << (bits - 7)
        return (pattern | coefficient).to_bytes(bits // 8, "big")
    assert isinstance(exponent, int)
    biased = exponent + bias
    if coefficient >= 10**digits or not 0 <= biased < 3 << (exponent_bits - 2):
        raise ValueError(f"{value} does not fit decimal{bits} without rounding")
    plain = bits - 1 - exponent_bits
    if coefficient < 1 << plain:
        pattern |= biased << plain | coefficient
    else:
        pattern |= 0b11 << (bits - 3) | biased << (plain - 2) | coefficient & ((1 << (plain - 2)) - 1)
    return fixed(pattern.to_bytes(bits // 8, "big"))


def char(value: str | int) -> Encoded:
    """A character, or any 32 bit number in its place (surrogates and beyond Unicode are then possible)."""
    return Encoded(b"\x73" + fixed((ord(value) if isinstance(value, str) else value).to_bytes(4, "big")))


def timestamp(milliseconds: int) -> Encoded:
    """Milliseconds since the Unix epoch, signed."""
    return Encoded(b"\x83" + fixed(struct.pack(">q", milliseconds)))


def uuid(value: uuid_module.UUID | bytes) -> Encoded:
    return Encoded(b"\x98" + (value.bytes if isinstance(value, uuid_module.UUID) else value))


def _variable(kind: str, octets: bytes, choice: Choice, size: int | None) -> Encoded:
    claimed = len(octets) if size is None else size
    code = _choose(kind, choice, [c for c in CODES[kind] if claimed < 1 << 8 * _width(c)])
    return Encoded(bytes([code]) + fixed(claimed.to_bytes(_width(code), "big")) + octets)


def binary(value: bytes, choice: Choice = "smallest", *, size: int | None = None) -> Encoded:
    """`size` lies about the length."""
    return _variable("binary", value, choice, size)


def string(value: str | bytes, choice: Choice = "smallest", *, size: int | None = None) -> Encoded:
    """`bytes` are taken for the UTF-8 octets, valid or not; `size` lies about the length."""
    return _variable("string", value.encode() if isinstance(value, str) else value, choice, size)


def symbol(value: str | bytes, choice: Choice = "smallest", *, size: int | None = None) -> Encoded:
    """`bytes` are taken for the octets, ASCII or not; `size` lies about the length."""
    return _variable("symbol", value.encode("ascii") if isinstance(value, str) else value, choice, size)


def value(item: object) -> bytes:
    """An item of a list, map or section: octets as they are; None, bool and str by their one AMQP type."""
    if isinstance(item, bytes):
        return item
    if item is None:
        return null()
    if isinstance(item, bool):
        return boolean(item)
    if isinstance(item, str):
        return string(item)
    raise TypeError(f"which AMQP type is {item!r} to have? Use uint(), long(), symbol(), ...")


def _compound(kind: str, items: list[bytes], choice: Choice, count: int | None, size: int | None) -> Encoded:
    body = b"".join(items)
    claimed = len(items) if count is None else count
    fitting = []
    for code in CODES[kind]:
        width = _width(code)
        if width == 0:
            if not items and count is None and size is None:
                fitting.append(code)
        elif max(claimed, size or 0, len(body) + width if size is None else 0) < 1 << 8 * width:
            fitting.append(code)
    code = _choose(kind, choice, fitting)
    width = _width(code)
    if width == 0:
        return Encoded(bytes([code]))
    length = len(body) + width if size is None else size  # the size counts the octets of the count too
    about = fixed(length.to_bytes(width, "big")) + fixed(claimed.to_bytes(width, "big"))
    return Encoded(bytes([code]) + about + body)


def list_(
    items: Iterable[object], choice: Choice = "smallest", *, count: int | None = None, size: int | None = None
) -> Encoded:
    """`count` and `size` lie about the number of items and the octets after the size."""
    return _compound("list", [value(item) for item in items], choice, count, size)


def map_(
    pairs: Pairs, choice: Choice = "smallest", *, count: int | None = None, size: int | None = None
) -> Encoded:
    """In the order given; keys may repeat when `pairs` is no dictionary. `count` counts keys and values."""
    items = [value(item) for pair in _pairs(pairs) for item in pair]
    return _compound("map", items, choice, count, size)


def _pairs(pairs: Pairs) -> list[tuple[Any, Any]]:
    return list(pairs.items()) if isinstance(pairs, Mapping) else list(pairs)


def array(
    items: Iterable[bytes],
    constructor: bytes | None = None,
    choice: Choice = "smallest",
    *,
    count: int | None = None,
    size: int | None = None,
) -> Encoded:
    """An array of encoded values, which must all have one constructor: it is written once.

    `array([int_(1, 0x71), int_(2, 0x71)])`, `array([described("x:y", string("a"))])`, arrays of arrays, of
    lists, of described lists. An empty array needs `constructor`; where it is given, items that are plain
    octets are data without a constructor. `array_of` finds one encoding for all items.
    """
    datas = []
    for item in items:
        if isinstance(item, Encoded):
            if constructor is None:
                constructor = bytes(item[: item.constructor])
            if item[: item.constructor] != constructor:
                raise ValueError(f"{item.hex()} does not have the constructor {constructor.hex()}")
            datas.append(bytes(item[item.constructor :]))
        else:
            datas.append(item)
    if constructor is None:
        raise ValueError("an array without items, or of plain octets, needs a constructor")
    body = constructor + b"".join(datas)
    claimed = len(datas) if count is None else count
    fitting = []
    for code in CODES["array"]:
        width = _width(code)
        if max(claimed, len(body) + width if size is None else size) < 1 << 8 * width:
            fitting.append(code)
    code = _choose("array", choice, fitting)
    width = _width(code)
    length = len(body) + width if size is None else size
    about = fixed(length.to_bytes(width, "big")) + fixed(claimed.to_bytes(width, "big"))
    return Encoded(bytes([code]) + about + body)


def array_of(kind: str, values: Sequence[Any], choice: Choice = "smallest") -> Encoded:
    """An array of one primitive type from Python values, in the shortest encoding that holds each of them.

    With "widest" both the elements and the array have their widest encoding.
    """
    codes: Sequence[int] = CODES[kind]
    if kind in ("uint", "ulong", "boolean", "list") and any(v != values[0] for v in values[1:]):
        codes = [code for code in codes if _width(code)]
    for code in reversed(codes) if choice == "widest" else codes:
        try:
            return array([encode(kind, v, code) for v in values], bytes([code]), choice)
        except ValueError:
            continue
    raise ValueError(f"no encoding of {kind} holds all of {values!r}")


def described(descriptor: int | str | bytes, described_value: object) -> Encoded:
    """A described value: a number makes a ulong descriptor, a text a symbol, octets are taken as they are."""
    if isinstance(descriptor, bytes):
        octets: bytes = descriptor
    else:
        octets = ulong(descriptor) if isinstance(descriptor, int) else symbol(descriptor)
    inner = value(described_value)
    constructor = inner.constructor if isinstance(inner, Encoded) else 1
    return Encoded(b"\x00" + octets + inner, 1 + len(octets) + constructor)


def encode(kind: str, item: Any, choice: Choice = "smallest") -> Encoded:
    """A Python value in the encoding of a primitive type named as in the specification."""
    if kind == "null":
        return null()
    if kind in _WITH_CHOICE:
        return _WITH_CHOICE[kind](item, choice)
    return _WITHOUT_CHOICE[kind](item)


_WITH_CHOICE: dict[str, Callable[..., Encoded]] = {
    "boolean": boolean,
    "uint": uint,
    "ulong": ulong,
    "int": int_,
    "long": long,
    "binary": binary,
    "string": string,
    "symbol": symbol,
    "list": list_,
    "map": map_,
}
_WITHOUT_CHOICE: dict[str, Callable[..., Encoded]] = {
    "ubyte": ubyte,
    "ushort": ushort,
    "byte": byte,
    "short": short,
    "float": float_,
    "double": double,
    "decimal32": decimal32,
    "decimal64": decimal64,
    "decimal128": decimal128,
    "char": char,
    "timestamp": timestamp,
    "uuid": uuid,
}


# ---- composite types --------------------------------------------------------------------------------------
# One paragraph a type: name, numeric descriptor, then the fields in order as "name kind". The symbolic
# descriptor is amqp:NAME:list for all of them. A kind is a primitive type, or
#   fields      a map with symbol keys                unsettled   a map with binary keys
#   symbols     `multiple`: one bare, several in an array
#   message-id  a ulong, uuid, binary or string       *           any value; a text is a string

_TABLE = """
open 0x10: container-id string, hostname string, max-frame-size uint, channel-max ushort, idle-time-out uint,
    outgoing-locales symbols, incoming-locales symbols, offered-capabilities symbols,
    desired-capabilities symbols, properties fields
begin 0x11: remote-channel ushort, next-outgoing-id uint, incoming-window uint, outgoing-window uint,
    handle-max uint, offered-capabilities symbols, desired-capabilities symbols, properties fields
attach 0x12: name string, handle uint, role boolean, snd-settle-mode ubyte, rcv-settle-mode ubyte, source *,
    target *, unsettled unsettled, incomplete-unsettled boolean, initial-delivery-count uint,
    max-message-size ulong, offered-capabilities symbols, desired-capabilities symbols, properties fields
flow 0x13: next-incoming-id uint, incoming-window uint, next-outgoing-id uint, outgoing-window uint,
    handle uint, delivery-count uint, link-credit uint, available uint, drain boolean, echo boolean,
    properties fields
transfer 0x14: handle uint, delivery-id uint, delivery-tag binary, message-format uint, settled boolean,
    more boolean, rcv-settle-mode ubyte, state *, resume boolean, aborted boolean, batchable boolean
disposition 0x15: role boolean, first uint, last uint, settled boolean, state *, batchable boolean
detach 0x16: handle uint, closed boolean, error *
end 0x17: error *
close 0x18: error *
error 0x1d: condition symbol, description string, info fields

received 0x23: section-number uint, section-offset ulong
accepted 0x24:
rejected 0x25: error *
released 0x26:
modified 0x27: delivery-failed boolean, undeliverable-here boolean, message-annotations fields
source 0x28: address *, durable uint, expiry-policy symbol, timeout uint, dynamic boolean,
    dynamic-node-properties fields, distribution-mode symbol, filter fields, default-outcome *,
    outcomes symbols, capabilities symbols
target 0x29: address *, durable uint, expiry-policy symbol, timeout uint, dynamic boolean,
    dynamic-node-properties fields, capabilities symbols
delete-on-close 0x2b:
delete-on-no-links 0x2c:
delete-on-no-messages 0x2d:
delete-on-no-links-or-messages 0x2e:

coordinator 0x30: capabilities symbols
declare 0x31: global-id *
discharge 0x32: txn-id binary, fail boolean
declared 0x33: txn-id binary
transactional-state 0x34: txn-id binary, outcome *

sasl-mechanisms 0x40: sasl-server-mechanisms symbols
sasl-init 0x41: mechanism symbol, initial-response binary, hostname string
sasl-challenge 0x42: challenge binary
sasl-response 0x43: response binary
sasl-outcome 0x44: code ubyte, additional-data binary

header 0x70: durable boolean, priority ubyte, ttl uint, first-acquirer boolean, delivery-count uint
properties 0x73: message-id message-id, user-id binary, to *, subject string, reply-to *,
    correlation-id message-id, content-type symbol, content-encoding symbol,
    absolute-expiry-time timestamp, creation-time timestamp, group-id string, group-sequence uint,
    reply-to-group-id string
"""

Table = dict[str, tuple[int, list[tuple[str, str]]]]


def table_of(text: str) -> Table:
    """Name: numeric descriptor, and the fields as (name, kind) in order."""
    table: Table = {}
    for row in text.replace("\n    ", " ").split("\n"):
        head, _, fields = row.partition(":")
        if head:
            name, number = head.split()
            named = [field.strip().partition(" ") for field in fields.split(",") if field.strip()]
            table[name] = (int(number, 16), [(field, kind) for field, _, kind in named])
    return table


COMPOSITES = table_of(_TABLE)

DescriptorForm = Literal["small", "full", "symbol", "symbol32"]


def descriptor(number: int, name: str, form: DescriptorForm = "small") -> bytes:
    """The octets of a descriptor: smallulong, eight octet ulong, sym8 or sym32."""
    if form == "small":
        return ulong(number, 0x53)
    if form == "full":
        return ulong(number, 0x80)
    return symbol(name, 0xA3 if form == "symbol" else 0xB3)


class Composites:
    """Encodes the composites of a table.

    field    a field's octets from a Python value, its kind (see the table) and the choice of encodings
    list_    the encoder of lists
    """

    def __init__(self, table: Table, field: Callable[[str, Any, Choice], bytes], list_: ListEncoder) -> None:
        self.table = table
        self.field = field
        self.list_ = list_

    def __call__(
        self,
        name: str,
        /,
        *,
        descriptor_form: DescriptorForm = "small",
        choice: Choice = "smallest",
        keep_nulls: bool = False,
        extra: Sequence[object] = (),
        **fields: Any,
    ) -> Encoded:
        """One composite value.

        choice           "smallest" or "widest" for the list and for every field given as a Python value
        keep_nulls       write the trailing nulls out instead of leaving them off
        extra            more items after the last field that the specification knows
        """
        number, table = self.table[name]
        left = dict(fields)
        items: list[bytes] = []
        for field, kind in table:
            items.append(self.field(kind, left.pop(field.replace("-", "_"), None), choice))
        if left:
            raise TypeError(f"{name} has no field {', '.join(left)}")
        items += [value(item) for item in extra]
        if not keep_nulls and not extra:
            while items and items[-1] == b"\x40":
                items.pop()
        about = descriptor(number, f"amqp:{name}:list", descriptor_form)
        encoded = described(about, self.list_(items, choice))
        encoded.composite = (name, fields)
        return encoded


def _field(kind: str, item: Any, choice: Choice) -> bytes:
    """A field's octets from a Python value by the kind of the field (see COMPOSITES)."""
    if isinstance(item, Encoded):
        return item
    if item is None:
        return null()
    if kind == "fields":
        return item if isinstance(item, bytes) else keyed("symbol", item, choice)
    if kind == "unsettled":
        return item if isinstance(item, bytes) else keyed("binary", item, choice)
    if kind == "symbols":
        if isinstance(item, bytes):
            return item
        return symbol(item, choice) if isinstance(item, str) else array_of("symbol", item, choice)
    if kind == "message-id":
        if isinstance(item, bytes):
            return binary(item, choice)
        if isinstance(item, int):
            return ulong(item, choice)
        return uuid(item) if isinstance(item, uuid_module.UUID) else string(item, choice)
    if kind == "*":
        return string(item, choice) if isinstance(item, str) else value(item)
    if isinstance(item, bytes) and kind != "binary":
        return item
    return encode(kind, item, choice)


def keyed(key_kind: str, pairs: Pairs, choice: Choice) -> Encoded:
    """A map whose keys, where given as plain Python values, have the type `key_kind`."""
    return map_(
        [(k if isinstance(k, Encoded) else encode(key_kind, k, choice), v) for k, v in _pairs(pairs)], choice
    )


composite = Composites(COMPOSITES, _field, list_)

open_ = partial(composite, "open")
begin = partial(composite, "begin")
attach = partial(composite, "attach")
flow = partial(composite, "flow")
transfer = partial(composite, "transfer")
disposition = partial(composite, "disposition")
detach = partial(composite, "detach")
end = partial(composite, "end")
close = partial(composite, "close")
error = partial(composite, "error")
received = partial(composite, "received")
accepted = partial(composite, "accepted")
rejected = partial(composite, "rejected")
released = partial(composite, "released")
modified = partial(composite, "modified")
source = partial(composite, "source")
target = partial(composite, "target")
delete_on_close = partial(composite, "delete-on-close")
delete_on_no_links = partial(composite, "delete-on-no-links")
delete_on_no_messages = partial(composite, "delete-on-no-messages")
delete_on_no_links_or_messages = partial(composite, "delete-on-no-links-or-messages")
coordinator = partial(composite, "coordinator")
declare = partial(composite, "declare")
discharge = partial(composite, "discharge")
declared = partial(composite, "declared")
transactional_state = partial(composite, "transactional-state")
sasl_mechanisms = partial(composite, "sasl-mechanisms")
sasl_init = partial(composite, "sasl-init")
sasl_challenge = partial(composite, "sasl-challenge")
sasl_response = partial(composite, "sasl-response")
sasl_outcome = partial(composite, "sasl-outcome")
header = partial(composite, "header")
properties = partial(composite, "properties")

SENDER = False  # restricted type role
RECEIVER = True


# ---- message sections (messaging.xml, section message-format); a message is their concatenation ------------

SECTIONS: dict[str, tuple[int, str]] = {
    "header": (0x70, "amqp:header:list"),
    "delivery-annotations": (0x71, "amqp:delivery-annotations:map"),
    "message-annotations": (0x72, "amqp:message-annotations:map"),
    "properties": (0x73, "amqp:properties:list"),
    "application-properties": (0x74, "amqp:application-properties:map"),
    "data": (0x75, "amqp:data:binary"),
    "amqp-sequence": (0x76, "amqp:amqp-sequence:list"),
    "amqp-value": (0x77, "amqp:amqp-value:*"),
    "footer": (0x78, "amqp:footer:map"),
}


def section(name: str, content: object, form: DescriptorForm = "small") -> Encoded:
    """A section by name around an already encoded value."""
    number, symbolic = SECTIONS[name]
    return described(descriptor(number, symbolic, form), content)


def delivery_annotations(pairs: Pairs, form: DescriptorForm = "small") -> Encoded:
    return section("delivery-annotations", keyed("symbol", pairs, "smallest"), form)


def message_annotations(pairs: Pairs, form: DescriptorForm = "small") -> Encoded:
    return section("message-annotations", keyed("symbol", pairs, "smallest"), form)


def application_properties(pairs: Pairs, form: DescriptorForm = "small") -> Encoded:
    return section("application-properties", keyed("string", pairs, "smallest"), form)


def data(content: bytes, choice: Choice = "smallest", form: DescriptorForm = "small") -> Encoded:
    return section("data", binary(content, choice), form)


def amqp_sequence(
    items: Iterable[object], choice: Choice = "smallest", form: DescriptorForm = "small"
) -> Encoded:
    return section("amqp-sequence", list_(items, choice), form)


def amqp_value(content: object, form: DescriptorForm = "small") -> Encoded:
    return section("amqp-value", content, form)


def footer(pairs: Pairs, form: DescriptorForm = "small") -> Encoded:
    return section("footer", keyed("symbol", pairs, "smallest"), form)


# ---- frames and protocol headers (transport.xml, sections transport and version-negotiation) ---------------


def protocol_header(protocol_id: int = 0, major: int = 1, minor: int = 0, revision: int = 0) -> bytes:
    return b"AMQP" + bytes([protocol_id, major, minor, revision])


AMQP_HEADER = protocol_header(0)
TLS_HEADER = protocol_header(2)
SASL_HEADER = protocol_header(3)


def frame(
    body: bytes = b"",
    payload: bytes = b"",
    *,
    channel: int = 0,
    type: int = 0,
    extended: bytes = b"",
    size: int | None = None,
    doff: int | None = None,
) -> bytes:
    """One frame: a performative and what follows it; without either the empty frame (a heartbeat).

    extended   the extended header, a multiple of 4 octets; the data offset grows with it
    size, doff lie about the whole frame's octets and the body's position in words of 4 octets
    """
    octets = extended + body + payload
    claimed = 8 + len(octets) if size is None else size
    offset = 2 + len(extended) // 4 if doff is None else doff
    about = (claimed.to_bytes(4, "big"), bytes([offset]), bytes([type]), channel.to_bytes(2, "big"))
    return b"".join(fixed(number) for number in about) + octets


def sasl_frame(body: bytes = b"", payload: bytes = b"", **more: Any) -> bytes:
    """A SASL frame: type 1; octets 6 and 7 are ignored by its reader (`channel` sets them)."""
    return frame(body, payload, type=1, **more)


def transfer_frames(message: bytes, max_frame_size: int, *, channel: int = 0, **fields: Any) -> list[bytes]:
    """The transfer frames that carry one message, none larger than `max_frame_size` octets.

    The first carries the fields given; the others only the handle (they continue the same delivery).
    """
    frames: list[bytes] = []
    rest = message
    while True:
        named = fields if not frames else {"handle": fields["handle"]}
        whole = frame(transfer(**named), rest, channel=channel)
        if len(whole) <= max_frame_size:
            return [*frames, whole]
        first = transfer(**named, more=True)
        room = max_frame_size - 8 - len(first)
        if room <= 0:
            raise ValueError("max_frame_size leaves no room for payload")
        frames.append(frame(first, rest[:room], channel=channel))
        rest = rest[room:]
