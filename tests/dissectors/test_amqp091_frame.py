"""Frames of AMQP 0-9-1: what each kind says, every way in which one is wrong, and how the next is found."""

from __future__ import annotations

import pytest
from support import amqp091_encode as amqp
from support.decoded import frame_state, problems

from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.frame import Amqp091FrameDecoder, credible_frame
from dissectors.amqp091.tables import PRINTED, RABBITMQ
from dissectors.amqp091.values import Amqp091Timestamp, Table
from dissectors.interface import Frame
from dissectors.limits import GUESSED_OCTETS, MAX_KEPT_FRAME
from dissectors.protocol_header import ProtocolHeader
from dissectors.stream_decoder import CREDIBLE

PUBLISH = amqp.say("basic.publish", 1, exchange="x", routing_key="k")
ACK = amqp.say("basic.ack", 1, delivery_tag=1)
CONTENT = amqp.content(1, b"body", content_type="text/plain")
OPENING = amqp.header() + amqp.say("connection.start-ok", 0, mechanism="PLAIN", response=b"\0u\0p")


def decode(*pieces: bytes | int, midstream: bool = False, reason: str = "fin") -> list[Frame]:
    """The frames of a direction; an int is a hole of so many octets."""
    decoder = Amqp091FrameDecoder(midstream)
    for piece in pieces:
        if isinstance(piece, int):
            decoder.gap(piece)
        else:
            decoder.feed(piece, 0, len(piece))
    decoder.end(reason)
    return decoder.frames


def reported(frames: list[Frame]) -> list[str]:
    """Each frame as its name, and the codes of what is wrong with it."""
    return [" ".join([frame.name, *(problem.code for problem in frame.problems)]) for frame in frames]


def test_a_direction() -> None:
    octets = OPENING + PUBLISH + CONTENT + amqp.heartbeat() + ACK
    frames = decode(octets)
    assert reported(frames) == [
        "header",
        "connection.start-ok",
        "basic.publish",
        "content-header",
        "body",
        "heartbeat",
        "basic.ack",
    ]
    assert [frame.kind for frame in frames] == [
        "header",
        "method",
        "method",
        "content-header",
        "body",
        "heartbeat",
        "method",
    ]
    assert [int(frame.channel) for frame in frames] == [-1, 0, 1, 1, 1, 0, 1]
    assert b"".join(frame.raw for frame in frames) == octets
    assert frames[4].payload == b"body"
    assert frames[4].payload_size == 4
    assert all(frame.payload == b"" for frame in frames if frame.kind != "body")
    header = frames[3].body
    assert isinstance(header, ContentHeader)
    assert (header.class_id, header.weight, header.body_size) == (60, 0, 4)
    assert header.properties().content_type == "text/plain"


def test_a_frame_that_is_kept_or_taken_out_has_the_same_payload() -> None:
    (frame,) = decode(amqp.frame(amqp.BODY, 1, b"some body"))
    assert frame.kept(1000).payload == b"some body"
    assert frame.kept(11).payload == b"some"
    assert frame.kept(11).missing == 6
    frame.detach()
    assert (frame.payload, frame.raw[-1]) == (b"some body", 0xCE)


@pytest.mark.parametrize(
    ("octets", "name"),
    [
        ((0, 0, 9, 1), "AMQP 0-9-1"),
        ((1, 1, 0, 9), "AMQP 0-9"),
        ((0, 0, 9, 0), "AMQP 0-9"),
        ((1, 1, 8, 0), "AMQP 0-8"),
        ((1, 1, 9, 1), "AMQP 0-8"),
        ((1, 1, 0, 10), "AMQP 0-10"),
        ((0, 1, 0, 0), "AMQP 1.0"),
        ((3, 1, 0, 0), "SASL"),
        ((9, 9, 9, 9), "unknown"),
    ],
)
def test_protocol_headers_are_named(octets: tuple[int, int, int, int], name: str) -> None:
    (frame,) = decode(amqp.header(*octets))
    assert isinstance(frame.body, ProtocolHeader)
    assert frame.body.protocol() == name
    assert frame.problems == []


ALL = {
    "content_type": "a",
    "content_encoding": "b",
    "headers": {"h": ("I", 1)},
    "delivery_mode": 2,
    "priority": 9,
    "correlation_id": "c",
    "reply_to": "d",
    "expiration": "60000",
    "message_id": "e",
    "timestamp": 1700000384,
    "type": "f",
    "user_id": "g",
    "app_id": "h",
    "reserved": "i",
}


