"""Frames out of octets: the framing chapter's rules, holes, starts in the middle, what cannot be framed."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import pytest
from support import amqp10_encode as amqp
from support.decoded import frame_state, problems

from dissectors.amqp10.composite import Composite, TypeTable
from dissectors.amqp10.frame import FrameDecoder, ProtocolHeader, credible_frame
from dissectors.amqp10.performatives import Attach, Flow, Open, Transfer
from dissectors.amqp10.values import Described, Raw, ULong
from dissectors.interface import Dissector, Frame, Problem
from dissectors.limits import MAX_CREDIBLE_FRAME, MAX_KEPT_FRAME, MAX_WRONG_FRAME, RESYNC_WINDOW


def decode(*pieces: bytes | int, midstream: bool = False, end: str = "fin") -> list[Frame]:
    """The frames of a direction: octets in pieces, an int being a hole of that size."""
    decoder = FrameDecoder(midstream)
    size = 0
    for piece in pieces:
        if isinstance(piece, int):
            decoder.gap(piece)
            size += piece
        else:
            decoder.feed(b"<" + piece + b">", 1, 1 + len(piece))
            size += len(piece)
    if end:
        decoder.end(end)
        check_tiles(decoder.frames, size)
        assert decoder.offset == size
    return decoder.frames


def check_tiles(frames: list[Frame], size: int) -> None:
    """Every octet of the stream belongs to exactly one frame."""
    offset = 0
    for frame in frames:
        assert frame.offset == offset
        assert frame.size > 0
        offset += int(frame.size)
    assert offset == size


def shape(frames: list[Frame]) -> list[tuple[Any, ...]]:
    return [(frame.name, int(frame.offset), int(frame.size)) for frame in frames]


def all_problems(frames: list[Frame]) -> list[tuple[int, str, int, str]]:
    return [(index, *found) for index, frame in enumerate(frames) for found in problems(frame.problems)]


OPEN = amqp.frame(amqp.open_(container_id="c", max_frame_size=65536))
BEGIN = amqp.frame(amqp.begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100), channel=1)
FLOW = amqp.frame(
    amqp.flow(next_incoming_id=0, incoming_window=1, next_outgoing_id=0, outgoing_window=2, handle=0),
    channel=1,
)
EMPTY = amqp.frame()
TRANSFER = amqp.frame(
    amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t", message_format=0),
    amqp.data(b"some content"),
    channel=1,
)
CLOSE = amqp.frame(amqp.close())
SASL_INIT = amqp.sasl_frame(amqp.sasl_init(mechanism="ANONYMOUS"))


# ---- protocol headers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("octets", "name"),
    [
        ("00 01 00 00", "AMQP 1.0"),
        ("02 01 00 00", "TLS"),
        ("03 01 00 00", "SASL"),
        ("00 00 09 01", "AMQP 0-9-1"),
        ("01 01 00 0a", "AMQP 0-10"),
        ("01 01 00 09", "AMQP 0-9"),
        ("01 01 09 00", "AMQP 0-9"),
        ("00 00 09 00", "AMQP 0-9"),
        ("01 01 08 00", "AMQP 0-8"),
        ("01 01 09 01", "AMQP 0-8"),
        ("01 01 00 00", "unknown"),
        ("00 01 01 00", "unknown"),
        ("00 02 00 00", "unknown"),
        ("ff ff ff ff", "unknown"),
    ],
)
def test_protocol_header(octets: str, name: str) -> None:
    numbers = bytes.fromhex(octets)
    (frame,) = decode(b"AMQP" + numbers)
    assert (frame.kind, frame.name, frame.channel, frame.size, frame.missing) == (
        "header",
        "header",
        -1,
        8,
        0,
    )
    assert isinstance(frame.body, ProtocolHeader)
    body = frame.body
    assert bytes([body.protocol_id, body.major, body.minor, body.revision]) == numbers
    assert body.protocol() == name
    assert frame.raw == b"AMQP" + numbers
    assert frame.payload == b""
    assert frame.problems == []


H0, H2, H3 = amqp.AMQP_HEADER, amqp.TLS_HEADER, amqp.SASL_HEADER


@pytest.mark.parametrize(
    ("pieces", "accused"),
    [
        ((H0, OPEN), []),
        ((H3, SASL_INIT, H0, OPEN), []),
        ((H3, SASL_INIT, H0, EMPTY), []),
        ((H0, H0), [1]),
        ((H0, H0, OPEN), [1]),
        ((H3, H3), [1]),
        ((H3, H0, OPEN), [1]),
        ((H2, H0), [1]),
        ((H2, H3), [1]),
        ((H0, OPEN, H0), [2]),
        ((H0, EMPTY, H3), [2]),
        ((H3, SASL_INIT, H0, H0), [3]),
        ((H0, H0, H0), [1, 2]),
        # What was lost may have been the frames in between, and what is found the content of a message.
        ((H3, 20, H0, OPEN), []),
        ((H0, 20, H0, OPEN), []),
        ((H3, OPEN[:9], len(OPEN) - 9, H0), []),
    ],
)
def test_protocol_header_behind_another(pieces: tuple[bytes | int, ...], accused: list[int]) -> None:
    frames = decode(*pieces)
    headers = [index for index, frame in enumerate(frames) if frame.kind == "header"]
    assert len(headers) == sum(piece in (H0, H2, H3) for piece in pieces)
    found = [found for found in all_problems(frames) if found[1] != "cut"]
    assert found == [(index, "C-HDR-VERMATCH", 0, "") for index in accused]


@pytest.mark.parametrize(
    "octets",
    [b"amqp\x00\x01\x00\x00", b"AMQp\x00\x01\x00\x00", b"HELLO WORLD", b"\x00" * 9, b"AMPQ\x00\x01\x00\x00"],
)
def test_a_stream_that_begins_with_neither_header_nor_frame(octets: bytes) -> None:
    (frame,) = decode(octets)
    assert (frame.kind, frame.name, frame.body) == ("skipped", "skipped", None)
    assert problems(frame.problems) == [("C-HDR-FORM", 0, "")]
    frames = decode(octets, OPEN, CLOSE)
    assert shape(frames)[1:] == [
        ("open", len(octets), len(OPEN)),
        ("close", len(octets) + len(OPEN), len(CLOSE)),
    ]


# ---- frames -----------------------------------------------------------------------------------------------

PERFORMATIVES = {
    "open": amqp.open_(container_id="c"),
    "begin": amqp.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1),
    "attach": amqp.attach(name="n", handle=0, role=True),
    "flow": amqp.flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1),
    "transfer": amqp.transfer(handle=0),
    "disposition": amqp.disposition(role=True, first=0),
    "detach": amqp.detach(handle=0),
    "end": amqp.end(),
    "close": amqp.close(),
}
SASL = {
    "sasl-mechanisms": amqp.sasl_mechanisms(sasl_server_mechanisms=["PLAIN"]),
    "sasl-init": amqp.sasl_init(mechanism="PLAIN", initial_response=b"secret"),
    "sasl-challenge": amqp.sasl_challenge(challenge=b""),
    "sasl-response": amqp.sasl_response(response=b""),
    "sasl-outcome": amqp.sasl_outcome(code=0),
}


@pytest.mark.parametrize("extended", [b"", b"\x00" * 4, b"AMQP\x00\x00\x00\x08", b"\xff" * (255 * 4 - 8)])
@pytest.mark.parametrize(("name", "body"), PERFORMATIVES.items())
def test_amqp_frame(name: str, body: bytes, extended: bytes) -> None:
    octets = amqp.frame(body, channel=0xFEDC, extended=extended)
    frame, after = decode(octets, CLOSE)
    assert (frame.kind, frame.name, frame.channel) == ("amqp", name, 0xFEDC)
    assert (frame.offset, frame.size, frame.missing, frame.declared_size) == (0, len(octets), 0, len(octets))
    assert isinstance(frame.body, Composite)
    assert frame.body.definition().name == name
    assert frame.raw == octets
    assert frame.extended_header == extended
    assert (frame.payload, frame.payload_size) == (b"", 0)
    assert frame.problems == []
    assert after.name == "close"
    assert repr(frame) == f"<Frame amqp {name} channel=65244 at 0+{len(octets)}>"


@pytest.mark.parametrize("extended", [b"", b"\xff" * 4])
@pytest.mark.parametrize("ignored", [0, 0xFFFF])
@pytest.mark.parametrize(("name", "body"), SASL.items())
def test_sasl_frame(name: str, body: bytes, ignored: int, extended: bytes) -> None:
    (frame,) = decode(amqp.sasl_frame(body, channel=ignored, extended=extended))
    assert (frame.kind, frame.name, frame.channel) == ("sasl", name, -1)
    assert frame.extended_header == extended
    assert frame.problems == []


@pytest.mark.parametrize("form", ["small", "full", "symbol", "symbol32"])
@pytest.mark.parametrize("name", [*PERFORMATIVES, *SASL])
def test_descriptors_in_every_form(name: str, form: Any) -> None:
    body = {**PERFORMATIVES, **SASL}[name]
    other = amqp.descriptor(body[2], f"amqp:{name}:list", form) + body[3:]
    (frame,) = decode(amqp.frame(b"\x00" + other, type=1 if name in SASL else 0))
    assert frame.name == name
    assert frame.problems == []
    # The same is found in the middle of a stream.
    frames = decode(
        b"\x02\x00\x53", amqp.frame(b"\x00" + other, type=1 if name in SASL else 0), midstream=True
    )
    assert [found.name for found in frames] == ["skipped", name]


@pytest.mark.parametrize("channel", [0, 1, 65535])
@pytest.mark.parametrize("extended", [b"", b"\x00\x53\x10\xc0"])
def test_empty_frame(channel: int, extended: bytes) -> None:
    (frame,) = decode(amqp.frame(channel=channel, extended=extended))
    assert (frame.kind, frame.name, frame.channel, frame.body) == ("amqp", "empty", channel, None)
    assert frame.extended_header == extended
    assert frame.problems == []


@pytest.mark.parametrize("extended", [b"", b"\x00" * 8])
def test_empty_sasl_frame(extended: bytes) -> None:
    (frame,) = decode(amqp.sasl_frame(extended=extended))
    assert (frame.kind, frame.name, frame.channel, frame.body) == ("sasl", "empty", -1, None)
    assert problems(frame.problems) == [("SA-FRAME-EMPTY", 8 + len(extended), "")]


def test_payload() -> None:
    body = amqp.transfer(handle=0, delivery_tag=b"t")
    payload = b"\x00\x53\x75\xa0\x01x" + bytes(range(256))
    (frame,) = decode(amqp.frame(body, payload, extended=b"ext!"))
    assert isinstance(frame.body, Transfer)
    assert frame.payload == payload
    assert frame.payload_size == len(payload)
    assert frame.problems == []


def test_problems_in_a_body_have_their_offset_from_the_frames_first_octet() -> None:
    body = amqp.attach(name="n", handle=0, role=True, source=amqp.source(address=amqp.uint(1)))
    octets = amqp.frame(body, extended=b"1234")
    frame = decode(OPEN, octets, CLOSE)[1]
    at = octets.index(b"\x52\x01")
    assert problems(frame.problems) == [("M-ADDR-TYPE", at, "attach.source.address")]
    assert isinstance(frame.body, Attach)
    assert (frame.body.name, frame.body.handle) == ("n", 0)


@pytest.mark.parametrize(
    ("body", "type", "code", "at", "name"),
    [
        (amqp.accepted(), 0, "F-BODY-PERF", 0, "accepted"),
        (SASL["sasl-init"], 0, "F-BODY-PERF", 0, "sasl-init"),
        (amqp.error(condition="c"), 0, "F-BODY-PERF", 0, "error"),
        (amqp.uint(7), 0, "F-BODY-PERF", 0, "undecodable"),
        (amqp.list_([]), 0, "F-BODY-PERF", 0, "undecodable"),
        (amqp.described(amqp.ulong(0x19), amqp.list_([])), 0, "F-BODY-PERF", 0, "undecodable"),
        (amqp.described(amqp.symbol("x:y"), amqp.list_([])), 0, "F-BODY-PERF", 0, "undecodable"),
        (PERFORMATIVES["open"], 1, "SA-FRAME-BODY", 0, "open"),
        (amqp.binary(b"x"), 1, "SA-FRAME-BODY", 0, "undecodable"),
        (amqp.described(amqp.ulong(0x45), amqp.list_([])), 1, "SA-FRAME-BODY", 0, "undecodable"),
        (SASL["sasl-outcome"] + b"\x40", 1, "SA-FRAME-BODY", len(SASL["sasl-outcome"]), "sasl-outcome"),
        (
            SASL["sasl-outcome"] + SASL["sasl-init"],
            1,
            "SA-FRAME-BODY",
            len(SASL["sasl-outcome"]),
            "sasl-outcome",
        ),
        (amqp.raw("00 53 18 3f"), 0, "T-CODE-UNKNOWN", 3, "undecodable"),
        (amqp.raw("00"), 0, "T-DESC-CTOR", 0, "undecodable"),
        (amqp.raw("00 53 18 c1 01 00"), 0, "T-COMP-LIST", 3, "undecodable"),
        (amqp.raw("00 53 18 c0 05 00"), 0, "T-SIZE-OVERRUN", 0, "close"),
        (amqp.raw("00 53 18 c0 01 01"), 0, "T-LIST-FIT", 0, "close"),
    ],
)
@pytest.mark.parametrize("extended", [b"", b"1234"])
def test_body_that_is_none(body: bytes, type: int, code: str, at: int, name: str, extended: bytes) -> None:
    frame, after = decode(amqp.frame(body, type=type, extended=extended), CLOSE)
    assert [found[:2] for found in problems(frame.problems)] == [(code, 8 + len(extended) + at)]
    assert frame.name == name
    assert frame.kind == ("sasl" if type else "amqp")
    assert after.problems == []


def test_a_fault_inside_does_not_hide_that_the_body_is_no_performative() -> None:
    target = amqp.target(address="q", extra=[None])
    (frame,) = decode(amqp.frame(amqp.described(amqp.ulong(0x19), amqp.list_([amqp.uint(0), target]))))
    assert [found.code for found in frame.problems] == ["T-COMP-EXTRA", "F-BODY-PERF"]
    # But one after which nobody knows what stands there does.
    (frame,) = decode(amqp.frame(amqp.described(amqp.ulong(0x19), amqp.list_([amqp.raw("3f"), target]))))
    assert "F-BODY-PERF" not in [found.code for found in frame.problems]


@pytest.mark.parametrize("name", [name for name in PERFORMATIVES if name != "transfer"])
def test_only_a_transfer_has_a_payload(name: str) -> None:
    body = PERFORMATIVES[name]
    (frame,) = decode(amqp.frame(body, b"\x40"))
    assert problems(frame.problems) == [("F-BODY-PAYLOAD", 8 + len(body), "")]
    assert frame.payload == b"\x40"


def test_a_wrong_size_inside_is_not_said_to_be_a_payload() -> None:
    # The list of the flow is one octet short: the octet behind it is its own.
    body = bytearray(PERFORMATIVES["flow"])
    body[4] -= 1
    (frame,) = decode(amqp.frame(bytes(body)))
    assert len(frame.problems) == 1
    assert frame.problems[0].code in ("T-SIZE-OVERRUN", "T-LIST-FIT")


def test_fault_in_one_frame_leaves_the_next_alone() -> None:
    bad = amqp.frame(amqp.flow(incoming_window=amqp.string("x"), next_outgoing_id=0, outgoing_window=0))
    frames = decode(OPEN, bad, FLOW)
    assert [len(frame.problems) for frame in frames] == [0, 1, 0]
    assert isinstance(frames[2].body, Flow)
    assert frames[2].body.incoming_window == 1


def test_another_dialects_table() -> None:
    # The plain table knows no composite at all.
    decoder = FrameDecoder(table=TypeTable())
    decoder.feed(CLOSE, 0, len(CLOSE))
    (frame,) = decoder.frames
    assert frame.body == Described(ULong(0x18), [])
    again = FrameDecoder.load(decoder.dump(), TypeTable())
    again.feed(CLOSE, 0, len(CLOSE))
    assert again.frames[0].body == Described(ULong(0x18), [])


# ---- secrets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "octets",
    [
        amqp.sasl_frame(amqp.binary(b"swordfish")),
        amqp.sasl_frame(amqp.list_([amqp.string("swordfish")])),
        amqp.sasl_frame(amqp.described(amqp.ulong(0x45), amqp.binary(b"swordfish"))),
        amqp.sasl_frame(amqp.described(amqp.symbol("swordfish"), amqp.list_([]))),
        amqp.sasl_frame(b"swordfish"),
        amqp.sasl_frame(b"\x00\xa3\x7fswordfish"),
        amqp.sasl_frame(amqp.sasl_response(response=b"swordfish"), doff=3),
        amqp.sasl_frame(amqp.sasl_response(response=b"swordfish"), doff=4),
        amqp.sasl_frame(amqp.sasl_response(response=b"swordfish"))[:-3],
        amqp.frame(amqp.sasl_response(response=amqp.string("swordfish"))),
        amqp.sasl_frame(amqp.sasl_response(response=amqp.raw(b"\xb0sword"))),
        amqp.sasl_frame(amqp.open_(container_id=amqp.raw(b"\xb1swordfish"))),
    ],
)
def test_what_may_be_a_credential_is_not_in_what_a_frame_says(octets: bytes) -> None:
    for frame in decode(octets):
        shown = repr(frame) + repr(frame.body) + repr(frame.problems)
        if isinstance(frame.body, Composite):
            shown += repr(frame.body.odd) + repr(frame.body.extra)
        for piece in ("sword", "fish", "0x73", "115", str(0x73776F72), str(0x776F7264)):
            assert piece not in shown


def test_what_a_broken_sasl_frame_still_tells() -> None:
    (frame,) = decode(amqp.sasl_frame(amqp.described(amqp.ulong(0x45), amqp.binary(b"x"))))
    assert frame.body == Described(ULong(0x45), Raw(b""))
    (frame,) = decode(amqp.sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms=amqp.raw("a2 01 78"))))
    assert (
        frame.problems[0].reason
        == "the format code 0xa2 (string in UTF-16) is not in the final specification"
    )


# ---- frame headers that cannot be -------------------------------------------------------------------------

WRONG_HEADERS = [
    ("F-DOFF-MIN", 4, {"doff": 0}),
    ("F-DOFF-MIN", 4, {"doff": 1}),
    ("F-DOFF-RANGE", 4, {"doff": 200}),
    ("F-TYPE-KNOWN", 5, {"type": 2}),
    ("F-TYPE-KNOWN", 5, {"type": 255}),
]


@pytest.mark.parametrize(("code", "at", "wrong"), WRONG_HEADERS)
@pytest.mark.parametrize("body", [b"", amqp.end()])
def test_a_wrong_header_with_a_right_size_costs_one_frame(
    code: str, at: int, wrong: dict[str, int], body: bytes
) -> None:
    bad = amqp.frame(body, channel=1, **wrong)  # type: ignore[arg-type]
    frames = decode(H0, OPEN, bad, FLOW, CLOSE)
    assert [frame.name for frame in frames] == ["header", "open", "undecodable", "flow", "close"]
    assert all_problems(frames) == [(2, code, at, "")]
    assert (frames[2].kind, frames[2].channel, frames[2].body) == ("amqp", -1, None)
    assert frames[2].raw == bad
    # Also as the last frame of the stream, and before a hole.
    frames = decode(H0, OPEN, bad)
    assert [frame.name for frame in frames] == ["header", "open", "undecodable"]
    assert all_problems(frames) == [(2, code, at, "")]
    frames = decode(H0, OPEN, bad, 5, FLOW, CLOSE)
    assert [frame.name for frame in frames] == ["header", "open", "undecodable", "skipped", "flow", "close"]


def test_a_wrong_sasl_header() -> None:
    bad = amqp.sasl_frame(SASL["sasl-init"], doff=1)
    frames = decode(H3, bad, H0)
    assert [(frame.kind, frame.name) for frame in frames] == [
        ("header", "header"),
        ("sasl", "undecodable"),
        ("header", "header"),
    ]
    assert all_problems(frames) == [(1, "F-DOFF-MIN", 4, "")]


WRONG_SIZES = [
    ("F-DOFF-MIN", 4, {"doff": 0, "size": 5000}),
    ("F-DOFF-RANGE", 4, {"doff": 255, "size": 1019}),
    ("F-TYPE-KNOWN", 5, {"type": 2, "size": 2**32 - 1}),
    ("F-TYPE-KNOWN", 5, {"type": 255, "size": MAX_WRONG_FRAME}),
    ("F-TYPE-KNOWN", 5, {"type": 2, "size": 15 + len(FLOW) + 1}),
    ("F-SIZE-MIN", 0, {"size": 7}),
    ("F-SIZE-MIN", 0, {"size": 0}),
]


@pytest.mark.parametrize(("code", "at", "wrong"), WRONG_SIZES)
def test_a_wrong_header_with_a_wrong_size_is_skipped_to_the_next_frame(
    code: str, at: int, wrong: dict[str, int]
) -> None:
    bad = amqp.frame(amqp.end(), **wrong)  # type: ignore[arg-type]
    frames = decode(H0, OPEN, bad, FLOW, CLOSE)
    assert [(frame.kind, frame.name) for frame in frames] == [
        ("header", "header"),
        ("amqp", "open"),
        ("skipped", "skipped"),
        ("amqp", "flow"),
        ("amqp", "close"),
    ]
    assert all_problems(frames) == [(2, code, at, "")]
    assert frames[2].size == len(bad)
    assert (frames[2].missing, frames[2].channel) == (0, -1)


def test_a_wrong_header_whose_size_leads_to_no_frame() -> None:
    bad = amqp.frame(amqp.end(), b"12345678", type=9)
    frames = decode(OPEN, bad + b"garbage.garbage.", FLOW, CLOSE)
    assert [frame.name for frame in frames] == ["open", "undecodable", "skipped", "flow", "close"]
    # That follows from the first fault, maybe.
    assert all_problems(frames) == [(1, "F-TYPE-KNOWN", 5, ""), (2, "cut", 0, "")]
    for wrong in ({"doff": 1, "size": 11}, {"doff": 3, "size": 8}):
        frames = decode(OPEN, amqp.frame(amqp.end(), **wrong), FLOW, CLOSE)  # type: ignore[arg-type]
        assert [frame.name for frame in frames] == ["open", "undecodable", "skipped", "flow", "close"]
        assert len(all_problems(frames)) == 2
        assert len(accusations(frames)) == 1


def test_a_wrong_header_with_a_very_large_size_is_not_waited_for() -> None:
    bad = amqp.frame(amqp.end(), type=9, size=RESYNC_WINDOW)
    decoder = FrameDecoder()
    octets = OPEN + bad + FLOW + CLOSE
    decoder.feed(octets, 0, len(octets))
    assert [frame.name for frame in decoder.frames] == ["open", "skipped", "flow", "close"]


def test_garbage_between_frames() -> None:
    frames = decode(OPEN, b"\x00" * 50, FLOW, FLOW, b"\xff" * 50, CLOSE)
    assert [frame.name for frame in frames] == ["open", "skipped", "flow", "flow", "skipped", "close"]
    assert problems(frames[1].problems) == [("F-SIZE-MIN", 0, "")]
    # The second boundary was a guess: what follows behind it accuses nobody.
    assert problems(frames[4].problems) == [("cut", 0, "")]


@pytest.mark.parametrize("count", range(1, 8))
@pytest.mark.parametrize("octet", [0x00, 0x01])
def test_octets_too_few_for_a_header_between_two_frames(count: int, octet: int) -> None:
    frames = decode(H0, OPEN, bytes([octet]) * count, FLOW, CLOSE)
    assert [frame.name for frame in frames] == ["header", "open", "skipped", "flow", "close"]
    assert all_problems(frames) == [(2, "F-SIZE-TOTAL", 0, "")]
    frames = decode(H0, OPEN, bytes([octet]) * 8, FLOW, CLOSE)
    assert frames[2].problems[0].code in ("F-SIZE-MIN", "F-DOFF-MIN", "F-TYPE-KNOWN")


def test_garbage_to_the_end() -> None:
    frames = decode(OPEN, b"\x00" * 50)
    assert shape(frames) == [("open", 0, len(OPEN)), ("skipped", len(OPEN), 50)]


def test_a_peer_is_accused_again_long_after_a_guess() -> None:
    decoder = FrameDecoder()
    decoder.feed(OPEN, 0, len(OPEN))
    decoder.gap(3)
    big = amqp.frame(amqp.transfer(handle=0), size=MAX_CREDIBLE_FRAME // 2)
    decoder.feed(FLOW + FLOW, 0, 2 * len(FLOW))
    for size in (MAX_CREDIBLE_FRAME // 2, MAX_CREDIBLE_FRAME // 2):
        decoder.feed(big, 0, len(big))
        decoder.gap(size - len(big) - 8)  # not to its end: then the header behind it would be in doubt
        decoder.feed(bytes(8), 0, 8)
        decoder.feed(FLOW, 0, len(FLOW))
    decoder.feed(bytes(8), 0, 8)
    decoder.end("fin")
    assert problems(decoder.frames[-1].problems) == [("F-SIZE-MIN", 0, "")]


# ---- frames that are very large, or never end -------------------------------------------------------------


def test_four_gigabytes_are_passed_by_with_bounded_memory() -> None:
    decoder = FrameDecoder()
    head = amqp.frame(amqp.transfer(handle=0, delivery_tag=b"t"), b"payload", size=2**32 - 1)
    decoder.feed(head, 0, len(head))
    decoder.gap(2**32 - 1 - len(head) - 4)
    decoder.feed(b"last" + FLOW, 0, 4 + len(FLOW))
    decoder.end("fin")
    transfer, flow = decoder.frames
    assert (transfer.name, transfer.size) == ("transfer", 2**32 - 1)
    assert transfer.missing == 2**32 - 1 - len(head)
    assert transfer.declared_size == 2**32 - 1
    assert transfer.payload == b"payload"
    assert problems(transfer.problems) == [("cut", len(head), "")]
    assert (flow.name, flow.offset, flow.problems) == ("flow", 2**32 - 1, [])


def test_of_a_frame_beyond_the_bound_the_front_is_kept() -> None:
    size = MAX_KEPT_FRAME + 3_000_000
    decoder = FrameDecoder()
    head = amqp.frame(amqp.transfer(handle=5), size=size)
    decoder.feed(head, 0, len(head))
    piece = bytes(1_000_000)
    left = size - len(head)
    while left > 0:
        decoder.feed(piece, 0, min(left, len(piece)))
        left -= len(piece)
        assert decoder.kept <= MAX_KEPT_FRAME
        assert sum(map(len, decoder.parts)) == decoder.kept
    decoder.feed(FLOW, 0, len(FLOW))
    transfer, flow = decoder.frames
    assert (transfer.size, transfer.missing) == (size, 3_000_000)
    assert isinstance(transfer.body, Transfer)
    assert transfer.body.handle == 5
    assert len(transfer.raw) == MAX_KEPT_FRAME
    assert problems(transfer.problems) == [("limit", MAX_KEPT_FRAME, "")]
    assert flow.problems == []


def test_a_frame_in_single_octets_is_kept_in_few_pieces() -> None:
    decoder = FrameDecoder()
    octets = amqp.frame(amqp.transfer(handle=5), bytes(50_000))
    for at in range(len(octets) - 1):
        decoder.feed(octets, at, at + 1)
    assert len(decoder.parts) <= 50_000 // 1000
    decoder.feed(octets, len(octets) - 1, len(octets))
    assert frame_state(decoder.frames[0]) == frame_state(decode(octets)[0])


def test_endless_garbage_is_not_kept() -> None:
    decoder = FrameDecoder(True)
    for piece in (
        b"\x00" * 100_000,
        b"\xff" * 100_000,
        b"\x02" * 100_000,
        b"AMQP" * 25_000,
        b"\0\0\1\0\2\0" * 10_000,
    ):
        for _ in range(3):
            decoder.feed(piece, 0, len(piece))
            assert decoder.kept <= RESYNC_WINDOW
    assert decoder.frames == []
    decoder.end("fin")
    check_tiles(decoder.frames, 3 * (400_000 + 60_000))
    assert len(decoder.frames) == 1


@pytest.mark.parametrize("size", [17, 300, RESYNC_WINDOW, MAX_CREDIBLE_FRAME])
def test_a_frame_that_claims_much_while_searching_is_held_back_only_so_far(size: int) -> None:
    # A credible beginning of a list that never ends.
    start = size.to_bytes(4) + b"\x02\x00\x00\x00" + b"\x00\x53\x14\xd0" + (size - 17).to_bytes(4)
    decoder = FrameDecoder(True)
    decoder.feed(start, 0, len(start))
    for _ in range(200):
        decoder.feed(b"\xa1" * 1000, 0, 1000)
        assert decoder.kept <= RESYNC_WINDOW + 1000
    decoder.end("fin")
    assert [frame.name for frame in decoder.frames] == ["skipped"]


def test_thousands_of_breaks_in_one_piece() -> None:
    # A frame, the header of another, and garbage, again and again: neither stack nor time give in.
    octets = (FLOW + EMPTY + b"\x00" * 9) * 3000
    frames = decode(octets)
    assert len(frames) == 3 * 3000
    assert {frame.name for frame in frames} == {"flow", "empty", "skipped"}


# ---- the end of the stream --------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["fin", "rst", "capture"])
def test_stream_that_ends_inside_a_frame(reason: str) -> None:
    for cut in range(1, len(TRANSFER)):
        frames = decode(OPEN, TRANSFER[:cut], end=reason)
        assert len(frames) == 2
        frame = frames[1]
        assert (frame.offset, frame.size) == (len(OPEN), cut)
        assert problems(frame.problems) == [("incomplete", cut, "")]
        assert reason in frame.problems[0].reason
        if cut < 8:
            assert (frame.kind, frame.missing) == ("skipped", 0)
        else:
            assert (frame.kind, frame.channel, frame.missing) == ("amqp", 1, len(TRANSFER) - cut)
            assert frame.raw == TRANSFER[:cut]
            assert frame.declared_size == len(TRANSFER)
        if cut >= len(TRANSFER) - len(amqp.data(b"some content")):
            assert isinstance(frame.body, Transfer)
            assert frame.body.delivery_tag == b"t"
            assert frame.payload == TRANSFER[len(TRANSFER) - len(amqp.data(b"some content")) : cut]
            assert repr(frame.body) == repr(decode(TRANSFER)[0].body)


def test_stream_that_ends_between_frames() -> None:
    assert [frame.problems for frame in decode(H0, OPEN, end="rst")] == [[], []]
    assert decode() == []
    assert decode(midstream=True) == []


def test_a_genuine_fault_in_a_frame_cut_later_is_still_reported() -> None:
    body = amqp.transfer(handle=amqp.string("no"), delivery_tag=b"t")
    octets = amqp.frame(body, b"payload")
    (frame,) = decode(octets[:-3])
    assert problems(frame.problems) == [
        ("T-COMP-TYPE", 14, "transfer.handle"),
        ("incomplete", len(octets) - 3, ""),
    ]
    # Cut inside the performative, only what was captured whole is accused.
    (frame,) = decode(octets[:20])
    assert problems(frame.problems) == [("T-COMP-TYPE", 14, "transfer.handle"), ("incomplete", 20, "")]


# ---- holes ------------------------------------------------------------------------------------------------

CONVERSATION = [
    H3,
    SASL_INIT,
    H0,
    OPEN,
    BEGIN,
    EMPTY,
    amqp.frame(
        amqp.attach(name="link", handle=0, role=False, source=amqp.source(address="q"), target=amqp.target()),
        channel=1,
    ),
    FLOW,
    TRANSFER,
    EMPTY,
    amqp.frame(
        amqp.transfer(handle=0, delivery_id=1, delivery_tag=b"u", more=True),
        b"\x00\x53\x75\xa0\x40" + b"x" * 20,
        channel=1,
    ),
    amqp.frame(amqp.transfer(handle=0), b"y" * 44, channel=1),
    amqp.frame(amqp.disposition(role=False, first=0, last=1, settled=True), channel=1),
    CLOSE,
]
STREAM = b"".join(CONVERSATION)
STARTS = [0, *itertools.accumulate(map(len, CONVERSATION))]
WHOLE = [frame_state(frame) for frame in decode(STREAM)]


def test_the_conversation_is_what_it_should_be() -> None:
    assert [state[0] for state in WHOLE] == STARTS[:-1]
    assert all(state[-1] == [] for state in WHOLE)


def accusations(frames: list[Frame]) -> list[Problem]:
    return [found for frame in frames for found in frame.problems if found.code.isupper()]


@pytest.mark.parametrize("start", range(1, len(STREAM)))
def test_start_in_the_middle(start: int) -> None:
    frames = decode(STREAM[start:], midstream=True)
    states = [frame_state(frame) for frame in frames]
    # Every frame that is whole is found, as it is when all is seen; what lies before is skipped.
    wanted = [state for state in WHOLE if state[0] >= start]
    if start > STARTS[-2]:
        assert [frame.name for frame in frames] == ["skipped"]
        return
    skipped = wanted[0][0] - start
    assert [(state[0] + start, *state[1:]) for state in states if state[2] != "skipped"] == wanted
    assert [(frame.offset, frame.size) for frame in frames if frame.kind == "skipped"] == (
        [(0, skipped)] if skipped else []
    )
    assert accusations(frames) == []


SIZES = [*range(1, 18), 21, 29, 40, 55, 77, 100, 150, 200, 300]


@pytest.mark.parametrize("size", SIZES)
def test_a_hole_at_every_place(size: int) -> None:
    for start in range(1, len(STREAM) - size):
        frames = decode(STREAM[:start], size, STREAM[start + size :])
        check_hole(frames, start, start + size)


@pytest.mark.parametrize("start", [4, STARTS[6] + 9, STARTS[8] + 30, STARTS[10]])
def test_a_hole_of_every_size(start: int) -> None:
    for end in range(start + 1, len(STREAM)):
        frames = decode(STREAM[:start], end - start, STREAM[end:])
        check_hole(frames, start, end)


def check_hole(frames: list[Frame], start: int, end: int) -> None:
    """Frames wholly outside of the hole are all there, and what it touched is said, accusing nobody."""
    by_offset = {frame_state(frame)[0]: frame_state(frame) for frame in frames}
    for state, begin, finish in zip(WHOLE, STARTS, STARTS[1:], strict=False):
        if finish <= start or begin >= end:
            assert by_offset[begin] == state, (start, end)
    assert accusations(frames) == []
    missing = 0
    for frame in frames:
        missing += frame.missing
        codes = [found.code for found in frame.problems]
        assert codes == (["cut"] if frame.missing or frame.kind == "skipped" else []), (start, end)
        if frame.kind != "skipped":
            assert frame.offset in STARTS
            assert frame.size == len(CONVERSATION[STARTS.index(int(frame.offset))])
    # What was begun before the hole and goes on behind it may have octets behind the hole that count as lost.
    assert missing >= end - start


def test_a_hole_in_a_payload_loses_only_that_payload() -> None:
    frame_start = STARTS[8]
    payload_start = frame_start + len(TRANSFER) - len(amqp.data(b"some content"))
    for start in range(payload_start, STARTS[9]):
        for end in range(start + 1, STARTS[9] + 1):
            frames = decode(STREAM[:start], end - start, STREAM[end:])
            assert [frame.name for frame in frames] == [state[3] for state in WHOLE]
            frame = frames[8]
            assert repr(frame.body) == WHOLE[8][5]
            # What is kept of the frame is its front.
            assert frame.missing == STARTS[9] - start
            assert frame.payload == STREAM[payload_start:start]
            assert [frame_state(other) for other in frames[:8] + frames[9:]] == WHOLE[:8] + WHOLE[9:]


def test_two_holes_in_one_frame() -> None:
    big = amqp.frame(amqp.transfer(handle=0), b"p" * 100)
    frames = decode(OPEN, big[:30], 10, big[40:50], 20, big[70:], FLOW)
    assert [frame.name for frame in frames] == ["open", "transfer", "flow"]
    assert frames[1].missing == len(big) - 30
    assert all_problems(frames) == [(1, "cut", 30, "")]


def test_a_hole_that_ends_where_the_frame_ends() -> None:
    frames = decode(OPEN, TRANSFER[:20], len(TRANSFER) - 20, FLOW, CLOSE)
    assert [frame.name for frame in frames] == ["open", "transfer", "flow", "close"]
    # If no frame stands behind it after all, nobody is accused of that.
    frames = decode(OPEN, TRANSFER[:20], len(TRANSFER) - 20, b"\x00" * 12, FLOW, CLOSE)
    assert [frame.name for frame in frames] == ["open", "transfer", "skipped", "flow", "close"]
    assert accusations(frames) == []


def test_a_hole_over_the_end_of_a_frame_belongs_to_both() -> None:
    frames = decode(OPEN, TRANSFER[:20], len(TRANSFER) - 20 + 7, b"rest", FLOW, CLOSE)
    assert shape(frames)[1:3] == [
        ("transfer", len(OPEN), len(TRANSFER)),
        ("skipped", len(OPEN) + len(TRANSFER), 11),
    ]
    assert (frames[1].missing, frames[2].missing) == (len(TRANSFER) - 20, 7)


def test_a_hole_inside_a_frame_header() -> None:
    frames = decode(OPEN, FLOW[:5], 3, FLOW[8:], CLOSE, EMPTY)
    assert shape(frames) == [
        ("open", 0, len(OPEN)),
        ("skipped", len(OPEN), len(FLOW)),
        ("close", len(OPEN) + len(FLOW), len(CLOSE)),
        ("empty", len(OPEN) + len(FLOW) + len(CLOSE), 8),
    ]
    assert frames[1].missing == 3


def test_a_hole_at_the_very_start_and_at_the_end() -> None:
    frames = decode(10, OPEN, CLOSE)
    assert [frame.name for frame in frames] == ["skipped", "open", "close"]
    frames = decode(OPEN, 10)
    assert [(frame.name, frame.missing) for frame in frames] == [("open", 0), ("skipped", 10)]
    assert [(frame.name, frame.missing) for frame in decode(10)] == [("skipped", 10)]


def test_holes_next_to_each_other_are_one() -> None:
    frames = decode(OPEN, 3, 4, b"", 5, FLOW, CLOSE)
    assert [(frame.name, frame.missing) for frame in frames] == [
        ("open", 0),
        ("skipped", 12),
        ("flow", 0),
        ("close", 0),
    ]


def test_the_last_frame_before_a_second_hole_is_found() -> None:
    # Nothing follows it that could confirm it: the hole says that nothing will.
    frames = decode(OPEN, 9, FLOW, 9, CLOSE)
    assert [frame.name for frame in frames] == ["open", "skipped", "flow", "skipped", "close"]


def test_a_frame_cut_by_a_second_hole_is_believed_if_its_performative_is_whole() -> None:
    frames = decode(OPEN, 9, TRANSFER[:-10], 10, CLOSE)
    assert [frame.name for frame in frames] == ["open", "skipped", "transfer", "close"]
    assert frames[2].missing == 10
    frames = decode(OPEN, 9, FLOW[:-3], 9, CLOSE)
    assert [frame.name for frame in frames] == ["open", "skipped", "close"]


# ---- searching --------------------------------------------------------------------------------------------


def embed(message: bytes) -> bytes:
    return amqp.frame(amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t"), amqp.data(message, "widest"))


def test_frames_inside_a_payload_are_payload() -> None:
    octets = embed(STREAM)
    frames = decode(OPEN, octets, FLOW)
    assert [frame.name for frame in frames] == ["open", "transfer", "flow"]
    assert frames[1].payload.endswith(STREAM)


def test_frames_inside_a_payload_found_after_a_hole_accuse_nobody() -> None:
    octets = OPEN + embed(STREAM + b"and then other content, for some length") + FLOW + CLOSE
    for start in range(len(OPEN) + 1, len(octets) - len(FLOW) - len(CLOSE)):
        frames = decode(octets[:5], start - 5, octets[start:])
        assert accusations(frames) == []
        assert [frame.name for frame in frames][-2:] == ["flow", "close"]


def test_a_frame_inside_a_payload_that_is_taken_for_one_accuses_nobody() -> None:
    octets = embed(b"....." + FLOW + b"other content")
    frames = decode(OPEN, 9, octets[30:], CLOSE, EMPTY)
    assert [frame.name for frame in frames] == ["open", "skipped", "flow", "skipped", "close", "empty"]
    assert accusations(frames) == []


@pytest.mark.parametrize("count", [1, 3, 4, 7])
def test_empty_frames_are_believed_before_a_frame_or_in_a_row(count: int) -> None:
    frames = decode(b"\x01\x02\x03", EMPTY * count, CLOSE, midstream=True)
    assert [frame.name for frame in frames] == ["skipped"] + ["empty"] * count + ["close"]
    frames = decode(b"\x01\x02\x03", EMPTY * count + b"other content", CLOSE, midstream=True)
    believed = count >= 4
    assert [frame.name for frame in frames] == ["skipped"] + (
        ["empty"] * count + ["skipped"] if believed else []
    ) + ["close"]


def test_an_idle_connection_is_recognised_by_its_empty_frames() -> None:
    decoder = FrameDecoder(True)
    for _ in range(4):
        assert decoder.frames == []
        decoder.feed(EMPTY, 0, 8)
    assert [frame.name for frame in decoder.frames] == ["empty"] * 4
    assert [frame.name for frame in decode(EMPTY, midstream=True)] == ["empty"]


@pytest.mark.parametrize("header", [H0, H2, H3])
def test_a_protocol_header_is_a_boundary(header: bytes) -> None:
    frames = decode(b"some content", header, midstream=True)
    assert [frame.name for frame in frames] == ["skipped", "header"]


@pytest.mark.parametrize(
    "header", [b"AMQP\x00\x00\x09\x01", b"AMQP\x01\x01\x00\x0a", b"AMQP\x00\x01\x00\x01", b"AMQPAMQP"]
)
def test_a_header_of_another_protocol_inside_a_stream_is_content(header: bytes) -> None:
    frames = decode(b"some content", header, CLOSE, EMPTY, midstream=True)
    assert [frame.name for frame in frames] == ["skipped", "close", "empty"]


@pytest.mark.parametrize(
    "near",
    [
        amqp.frame(amqp.accepted()),  # no performative
        amqp.frame(amqp.sasl_outcome(code=0)),  # no SASL frame's body in an AMQP frame
        amqp.sasl_frame(amqp.close()),
        amqp.sasl_frame(amqp.sasl_outcome(code=0), b"\x40"),
        amqp.frame(amqp.close(), b"\x40"),  # only a transfer has a payload
        amqp.frame(amqp.open_()),  # a fault
        amqp.frame(amqp.flow(incoming_window=amqp.string("x"), next_outgoing_id=0, outgoing_window=0)),
        amqp.frame(amqp.raw("00 53 18 c0 02 01 40 40")),
        amqp.frame(amqp.raw("00 53 18 c1 01 00")),
        amqp.frame(amqp.raw("00 53 19 c0 01 00")),
        amqp.frame(amqp.raw("00 54 18 c0 01 00")),
        amqp.frame(amqp.raw("40 40 40 40")),
        amqp.frame(amqp.raw("00 53 18")),
        amqp.frame(amqp.close(), size=13),
        amqp.frame(amqp.close(), size=MAX_CREDIBLE_FRAME + 1),
        amqp.frame(amqp.close(), doff=3),
        amqp.frame(amqp.close(), type=2),
    ],
)
def test_what_is_nearly_a_frame_is_no_boundary(near: bytes) -> None:
    frames = decode(b"content", near, OPEN, CLOSE, midstream=True)
    assert [frame.name for frame in frames] == ["skipped", "open", "close"]


def test_a_frame_with_more_fields_than_defined_is_a_boundary_all_the_same() -> None:
    # Peers in the field do that.
    frames = decode(b"content", amqp.frame(amqp.close(extra=[None])), CLOSE, midstream=True)
    assert [frame.name for frame in frames] == ["skipped", "close", "close"]


def test_a_large_transfer_is_a_boundary_before_it_has_come_to_its_end() -> None:
    decoder = FrameDecoder(True)
    octets = b"xyz" + amqp.frame(amqp.transfer(handle=0), bytes(100), size=RESYNC_WINDOW)
    decoder.feed(octets, 0, len(octets))
    assert [frame.name for frame in decoder.frames] == ["skipped"]
    assert not decoder.lost


def test_how_many_octets_a_verdict_needs() -> None:
    # Ever more of a frame: the answer is always how many octets will tell more, until it is known.
    octets = TRANSFER + FLOW
    known = 0
    while known < len(octets):
        verdict = credible_frame(octets, 0, known)
        if verdict < 0:
            break
        assert known < verdict <= len(octets)
        for fewer in range(known, verdict):
            assert credible_frame(octets, 0, fewer) > fewer or fewer < 4
        known = int(verdict)
    # The performative: all that has to be there.
    assert known == len(TRANSFER) - len(amqp.data(b"some content"))
    assert credible_frame(octets, 1, len(octets)) == 0


# ---- TLS --------------------------------------------------------------------------------------------------

RECORDS = {
    "client hello": bytes.fromhex("16 0301 01fc 01 0001f8 0303") + bytes(100),
    "client hello that looks like a frame header": bytes.fromhex("16 0301 0002 01 00 00") + bytes(100),
    "server hello": bytes.fromhex("16 0303 007a 02 000076 0303") + bytes(100),
    "alert": bytes.fromhex("15 0303 0002 0228") + bytes(4),
    "application data": bytes.fromhex("17 0303 0100") + bytes(range(256)),
    "change cipher spec": bytes.fromhex("14 0303 0001 01 16 0303 0028") + bytes(40),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_behind_the_choice_of_tls_all_is_ciphertext(record: bytes) -> None:
    frames = decode(H2, record, FLOW, 7, OPEN)
    assert [(frame.kind, frame.name) for frame in frames] == [("header", "header"), ("skipped", "tls")]
    assert frames[1].size == len(record) + len(FLOW) + 7 + len(OPEN)
    assert frames[1].missing == 7
    assert frames[1].problems == []


def test_tls_in_single_octets_and_cut() -> None:
    record = RECORDS["alert"][:7]
    for size in range(2, 8):
        frames = decode(H2, *(record[at : at + 1] for at in range(size)))
        assert shape(frames) == [("header", 0, 8), ("tls", 8, size)]
        assert frames[1].problems == []


def test_a_hole_behind_the_choice_of_tls_is_ciphertext_too() -> None:
    frames = decode(H2, 100, RECORDS["application data"])
    assert [(frame.name, frame.missing) for frame in frames] == [("header", 0), ("tls", 100)]


def test_a_tls_header_answered_by_another_layer() -> None:
    frames = decode(H2, H0, OPEN)
    assert [frame.name for frame in frames] == ["header", "header", "open"]
    frames = decode(H2, CLOSE)
    assert [frame.name for frame in frames] == ["header", "close"]


def test_without_a_tls_header_there_is_no_tls() -> None:
    frames = decode(H0, RECORDS["server hello"])
    assert [frame.name for frame in frames] == ["header", "skipped"]
    assert problems(frames[1].problems) == [("F-TYPE-KNOWN", 5, "")]


# ---- between processes ------------------------------------------------------------------------------------


def test_a_state_of_another_version_is_refused() -> None:
    state = FrameDecoder().dump()
    with pytest.raises(ValueError, match="version"):
        FrameDecoder.load((99, *state[1:]))
    with pytest.raises(ValueError, match="version"):
        FrameDecoder.load(())


def test_dumped_state_is_plain() -> None:
    decoder = FrameDecoder()
    decoder.feed(H0 + OPEN + TRANSFER[:20], 0, 8 + len(OPEN) + 20)
    plain(decoder.dump())
    assert decoder.dump() == FrameDecoder.load(decoder.dump()).dump()
    assert Dissector().dump() == ()


def plain(value: object) -> None:
    assert value is None or type(value) in (int, str, bytes, bool, tuple)
    if isinstance(value, tuple):
        for item in value:
            plain(item)


def test_the_offset_says_what_is_given_out() -> None:
    decoder = FrameDecoder()
    decoder.offset = 1000
    octets = OPEN + FLOW[:10]
    decoder.feed(octets, 0, len(octets))
    assert decoder.offset == 1000 + len(OPEN)
    assert decoder.frames[0].offset == 1000
    assert isinstance(decoder.frames[0].body, Open)


def test_what_was_decoded_is_let_go() -> None:
    """A reader gives a megabyte of the file at a time: one for each idle connection would be the file."""
    octets = amqp.AMQP_HEADER + OPEN + amqp.frame(amqp.begin())
    decoder = FrameDecoder(False)
    before = sys.getrefcount(octets)
    decoder.feed(octets, 0, len(octets) - 3)
    assert len(decoder.frames) == 2
    decoder.frames.clear()
    assert sys.getrefcount(octets) == before
