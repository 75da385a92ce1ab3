"""One field of one frame made unreadable, in a conversation that is legal otherwise.

    frame = Frame.of(said)                                  # a frame of AMQP 1.0, taken apart
    for place in frame.places():                            # its fields, and those of what stands in them
        for way, octets in ways(place.kind, place.octets):
            garbled(conversation, said, frame.with_(place, octets))

Both peers go on as if the frame had been understood. So whoever judges the conversation may say what is wrong
with the octets of that frame, and nothing else.

The fields and their types are those of `support.amqp10_encode`, written from the specification; this file
shares nothing with the product.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from support import amqp10_encode as amqp
from support.legal import Said
from support.network import Conversation, Segment

__all__ = ["Frame", "Place", "garbled", "ways"]

_NAMES = {number: name for name, (number, _) in amqp.COMPOSITES.items()}
_SECTIONS = {number: name for name, (number, _) in amqp.SECTIONS.items()}
_NULL = b"\x40"


@dataclass(frozen=True)
class Place:
    """Where a value stands. name: `attach.role`, `source.address`; kind: as in `COMPOSITES`, or `composite`.

    steps: the item to follow in each list from the frame's body (or section) inwards. octets: of the value,
    null if absent. section: in which of the payload it stands, -1 for none.
    """

    name: str
    kind: str
    steps: tuple[int, ...]
    octets: bytes
    mandatory: bool = False
    section: int = -1


# Without these a frame makes no sense (transport.xml, messaging.xml, transactions.xml, security.xml).
_MANDATORY = frozenset(
    [
        "open.container-id",
        "begin.next-outgoing-id",
        "begin.incoming-window",
        "begin.outgoing-window",
        "attach.name",
        "attach.handle",
        "attach.role",
        "flow.incoming-window",
        "flow.next-outgoing-id",
        "flow.outgoing-window",
        "transfer.handle",
        "disposition.role",
        "disposition.first",
        "detach.handle",
        "error.condition",
        "received.section-number",
        "received.section-offset",
        "discharge.txn-id",
        "declared.txn-id",
        "transactional-state.txn-id",
        "sasl-mechanisms.sasl-server-mechanisms",
        "sasl-init.mechanism",
        "sasl-challenge.challenge",
        "sasl-response.response",
        "sasl-outcome.code",
    ]
)

# What stands in a field whose kind is "*", where that matters for how it can be garbled.
_WILD = {
    "source.address": "string",
    "target.address": "string",
    "properties.to": "string",
    "properties.reply-to": "string",
    "declare.global-id": "binary",
}


def size_of(octets: bytes, at: int) -> int:
    """The octets of the value that begins at `at`."""
    start = at
    while octets[at] == 0:
        at += 1 + size_of(octets, at + 1)
    width = octets[at] >> 4
    if width < 4:
        raise ValueError(f"no constructor: {octets[at]:#04x}")
    if width < 0xA:
        return at + 1 + (0, 1, 2, 4, 8, 16)[width - 4] - start
    if width % 2 == 0:
        return at + 2 + octets[at + 1] - start
    return at + 5 + int.from_bytes(octets[at + 1 : at + 5], "big") - start


def composite_in(octets: bytes) -> str:
    """The name of the composite whose octets these are; "" if they are none in a list."""
    if octets[:2] != b"\x00\x53" or octets[3] not in (0x45, 0xC0, 0xD0):
        return ""
    return _NAMES.get(octets[2], "")


def items_of(octets: bytes) -> list[bytes]:
    """The items of a composite's list, or those of a list or map that is not described."""
    at = 3 if octets[0] == 0 else 0
    code = octets[at]
    if code == 0x45:
        return []
    at += 3 if code < 0xD0 else 9
    found = []
    while at < len(octets):
        size = size_of(octets, at)
        found.append(octets[at : at + size])
        at += size
    return found


