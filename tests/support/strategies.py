"""Hypothesis strategies for AMQP 1.0: values, performatives, messages, frames, conversations, deliveries.

Each draw of something encoded is a `Sample`: its octets, and what they mean in a form that is neither the
product's nor the encoder's, so that a test says once how the product's objects are put into it. A meaning is

    (type, value)                       a primitive; the value by type:
        null                            None
        boolean                         bool
        ubyte ... long, timestamp       int (a timestamp in milliseconds)
        float, double                   bytes: the 4 or 8 octets of the number (so that NaN equals itself)
        decimal32, -64, -128            DecimalTuple, as Decimal.as_tuple() gives it
        char                            int, the code point
        uuid                            bytes, 16 of them
        binary                          bytes
        string, symbol                  str
        list                            tuple of meanings
        map                             tuple of pairs of meanings, in order
        array                           tuple of meanings
    ("described", descriptor, value)    both are meanings
    ("composite", name, fields)         a dictionary of meanings by the specification's field names, nulls
                                        left out; a field that may be `multiple` is a symbol or an array

What is drawn is well-formed: every mandatory field is there, choices are the specification's, no key stands
twice in a map, a descriptor outside the specification's own is none of its. A decoder has nothing to complain
of. It need not make sense as protocol.

A strategy takes longer to make than an example to draw: each is made once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support.tcp_writer import Capture

Meaning = tuple[Any, ...]


@dataclass(frozen=True)
class Sample:
    octets: amqp.Encoded
    meaning: Meaning


@dataclass(frozen=True)
class FrameSample:
    """A frame or a protocol header. `body` is None for a header and an empty frame."""

    octets: bytes
    kind: str  # "header", "amqp", "sasl"
    name: str  # the performative's, "empty", or "header 0"
    channel: int = 0
    body: Meaning | None = None
    payload: bytes = b""


@dataclass(frozen=True)
class MessageSample:
    octets: bytes
    sections: tuple[tuple[str, Meaning], ...]


@dataclass(frozen=True)
class Conversation:
    """Turns of a connection: who (0 the client, 1 the server) and the frames said in one go."""

    turns: tuple[tuple[int, tuple[FrameSample, ...]], ...]

    def frames(self, who: int) -> list[FrameSample]:
        return [frame for turn, frames in self.turns if turn == who for frame in frames]

    def octets(self, who: int) -> bytes:
        return b"".join(frame.octets for frame in self.frames(who))


# ---- primitive values -------------------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
ASCII = st.text(st.characters(max_codepoint=127), max_size=12)


def _float(width: int) -> st.SearchStrategy[Any]:
    return st.floats(width=32 if width == 4 else 64)


def _decimals(digits: int, lowest: int, highest: int) -> st.SearchStrategy[Decimal]:
    finite = st.builds(
        lambda sign, coefficient, exponent: Decimal((sign, tuple(map(int, str(coefficient))), exponent)),
        st.integers(0, 1),
        st.one_of(st.integers(0, 10**digits - 1), st.integers(10**digits - 9, 10**digits - 1)),
        st.integers(lowest, highest),
    )
    special = st.sampled_from([Decimal(text) for text in ("Infinity", "-Infinity", "NaN", "sNaN", "-NaN")])
    return st.one_of(finite, special)


# Type: what to draw, and how the drawn Python value looks in a meaning.
_PRIMITIVES: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], Any]]] = {
    "null": (st.none(), lambda v: v),
    "boolean": (st.booleans(), lambda v: v),
    "ubyte": (st.integers(0, 2**8 - 1), lambda v: v),
    "ushort": (st.integers(0, 2**16 - 1), lambda v: v),
    "uint": (st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 300)), lambda v: v),
    "ulong": (st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 300)), lambda v: v),
    "byte": (st.integers(-(2**7), 2**7 - 1), lambda v: v),
    "short": (st.integers(-(2**15), 2**15 - 1), lambda v: v),
    "int": (st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-200, 200)), lambda v: v),
    "long": (st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-200, 200)), lambda v: v),
    "float": (_float(4), lambda v: struct.pack(">f", v)),
    "double": (_float(8), lambda v: struct.pack(">d", v)),
    "decimal32": (_decimals(7, -101, 90), lambda v: v.as_tuple()),
    "decimal64": (_decimals(16, -398, 369), lambda v: v.as_tuple()),
    "decimal128": (_decimals(34, -6176, 6111), lambda v: v.as_tuple()),
    "char": (st.characters(codec="utf-8"), ord),
    "timestamp": (st.integers(-(2**63), 2**63 - 1), lambda v: v),
    "uuid": (st.one_of([st.uuids(version=version) for version in range(1, 6)]), lambda v: v.bytes),
    "binary": (st.binary(max_size=12), lambda v: v),
    "string": (TEXT, lambda v: v),
    "symbol": (ASCII, lambda v: v),
}
PRIMITIVE_TYPES = tuple(_PRIMITIVES)


@cache
@st.composite
def primitives(draw: st.DrawFn, kinds: tuple[str, ...] = PRIMITIVE_TYPES) -> Sample:
    """A value of one of the types that hold no others, in any encoding that fits."""
    kind = draw(_any_of(kinds))
    content, meant = _PRIMITIVES[kind]
    item = draw(content)
    octets = amqp.encode(kind, item, draw(_choices(kind, item)))
    return Sample(octets, (kind, meant(item)))


def _choices(kind: str, item: Any) -> st.SearchStrategy[amqp.Choice]:
    """The encodings of a type that can hold this value."""
    fitting: list[amqp.Choice] = []
    for code in amqp.CODES[kind]:
        try:
            amqp.encode(kind, item, code)
        except ValueError:
            continue
        fitting.append(code)
    return _any_of(tuple(fitting))


@cache
def _any_of(choices: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(choices)


WIDTHS: st.SearchStrategy[amqp.Choice] = st.sampled_from(("smallest", "widest"))
WIDEST: st.SearchStrategy[amqp.Choice] = st.just("widest")
FORMS: st.SearchStrategy[amqp.DescriptorForm] = st.sampled_from(("small", "full", "symbol", "symbol32"))


# ---- lists, maps, arrays, described values ----------------------------------------------------------------


def _joined(samples: list[Sample]) -> tuple[Meaning, ...]:
    return tuple(sample.meaning for sample in samples)


@cache
@st.composite
def _lists(
    draw: st.DrawFn, items: st.SearchStrategy[Sample], widths: st.SearchStrategy[amqp.Choice] = WIDTHS
) -> Sample:
    drawn = draw(_few(items))
    return Sample(amqp.list_([s.octets for s in drawn], draw(widths)), ("list", _joined(drawn)))


@cache
def _few(items: st.SearchStrategy[Sample], least: int = 0, most: int = 4) -> st.SearchStrategy[list[Sample]]:
    return st.lists(items, min_size=least, max_size=most)


@cache
def _pairs(
    keys: st.SearchStrategy[Sample], items: st.SearchStrategy[Sample]
) -> st.SearchStrategy[list[tuple[Sample, Sample]]]:
    """Of keys that are all different."""
    return st.lists(st.tuples(keys, items), max_size=4, unique_by=lambda pair: repr(pair[0].meaning))


@cache
@st.composite
def _maps(
    draw: st.DrawFn,
    keys: st.SearchStrategy[Sample],
    items: st.SearchStrategy[Sample],
    widths: st.SearchStrategy[amqp.Choice] = WIDTHS,
) -> Sample:
    drawn = draw(_pairs(keys, items))
    octets = amqp.map_([(key.octets, item.octets) for key, item in drawn], draw(widths))
    return Sample(octets, ("map", tuple((key.meaning, item.meaning) for key, item in drawn)))


UNKNOWN = st.one_of(st.integers(0x100, 0x2FF), st.integers(2**32, 2**64 - 1))


@cache
@st.composite
def descriptors(draw: st.DrawFn) -> Sample:
    """A numeric or symbolic descriptor that the specification does not define."""
    if draw(st.booleans()):
        text = "x:y" + draw(ASCII)
        return Sample(amqp.symbol(text, draw(_choices("symbol", text))), ("symbol", text))
    number = draw(UNKNOWN)
    return Sample(amqp.ulong(number, draw(_choices("ulong", number))), ("ulong", number))


@cache
@st.composite
def _described(draw: st.DrawFn, items: st.SearchStrategy[Sample]) -> Sample:
    descriptor, item = draw(descriptors()), draw(items)
    octets = amqp.described(descriptor.octets, item.octets)
    return Sample(octets, ("described", descriptor.meaning, item.meaning))


@cache
@st.composite
def arrays(
    draw: st.DrawFn,
    depth: int = 2,
    widths: st.SearchStrategy[amqp.Choice] = WIDTHS,
    kinds: tuple[str, ...] = (),
) -> Sample:
    """An array of one primitive type, of lists, of maps, of arrays, or of described values of these.

    kinds: out of which the elements' type is chosen, "described" being one; all of them by default.
    """
    alike = draw(_alike(depth, kinds))
    drawn = draw(st.lists(alike, max_size=4))
    constructor = None
    if not drawn:
        one = draw(alike).octets
        constructor = bytes(one[: one.constructor])
    octets = amqp.array([s.octets for s in drawn], constructor, draw(widths))
    return Sample(octets, ("array", _joined(drawn)))


@cache
@st.composite
def _alike(draw: st.DrawFn, depth: int, kinds: tuple[str, ...] = ()) -> st.SearchStrategy[Sample]:
    """A strategy whose every draw has the same constructor."""
    every = (*PRIMITIVE_TYPES, *(("list", "map", "array", "described") if depth else ()))
    kind = draw(_any_of(kinds or every))
    if kind == "described":
        descriptor, inner = draw(descriptors()), draw(_alike(depth - 1))
        return inner.map(
            lambda s: Sample(
                amqp.described(descriptor.octets, s.octets), ("described", descriptor.meaning, s.meaning)
            )
        )
    if kind == "list":
        return _lists(primitives(), WIDEST)
    if kind == "map":
        return _maps(primitives(("symbol", "string")), primitives(), WIDEST)
    if kind == "array":
        return arrays(depth - 1, WIDEST)
    return _encoded(kind, draw(_any_of(tuple(amqp.CODES[kind]))))


@cache
def _encoded(kind: str, code: int) -> st.SearchStrategy[Sample]:
    """Values of a type in one encoding."""
    content, meant = _PRIMITIVES[kind]
    # Encodings without data stand for one value each.
    only = {0x41: True, 0x42: False, 0x43: 0, 0x44: 0}
    if code in only:
        content = st.just(only[code])
    elif code >> 4 == 5 and kind not in ("boolean", "ubyte", "byte"):  # the small integers
        content = st.integers(0, 255) if kind.startswith("u") else st.integers(-128, 127)
    return content.map(lambda item: Sample(amqp.encode(kind, item, code), (kind, meant(item))))


@cache
def values(leaves: int = 12) -> st.SearchStrategy[Sample]:
    """Any value, nested."""
    return st.recursive(
        primitives(),
        lambda inner: st.one_of(_lists(inner), _maps(inner, inner), _described(inner), arrays(depth=1)),
        max_leaves=leaves,
    )


# ---- composite types --------------------------------------------------------------------------------------

MANDATORY = {
    "open": ("container-id",),
    "begin": ("next-outgoing-id", "incoming-window", "outgoing-window"),
    "attach": ("name", "handle", "role"),
    "flow": ("incoming-window", "next-outgoing-id", "outgoing-window"),
    "transfer": ("handle",),
    "disposition": ("role", "first"),
    "detach": ("handle",),
    "error": ("condition",),
    "received": ("section-number", "section-offset"),
    "discharge": ("txn-id",),
    "declared": ("txn-id",),
    "transactional-state": ("txn-id",),
    "sasl-mechanisms": ("sasl-server-mechanisms",),
    "sasl-init": ("mechanism",),
    "sasl-challenge": ("challenge",),
    "sasl-response": ("response",),
    "sasl-outcome": ("code",),
}
OUTCOMES = ("accepted", "rejected", "released", "modified")
STATES = ("received", *OUTCOMES, "declared", "transactional-state")
PERFORMATIVES = ("open", "begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close")
SASL = ("sasl-mechanisms", "sasl-init", "sasl-challenge", "sasl-response", "sasl-outcome")

# Fields whose type is another composite, by (composite, field).
_NESTED = {
    ("attach", "source"): ("source",),
    ("attach", "target"): ("target", "coordinator"),
    ("transfer", "state"): STATES,
    ("disposition", "state"): STATES,
    ("source", "default-outcome"): OUTCOMES,
    ("transactional-state", "outcome"): OUTCOMES,
}
_CHOICES: dict[str, st.SearchStrategy[Any]] = {
    "snd-settle-mode": st.integers(0, 2),
    "rcv-settle-mode": st.integers(0, 1),
    "code": st.integers(0, 4),
    "terminus-durable": st.integers(0, 2),
    "expiry-policy": st.sampled_from(("link-detach", "session-end", "connection-close", "never")),
    "delivery-tag": st.binary(min_size=1, max_size=32),
}
_SYMBOL_KEYS = primitives(("symbol",))
_BINARY_KEYS = primitives(("binary",))


@cache
def _field(name: str, field_name: str, kind: str) -> st.SearchStrategy[Sample]:
    """A value for one field that is not null."""
    if field_name == "error":
        return composites("error")
    if (name, field_name) in _NESTED:
        return st.sampled_from(_NESTED[name, field_name]).flatmap(composites)
    chosen = "terminus-durable" if field_name == "durable" and name != "header" else field_name
    if chosen in _CHOICES:
        return _CHOICES[chosen].map(lambda v: Sample(amqp.encode(kind, v), (kind, v)))
    if field_name == "filter":
        return _maps(_SYMBOL_KEYS, _described(values(3)))
    if kind == "fields":
        return _maps(_SYMBOL_KEYS, values(3))
    if kind == "unsettled":
        states = st.sampled_from(STATES).flatmap(composites)
        return _maps(_BINARY_KEYS, st.one_of(primitives(("null",)), states))
    if kind == "symbols":
        several = st.lists(ASCII, min_size=1, max_size=3)
        as_array = st.tuples(several, WIDTHS).map(
            lambda drawn: Sample(
                amqp.array_of("symbol", drawn[0], drawn[1]), ("array", tuple(("symbol", s) for s in drawn[0]))
            )
        )
        return st.one_of(primitives(("symbol",)), as_array)
    if kind == "message-id":
        return primitives(("ulong", "uuid", "binary", "string"))
    if kind == "*":
        return primitives(("string",) if field_name in ("address", "to", "reply-to") else ("binary",))
    return primitives((kind,))


@cache
@st.composite
def composites(draw: st.DrawFn, name: str) -> Sample:
    """A composite by name: its mandatory fields, and some, all or none of the others."""
    shape = draw(_any_of(("some", "all", "none")))
    fields: dict[str, Sample] = {}
    for field_name, kind in amqp.COMPOSITES[name][1]:
        optional = shape == "all" or (shape == "some" and draw(st.booleans()))
        if optional or field_name in MANDATORY.get(name, ()):
            fields[field_name] = draw(_field(name, field_name, kind))
    octets = amqp.composite(
        name,
        descriptor_form=draw(FORMS),
        choice=draw(WIDTHS),
        keep_nulls=draw(st.booleans()),
        **{field_name.replace("-", "_"): sample.octets for field_name, sample in fields.items()},
    )
    return Sample(octets, ("composite", name, {key: sample.meaning for key, sample in fields.items()}))


@cache
def performatives() -> st.SearchStrategy[Sample]:
    return st.sampled_from(PERFORMATIVES).flatmap(composites)


@cache
def sasl_bodies() -> st.SearchStrategy[Sample]:
    return st.sampled_from(SASL).flatmap(composites)


# ---- messages ---------------------------------------------------------------------------------------------


@cache
def _annotated(keys: tuple[str, ...]) -> st.SearchStrategy[Sample]:
    return _maps(primitives(keys), values(3))


@cache
@st.composite
def messages(draw: st.DrawFn) -> MessageSample:
    """The sections of a message in their order, each that may be missing sometimes missing."""
    sections: list[tuple[str, Sample]] = []
    for name, content in (
        ("header", composites("header")),
        ("delivery-annotations", _annotated(("symbol",))),
        ("message-annotations", _annotated(("symbol",))),
        ("properties", composites("properties")),
        ("application-properties", _maps(primitives(("string",)), primitives())),
    ):
        if draw(st.booleans()):
            sections.append((name, draw(content)))
    kind = draw(_any_of(("data", "amqp-sequence", "amqp-value")))
    if kind == "amqp-value":
        sections.append((kind, draw(values(6))))
    else:
        body = primitives(("binary",)) if kind == "data" else _lists(values(3))
        sections += [(kind, sample) for sample in draw(_few(body, 1, 3))]
    if draw(st.booleans()):
        sections.append(("footer", draw(_annotated(("symbol",)))))
    octets = b""
    for name, sample in sections:
        if name in amqp.COMPOSITES:  # a composite brings its descriptor
            octets += sample.octets
        else:
            octets += amqp.section(name, sample.octets, draw(FORMS))
    return MessageSample(octets, tuple((name, sample.meaning) for name, sample in sections))


# ---- frames and conversations -----------------------------------------------------------------------------

CHANNELS = st.integers(0, 2**16 - 1)
EXTENDED = st.sampled_from((b"", b"", b"", b"\0\0\0\0", b"extended hdr"))


@cache
@st.composite
def frames(draw: st.DrawFn) -> FrameSample:
    """An AMQP frame: a performative (a transfer with a message, whole or any octets of it), or empty."""
    channel, extended = draw(CHANNELS), draw(EXTENDED)
    if draw(st.integers(0, 9)) == 0:
        return FrameSample(amqp.frame(channel=channel, extended=extended), "amqp", "empty", channel)
    body = draw(performatives())
    payload = draw(messages()).octets if body.meaning[1] == "transfer" else b""
    octets = amqp.frame(body.octets, payload, channel=channel, extended=extended)
    return FrameSample(octets, "amqp", body.meaning[1], channel, body.meaning, payload)


@cache
@st.composite
def sasl_frames(draw: st.DrawFn) -> FrameSample:
    body = draw(sasl_bodies())
    return FrameSample(amqp.sasl_frame(body.octets), "sasl", body.meaning[1], 0, body.meaning)


def _header(protocol_id: int) -> FrameSample:
    return FrameSample(amqp.protocol_header(protocol_id), "header", f"header {protocol_id}")


@cache
@st.composite
def conversations(draw: st.DrawFn, max_turns: int = 6) -> Conversation:
    """Headers, SASL perhaps, then turns of frames: legal as a stream of octets, not as a protocol."""
    turns: list[tuple[int, tuple[FrameSample, ...]]] = []
    if draw(st.booleans()):
        turns += [(who, (_header(3), draw(sasl_frames()))) for who in (0, 1)]
    turns += [(who, (_header(0), _opening(draw(composites("open"))))) for who in (0, 1)]
    turns += draw(_turns(max_turns))
    return Conversation(tuple(turns))


@cache
def _turns(most: int) -> st.SearchStrategy[Any]:
    few = st.lists(frames(), min_size=1, max_size=4).map(tuple)
    return st.lists(st.tuples(st.integers(0, 1), few), max_size=most)


def _opening(body: Sample) -> FrameSample:
    return FrameSample(amqp.frame(body.octets), "amqp", "open", 0, body.meaning)


# ---- how octets travel ------------------------------------------------------------------------------------


@st.composite
def chunkings(draw: st.DrawFn, octets: bytes) -> list[bytes]:
    """The octets in pieces: any cuts, often near each other, sometimes one octet each."""
    if len(octets) < 200 and draw(st.integers(0, 9)) == 0:
        return [octets[n : n + 1] for n in range(len(octets))]
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(octets) - 1)), max_size=12)))
    ends = [*cuts, len(octets)]
    return [octets[start:end] for start, end in zip([0, *cuts], ends, strict=True) if octets[start:end]]


@dataclass
class Delivery:
    """One direction's octets as segments in the order of capture; every octet is in at least one of them."""

    segments: list[tuple[int, bytes]] = field(default_factory=list)


@st.composite
def deliveries(draw: st.DrawFn, octets: bytes) -> Delivery:
    """The octets as a network may bring them: reordered, repeated, overlapping, but all and all the same."""
    segments: list[tuple[int, bytes]] = []
    offset = 0
    for chunk in draw(chunkings(octets)):
        segments.append((offset, chunk))
        offset += len(chunk)
    for _ in range(draw(st.integers(0, 4)) if octets else 0):  # again, with other borders
        start = draw(st.integers(0, len(octets) - 1))
        end = draw(st.integers(start + 1, len(octets)))
        segments.append((start, octets[start:end]))
    return Delivery(draw(st.permutations(segments)))


def captured(conversation: Conversation, *, isn: tuple[int, int] = (1000, 2000), **options: Any) -> Capture:
    """The conversation as a capture: a handshake, each turn sent at once, and the end of both streams."""
    capture = Capture(**options)
    tcp = capture.connection(client_isn=isn[0], server_isn=isn[1])
    tcp.handshake()
    for who, said in conversation.turns:
        end = tcp.server if who else tcp.client
        end.send(b"".join(frame.octets for frame in said))
    tcp.goodbye()
    return capture
