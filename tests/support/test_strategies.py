"""The strategies draw what they say, and reach every encoding: what they never draw is never tested."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support import strategies
from support.independent import walk_capture
from support.sampling import thorough
from support.strategies import Conversation, Delivery, Sample
from support.tcp_writer import Capture


def codes_of(samples: st.SearchStrategy[Sample], examples: int) -> set[int]:
    """The format codes that draws begin with."""
    codes: set[int] = set()

    @settings(max_examples=examples, database=None, derandomize=True, deadline=None)
    @given(samples)
    def draw(sample: Sample) -> None:
        codes.add(sample.octets[0])

    draw()
    return codes


@pytest.mark.parametrize("kind", strategies.PRIMITIVE_TYPES)
def test_every_encoding_of_a_type_is_drawn(kind: str) -> None:
    assert codes_of(strategies.primitives((kind,)), 60) == set(amqp.CODES[kind])


def test_every_kind_of_nested_value_is_drawn() -> None:
    nested = {code for kind in ("list", "map", "array") for code in amqp.CODES[kind]} | {0x00}
    assert codes_of(strategies.values(3), 250) > nested


@pytest.mark.parametrize("kind", [*strategies.PRIMITIVE_TYPES, "list", "map", "array", "described"])
def test_arrays_of_everything_are_drawn(kind: str) -> None:
    elements: set[int] = set()
    sizes: set[int] = set()

    @settings(max_examples=60, database=None, derandomize=True, deadline=None)
    @given(strategies.arrays(kinds=(kind,)))
    def draw(array: Sample) -> None:
        elements.add(array.octets[3 if array.octets[0] == 0xE0 else 9])
        sizes.add(len(array.meaning[1]))

    draw()
    # Lists, maps and arrays in an array have one width for all, the larger.
    assert elements == ({0x00} if kind == "described" else set(amqp.CODES[kind]) - {0x45, 0xC0, 0xC1, 0xE0})
    assert {0, 1} < sizes


@pytest.mark.parametrize("name", amqp.COMPOSITES)
def test_every_field_of_every_composite_is_drawn(name: str) -> None:
    drawn: set[str] = set()

    @settings(max_examples=20, database=None, derandomize=True, deadline=None)
    @given(strategies.composites(name))
    def draw(sample: Sample) -> None:
        kind, drawn_name, fields = sample.meaning
        assert (kind, drawn_name) == ("composite", name)
        drawn.update(fields)

    draw()
    assert drawn == {field for field, _ in amqp.COMPOSITES[name][1]}


@given(
    st.binary(max_size=300).flatmap(lambda octets: st.tuples(st.just(octets), strategies.chunkings(octets)))
)
def test_chunkings_lose_nothing(drawn: tuple[bytes, list[bytes]]) -> None:
    octets, chunks = drawn
    assert b"".join(chunks) == octets
    assert all(chunks)


@given(
    st.binary(max_size=300).flatmap(lambda octets: st.tuples(st.just(octets), strategies.deliveries(octets)))
)
def test_deliveries_bring_every_octet_unchanged(drawn: tuple[bytes, Delivery]) -> None:
    octets, delivery = drawn
    brought = bytearray(len(octets))
    covered = bytearray(len(octets))
    for offset, segment in delivery.segments:
        assert octets[offset : offset + len(segment)] == segment
        brought[offset : offset + len(segment)] = segment
        covered[offset : offset + len(segment)] = b"\1" * len(segment)
    assert brought == octets
    assert all(covered)


@settings(max_examples=300 if thorough() else 15, deadline=None)
@given(st.data())
def test_a_conversation_is_what_its_octets_are(data: st.DataObject) -> None:
    """By way of TCP in any order, and the independent walk: the same names on the same channels."""
    conversation: Conversation = data.draw(strategies.conversations())
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    for who, end in ((0, tcp.client), (1, tcp.server)):
        for offset, segment in data.draw(strategies.deliveries(conversation.octets(who))).segments:
            end.segment(segment, offset=offset)
    plain = strategies.captured(conversation)
    with TemporaryDirectory() as folder:
        for made in (capture, plain):
            walks = walk_capture(made.write(Path(folder) / "one.pcap"))
            for who, source in ((0, "10.0.0.1:51034"), (1, "10.0.0.2:5672")):
                [walk] = [walk for walk in walks if walk.source == source]
                reported = [(frame.name, frame.channel) for frame in conversation.frames(who)]
                assert [(name, channel) for _, name, channel in walk.frames] == reported
                assert walk.stopped == ""