def with_items(octets: bytes, items: list[bytes], *, count: int = 0, size: int = 0) -> bytes:
    """The composite, list or map with these items; count and size: so much too many."""
    at = 3 if octets[0] == 0 else 0
    code = 0xD1 if octets[at] in (0xC1, 0xD1) else 0xD0
    content = b"".join(items)
    return octets[:at] + struct.pack(">BII", code, 4 + len(content) + size, len(items) + count) + content


@dataclass(frozen=True)
class Frame:
    """A frame taken apart. body: the octets of its performative; payload: those behind it."""

    header: bytes
    body: bytes
    payload: bytes

    @staticmethod
    def of(said: Said) -> Frame | None:
        """None of a protocol header and of an empty frame."""
        octets = said.octets
        if octets[:4] == b"AMQP" or len(octets) == 8:
            return None
        end = 8 + size_of(octets, 8)
        return Frame(octets[:8], octets[8:end], octets[end:])

    def octets(self) -> bytes:
        body = self.body + self.payload
        return struct.pack(">I", 8 + len(body)) + self.header[4:8] + body

    def places(self) -> Iterator[Place]:
        """The body itself, its fields (there or not), those of composites in them, its sections."""
        yield Place(composite_in(self.body), "composite", (), self.body)
        yield from _places(self.body, ())
        for number, octets in enumerate(self.sections()):
            for place in _places_of_section(octets):
                yield replace(place, section=number)

    def sections(self) -> list[bytes]:
        """The sections of its payload, if that is a message from its start on."""
        found = []
        at = 0
        while at < len(self.payload):
            try:
                size = size_of(self.payload, at)
            except (ValueError, IndexError):
                return []
            octets = self.payload[at : at + size]
            if octets[:2] != b"\x00\x53" or octets[2] not in _SECTIONS or at + size > len(self.payload):
                return []
            found.append(octets)
            at += size
        return found

    def with_(self, place: Place, octets: bytes) -> bytes:
        """The frame with other octets in a place."""
        if place.section < 0:
            return replace(self, body=_replaced(self.body, place.steps, octets)).octets()
        sections = self.sections()
        sections[place.section] = _replaced(sections[place.section], place.steps, octets)
        return replace(self, payload=b"".join(sections)).octets()


def _places_of_section(octets: bytes) -> Iterator[Place]:
    name = _SECTIONS[octets[2]]
    within: tuple[int, ...] = ()
    if name == "amqp-value":  # of these a declare or discharge is looked at
        octets = octets[3:]
        within = (-1,)
    owner = composite_in(octets)
    if owner:
        yield Place(owner, "composite", within, octets)
        yield from _places(octets, within)
    elif name not in ("amqp-value", "amqp-sequence"):
        yield Place(name, "binary" if name == "data" else "fields", (-1,), octets[3:])


def _places(composite: bytes, steps: tuple[int, ...]) -> Iterator[Place]:
    owner = composite_in(composite)
    items = items_of(composite)
    for index, (field, kind) in enumerate(amqp.COMPOSITES[owner][1]):
        octets = items[index] if index < len(items) else _NULL
        inner = composite_in(octets)
        name = f"{owner}.{field}"
        if kind == "*":
            kind = "composite" if inner else _WILD.get(name, "*")
        yield Place(name, kind, (*steps, index), octets, name in _MANDATORY)
        if inner:
            yield from _places(octets, (*steps, index))


def _replaced(octets: bytes, steps: tuple[int, ...], by: bytes) -> bytes:
    if not steps:
        return by
    if steps[0] == -1:  # what a section wraps
        return octets[:3] + _replaced(octets[3:], steps[1:], by)
    items = items_of(octets)
    items += [_NULL] * (steps[0] + 1 - len(items))
    items[steps[0]] = _replaced(items[steps[0]], steps[1:], by)
    return with_items(octets, items)


# How a value of each type can be garbled. What is given is another value's octets, or no value's.

