"""Whose FIN came after the other's, and what it acknowledged, wherever the capture was taken."""

from __future__ import annotations

import itertools

import pytest
from support.segments import captured

from amqpscope.reassembly.connection import TcpConnection
from amqpscope.reassembly.stream import StreamSink

FIN, SYN, RST, ACK = 1, 2, 4, 16
CLIENT, SERVER = 1000, 0xFFFFFFF0  # initial sequence numbers; the server's wraps

Segment = tuple[int, int, int, int, bytes]  # direction, seq, ack, flags, payload

OPENING: list[Segment] = [
    (0, CLIENT, -1, SYN, b""),
    (1, SERVER, CLIENT + 1, SYN | ACK, b""),
    (0, CLIENT + 1, SERVER + 1, ACK, b"x" * 10),
    (1, SERVER + 1, CLIENT + 11, ACK, b"y" * 20),
]
# The client's FIN has seen all of the server's octets; the server's FIN has seen the client's FIN, or not.
FIN_FIRST: Segment = (0, CLIENT + 11, SERVER + 21, FIN | ACK, b"")
FIN_AFTER: Segment = (1, SERVER + 21, CLIENT + 12, FIN | ACK, b"")
FIN_CROSSING: Segment = (1, SERVER + 21, CLIENT + 11, FIN | ACK, b"")


def connection(*segments: Segment) -> TcpConnection:
    tcp = TcpConnection(StreamSink())
    for number, (direction, seq, ack, flags, payload) in enumerate([*OPENING, *segments], 1):
        ack = ack & 0xFFFFFFFF if ack >= 0 else -1
        segment = captured(payload, packet=number, time=number, seq=seq & 0xFFFFFFFF, ack=ack, flags=flags)
        tcp.segment(direction, segment)
    return TcpConnection.load(tcp.dump(), StreamSink())


@pytest.mark.parametrize("segments", list(itertools.permutations([FIN_FIRST, FIN_AFTER])))
def test_one_after_the_other(segments: tuple[Segment, ...]) -> None:
    tcp = connection(*segments)
    assert (tcp.ended_after(0), tcp.ended_after(1)) == (False, True)
    assert (tcp.end_acknowledged(0), tcp.end_acknowledged(1)) == (20, 10)


@pytest.mark.parametrize("segments", list(itertools.permutations([FIN_FIRST, FIN_CROSSING])))
def test_both_at_once(segments: tuple[Segment, ...]) -> None:
    tcp = connection(*segments)
    assert (tcp.ended_after(0), tcp.ended_after(1)) == (False, False)


def test_a_fin_that_was_not_captured_may_have_been_received() -> None:
    assert connection(FIN_AFTER).ended_after(1)
    assert not connection(FIN_CROSSING).ended_after(1)


def test_the_first_fin_counts_not_its_copy() -> None:
    tcp = connection(FIN_FIRST, FIN_CROSSING, (0, CLIENT + 11, SERVER + 22, FIN | ACK, b""))
    assert not tcp.ended_after(0)


def test_a_reset_may_not_say_what_it_knew() -> None:
    tcp = connection((0, CLIENT + 11, -1, RST, b""))
    assert (tcp.end_acknowledged(0), tcp.end_acknowledged(1)) == (-1, -1)
    assert not tcp.ended_after(1)
    assert connection((0, CLIENT + 11, SERVER + 6, RST | ACK, b"")).end_acknowledged(0) == 5


def test_a_fin_behind_anothers_reset_says_what_its_sender_knew() -> None:
    tcp = connection((0, CLIENT + 11, SERVER + 6, RST | ACK, b""), FIN_FIRST)
    assert tcp.end_acknowledged(0) == 20
    assert tcp.stream(0).end_kind() == "fin"
