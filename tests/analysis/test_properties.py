"""However a conversation reaches the tap, it is read the same: properties of the analysis of a connection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support.amqp10_encode import AMQP_HEADER, SASL_HEADER, frame, sasl_frame
from support.connection_harness import ACK, FIN, PSH, RST, SYN, ConnectionHarness
from support.openings import KNOWN, STRANGE
from support.sampling import examples
from support.segments import captured
from support.strategies import Conversation, conversations

from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.numbering import reverse_key
from amqpscope.analysis.table import ConnectionTable
from amqpscope.model.records import FrameRecord


@dataclass(frozen=True)
class Segment:
    """A segment of the wire: who sent it, where its octets stand, and what it acknowledged."""

    direction: int
    offset: int
    octets: bytes
    ack: int
    flags: int = ACK | PSH

    @property
    def end(self) -> int:
        return self.offset + len(self.octets)


@dataclass
class Wire:
    """What was said, as frames and as the segments that carried them first."""

    frames: list[tuple[int, int, bytes]]  # direction, offset, octets
    segments: list[Segment]

    def stream(self, direction: int) -> bytes:
        return b"".join(octets for who, _, octets in self.frames if who == direction)


@st.composite
def wires(draw: st.DrawFn, turns: list[tuple[int, list[bytes]]]) -> Wire:
    """The turns of a conversation cut into segments; each acknowledges something that was heard."""
    frames: list[tuple[int, int, bytes]] = []
    segments: list[Segment] = []
    sent = [0, 0]
    heard = [0, 0]
    for who, said in turns:
        joined = b"".join(said)
        offset = sent[who]
        for octets in said:
            frames.append((who, offset, octets))
            offset += len(octets)
        if draw(st.integers(0, 3)):  # else it speaks without having heard the rest
            heard[who] = draw(st.integers(heard[who], sent[1 - who]))
            if draw(st.booleans()):
                heard[who] = sent[1 - who]
        cuts = sorted(draw(st.sets(st.integers(1, max(1, len(joined) - 1)), max_size=3)))
        for start, end in zip([0, *cuts], [*cuts, len(joined)], strict=True):
            if joined[start:end]:
                segments.append(Segment(who, sent[who] + start, joined[start:end], heard[who]))
        sent[who] += len(joined)
    return Wire(frames, segments)


def turns_of(conversation: Conversation) -> list[tuple[int, list[bytes]]]:
    return [(who, [one.octets for one in said]) for who, said in conversation.turns]


CONVERSATIONS = conversations(5).flatmap(lambda one: wires(turns_of(one)))

# Frames that nobody can doubt: what a search behind a gap must find.
SURE = [
    frame(amqp.begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10), channel=3),
    frame(amqp.attach(name="link", handle=0, role=False, initial_delivery_count=0), channel=3),
    frame(amqp.flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1), channel=3),
    frame(amqp.transfer(handle=0, delivery_id=1, delivery_tag=b"1"), b"payload " * 9, channel=3),
    frame(amqp.disposition(role=True, first=0, last=7, settled=True), channel=3),
    frame(amqp.detach(handle=0, closed=True), channel=3),
    frame(amqp.end(), channel=3),
    sasl_frame(amqp.sasl_challenge(challenge=b"what?")),
    AMQP_HEADER,
]
SURE_TURNS = st.lists(
    st.tuples(st.integers(0, 1), st.lists(st.sampled_from(SURE), min_size=1, max_size=4)),
    min_size=1,
    max_size=8,
).map(
    lambda turns: [
        (0, [SASL_HEADER, sasl_frame(amqp.sasl_init(mechanism="PLAIN"))]),
        (1, [SASL_HEADER, sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms=["PLAIN"]))]),
        *turns,
    ]
)


def deliver(
    segments: list[Segment],
    *,
    syn: bool = True,
    reload: bool = False,
    isn: tuple[int, int] = (1000, 2000),
    finish: bool = True,
) -> ConnectionHarness:
    """The segments as they are captured, packet 3 and up behind a handshake."""
    harness = ConnectionHarness(syn=syn, reload=reload, isn=isn)
    for one in segments:
        harness.segment(one.direction, one.octets, offset=one.offset, ack=one.ack, flags=one.flags)
    if finish:
        harness.finish()
    return harness


def about(record: FrameRecord) -> tuple[Any, ...]:
    """All that is known of a record but where the capture had it."""
    kept = record.frame
    message = record.message
    return (
        int(record.direction),
        record.peer,
        int(kept.offset),
        int(kept.size),
        kept.kind,
        kept.name,
        int(kept.channel),
        int(kept.missing),
        kept.raw,
        kept.payload,
        repr(kept.body) if kept.kind == "header" else type(kept.body).__name__,
        tuple((one.code, int(one.offset), one.path, one.reason) for one in kept.problems),
        None if message is None else (message.octets, message.complete, int(message.size)),
    )


def evidence(record: FrameRecord) -> tuple[int, ...]:
    return (
        int(record.packet),
        int(record.time),
        int(record.last_packet),
        int(record.last_time),
        int(record.acknowledged),
    )


def all_of(records: list[FrameRecord]) -> list[tuple[Any, ...]]:
    """Everything that two analyses must have the same, if one of them was moved."""
    return [(about(one), evidence(one), one.started, one.unseen) for one in records]


def side(harness: ConnectionHarness, direction: int) -> list[tuple[Any, ...]]:
    return [about(one) for one in harness.out if one.direction == direction]


def expected_evidence(wire: Wire, segments: list[Segment], direction: int) -> list[tuple[int, ...]]:
    """By the first captured segment with each frame's first and last octet."""
    numbered = [(number, one) for number, one in enumerate(segments, 3) if one.direction == direction]
    found: list[tuple[int, ...]] = []
    for who, offset, octets in wire.frames:
        if who == direction:
            first = next((n, one) for n, one in numbered if one.offset <= offset < one.end)
            end = offset + len(octets) - 1
            last = next((n, one) for n, one in numbered if one.offset <= end < one.end)
            found.append((first[0], first[0] * 1_000_000, last[0], last[0] * 1_000_000, first[1].ack))
    return found


