"""What holds for every conversation and every way to capture it.

A conversation is drawn in the order in which it was said; a capture of it is any reordering, repetition
or thinning of that. What must come out follows from the capture alone: for each octet the first captured
segment that carried it.
"""

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.sampling import examples
from support.segments import captured
from support.streams import ACK, FIN, MILLISECOND, RST, SYN, Recorder, Segment, Wire, octets, replay, send

from amqpscope.limits import REASSEMBLY_WAITING_PIECES
from amqpscope.reassembly.connection import TcpConnection
from amqpscope.reassembly.stream import StreamFacts

EXAMPLES = settings(max_examples=examples(150), deadline=None)

isns = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)) | st.tuples(
    st.integers(2**32 - 200, 2**32 - 1), st.integers(2**31 - 200, 2**31)
)

# direction, kind, size, how far the acknowledgement follows (in halves of what is new), where it repeats
steps = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["data", "data", "data", "data", "ack", "again"]),
        st.integers(1, 30),
        st.integers(0, 2),
        st.integers(0, 60),
    ),
    max_size=40,
)
Steps = list[tuple[int, str, int, int, int]]
amounts = st.lists(st.integers(0, 12), max_size=45)
choices = st.lists(st.integers(0, 15), max_size=12)
dropped = st.lists(st.integers(3, 45), max_size=12)


def converse(drawn: Steps, repeat: bool = True, fins: int = 0, cut: bool = False) -> Wire:
    """A conversation with handshake. `fins`: 0 none, 1 the first direction ends, 2 both."""
    wire = Wire()
    wire.syn(0)
    wire.syn(1)
    wire.ack(0)
    acked = [0, 0]
    for direction, kind, size, follow, back in drawn:
        acked[direction] += (wire.knows(direction) - acked[direction]) * follow // 2
        if kind == "data":
            wire.data(direction, size, acked[direction], back % size if cut and back % 3 == 0 else 0)
        elif kind == "ack":
            wire.ack(direction, acked[direction])
        elif repeat and wire.sent[direction]:
            start = max(0, wire.sent[direction] - 1 - back)
            end = min(start + size, wire.sent[direction])
            if (start, end) != (wire.sent[direction] - 1, wire.sent[direction]):  # would be a keep-alive
                acked[direction] = wire.knows(direction)
                wire.again(direction, start, end)
    for direction in range(fins):
        wire.fin(direction)
    if fins:
        wire.ack(0)
        wire.ack(1)
    return wire


def jitter(segments: list[Segment], amounts: list[int]) -> list[Segment]:
    """Each segment as many places later as its amount says; the handshake stays in front."""
    order = sorted(
        range(len(segments)),
        key=lambda at: (at + (amounts[at % len(amounts)] if at > 1 and amounts else 0), at),
    )
    return [segments[at] for at in order]


def merge(segments: list[Segment], choices: list[int]) -> list[Segment]:
    """The two directions against one another in another way; within each the order stays."""
    sides = [[s for s in segments if s.direction == direction] for direction in (0, 1)]
    merged: list[Segment] = []
    at = 0
    while sides[0] and sides[1]:
        choice = choices[at % len(choices)] if choices else 0
        at += 1
        count = choice // 2 + 1
        merged += sides[choice % 2][:count]
        del sides[choice % 2][:count]
    return merged + sides[0] + sides[1]


def stream_end(segments: list[Segment], direction: int) -> tuple[int, int]:
    """Where a direction's stream ends as far as the capture shows: not before, and not behind."""
    own = [s for s in segments if s.direction == direction]
    captured = max((s.end for s in own if s.end > s.offset), default=0)
    for segment in own:
        if segment.flags & FIN:
            return segment.offset, segment.offset
    shown = max(
        max((s.offset for s in own), default=0),
        max((s.ack for s in segments if s.direction != direction), default=0),
    )
    # The last octet that is acknowledged or counted, but was not seen, may have been FIN.
    if shown <= captured + 1:
        return captured, captured
    return shown - 1, shown