def test_all_properties() -> None:
    (frame,) = decode(amqp.frame(amqp.HEADER, 1, amqp.content_header(2**64 - 1, **ALL)))
    header = frame.body
    assert isinstance(header, ContentHeader)
    assert frame.problems == []
    assert (header.body_size, header.flags) == (2**64 - 1, 0xFFFC)
    assert (header.delivery_mode, header.priority) == (2, 9)
    properties = header.properties()
    for name, value in ALL.items():
        read = getattr(properties, name)
        assert read == value if name != "headers" else read.read() == Table([("h", 1)])
    assert [field.name.replace("-", "_") for field, _ in properties.fields()] == list(ALL)
    assert Amqp091Timestamp(properties.timestamp).iso() == "2023-11-14T22:19:44Z"


@pytest.mark.parametrize("name", list(ALL))
def test_each_property_alone(name: str) -> None:
    (frame,) = decode(amqp.frame(amqp.HEADER, 1, amqp.content_header(0, **{name: ALL[name]})))
    header = frame.body
    assert isinstance(header, ContentHeader)
    assert frame.problems == []
    ((field, value),) = header.properties().fields()
    assert field.name.replace("-", "_") == name
    assert name == "headers" or value == ALL[name]
    assert header.delivery_mode == (2 if name == "delivery_mode" else -1)
    assert header.priority == (9 if name == "priority" else -1)


def header_frame(flags: str, rest: bytes = b"", class_id: int = 60, weight: int = 0) -> bytes:
    fixed = class_id.to_bytes(2, "big") + weight.to_bytes(2, "big") + bytes(8)
    return amqp.frame(amqp.HEADER, 1, fixed + bytes.fromhex(flags) + rest)


@pytest.mark.parametrize(
    ("octets", "found"),
    [
        (header_frame("0000"), []),
        (header_frame("0001 0000"), []),
        (header_frame("0001 0001 0000"), []),
        (header_frame("0001 0002"), [("F-HEADER-FLAGS", 19, "basic")]),
        (header_frame("0001"), [("F-HEADER-FLAGS", 19, "basic")]),
        (header_frame("0002", b"what it stands for"), [("F-HEADER-FLAGS", 19, "basic")]),
        (header_frame("8002", b"\1a and more"), [("F-HEADER-FLAGS", 19, "basic")]),
        (header_frame("0000", b"x"), [("F-HEADER-DECODE", 21, "basic")]),
        (header_frame("8000"), [("F-HEADER-DECODE", 21, "basic.content-type")]),
        (header_frame("8000", b"\2a"), [("T-LENGTH-BOUNDS", 21, "basic.content-type")]),
        (header_frame("8000", b"\2a\0"), [("T-SHORTSTR-NUL", 21, "basic.content-type")]),
        (header_frame("8000", b"\2a\xff"), [("T-SHORTSTR-UTF8", 21, "basic.content-type")]),
        (header_frame("8000", b"\2\xc3\xa4"), []),
        (header_frame("1800", b"\2"), [("F-HEADER-DECODE", 22, "basic.priority")]),
        (header_frame("0040", b"\0" * 7), [("F-HEADER-DECODE", 21, "basic.timestamp")]),
        (
            header_frame("2000", b"\0\0\0\3\1kZ"),
            [("T-TABLE-TAG", 27, "basic.headers[k]")],
        ),
        (header_frame("2000", b"\0\0\0\x09\1kV"), [("T-LENGTH-BOUNDS", 21, "basic.headers")]),
        (header_frame("0000", weight=1), [("F-HEADER-WEIGHT", 9, "basic")]),
        (header_frame("0000", class_id=61), [("F-HEADER-CLASS", 7, "basic")]),
        (amqp.frame(amqp.HEADER, 1, bytes(13)), [("F-HEADER-DECODE", 7, "basic")]),
        (amqp.frame(amqp.HEADER, 0, amqp.content_header(0)), [("F-CONTENT-CH-NONZERO", 1, "")]),
        (amqp.frame(amqp.BODY, 0, b"x"), [("F-CONTENT-CH-NONZERO", 1, "")]),
        (amqp.frame(amqp.HEARTBEAT, 1, b""), [("F-CH0-HEARTBEAT", 1, "")]),
        (amqp.frame(amqp.HEARTBEAT, 0, b"x"), [("F-HEARTBEAT-SHAPE", 3, "")]),
        (amqp.say("connection.close-ok", 3), [("F-CH0-CONNECTION", 1, "")]),
        (amqp.say("basic.ack", 0), [("F-METHOD-CH-NONZERO", 1, "")]),
        (amqp.frame(amqp.METHOD, 1, b"\0\x3c\0\x79"), [("F-METHOD-KNOWN", 7, "")]),
        (amqp.frame(amqp.METHOD, 0, b"\0\x0a\0\x2a"), [("F-METHOD-KNOWN", 7, "")]),  # redirect of 0-9
        (amqp.frame(amqp.METHOD, 1, b"\0\x3c\0"), [("F-METHOD-ARGS", 7, "")]),
        (
            amqp.frame(amqp.METHOD, 1, amqp.method("basic.ack")[:-1]),
            [("F-METHOD-ARGS", 19, "basic.ack.multiple")],
        ),
        (
            amqp.frame(amqp.METHOD, 1, amqp.method("basic.ack") + b"xx"),
            [("F-METHOD-TRAILING", 20, "basic.ack")],
        ),
    ],
)
def test_each_fault_is_reported_once_and_nothing_else_is_lost(
    octets: bytes, found: list[tuple[str, int, str]]
) -> None:
    frames = decode(OPENING + octets + ACK)
    wrong = frames[2]
    assert problems(wrong.problems) == found
    assert [frame.problems for frame in frames if frame is not wrong] == [[], [], []]
    assert frames[3].name == "basic.ack"