def causal(records: list[FrameRecord]) -> bool:
    """Whether no frame came out before those of the other direction that its sender had acknowledged."""
    reached = [0, 0]
    for record in records:
        if record.acknowledged > 0:
            last = reached[1 - record.direction]
            # A frame of which the last octets were not acknowledged may come later.
            behind = [
                int(other.frame.offset + other.frame.size)
                for other in records
                if other.direction != record.direction
                and last < other.frame.offset + other.frame.size <= record.acknowledged
            ]
            if behind:
                return False
        reached[record.direction] = int(record.frame.offset + record.frame.size)
    return True


@st.composite
def any_delivery(draw: st.DrawFn, wire: Wire) -> list[Segment]:
    """The segments in any order, some of them twice, and octets again with other borders."""
    segments = list(wire.segments)
    streams = [wire.stream(0), wire.stream(1)]
    for _ in range(draw(st.integers(0, 5))):
        who = draw(st.integers(0, 1))
        if streams[who]:
            start = draw(st.integers(0, len(streams[who]) - 1))
            end = draw(st.integers(start + 1, len(streams[who])))
            heard = draw(st.integers(0, len(streams[1 - who])))
            segments.append(Segment(who, start, streams[who][start:end], heard))
    return draw(st.permutations(segments))


# ---- the same octets --------------------------------------------------------------------------------------


@given(CONVERSATIONS, st.data())
@settings(max_examples=30)
def test_any_delivery_gives_the_same_frames_with_their_evidence(wire: Wire, data: st.DataObject) -> None:
    straight = deliver(wire.segments)
    segments = data.draw(any_delivery(wire))
    harness = deliver(segments)
    for direction in (0, 1):
        octets = [octets for who, _, octets in wire.frames if who == direction]
        assert [one[8] for one in side(harness, direction)] == octets
        assert side(harness, direction) == side(straight, direction)
        records = [one for one in harness.out if one.direction == direction]
        assert [evidence(one) for one in records] == expected_evidence(wire, segments, direction)
    assert harness.notes == []