class Expected:
    """What a capture shows of one direction, octet by octet."""

    def __init__(self, segments: list[Segment], direction: int, recorder: Recorder) -> None:
        self.end = recorder.reached[direction]
        low, high = stream_end(segments, direction)
        assert low <= self.end <= high
        self.stream = bytearray(b"?" * self.end)
        self.acks = [-1] * self.end
        self.packets = [-1] * self.end
        taken = [False] * self.end
        for segment in segments:
            if segment.direction != direction:
                continue
            for at in range(segment.offset, segment.end):
                if 0 <= at < self.end and not taken[at]:
                    taken[at] = True
                    if at < segment.offset + len(segment.payload):
                        self.stream[at] = segment.payload[at - segment.offset]
                        self.acks[at] = min(segment.ack, recorder.reached[1 - direction])
                        self.packets[at] = segment.packet
        self.missing = self.packets.count(-1)


def check(recorder: Recorder, connection: TcpConnection, segments: list[Segment]) -> None:
    """Exactly what the capture shows came out."""
    for direction in (0, 1):
        expected = Expected(segments, direction, recorder)
        assert recorder.stream(direction) == bytes(expected.stream)
        assert recorder.packets[direction] == expected.packets
        assert recorder.acks[direction] == expected.acks
        facts = connection.facts(direction)
        assert facts.missing == expected.missing
        assert facts.delivered == expected.end - expected.missing
        assert facts.stray == 0
        assert facts.differing == 0
        assert facts.segments == sum(s.direction == direction for s in segments)
        ends = [s for s in segments if s.direction == direction and s.flags & FIN]
        assert recorder.ended[direction] == ("fin" if ends else "") == facts.ended
    assert recorder.notes == []


@EXAMPLES
@given(steps=steps, isn=isns, fins=st.integers(0, 2))
def test_a_capture_in_order_is_passed_on_at_once(steps: Steps, isn: tuple[int, int], fins: int) -> None:
    wire = converse(steps, fins=fins)
    recorder = Recorder()
    connection = TcpConnection(recorder)
    for segment in wire.segments:
        send(connection, segment, isn)
        assert recorder.reached[segment.direction] >= min(segment.end, wire.sent[segment.direction])
    assert connection.waiting() == 0
    before = list(recorder.events)
    connection.finish()
    assert recorder.events == before
    check(recorder, connection, wire.segments)
    assert bytes(recorder.stream(0)) == octets(0, 0, wire.sent[0])
    assert bytes(recorder.stream(1)) == octets(1, 0, wire.sent[1])


@EXAMPLES
@given(
    steps=steps,
    isn=isns,
    fins=st.integers(0, 2),
    amounts=amounts,
    copies=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10)), max_size=10),
)
def test_reordering_repetition_and_other_boundaries_change_nothing(
    steps: Steps, isn: tuple[int, int], fins: int, amounts: list[int], copies: list[tuple[int, int]]
) -> None:
    wire = converse(steps, fins=fins)
    captured = list(wire.segments)
    for at, further in copies:
        at %= len(captured)
        captured.insert(max(at + further, 2), captured[at])
    captured = jitter(captured, amounts)
    # A retransmission that was captured before the original binds its octets to what it acknowledges.
    recorder, connection = replay(captured, isn, causal=False, finish=False)
    assert connection.waiting() == 0
    connection.finish()
    assert not recorder.gaps(0)
    assert not recorder.gaps(1)
    check(recorder, connection, captured)


@EXAMPLES
@given(steps=steps, isn=isns, fins=st.integers(0, 2), amounts=amounts, dropped=dropped)
def test_what_is_not_captured_is_a_gap_exactly(
    steps: Steps, isn: tuple[int, int], fins: int, amounts: list[int], dropped: list[int]
) -> None:
    wire = converse(steps, fins=fins, cut=True)
    captured = jitter([s for at, s in enumerate(wire.segments) if at not in dropped], amounts)
    recorder, connection = replay(captured, isn, causal=False)
    check(recorder, connection, captured)


