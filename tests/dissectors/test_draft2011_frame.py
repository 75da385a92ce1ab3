"""The dialect of a direction, by its first frames, and the messages of the draft."""

from __future__ import annotations

import pytest
from support import amqp10_encode as final
from support import draft2011_encode as draft

from dissectors.amqp10.frame import FrameDecoder
from dissectors.amqp10.values import Symbol
from dissectors.amqp10_draft2011 import performatives
from dissectors.amqp10_draft2011.frame import DialectDecoder
from dissectors.amqp10_draft2011.message import DraftAssembler, DraftMessage
from dissectors.amqp10_draft2011.names import DRAFT_2011, FINAL_2011

HEADER = final.AMQP_HEADER

OPENINGS = {
    "open": draft.frame(draft.open_(container_id="c", hostname="h", max_frame_size=4096)),
    "open with options": draft.frame(draft.open_(options={}, container_id="c", max_frame_size=70000)),
    "begin": draft.frame(draft.begin(next_outgoing_id=1, incoming_window=2, outgoing_window=3, options={})),
    "attach": draft.frame(
        draft.attach(name="l", handle=0, role=True, source=draft.source(address="a"), target=draft.target())
    ),
    "transfer": draft.transfer_frames([draft.data(b"x")], 4096, handle=0, delivery_tag=b"t", transfer_id=0)[
        0
    ],
    "disposition": draft.frame(draft.disposition(role=True, first=0, settled=True)),
    "mechanisms": draft.sasl_frame(draft.sasl_mechanisms(sasl_server_mechanisms=["PLAIN", "X"])),
    "init": draft.sasl_frame(draft.sasl_init(mechanism="PLAIN", initial_response=b"\0u\0p")),
    "outcome": draft.sasl_frame(draft.sasl_outcome(code=0)),
}


def decode(octets: bytes, decoder: FrameDecoder | None = None) -> FrameDecoder:
    decoder = decoder or DialectDecoder(False)
    decoder.feed(octets, 0, len(octets))
    return decoder


@pytest.mark.parametrize("frame", OPENINGS.values(), ids=list(OPENINGS))
def test_the_first_frame_of_the_draft_decides(frame: bytes) -> None:
    decoder = decode(HEADER + frame)
    assert (decoder.dialect, decoder.undecided, decoder.suspect) == (DRAFT_2011, False, False)
    body = decoder.frames[1].body
    assert type(body).__module__ == performatives.__name__
    assert decoder.frames[1].problems == []


@pytest.mark.parametrize(
    "body",
    [
        final.open_(container_id="c"),
        final.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1),
        final.flow(next_incoming_id=1, incoming_window=1, next_outgoing_id=1, outgoing_window=1),
        final.close(error=final.error(condition="amqp:internal-error")),
        # A mandatory first field is missing.
        final.open_(hostname="h", max_frame_size=4096),
        final.attach(handle=0, role=True),
        final.transfer(delivery_id=0, delivery_tag=b"t", message_format=0) + b"\0Su\xa0\1x",
        final.disposition(first=0, last=1, settled=True),
        final.detach(closed=True),
        final.sasl_init(initial_response=b"x", hostname="h"),
    ],
    ids=str,
)
def test_the_first_frame_of_the_final_specification_decides(body: bytes) -> None:
    decoder = decode(HEADER + final.frame(body))
    assert (decoder.dialect, decoder.undecided) == ("", False)
    plain = decode(HEADER + final.frame(body), FrameDecoder(False))
    assert decoder.frames[1].body == plain.frames[1].body


def test_a_frame_that_does_not_decide_is_decoded_again() -> None:
    """Of the final specification this would be an open without container-id."""
    octets = HEADER + draft.frame(draft.open_(container_id="c"))
    decoder = decode(octets)
    assert (decoder.undecided, decoder.suspect) == (True, True)
    second = draft.frame(draft.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), channel=0)
    taken = decoder.frames
    decoder.frames = []
    for _ in range(2):
        other = DialectDecoder.load(decoder.dump())
        decode(second, other)
        assert other.dialect == DRAFT_2011
        again = other.decode_again(taken[1])
        assert isinstance(again.body, performatives.Open)
        assert again.body.container_id == "c"
        assert again.offset == 8
        assert other.offset == len(octets) + len(second)
    together = decode(octets + second)
    assert isinstance(together.frames[1].body, performatives.Open)
    decode(final.frame(final.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)), decoder)
    assert (decoder.dialect, decoder.undecided) == ("", False)
    assert decoder.decode_again(taken[1]).body == taken[1].body


def test_nobody_waits_for_ever() -> None:
    decoder = decode(HEADER + draft.frame(draft.open_(container_id="c")))
    decoder.settle_dialect(False)
    assert (decoder.dialect, decoder.unawaited, decoder.suspect) == ("", True, False)


