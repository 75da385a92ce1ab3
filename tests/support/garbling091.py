"""A frame of a legal conversation of AMQP 0-9-1, spoilt in one of the ways that its fields allow.

`ways` gives, for a frame as it was said, every field of it with every way to spoil that field: the octets of
the frame then. `spoilt` puts such octets in the place of the frame, and moves all that stands behind them.
The other peer goes on as if it had read what was meant.

Written from the specification's text, apart from the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from support import amqp091_encode as amqp
from support.legal import Said
from support.network import Conversation, Segment
from support.tcp_writer import ACK, PSH

__all__ = ["Way", "refused", "spoilt", "ways"]

LATIN_1 = b"caf\xe9"
UNKNOWN_TAG = b"\x01zZ\x05"
"""A pair whose value has a tag that no dialect knows."""


EVERY_PROPERTY = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": {"n": ("I", 5)},
    "delivery_mode": 2,
    "priority": 3,
    "correlation_id": "c",
    "reply_to": "replies",
    "expiration": "60000",
    "message_id": "m",
    "timestamp": 1_700_000_000,
    "type": "order",
    "user_id": "guest",
    "app_id": "a",
    "reserved": "",
}
"""A message has its own properties or, where these are spoilt, all that there are."""


@dataclass(frozen=True)
class Way:
    """One way to spoil a field. field: its path, `queue.declare.queue`. octets: of the whole frame."""

    field: str
    name: str
    octets: bytes


@dataclass(frozen=True)
class _Place:
    """A field in a payload, from `start` to `end`. kind: as in `amqp091_encode.METHODS`. used: bits of it."""

    name: str
    kind: str
    start: int
    end: int
    used: int = 0


def _places(form: str, payload: bytes, at: int) -> Iterator[_Place]:
    """The fields that lie in a payload from `at` on; several bits are one."""
    bits = 0
    for field in form.split():
        name, kind = field.split(":")
        if kind == "?":
            bits += 1
            if bits == 1:
                first = name
            continue
        if bits:
            yield _Place(first, "?", at, at + 1, bits)
            at, bits = at + 1, 0
        start = at
        if kind == "s":
            at += 1 + payload[at]
        elif kind in "SF":
            at += 4 + int.from_bytes(payload[at : at + 4], "big")
        else:
            at += {"o": 1, "h": 2, "l": 4, "q": 8}[kind]
        yield _Place(name, kind, start, at)
    if bits:
        yield _Place(first, "?", at, at + 1, bits)


def _table(pairs: bytes) -> bytes:
    return len(pairs).to_bytes(4, "big") + pairs


def _of_table(value: bytes) -> Iterator[tuple[str, bytes]]:
    pairs = value[4:]
    yield "unknown tag first", _table(UNKNOWN_TAG + pairs)
    yield "unknown tag last", _table(pairs + UNKNOWN_TAG)
    yield "unknown tag in a table inside", _table(b"\x01zF" + _table(UNKNOWN_TAG) + pairs)
    yield "unknown tag in an array first", _table(b"\x01zA" + _table(b"Z\x05") + pairs)
    yield "array that ends inside a value", _table(b"\x01zA" + _table(b"I\0\0") + pairs)
    yield "string longer than the table", _table(pairs + b"\x01zS\x00\x00\x00\x09abc")
    yield "name longer than the table", _table(pairs + b"\x40z")
    yield "ends before a value", _table(pairs + b"\x01z")
    yield "number cut short", _table(pairs + b"\x01zI\x00")
    yield "name not in UTF-8, first", _table(amqp.short_string(LATIN_1) + b"t\x01" + pairs)
    yield "the same name twice", _table(b"\x01zt\x01\x01zt\x00" + pairs)
    yield "longer than the frame", (len(pairs) + 4000).to_bytes(4, "big") + pairs
    if pairs:
        first = 1 + pairs[0]
        yield "first name not in UTF-8", _table(amqp.short_string(LATIN_1) + pairs[first:])
        yield "unknown tag of the first value", _table(pairs[:first] + b"Z" + pairs[first + 1 :])
        yield "shorter than its pairs", _table(pairs[:-1])


def _of_field(place: _Place, value: bytes) -> Iterator[tuple[str, bytes]]:
    """The field's octets, spoilt."""
    if place.kind == "s":
        yield "not in UTF-8", amqp.short_string(value[1:-1] + LATIN_1 if len(value) < 200 else LATIN_1)
        yield "not in UTF-8, alone", amqp.short_string(b"\xff\xfe")
        yield "zero octet", amqp.short_string(b"\x00" + value[1:200])
        yield "longer than the frame", b"\xff" + value[1:]
        yield "one octet longer than it is", bytes([min(len(value), 255)]) + value[1:]
    elif place.kind == "S":
        yield "longer than the frame", b"\x7f" + value[1:]
        yield "not in UTF-8", amqp.long_string(value[4:] + LATIN_1)
        yield "one octet shorter than it is", (max(len(value) - 5, 0)).to_bytes(4, "big") + value[4:]
    elif place.kind == "F":
        yield from _of_table(value)
    elif place.kind == "?":
        if place.used < 8:
            yield "unused bits set", bytes([value[0] | 0xFF << place.used & 0xFF])


def _frame(said: Said, payload: bytes) -> bytes:
    return amqp.frame(said.octets[0], said.channel, payload)


def ways(said: Said) -> Iterator[Way]:
    """Every field of a method or content header with every way to spoil it; and the frame as a whole."""
    payload = said.octets[7:-1]
    if said.name in amqp.METHODS:
        yield from _of_method(said, payload)
    elif said.name == "content-header":
        yield from _of_header(said, payload)