@EXAMPLES
@given(
    steps=steps,
    isn=isns,
    fins=st.integers(0, 2),
    choices=choices,
    copies=st.lists(st.integers(0, 50), max_size=5),
)
def test_shifting_one_direction_keeps_the_causal_order(
    steps: Steps, isn: tuple[int, int], fins: int, choices: list[int], copies: list[int]
) -> None:
    wire = converse(steps, fins=fins)
    captured = merge(wire.segments, choices)
    for at in copies:
        captured.append(captured[at % len(captured)])
    recorder, connection = replay(captured, isn, causal=True, finish=False)  # the recorder checks the order
    assert connection.waiting() == 0
    check(recorder, connection, captured)


@EXAMPLES
@given(
    steps=steps,
    isn=isns,
    fins=st.integers(0, 2),
    choices=choices,
    dropped=st.lists(st.integers(3, 45), max_size=8),
)
def test_shifting_one_direction_of_a_lossy_capture_changes_nothing(
    steps: Steps, isn: tuple[int, int], fins: int, choices: list[int], dropped: list[int]
) -> None:
    wire = converse(steps, fins=fins, cut=True)
    captured = [s for at, s in enumerate(wire.segments) if at not in dropped]
    shifted = merge(captured, choices)
    recorder, connection = replay(shifted, isn, causal=False)
    check(recorder, connection, captured)


@EXAMPLES
@given(steps=steps, isn=isns, start=st.integers(2, 30), choices=choices)
def test_shifting_one_direction_of_a_capture_from_the_middle_changes_nothing(
    steps: Steps, isn: tuple[int, int], start: int, choices: list[int]
) -> None:
    # One octet before what is acknowledged would be a keep-alive.
    steps = [(direction, kind, size + 1, follow, back) for direction, kind, size, follow, back in steps]
    wire = converse(steps, repeat=False, fins=2)
    captured = wire.segments[start:]
    assume({s.direction for s in captured} == {0, 1})
    plain, _ = replay(captured, isn)
    shifted, connection = replay(merge(captured, choices), isn)
    for direction in (0, 1):
        origin = min(s.offset for s in captured if s.direction == direction)
        assert plain.stream(direction) == octets(direction, origin, wire.sent[direction])
        assert shifted.stream(direction) == plain.stream(direction)
        assert shifted.acks[direction] == plain.acks[direction]
        assert shifted.packets[direction] == plain.packets[direction]
        assert connection.facts(direction).midstream
        assert connection.facts(direction).missing == 0


@EXAMPLES
@given(
    steps=steps,
    isn=isns,
    amounts=amounts,
    dropped=st.lists(st.integers(0, 45), max_size=12),
    start=st.integers(0, 6),
)
def test_the_initial_sequence_numbers_change_nothing(
    steps: Steps, isn: tuple[int, int], amounts: list[int], dropped: list[int], start: int
) -> None:
    wire = converse(steps, fins=2, cut=True)
    captured = jitter([s for at, s in enumerate(wire.segments) if at not in dropped], amounts)[start:]
    one, _ = replay(captured, isn, causal=False)
    two, _ = replay(captured, (0, 5), causal=False)
    assert one.events == two.events


@EXAMPLES
@given(
    steps=steps,
    amounts=amounts,
    dropped=st.lists(st.integers(0, 45), max_size=12),
    start=st.integers(0, 6),
    at=st.integers(0, 45),
    other=st.booleans(),
)
def test_dumping_and_loading_after_any_segment_changes_nothing(
    steps: Steps, amounts: list[int], dropped: list[int], start: int, at: int, other: bool
) -> None:
    wire = converse(steps, fins=2, cut=True)
    captured = jitter([s for at, s in enumerate(wire.segments) if at not in dropped], amounts)[start:]
    if other and captured:  # second copies that differ must be noticed all the same
        captured += [
            replace(s, payload=bytes(octet ^ 1 for octet in s.payload)) for s in captured[-4:] if s.payload
        ]
    plain, untouched = replay(captured, causal=False)
    moved, connection = replay(captured, causal=False, reload_after=at % (len(captured) + 1))
    assert moved.events == plain.events
    assert connection.dump() == untouched.dump()
    for direction in (0, 1):
        assert _values(connection.facts(direction)) == _values(untouched.facts(direction))
    _plain_values(connection.dump())


