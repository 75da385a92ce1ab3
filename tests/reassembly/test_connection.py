"""Each rule of reassembly by itself, with an example."""

from dataclasses import replace

import pytest
from support.segments import captured
from support.streams import (
    ACK,
    FIN,
    MILLISECOND,
    PSH,
    RST,
    SYN,
    Recorder,
    Segment,
    Wire,
    octets,
    replay,
    send,
)

from amqpscope.limits import (
    NEW_CONNECTION_HEADER,
    NEW_CONNECTION_JUMP,
    NEW_CONNECTION_SILENCE,
    PROBE_QUIET,
    REASSEMBLY_LAG_SEGMENTS,
    REASSEMBLY_LAG_TIME,
    REASSEMBLY_LIVE_WAIT,
    REASSEMBLY_OVERLAP_NOTES,
    REASSEMBLY_RECENT_OCTETS,
    REASSEMBLY_REORDER_SEGMENTS,
    REASSEMBLY_REORDER_TIME,
    REASSEMBLY_STRAYS,
    REASSEMBLY_WAITING_OCTETS,
    REASSEMBLY_WAITING_PIECES,
    SEQUENCE_WINDOW,
)
from amqpscope.reassembly.connection import TcpConnection
from amqpscope.reassembly.provenance import Provenance

SECOND = 1_000_000_000


def opened() -> Wire:
    wire = Wire()
    wire.syn(0)
    wire.syn(1)
    wire.ack(0)
    return wire


def feed(segments: list[Segment], causal: bool = True) -> tuple[Recorder, TcpConnection]:
    """Without `finish`."""
    return replay(segments, causal=causal, finish=False)


def without(segments: list[Segment], *gone: Segment) -> list[Segment]:
    return [segment for segment in segments if segment not in gone]


def data_events(recorder: Recorder) -> list[tuple[object, object, object, object]]:
    """(direction, offset, packet, ack) of what was passed on, in order."""
    return [(e[1], e[2], e[4], e[6]) for e in recorder.events if e[0] == "data"]


# -- the handshake, and who opened ------------------------------------------------------------------


def test_facts_of_a_plain_conversation() -> None:
    wire = opened()
    wire.data(0, 8)
    wire.data(1, 5)
    wire.ack(0)
    wire.fin(0)
    recorder, connection = feed(wire.segments)
    first = connection.facts(0)
    assert (first.seen, first.syn, first.midstream) == (True, True, False)
    assert (first.delivered, first.missing, first.segments) == (8, 0, 5)
    assert (first.first_packet, first.last_packet) == (1, 7)
    assert (first.first_time, first.last_time) == (MILLISECOND, 7 * MILLISECOND)
    assert first.ended == "fin"
    second = connection.facts(1)
    assert (second.delivered, second.segments, second.ended) == (5, 2, "")
    assert (second.first_packet, second.last_packet) == (2, 5)
    assert connection.opener() == 0
    assert data_events(recorder) == [(0, 0, 4, 0), (1, 0, 5, 8)]


@pytest.mark.parametrize("shown", [0, 1])
def test_one_syn_is_enough_to_know_who_opened(shown: int) -> None:
    wire = opened()
    wire.data(0, 8)
    assert feed([wire.segments[shown], *wire.segments[2:]])[1].opener() == 0
    swapped = [replace(s, direction=1 - s.direction) for s in wire.segments]
    assert feed([swapped[shown], *swapped[2:]])[1].opener() == 1
    assert feed(wire.segments[2:])[1].opener() == -1


def test_octets_with_syn_stand_at_offset_0() -> None:
    segments = [
        Segment(0, -1, octets(0, 0, 4), -1, SYN, packet=1),
        Segment(1, -1, b"", 4, SYN | ACK, packet=2),
        Segment(0, 4, octets(0, 4, 6), 0, packet=3),
    ]
    # SYN takes a sequence number: what comes with it begins one later.
    recorder, _ = feed(segments)
    assert recorder.stream(0) == octets(0, 0, 6)
    assert recorder.acks[0] == [-1] * 4 + [0] * 2


def test_syn_sent_again_changes_nothing() -> None:
    wire = opened()
    wire.data(0, 4)
    wire.segments += [wire.segments[0], wire.segments[1]]
    wire.data(1, 4)
    recorder, connection = feed(wire.segments)
    assert recorder.reached == [4, 4]
    assert connection.facts(0).stray == connection.facts(0).late == 0


# -- order ------------------------------------------------------------------------------------------


def test_a_segment_waits_for_the_octets_it_acknowledges() -> None:
    wire = opened()
    asked = wire.data(0, 8)
    answered = wire.data(1, 6)
    wire.data(0, 4)
    recorder, connection = feed([*wire.segments[:3], asked, *wire.segments[5:], answered])
    assert [event[:2] for event in data_events(recorder)] == [(0, 0), (1, 0), (0, 8)]
    assert connection.waiting() == 0


def test_a_pure_acknowledgement_waits_for_nothing_and_holds_nothing_up() -> None:
    wire = opened()
    wire.data(1, 6)
    late = wire.segments.pop()
    wire.ack(0)
    recorder, connection = feed(wire.segments)
    assert connection.waiting() == 0
    send(connection, late)
    assert recorder.stream(1) == octets(1, 0, 6)


def test_octets_keep_the_acknowledgement_of_the_segment_that_showed_them_first() -> None:
    wire = opened()
    wire.data(0, 4)  # acknowledges 0
    wire.data(1, 6)
    wire.again(0, 0, 4)  # acknowledges 6
    wire.sent[0] += 3
    wire.again(0, 2, 7)  # two old octets, three new ones
    recorder, connection = feed(wire.segments)
    assert recorder.acks[0] == [0] * 4 + [6] * 3
    assert connection.facts(0).retransmitted == 4 + 2


def test_without_ack_flag_the_acknowledgement_is_unknown() -> None:
    wire = opened()
    wire.data(1, 3)
    wire.segments.append(Segment(0, 0, b"abc", -1, 0, packet=9))
    recorder, _ = feed(wire.segments)
    assert recorder.acks[0] == [-1] * 3


def test_two_pieces_that_wait_for_each_other_go_by_packet_number() -> None:
    # Of both directions the original was lost by the capture, and what was captured acknowledges the other's.
    wire = opened()
    late = Segment(1, 0, octets(1, 0, 5), 4, packet=20)
    early = Segment(0, 0, octets(0, 0, 4), 5, packet=19)
    for order in ([early, late], [late, early]):
        recorder, connection = feed([*wire.segments, *order], causal=False)
        assert data_events(recorder) == [(0, 0, 19, 5), (1, 0, 20, 4)]
        assert connection.waiting() == 0


