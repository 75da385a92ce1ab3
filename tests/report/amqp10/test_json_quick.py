"""Messages written straight from their octets: the same text as the long way, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support.sampling import examples, thorough
from support.strategies import messages

from amqpscope.report.amqp10.json_form import message_json
from amqpscope.report.amqp10.json_quick import QuickMessages
from amqpscope.report.amqp10.secrets import hides_body
from dissectors.amqp10.message import Message

QUICK = QuickMessages()
MANY = 2_000 if thorough() else examples(100)
"""Examples of a property."""


def long_way(octets: bytes, bodies: bool) -> str:
    message = Message(0, [octets], len(octets), True)
    return message_json(message, hides_body(message, None, False), bodies)


@settings(max_examples=MANY)
@given(messages(), st.booleans())
def test_any_message(sample: Any, bodies: bool) -> None:
    quick = QUICK.text(sample.octets, bodies)
    assert quick in ("", long_way(sample.octets, bodies))


# What usual messages are made of. Made once: that takes longer than to draw from it.
WORD = st.sampled_from(["a", "order", "x-opt-key", "é", "茶", 'quo"te', "http://u:p@h/", "", "long" * 30])
CHOICE = st.sampled_from(["smallest", "widest"])
SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    WORD.map(amqp.string),
    st.sampled_from(["red", "b"]).map(amqp.symbol),
    st.binary(max_size=5).map(amqp.binary),
    st.integers(0, 255).map(amqp.ubyte),
    st.integers(0, 65535).map(amqp.ushort),
    st.integers(-128, 127).map(amqp.byte),
    st.integers(-32768, 32767).map(amqp.short),
    st.builds(amqp.uint, st.integers(0, 2**32 - 1), st.just("smallest")),
    st.builds(amqp.int_, st.integers(-(2**31), 2**31 - 1), CHOICE),
    st.builds(amqp.long, st.integers(-(2**63), 2**63 - 1), CHOICE),
    st.builds(amqp.ulong, st.integers(0, 2**64 - 1), CHOICE),
    st.builds(amqp.long, st.integers(-200, 200), CHOICE),
    st.floats(allow_nan=False, allow_infinity=False).map(amqp.double),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(amqp.float_),
    st.integers(0, 8_000_000_000_000).map(amqp.timestamp),
    st.uuids(version=4).map(amqp.uuid),
    st.booleans().map(lambda value: amqp.boolean(value, 0x56)),
)
KEYS = st.sampled_from(["a", "b", "x-opt-c", "lock-token", "map", "d"])
NESTED = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds(amqp.list_, st.lists(inner, max_size=3), CHOICE),
        st.builds(amqp.map_, st.dictionaries(KEYS, inner, max_size=3), CHOICE),
    ),
    max_leaves=5,
)


def pairs(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Pairs of different keys; not just one called map."""
    drawn = st.lists(st.tuples(KEYS, items), max_size=4, unique_by=lambda pair: pair[0])
    return drawn.filter(lambda found: [key for key, _ in found] != ["map"]).map(dict)


def absent_or(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), items)


IDS = st.one_of(st.none(), WORD, st.integers(0, 2**64 - 1), st.uuids(version=4), st.binary(max_size=9))
HEADER = {
    "durable": st.sampled_from([None, True, False]),
    "priority": st.sampled_from([None, 0, 9]),
    "ttl": st.sampled_from([None, 0, 5, 60000]),
    "first_acquirer": st.sampled_from([None, True]),
    "delivery_count": st.sampled_from([None, 0, 2**32 - 1]),
    "choice": CHOICE,
}
PROPERTIES = {
    "message_id": IDS,
    "correlation_id": IDS,
    "user_id": st.sampled_from([None, b"", b"u\xff"]),
    "to": absent_or(WORD),
    "subject": absent_or(WORD),
    "reply_to": absent_or(WORD),
    "content_type": st.sampled_from([None, "text/plain"]),
    "content_encoding": st.sampled_from([None, ""]),
    "absolute_expiry_time": st.sampled_from([None, 0, 1_700_000_000_001]),
    "creation_time": st.sampled_from([None, 999, 1_699_999_999_999]),
    "group_id": absent_or(WORD),
    "group_sequence": st.sampled_from([None, 0, 7, 2**32 - 1]),
    "reply_to_group_id": absent_or(WORD),
    "choice": CHOICE,
}
BODIES = (
    st.lists(st.binary(max_size=9), max_size=2).map(lambda items: b"".join(map(amqp.data, items))),
    NESTED.map(amqp.amqp_value),
    st.lists(NESTED, max_size=2).map(amqp.amqp_sequence),
)
# The sections in their order, each of which may be missing, but for the body.
SECTIONS = (
    st.builds(amqp.header, **HEADER),
    pairs(NESTED).map(amqp.delivery_annotations),
    pairs(NESTED).map(amqp.message_annotations),
    st.builds(amqp.properties, **PROPERTIES),
    pairs(SIMPLE).map(amqp.application_properties),
    None,
    pairs(NESTED).map(amqp.footer),
)