def _values(facts: StreamFacts) -> dict[str, object]:
    """The attributes of what a summary reports of a direction."""
    return {name: getattr(facts, name) for name in dir(facts) if not name.startswith("_")}


def _plain_values(value: object) -> None:
    if isinstance(value, tuple):
        for item in value:
            _plain_values(item)
    else:
        assert value is None or type(value) in (int, str, bytes, bool)


anything = st.one_of(
    st.integers(0, 40),
    st.integers(0, 2**32 - 1),
    st.integers(2**32 - 20, 2**32 - 1),
    st.sampled_from([2**30, 2**30 + 30, 2**31 - 1, 2**31, 2**31 + 1, 3 * 2**30]),
)
garbage = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 2**62) | st.integers(0, 1000),
        anything,
        st.just(-1) | anything,
        st.sampled_from([0, ACK, ACK, ACK, ACK, ACK, SYN, SYN | ACK, FIN | ACK, RST, RST | ACK, 255]),
        st.integers(0, 40),
        st.integers(0, 3) | st.integers(0, 70_000),
    ),
    max_size=60,
)


@settings(max_examples=examples(400), deadline=None)
@given(segments=garbage, reload_after=st.integers(0, 60), ticks=st.sets(st.integers(0, 60), max_size=5))
def test_garbage_raises_nothing_and_keeps_the_contract(
    segments: list[tuple[int, int, int, int, int, int, int]], reload_after: int, ticks: set[int]
) -> None:
    recorder = Recorder(
        causal=False
    )  # it checks that there are no holes, overlaps, or anything behind the end
    connection = TcpConnection(recorder)
    buf = bytes(range(64))
    total = 0
    for number, (direction, time, seq, ack, flags, size, cut) in enumerate(segments):
        if number == reload_after:
            connection = TcpConnection.load(connection.dump(), recorder)
        connection.starts_new(direction, seq, flags, time, size > 30)
        connection.continues(direction, seq)
        # Any window: of a SYN with any scale, of others closed, small or large.
        window = (size % 18) << 16 | cut & 0xFFFF if flags & SYN else cut & 0xFFFF
        ack = -1 if not flags & ACK else max(ack, 0)
        segment = captured(
            packet=number + 1, time=time, seq=seq, ack=ack, flags=flags, window=window, cut=cut
        )
        segment.buf, segment.start, segment.end, segment.cut = buf, 7, 7 + size, cut
        connection.segment(direction, segment)
        if number in ticks:
            connection.tick(time + 10 * 1_000_000_000)
        total += size
        assert connection.waiting() <= 2 * REASSEMBLY_WAITING_PIECES
    connection.finish()
    assert connection.waiting() == 0
    delivered = sum(len(octets) for direction in (0, 1) for octets in recorder.pieces[direction])
    assert connection.facts(0).delivered + connection.facts(1).delivered <= min(total, delivered)
    assert connection.opener() in (-1, 0, 1)


@EXAMPLES
@given(
    steps=steps,
    noise=st.lists(
        st.tuples(st.integers(3, 45), st.integers(0, 1), st.integers(-200, 400), st.integers(-200, 400)),
        max_size=6,
    ),
)
def test_old_segments_do_no_harm(steps: Steps, noise: list[tuple[int, int, int, int]]) -> None:
    """Empty segments with any old sequence number and any old acknowledgement, as keep-alives have them."""
    wire = converse(steps)
    captured: list[Segment] = []
    sent = [0, 0]
    for at, segment in enumerate(wire.segments):
        captured.append(segment)
        sent[segment.direction] = max(sent[segment.direction], segment.end)
        for place, direction, offset, ack in noise:
            if place == at:
                old = Segment(
                    direction,
                    min(offset, sent[direction]),
                    b"",
                    min(ack, sent[1 - direction]),
                    ACK,
                    packet=0,
                    time=at * MILLISECOND,
                )
                captured.append(replace(old, ack=max(old.ack, 0)))
    recorder, connection = replay(captured, finish=False)
    assert connection.waiting() == 0
    check(recorder, connection, captured)