# -- holes ------------------------------------------------------------------------------------------


def test_out_of_order_segments_are_put_in_order() -> None:
    wire = opened()
    parts = [wire.data(0, 5) for _ in range(4)]
    recorder, _ = feed([*wire.segments[:3], parts[2], parts[0], parts[3], parts[1]])
    assert recorder.stream(0) == octets(0, 0, 20)
    assert [event[2] for event in data_events(recorder)] == [4, 5, 6, 7]


def lost(acknowledged: bool) -> tuple[Wire, Recorder, TcpConnection]:
    """Of direction 0 the octets 4 to 10 are missing, and later ones were captured."""
    wire = opened()
    wire.data(0, 4)
    gone = wire.data(0, 6)
    wire.data(0, 5)
    if acknowledged:
        wire.ack(1)
    recorder, connection = feed(without(wire.segments, gone))
    assert recorder.stream(0) == octets(0, 0, 4)
    return wire, recorder, connection


def test_an_acknowledged_hole_is_a_gap_after_so_many_segments_of_its_direction() -> None:
    wire, recorder, connection = lost(acknowledged=True)
    for _ in range(3 * REASSEMBLY_REORDER_SEGMENTS):
        send(connection, wire.ack(1))  # the other direction's segments do not count
    for _ in range(REASSEMBLY_REORDER_SEGMENTS - 1):
        send(connection, replace(wire.data(0, 1), time=0))
    assert recorder.reached[0] == 4
    send(connection, wire.data(0, 1))
    assert recorder.gaps(0) == [(4, 6)]
    assert ("gap", 0, 4, 6, 6, 6 * MILLISECOND) in recorder.events  # made known by the packet behind the hole
    assert recorder.stream(0)[10:] == octets(0, 10, wire.sent[0])
    assert connection.waiting() == 0


def test_an_acknowledged_hole_is_a_gap_after_some_time_of_its_direction() -> None:
    wire, recorder, connection = lost(acknowledged=True)
    since = wire.segments[5].time
    send(connection, replace(wire.ack(1), time=since + 10 * REASSEMBLY_REORDER_TIME))
    send(connection, replace(wire.ack(0), time=since + REASSEMBLY_REORDER_TIME - 1))
    assert recorder.reached[0] == 4
    send(connection, replace(wire.ack(0), time=since + REASSEMBLY_REORDER_TIME))
    assert recorder.reached[0] == 15