def test_a_heartbeat_as_printed() -> None:
    octets = b"\x08\0\0\xce"
    assert reported(decode(OPENING + octets + ACK)) == [
        "header",
        "connection.start-ok",
        "heartbeat F-HEARTBEAT-SHAPE",
        "basic.ack",
    ]
    assert reported(decode(ACK + octets)) == ["basic.ack", "heartbeat F-HEARTBEAT-SHAPE"]
    assert reported(decode(ACK + octets + b"\1")) == [
        "basic.ack",
        "heartbeat F-HEARTBEAT-SHAPE",
        "skipped incomplete",
    ]


def test_a_second_protocol_header() -> None:
    assert reported(decode(amqp.header() + amqp.header() + ACK)) == [
        "header",
        "header F-PROTO-HDR-ONCE",
        "basic.ack",
    ]
    assert reported(decode(ACK + amqp.header())) == ["basic.ack", "header F-PROTO-HDR-ONCE"]


# Where the chain breaks


def test_a_wrong_frame_end_behind_a_right_size() -> None:
    wrong = ACK[:-1] + b"\0"
    frames = decode(OPENING + wrong + PUBLISH + CONTENT)
    assert reported(frames)[2:] == ["basic.ack F-FRAME-END", "basic.publish", "content-header", "body"]
    assert problems(frames[2].problems) == [("F-FRAME-END", 20, "")]


def test_a_wrong_size_is_seen_by_the_frame_end() -> None:
    wrong = amqp.frame(amqp.METHOD, 1, amqp.method("basic.ack"), size=40)
    octets = OPENING + wrong + PUBLISH + ACK + ACK
    frames = decode(octets)
    assert reported(frames)[2:] == ["skipped F-FRAME-END", "basic.publish", "basic.ack", "basic.ack"]
    assert frames[2].size == len(wrong)
    one_by_one = decode(*(octets[at : at + 1] for at in range(len(octets))))
    assert [frame_state(frame) for frame in one_by_one] == [frame_state(frame) for frame in frames]


def test_a_size_too_small_is_seen_by_the_frame_end() -> None:
    wrong = amqp.frame(amqp.METHOD, 1, amqp.method("basic.ack"), size=3)
    assert reported(decode(OPENING + wrong + PUBLISH))[2:] == [
        "undecodable F-METHOD-ARGS F-FRAME-END",
        "skipped cut",
        "basic.publish",
    ]


def test_frame_types_that_nobody_has() -> None:
    for kind in (0, 5, 7, 9, 255):
        frames = decode(OPENING + amqp.frame(kind, 3, b"content") + ACK)
        assert reported(frames)[2:] == ["unknown F-FRAME-TYPE", "basic.ack"]
        assert (frames[2].kind, int(frames[2].channel), frames[2].payload) == ("unknown", 3, b"content")
    assert reported(decode(OPENING + amqp.frame(4, 0, b"") + ACK))[2:] == [
        "heartbeat F-FRAME-TYPE",
        "basic.ack",
    ]
    # If the size is wrong, too, or the end, the next frame is searched for.
    assert reported(decode(OPENING + amqp.frame(9, 0, b"content", size=1) + ACK))[2:] == [
        "skipped F-FRAME-TYPE",
        "basic.ack",
    ]
    assert reported(decode(OPENING + amqp.frame(9, 0, ACK) + PUBLISH))[2:] == [
        "skipped F-FRAME-TYPE",
        "basic.ack",
        "skipped cut",
        "basic.publish",
    ]
    assert reported(decode(OPENING + b"\x09" + bytes(5)))[2:] == ["skipped incomplete"]


