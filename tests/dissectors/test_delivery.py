"""Messages put together from transfers: any number of them, interleaved, broken off, cut, taken elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support.sampling import examples

from dissectors.amqp10.delivery import MessageAssembler
from dissectors.amqp10.frame import FrameDecoder
from dissectors.amqp10.message import BATCH_FORMAT, Message
from dissectors.interface import Frame
from dissectors.limits import MAX_MESSAGE, MAX_OPEN_DELIVERIES

PROPERTIES = amqp.properties(message_id="identifier", to="queue", subject="subject")
PAYLOAD = PROPERTIES + amqp.data(bytes(range(200)))
SECTION_BORDERS = (0, len(PROPERTIES), len(PAYLOAD))
CUTS = st.one_of(st.integers(1, len(PAYLOAD) - 1), st.sampled_from(SECTION_BORDERS[1:]))


def transfer(payload: bytes = b"", *, channel: int = 0, handle: Any = 0, **fields: Any) -> bytes:
    return amqp.frame(amqp.transfer(handle=handle, **fields), payload, channel=channel)


class Taken:
    """A direction's frames, and the messages they completed."""

    def __init__(self, midstream: bool = False) -> None:
        self.decoder = FrameDecoder(midstream)
        self.assembler = MessageAssembler()
        self.messages: list[Message] = []

    def feed(self, *pieces: bytes | int) -> Taken:
        for piece in pieces:
            if isinstance(piece, int):
                self.decoder.gap(piece)
            else:
                self.decoder.feed(piece, 0, len(piece))
            self.take()
        return self

    def take(self) -> None:
        frames = self.decoder.frames
        self.decoder.frames = []
        for frame in frames:
            message = self.assembler.take(frame)
            if message is not None:
                self.messages.append(message)

    def shapes(self) -> list[tuple[bytes, bool, int]]:
        return [(message.octets, message.complete, int(message.size)) for message in self.messages]


def whole(payload: bytes) -> tuple[bytes, bool, int]:
    return payload, True, len(payload)


def lacking(payload: bytes, size: int) -> tuple[bytes, bool, int]:
    return payload, False, size


def split(
    payload: bytes, *at: int, channel: int = 0, handle: int = 0, delivery_id: int = 0, repeat: bool = False
) -> list[bytes]:
    """The transfers of one delivery, the payload cut at these places."""
    ends = [*at, len(payload)]
    frames = []
    for index, (start, end) in enumerate(zip([0, *at], ends, strict=True)):
        fields: dict[str, Any] = {"more": True} if index < len(at) else {}
        if index == 0 or repeat:
            fields |= {"delivery_id": delivery_id, "delivery_tag": b"%d" % delivery_id, "message_format": 0}
        frames.append(transfer(payload[start:end], channel=channel, handle=handle, **fields))
    return frames


def test_one_transfer() -> None:
    taken = Taken().feed(transfer(PAYLOAD, delivery_id=0, delivery_tag=b"t", message_format=0))
    assert taken.shapes() == [whole(PAYLOAD)]
    assert [section.name for section in taken.messages[0].sections()] == ["properties", "data"]
    assert taken.messages[0].message_format == 0


def test_three_transfers_read_right() -> None:
    # The case that tshark calls malformed: a section goes over the borders of transfers.
    taken = Taken().feed(*split(PAYLOAD, 5, 100))
    assert taken.shapes() == [whole(PAYLOAD)]
    (message,) = taken.messages
    assert [section.name for section in message.sections()] == ["properties", "data"]
    assert message.sections()[1].value == bytes(range(200))
    assert message.problems == []


