"""What must hold of the frames of each protocol for any octets, in any pieces, with any holes."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp091_encode as amqp091
from support import amqp10_encode as amqp
from support import strategies
from support.decoded import expected, frame_state, meaning
from support.sampling import examples
from support.strategies import FrameSample

from dissectors.amqp091.frame import Amqp091FrameDecoder
from dissectors.amqp10.frame import FrameDecoder
from dissectors.interface import Frame

Stream = list[tuple[bytes, int]]
"""A direction: runs of octets with holes between them, (octets, size of the hole behind)."""

HEADERS = st.sampled_from(
    (
        amqp.AMQP_HEADER,
        amqp.SASL_HEADER,
        amqp.TLS_HEADER,
        b"AMQP\x00\x00\x09\x01",
        b"AMQP\x00\x01\x00",
        b"\x16\x03\x01\x02\x00\x01",
    )
)
# Frames of every kind. Fixed ones: to draw them anew each time takes longer than to decode them.
POOL10 = [
    amqp.frame(amqp.open_(container_id="c", offered_capabilities=["a", "b"], properties={"p": amqp.uint(1)})),
    amqp.frame(
        amqp.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1, choice="widest"), channel=7
    ),
    amqp.frame(
        amqp.attach(
            name="n", handle=0, role=True, source=amqp.source(filter={"f": None}), target=amqp.target()
        )
    ),
    amqp.frame(amqp.flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1, descriptor_form="full")),
    amqp.frame(amqp.transfer(handle=0, delivery_id=1, delivery_tag=b"t"), amqp.data(b"content")),
    amqp.frame(amqp.transfer(handle=0, state=amqp.accepted()), b"\x00" * 40, channel=1),
    amqp.frame(
        amqp.transfer(handle=0, descriptor_form="symbol"), amqp.frame(amqp.end()) + amqp.frame(amqp.close())
    ),
    amqp.frame(amqp.disposition(role=True, first=0, state=amqp.rejected(error=amqp.error(condition="c")))),
    amqp.frame(amqp.detach(handle=0, closed=True, descriptor_form="symbol32"), extended=b"extended hdr"),
    amqp.frame(amqp.end(error=amqp.error(condition="c"))),
    amqp.frame(amqp.close(extra=[None])),
    amqp.frame(amqp.close(), b"\x40"),
    amqp.frame(channel=3),
    amqp.frame(amqp.open_()),
    amqp.frame(amqp.uint(1)),
    amqp.frame(amqp.close(), type=2),
    amqp.frame(amqp.close(), doff=1),
    amqp.frame(amqp.transfer(handle=0), b"x" * 20, size=2**31),
    amqp.sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms="PLAIN")),
    amqp.sasl_frame(amqp.sasl_init(mechanism="PLAIN", initial_response=b"\0u\0p")),
    amqp.sasl_frame(amqp.sasl_outcome(code=0)),
    amqp.sasl_frame(),
]
POOL091 = [
    amqp091.header(),
    amqp091.header(1, 1, 0, 9),
    amqp091.say(
        "connection.start",
        0,
        version_minor=9,
        server_properties={"product": "RabbitMQ", "capabilities": {"basic.nack": True}},
        mechanisms="PLAIN",
        locales="en_US",
    ),
    amqp091.say("connection.start-ok", 0, mechanism="PLAIN", response=b"\0u\0p", locale="en_US"),
    amqp091.say("connection.tune-ok", 0, channel_max=2047, frame_max=131072, heartbeat=60),
    amqp091.say("queue.declare", 1, queue="q", arguments={"x-max-length": ("I", 5)}),
    amqp091.say("basic.publish", 1, routing_key="q"),
    amqp091.content(1, b"some content", content_type="text/plain", headers={"a": ("A", ["b"])}),
    amqp091.content(1, b"in four bodies", frame_max=12),
    amqp091.say("basic.deliver", 2, consumer_tag="c", delivery_tag=2**63),
    amqp091.frame(amqp091.BODY, 2, amqp091.say("basic.ack", 1) + amqp091.heartbeat()),
    amqp091.frame(amqp091.BODY, 1, b""),
    amqp091.say("basic.ack", 2, delivery_tag=1),
    amqp091.say("tx.commit", 65535),
    amqp091.heartbeat(),
    b"\x08\0\0\xce",
    amqp091.frame(amqp091.HEARTBEAT, 7, b"x"),
    amqp091.frame(4, 0, b""),
    amqp091.frame(9, 1, b"nobody has this type"),
    amqp091.frame(amqp091.METHOD, 1, b"\0\x3c\0\x79"),
    amqp091.frame(amqp091.METHOD, 1, amqp091.method("basic.qos"), size=3),
    amqp091.frame(amqp091.METHOD, 1, amqp091.method("basic.qos"), size=60),
    amqp091.frame(amqp091.METHOD, 1, amqp091.method("basic.qos"), end=b"\0"),
    amqp091.frame(amqp091.BODY, 1, b"x" * 20, size=2**31),
    amqp091.frame(amqp091.BODY, 1, amqp091.say("basic.ack", 1), end=b"\0"),
]


@st.composite
def damaged(
    draw: st.DrawFn, frames: st.SearchStrategy[bytes], often: tuple[int, int], octets_of_note: tuple[int, ...]
) -> bytes:
    """A frame with octets changed, left out or put in.

    often: where a change does most, a size and what is taken off a place within it.
    """
    octets = bytearray(draw(frames))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(octets) - 1))
        at = at if draw(st.integers(0, 3)) == 0 else at % often[0] - often[1]
        how = draw(st.integers(0, 2))
        if how == 0:
            octets[at] = draw(st.one_of(st.integers(0, 255), st.sampled_from(octets_of_note)))
        elif how == 1 and len(octets) > 1:
            del octets[at]
        else:
            octets.insert(at, draw(st.integers(0, 255)))
    return bytes(octets)


def streams(*pieces: st.SearchStrategy[bytes]) -> st.SearchStrategy[Stream]:
    """Directions of such pieces."""
    run = st.lists(st.one_of(*pieces, st.binary(max_size=30)), max_size=6).map(b"".join)
    return st.lists(st.tuples(run, st.sampled_from((0, 0, 1, 7, 30, 1000))), min_size=1, max_size=4)


FRAMES10 = st.sampled_from(POOL10)
FRAMES091 = st.sampled_from(POOL091)


class Framing(NamedTuple):
    """The frames of a protocol: its decoder, the kinds of frames, and directions with frames in them."""

    decoder: type[FrameDecoder] | type[Amqp091FrameDecoder]
    kinds: tuple[str, ...]
    streams: st.SearchStrategy[Stream]


AMQP10 = Framing(
    FrameDecoder,
    ("header", "amqp", "sasl", "skipped"),
    streams(
        FRAMES10,
        FRAMES10,
        # Nearly always in the header or the beginning of the body.
        damaged(FRAMES10, (16, 0), (0, 1, 2, 8, 0x40, 0x53, 0xC0, 0xD0)),
        HEADERS,
        st.just(amqp.frame()),
        st.sampled_from((b"\x00" * 9, b"\x02" * 9, b"AMQP", b"\x00\x00\x00\x10\x02\x00\x00\x00\x00\x53")),
    ),
)
AMQP091 = Framing(
    Amqp091FrameDecoder,
    ("header", "method", "content-header", "body", "heartbeat", "unknown", "skipped"),
    streams(
        FRAMES091,
        FRAMES091,
        # Mostly in the header or at the end.
        damaged(FRAMES091, (9, 1), (0, 1, 2, 3, 8, 0xCE)),
        st.sampled_from((b"\x03" * 9, b"\x01\0\1\0\0\0\x08", b"AMQP", b"\xce", b"\x08\0\0\0\0\0\0")),
    ),
)
each_protocol = pytest.mark.parametrize("framing", [AMQP10, AMQP091], ids=["amqp10", "amqp091"])


def decode(
    framing: Framing, stream: Stream, chunks: list[list[bytes]], midstream: bool, dumping: bool = False
) -> tuple[list[Frame], int]:
    decoder = framing.decoder(midstream)
    frames: list[Frame] = []
    size = 0
    for (octets, hole), pieces in zip(stream, chunks, strict=True):
        for piece in pieces:
            decoder.feed(piece, 0, len(piece))
            if dumping:
                frames += decoder.frames
                decoder = framing.decoder.load(decoder.dump())
        size += len(octets)
        if hole:
            decoder.gap(hole)
            size += hole
            if dumping:
                frames += decoder.frames
                decoder = framing.decoder.load(decoder.dump())
    decoder.end("fin")
    return frames + decoder.frames, size


def check_tiles(frames: list[Frame], size: int) -> None:
    offset = 0
    for frame in frames:
        assert frame.offset == offset
        assert frame.size > 0
        assert frame.missing >= 0
        offset += int(frame.size)
    assert offset == size


def one_piece(stream: Stream) -> list[list[bytes]]:
    return [[octets] if octets else [] for octets, _ in stream]


@st.composite
def cut(draw: st.DrawFn, stream: Stream) -> list[list[bytes]]:
    return [draw(strategies.chunkings(octets)) if octets else [] for octets, _ in stream]


@each_protocol
@settings(max_examples=examples(250))
@given(data=st.data(), midstream=st.booleans())
def test_any_octets_are_framed_without_raising_and_without_rest(
    framing: Framing, data: st.DataObject, midstream: bool
) -> None:
    stream = data.draw(framing.streams)
    frames, size = decode(framing, stream, one_piece(stream), midstream)
    check_tiles(frames, size)
    captured = b"".join(octets + b"\x00" * hole for octets, hole in stream)
    for frame in frames:
        assert frame_state(frame)[2] in framing.kinds
        if frame.kind != "skipped" and not frame.missing:
            assert frame.raw == captured[int(frame.offset) : int(frame.offset + frame.size)]
        if framing is AMQP10:
            assert frame.raw.endswith(frame.payload)
        else:
            assert frame.payload in frame.raw
            assert len(frame.payload) == frame.payload_size
        for found in frame.problems:
            assert 0 <= found.offset <= frame.size
    if midstream and framing is AMQP091:
        assert not [problem for frame in frames for problem in frame.problems if problem.code.isupper()]


@each_protocol
@settings(max_examples=examples(250))
@given(data=st.data(), midstream=st.booleans())
def test_how_octets_are_cut_into_pieces_changes_nothing(
    framing: Framing, data: st.DataObject, midstream: bool
) -> None:
    stream = data.draw(framing.streams)
    octet_by_octet = [[octets[at : at + 1] for at in range(len(octets))] for octets, _ in stream]
    whole, *others = (
        [frame_state(frame) for frame in decode(framing, stream, chunks, midstream)[0]]
        for chunks in (one_piece(stream), data.draw(cut(stream)), octet_by_octet)
    )
    assert others == [whole, whole]


@each_protocol
@settings(max_examples=examples(100))
@given(data=st.data(), midstream=st.booleans())
def test_going_on_in_another_process_changes_nothing(
    framing: Framing, data: st.DataObject, midstream: bool
) -> None:
    stream = data.draw(framing.streams)
    chunks = data.draw(cut(stream))
    frames, _ = decode(framing, stream, chunks, midstream)
    moved, _ = decode(framing, stream, chunks, midstream, dumping=True)
    assert [frame_state(frame) for frame in moved] == [frame_state(frame) for frame in frames]


@each_protocol
@settings(max_examples=examples(150))
@given(octets=st.binary(max_size=400), midstream=st.booleans())
def test_noise(framing: Framing, octets: bytes, midstream: bool) -> None:
    frames, size = decode(framing, [(octets, 0)], [[octets]], midstream)
    check_tiles(frames, size)


def wanted_state(sample: FrameSample) -> tuple[Any, ...]:
    body = None if sample.body is None else expected(sample.body)
    return sample.kind, sample.name if sample.kind != "header" else "header", body, sample.payload


def decoded_state(frame: Frame) -> tuple[Any, ...]:
    body = None if frame.kind == "header" or frame.body is None else meaning(frame.body)
    return frame.kind, frame.name, body, frame.payload


@settings(max_examples=15)
@given(strategies.conversations())
def test_a_conversation_is_decoded_as_it_was_said(conversation: strategies.Conversation) -> None:
    for who in (0, 1):
        said = conversation.frames(who)
        frames, size = decode(AMQP10, [(conversation.octets(who), 0)], [[conversation.octets(who)]], False)
        check_tiles(frames, size)
        assert [decoded_state(frame) for frame in frames] == [wanted_state(sample) for sample in said]
        assert [frame.raw for frame in frames] == [sample.octets for sample in said]
        assert [int(frame.channel) for frame in frames if frame.kind == "amqp"] == [
            sample.channel for sample in said if sample.kind == "amqp"
        ]
        assert [found for frame in frames for found in frame.problems] == []


@settings(max_examples=15)
@given(st.data(), strategies.conversations())
def test_of_a_conversation_with_a_hole_all_else_is_found(
    data: st.DataObject, conversation: strategies.Conversation
) -> None:
    # Behind a hole only frames with the usual data offset are looked for, and empty ones on channel 0.
    said = [
        sample
        for sample in conversation.frames(0)
        if (sample.octets[4:5] == b"\x02" and (sample.name != "empty" or sample.channel == 0))
        or sample.kind == "header"
    ]
    octets = b"".join(sample.octets for sample in said)
    start = data.draw(st.integers(0, len(octets) - 1))
    end = data.draw(st.integers(start + 1, len(octets)))
    stream = [(octets[:start], end - start), (octets[end:], 0)]
    frames, size = decode(AMQP10, stream, one_piece(stream), False)
    check_tiles(frames, size)
    found = {int(frame.offset): decoded_state(frame) for frame in frames if not frame.missing}
    offset = 0
    for sample in said:
        if offset + len(sample.octets) <= start or offset >= end:
            assert found[offset] == wanted_state(sample)
        offset += len(sample.octets)
    assert not [problem for frame in frames for problem in frame.problems if problem.code.isupper()]


SOUND = [frame for frame in POOL091[:16] if frame not in (POOL091[1], POOL091[10], POOL091[11], POOL091[15])]


@settings(max_examples=examples(100))
@given(st.data(), st.lists(st.sampled_from(SOUND), min_size=3, max_size=12))
def test_of_a_direction_of_amqp091_with_a_hole_all_else_is_found(
    data: st.DataObject, said: list[bytes]
) -> None:
    """But bodies right behind the hole: those are only recognised before something else."""
    octets = b"".join(said)
    whole, _ = decode(AMQP091, [(octets, 0)], [[octets]], False)
    start = data.draw(st.integers(0, len(octets) - 1))
    end = data.draw(st.integers(start + 1, len(octets)))
    stream = [(octets[:start], end - start), (octets[end:], 0)]
    frames, size = decode(AMQP091, stream, one_piece(stream), False)
    check_tiles(frames, size)
    found = {int(frame.offset): (frame.kind, repr(frame.body)) for frame in frames}
    for frame in whole:
        before = frame.offset + frame.size <= start
        if before or (frame.offset >= end and frame.kind not in ("body", "header")):
            assert found[int(frame.offset)] == (frame.kind, repr(frame.body))
    accusations = [problem.code for frame in frames for problem in frame.problems if problem.code.isupper()]
    assert set(accusations) <= {"F-PROTO-HDR-ONCE"}


def test_going_on_in_another_process_after_every_octet_of_amqp091() -> None:
    for octets in (
        b"".join(POOL091),
        b"".join(reversed(POOL091)),
        POOL091[3] + POOL091[18] + POOL091[12] + POOL091[0],
    ):
        frames, _ = decode(AMQP091, [(octets, 0)], [[octets]], False)
        pieces = [[octets[at : at + 1] for at in range(len(octets))]]
        moved, _ = decode(AMQP091, [(octets, 0)], pieces, False, dumping=True)
        assert [frame_state(frame) for frame in moved] == [frame_state(frame) for frame in frames]