_ANY = {
    "unknown code of no octets": b"\x4b",
    "unknown code of one octet": b"\x57\x00",
    "unknown code of four octets": b"\x7b\x00\x00\x00\x01",
    "unknown code of a size": b"\xa5\x02\x00\x00",
    "code of no known width": b"\x3f",
    "extended code": b"\x5f\x01",
    "claims more than there is": b"\xb0\x00\x01\x00\x00ab",
    "descriptor without a value": b"\x00\x53",
    "another type": b"\x83\x00\x00\x00\x00\x00\x00\x00\x07",
    "an octet of no boolean": b"\x56\x02",
}
_UNASSIGNED = b"\x00\x53\x2f"  # within the specification's domain
_FOREIGN = b"\x00\x80\x00\x00\x12\x34\x00\x00\x00\x07"

_NOT_ASCII = b"\xa3\x03a\xffb"
_NO_BOOLEAN = b"\x56\x02"
_YES = b"\x41"
_A, _B = b"\xa3\x01a", b"\xa3\x01b"  # symbols
_S, _T = b"\xa0\x01s", b"\xa0\x01t"  # binaries
_STATE_IN_A_MAP = b"\x00\x53\x24\xc1\x01\x00"


def _map(*items: bytes, count: int = 0) -> bytes:
    """A map of these keys and values; count: so many items too many."""
    content = b"".join(items)
    return bytes([0xC1, 1 + len(content), len(items) + count]) + content


_MAPS = {
    "odd count": lambda a, b, v: _map(a),
    "more entries than there are": lambda a, b, v: _map(a, v, count=2),
    "fewer entries than there are": lambda a, b, v: _map(a, v, b, v, count=-2),
    "no room for its count": lambda a, b, v: b"\xc1\x00\x00",
    "duplicate keys": lambda a, b, v: _map(a, v, a, v),
    "garbled key": lambda a, b, v: _map(b"\xa5\x00", v),
    "key of another type": lambda a, b, v: _map(b"\xa1\x01a", v),
    "garbled value": lambda a, b, v: _map(a, _NO_BOOLEAN),
    "list": lambda a, b, v: b"\xc0" + _map(a, v)[1:],
}
_OF_KIND: dict[str, dict[str, bytes]] = {
    "boolean": {"ubyte": b"\x50\x01", "string": b"\xa1\x04true", "octet 0xff": b"\x56\xff"},
    "ubyte": {"uint": b"\x52\x01", "boolean": _YES},
    "ushort": {"uint": b"\x52\x01", "short": b"\x61\x00\x01"},
    "uint": {"ushort": b"\x60\x00\x01", "ulong": b"\x53\x01", "int": b"\x54\x01", "string": b"\xa1\x011"},
    "ulong": {"uint": b"\x52\x01", "long": b"\x55\x01"},
    "timestamp": {"ulong": b"\x53\x01"},
    "binary": {"string": b"\xa1\x01t", "uint": b"\x52\x01"},
    "string": {
        "not UTF-8": b"\xa1\x04caf\xe9",
        "UTF-16 of the drafts": b"\xa2\x04\x00a\x00b",
        "long UTF-16 of the drafts": b"\xb2\x00\x00\x00\x04\x00a\x00b",
        "symbol": _A,
        "binary": _S,
    },
    "symbol": {"not ASCII": _NOT_ASCII, "string": b"\xa1\x03abc"},
    "message-id": {"not UTF-8": b"\xa1\x02\xff\xfe", "uint": b"\x52\x01", "symbol": _A},
    "symbols": {
        "not ASCII": _NOT_ASCII,
        "list of symbols": amqp.list_([_A, _B]),
        "array of strings": amqp.array([b"\x01a", b"\x01b"], b"\xa1"),
        "array of more than there is": amqp.array([b"\x01a", b"\x01b"], b"\xa3", count=3),
        "array of fewer than there are": amqp.array([b"\x01a", b"\x01b"], b"\xa3", count=1),
        "array with an unknown constructor": amqp.array([b"\x01a", b"\x01b"], b"\xa5"),
        "array without constructor": b"\xe0\x01\x01",
        "array with a symbol that is not ASCII": amqp.array([b"\x01a", b"\x01\xff"], b"\xa3"),
    },
    "fields": {way: make(_A, _B, _YES) for way, make in _MAPS.items()},
    "unsettled": {way: make(_S, _T, _NULL) for way, make in _MAPS.items()}
    | {"state in a map": _map(_S, _STATE_IN_A_MAP), "value that is no state": _map(_S, _YES)},
}


