"""AMQP 0-9-1 in octets, written from the specification for the tests, apart from the decoder.

    header()                                             the protocol header
    method("queue.declare", queue="q", durable=True)     the payload of a method frame
    frame(METHOD, 1, payload)                            any frame
    content(1, b"body", content_type="text/plain")       a content header and its body frames
    say("basic.ack", 1, delivery_tag=1)                  a method frame

Table values are pairs of a tag and a value: {"x-max-length": ("I", 5)}; the value is encoded as the tag says
in the dialect given. A str alone is a long string, a bool a boolean, a dict a table, None no field.
"""

from __future__ import annotations

import struct
from typing import Any

from support.number_fields import fixed

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
RABBITMQ, PRINTED = "rabbitmq", "printed"

# Method: class, method, arguments. o octet, h short, l long, q longlong, s short string, S long string,
# F table, ? bit.
METHODS: dict[str, tuple[int, int, str]] = {
    "connection.start": (
        10,
        10,
        "version_major:o version_minor:o server_properties:F mechanisms:S locales:S",
    ),
    "connection.start-ok": (10, 11, "client_properties:F mechanism:s response:S locale:s"),
    "connection.secure": (10, 20, "challenge:S"),
    "connection.secure-ok": (10, 21, "response:S"),
    "connection.tune": (10, 30, "channel_max:h frame_max:l heartbeat:h"),
    "connection.tune-ok": (10, 31, "channel_max:h frame_max:l heartbeat:h"),
    "connection.open": (10, 40, "virtual_host:s reserved_1:s reserved_2:?"),
    "connection.open-ok": (10, 41, "reserved_1:s"),
    "connection.close": (10, 50, "reply_code:h reply_text:s class_id:h method_id:h"),
    "connection.close-ok": (10, 51, ""),
    "connection.blocked": (10, 60, "reason:s"),
    "connection.unblocked": (10, 61, ""),
    "connection.update-secret": (10, 70, "new_secret:S reason:s"),
    "connection.update-secret-ok": (10, 71, ""),
    "channel.open": (20, 10, "reserved_1:s"),
    "channel.open-ok": (20, 11, "reserved_1:S"),
    "channel.flow": (20, 20, "active:?"),
    "channel.flow-ok": (20, 21, "active:?"),
    "channel.close": (20, 40, "reply_code:h reply_text:s class_id:h method_id:h"),
    "channel.close-ok": (20, 41, ""),
    "access.request": (30, 10, "realm:s exclusive:? passive:? active:? write:? read:?"),
    "access.request-ok": (30, 11, "ticket:h"),
    "exchange.declare": (
        40,
        10,
        "reserved_1:h exchange:s type:s passive:? durable:? reserved_2:? reserved_3:? no_wait:? arguments:F",
    ),
    "exchange.declare-ok": (40, 11, ""),
    "exchange.delete": (40, 20, "reserved_1:h exchange:s if_unused:? no_wait:?"),
    "exchange.delete-ok": (40, 21, ""),
    "exchange.bind": (40, 30, "reserved_1:h destination:s source:s routing_key:s no_wait:? arguments:F"),
    "exchange.bind-ok": (40, 31, ""),
    "exchange.unbind": (40, 40, "reserved_1:h destination:s source:s routing_key:s no_wait:? arguments:F"),
    "exchange.unbind-ok": (40, 51, ""),
    "queue.declare": (
        50,
        10,
        "reserved_1:h queue:s passive:? durable:? exclusive:? auto_delete:? no_wait:? arguments:F",
    ),
    "queue.declare-ok": (50, 11, "queue:s message_count:l consumer_count:l"),
    "queue.bind": (50, 20, "reserved_1:h queue:s exchange:s routing_key:s no_wait:? arguments:F"),
    "queue.bind-ok": (50, 21, ""),
    "queue.purge": (50, 30, "reserved_1:h queue:s no_wait:?"),
    "queue.purge-ok": (50, 31, "message_count:l"),
    "queue.delete": (50, 40, "reserved_1:h queue:s if_unused:? if_empty:? no_wait:?"),
    "queue.delete-ok": (50, 41, "message_count:l"),
    "queue.unbind": (50, 50, "reserved_1:h queue:s exchange:s routing_key:s arguments:F"),
    "queue.unbind-ok": (50, 51, ""),
    "basic.qos": (60, 10, "prefetch_size:l prefetch_count:h global_:?"),
    "basic.qos-ok": (60, 11, ""),
    "basic.consume": (
        60,
        20,
        "reserved_1:h queue:s consumer_tag:s no_local:? no_ack:? exclusive:? no_wait:? arguments:F",
    ),
    "basic.consume-ok": (60, 21, "consumer_tag:s"),
    "basic.cancel": (60, 30, "consumer_tag:s no_wait:?"),
    "basic.cancel-ok": (60, 31, "consumer_tag:s"),
    "basic.publish": (60, 40, "reserved_1:h exchange:s routing_key:s mandatory:? immediate:?"),
    "basic.return": (60, 50, "reply_code:h reply_text:s exchange:s routing_key:s"),
    "basic.deliver": (60, 60, "consumer_tag:s delivery_tag:q redelivered:? exchange:s routing_key:s"),
    "basic.get": (60, 70, "reserved_1:h queue:s no_ack:?"),
    "basic.get-ok": (60, 71, "delivery_tag:q redelivered:? exchange:s routing_key:s message_count:l"),
    "basic.get-empty": (60, 72, "reserved_1:s"),
    "basic.ack": (60, 80, "delivery_tag:q multiple:?"),
    "basic.reject": (60, 90, "delivery_tag:q requeue:?"),
    "basic.recover-async": (60, 100, "requeue:?"),
    "basic.recover": (60, 110, "requeue:?"),
    "basic.recover-ok": (60, 111, ""),
    "basic.nack": (60, 120, "delivery_tag:q multiple:? requeue:?"),
    "confirm.select": (85, 10, "no_wait:?"),
    "confirm.select-ok": (85, 11, ""),
    "tx.select": (90, 10, ""),
    "tx.select-ok": (90, 11, ""),
    "tx.commit": (90, 20, ""),
    "tx.commit-ok": (90, 21, ""),
    "tx.rollback": (90, 30, ""),
    "tx.rollback-ok": (90, 31, ""),
}