def test_several_acknowledged_holes_do_not_wait_one_after_the_other() -> None:
    wire = opened()
    parts = [wire.data(0, 10) for _ in range(200)]
    wire.segments = [*wire.segments[:3], *[p for at, p in enumerate(parts) if at % 10 != 5]]
    captured = list(wire.segments)
    for at in range(200):
        captured.insert(3 + at * 19 // 10, Segment(1, 0, b"", min(at * 10, wire.sent[0])))
    recorder, connection = feed([replace(s, time=0) for s in captured])
    assert recorder.reached[0] > 1000
    assert connection.waiting() < 2 * REASSEMBLY_REORDER_SEGMENTS


def test_a_hole_that_is_not_acknowledged_waits_for_its_retransmission() -> None:
    wire, recorder, connection = lost(acknowledged=False)
    for _ in range(3 * REASSEMBLY_REORDER_SEGMENTS):
        send(connection, wire.data(0, 1))
    send(connection, replace(wire.ack(0), time=10 * REASSEMBLY_REORDER_TIME))
    assert recorder.reached[0] == 4
    send(connection, wire.again(0, 4, 10))
    assert recorder.stream(0) == octets(0, 0, wire.sent[0])
    assert connection.facts(0).missing == 0


def test_the_acknowledgement_may_come_just_before_the_retransmission() -> None:
    wire, recorder, connection = lost(acknowledged=False)
    for _ in range(3 * REASSEMBLY_REORDER_SEGMENTS):
        send(connection, wire.data(0, 1))
    send(connection, wire.ack(1))
    send(connection, wire.ack(0))
    send(connection, wire.again(0, 4, 10))
    assert recorder.stream(0) == octets(0, 0, wire.sent[0])


def lagging() -> tuple[Wire, Recorder, TcpConnection]:
    """Direction 0 is shown later than direction 1, which has acknowledged all of it already."""
    wire = opened()
    send_first = Segment(1, 0, b"", 1_000_000)
    wire.data(0, 4)
    gone = wire.data(0, 6)
    wire.data(0, 5)
    captured = without(wire.segments, gone)
    recorder, connection = feed([*captured[:3], send_first, *captured[3:]])
    return wire, recorder, connection


def test_a_direction_that_lags_is_given_time_for_retransmissions() -> None:
    wire, recorder, connection = lagging()
    for _ in range(20 * REASSEMBLY_REORDER_SEGMENTS):
        send(connection, replace(wire.data(0, 1), time=3 * REASSEMBLY_REORDER_TIME))
    assert recorder.reached[0] == 4
    send(connection, wire.again(0, 4, 10))
    assert recorder.stream(0) == octets(0, 0, wire.sent[0])


def test_a_direction_that_lags_is_not_given_time_for_ever() -> None:
    wire, recorder, connection = lagging()
    for _ in range(REASSEMBLY_LAG_SEGMENTS - 1):
        send(connection, replace(wire.data(0, 1), time=0))
    assert recorder.reached[0] == 4
    send(connection, replace(wire.data(0, 1), time=0))
    assert recorder.reached[0] == wire.sent[0]
    wire, recorder, connection = lagging()
    since = wire.segments[5].time
    send(connection, replace(wire.data(0, 1), time=since + REASSEMBLY_LAG_TIME - 1))
    assert recorder.reached[0] == 4
    send(connection, replace(wire.data(0, 1), time=since + REASSEMBLY_LAG_TIME))
    assert recorder.reached[0] == wire.sent[0]


def test_an_empty_segment_shows_that_octets_before_it_are_missing() -> None:
    wire = opened()
    wire.data(0, 4)
    gone = wire.data(0, 6)
    wire.ack(1)
    wire.ack(0)
    recorder, connection = feed(without(wire.segments, gone))
    for _ in range(REASSEMBLY_REORDER_SEGMENTS):
        send(connection, wire.ack(0))
    assert recorder.gaps(0) == [(4, 6)]
    assert connection.waiting() == 0


def test_one_missing_octet_before_an_empty_segment_may_be_a_fin_but_not_when_octets_follow() -> None:
    wire = opened()
    wire.data(0, 4)
    gone = wire.data(0, 1)
    wire.ack(1)
    for _ in range(2 * REASSEMBLY_REORDER_SEGMENTS):
        wire.ack(0)
    captured = without(wire.segments, gone)
    recorder, connection = feed(captured)
    assert recorder.gaps(0) == []
    connection.tick(SECOND * 3600)
    assert recorder.gaps(0) == []
    assert connection.waiting() == 0
    captured.append(wire.data(0, 3))
    for _ in range(REASSEMBLY_REORDER_SEGMENTS):
        captured.append(wire.ack(0))
    recorder, connection = feed(captured)
    assert recorder.gaps(0) == [(4, 1)]
    assert recorder.reached[0] == 8


def test_an_empty_segment_before_the_octets_it_counts_changes_nothing() -> None:
    wire = opened()
    wire.data(0, 4)
    both = [wire.data(0, 6), wire.data(0, 6)]
    recorder, connection = feed([*wire.segments[:4], wire.ack(0), *both])
    assert recorder.stream(0) == octets(0, 0, 16)
    assert connection.waiting() == 0


def test_what_waits_is_bounded_in_pieces() -> None:
    wire, recorder, connection = lost(acknowledged=False)
    for _ in range(REASSEMBLY_WAITING_PIECES - 1):
        send(connection, wire.data(0, 1))
    assert recorder.reached[0] == 4
    assert connection.waiting() == REASSEMBLY_WAITING_PIECES
    send(connection, wire.data(0, 1))
    assert recorder.gaps(0) == [(4, 6)]
    assert connection.waiting() == 0
    assert recorder.reached[0] == wire.sent[0]


class Counter(Recorder):
    """Checks the order and keeps no octets."""

    def data(
        self, direction: int, offset: int, buf: bytes, start: int, end: int, provenance: Provenance
    ) -> None:
        assert offset == self.reached[direction]
        assert provenance.acknowledged <= self.reached[1 - direction]
        self.reached[direction] += end - start


def test_what_waits_is_bounded_in_octets() -> None:
    sink = Counter()
    connection = TcpConnection(sink)
    for segment in opened().segments:
        send(connection, segment)
    size = 1 << 18
    payload = bytes(size)
    start = 6
    while start + size <= REASSEMBLY_WAITING_OCTETS + 6:
        send(connection, Segment(0, start, payload, 0))
        start += size
    assert sink.reached[0] == 0
    send(connection, Segment(0, start, b"x", 0))
    assert sink.gaps(0) == [(0, 6)]
    assert sink.reached[0] == start + 1


def test_after_a_gap_the_segment_before_it_is_still_an_old_one() -> None:
    wire, recorder, connection = lost(acknowledged=True)
    send(connection, wire.rst(1))  # and so nothing waits
    for _ in range(REASSEMBLY_REORDER_SEGMENTS):
        send(connection, wire.ack(0))
    assert recorder.reached[0] == 15
    for start in range(14):
        send(connection, replace(wire.again(0, start, 15), ack=0))
    assert recorder.reached[0] == 15
    send(connection, wire.data(0, 4))
    assert recorder.reached[0] == 19


def test_octets_that_come_for_a_gap_are_dropped_and_counted() -> None:
    wire, recorder, connection = lost(acknowledged=True)
    for _ in range(REASSEMBLY_REORDER_SEGMENTS):
        send(connection, wire.ack(0))
    assert recorder.gaps(0) == [(4, 6)]
    send(connection, wire.again(0, 2, 12))
    assert connection.facts(0).late == 6
    assert connection.facts(0).retransmitted == 4
    assert connection.facts(0).missing == 6
    assert recorder.reached[0] == 15


def test_acknowledged_octets_at_the_end_are_a_gap_when_the_capture_ends() -> None:
    wire = opened()
    wire.data(0, 4)
    gone = wire.data(0, 6)
    acknowledging = wire.ack(1)
    recorder, connection = feed(without(wire.segments, gone))
    assert recorder.gaps(0) == []
    connection.finish()
    assert recorder.events[-1] == ("gap", 0, 4, 6, acknowledging.packet, acknowledging.time)
    assert connection.facts(0).missing == 6


# -- a direction that lags or never shows ------------------------------------------------------------


def test_a_direction_that_has_not_come_is_waited_for_by_amount_and_not_by_time() -> None:
    wire = opened()
    shifted = [wire.data(1, 7), wire.data(1, 9)]
    for number in range(1000):
        later = wire.data(0, 3)
        wire.segments[-1] = replace(later, time=number * 3600 * SECOND)
    recorder, connection = feed(without(wire.segments, *shifted))
    assert recorder.reached == [0, 0]
    for segment in shifted:
        send(connection, segment)
    assert recorder.stream(0) == octets(0, 0, 3000)
    assert recorder.stream(1) == octets(1, 0, 16)
    assert connection.waiting() == 0


def test_what_it_acknowledged_is_a_gap_when_too_much_waits_but_no_more_than_that() -> None:
    wire = opened()
    gone = wire.data(1, 7)
    wire.data(0, 3)
    later = wire.data(1, 9)
    for _ in range(REASSEMBLY_WAITING_PIECES):
        wire.data(0, 1)
    recorder, connection = feed(without(wire.segments, gone, later))
    assert recorder.gaps(1) == [(0, 7)]
    assert recorder.reached == [3, 7]
    send(connection, later)  # so that this one is not too late
    assert recorder.stream(1) == b"?" * 7 + octets(1, 7, 16)
    assert recorder.reached[0] == wire.sent[0]


def one_sided(count: int) -> list[Segment]:
    """Direction 0 from the middle; of direction 1, whose octets it acknowledges, nothing."""
    return [Segment(0, 3 * at, octets(0, 3 * at, 3 * at + 3), 7 * at, packet=at + 1) for at in range(count)]


def test_a_direction_that_was_never_seen_is_all_gap_at_the_end() -> None:
    recorder, connection = feed(one_sided(5))
    assert recorder.events == []
    connection.finish()
    assert recorder.stream(0) == octets(0, 0, 15)
    assert recorder.gaps(1) == [(0, 28)]
    assert [ack for _, _, _, ack in data_events(recorder)] == [0, 7, 14, 21, 28]
    assert not connection.facts(1).seen
    assert connection.facts(1).missing == 28


def test_a_direction_that_never_shows_is_waited_for_once_only() -> None:
    segments = one_sided(REASSEMBLY_WAITING_PIECES + 10)
    recorder, connection = feed(segments[:REASSEMBLY_WAITING_PIECES])
    assert recorder.events == []
    for segment in segments[REASSEMBLY_WAITING_PIECES:]:
        send(connection, segment)
        assert recorder.reached == [segment.end, segment.ack]
    assert connection.waiting() == 0
    # And when it shows after all, it goes on behind what was acknowledged last.
    reached = recorder.reached[1]
    send(connection, Segment(1, reached - 4, octets(1, reached - 4, reached + 6), 0, packet=99))
    assert recorder.stream(1)[-6:] == octets(1, reached, reached + 6)
    assert connection.facts(1).late == 4
    # From then on it is waited for again.
    send(connection, Segment(0, segments[-1].end, b"abc", reached + 8, packet=100))
    assert connection.waiting() == 1


# -- from the middle --------------------------------------------------------------------------------


def test_a_capture_from_the_middle_begins_at_the_first_segments() -> None:
    wire = opened()
    wire.data(0, 100)
    wire.data(1, 50)
    wire.data(0, 10)
    wire.data(1, 20)
    recorder, connection = feed(wire.segments[5:])
    assert recorder.stream(0) == octets(0, 100, 110)
    assert recorder.stream(1) == octets(1, 50, 70)
    assert recorder.acks == ([0] * 10, [10] * 20)
    assert connection.facts(0).midstream
    assert connection.facts(1).midstream


def test_what_was_under_way_when_the_capture_began_is_no_gap() -> None:
    wire = opened()
    wire.data(1, 50)
    wire.data(1, 50)
    segments = [
        Segment(0, 0, b"abc", 50, packet=1),  # acknowledges the first 50 only: the next were under way
        Segment(1, 100, b"def", 0, packet=2),
        Segment(0, 3, b"ghi", 103, packet=3),
    ]
    recorder, connection = feed(segments)
    connection.finish()
    assert recorder.gaps(1) == []
    assert recorder.acks[0] == [0, 0, 0, 3, 3, 3]


def test_until_the_other_direction_shows_data_wait_and_then_lose_nothing() -> None:
    segments = [
        Segment(0, 10, b"abc", 90, packet=1),
        Segment(0, 13, b"def", 95, packet=2),
        Segment(1, 80, octets(1, 80, 90), 10, packet=3),  # before all that direction 0 acknowledges
        Segment(1, 90, octets(1, 90, 95), 13, packet=4),
    ]
    recorder, connection = feed(segments)
    assert data_events(recorder) == [(1, 0, 3, 0), (0, 0, 1, 10), (1, 10, 4, 3), (0, 3, 2, 15)]
    assert connection.waiting() == 0


def test_an_empty_first_segment_can_be_a_keep_alive() -> None:
    for probe_first in (True, False):
        probe = Segment(1, 49, b"", 7, packet=1)
        answer = Segment(0, 7, b"", 50, packet=2)
        segments = [probe, answer] if probe_first else [answer, probe]
        segments.append(Segment(1, 50, b"abc", 7, packet=3))
        segments.append(Segment(0, 7, b"de", 53, packet=4))
        recorder, connection = feed(segments)
        assert data_events(recorder) == [(1, 0, 3, 0), (0, 0, 4, 3)]
        assert connection.facts(1).missing == 0
    # The same when another empty segment comes first.
    recorder, _ = feed([probe, Segment(1, 50, b"", 7, packet=2), answer, *segments[2:]])
    assert data_events(recorder) == [(1, 0, 3, 0), (0, 0, 4, 3)]


def test_the_origin_moves_back_only_while_nothing_was_passed_on() -> None:
    start = [Segment(1, 50, b"", 7, packet=1), Segment(1, 40, octets(1, 40, 50), 7, packet=2)]
    recorder, connection = feed([*start, Segment(0, 7, b"abc", 50, packet=3)])
    assert recorder.stream(1) == octets(1, 40, 50)
    assert recorder.acks[0] == [10] * 3
    send(connection, Segment(1, 35, octets(1, 35, 52), 7, packet=4))
    assert recorder.stream(1) == octets(1, 40, 52)
    assert connection.facts(1).late == 5
    assert connection.facts(1).retransmitted == 10


def test_a_fin_that_waits_moves_with_the_origin() -> None:
    segments = [
        Segment(0, 10, octets(0, 10, 20), 5, packet=1),
        Segment(0, 20, b"", 5, FIN | ACK, packet=2),
        Segment(0, 2, octets(0, 2, 10), 5, packet=3),
        Segment(1, 5, b"", 21, packet=4),
    ]
    recorder, connection = feed(segments)
    assert recorder.stream(0) == octets(0, 2, 20)
    assert recorder.ended[0] == "fin"
    send(connection, Segment(1, 5, b"abc", 21, packet=5))
    assert recorder.acks[1] == [18] * 3


def test_a_lost_answer_to_syn_leaves_the_begin_of_its_stream_known() -> None:
    wire = opened()
    wire.data(0, 8)
    gone = wire.data(1, 8)
    wire.data(1, 5)
    wire.ack(0)
    recorder, connection = replay(without(wire.segments, wire.segments[1], gone))
    assert recorder.gaps(1) == [(0, 8)]
    assert recorder.stream(1)[8:] == octets(1, 8, 13)
    assert not connection.facts(1).midstream
    assert not connection.facts(1).syn
    # The same for SYN itself: its answer names it.
    recorder, connection = replay(without(wire.segments, wire.segments[0]))
    assert recorder.stream(0) == octets(0, 0, 8)
    assert not connection.facts(0).midstream


def test_a_later_acknowledgement_names_no_begin() -> None:
    """The answer to SYN was lost with what was said first: what follows is no start of a stream."""
    wire = opened()
    early = [wire.data(0, 8), wire.data(1, 8)]
    wire.ack(0)
    late = [wire.data(0, 30), wire.data(1, 40)]
    first, *rest = wire.segments
    kept = [first, *rest[rest.index(late[0]) :]]
    assert not set(early) & set(kept)
    _, connection = feed(kept)
    assert not connection.facts(0).midstream
    assert connection.facts(1).midstream


def test_a_late_syn_is_recognised() -> None:
    wire = opened()
    wire.data(0, 8)
    recorder, connection = feed([*wire.segments[1:], wire.segments[0]])
    assert recorder.stream(0) == octets(0, 0, 8)
    assert connection.facts(0).syn
    assert not connection.facts(0).midstream
    assert connection.opener() == 0


# -- copies -----------------------------------------------------------------------------------------


def test_a_second_copy_that_differs_is_noted_and_dropped() -> None:
    wire = opened()
    first = wire.data(0, 8)
    wire.data(0, 4)
    forged = replace(first, payload=b"\xff\x00secret", packet=77, time=5)
    recorder, connection = feed([*wire.segments, first, forged])
    assert recorder.stream(0) == octets(0, 0, 12)
    [(direction, code, packet, detail)] = recorder.notes
    assert (direction, code, packet) == (0, "capture/overlap-differs", 77)
    assert "secret" not in detail
    assert connection.facts(0).differing == 1
    for _ in range(20):
        send(connection, forged)
    assert len(recorder.notes) == REASSEMBLY_OVERLAP_NOTES
    assert connection.facts(0).differing == 21


@pytest.mark.parametrize("bounds", [(0, 12), (3, 5), (7, 9), (8, 12), (11, 12)])
@pytest.mark.parametrize("changed", range(12))
def test_copies_in_other_bounds_are_compared_octet_by_octet(bounds: tuple[int, int], changed: int) -> None:
    wire = opened()
    wire.data(0, 8)
    wire.data(0, 4)
    wire.data(0, 3)
    whole = bytearray(octets(0, 0, 12))
    whole[changed] ^= 1
    start, end = bounds
    recorder, _ = feed([*wire.segments, Segment(0, start, bytes(whole[start:end]), 0, packet=9)])
    assert len(recorder.notes) == (1 if start <= changed < end else 0)


def test_copies_of_what_waits_are_compared_too_and_fill_what_is_missing() -> None:
    wire = opened()
    wire.data(0, 2)
    waiting = [Segment(0, 4, octets(0, 4, 6), 0, packet=5), Segment(0, 8, octets(0, 8, 10), 0, packet=6)]
    forged = bytearray(octets(0, 3, 12))
    forged[6] ^= 1  # offset 9
    recorder, connection = feed([*wire.segments, *waiting, Segment(0, 3, bytes(forged), 0, packet=7)])
    assert [note[2] for note in recorder.notes] == [7]
    send(connection, Segment(0, 2, octets(0, 2, 4), 0, packet=8))
    assert recorder.stream(0) == octets(0, 0, 12)
    assert recorder.packets[0] == [4, 4, 8, 7, 5, 5, 7, 7, 6, 6, 7, 7]


def test_copies_of_the_very_first_octets_are_compared_while_they_wait() -> None:
    wire = opened()
    early = Segment(0, 0, b"abcd", 5, packet=9)
    recorder, _ = feed([*wire.segments, early, replace(early, payload=b"xbcd")])
    assert len(recorder.notes) == 1


def test_what_is_kept_for_comparison_is_bounded() -> None:
    wire = opened()
    first = wire.data(0, 100)
    wire.data(0, REASSEMBLY_RECENT_OCTETS - 100)
    forged = replace(first, payload=b"x" * 100)
    recorder, connection = feed([*wire.segments, forged])
    assert len(recorder.notes) == 1
    send(connection, wire.data(0, 1))
    send(connection, forged)
    assert len(recorder.notes) == 1
    # Of a segment larger than that its end is kept.
    big = wire.data(0, REASSEMBLY_RECENT_OCTETS + 500)
    send(connection, big)
    send(connection, replace(big, payload=big.payload[:-1] + b"!"))
    assert len(recorder.notes) == 2
    assert len(str(connection.dump())) < 6 * REASSEMBLY_RECENT_OCTETS


def test_keep_alives_contradict_no_octet_that_waits() -> None:
    wire = opened()
    late = wire.data(0, 4)
    wire.data(0, 4)
    keep_alive = Segment(0, 7, b"\0", 0)
    recorder, _ = feed([*without(wire.segments, late), keep_alive, late])
    assert recorder.stream(0) == octets(0, 0, 8) and recorder.codes() == []


def test_keep_alives_are_no_retransmissions() -> None:
    wire = opened()
    wire.data(0, 8)
    keep_alives = [Segment(0, 7, b"", 0), Segment(0, 7, b"\0", 0)]
    recorder, connection = feed([*wire.segments, *keep_alives])
    assert connection.facts(0).retransmitted == 0
    assert recorder.notes == []
    assert connection.waiting() == 0


@pytest.mark.parametrize("missing", [1, 5])
@pytest.mark.parametrize(
    ("quiet", "flags", "acknowledged", "rubbish"),
    [
        (PROBE_QUIET, ACK, True, True),
        (PROBE_QUIET - 1, ACK, True, False),
        (PROBE_QUIET, ACK | PSH, True, False),
        (PROBE_QUIET, ACK, False, False),
    ],
)
def test_what_a_keep_alive_carries_fills_no_hole(
    missing: int, quiet: int, flags: int, acknowledged: bool, rubbish: bool
) -> None:
    wire = opened()
    before = wire.data(0, 8)
    lost = wire.data(0, missing)
    if acknowledged:
        wire.ack(1)
    else:
        wire.ack(1, ack=8)
    time = before.time + quiet
    probe = Segment(0, lost.end - 1, b"!", 0, flags, packet=90, time=time)
    answer = Segment(1, 0, b"", lost.end, packet=91, time=time)
    following = Segment(0, lost.end, b"#", 0, packet=92, time=time + REASSEMBLY_REORDER_TIME)
    segments = [*without(wire.segments, lost), probe, answer, following]
    for reload_after in (-1, *range(len(segments))):
        recorder, _ = replay(segments, reload_after=reload_after)
        assert recorder.stream(0) == before.payload + b"?" * (missing - 1) + (b"?#" if rubbish else b"!#")


def test_octets_that_snaplen_cut_off_are_a_gap_at_once() -> None:
    wire = opened()
    wire.data(0, 10, cut=4)
    cut = wire.segments[-1]
    wire.data(0, 3)
    recorder, connection = feed(wire.segments)
    assert recorder.gaps(0) == [(6, 4)]
    assert ("gap", 0, 6, 4, cut.packet, cut.time) in recorder.events
    assert recorder.reached[0] == 13
    send(connection, cut)  # sent again and cut off again
    send(connection, replace(cut, offset=4))  # over its end: two cut octets below 13, none above
    assert recorder.reached[0] == 14
    assert recorder.gaps(0) == [(6, 4), (13, 1)]


def test_cut_octets_wait_like_others() -> None:
    wire = opened()
    first = wire.data(0, 5)
    second = wire.data(0, 10, cut=10)
    third = wire.data(0, 5)
    recorder, _ = feed([*wire.segments[:3], third, second, first])
    assert recorder.stream(0) == octets(0, 0, 5) + b"?" * 10 + octets(0, 15, 20)


# -- the end ----------------------------------------------------------------------------------------


def test_fin_ends_a_direction_and_acknowledgements_of_it_are_cut_to_the_octets() -> None:
    wire = opened()
    wire.data(0, 4)
    fin = wire.fin(0)
    assert wire.data(1, 6).ack == 5
    wire.fin(1)
    wire.ack(0)
    recorder, connection = feed([*wire.segments, fin])
    assert recorder.ended == ["fin", "fin"]
    assert recorder.acks[1] == [4] * 6
    assert connection.facts(0).ended == "fin"
    assert ("end", 0, "fin", fin.packet, fin.time) in recorder.events


def test_fin_waits_for_its_octets_and_for_what_it_acknowledges() -> None:
    wire = opened()
    octets_0 = wire.data(0, 4)
    answer = wire.data(1, 3)
    wire.fin(0)
    captured = without(wire.segments, octets_0, answer)
    recorder, connection = feed(captured)
    assert recorder.ended[0] == ""
    send(connection, octets_0)
    assert recorder.ended[0] == ""
    send(connection, answer)
    assert recorder.ended[0] == "fin"


def test_fin_with_octets() -> None:
    wire = opened()
    segment = replace(wire.data(0, 4), flags=FIN | ACK)
    recorder, _ = feed([*wire.segments[:3], segment])
    assert recorder.events[-1][0] == "end"
    assert recorder.stream(0) == octets(0, 0, 4)


def test_octets_behind_fin_are_dropped() -> None:
    wire = opened()
    wire.data(0, 4)
    wire.fin(0)
    recorder, connection = feed([*wire.segments, Segment(0, 2, b"abcdef", 0)])
    assert recorder.reached[0] == 4
    assert connection.facts(0).late == 4


def test_octets_behind_fin_that_waits_for_octets_before_it_are_read_and_it_ends_nothing() -> None:
    wire = opened()
    first = wire.data(0, 4)
    fin = wire.fin(0)
    recorder, connection = feed([*without(wire.segments, first), Segment(0, 2, octets(0, 2, 8), 0), first])
    assert connection.facts(0).late == 0
    assert recorder.reached[0] == 8
    assert recorder.codes() == ["capture/ignored"]
    send(connection, replace(fin, offset=8))
    connection.finish()
    assert recorder.ended[0] == "fin"


def test_fin_that_contradicts_octets_is_not_believed() -> None:
    wire = opened()
    wire.data(0, 4)
    old = Segment(0, 2, b"", 0, FIN | ACK)
    recorder, connection = feed([*wire.segments, old])
    assert recorder.ended[0] == ""
    send(connection, wire.data(0, 4))
    assert recorder.reached[0] == 8


def test_a_fin_that_was_not_captured_is_no_octet() -> None:
    wire = opened()
    wire.data(0, 4)
    fin = wire.fin(0)
    wire.data(1, 3)  # acknowledges the FIN: waits
    wire.fin(1)
    recorder, connection = feed(without(wire.segments, fin))
    assert recorder.reached[1] == 0
    connection.finish()
    assert recorder.stream(1) == octets(1, 0, 3)
    assert recorder.acks[1] == [4] * 3
    assert recorder.ended == ["", "fin"]
    assert recorder.gaps(0) == []
    assert connection.facts(0).missing == 0


def test_a_fin_that_was_not_captured_and_only_acknowledged_is_no_octet() -> None:
    wire = opened()
    wire.data(0, 4)
    fin = wire.fin(0)
    wire.ack(1)
    recorder, connection = replay(without(wire.segments, fin))
    assert recorder.gaps(0) == []
    wire.rst(0)
    recorder, connection = replay(without(wire.segments, fin))
    assert recorder.gaps(0) == []
    assert recorder.ended[0] == connection.facts(0).ended == "rst"


def test_a_fin_taken_for_a_missing_octet_still_ends_its_direction() -> None:
    wire = opened()
    wire.data(0, 4)
    fin = wire.fin(0)
    for _ in range(REASSEMBLY_WAITING_PIECES + 1):
        wire.data(1, 1)
    recorder, connection = feed(without(wire.segments, fin))
    assert recorder.gaps(0) == [(4, 1)]
    send(connection, fin)
    assert recorder.ended[0] == "fin"


def test_rst_ends_a_direction_behind_what_was_captured() -> None:
    wire = opened()
    wire.data(0, 4)
    gone = wire.data(0, 6)
    wire.data(0, 5)
    rst = wire.rst(0)
    recorder, connection = feed(without(wire.segments, gone))
    assert connection.facts(0).ended == "rst"
    assert connection.facts(1).ended == ""
    send(connection, rst)
    connection.finish()
    assert recorder.stream(0) == octets(0, 0, 4) + b"?" * 6 + octets(0, 10, 15)
    assert recorder.events[-1] == ("end", 0, "rst", rst.packet, rst.time)
    assert connection.facts(0).ended == "rst"


def test_rst_captured_before_octets_that_were_sent_before_it_waits_for_its_place() -> None:
    wire = opened()
    wire.data(0, 4)
    late = wire.data(0, 6)
    rst = wire.rst(0)
    recorder, _ = replay([*without(wire.segments, late, rst), rst, late])
    assert recorder.stream(0) == octets(0, 0, 10)
    assert recorder.events[-1] == ("end", 0, "rst", rst.packet, rst.time)
    assert "capture/ignored" not in recorder.codes()


@pytest.mark.parametrize("ahead", [0, 3, 500, 2**29])
def test_octets_behind_an_rst_are_read_and_a_note_tells_of_it(ahead: int) -> None:
    wire = opened()
    wire.data(0, 4)
    junk = Segment(0, 4 + ahead, b"", 0, RST)
    segments = [*wire.segments, junk]
    wire.data(0, 600)
    wire.data(1, 3)
    wire.fin(0)
    recorder, connection = replay([*segments, *wire.segments[len(segments) - 1 :]])
    assert recorder.stream(0) == octets(0, 0, 604)
    assert recorder.gaps(0) == []
    assert recorder.ended[0] == "fin"
    assert recorder.codes().count("capture/ignored") == 1
    assert connection.facts(0).ended == "fin"


def test_rst_before_what_its_receiver_acknowledged_ends_nothing() -> None:
    wire = opened()
    wire.data(0, 100)
    wire.ack(1)
    recorder, connection = feed([*wire.segments, Segment(0, 99, b"", 0, RST)])
    assert connection.facts(0).ended == ""
    assert recorder.codes() == ["capture/ignored"]
    send(connection, wire.data(0, 4))
    connection.finish()
    assert recorder.stream(0) == octets(0, 0, 104)
    assert recorder.ended[0] == ""


def test_rst_before_octets_that_its_receiver_may_not_have_ends_the_stream() -> None:
    wire = opened()
    wire.data(0, 100)
    recorder, _ = replay([*wire.segments, Segment(0, 0, b"", 0, RST)])
    assert recorder.ended[0] == "rst"
    assert recorder.stream(0) == octets(0, 0, 100)


def test_rst_that_octets_follow_and_do_not_reach_ends_nothing() -> None:
    wire = opened()
    wire.data(0, 100)
    segments = [*wire.segments, Segment(0, 5000, b"", 0, RST)]
    recorder, _ = replay([*segments, wire.data(0, 50)])
    assert recorder.ended[0] == ""
    assert recorder.gaps(0) == []
    assert recorder.codes() == ["capture/ignored"]


def test_fin_one_octet_before_the_next_one_ends_nothing() -> None:
    wire = opened()
    wire.data(0, 4)
    recorder, connection = feed([*wire.segments, Segment(0, 3, b"", 0, FIN | ACK)])
    send(connection, wire.data(0, 4))
    connection.finish()
    assert recorder.stream(0) == octets(0, 0, 8)
    assert recorder.ended[0] == ""


def test_rst_shows_the_loss_of_acknowledged_octets_before_it() -> None:
    wire = opened()
    gone = wire.data(0, 6)
    wire.ack(1)
    wire.rst(0)
    recorder, _ = replay(without(wire.segments, gone))
    assert recorder.gaps(0) == [(0, 6)]
    assert recorder.ended[0] == "rst"


def test_rst_is_reported_behind_what_its_octets_wait_for() -> None:
    wire = opened()
    answer = wire.data(1, 3)
    wire.data(0, 4)
    wire.rst(0)
    recorder, connection = feed(without(wire.segments, answer))
    assert recorder.events == []
    send(connection, answer)
    connection.finish()
    assert [event[0] for event in recorder.events] == ["data", "data", "end"]


def test_a_refused_connection() -> None:
    wire = Wire()
    recorder, connection = replay([wire.syn(0), Segment(1, -2001, b"", 0, RST | ACK, packet=2)])
    assert recorder.events == [("end", 1, "rst", 2, 0)]
    assert connection.opener() == 0


def test_fin_before_rst_decides_how_a_direction_ended() -> None:
    wire = opened()
    wire.fin(0)
    wire.rst(0)
    recorder, connection = feed(wire.segments)
    assert recorder.ended[0] == "fin"
    assert connection.facts(0).ended == "fin"


def test_nothing_happens_after_finish() -> None:
    wire = opened()
    wire.data(0, 4)
    recorder, connection = replay(wire.segments)
    before = list(recorder.events)
    connection.finish()
    connection.tick(1 << 60)
    send(connection, wire.data(0, 4))
    connection = TcpConnection.load(connection.dump(), recorder)
    send(connection, wire.data(0, 4))
    send(connection, Segment(0, 4, b"abcd", 0))
    assert recorder.events == before


# -- numbers outside the window ---------------------------------------------------------------------


def test_segments_outside_the_window_are_ignored_until_several_follow_one_another() -> None:
    wire = opened()
    wire.data(0, 4)
    recorder, connection = feed(wire.segments)
    away = SEQUENCE_WINDOW + 1000
    strays = [
        Segment(0, away + 5 * at, octets(0, away + 5 * at, away + 5 * at + 5), 0, packet=50 + at)
        for at in range(REASSEMBLY_STRAYS + 2)
    ]
    for segment in strays[: REASSEMBLY_STRAYS - 1]:
        send(connection, segment)
    assert connection.facts(0).stray == REASSEMBLY_STRAYS - 1
    send(connection, wire.data(0, 4))  # the stream goes on where it was: those were old
    for segment in strays[: REASSEMBLY_STRAYS - 1]:
        send(connection, segment)
        send(connection, replace(segment, payload=b"", offset=segment.end))  # empty ones do not count
    assert recorder.reached[0] == 8
    for segment in strays[REASSEMBLY_STRAYS - 1 :]:
        send(connection, segment)
    start = strays[REASSEMBLY_STRAYS - 1].offset
    assert recorder.gaps(0) == [(8, start - 8)]
    assert recorder.reached[0] == strays[-1].end


def test_a_stream_is_taken_up_behind_the_window_also_where_the_number_seems_lower() -> None:
    wire = opened()
    wire.data(0, 4)
    wire.segments.append(Segment(0, 10, b"waits", 0, packet=5))
    recorder, connection = feed(wire.segments)
    away = 3 * SEQUENCE_WINDOW - 1000
    for at in range(REASSEMBLY_STRAYS):
        send(connection, Segment(0, away + 5 * at, b"octet", 0, packet=50 + at))
    assert recorder.reached[0] == away + 5 * REASSEMBLY_STRAYS
    assert recorder.events[0][0] == recorder.events[2][0] == "data"
    assert recorder.gaps(0) == [(4, 6), (15, away + 5 * (REASSEMBLY_STRAYS - 1) - 15)]


def test_an_acknowledgement_outside_the_window_is_unknown() -> None:
    wire = opened()
    wire.segments.append(Segment(0, 0, b"abc", SEQUENCE_WINDOW + 1, packet=4))
    wire.segments.append(Segment(0, 3, b"def", SEQUENCE_WINDOW, packet=5))
    recorder, connection = feed(wire.segments)
    assert recorder.acks[0] == [-1] * 3
    assert connection.waiting() == 1


def test_a_stream_longer_than_all_sequence_numbers() -> None:
    sink = Counter()
    connection = TcpConnection(sink)
    size = 1 << 20
    buf = bytes(size)
    isn = (2**32 - 77, 2**31 - 5)
    connection.segment(0, captured(packet=1, seq=isn[0] - 1, flags=SYN))
    connection.segment(1, captured(packet=2, seq=isn[1] - 1, ack=isn[0], flags=SYN | ACK))
    sent = [0, 0]
    for number in range(5000):
        direction = 0 if number % 10 else 1
        piece = size if direction == 0 else 77
        segment = captured(packet=number, flags=ACK, buf=buf, start=0, end=piece)
        segment.seq = (isn[direction] + sent[direction]) % 2**32
        segment.ack = (isn[1 - direction] + sent[1 - direction]) % 2**32
        connection.segment(direction, segment)
        sent[direction] += piece
    assert sent[0] > 2**32
    assert sink.reached == sent


def test_a_direction_that_lags_by_more_than_half_of_all_sequence_numbers() -> None:
    wire = opened()
    recorder, connection = feed(wire.segments)
    step = 1 << 29
    for at in range(1, 14):  # 7 GiB, acknowledged before they are seen
        send(connection, Segment(0, 0, b"", at * step, packet=10))
    send(connection, Segment(0, 0, b"abc", 13 * step, packet=11))
    send(connection, Segment(1, 0, b"first", 0, packet=12))
    assert recorder.reached == [0, 5]
    assert connection.waiting() == 1
    connection.finish()
    assert recorder.reached == [3, 13 * step]


# -- new connections on the same ports --------------------------------------------------------------


def new(
    connection: TcpConnection, direction: int, offset: int, flags: int, time: int, header: bool = False
) -> bool:
    isn = (1000, 2000)
    return connection.starts_new(direction, (isn[direction] + 1 + offset) & 0xFFFFFFFF, flags, time, header)


def test_syn_with_another_initial_sequence_number_starts_a_new_connection() -> None:
    wire = opened()
    wire.data(0, 4)
    _, connection = feed(wire.segments)
    assert not new(connection, 0, -1, SYN, 0)  # sent again
    assert not new(connection, 1, -1, SYN | ACK, 0)
    assert new(connection, 0, 7, SYN, 0)
    assert not new(connection, 0, 3, SYN, 0)  # what it would begin is what goes on here
    assert new(connection, 1, 3, SYN | ACK, 0)
    assert not new(connection, 0, 77, RST, 0)


def test_syn_of_the_other_direction_is_no_new_connection() -> None:
    wire = Wire()
    _, connection = feed([wire.syn(0)])
    assert not new(connection, 1, 500, SYN | ACK, 0)
    assert not new(connection, 1, 500, SYN, 0)  # opened from both ends at once
    _, connection = feed([Segment(1, -1, b"", 0, SYN | ACK, packet=1)])  # the answer was shown first
    assert not new(connection, 0, -1, SYN, 0)
    assert new(connection, 0, 7, SYN, 0)
    assert not TcpConnection(Recorder()).starts_new(0, 5, SYN, 0, False)


def test_syn_after_a_connection_from_the_middle_starts_a_new_one() -> None:
    _, connection = feed([Segment(0, 50, b"abc", 70, packet=1)])
    assert new(connection, 0, 9999, SYN, 0)
    assert not new(connection, 0, 49, SYN, 0)  # its own, late
    assert not new(connection, 1, 69, SYN | ACK, 0)
    assert new(connection, 1, 30, SYN | ACK, 0)
    _, connection = feed([Segment(0, 50, b"abc", -1, 0, packet=1)])
    assert new(connection, 1, 30, SYN, 0)


def test_without_syn_it_takes_a_jump_and_a_silence() -> None:
    wire = opened()
    wire.data(0, 4)
    last = wire.data(1, 4).time
    _, connection = feed(wire.segments)
    far = 4 + NEW_CONNECTION_JUMP + 1
    later = last + NEW_CONNECTION_SILENCE
    assert new(connection, 0, far, ACK, later)
    assert new(connection, 0, 4 - NEW_CONNECTION_JUMP - 1, ACK, later)
    assert new(connection, 1, far, ACK, later)
    assert not new(connection, 0, far - 1, ACK, later)
    assert not new(connection, 0, far, ACK, later - 1)
    assert not new(connection, 0, 4, ACK, later)
    assert not new(connection, 0, 3, ACK, 100 * later)  # a keep-alive


@pytest.mark.parametrize("offset", [-(2**31) + 1, -NEW_CONNECTION_HEADER - 1, 2**20, 2**30])
def test_a_protocol_header_far_from_where_the_stream_is_starts_a_new_connection(offset: int) -> None:
    wire = opened()
    wire.data(0, 4)
    last = wire.data(1, 8).time
    _, connection = feed(wire.segments)
    assert new(connection, 0, offset, ACK, last, True)
    assert not new(connection, 0, offset, ACK, last)


@pytest.mark.parametrize("offset", [-8, 0, 4, 600, NEW_CONNECTION_HEADER])
def test_a_protocol_header_near_where_the_stream_is_belongs_to_it(offset: int) -> None:
    wire = opened()
    wire.data(0, 4)
    last = wire.data(1, 8).time
    _, connection = feed(wire.segments)
    assert not new(connection, 0, offset, ACK, last, True)


def test_without_syn_a_segment_where_the_acknowledgements_are_is_no_new_connection() -> None:
    wire = opened()
    wire.data(0, 4)
    last = wire.ack(1, ack=SEQUENCE_WINDOW).time  # far ahead of what is seen of direction 0
    _, connection = feed(wire.segments)
    later = last + NEW_CONNECTION_SILENCE
    assert not new(connection, 0, 4, ACK, later)
    assert not new(connection, 0, SEQUENCE_WINDOW // 2, ACK, later)
    assert not new(connection, 0, SEQUENCE_WINDOW + NEW_CONNECTION_JUMP, ACK, later)
    assert new(connection, 0, SEQUENCE_WINDOW + NEW_CONNECTION_JUMP + 1, ACK, later)
    assert new(connection, 0, 4 - NEW_CONNECTION_JUMP - 1, ACK, later)


# -- live, and between processes --------------------------------------------------------------------


def test_a_live_capture_does_not_wait_for_ever() -> None:
    wire, recorder, connection = lost(acknowledged=False)
    came = wire.segments[5].time
    connection.tick(came + REASSEMBLY_LIVE_WAIT)
    assert recorder.reached[0] == 4
    connection.tick(came + REASSEMBLY_LIVE_WAIT + 1)
    assert recorder.gaps(0) == [(4, 6)]
    assert recorder.reached[0] == 15


def test_a_live_capture_of_one_direction_is_reported_as_it_comes() -> None:
    segments = one_sided(6)
    recorder, connection = feed(segments[:3])
    connection.tick(REASSEMBLY_LIVE_WAIT + 1)
    assert recorder.reached == [9, 14]
    send(connection, segments[3])
    assert recorder.reached == [12, 21]


def test_a_state_of_another_version_is_refused() -> None:
    state = TcpConnection(Recorder()).dump()
    with pytest.raises(ValueError, match="version 99"):
        TcpConnection.load((99, *state[1:]), Recorder())