def test_frames_of_an_unknown_dialect_are_marked() -> None:
    """Also those that fit both dialects, and after a move to another process."""
    decoder = decode(HEADER + draft.frame(draft.open_(container_id="c")))
    decoder.settle_dialect(True)
    decode(draft.frame(draft.end()), decoder)
    moved = DialectDecoder.load(decoder.dump())
    decode(draft.frame(draft.end()), moved)
    assert [one.assumed for one in decoder.frames] == [False, True, True]
    assert [one.assumed for one in moved.frames] == [True]


def test_the_dialect_may_be_forced() -> None:
    decoder = DialectDecoder(False)
    decoder.take_for(DRAFT_2011)
    decode(HEADER + draft.frame(draft.open_(container_id="c")), decoder)
    assert isinstance(decoder.frames[1].body, performatives.Open)
    decoder = DialectDecoder(False)
    decoder.take_for(FINAL_2011)
    assert decode(HEADER + OPENINGS["open"], decoder).dialect == ""


def test_the_draft_in_the_middle_of_a_stream() -> None:
    decoder = DialectDecoder(True)
    decode(b"\0\0\x02\0\x02\0\0\0middle of a frame" + OPENINGS["attach"] + OPENINGS["transfer"], decoder)
    assert [frame.name for frame in decoder.frames] == ["skipped", "attach", "transfer"]
    assert decoder.dialect == DRAFT_2011


def test_octets_behind_a_performative_of_the_draft() -> None:
    transfer = draft.transfer(handle=0, delivery_tag=b"t", transfer_id=0, message_format=0)
    decoder = decode(HEADER + OPENINGS["open"] + draft.frame(transfer + b"\0Su\xa0\1x"))
    assert [problem.code for problem in decoder.frames[2].problems] == ["F-BODY-PAYLOAD"]


def messages(frames: list[bytes], largest: int = 1 << 20) -> list[DraftMessage]:
    """What these frames carry, with the assembler put away and taken up again after each."""
    decoder = decode(HEADER + OPENINGS["open"] + b"".join(frames))
    assembler = DraftAssembler()
    found = []
    for frame in decoder.frames:
        message = assembler.take(frame)
        assembler = DraftAssembler.load(assembler.dump())
        if message is not None:
            found.append(message)
    return found


SECTIONS = [
    draft.header(durable=True, ttl=5),
    draft.properties(message_id=b"m", content_type="text/plain"),
    draft.amqp_map([("k", draft.uint(1))]),
    draft.data(b"d" * 9000),
    draft.amqp_data(draft.uint(1), "two"),
    draft.amqp_list([draft.boolean(True)]),
    draft.footer(),
]


@pytest.mark.parametrize("max_frame_size", [512, 4096, 100_000])
def test_a_message_in_fragments(max_frame_size: int) -> None:
    frames = draft.transfer_frames(SECTIONS, max_frame_size, handle=0, delivery_tag=b"t", transfer_id=0)
    (message,) = messages(frames)
    assert message.complete
    assert message.size == sum(len(section.octets) for section in SECTIONS)
    assert [section.octets for section in message.sections] == [section.octets for section in SECTIONS]
    names = ["header", "properties", "amqp-map", "data", "amqp-data", "amqp-list", "footer"]
    assert [section.name for section in message.sections] == names
    values = message.values()
    assert message.problems == []
    assert values[3] == b"d" * 9000
    assert values[4] == [1, "two"]
    assert values[5] == [True]
    header, properties = values[0], message.properties()
    assert isinstance(header, performatives.Header)
    assert properties is not None
    assert (header.durable, header.ttl) == (True, 5)
    assert (properties.message_id, properties.content_type) == (b"m", Symbol("text/plain"))
    assert isinstance(values[6], performatives.Footer)
    assert not message.shortened(100).complete
    assert len(message.shortened(100).octets) == 100


def test_a_message_without_its_first_transfer_is_not_complete() -> None:
    frames = draft.transfer_frames(SECTIONS, 512, handle=0, delivery_tag=b"t", transfer_id=0)
    (message,) = messages(frames[1:])
    assert not message.complete
    (message,) = messages(frames[:3] + frames[4:])
    assert not message.complete


@pytest.mark.parametrize(
    ("section", "code"),
    [
        (draft.Section(7, b"x"), "M-SECT-KNOWN"),
        (draft.Section(0, draft.uint(1)), "M-SECT-TYPE"),
        (draft.Section(5, draft.list_([])), "M-SECT-TYPE"),
        (draft.Section(6, draft.list_([]) + draft.list_([])), "M-PAYLOAD-WHOLE"),
        (draft.Section(1, b""), ""),
    ],
    ids=str,
)
def test_sections_that_hold_something_else(section: draft.Section, code: str) -> None:
    (message,) = messages(draft.transfer_frames([section], 512, handle=0, delivery_tag=b"t", transfer_id=0))
    message.values()
    assert [problem.code for problem in message.problems] == ([code] if code else [])