@st.composite
def usual_messages(draw: st.DrawFn) -> bytes:
    """Messages as applications send them: every one goes the quick way."""
    octets = b""
    for section in SECTIONS:
        if section is None:
            octets += draw(BODIES[draw(st.integers(0, 2))])
        elif draw(st.booleans()):
            octets += draw(section)
    return octets


@settings(max_examples=MANY)
@given(usual_messages(), st.booleans())
def test_usual_messages_go_the_quick_way(octets: bytes, bodies: bool) -> None:
    assert QUICK.text(octets, bodies) == long_way(octets, bodies)


@settings(max_examples=2 * MANY)
@given(usual_messages(), st.data())
def test_damaged_messages(octets: bytes, data: st.DataObject) -> None:
    """One octet another, or the end missing: the quick way says what the long one does, or nothing."""
    if octets:
        at = data.draw(st.integers(0, len(octets) - 1))
        if data.draw(st.booleans()):
            octets = octets[:at]
        else:
            octets = octets[:at] + bytes([data.draw(st.integers(0, 255))]) + octets[at + 1 :]
    for bodies in (False, True):
        assert QUICK.text(octets, bodies) in ("", long_way(octets, bodies))


@settings(max_examples=4 * MANY)
@given(st.binary(max_size=40))
def test_any_octets(octets: bytes) -> None:
    for prefix in (b"", b"\x00\x53\x73\xc0", b"\x00\x53\x74\xc1", b"\x00\x53\x77"):
        assert QUICK.text(prefix + octets, True) in ("", long_way(prefix + octets, True))


LONG: list[tuple[str, Callable[[], bytes]]] = [
    ("symbolic descriptor", lambda: amqp.data(b"x", form="symbol")),
    ("twice", lambda: amqp.properties(subject="a") + amqp.properties(subject="b")),
    ("unknown section", lambda: amqp.described(0x79, "x")),
    ("put-token", lambda: amqp.application_properties({"operation": "put-token"}) + amqp.amqp_value("x")),
    ("set-token", lambda: amqp.properties(subject="set-token") + amqp.amqp_value("x")),
    ("to $cbs", lambda: amqp.properties(to="$cbs") + amqp.amqp_value("x")),
    ("secret key", lambda: amqp.message_annotations({"password": "x"})),
    ("secret key, nested", lambda: amqp.amqp_value(amqp.list_([amqp.map_({"password": "x"})]))),
    ("one key called map", lambda: amqp.application_properties({"map": "x"})),
    ("key twice", lambda: amqp.message_annotations([("a", "x"), ("a", "y")])),
    ("string key in annotations", lambda: amqp.message_annotations([(amqp.string("a"), "y")])),
    ("symbol key in application properties", lambda: amqp.application_properties([(amqp.symbol("a"), "y")])),
    ("list in application properties", lambda: amqp.application_properties({"a": amqp.list_([])})),
    ("map in application properties", lambda: amqp.application_properties({"a": amqp.map_({})})),
    ("odd type", lambda: amqp.properties(subject=amqp.symbol("a"))),
    ("extra", lambda: amqp.header(extra=["a"])),
    ("byte order mark", lambda: amqp.amqp_value("\ufeffx")),
    ("array", lambda: amqp.amqp_value(amqp.array([amqp.uint(1, 0x70)]))),
    ("infinity", lambda: amqp.amqp_value(amqp.double(float("inf")))),
    ("early timestamp", lambda: amqp.amqp_value(amqp.timestamp(-1))),
    ("late timestamp", lambda: amqp.amqp_value(amqp.timestamp(2**62))),
    ("deep", lambda: amqp.amqp_value(deep(20))),
    ("large", lambda: amqp.data(b"x" * 300_000)),
]


def deep(levels: int) -> bytes:
    value: bytes = amqp.null()
    for _ in range(levels):
        value = amqp.list_([value])
    return value


@pytest.mark.parametrize(("name", "octets"), LONG)
def test_what_has_to_go_the_long_way(name: str, octets: Callable[[], bytes]) -> None:
    assert QUICK.text(octets(), True) == ""


def test_it_goes_on_after_giving_up() -> None:
    quick = QuickMessages()
    octets = amqp.properties(subject="a") + amqp.amqp_value("b")
    before = quick.text(octets, True)
    assert before
    for _, broken in LONG:
        quick.text(broken(), True)
        assert quick.text(octets, True) == before


def test_what_it_remembers_is_bounded() -> None:
    quick = QuickMessages()
    for number in range(6_000):
        quick.text(
            amqp.properties(subject=f"s{number}") + amqp.application_properties({f"k{number}": "v"}), False
        )
    assert len(quick._texts) <= 4096
    assert len(quick._keys) <= 4096