def ways(place: Place) -> Iterator[tuple[str, bytes]]:
    """The ways in which what stands in a place can be garbled, with the octets to put there."""
    yield from _ANY.items()
    yield from _OF_KIND.get(place.kind, {}).items()
    octets = place.octets
    if octets[:1] in (b"\xc1", b"\xd1"):
        yield from _of_pairs(octets)
    if place.kind == "composite":
        yield from _of_composite(octets)
    if place.kind == "*":
        yield "described by a string", b"\x00\xa1\x01a\x45"
        yield "composite in a map", _STATE_IN_A_MAP
        yield "unassigned descriptor", _UNASSIGNED + b"\x45"
    if place.mandatory and octets != _NULL:
        yield "null", _NULL


def _of_pairs(octets: bytes) -> Iterator[tuple[str, bytes]]:
    """A map that was there, its entries kept."""
    items = items_of(octets)
    yield "one item too many counted", with_items(octets, items, count=1)
    yield "two items too many counted", with_items(octets, items, count=2)
    if items:
        yield "one item too few counted", with_items(octets, items, count=-1)
        yield "two items too few counted", with_items(octets, items, count=-2)
        yield "its first entry twice", with_items(octets, items[:2] + items)
        yield "its first value garbled", with_items(octets, [items[0], b"\x56\x02", *items[2:]])
        yield "its first key garbled", with_items(octets, [b"\xa5\x00", *items[1:]])


def _of_composite(octets: bytes) -> Iterator[tuple[str, bytes]]:
    """A composite that was there, its fields kept as far as that is possible."""
    items = items_of(octets)
    yield "list one octet short", with_items(octets, items, size=-1)
    yield "list one octet long", with_items(octets, items, size=1)
    yield "one item too many counted", with_items(octets, items, count=1)
    if items:
        yield "one item too few counted", with_items(octets, items, count=-1)
    yield "no room for its count", octets[:3] + b"\xc0\x00"
    pairs = b"".join(items) + _NULL * (len(items) % 2)
    count = len(items) + len(items) % 2
    yield "in a map", octets[:3] + struct.pack(">BII", 0xD1, 4 + len(pairs), count) + pairs
    whole = with_items(octets, items)
    yield "without descriptor", whole[3:]
    yield "unassigned descriptor", _UNASSIGNED + whole[3:]
    yield "descriptor of another's", _FOREIGN + whole[3:]
    yield "descriptor that is a string", b"\x00\xa1\x04amqp" + whole[3:]
    yield "garbled descriptor", b"\x00\x56\x02" + whole[3:]


def garbled(conversation: Conversation, said: Said, octets: bytes) -> Conversation:
    """The conversation with other octets in the place of a frame; all that was said goes on as before."""
    start, end = said.start, said.start + len(said.octets)
    parts = sorted((one.start, one.octets) for one in conversation.talk.said[said.side])
    stream = b"".join(part for _, part in parts)
    stream = stream[:start] + octets + stream[end:]

    def moved(offset: int) -> int:
        if offset >= end:
            return offset + len(octets) - (end - start)
        return start + min(offset - start, len(octets)) if offset > start else offset

    segments: list[Segment] = []
    for segment in conversation.segments:
        if segment.side == said.side:
            first, last = moved(segment.start), moved(segment.start + len(segment.octets))
            segments.append(replace(segment, start=first, octets=stream[first:last]))
        else:
            segments.append(replace(segment, ack=moved(segment.ack)))
    return replace(conversation, segments=segments)