PROPERTIES = (
    "content_type:s content_encoding:s headers:F delivery_mode:o priority:o correlation_id:s reply_to:s "
    "expiration:s message_id:s timestamp:q type:s user_id:s app_id:s reserved:s"
)

_EMPTY: dict[str, Any] = {"s": "", "S": b"", "F": {}, "?": False}


def header(protocol: int = 0, major: int = 0, minor: int = 9, revision: int = 1) -> bytes:
    return b"AMQP" + bytes([protocol, major, minor, revision])


def frame(kind: int, channel: int, payload: bytes, size: int | None = None, end: bytes = b"\xce") -> bytes:
    reported = len(payload) if size is None else size
    about = (bytes([kind]), channel.to_bytes(2, "big"), reported.to_bytes(4, "big"))
    return b"".join(fixed(number) for number in about) + payload + end


def octets(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def short_string(value: str | bytes) -> bytes:
    return fixed(bytes([len(octets(value))])) + octets(value)


def long_string(value: str | bytes) -> bytes:
    return fixed(len(octets(value)).to_bytes(4, "big")) + octets(value)


def value(item: Any, dialect: str = RABBITMQ) -> bytes:
    """A tagged value."""
    if not isinstance(item, tuple):
        kinds: list[tuple[type, str]] = [(bool, "t"), (str, "S"), (dict, "F"), (type(None), "V")]
        item = (next(tag for kind, tag in kinds if isinstance(item, kind)), item)
    tag, content = item
    return tag.encode() + _untagged(tag, content, dialect)


def _untagged(tag: str, item: Any, dialect: str) -> bytes:
    if tag == "V":
        return b""
    if tag in "SFAx":
        if tag == "F":
            return table(item, dialect)
        if tag == "A":
            return long_string(b"".join(value(one, dialect) for one in item))
        return long_string(item)
    if tag == "s" and dialect == PRINTED:
        return short_string(item)
    if tag == "D":
        scale, unscaled = item
        return fixed(bytes([scale])) + fixed(struct.pack(">I" if dialect == PRINTED else ">i", unscaled))
    forms = {
        "t": "B",
        "b": "b",
        "B": "B",
        "u": "H",
        "U": "h",
        "s": "h",
        "I": "i",
        "i": "I",
        "L": "q",
        "T": "Q",
    }
    forms |= {"l": "Q" if dialect == PRINTED else "q", "f": "f", "d": "d"}
    return fixed(struct.pack(">" + forms[tag], item))


def table(pairs: Any, dialect: str = RABBITMQ) -> bytes:
    """A table with its length, of a dict or of pairs."""
    items = pairs.items() if isinstance(pairs, dict) else pairs
    return long_string(b"".join(short_string(name) + value(item, dialect) for name, item in items))


def arguments(form: str, given: dict[str, Any], dialect: str) -> bytes:
    out = b""
    bits: list[bool] = []
    for field in form.split():
        name, kind = field.split(":")
        item = given.pop(name, _EMPTY.get(kind, 0))
        if kind == "?":
            bits.append(bool(item))
            continue
        out += _bits(bits) + _argument(kind, item, dialect)
        bits = []
    assert not given, f"no such arguments: {given}"
    return out + _bits(bits)


def _bits(bits: list[bool]) -> bytes:
    return bytes([sum(1 << n for n, bit in enumerate(bits) if bit)]) if bits else b""


def _argument(kind: str, item: Any, dialect: str) -> bytes:
    if kind == "s":
        return short_string(item)
    if kind == "S":
        return long_string(item)
    if kind == "F":
        return table(item, dialect)
    return fixed(int(item).to_bytes({"o": 1, "h": 2, "l": 4, "q": 8}[kind], "big"))


def method(name: str, dialect: str = RABBITMQ, **given: Any) -> bytes:
    class_id, method_id, form = METHODS[name]
    about = fixed(class_id.to_bytes(2, "big")) + fixed(method_id.to_bytes(2, "big"))
    return about + arguments(form, given, dialect)


def say(name: str, channel: int, **given: Any) -> bytes:
    return frame(METHOD, channel, method(name, **given))


def content_header(
    body_size: int, dialect: str = RABBITMQ, class_id: int = 60, weight: int = 0, **given: Any
) -> bytes:
    """The payload of a content header frame."""
    flags = 0
    rest = b""
    for number, field in enumerate(PROPERTIES.split()):
        name, kind = field.split(":")
        if name in given:
            flags |= 0x8000 >> number
            rest += _argument(kind, given.pop(name), dialect)
    assert not given, f"no such properties: {given}"
    about = ((class_id, 2), (weight, 2), (body_size, 8), (flags, 2))
    return b"".join(fixed(number.to_bytes(width, "big")) for number, width in about) + rest


def content(channel: int, body: bytes, frame_max: int = 131072, **properties: Any) -> bytes:
    """A content header frame and body frames."""
    out = frame(HEADER, channel, content_header(len(body), **properties))
    room = frame_max - 8
    for at in range(0, len(body), room):
        out += frame(BODY, channel, body[at : at + room])
    return out


def heartbeat() -> bytes:
    return frame(HEARTBEAT, 0, b"")
