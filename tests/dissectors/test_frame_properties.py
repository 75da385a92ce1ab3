"""What must hold for any octets, in any pieces, with any holes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support import strategies
from support.decoded import expected, frame_state, meaning
from support.strategies import FrameSample

from dissectors.amqp10.frame import FrameDecoder
from dissectors.interface import Frame

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
POOL = [
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
FRAMES = st.sampled_from(POOL)


@st.composite
def damaged(draw: st.DrawFn, frames: st.SearchStrategy[bytes]) -> bytes:
    """A frame with octets changed, left out or put in."""
    octets = bytearray(draw(frames))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(octets) - 1))
        # Nearly always in the header or the beginning of the body, where it does most.
        at = at if draw(st.integers(0, 3)) == 0 else at % 16
        how = draw(st.integers(0, 2))
        if how == 0:
            octets[at] = draw(
                st.one_of(st.integers(0, 255), st.sampled_from((0, 1, 2, 8, 0x40, 0x53, 0xC0, 0xD0)))
            )
        elif how == 1 and len(octets) > 1:
            del octets[at]
        else:
            octets.insert(at, draw(st.integers(0, 255)))
    return bytes(octets)


PIECE = st.one_of(
    FRAMES,
    FRAMES,
    damaged(FRAMES),
    HEADERS,
    st.binary(max_size=30),
    st.just(amqp.frame()),
    st.sampled_from((b"\x00" * 9, b"\x02" * 9, b"AMQP", b"\x00\x00\x00\x10\x02\x00\x00\x00\x00\x53")),
)
# A direction: runs of octets with holes between them, (octets, size of the hole behind).
STREAM = st.lists(
    st.tuples(st.lists(PIECE, max_size=6).map(b"".join), st.sampled_from((0, 0, 1, 7, 30, 1000))),
    min_size=1,
    max_size=4,
)


def decode(
    stream: list[tuple[bytes, int]], chunks: list[list[bytes]], midstream: bool, dumping: bool = False
) -> tuple[list[Frame], int]:
    decoder = FrameDecoder(midstream)
    frames: list[Frame] = []
    size = 0
    for (octets, hole), pieces in zip(stream, chunks, strict=True):
        for piece in pieces:
            decoder.feed(piece, 0, len(piece))
            if dumping:
                frames += decoder.frames
                decoder = FrameDecoder.load(decoder.dump())
        size += len(octets)
        if hole:
            decoder.gap(hole)
            size += hole
            if dumping:
                frames += decoder.frames
                decoder = FrameDecoder.load(decoder.dump())
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


def one_piece(stream: list[tuple[bytes, int]]) -> list[list[bytes]]:
    return [[octets] if octets else [] for octets, _ in stream]


@st.composite
def cut(draw: st.DrawFn, stream: list[tuple[bytes, int]]) -> list[list[bytes]]:
    return [draw(strategies.chunkings(octets)) if octets else [] for octets, _ in stream]


@settings(max_examples=250)
@given(STREAM, st.booleans())
def test_any_octets_are_framed_without_raising_and_without_rest(
    stream: list[tuple[bytes, int]], midstream: bool
) -> None:
    frames, size = decode(stream, one_piece(stream), midstream)
    check_tiles(frames, size)
    captured = b"".join(octets + b"\x00" * hole for octets, hole in stream)
    for frame in frames:
        state = frame_state(frame)
        if frame.kind != "skipped" and not frame.missing:
            assert frame.raw == captured[int(frame.offset) : int(frame.offset + frame.size)]
        assert frame.raw.endswith(frame.payload)
        for found in frame.problems:
            assert 0 <= found.offset <= frame.size
        assert state[2] in ("header", "amqp", "sasl", "skipped")


@settings(max_examples=250)
@given(st.data(), STREAM, st.booleans())
def test_how_octets_are_cut_into_pieces_changes_nothing(
    data: st.DataObject, stream: list[tuple[bytes, int]], midstream: bool
) -> None:
    frames, _ = decode(stream, one_piece(stream), midstream)
    wanted = [frame_state(frame) for frame in frames]
    frames, _ = decode(stream, data.draw(cut(stream)), midstream)
    assert [frame_state(frame) for frame in frames] == wanted
    frames, _ = decode(
        stream, [[octets[at : at + 1] for at in range(len(octets))] for octets, _ in stream], midstream
    )
    assert [frame_state(frame) for frame in frames] == wanted


@settings(max_examples=100)
@given(st.data(), STREAM, st.booleans())
def test_going_on_in_another_process_changes_nothing(
    data: st.DataObject, stream: list[tuple[bytes, int]], midstream: bool
) -> None:
    chunks = data.draw(cut(stream))
    frames, _ = decode(stream, chunks, midstream)
    moved, _ = decode(stream, chunks, midstream, dumping=True)
    assert [frame_state(frame) for frame in moved] == [frame_state(frame) for frame in frames]


@settings(max_examples=150)
@given(st.binary(max_size=400), st.booleans())
def test_noise(octets: bytes, midstream: bool) -> None:
    frames, size = decode([(octets, 0)], [[octets]], midstream)
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
        frames, size = decode([(conversation.octets(who), 0)], [[conversation.octets(who)]], False)
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
    frames, size = decode(stream, one_piece(stream), False)
    check_tiles(frames, size)
    found = {int(frame.offset): decoded_state(frame) for frame in frames if not frame.missing}
    offset = 0
    for sample in said:
        if offset + len(sample.octets) <= start or offset >= end:
            assert found[offset] == wanted_state(sample)
        offset += len(sample.octets)
    assert not [problem for frame in frames for problem in frame.problems if problem.code.isupper()]