def _of_method(said: Said, payload: bytes) -> Iterator[Way]:
    _, _, form = amqp.METHODS[said.name]
    for place in _places(form, payload, 4):
        path = f"{said.name}.{place.name}"
        for name, octets in _of_field(place, payload[place.start : place.end]):
            yield Way(path, name, _frame(said, payload[: place.start] + octets + payload[place.end :]))
        yield Way(path, "cut off before it", _frame(said, payload[: place.start]))
        if place.end - place.start > 1:
            yield Way(path, "cut off inside it", _frame(said, payload[: place.end - 1]))
    yield Way(said.name, "octets behind it", _frame(said, payload + b"\x00\x01"))
    yield Way(said.name, "no method number", _frame(said, payload[:2]))
    yield Way(said.name, "unknown method", _frame(said, payload[:2] + b"\x03\xe7" + payload[4:]))
    yield Way(said.name, "unknown class", _frame(said, b"\x03\xe7" + payload[2:]))


def _of_header(said: Said, payload: bytes) -> Iterator[Way]:
    size = int.from_bytes(payload[4:12], "big")
    full = amqp.content_header(size, **EVERY_PROPERTY)
    for place in _places(amqp.PROPERTIES, full, 14):
        path = f"content-header.{place.name}"
        for name, octets in _of_field(place, full[place.start : place.end]):
            yield Way(path, name, _frame(said, full[: place.start] + octets + full[place.end :]))
        yield Way(path, "cut off before it", _frame(said, full[: place.start]))
    flags = int.from_bytes(payload[12:14], "big")
    for name, body_size in (
        ("0", 0),
        ("one less", size - 1),
        ("one more", size + 1),
        ("much more", size + 70_000),
        ("negative if signed", 1 << 63),
        ("largest", (1 << 64) - 1),
    ):
        if 0 <= body_size != size:
            octets = payload[:4] + body_size.to_bytes(8, "big") + payload[12:]
            yield Way("content-header.body-size", name, _frame(said, octets))
    for name, flag in (("flag of no property", 2), ("flag of a word that is not there", 1)):
        octets = payload[:12] + (flags | flag).to_bytes(2, "big") + payload[14:]
        yield Way("content-header.property-flags", name, _frame(said, octets))
    unset = next((0x8000 >> n for n in range(14) if not flags & 0x8000 >> n), 0)
    octets = payload[:12] + (flags | unset).to_bytes(2, "big") + payload[14:]
    yield Way("content-header.property-flags", "flag of a property that is not there", _frame(said, octets))
    yield Way("content-header", "another class", _frame(said, b"\x00\x32" + payload[2:]))
    yield Way("content-header", "with a weight", _frame(said, payload[:2] + b"\x00\x01" + payload[4:]))
    yield Way("content-header", "octets behind it", _frame(said, payload + b"\x00\x01"))
    yield Way("content-header", "without its fixed part", _frame(said, payload[:11]))


def spoilt(conversation: Conversation, said: Said, way: Way) -> Conversation:
    """The conversation with other octets in the place of one frame. Its segments keep their bounds."""
    octets = way.octets
    more = len(octets) - len(said.octets)

    def moved(offset: int) -> int:
        if offset <= said.start:
            return offset
        return offset + more if offset >= said.end else min(offset, said.start + len(octets))

    segments: list[Segment] = []
    for segment in conversation.segments:
        if segment.side != said.side:
            segments.append(replace(segment, ack=moved(segment.ack)))
            continue
        start, end = moved(segment.start), moved(segment.start + len(segment.octets))
        before = segment.octets[: max(said.start - segment.start, 0)]
        behind = segment.octets[max(said.end - segment.start, 0) :] if start < end else b""
        inside = octets[max(start - said.start, 0) : max(end - said.start, 0)]
        segments.append(replace(segment, start=start, octets=(before + inside + behind)[: end - start]))
    return replace(conversation, segments=segments)


def refused(conversation: Conversation, said: Said, way: Way, code: int) -> Conversation | None:
    """As `spoilt`, but the other peer closes the connection for it. None if one of the two has before."""
    other = 1 - said.side
    segments: list[Segment] = []
    sent = [0, 0]
    for segment in conversation.segments:
        segments.append(segment)
        sent[segment.side] = max(sent[segment.side], segment.start + len(segment.octets))
        if sent[said.side] >= said.end:
            break
    for side in (0, 1):
        # What was begun is said to its end.
        for frame in conversation.talk.said[side]:
            if frame.start < sent[side] < frame.end:
                rest = frame.octets[sent[side] - frame.start :]
                segments.append(_later(segments[-1], side, sent[side], rest, sent[1 - side]))
                sent[side] = frame.end
                break
    for side in (0, 1):
        for one in conversation.talk.said[side]:
            if one.start < sent[side] and one.name in ("connection.close", "connection.close-ok"):
                return None
    known = "." in said.name and not way.name.startswith(("unknown", "no method"))
    class_id, method_id, _ = amqp.METHODS[said.name] if known else (0, 0, "")
    close = amqp.say(
        "connection.close", 0, reply_code=code, reply_text="ERROR", class_id=class_id, method_id=method_id
    )
    segments.append(_later(segments[-1], other, sent[other], close, sent[said.side]))
    ack = sent[other] + len(close)
    segments.append(_later(segments[-1], said.side, sent[said.side], amqp.say("connection.close-ok", 0), ack))
    return spoilt(replace(conversation, segments=segments), said, way)


def _later(before: Segment, side: int, start: int, octets: bytes, ack: int) -> Segment:
    time = max(before.sent, before.arrived) + 1_000_000
    return Segment(side, start, octets, ack, PSH | ACK, time, time + 1_000_000)
