"""What a line says of a sound message: the same text straight from its octets as by decoding it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support.sampling import examples, thorough
from support.strategies import messages

from amqpscope.report.amqp10.brief import describe_decoded
from amqpscope.report.amqp10.sound_message import describe_sound
from amqpscope.report.line import Line, Pen
from amqpscope.tracking.amqp10.identity import Link
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Header

MANY = 2_000 if thorough() else examples(200)
"""Examples of a property."""

TEXTS = st.sampled_from(
    ["a", "order new", "7", "true", 'quo"te', "amqp://u:p@h/q", "", "long" * 30, "orders"]
)
IDS = st.one_of(
    TEXTS.map(amqp.string),
    st.binary(max_size=60).map(amqp.binary),
    st.integers(0, 2**64 - 1).map(amqp.ulong),
    st.just(b"\x98" + bytes.fromhex("6ba7b8109dad41d180b400c04fd430c8")),
    st.just(b"\x40"),
)
STRINGS = st.one_of(TEXTS.map(amqp.string), st.just(b"\x40"))
TYPES = st.one_of(st.sampled_from(["text/plain", "application/json"]).map(amqp.symbol), st.just(b"\x40"))
PROPERTIES = st.tuples(
    IDS, st.just(b"\x40"), STRINGS, STRINGS, STRINGS, IDS, TYPES, *[st.just(b"\x40")] * 3, STRINGS
)


def list_of(code: int, fields: list[bytes]) -> bytes:
    items = b"".join(fields)
    return (
        bytes([0, 0x53, code, 0xD0])
        + (len(items) + 4).to_bytes(4, "big")
        + len(fields).to_bytes(4, "big")
        + items
    )


def link_to(address: str | None) -> Link:
    link = Link("name", "client")
    link.target = address
    return link


def both(octets: bytes, link: Link | None) -> tuple[Line, Line] | None:
    """The line's parts by both ways, or None if the message is not seen to be sound."""
    message = Message(0, [octets], len(octets), True)
    if not message.is_sound():
        return None
    quick = Pen(False)
    slow: Line = []
    describe_sound(quick, message, link)
    describe_decoded(slow, message, link)
    return quick.take_line(), slow


@settings(max_examples=MANY)
@given(messages())
def test_any_message(sample: Any) -> None:
    found = both(bytes(sample.octets), None)
    if found is not None:
        assert found[0] == found[1]


@settings(max_examples=MANY)
@given(PROPERTIES, st.integers(0, 11), st.integers(0, 3), st.sampled_from([None, "orders", "a"]))
def test_a_usual_message(fields: Any, kept: int, bodies: int, address: str | None) -> None:
    octets = list_of(0x73, list(fields)[:kept])
    octets += (
        b"\x00\x53\x74\xc1\x0b\x04\xa1\x01a\x54\x01\xa1\x01b\x54\x02" + b"\x00\x53\x75\xa0\x01x" * bodies
    )
    found = both(octets, link_to(address))
    assert found is not None
    assert found[0] == found[1]


@pytest.mark.parametrize("count", [b"\x43", b"\x52\x05", b"\x70\x00\x00\x01\x00", b"\x40"])
@pytest.mark.parametrize("present", [5, 4])
def test_the_delivery_count(count: bytes, present: int) -> None:
    octets = list_of(0x70, [b"\x41", b"\x50\x04", b"\x40", b"\x42", count][:present]) + b"\x00\x53\x77\x43"
    message = Message(0, [octets], len(octets), True)
    assert message.is_sound()
    header = message.sections()[0].value
    assert isinstance(header, Header)
    assert message.delivery_count() == (header.delivery_count or 0)
