"""An encoder of the April-2011 draft of AMQP 1.0 for tests, written from the draft's text.

It has the names of `support.amqp10_encode`, so that whoever encodes with that module can encode with this
one. What both dialects encode alike is taken from there. Different in the draft:

    frame(open_(container_id="c", max_frame_size=4096))     every performative has `options` first
    string("text", 0xA2)                                    UTF-16
    list_([uint(1), uint(2)], 0xE0)                         an array is an encoding of a list
    multiple("symbol", ["a", "b"])                          several values: a list described by true
    frame(transfer(handle=0, delivery_tag=b"t", transfer_id=0, message_format=0,
                   fragments=fragments([header(durable=True), data(b"hello")])))
    transfer_frames([data(b"a" * 9000)], 4096, handle=0, delivery_tag=b"t", transfer_id=0)

The draft has no boolean, uint, ulong and list of one octet beyond 0x41 and 0x42, and no array type. What the
surviving text lost (descriptors, some types) is taken from the working group's XML of February 2011.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from support import amqp10_encode as final
from support.amqp10_encode import (
    AMQP_HEADER,
    RECEIVER,
    SASL_HEADER,
    SENDER,
    TLS_HEADER,
    Choice,
    Composites,
    Encoded,
    Pairs,
    binary,
    byte,
    char,
    decimal32,
    decimal64,
    decimal128,
    described,
    double,
    float_,
    frame,
    int_,
    keyed,
    long,
    map_,
    null,
    protocol_header,
    raw,
    sasl_frame,
    short,
    symbol,
    table_of,
    timestamp,
    ubyte,
    ushort,
    uuid,
    value,
)

__all__ = [
    "AMQP_HEADER",
    "RECEIVER",
    "SASL_HEADER",
    "SENDER",
    "TLS_HEADER",
    "Encoded",
    "Section",
    "binary",
    "boolean",
    "byte",
    "char",
    "composite",
    "decimal32",
    "decimal64",
    "decimal128",
    "described",
    "double",
    "encode",
    "float_",
    "fragments",
    "frame",
    "int_",
    "list_",
    "long",
    "map_",
    "multiple",
    "null",
    "protocol_header",
    "raw",
    "sasl_frame",
    "short",
    "string",
    "symbol",
    "timestamp",
    "transfer_frames",
    "ubyte",
    "uint",
    "ulong",
    "ushort",
    "uuid",
    "value",
]

# ---- primitive types (book 2, section 2.2) -----------------------------------------------------------------

CODES: dict[str, tuple[int, ...]] = final.CODES | {
    "boolean": (0x41, 0x42),
    "uint": (0x52, 0x70),
    "ulong": (0x53, 0x80),
    "string": (0xA1, 0xB1, 0xA2, 0xB2),
    "list": (0xC0, 0xD0, 0xE0, 0xF0),
}
del CODES["array"]


def boolean(value: bool, choice: Choice = "smallest") -> Encoded:
    return final.boolean(value, "smallest" if choice == "widest" else choice)


def uint(value: int, choice: Choice = "smallest") -> Encoded:
    return final.uint(value, 0x52 if choice == "smallest" and not value else choice)


def ulong(value: int, choice: Choice = "smallest") -> Encoded:
    return final.ulong(value, 0x53 if choice == "smallest" and not value else choice)


def string(value: str | bytes, choice: Choice = "smallest") -> Encoded:
    """0xA2 and 0xB2 are UTF-16BE without a byte order mark; `bytes` are taken for the encoded octets."""
    if choice not in (0xA2, 0xB2):
        return final.string(value, choice)
    utf8 = final.string(value.encode("utf-16-be") if isinstance(value, str) else value, choice - 1)
    return Encoded(bytes([choice]) + utf8[1:])


def list_(
    items: Iterable[object], choice: Choice = "smallest", *, constructor: bytes | None = None
) -> Encoded:
    """With 0xE0 and 0xF0 all items have one constructor: `constructor`, or that of the first item."""
    encoded = [value(item) for item in items]
    if choice in (0xE0, 0xF0):
        return final.array(encoded, constructor, choice)
    return final.list_(encoded, 0xC0 if choice == "smallest" and not encoded else choice)


def encode(kind: str, item: Any, choice: Choice = "smallest") -> Encoded:
    """A Python value in the encoding of a primitive type named as in the specification."""
    own = {"boolean": boolean, "uint": uint, "ulong": ulong, "string": string, "list": list_}.get(kind)
    return final.encode(kind, item, choice) if own is None else own(item, choice)


def multiple(kind: str, items: Sequence[Any], choice: Choice = "smallest") -> Encoded:
    """Several values of a field, section 2.3: a list described by true, in the encoding `choice`."""
    array = choice in (0xE0, 0xF0)
    encoded = [item if isinstance(item, Encoded) else _item(kind, item, array) for item in items]
    return described(boolean(True), list_(encoded, choice))


def _item(kind: str, item: Any, array: bool) -> Encoded:
    """Of an array, all of them with one constructor: the widest holds every value."""
    return encode(kind, item, "widest" if array else "smallest")


# ---- composite types (books 3 to 6) ------------------------------------------------------------------------
# One paragraph a type, as in `support.amqp10_encode`. More kinds of fields:
#   multiple KIND   one bare value; several in a list that is described by true

_TABLE = """
open 0x10: options fields, container-id string, hostname string, max-frame-size uint, channel-max ushort,
    idle-time-out uint, outgoing-locales multiple string, incoming-locales multiple string,
    offered-capabilities multiple symbol, desired-capabilities multiple symbol, properties fields
