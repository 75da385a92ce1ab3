"""When a sender could not write: closed windows, and octets sent again that nobody acknowledges."""

from __future__ import annotations

import pytest
from support.streams import Recorder, Segment, octets, send

from amqpscope.limits import MAX_STALLS
from amqpscope.reassembly.connection import TcpConnection
from amqpscope.reassembly.stalls import NEVER, RESENT, WINDOW, Stalls

ACK, SYN, FIN = 16, 2, 1
OPEN = 0xFFFF
NO_OPTION = 16 << 16
"""Above the window of a SYN: it has no window scale option."""


class Tap:
    """A connection, and what was captured of it so far: a segment a second."""

    def __init__(self, client_scale: int = NO_OPTION, server_scale: int = NO_OPTION) -> None:
        self.recorder = Recorder()
        self.tcp = TcpConnection(self.recorder)
        self.time = 0
        if client_scale >= 0:
            self.say(0, -1, b"", -1, client_scale | OPEN, SYN)
            self.say(1, -1, b"", 0, server_scale | OPEN, SYN | ACK)
        self.say(0, 0, octets(0, 0, 10), 0)
        self.say(1, 0, octets(1, 0, 10), 10)
        self.say(0, 10, b"", 10)

    def say(
        self,
        direction: int,
        offset: int,
        payload: bytes,
        ack: int,
        window: int = OPEN,
        flags: int = ACK,
        identification: int = 0,
    ) -> int:
        """A segment; the number of its packet, which is also the second in which it came."""
        self.time += 1
        segment = Segment(direction, offset, payload, ack, flags, 0, self.time, self.time)
        send(self.tcp, segment, window=window, identification=identification)
        self.tcp = TcpConnection.load(self.tcp.dump(), self.recorder)
        return self.time

    def stalls(self, direction: int) -> list[tuple[int, int, int]]:
        """The times in which the sender of a direction could not write: cause, since, until."""
        times = self.tcp.stream(direction).stalls.times
        return [(int(one.cause), int(one.since), int(one.until)) for one in times]


def test_a_window_of_0_keeps_the_other_end_from_writing_until_it_opens() -> None:
    tap = Tap()
    shut = tap.say(1, 10, b"", 10, 0)
    tap.say(0, 10, b"", 10)
    tap.say(1, 10, octets(1, 10, 20), 10, 0)
    opened = tap.say(1, 20, b"", 10)
    assert tap.stalls(0) == [(WINDOW, shut, opened)]
    assert tap.stalls(1) == []
    assert tap.tcp.facts(0).shut == opened - shut
    assert tap.tcp.facts(1).shut == tap.tcp.facts(0).unheard == 0


def test_new_octets_end_it_and_a_window_probe_does_not() -> None:
    tap = Tap()
    shut = tap.say(1, 10, b"", 10, 0)
    tap.say(0, 9, b"x", 10)  # a keep-alive, or a probe
    tap.say(0, 10, octets(0, 10, 11), 10)  # a probe with a new octet
    tap.say(1, 10, b"", 10, 0)
    assert tap.stalls(0) == [(WINDOW, shut, -1)]
    written = tap.say(0, 11, octets(0, 11, 20), 10)
    assert tap.stalls(0) == [(WINDOW, shut, written)]


def test_a_window_that_closes_again_though_nothing_came_was_not_open() -> None:
    tap = Tap()
    shut = tap.say(1, 10, b"", 10, 0)
    tap.say(1, 10, octets(1, 10, 18), 10)
    tap.say(0, 10, b"", 18)
    tap.say(1, 18, b"", 10, 0)
    assert tap.stalls(0) == [(WINDOW, shut, -1)]
    assert tap.tcp.facts(0).shut == tap.time - shut