@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.parametrize("count", [2, 3, 10, len(PAYLOAD), 2 * len(PAYLOAD)])
def test_any_number_of_transfers(count: int, repeat: bool) -> None:
    cuts = [len(PAYLOAD) * number // count for number in range(1, count)]
    taken = Taken().feed(*split(PAYLOAD, *cuts, repeat=repeat), *split(PAYLOAD, 7, delivery_id=1))
    assert taken.shapes() == [whole(PAYLOAD)] * 2


def test_the_last_transfer_may_be_empty() -> None:
    taken = Taken().feed(*split(PAYLOAD, len(PAYLOAD)))
    assert taken.shapes() == [whole(PAYLOAD)]


def test_more_may_be_said_to_be_false() -> None:
    taken = Taken().feed(transfer(PAYLOAD, delivery_id=0, more=False))
    assert taken.shapes() == [whole(PAYLOAD)]


def test_deliveries_of_links_and_sessions_interleave() -> None:
    payloads = {
        (channel, handle): PAYLOAD + amqp.data(b"%d %d" % (channel, handle))
        for channel in (0, 1, 65535)
        for handle in (0, 1, 2**32 - 1)
    }
    queues = [
        split(payload, 10, 50, 90, channel=channel, handle=handle, delivery_id=handle)
        for (channel, handle), payload in payloads.items()
    ]
    taken = Taken()
    for step in zip(*queues, strict=True):
        taken.feed(*step)
    assert taken.shapes() == [whole(payload) for payload in payloads.values()]


def test_message_format_is_the_first_transfers() -> None:
    first = transfer(b"x", delivery_id=0, message_format=BATCH_FORMAT, more=True)
    taken = Taken().feed(
        first, transfer(b"y", message_format=7), transfer(b"z", delivery_id=1, message_format=9)
    )
    assert [int(message.message_format) for message in taken.messages] == [BATCH_FORMAT, 9]


# ---- deliveries broken off --------------------------------------------------------------------------------


def test_an_aborted_delivery_has_no_message() -> None:
    first, second, third = split(PAYLOAD, 10, 20)
    aborting = transfer(b"discarded", aborted=True)
    taken = Taken().feed(first, second, aborting, *split(PAYLOAD, 30, delivery_id=1))
    assert taken.shapes() == [whole(PAYLOAD)]
    taken = Taken().feed(first, transfer(aborted=True, more=True), transfer(PAYLOAD, delivery_id=1))
    assert taken.shapes() == [whole(PAYLOAD)]
    taken = Taken().feed(transfer(b"x", delivery_id=0, aborted=True), transfer(PAYLOAD, delivery_id=1))
    assert taken.shapes() == [whole(PAYLOAD)]
    assert third


@pytest.mark.parametrize(
    ("octets", "breaks_off"),
    [
        (amqp.frame(amqp.detach(handle=3), channel=1), True),
        (amqp.frame(amqp.attach(name="n", handle=3, role=False), channel=1), True),
        (amqp.frame(amqp.end(), channel=1), True),
        (amqp.frame(amqp.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), channel=1), True),
        (amqp.frame(amqp.detach(handle=4), channel=1), False),
        (amqp.frame(amqp.detach(handle=3), channel=2), False),
        (amqp.frame(amqp.end(), channel=2), False),
        (
            amqp.frame(
                amqp.flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1, handle=3), channel=1
            ),
            False,
        ),
        (amqp.frame(), False),
    ],
)
def test_what_ends_a_delivery_under_way(octets: bytes, breaks_off: bool) -> None:
    first, second = split(PAYLOAD, 10, channel=1, handle=3)
    taken = Taken().feed(first, octets, second)
    if breaks_off:
        # What then comes is illegal. It may be the rest of the delivery all the same.
        assert [message.complete for message in taken.messages] == [False]
    else:
        assert taken.shapes() == [whole(PAYLOAD)]
    assert taken.assembler._kept == 0


def test_a_transfer_on_no_link_may_be_missing_on_any() -> None:
    attach = amqp.frame(amqp.attach(name="n", handle=0, role=False))
    first, second, third = split(PAYLOAD, 10, 20)
    for stray in ({"handle": 7}, {"channel": 1}):
        taken = Taken().feed(attach, first, transfer(PAYLOAD[10:20], more=True, **stray), third)
        assert [message.complete for message in taken.messages] == [False]
        taken = Taken().feed(attach, first, second, transfer(PAYLOAD[20:], **stray))
        assert [message.complete for message in taken.messages] == [False]
        taken = Taken().feed(attach, transfer(PAYLOAD[:10], more=True, **stray), second, third)
        assert [message.complete for message in taken.messages] == [False]
        taken.feed(transfer(PAYLOAD, delivery_id=1))
        assert taken.shapes()[1:] == [whole(PAYLOAD)]
        assert Taken().feed(attach, transfer(PAYLOAD, **stray)).shapes() == [whole(PAYLOAD)]


