"""The outline of a message says no more than its decoding does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support.strategies import MessageSample, messages

from dissectors.amqp10.message import Message
from dissectors.amqp10.outline import SECTIONS, TYPED, is_media_type, outline

NAMES = [
    "header",
    "delivery-annotations",
    "message-annotations",
    "properties",
    "application-properties",
    "data",
    "amqp-sequence",
    "amqp-value",
    "footer",
]


def decoded(octets: bytes) -> tuple[list[str], list[str]]:
    """The sections, and the codes of the problems."""
    message = Message(0, [octets], len(octets), True)
    names = [section.name for section in message.sections()]
    return names, [problem.code for problem in message.problems]


def outlined(octets: bytes) -> list[str] | None:
    sections = outline(b"\xff" + octets + b"\xff", 1, len(octets) + 1) & SECTIONS
    names: list[str] = []
    while sections:
        names.insert(0, NAMES[(sections & 15) - 1])
        sections >>= 4
    return names or None


def typed(octets: bytes) -> bool:
    """Whether it says that there is a content-type."""
    return outline(octets, 0, len(octets)) & TYPED != 0


def agree(octets: bytes) -> bool:
    """Whether there is an outline; then it is the decoded message's, and that is sound."""
    names = outlined(octets)
    if names is None:
        return False
    assert decoded(octets) == (names, [])
    return True


@given(messages())
def test_of_any_message(sample: MessageSample) -> None:
    agree(bytes(sample.octets))


@given(messages(), st.data())
def test_of_any_message_with_an_octet_changed(sample: MessageSample, data: st.DataObject) -> None:
    octets = bytearray(sample.octets)
    if octets:
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
        agree(bytes(octets))


@given(messages(), st.data())
def test_of_any_message_cut_short(sample: MessageSample, data: st.DataObject) -> None:
    octets = bytes(sample.octets)
    agree(octets[: data.draw(st.integers(0, len(octets)))])


@given(st.binary(max_size=80))
def test_of_any_octets_behind_a_section(octets: bytes) -> None:
    for code in range(0x6F, 0x7A):
        agree(b"\x00\x53" + bytes([code]) + octets)


def test_of_nearly_every_message_there_is_one() -> None:
    octets = b"".join(
        bytes(section)
        for section in (
            amqp.header(durable=True, priority=4),
            amqp.message_annotations([("x-opt-key", amqp.string("key"))]),
            amqp.properties(message_id=amqp.string("id-1"), to=amqp.string("queue"), subject="s"),
            amqp.application_properties([("a", amqp.int_(1)), ("b", amqp.string("x"))]),
            amqp.data(b"\xff" * 300),
        )
    )
    assert agree(octets)
    assert not agree(b"")


def test_of_more_sections_than_it_can_name_there_is_none() -> None:
    part = bytes(amqp.data(b"x"))
    assert agree(part * 15)
    assert not agree(part * 16)


@pytest.mark.parametrize(
    "section",
    [
        amqp.properties(content_encoding="gzip"),
        amqp.properties(content_type="text"),
        amqp.properties(content_type="t" * 300),
        amqp.properties(creation_time=0),
        amqp.properties(creation_time=1_700_000_000),
        amqp.properties(absolute_expiry_time=-1),
        amqp.properties(message_id=amqp.uuid(b"\x01" * 16)),
        amqp.message_annotations([("trace", None)]),
        amqp.delivery_annotations([("x-opt-a", None), ("x", None)]),
    ],
)
def test_of_what_says_something_odd_there_is_none(section: bytes) -> None:
    assert not agree(section + amqp.data(b"x"))


def test_a_content_type_is_reported() -> None:
    for media_type in ("text/plain", "application/json; charset=utf-8", "a" * 300 + "/b"):
        octets = bytes(
            amqp.properties(message_id="m", content_type=media_type, creation_time=1_700_000_000_000)
        )
        assert agree(octets + amqp.data(b"x"))
        assert typed(octets)
    assert not typed(bytes(amqp.properties(message_id="m", subject="s") + amqp.data(b"x")))
    assert not typed(bytes(amqp.properties(reply_to="r", correlation_id=7, to="t", keep_nulls=True)))


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        (b"text/plain", True),
        (b"text/plain;a=b", True),
        (b"text/plain ; a", True),
        (b"a+b.c-d/e", True),
        (b"", False),
        (b"text", False),
        (b"text/", False),
        (b"/plain", False),
        (b"text/plain x", False),
        (b"text/pl\x7fain", False),
        (b"te xt/plain", False),
        (b"text/plain/x", False),
    ],
)
def test_media_types(text: bytes, sound: bool) -> None:
    assert is_media_type(b"/x" + text + b"/x", 2, 2 + len(text)) is sound


@pytest.mark.parametrize(
    ("descriptor", "what"),
    [(0x24, "value of the type `accepted`"), (0x2F, "described value of another kind")],
)
def test_what_is_sent_instead_of_a_section(descriptor: int, what: str) -> None:
    message = Message(0, [bytes([0, 0x53, descriptor, 0x45])], 4, True)
    message.sections()
    assert [problem.reason for problem in message.problems] == [
        f"a {what} is sent instead of a message section"
    ]
