"""What must hold of AMQP 0-9-1 for any octets, in any pieces, with any holes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp091_encode as amqp
from support import strategies
from support.decoded import frame_state

from dissectors.amqp091.frame import Amqp091FrameDecoder
from dissectors.interface import Frame

# Frames of every kind, right and wrong.
POOL = [
    amqp.header(),
    amqp.header(1, 1, 0, 9),
    amqp.say(
        "connection.start",
        0,
        version_minor=9,
        server_properties={"product": "RabbitMQ", "capabilities": {"basic.nack": True}},
        mechanisms="PLAIN",
        locales="en_US",
    ),
    amqp.say("connection.start-ok", 0, mechanism="PLAIN", response=b"\0u\0p", locale="en_US"),
    amqp.say("connection.tune-ok", 0, channel_max=2047, frame_max=131072, heartbeat=60),
    amqp.say("queue.declare", 1, queue="q", arguments={"x-max-length": ("I", 5)}),
    amqp.say("basic.publish", 1, routing_key="q"),
    amqp.content(1, b"some content", content_type="text/plain", headers={"a": ("A", ["b"])}),
    amqp.content(1, b"in four bodies", frame_max=12),
    amqp.say("basic.deliver", 2, consumer_tag="c", delivery_tag=2**63),
    amqp.frame(amqp.BODY, 2, amqp.say("basic.ack", 1) + amqp.heartbeat()),
    amqp.frame(amqp.BODY, 1, b""),
    amqp.say("basic.ack", 2, delivery_tag=1),
    amqp.say("tx.commit", 65535),
    amqp.heartbeat(),
    b"\x08\0\0\xce",
    amqp.frame(amqp.HEARTBEAT, 7, b"x"),
    amqp.frame(4, 0, b""),
    amqp.frame(9, 1, b"nobody has this type"),
    amqp.frame(amqp.METHOD, 1, b"\0\x3c\0\x79"),
    amqp.frame(amqp.METHOD, 1, amqp.method("basic.qos"), size=3),
    amqp.frame(amqp.METHOD, 1, amqp.method("basic.qos"), size=60),
    amqp.frame(amqp.METHOD, 1, amqp.method("basic.qos"), end=b"\0"),
    amqp.frame(amqp.BODY, 1, b"x" * 20, size=2**31),
    amqp.frame(amqp.BODY, 1, amqp.say("basic.ack", 1), end=b"\0"),
]
FRAMES = st.sampled_from(POOL)


@st.composite
def damaged(draw: st.DrawFn, frames: st.SearchStrategy[bytes]) -> bytes:
    """A frame with octets changed, left out or put in."""
    octets = bytearray(draw(frames))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(octets) - 1))
        # Mostly in the header or at the end, where it does most.
        at = at if draw(st.integers(0, 3)) == 0 else (at % 9) - 1
        how = draw(st.integers(0, 2))
        if how == 0:
            octets[at] = draw(st.one_of(st.integers(0, 255), st.sampled_from((0, 1, 2, 3, 8, 0xCE))))
        elif how == 1 and len(octets) > 1:
            del octets[at]
        else:
            octets.insert(at, draw(st.integers(0, 255)))
    return bytes(octets)


PIECE = st.one_of(
    FRAMES,
    FRAMES,
    damaged(FRAMES),
    st.binary(max_size=30),
    st.sampled_from((b"\x03" * 9, b"\x01\0\1\0\0\0\x08", b"AMQP", b"\xce", b"\x08\0\0\0\0\0\0")),
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
    decoder = Amqp091FrameDecoder(midstream)
    frames: list[Frame] = []
    size = 0
    for (octets, hole), pieces in zip(stream, chunks, strict=True):
        for piece in pieces:
            decoder.feed(piece, 0, len(piece))
            if dumping:
                frames += decoder.frames
                decoder = Amqp091FrameDecoder.load(decoder.dump())
        size += len(octets)
        if hole:
            decoder.gap(hole)
            size += hole
            if dumping:
                frames += decoder.frames
                decoder = Amqp091FrameDecoder.load(decoder.dump())
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
        assert frame_state(frame)[2] in (
            "header",
            "method",
            "content-header",
            "body",
            "heartbeat",
            "unknown",
            "skipped",
        )
        if frame.kind != "skipped" and not frame.missing:
            assert frame.raw == captured[int(frame.offset) : int(frame.offset + frame.size)]
        assert frame.payload in frame.raw
        assert len(frame.payload) == frame.payload_size
        for found in frame.problems:
            assert 0 <= found.offset <= frame.size
    if midstream:
        assert not [problem for frame in frames for problem in frame.problems if problem.code.isupper()]


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


SOUND = [frame for frame in POOL[:16] if frame not in (POOL[1], POOL[10], POOL[11], POOL[15])]


@settings(max_examples=100)
@given(st.data(), st.lists(st.sampled_from(SOUND), min_size=3, max_size=12))
def test_of_a_direction_with_a_hole_all_else_is_found(data: st.DataObject, said: list[bytes]) -> None:
    """But bodies right behind the hole: those are only recognised before something else."""
    octets = b"".join(said)
    whole, _ = decode([(octets, 0)], [[octets]], False)
    start = data.draw(st.integers(0, len(octets) - 1))
    end = data.draw(st.integers(start + 1, len(octets)))
    stream = [(octets[:start], end - start), (octets[end:], 0)]
    frames, size = decode(stream, one_piece(stream), False)
    check_tiles(frames, size)
    found = {int(frame.offset): (frame.kind, repr(frame.body)) for frame in frames}
    for frame in whole:
        before = frame.offset + frame.size <= start
        if before or (frame.offset >= end and frame.kind not in ("body", "header")):
            assert found[int(frame.offset)] == (frame.kind, repr(frame.body))
    accusations = [problem.code for frame in frames for problem in frame.problems if problem.code.isupper()]
    assert set(accusations) <= {"F-PROTO-HDR-ONCE"}


def test_going_on_in_another_process_after_every_octet() -> None:
    for octets in (b"".join(POOL), b"".join(reversed(POOL)), POOL[3] + POOL[18] + POOL[12] + POOL[0]):
        frames, _ = decode([(octets, 0)], [[octets]], False)
        pieces = [[octets[at : at + 1] for at in range(len(octets))]]
        moved, _ = decode([(octets, 0)], pieces, False, dumping=True)
        assert [frame_state(frame) for frame in moved] == [frame_state(frame) for frame in frames]