def test_a_new_delivery_before_the_old_one_ended() -> None:
    # Illegal: the old delivery never ends. The new one is a message all the same.
    taken = Taken().feed(split(PAYLOAD, 10)[0], *split(PAYLOAD, 20, delivery_id=1))
    assert taken.shapes() == [whole(PAYLOAD)]


def test_a_delivery_id_that_changes_on_the_way() -> None:
    # Illegal, too; what the payload shows is that it goes on.
    taken = Taken().feed(split(PAYLOAD, 10)[0], transfer(PAYLOAD[10:], delivery_id=1, delivery_tag=b"t"))
    assert taken.shapes() == [whole(PAYLOAD)]


def test_a_first_transfer_without_delivery_id() -> None:
    taken = Taken().feed(transfer(PAYLOAD[:9], more=True), transfer(PAYLOAD[9:], delivery_id=4))
    assert taken.shapes() == [whole(PAYLOAD)]


def test_a_transfer_without_handle_belongs_to_an_unknown_link() -> None:
    nameless = transfer(b"x", handle=amqp.null(), delivery_id=5)
    other = split(PAYLOAD, 10, channel=1)
    first, second = split(PAYLOAD, 10)
    taken = Taken().feed(first, other[0], nameless, second, other[1])
    assert taken.shapes() == [lacking(PAYLOAD[:10], len(PAYLOAD)), whole(PAYLOAD)]


def test_a_frame_that_does_not_decode_may_have_been_a_transfer() -> None:
    first, second, third = split(PAYLOAD, 10, 20)
    broken = bytearray(second)
    broken[8] = 0x3F
    taken = Taken().feed(first, bytes(broken), third)
    assert taken.shapes() == [lacking(PAYLOAD[:10], len(PAYLOAD) - 10)]
    broken = bytearray(second)
    broken[4] = 1  # the data offset
    taken = Taken().feed(first, bytes(broken), third)
    assert taken.shapes() == [lacking(PAYLOAD[:10], len(PAYLOAD) - 10)]


# ---- resumed deliveries -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "from_start"),
    [
        (None, True),
        (amqp.received(section_number=0, section_offset=0), True),
        (amqp.received(section_number=1, section_offset=0), False),
        (amqp.received(section_number=0, section_offset=7), False),
        (amqp.accepted(), True),
    ],
)
def test_a_resumed_delivery_may_begin_in_its_middle(state: bytes | None, from_start: bool) -> None:
    fields: dict[str, Any] = {"delivery_id": 0, "delivery_tag": b"t", "resume": True, "state": state}
    # Where it begins with a section, those that are there are read; else nobody knows what it begins with.
    for payload in (PAYLOAD, PAYLOAD[3:]):
        begins = from_start or payload == PAYLOAD
        kept = payload if begins else b""
        wanted = (kept, from_start, len(payload))
        assert Taken().feed(transfer(payload, **fields)).shapes() == [wanted]
        taken = Taken().feed(transfer(payload[:10], more=True, **fields), transfer(payload[10:]))
        assert taken.shapes() == [wanted]
    # The flag may be repeated; behind a hole that tells nothing.
    taken = Taken().feed(
        amqp.AMQP_HEADER, 9, transfer(PAYLOAD[3:], **fields), transfer(PAYLOAD, delivery_id=1)
    )
    assert taken.shapes() == [lacking(b"", len(PAYLOAD) - 3), whole(PAYLOAD)]


# ---- what was not captured --------------------------------------------------------------------------------


def test_octets_missing_in_a_payload() -> None:
    frame = transfer(PAYLOAD, delivery_id=0)
    taken = Taken().feed(frame[:-50], 20, frame[-30:])
    assert taken.shapes() == [lacking(PAYLOAD[:-50], len(PAYLOAD))]
    assert taken.messages[0].sections()[0].name == "properties"
    assert taken.messages[0].problems == []


def test_octets_missing_in_the_middle_one_of_three_payloads() -> None:
    first, second, third = split(PAYLOAD, 50, 150)
    taken = Taken().feed(first, second[:-20], 10, second[-10:], third)
    # What came before the hole is kept, what comes behind it is not.
    assert taken.shapes() == [lacking(PAYLOAD[:130], len(PAYLOAD))]