def test_a_stream_that_begins_with_nothing_known() -> None:
    assert reported(decode(b"GARBAGE!" + b"more of it")) == ["skipped F-PROTO-HDR"]
    assert reported(decode(b"GARBAGE!" + OPENING)) == ["skipped F-PROTO-HDR", "header", "connection.start-ok"]
    assert reported(decode(b"AMQP\0\0\x09")) == ["skipped incomplete"]


def test_the_end_inside_a_frame() -> None:
    for size in range(8, len(PUBLISH)):
        frame = decode(OPENING + PUBLISH[:size])[2]
        assert [problem.code for problem in frame.problems] == ["incomplete"]
        assert (frame.size, frame.declared_size, frame.raw) == (size, len(PUBLISH), PUBLISH[:size])
    frames = decode(OPENING + amqp.frame(amqp.BODY, 1, b"0123456789")[:-4], reason="rst")
    assert (frames[2].payload, frames[2].missing) == (b"0123456", 4)


def test_a_hole_inside_a_frame() -> None:
    body = amqp.frame(amqp.BODY, 1, b"x" * 100)
    frames = decode(PUBLISH + body[:50], 40, body[90:] + ACK)
    assert reported(frames) == ["basic.publish", "body cut", "basic.ack"]
    assert (frames[1].size, frames[1].missing, frames[1].payload) == (108, 58, b"x" * 43)
    frames = decode(PUBLISH + body[:50], 58, ACK)
    assert reported(frames) == ["basic.publish", "body cut", "basic.ack"]
    # What stands where the next frame is due may be none.
    frames = decode(PUBLISH + body[:50], 58, b"other octets" + ACK)
    assert reported(frames) == ["basic.publish", "body cut", "skipped cut", "basic.ack"]
    frames = decode(PUBLISH + body[:50], 60, body + ACK)
    assert reported(frames) == ["basic.publish", "body cut", "skipped cut", "body", "basic.ack"]


def test_a_hole_between_frames() -> None:
    frames = decode(PUBLISH, 30, b"rest of a body\xce" + CONTENT + ACK)
    assert reported(frames) == ["basic.publish", "skipped cut", "content-header", "body", "basic.ack"]
    assert (frames[1].size, frames[1].missing) == (45, 30)
    frames = decode(PUBLISH[:5], 30, ACK)
    assert reported(frames) == ["skipped cut", "basic.ack"]


@pytest.mark.parametrize(
    "found",
    [
        ACK,
        PUBLISH,
        CONTENT,
        amqp.heartbeat(),
        amqp.header(),
        amqp.say("tx.commit", 1),
        amqp.say("connection.tune", 0),
        amqp.frame(amqp.BODY, 1, b"x") + amqp.frame(amqp.BODY, 2, b"y"),
        amqp.frame(amqp.BODY, 1, b"x") + amqp.heartbeat(),
        amqp.say("queue.declare", 1, queue="q", arguments={"x-max-length": ("I", 5)}),
        amqp.say("queue.purge", 65535, queue="ä"),
    ],
)
def test_what_is_credible(found: bytes) -> None:
    """In the middle of other octets, however they come; with any octet of its header wrong it is not."""
    for before in (b"", b"\x01\0\0\0\0\0\0", b"\x03" * 9, bytes(20), b"AMQP"):
        octets = before + found + ACK
        frames = decode(octets, midstream=True)
        assert sum(frame.size for frame in frames if frame.kind == "skipped") == len(before)
        one_by_one = decode(*(octets[at : at + 1] for at in range(len(octets))), midstream=True)
        assert [frame_state(frame) for frame in one_by_one] == [frame_state(frame) for frame in frames]
    assert credible_frame(found, 0, len(found), True) == CREDIBLE