@given(CONVERSATIONS, st.data())
@settings(max_examples=12)
def test_no_frame_comes_before_those_its_sender_had_acknowledged(wire: Wire, data: st.DataObject) -> None:
    assert causal(deliver(data.draw(st.permutations(wire.segments))).out)


@given(CONVERSATIONS, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
@settings(max_examples=12)
def test_any_initial_sequence_numbers(wire: Wire, client: int, server: int) -> None:
    straight = deliver(wire.segments)
    for isn in ((client, server), (2**32 - 1 - client % 300, 2**32 - 1 - server % 300)):
        harness = deliver(wire.segments, isn=isn)
        assert all_of(harness.out) == all_of(straight.out)


@st.composite
def merges(draw: st.DrawFn, segments: list[Segment]) -> list[Segment]:
    """Each direction in its order, one shifted against the other anyhow."""
    sides = [[one for one in segments if one.direction == who] for who in (0, 1)]
    merged = []
    while sides[0] and sides[1]:
        run = draw(st.integers(1, 9))
        who = draw(st.integers(0, 1))
        merged += sides[who][:run]
        del sides[who][:run]
    return merged + sides[0] + sides[1]


def _ended(wire: Wire) -> list[Segment]:
    """With the handshake before and FIN behind, as segments that can be shifted too."""
    sizes = len(wire.stream(0)), len(wire.stream(1))
    return [
        Segment(0, -1, b"", -1, SYN),
        Segment(1, -1, b"", 0, SYN | ACK),
        *wire.segments,
        Segment(0, sizes[0], b"", sizes[1], FIN | ACK),
        Segment(1, sizes[1], b"", sizes[0] + 1, FIN | ACK),
    ]


@given(CONVERSATIONS, st.data(), st.booleans())
@settings(max_examples=30)
def test_a_shifted_direction_says_the_same(wire: Wire, data: st.DataObject, syn: bool) -> None:
    whole = _ended(wire)[0 if syn else 2 :]
    straight = deliver(whole, syn=False)
    shifted = deliver(data.draw(merges(whole)), syn=False)
    for direction in (0, 1):
        # Without SYN both may have spoken as the server in SASL: then nothing tells who is the client.
        first = 0 if syn else 2
        assert [one[first:] for one in side(shifted, direction)] == [
            one[first:] for one in side(straight, direction)
        ]
        assert [one.acknowledged for one in shifted.out if one.direction == direction] == [
            one.acknowledged for one in straight.out if one.direction == direction
        ]
    assert not syn or shifted.connection.id == straight.connection.id
    assert shifted.notes == straight.notes == []
    assert causal(shifted.out)


# ---- octets that are missing ------------------------------------------------------------------------------


@given(SURE_TURNS.flatmap(wires), st.data())
@settings(max_examples=examples(80))
def test_lost_segments_lose_the_frames_they_touch_and_no_others(wire: Wire, data: st.DataObject) -> None:
    lost = data.draw(st.sets(st.integers(0, len(wire.segments) - 1), min_size=1, max_size=4))
    left = [one for number, one in enumerate(wire.segments) if number not in lost]
    gone = [one for number, one in enumerate(wire.segments) if number in lost]
    # That all was heard in the end shows what is missing.
    sizes = len(wire.stream(0)), len(wire.stream(1))
    left += [Segment(0, sizes[0], b"", sizes[1], ACK), Segment(1, sizes[1], b"", sizes[0], ACK)]
    harness = deliver(left)
    for direction in (0, 1):
        said = [(offset, octets) for who, offset, octets in wire.frames if who == direction]
        touched = {
            offset
            for offset, octets in said
            for one in gone
            if one.direction == direction and one.offset < offset + len(octets) and offset < one.end
        }
        whole = [(offset, octets) for offset, octets in said if offset not in touched]
        records = [one for one in harness.out if one.direction == direction]
        found = {int(one.frame.offset): one for one in records if one.frame.kind != "skipped"}
        assert set(found) <= {offset for offset, _ in said}
        for offset, octets in whole:
            assert found[offset].frame.raw == octets
            assert found[offset].frame.missing == 0
            assert found[offset].frame.problems == [] or octets == AMQP_HEADER
        # Every octet belongs to one frame or to one stretch that was skipped.
        place = 0
        for record in records:
            assert record.frame.offset == place
            place += int(record.frame.size)
        # One octet that is acknowledged behind all others is taken for a FIN.
        facts = harness.analysis.tcp.facts(direction)
        implied = 1 if facts.ended == "fin" else 0
        assert place == (sizes[direction] - implied if records else 0)
        missing = sum(one.end - one.offset for one in gone if one.direction == direction)
        assert int(facts.missing) == missing - implied
    kept = [one for one in harness.out if one.frame.kind != "skipped" and one.frame.missing == 0]
    for record in kept:
        numbered = [(number, one) for number, one in enumerate(left, 3) if one.direction == record.direction]
        first = next((n, one) for n, one in numbered if one.offset <= record.frame.offset < one.end)
        assert (record.packet, record.acknowledged) == (first[0], first[1].ack)


@given(SURE_TURNS.flatmap(wires), st.data())
@settings(max_examples=examples(50))
def test_a_capture_may_begin_anywhere(wire: Wire, data: st.DataObject) -> None:
    """Without SYN and the first segments: the frames that are whole are found, with offsets from there."""
    begin = data.draw(st.integers(0, len(wire.segments) - 1))
    left = wire.segments[begin:]
    harness = deliver(left, syn=False)
    for direction in (0, 1):
        own = [one for one in left if one.direction == direction]
        base = own[0].offset if own else 0
        whole = [
            (offset - base, octets)
            for who, offset, octets in wire.frames
            if who == direction and own and offset >= base
        ]
        found = [one for one in harness.out if one.direction == direction and one.frame.kind != "skipped"]
        assert [(int(one.frame.offset), one.frame.raw) for one in found] == whole


# ---- moved to another process -----------------------------------------------------------------------------


def plain(value: object) -> bool:
    """Whether a state holds nothing but plain values."""
    if isinstance(value, tuple):
        return all(plain(one) for one in value)
    return value is None or type(value) in (int, str, bytes, bool)


FRAGMENTS = st.one_of(
    st.sampled_from(SURE + [octets for _, octets in KNOWN] + STRANGE),
    st.binary(min_size=1, max_size=40),
    st.sampled_from([b"x" * 70_000, b"\0" * 9000, frame(amqp.transfer(handle=0, more=True), b"y" * 5000)]),
)


@st.composite
def anything(draw: st.DrawFn) -> list[Segment]:
    """Two streams of frames, openings of all protocols and rubbish; some of it lost, cut or in disorder."""
    segments = []
    sent = [0, 0]
    for _ in range(draw(st.integers(1, 14))):
        who = draw(st.integers(0, 1))
        octets = draw(FRAGMENTS)
        cut = draw(st.integers(0, len(octets)))
        for piece in (octets[:cut], octets[cut:]):
            if piece:
                segments.append(Segment(who, sent[who], piece, sent[1 - who]))
                sent[who] += len(piece)
        sent[who] += draw(st.sampled_from([0, 0, 0, 0, 1, 30, 5000]))
    ends = st.sampled_from([ACK, FIN | ACK, RST | ACK])
    segments += [Segment(who, sent[who], b"", sent[1 - who], draw(ends)) for who in (0, 1)]
    if draw(st.booleans()):
        at = draw(st.integers(0, len(segments) - 1))
        segments.insert(draw(st.integers(0, len(segments))), segments.pop(at))
    return segments


@given(anything(), st.booleans())
@settings(max_examples=examples(120))
def test_dumped_and_loaded_after_every_segment_it_is_the_same(segments: list[Segment], syn: bool) -> None:
    straight = deliver(segments, syn=syn, finish=False)
    moved = deliver(segments, syn=syn, reload=True, finish=False)
    assert moved.analysis.dump() == straight.analysis.dump()
    assert plain(moved.analysis.dump())
    straight.finish()
    moved.finish()
    assert all_of(moved.out) == all_of(straight.out)
    assert [(one.code, one.packet, one.time, one.detail) for one in moved.notes] == [
        (one.code, one.packet, one.time, one.detail) for one in straight.notes
    ]
    for name in ("id", "protocol", "client", "encrypted", "frames", "stream", "instance", "capture"):
        assert getattr(moved.connection, name) == getattr(straight.connection, name)


@given(CONVERSATIONS, st.data())
@settings(max_examples=12)
def test_a_conversation_dumped_and_loaded_is_the_same(wire: Wire, data: st.DataObject) -> None:
    """With messages under way and octets that wait in both directions."""
    segments = data.draw(any_delivery(wire))
    straight = deliver(segments)
    moved = deliver(segments, reload=True)
    assert all_of(moved.out) == all_of(straight.out)


def test_a_state_of_another_version_is_refused() -> None:
    harness = ConnectionHarness()
    state = harness.analysis.dump()
    version, *rest = state
    assert isinstance(version, int)
    for other in ((), (version + 1, *rest), (version - 1, *rest)):
        with pytest.raises(ValueError, match="version"):
            type(harness.analysis).load(other, harness.output)


# ---- any segments -----------------------------------------------------------------------------------------

NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 1), st.integers(2**32 - 50, 2**32 - 1))
SEGMENTS = st.tuples(
    st.integers(0, 1),
    NUMBERS,
    st.one_of(st.just(-1), NUMBERS),
    st.one_of(st.sampled_from([ACK, ACK | PSH, SYN, SYN | ACK, FIN | ACK, RST]), st.integers(0, 255)),
    st.one_of(st.just(b""), FRAGMENTS),
    st.sampled_from([0, 0, 0, 1, 1000, 70_000]),
)


