"""Which segments are copies of captured ones, by the identifications of their datagrams."""

from __future__ import annotations

from amqpscope.limits import REASSEMBLY_COPIES_REACH
from amqpscope.reassembly.copies import Copies

LAST = 0xFFFF


def reported(*identifications: int) -> list[bool]:
    """Of each of these datagrams, one after the other, whether it is a copy."""
    copies = Copies()
    found = []
    for identification in identifications:
        copies.identify(identification)
        found.append(copies.in_hand)
    return found


def test_an_identification_that_was_there_is_a_copys() -> None:
    assert reported(7, 7, 8, 10, 8, 9, 9) == [False, True, False, False, True, False, True]


def test_they_are_known_beyond_their_wrap() -> None:
    assert reported(LAST - 1, LAST, 1, LAST, LAST - 1, 2, 1) == [False, False, False, True, True, False, True]


def test_without_an_identification_nothing_is_a_copy() -> None:
    assert reported(5, 0, 0, 5) == [False, False, False, True]


def test_what_lags_by_more_than_the_reach_is_none() -> None:
    reach = REASSEMBLY_COPIES_REACH
    assert reported(1, reach, 1) == [False, False, True]
    assert reported(1, 1 + reach, 1) == [False, False, False]
    assert reported(1, 2, 1 + reach, 2) == [False, False, False, True]


def test_a_segment_is_counted_once_however_many_parts_it_has() -> None:
    copies = Copies()
    copies.identify(6)
    copies.identify(6)
    copies.count(10, 3, 30, 300)
    copies.count(5, 3, 30, 300)
    copies.count(1, 4, 40, 400)
    assert (copies.packets, copies.octets, copies.again) == (2, 16, 16)
    assert (copies.first_packet, copies.first_time) == (30, 300)


def test_what_is_sent_again_in_another_datagram_is_no_copy() -> None:
    copies = Copies()
    copies.identify(6)
    copies.count(10, 3, 30, 300)
    assert (copies.packets, copies.octets, copies.again) == (0, 0, 10)


def test_it_goes_on_elsewhere() -> None:
    copies = Copies()
    copies.identify(6)
    copies.identify(7)
    copies.identify(7)
    copies.count(10, 3, 30, 300)
    moved = Copies.load(copies.dump())
    assert moved.dump() == copies.dump()
    moved.identify(6)
    moved.count(1, 3, 31, 310)
    assert (moved.packets, moved.octets, moved.first_packet, moved.in_hand) == (1, 11, 30, True)
