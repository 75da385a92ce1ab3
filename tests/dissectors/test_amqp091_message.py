"""Messages put together from methods, content headers and bodies, and what may not stand between them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp091_encode as amqp
from support.sampling import examples

from dissectors.amqp091 import message as module
from dissectors.amqp091.frame import Amqp091FrameDecoder
from dissectors.amqp091.message import Amqp091Message, Amqp091MessageAssembler
from dissectors.limits import MAX_OPEN_DELIVERIES

PUBLISH = amqp.say("basic.publish", 1, routing_key="k")
HEAD = amqp.frame(amqp.HEADER, 1, amqp.content_header(4))
EMPTY = amqp.frame(amqp.HEADER, 1, amqp.content_header(0))
BODY = amqp.frame(amqp.BODY, 1, b"body")
HALF = amqp.frame(amqp.BODY, 1, b"bo")
ACK = amqp.say("basic.ack", 1, delivery_tag=1)
CLOSE = amqp.say("channel.close", 1, reply_code=200)


def assemble(
    *pieces: bytes | int, midstream: bool = False, keeping: bool = True, dumping: bool = False
) -> tuple[list[Amqp091Message], list[str], list[Amqp091Message]]:
    """The messages ended, the rules broken, the messages left at the end; an int is a hole."""
    decoder = Amqp091FrameDecoder(midstream)
    assembler = Amqp091MessageAssembler(keeping)
    if midstream:
        assembler.joined_midstream()
    ended: list[Amqp091Message] = []
    faults: list[str] = []
    for piece in pieces:
        if isinstance(piece, int):
            decoder.gap(piece)
        else:
            decoder.feed(piece, 0, len(piece))
        for frame in decoder.frames:
            before = len(frame.problems)
            message = assembler.take(frame)
            faults += [problem.code for problem in frame.problems[before:]]
            if message is not None:
                ended.append(message)
            if dumping:
                assembler = Amqp091MessageAssembler.load(assembler.dump())
        decoder.frames.clear()
    return ended, faults, assembler.finish()


def said(messages: list[Amqp091Message]) -> list[tuple[Any, ...]]:
    return [
        (
            int(message.channel),
            repr(message.method),
            repr(message.header),
            message.announced,
            int(message.seen),
            int(message.frames),
            message.complete,
            message.body,
        )
        for message in messages
    ]


@pytest.mark.parametrize("dumping", [False, True])
@pytest.mark.parametrize(
    "method",
    [
        amqp.say("basic.publish", 1, exchange="x", routing_key="k", mandatory=True),
        amqp.say("basic.return", 1, reply_code=312, reply_text="NO_ROUTE"),
        amqp.say("basic.deliver", 1, consumer_tag="c", delivery_tag=2**64 - 1),
        amqp.say("basic.get-ok", 1, delivery_tag=7, message_count=3),
        amqp.say("basic.publish", 1, exchange=b"\xff"),
    ],
)
def test_a_message(method: bytes, dumping: bool) -> None:
    ended, faults, left = assemble(method + amqp.content(1, b"a body", frame_max=10), dumping=dumping)
    (message,) = ended
    assert (message.complete, message.body, int(message.seen), message.announced) == (True, b"a body", 6, 6)
    assert (int(message.frames), int(message.channel), int(message.offset)) == (3, 1, 0)
    decoder = Amqp091FrameDecoder()
    decoder.feed(method, 0, len(method))
    assert message.method == decoder.frames[0].body
    assert message.header is not None
    assert (faults, left) == ([], [])


def test_a_message_without_a_body() -> None:
    ended, faults, _ = assemble(PUBLISH + EMPTY + PUBLISH + HEAD + BODY)
    assert [(message.complete, message.body) for message in ended] == [(True, b""), (True, b"body")]
    assert faults == []


def test_bodies_that_are_only_counted() -> None:
    (message,), _, _ = assemble(PUBLISH + HEAD + BODY, keeping=False)
    assert (message.complete, message.body, int(message.seen)) == (True, b"", 4)


@pytest.mark.parametrize(
    ("octets", "faults", "complete"),
    [
        (PUBLISH + HEAD + BODY, [], [True]),
        (PUBLISH + HEAD + HALF + HALF, [], [True]),
        (PUBLISH + HEAD + HALF + CLOSE, [], [False]),
        (PUBLISH + CLOSE, [], [False]),
        (PUBLISH + HEAD + amqp.heartbeat() + amqp.say("basic.ack", 2) + BODY, [], [True]),
        (PUBLISH + ACK, ["F-CONTENT-HEADER-NEXT"], [False]),
        (PUBLISH + PUBLISH + HEAD + BODY, ["F-CONTENT-HEADER-NEXT"], [False, True]),
        (PUBLISH + BODY + BODY + HEAD + BODY, ["F-CONTENT-HEADER-NEXT"], [False, False]),
        (PUBLISH + HEAD + ACK, ["F-CONTENT-NO-METHOD"], [False]),
        (PUBLISH + HEAD + HALF + ACK + HALF, ["F-CONTENT-NO-METHOD"], [False]),
        (PUBLISH + HEAD + HALF + ACK + HALF + ACK + HALF, ["F-CONTENT-NO-METHOD", "F-BODY-ORPHAN"], [False]),
        (PUBLISH + ACK + HEAD + BODY, ["F-CONTENT-HEADER-NEXT"], [False, False]),
        (PUBLISH + HEAD + HALF + PUBLISH + HEAD + BODY + HALF, ["F-CONTENT-NO-METHOD"], [False, True]),
        (PUBLISH + PUBLISH + PUBLISH + HEAD, ["F-CONTENT-HEADER-NEXT"] * 2, [False] * 2),
        (PUBLISH + HEAD + HALF + PUBLISH + HEAD + BODY, ["F-CONTENT-NO-METHOD"], [False, True]),
        (PUBLISH + HEAD + HEAD + BODY, ["F-CONTENT-ONE-HEADER"], [False, False]),
        (PUBLISH + HEAD + EMPTY + PUBLISH, ["F-CONTENT-ONE-HEADER"], [False]),
        (HEAD + BODY + BODY, ["F-HEADER-ORPHAN"], [False]),
        (ACK + HEAD + BODY + PUBLISH + HEAD + BODY, ["F-HEADER-ORPHAN"], [False, True]),
        (BODY + BODY, ["F-BODY-ORPHAN"], []),
        (PUBLISH + HEAD + BODY + BODY + BODY, ["F-BODY-ORPHAN"], [True]),
        (PUBLISH + HEAD + HALF + BODY + BODY + PUBLISH, ["F-BODY-OVERRUN"], [False]),
        (PUBLISH + EMPTY + BODY + BODY, ["F-BODY-ZERO"], [True]),
        (PUBLISH + EMPTY + ACK + BODY, ["F-BODY-ORPHAN"], [True]),
        (PUBLISH + amqp.frame(amqp.HEADER, 1, b"bad") + BODY + BODY + ACK, [], [False]),
    ],
)
@pytest.mark.parametrize("dumping", [False, True])
def test_what_may_not_stand_between(
    octets: bytes, faults: list[str], complete: list[bool], dumping: bool
) -> None:
    ended, found, _ = assemble(amqp.header() + octets, dumping=dumping)
    assert found == faults
    assert [message.complete for message in ended] == complete


@pytest.mark.parametrize("dumping", [False, True])
def test_after_a_hole_nothing_is_a_fault_before_a_method(dumping: bool) -> None:
    other = amqp.say("basic.publish", 2) + amqp.content(2, b"x")
    ended, faults, _ = assemble(PUBLISH + HEAD + HALF, 50, EMPTY + BODY + ACK + other, dumping=dumping)
    assert faults == []
    assert [(int(message.channel), message.complete) for message in ended][-1] == (2, True)
    assert not any(message.complete for message in ended[:-1])
    _, faults, _ = assemble(PUBLISH, 50, ACK + BODY, dumping=dumping)
    assert faults == ["F-BODY-ORPHAN"]
    _, faults, _ = assemble(HEAD + BODY + HEAD, midstream=True, dumping=dumping)
    assert faults == []


@pytest.mark.parametrize("dumping", [False, True])
def test_a_method_that_is_not_known_may_have_content(dumping: bool) -> None:
    unknown = amqp.frame(amqp.METHOD, 1, b"\0\x3c\x03\xe7")
    _, faults, _ = assemble(ACK + unknown + HEAD + BODY, dumping=dumping)
    assert faults == []
    _, faults, _ = assemble(PUBLISH, 50, ACK + unknown + HEAD + BODY, dumping=dumping)
    assert faults == []


def test_a_hole_in_a_body() -> None:
    body = amqp.frame(amqp.BODY, 1, b"0123456789")
    head = amqp.frame(amqp.HEADER, 1, amqp.content_header(10))
    (message,), faults, _ = assemble(PUBLISH + head + body[:10], 5, body[15:] + ACK)
    assert (message.complete, int(message.seen), message.announced) == (False, 10, 10)
    assert faults == []


def test_a_hole_in_a_content_header() -> None:
    """What it announced is not known, unless it stands before the hole: whatever follows may be right."""
    for size in range(8, len(EMPTY)):
        for behind in (ACK, PUBLISH + HEAD + BODY, BODY + ACK, HEAD + BODY):
            _, faults, _ = assemble(PUBLISH + EMPTY[:size], 1, EMPTY[size + 1 :] + behind)
            known = size >= 21 and behind[0] != amqp.METHOD
            assert bool(faults) == known


def test_a_hole_between_bodies() -> None:
    """It may have held anything, though what came is as much as was announced."""
    other = amqp.say("basic.qos", 2)
    ended, faults, _ = assemble(PUBLISH + HEAD + HALF, 50, other + HALF + ACK)
    assert [(message.complete, int(message.seen)) for message in ended] == [(False, 4)]
    assert faults == []


def test_what_is_under_way_at_the_end() -> None:
    ended, faults, left = assemble(PUBLISH + HEAD + HALF)
    assert (ended, faults) == ([], [])
    assert [(message.complete, int(message.seen), message.announced) for message in left] == [(False, 2, 4)]


def test_messages_under_way_are_bounded() -> None:
    octets = b"".join(amqp.say("basic.publish", 1 + n) for n in range(MAX_OPEN_DELIVERIES + 1))
    ended, faults, left = assemble(octets + HEAD)
    assert (ended, faults, len(left)) == ([], [], MAX_OPEN_DELIVERIES)


def test_what_is_kept_is_bounded() -> None:
    block = amqp.frame(amqp.BODY, 1, bytes(2**20))
    head = amqp.frame(amqp.HEADER, 1, amqp.content_header(20 * 2**20))
    (message,), _, _ = assemble(PUBLISH + head, *([block] * 20))
    assert int(message.seen) == 20 * 2**20
    assert int(message.kept) == module.MAX_MESSAGE
    assert message.complete


def test_what_is_given_back_is_kept_no_more() -> None:
    head = amqp.frame(amqp.HEADER, 1, amqp.content_header(10 * 2**20))
    large = [PUBLISH + head, *([amqp.frame(amqp.BODY, 1, bytes(2**20))] * 10)]
    ended, _, _ = assemble(*large, *large, *large)
    assert [len(message.body) for message in ended] == [10 * 2**20] * 3


MESSAGES = st.lists(
    st.tuples(
        st.integers(1, 3), st.binary(max_size=30), st.integers(9, 20), st.sampled_from(("publish", "deliver"))
    ),
    min_size=1,
    max_size=8,
)


def interleaved(data: st.DataObject, messages: list[tuple[int, bytes, int, str]]) -> list[bytes]:
    """Frames of the messages in order on each channel, the channels mixed."""
    lines: dict[int, list[bytes]] = {}
    for channel, body, frame_max, name in messages:
        line = lines.setdefault(channel, [])
        line.append(amqp.say(f"basic.{name}", channel))
        line.append(amqp.frame(amqp.HEADER, channel, amqp.content_header(len(body), message_id="m")))
        room = frame_max - 8
        line += [amqp.frame(amqp.BODY, channel, body[at : at + room]) for at in range(0, len(body), room)]
    frames: list[bytes] = []
    while any(lines.values()):
        channel = data.draw(st.sampled_from(sorted(number for number, line in lines.items() if line)))
        frames.append(lines[channel].pop(0))
    return frames


@settings(max_examples=examples(100))
@given(st.data(), MESSAGES)
def test_channels_do_not_disturb_each_other(
    data: st.DataObject, messages: list[tuple[int, bytes, int, str]]
) -> None:
    frames = interleaved(data, messages)
    ended, faults, left = assemble(*frames)
    assert (faults, left) == ([], [])
    assert all(message.complete for message in ended)
    for channel in (1, 2, 3):
        assert [message.body for message in ended if message.channel == channel] == [
            body for number, body, _, _ in messages if number == channel
        ]
    assert said(ended) == said(assemble(*frames, dumping=True)[0])


@settings(max_examples=examples(100))
@given(st.data(), MESSAGES)
def test_with_a_hole_nobody_is_accused_and_nothing_made_up(
    data: st.DataObject, messages: list[tuple[int, bytes, int, str]]
) -> None:
    octets = b"".join(interleaved(data, messages))
    start = data.draw(st.integers(0, len(octets) - 1))
    end = data.draw(st.integers(start + 1, len(octets)))
    ended, faults, _ = assemble(octets[:start], end - start, octets[end:])
    assert faults == []
    bodies = {(channel, body) for channel, body, _, _ in messages}
    for message in ended:
        if message.complete:
            assert (int(message.channel), message.body) in bodies
    assert said(ended) == said(assemble(octets[:start], end - start, octets[end:], dumping=True)[0])


FRAME = st.sampled_from(
    (PUBLISH, HEAD, EMPTY, BODY, HALF, ACK, CLOSE, amqp.heartbeat(), amqp.say("basic.qos", 2))
)


@settings(max_examples=examples(200))
@given(st.lists(FRAME, max_size=12), st.booleans())
def test_any_sequence(frames: list[bytes], midstream: bool) -> None:
    plain = assemble(*frames, midstream=midstream)
    moved = assemble(*frames, midstream=midstream, dumping=True)
    assert said(plain[0]) == said(moved[0])
    assert (plain[1], said(plain[2])) == (moved[1], said(moved[2]))
    for message in plain[0] + plain[2]:
        assert not message.complete or message.seen == message.announced == len(message.body)


def test_a_state_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError):
        Amqp091MessageAssembler.load((99,))