BEHIND_THE_END = [
    (1, 22, -1, ACK, b"", 0),
    (1, 0, -1, ACK, b"\x00\x00\x00\x14\x02\x00\x00\x03\x00S\x11\xc0\x07\x04@CR\nR\n", 0),
]
"""An empty segment shows that octets were sent which no other packet shows."""


@given(st.lists(SEGMENTS, max_size=30), st.booleans())
@example(BEHIND_THE_END, False)
@settings(max_examples=examples(150))
def test_any_segments_are_survived(segments: list[Any], keep: bool) -> None:
    """Numbers, flags and octets at random, on a few ports: frames in order, none twice, and an end."""
    table = ConnectionTable("c", kept=KeptConnections(keep))
    time = 0
    for number, (direction, seq, ack, flags, octets, cut) in enumerate(segments, 1):
        key = b"\x0a\0\0\1\x0a\0\0\2" + bytes((1, len(octets) % 2, 22, 40))
        reverse = reverse_key(key)
        if direction:
            key, reverse = reverse, key
        time += 31_000_000_000 * (seq % 3)
        segment = captured(octets, packet=number, time=time, seq=seq, ack=ack, flags=flags, cut=cut)
        segment.key, segment.reverse = key, reverse
        table.segment(segment)
    table.finish()
    records = table.output.take_records()
    table.take_notes()
    places: dict[tuple[int, int, int], int] = {}
    for record in records:
        connection = record.connection
        where = (id(connection), connection.instance, int(record.direction))
        assert record.frame.offset >= places.get(where, 0)
        whole = not any(one.code == "incomplete" for one in record.frame.problems)
        places[where] = int(record.frame.offset) + (int(record.frame.size) if whole else 1)
        assert record.peer in ("client", "server")
        assert 1 <= record.packet <= len(segments)
        assert 1 <= record.last_packet <= len(segments)
        assert record.acknowledged >= -1
    assert len(table.kept.connections) == (sum(table.totals.protocols.values()) if keep else 0)


@given(anything())
@settings(max_examples=examples(40))
def test_how_it_is_cut_makes_no_difference(segments: list[Segment]) -> None:
    """Octets in small segments or as they were: the same frames, and the same protocol."""
    kept = [one for one in segments if not one.flags & (FIN | RST)]
    pieces = [
        replace(one, offset=one.offset + at, octets=one.octets[at : at + 700])
        for one in kept
        for at in range(0, max(1, len(one.octets)), 700)
    ]
    straight, cut = deliver(kept), deliver(pieces)
    for direction in (0, 1):
        assert side(cut, direction) == side(straight, direction)
    assert cut.connection.protocol == straight.connection.protocol