@pytest.mark.parametrize(
    ("client", "server", "window", "stalled"),
    [
        (NO_OPTION, NO_OPTION, 7, True),
        (NO_OPTION, NO_OPTION, 8, False),
        (1 << 16, 1 << 16, 7, True),  # both have the option, with a shift count of 0
        (3 << 16, 3 << 16, 1, True),
        (3 << 16, 4 << 16, 1, False),  # the server's window of 1 stands for 8
        (NO_OPTION, 4 << 16, 7, True),  # the option counts only if both have it
        (0, 4 << 16, 1, False),  # options of a SYN that were not captured
        (-1, 0, 1, False),  # no SYN was captured
        (-1, 0, 0, True),  # nothing is nothing in any scale
        (3 << 16, 3 << 16, 0xFFFFFFFF, False),  # nothing is known of the window
    ],
)
def test_a_window_is_read_with_its_scale(client: int, server: int, window: int, stalled: bool) -> None:
    tap = Tap(client, server)
    tap.say(1, 10, b"", 10, window)
    assert (tap.tcp.stream(0).stalls.cause == WINDOW) == stalled


def test_an_older_segment_captured_late_closes_no_window() -> None:
    tap = Tap()
    tap.say(0, 10, octets(0, 10, 20), 10)
    tap.say(1, 10, b"", 20)
    tap.say(1, 10, b"", 10, 0)
    assert tap.stalls(0) == []


def test_octets_sent_again_keep_their_sender_from_writing_until_they_are_acknowledged() -> None:
    tap = Tap()
    tap.say(0, 10, octets(0, 10, 20), 10)
    again = tap.say(0, 10, octets(0, 10, 20), 10)
    tap.say(1, 10, b"", 10)
    tap.say(0, 10, octets(0, 10, 20), 10)
    heard = tap.say(1, 10, octets(1, 10, 20), 20)
    assert tap.stalls(0) == [(RESENT, again, heard)]
    assert tap.tcp.facts(0).unheard == heard - again
    # Its sender has not heard that it was acknowledged: until it sends it for the last time.
    last = tap.say(0, 10, octets(0, 10, 20), 20)
    assert tap.stalls(0) == [(RESENT, again, last)]
    assert tap.tcp.stream(0).stalls.cause == NEVER
    assert tap.tcp.facts(0).unheard == last - again


def test_a_copy_of_a_packet_is_nothing_sent_again() -> None:
    tap = Tap()
    for identification in (7, 7):
        tap.say(0, 10, octets(0, 10, 20), 10, identification=identification)
    assert tap.stalls(0) == []


def test_all_is_read_while_a_sender_is_stalled_and_afterwards() -> None:
    tap = Tap()
    for start, window in ((10, 0), (15, 0), (20, OPEN), (25, OPEN)):
        tap.say(1, start, octets(1, start, start + 5), 10, window)
    tap.say(0, 10, octets(0, 10, 25), 30)
    assert tap.recorder.stream(1) == octets(1, 0, 30)
    assert tap.recorder.stream(0) == octets(0, 0, 25)


def test_the_longest_stretch_in_which_a_peer_could_write() -> None:
    stalls = Stalls()
    assert stalls.free(10, 50) == 40
    stalls.begin(WINDOW, 1, 20, 100)
    assert stalls.free(10, 50) == 10
    stalls.end(25)
    assert stalls.free(10, 50) == 25
    stalls.begin(RESENT, 2, 45, 200)
    assert stalls.free(10, 50) == 20
    assert stalls.free(26, 30) == 4
    # The same with the other direction's clock, which is late: what counts is where the stream was.
    assert stalls.free(26, 30, 100) == 0
    assert stalls.free(26, 36, 100) == 5
    assert stalls.free(46, 50) == 0
    assert [stalls.reach(50, span) for span in (20, 21, 10)] == [25, -1, 35]
    assert (stalls.total(WINDOW, 50), stalls.total(RESENT, 50)) == (5, 5)


def test_there_are_only_so_many_and_then_more_is_excused() -> None:
    stalls = Stalls()
    for time in range(0, 20 * MAX_STALLS, 10):
        stalls.begin(WINDOW, time, time, 0)
        stalls.end(time + 5)
    assert len(stalls.times) == MAX_STALLS
    assert stalls.free(0, 100) == 0
    assert stalls.total(WINDOW, 0) == 10 * MAX_STALLS
    copy = Stalls()
    copy.restore(stalls.dump())
    assert copy.dump() == stalls.dump()