def test_a_whole_transfer_missing() -> None:
    first, second, third = split(PAYLOAD, 50, 150)
    taken = Taken().feed(first, len(second), third, transfer(PAYLOAD, delivery_id=1))
    assert taken.shapes() == [lacking(PAYLOAD[:50], len(PAYLOAD) - 100), whole(PAYLOAD)]
    assert taken.messages[0].problems == []


@pytest.mark.parametrize("repeat", [False, True])
def test_the_first_transfer_missing(repeat: bool) -> None:
    first, second, third = split(PAYLOAD, 50, 150, repeat=repeat)
    taken = Taken().feed(amqp.AMQP_HEADER, len(first), second, third, *split(PAYLOAD, 9, delivery_id=1))
    # Of a message whose beginning is not there, nothing is decoded, and nobody accused.
    assert taken.shapes() == [lacking(b"", len(PAYLOAD) - 50), whole(PAYLOAD)]
    assert taken.messages[0].sections() == []
    assert taken.messages[0].problems == []


@pytest.mark.parametrize("repeat", [False, True])
def test_start_in_the_middle_of_a_delivery(repeat: bool) -> None:
    _, second, third = split(PAYLOAD, 50, 150, repeat=repeat)
    taken = Taken(True).feed(
        second[3:], third, transfer(PAYLOAD, delivery_id=1), transfer(PAYLOAD, delivery_id=2)
    )
    assert taken.shapes() == [lacking(b"", len(PAYLOAD) - 150), whole(PAYLOAD), whole(PAYLOAD)]


def test_the_last_transfer_missing() -> None:
    first, second = split(PAYLOAD, 50)
    taken = Taken().feed(
        first, len(second), *split(PAYLOAD, 60, delivery_id=1), transfer(PAYLOAD, delivery_id=2)
    )
    # The next message is there, but that it began with its first transfer is not proven.
    assert taken.shapes() == [lacking(PAYLOAD, len(PAYLOAD)), whole(PAYLOAD)]


def test_the_last_transfer_and_the_next_first_one_missing() -> None:
    first, second = split(PAYLOAD, 50)
    next_first, next_second = split(PAYLOAD, 60, delivery_id=1, repeat=True)
    taken = Taken().feed(first, len(second) + len(next_first), next_second, transfer(PAYLOAD, delivery_id=2))
    assert taken.shapes() == [lacking(b"", len(PAYLOAD) - 60), whole(PAYLOAD)]


def test_a_hole_on_another_link() -> None:
    taken = Taken().feed(
        transfer(PAYLOAD, handle=1, delivery_id=0),
        30,
        transfer(PAYLOAD, delivery_id=1),
        transfer(PAYLOAD, delivery_id=2),
        transfer(PAYLOAD, handle=1, delivery_id=3),
        transfer(PAYLOAD, handle=1, delivery_id=4),
    )
    # Of each link the first message behind a hole may be the rest of one.
    unproven = lacking(PAYLOAD, len(PAYLOAD))
    assert taken.shapes() == [whole(PAYLOAD), unproven, whole(PAYLOAD), unproven, whole(PAYLOAD)]


def test_a_transfer_cut_in_its_performative_may_not_have_been_the_last() -> None:
    first, second, third = split(PAYLOAD, 50, 150)
    for cut in range(13, len(second) - 100):
        taken = Taken().feed(first, second[:cut], len(second) - cut, third, transfer(PAYLOAD, delivery_id=1))
        assert taken.shapes()[-1] == whole(PAYLOAD)
        for octets, complete, _ in taken.shapes()[:-1]:
            assert octets == PAYLOAD[:50]
            assert not complete


@pytest.mark.parametrize("form", ["small", "full", "symbol", "symbol32"])
def test_a_first_transfer_behind_a_hole_is_known_by_its_section(form: Any) -> None:
    payload = amqp.data(b"x" * 30, form=form)
    taken = Taken().feed(
        amqp.AMQP_HEADER, 9, transfer(payload, delivery_id=0), transfer(payload, delivery_id=1)
    )
    assert taken.shapes() == [lacking(payload, len(payload)), whole(payload)]
    # So is that of a delivery in several.
    taken = Taken().feed(amqp.AMQP_HEADER, 9, *split(payload, 30), *split(payload, 30, delivery_id=1))
    assert taken.shapes() == [lacking(payload, len(payload)), whole(payload)]