begin 0x11: options fields, remote-channel ushort, next-outgoing-id uint, incoming-window uint,
    outgoing-window uint, handle-max uint, offered-capabilities multiple symbol,
    desired-capabilities multiple symbol, properties fields
attach 0x12: options fields, name string, handle uint, role boolean, source *, target *, unsettled unsettled,
    initial-transfer-count uint, max-message-size ulong, offered-capabilities multiple symbol,
    desired-capabilities multiple symbol, properties fields
flow 0x13: options fields, next-incoming-id uint, incoming-window uint, next-outgoing-id uint,
    outgoing-window uint, handle uint, transfer-count uint, link-credit uint, available uint, drain boolean,
    echo boolean
transfer 0x14: options fields, handle uint, delivery-tag binary, transfer-id uint, settled boolean, state *,
    resume boolean, more boolean, aborted boolean, batchable boolean, message-format uint,
    fragments multiple *
disposition 0x15: options fields, role boolean, batchable boolean, first uint, last uint, settled boolean,
    state *
detach 0x16: options fields, handle uint, closed boolean, error *
end 0x17: options fields, error *
close 0x18: options fields, error *
fragment 0x1c: first boolean, last boolean, section-code uint, section-number uint, section-offset ulong,
    payload binary
error 0x1d: condition symbol, description string, info fields

header 0x20: durable boolean, priority ubyte, transmit-time timestamp, ttl ulong, former-acquirers uint,
    delivery-failures uint, message-attrs fields, delivery-attrs fields
properties 0x21: message-id binary, user-id binary, to *, subject string, reply-to *, correlation-id binary,
    content-length ulong, content-type symbol
footer 0x22: message-attrs fields, delivery-attrs fields
transfer-state 0x23: options fields, bytes-transferred ulong, outcome *, txn-id binary
accepted 0x24: options fields
rejected 0x25: options fields, error *
released 0x26: options fields
modified 0x27: options fields, delivery-failed boolean, deliver-elsewhere boolean, message-attrs fields,
    delivery-attrs fields
source 0x28: options fields, address *, durable boolean, expiry-policy symbol, timeout uint, dynamic *,
    distribution-mode symbol, filter fields, default-outcome *, outcomes multiple symbol,
    capabilities multiple symbol
target 0x29: options fields, address *, durable boolean, expiry-policy symbol, timeout uint, dynamic *,
    capabilities multiple symbol
filter 0x2a: filter-type symbol, filter *
delete-on-close 0x2b: options fields
delete-on-no-links 0x2c: options fields
delete-on-no-messages 0x2d: options fields
delete-on-no-links-or-messages 0x2e: options fields

coordinator 0x30: options fields, capabilities multiple symbol
declare 0x31: options fields, global-id *
discharge 0x32: options fields, fail boolean