@pytest.mark.parametrize(
    "octets",
    [
        ACK[:-1] + b"\0",
        amqp.say("basic.ack", 0),
        amqp.say("connection.tune", 1),
        amqp.frame(amqp.METHOD, 1, b"\0\x3c\0\x79"),
        amqp.frame(amqp.METHOD, 1, amqp.method("basic.ack") + b"x"),
        amqp.frame(amqp.METHOD, 1, amqp.method("basic.ack")[:-1]),
        amqp.say("queue.purge", 1, queue=b"\xff"),
        amqp.frame(amqp.HEADER, 0, amqp.content_header(0)),
        amqp.frame(amqp.HEADER, 1, amqp.content_header(0, weight=1)),
        amqp.frame(amqp.HEADER, 1, amqp.content_header(0, class_id=50)),
        header_frame("0002"),
        amqp.frame(amqp.BODY, 1, b"alone"),
        amqp.frame(amqp.BODY, 1, b"") + amqp.frame(amqp.BODY, 1, b"x"),
        amqp.frame(amqp.BODY, 0, b"x") + ACK,
        amqp.frame(amqp.BODY, 1, b"x") + amqp.frame(amqp.BODY, 1, b"x", end=b"\0"),
        amqp.frame(amqp.BODY, 1, b"x", end=b"\0") + ACK,
        amqp.frame(amqp.BODY, 1, bytes(70_000)) + ACK,
        amqp.frame(amqp.HEARTBEAT, 1, b""),
        amqp.frame(amqp.HEARTBEAT, 0, b"x"),
        amqp.header(1, 1, 0, 9),
        b"\x04" + amqp.heartbeat()[1:],
    ],
)
def test_what_is_not_credible(octets: bytes) -> None:
    assert credible_frame(octets, 0, len(octets), True) != CREDIBLE
    alone = octets if octets[-4:] != ACK[-4:] else octets[: -len(ACK)]
    assert reported(decode(alone, midstream=True)) == ["skipped cut"]


def test_what_is_wrong_behind_a_guess_accuses_nobody() -> None:
    wrong = amqp.say("basic.ack", 0)
    frames = decode(ACK + wrong + amqp.frame(9, 0, b"") + ACK, midstream=True)
    assert reported(frames) == ["basic.ack", "basic.ack cut", "skipped cut", "basic.ack"]
    assert "not captured" in frames[1].problems[0].reason
    filling = amqp.frame(amqp.BODY, 1, bytes(GUESSED_OCTETS))
    assert reported(decode(ACK + filling + wrong, midstream=True))[2] == "basic.ack F-METHOD-CH-NONZERO"


def test_frames_inside_a_body_are_its_content() -> None:
    inside = amqp.frame(amqp.BODY, 1, ACK + PUBLISH)
    assert reported(decode(PUBLISH + inside + ACK)) == ["basic.publish", "body", "basic.ack"]
    # Of a body whose beginning was not captured nobody can know that.
    frames = decode(PUBLISH, 10, inside[10:] + amqp.say("basic.qos", 1))
    assert reported(frames) == ["basic.publish", "skipped cut", "basic.publish", "skipped cut", "basic.qos"]


def test_large_frames_are_kept_in_part() -> None:
    decoder = Amqp091FrameDecoder()
    size = MAX_KEPT_FRAME + 100_000
    decoder.feed(amqp.frame(amqp.BODY, 1, b"", size=size)[:7], 0, 7)
    block = b"x" * 100_000
    for at in range(0, size, len(block)):
        decoder.feed(block, 0, min(len(block), size - at))
    assert decoder.kept == MAX_KEPT_FRAME
    decoder.feed(b"\xce" + ACK, 0, 1 + len(ACK))
    assert reported(decoder.frames) == ["body limit", "basic.ack"]
    assert (decoder.frames[0].size, decoder.frames[0].missing) == (size + 8, size + 8 - MAX_KEPT_FRAME)
    decoder = Amqp091FrameDecoder()
    decoder.feed(amqp.frame(amqp.BODY, 1, b"x", size=size)[:8], 0, 8)
    decoder.gap(size - 1)
    decoder.feed(b"\0" + ACK, 0, 1 + len(ACK))
    assert reported(decoder.frames) == ["body cut", "basic.ack"]


def test_the_dialect_of_tables_is_reported() -> None:
    octets = amqp.say("queue.declare", 1, arguments={"k": ("s", 5)})
    printed = amqp.frame(
        amqp.METHOD, 1, amqp.method("queue.declare", amqp.PRINTED, arguments={"k": ("s", "text")})
    )
    decoder = Amqp091FrameDecoder()
    for dialect, wanted in (
        (None, [[], []]),
        (RABBITMQ, [[], ["T-LENGTH-BOUNDS"]]),
        (PRINTED, [["T-LENGTH-BOUNDS"], []]),
    ):
        if dialect is not None:
            decoder.speak(dialect)
        decoder.feed(octets + printed, 0, len(octets + printed))
        found = [[problem.code for problem in frame.problems] for frame in decoder.frames]
        assert found == wanted
        decoder.frames.clear()
        decoder = Amqp091FrameDecoder.load(decoder.dump())


def test_a_state_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError):
        Amqp091FrameDecoder.load((99,))