def test_behind_an_attach_all_is_known_again() -> None:
    known = amqp.attach(name="n", handle=0, role=False)
    taken = Taken().feed(
        amqp.AMQP_HEADER, 9, amqp.frame(known), *split(PAYLOAD, 9), transfer(PAYLOAD, handle=1, delivery_id=1)
    )
    assert taken.shapes() == [whole(PAYLOAD), lacking(PAYLOAD, len(PAYLOAD))]


def test_an_aborted_delivery_is_an_end_too() -> None:
    taken = Taken().feed(
        amqp.AMQP_HEADER, 9, transfer(aborted=True), transfer(PAYLOAD, delivery_id=1), amqp.frame()
    )
    assert taken.shapes() == [whole(PAYLOAD)]


def test_joined_midstream_is_like_a_hole_before_the_first_frame() -> None:
    taken = Taken()
    taken.assembler.joined_midstream()
    taken.feed(transfer(PAYLOAD, delivery_id=0), transfer(PAYLOAD, delivery_id=1))
    assert taken.shapes() == [lacking(PAYLOAD, len(PAYLOAD)), whole(PAYLOAD)]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x00",
        b"\x00\x53",
        b"\x00\x53\x6f",
        b"\x00\x53\x79",
        b"\x00\x80" + bytes(7) + b"\x24",
        b"\x00\xa3\x02ab",
        b"text",
    ],
)
def test_a_transfer_behind_a_hole_that_begins_no_section_may_be_a_later_one(payload: bytes) -> None:
    taken = Taken().feed(
        amqp.AMQP_HEADER, 9, transfer(payload, delivery_id=0), transfer(PAYLOAD, delivery_id=1)
    )
    assert taken.shapes() == [lacking(b"", len(payload)), whole(PAYLOAD)]
    # Of another format nothing is known.
    taken = Taken().feed(
        amqp.AMQP_HEADER,
        9,
        transfer(payload, delivery_id=0, message_format=5),
        transfer(PAYLOAD, delivery_id=1),
    )
    assert taken.shapes() == [lacking(payload, len(payload)), whole(PAYLOAD)]


@settings(max_examples=examples(150))
@given(st.data())
def test_no_hole_makes_a_message_look_whole_that_is_not(data: st.DataObject) -> None:
    messages = [PAYLOAD + amqp.data(b"message %d" % number) for number in range(5)]
    repeat = data.draw(st.booleans())
    frames: list[bytes] = []
    for number, payload in enumerate(messages):
        cuts = sorted(data.draw(st.sets(CUTS, max_size=3)))
        frames += split(payload, *cuts, delivery_id=number, repeat=repeat)
    stream = b"".join(frames)
    start = data.draw(st.integers(0, len(stream) - 1))
    end = data.draw(st.integers(start + 1, len(stream)))
    taken = Taken().feed(stream[:start], end - start, stream[end:])
    taken.decoder.end("fin")
    taken.take()
    for message in taken.messages:
        message.sections()
        assert message.problems == []
        if message.complete:
            assert message.octets in messages
        elif message.octets:
            # A transfer that begins with a section cannot be distinguished from a first one, if it repeats
            # the id.
            ends = [payload[border:] for payload in messages for border in SECTION_BORDERS]
            assert any(end.startswith(message.octets) for end in ends)


# ---- bounds -----------------------------------------------------------------------------------------------


def test_octets_kept_are_bounded() -> None:
    taken = Taken()
    piece = bytes(1_000_000)
    for number in range(20):
        taken.feed(transfer(piece, handle=0, delivery_id=0, more=True))
        taken.feed(transfer(piece, handle=1, delivery_id=1, more=True))
        assert taken.assembler._kept <= MAX_MESSAGE
        assert sum(int(delivery.kept) for delivery in taken.assembler._open.values()) == taken.assembler._kept
        assert number < 20
    taken.feed(transfer(b"end", handle=0), transfer(b"end", handle=1), transfer(PAYLOAD, delivery_id=2))
    assert [(message.complete, int(message.size)) for message in taken.messages] == [
        (False, 20_000_003),
        (False, 20_000_003),
        (True, len(PAYLOAD)),
    ]
    assert sum(len(message.octets) for message in taken.messages[:2]) == 16_000_000
    assert taken.assembler._kept == 0