sasl-mechanisms 0x40: options fields, sasl-server-mechanisms multiple string
sasl-init 0x41: options fields, mechanism string, initial-response binary, hostname string
sasl-challenge 0x42: options fields, challenge binary
sasl-response 0x43: options fields, response binary
sasl-outcome 0x44: options fields, code ubyte, additional-data binary
"""

COMPOSITES = table_of(_TABLE)


def _field(kind: str, item: Any, choice: Choice) -> bytes:
    """A field's octets from a Python value by the kind of the field (see COMPOSITES)."""
    if isinstance(item, Encoded) or item is None:
        return value(item)
    if kind in ("fields", "unsettled"):
        return (
            item
            if isinstance(item, bytes)
            else keyed("binary" if kind == "unsettled" else "symbol", item, choice)
        )
    if kind.startswith("multiple "):
        kind = kind.removeprefix("multiple ")
        if isinstance(item, (list, tuple)):
            return multiple(kind, item, choice)
    if kind == "*":
        return string(item, choice) if isinstance(item, str) else value(item)
    if isinstance(item, bytes) and kind != "binary":
        return item
    return encode(kind, item, choice)


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
fragment = partial(composite, "fragment")
error = partial(composite, "error")
transfer_state = partial(composite, "transfer-state")
accepted = partial(composite, "accepted")
rejected = partial(composite, "rejected")
released = partial(composite, "released")
modified = partial(composite, "modified")
source = partial(composite, "source")
target = partial(composite, "target")
filter_ = partial(composite, "filter")
delete_on_close = partial(composite, "delete-on-close")
delete_on_no_links = partial(composite, "delete-on-no-links")
delete_on_no_messages = partial(composite, "delete-on-no-messages")
delete_on_no_links_or_messages = partial(composite, "delete-on-no-links-or-messages")
coordinator = partial(composite, "coordinator")
declare = partial(composite, "declare")
discharge = partial(composite, "discharge")
sasl_mechanisms = partial(composite, "sasl-mechanisms")
sasl_init = partial(composite, "sasl-init")
sasl_challenge = partial(composite, "sasl-challenge")
sasl_response = partial(composite, "sasl-response")
sasl_outcome = partial(composite, "sasl-outcome")


# ---- messages (sections 3.6.11 and 4.2) --------------------------------------------------------------------

SECTIONS = {
    "header": 0,
    "properties": 1,
    "footer": 2,
    "data": 3,
    "amqp-data": 4,
    "amqp-map": 5,
    "amqp-list": 6,
}
"""The section codes, by the names that they have in the XML of February 2011."""


@dataclass(frozen=True)
class Section:
    """A section of a message: its code, and its octets. `fragments` and `transfer_frames` send it."""

    code: int
    octets: bytes = b""


def section(name: str, octets: bytes = b"") -> Section:
    return Section(SECTIONS[name], octets)


def header(**fields: Any) -> Section:
    return section("header", composite("header", **fields))


def properties(**fields: Any) -> Section:
    return section("properties", composite("properties", **fields))


def footer(**fields: Any) -> Section:
    return section("footer", composite("footer", **fields))


def data(octets: bytes) -> Section:
    """Opaque octets: no AMQP binary."""
    return section("data", octets)


def amqp_data(*values: object) -> Section:
    return section("amqp-data", b"".join(value(item) for item in values))


def amqp_map(pairs: Pairs) -> Section:
    return section("amqp-map", keyed("string", pairs, "smallest"))


def amqp_list(items: Iterable[object]) -> Section:
    return section("amqp-list", list_(items))


def fragments(sections: Sequence[Section], largest: int | None = None) -> list[Encoded]:
    """The fragments of a message, in order: of each section one, or as many as `largest` octets need."""
    return [fragment(**fields) for fields in fragment_fields(sections, largest)]


def fragment_fields(sections: Sequence[Section], largest: int | None = None) -> Iterator[dict[str, Any]]:
    """The fields of these fragments."""
    for number, each in enumerate(sections):
        step = largest or len(each.octets) or 1
        for offset in range(0, len(each.octets) or 1, step):
            yield {
                "first": offset == 0,
                "last": offset + step >= len(each.octets),
                "section_code": each.code,
                "section_number": number,
                "section_offset": offset,
                "payload": each.octets[offset : offset + step],
            }


def transfer_frames(
    sections: Sequence[Section], max_frame_size: int, *, channel: int = 0, transfer_id: int, **fields: Any
) -> list[bytes]:
    """The transfer frames that carry one message, none larger than `max_frame_size` octets.

    Each has all the fields given, and a transfer-id of its own, from `transfer_id` on.
    """
    fields = {"message_format": 0, **fields}
    whole = _transfer(channel, transfer_id, fields, fragments(sections), more=False)
    if len(whole) <= max_frame_size:
        return [whole]
    about = len(_transfer(channel, 1 << 31, fields, [], more=True)) + 64  # and a list around the fragments
    pieces = fragments(sections, max(1, (max_frame_size - about) // 2 - 40))  # two, and a short one
    frames = []
    while pieces:
        taken = 1
        while taken < len(pieces) and about + sum(map(len, pieces[: taken + 1])) <= max_frame_size:
            taken += 1
        number = transfer_id + len(frames) & 0xFFFFFFFF
        frames.append(_transfer(channel, number, fields, pieces[:taken], more=taken < len(pieces)))
        pieces = pieces[taken:]
    return frames


def _transfer(
    channel: int, transfer_id: int, fields: dict[str, Any], carried: list[Encoded], *, more: bool
) -> bytes:
    return frame(
        transfer(transfer_id=transfer_id, more=more or None, fragments=carried or None, **fields),
        channel=channel,
    )
