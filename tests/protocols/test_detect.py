"""Every protocol that detection names, by its first octets and by a segment from the middle."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support.openings import (
    BODY,
    CLIENT_HELLO,
    CONTENT,
    HEARTBEAT,
    KNOWN,
    OPENINGS,
    SERVER_HELLO,
    STRANGE,
    method091,
    record,
)
from support.sampling import examples

from amqpscope.protocols.detect import detect, detect_header, detect_midstream
from dissectors.detect import MORE, UNKNOWN
from dissectors.protocol_header import ProtocolHeader


@pytest.mark.parametrize(("name", "octets"), KNOWN, ids=lambda one: str(one)[:30])
def test_every_protocol_is_named_by_its_opening(name: str, octets: bytes) -> None:
    assert detect(octets) == name


@pytest.mark.parametrize(("name", "octets"), KNOWN, ids=lambda one: str(one)[:30])
def test_an_opening_in_pieces_is_waited_for(name: str, octets: bytes) -> None:
    """Cut anywhere, it is not reported yet or reported right."""
    reported = [detect(octets[:size]) for size in range(len(octets) + 1)]
    waited = reported.index(name)
    assert set(reported[:waited]) <= {MORE}
    assert set(reported[waited:]) == {name}
    assert waited <= 600


@pytest.mark.parametrize("octets", STRANGE, ids=str)
def test_what_nothing_begins_like_is_unknown(octets: bytes) -> None:
    assert detect(octets) == UNKNOWN


def test_few_octets_tell_nothing() -> None:
    for octets in (b"", b"A", b"AMQ", b"AMQP", b"AMQP\0\1\0", b"x", b"hello", b"\x16\3\1\2\0"):
        assert detect(octets) == MORE


openings = st.one_of(
    st.binary(max_size=40),
    st.builds(lambda known, rest: known[1] + rest, st.sampled_from(KNOWN), st.binary(max_size=20)),
    st.builds(
        lambda known, at, octet: known[1][:at] + bytes([octet]) + known[1][at + 1 :],
        st.sampled_from(KNOWN),
        st.integers(0, 12),
        st.integers(0, 255),
    ),
)


@given(openings)
@settings(max_examples=examples(400))
@example(b"\x08\x00\x00\x00\x00\x00\x00\xce")
@example(amqp.frame(amqp.open_(container_id="c")) + b"no frame at all")
def test_what_is_reported_is_reported_of_all_that_follows(octets: bytes) -> None:
    """So it makes no difference how the octets were cut into segments."""
    if octets[:4] == b"\0\0\0\x08":
        return  # empty frames are judged by what follows them
    reported = [detect(octets[:size]) for size in range(len(octets) + 1)]
    names = [name for name in reported if name != MORE]
    assert len(set(names)) <= 1
    assert not names or reported[-len(names) :] == names


@given(st.binary(max_size=64), st.integers(0, 10), st.integers(0, 10))
def test_any_octets_have_some_name(octets: bytes, before: int, behind: int) -> None:
    names = {*OPENINGS, UNKNOWN, MORE}
    assert detect(octets) in names
    inside = b"\xee" * before + octets + b"\xee" * behind
    found = detect_midstream(inside, before, before + len(octets))
    assert found in ("tls", "amqp091", MORE)
    assert found == detect_midstream(octets, 0, len(octets))


@pytest.mark.parametrize(
    ("octets", "name"),
    [
        (record(0x17, b"x" * 100), "tls"),
        (record(0x17, b"x" * 100, minor=4), "tls"),
        (record(0x17, b"x" * 100)[:-1], MORE),
        (record(0x17, b"x" * 100) + record(0x17, b"y" * 9)[:5], "tls"),
        (record(0x17, b"x" * 100) + b"\x17\x03", MORE),
        (record(0x17, b"x" * 100) + b"other", MORE),
        (record(0x17, b""), MORE),
        (record(0x15, b"\x01\x00"), "tls"),
        (CLIENT_HELLO, "tls"),
        (SERVER_HELLO, "tls"),
        (method091(60, 40, b"\0\0\0\0\0"), "amqp091"),
        (method091(60, 40, bytes(500))[:20], "amqp091"),
        (method091(60, 40, b"\0\0\0\0\0")[:10], MORE),
        (method091(60, 40, b"\0\0\0\0\0")[:-1] + b"x", MORE),
        (method091(61, 40), MORE),
        (method091(60, 400), MORE),
        (CONTENT, "amqp091"),
        (BODY, MORE),
        (BODY + BODY, "amqp091"),
        (BODY + CONTENT, "amqp091"),
        (BODY + b"other octets", MORE),
        (BODY[:-1] + b"x" + BODY, MORE),
        (HEARTBEAT, "amqp091"),
        (HEARTBEAT + BODY, "amqp091"),
        (HEARTBEAT[:-1], MORE),
        (b"GET / HTTP/1.1\r\n", MORE),
        (b"AMQP\0\1\0\0", MORE),
        (b"", MORE),
        (bytes(40), MORE),
        (amqp.frame(amqp.close()), MORE),
    ],
)
def test_a_segment_from_the_middle(octets: bytes, name: str) -> None:
    assert detect_midstream(octets, 0, len(octets)) == name
    assert detect_midstream(b"\x17\x03\x03" + octets + b"\xce", 3, 3 + len(octets)) == name


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b"AMQP\0\1\0\0", "amqp10"),
        (b"AMQP\3\1\0\0", "amqp10"),
        (b"AMQP\0\0\x09\1", "amqp091"),
        (b"AMQP\7\7\7\7", "amqp-unknown"),
    ],
)
def test_a_header_alone(header: bytes, name: str) -> None:
    assert detect_header(ProtocolHeader(*header[4:])) == name