def test_a_message_of_the_very_bound_is_kept() -> None:
    payload = bytes(MAX_MESSAGE)
    taken = Taken().feed(
        transfer(payload[: MAX_MESSAGE // 2], delivery_id=0, more=True), transfer(payload[MAX_MESSAGE // 2 :])
    )
    assert taken.shapes() == [whole(payload)]


def test_endless_deliveries_without_octets_are_kept_in_nothing() -> None:
    taken = Taken()
    frame = transfer(b"", delivery_id=0, more=True)
    small = transfer(b"x", delivery_id=0, more=True)
    for _ in range(5000):
        taken.feed(frame, small)
    (delivery,) = taken.assembler._open.values()
    assert len(delivery.parts) <= 3
    taken.feed(transfer(b""))
    assert taken.shapes() == [whole(b"x" * 5000)]


def test_deliveries_under_way_are_bounded() -> None:
    taken = Taken()
    for handle in range(MAX_OPEN_DELIVERIES + 10):
        taken.feed(split(PAYLOAD, 10, handle=handle, delivery_id=handle)[0])
    assert len(taken.assembler._open) == MAX_OPEN_DELIVERIES
    # The oldest were given up; the rest of one is not taken for a message.
    taken.feed(split(PAYLOAD, 10, handle=0)[1], split(PAYLOAD, 10, handle=MAX_OPEN_DELIVERIES)[1])
    assert taken.shapes() == [lacking(b"", len(PAYLOAD) - 10), whole(PAYLOAD)]


# ---- between processes ------------------------------------------------------------------------------------


def mixed() -> list[bytes | int]:
    one, two = split(PAYLOAD, 10, 30, 60), split(PAYLOAD, 5, 20, 90, handle=1, delivery_id=1, repeat=True)
    return [
        one[0],
        two[0],
        one[1],
        amqp.frame(),
        two[1],
        one[2],
        one[3],
        *split(PAYLOAD, 4, channel=2, delivery_id=9)[:1],
        12,
        two[2],
        two[3],
        transfer(PAYLOAD, delivery_id=2),
        transfer(b"", channel=2, aborted=True),
        transfer(PAYLOAD[:30], channel=2, delivery_id=10, more=True),
        amqp.frame(amqp.end(), channel=2),
        transfer(b"tail", handle=1),
    ]


def test_going_on_in_another_process_changes_nothing() -> None:
    pieces = mixed()
    wanted = Taken().feed(*pieces)
    assert len(wanted.messages) == 4
    for at in range(len(pieces) + 1):
        taken = Taken().feed(*pieces[:at])
        state = taken.assembler.dump()
        plain(state)
        taken.assembler = MessageAssembler.load(state)
        assert taken.assembler.dump() == state
        taken.feed(*pieces[at:])
        assert taken.shapes() == wanted.shapes()
        assert [int(message.message_format) for message in taken.messages] == [0, 0, 0, 0]


def plain(value: object) -> None:
    assert value is None or type(value) in (int, str, bytes, bool, tuple)
    if isinstance(value, tuple):
        for item in value:
            plain(item)


def test_a_state_of_another_version_is_refused() -> None:
    state = MessageAssembler().dump()
    with pytest.raises(ValueError, match="version"):
        MessageAssembler.load((99, *state[1:]))
    with pytest.raises(ValueError, match="version"):
        MessageAssembler.load(())


@settings(max_examples=examples(100))
@given(st.lists(st.sampled_from(mixed()), max_size=40))
def test_any_order_of_frames(pieces: list[bytes | int]) -> None:
    taken = Taken().feed(*pieces)
    for message in taken.messages:
        assert len(message.octets) <= message.size
        assert not message.complete or len(message.octets) == message.size
    assert taken.assembler._kept == sum(int(delivery.kept) for delivery in taken.assembler._open.values())


def test_frames_of_other_kinds_are_passed_over() -> None:
    assembler = MessageAssembler()
    assert assembler.take(Frame(0, 8, "header", "header", -1)) is None
    assert assembler.take(Frame(0, 8, "skipped", "tls", -1)) is None
    assert assembler.dump() == MessageAssembler().dump()
