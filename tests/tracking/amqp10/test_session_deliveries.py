"""Which received deliveries a session remembers, and where the first transfer of each ended."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpscope.capture.words import INTERPRETED
from amqpscope.limits import MAX_UNPROVED
from amqpscope.tracking.amqp10.link import UNKNOWN
from amqpscope.tracking.amqp10.session_deliveries import ReceivedDeliveries


@given(st.lists(st.integers(0, 40), max_size=60))
def test_each_new_id_is_found_again(ids: list[int]) -> None:
    """Only an id above the newest one is that of a new delivery."""
    received = ReceivedDeliveries()
    ends = {}
    for end, number in enumerate(ids):
        if received.number(number) == UNKNOWN:
            received.add(number, end)
            ends[number] = end
    assert received.last() == max(ids, default=UNKNOWN)
    for number in range(42):
        assert received.end_of(number) == ends.get(number, -1)


def test_ids_wrap() -> None:
    received = ReceivedDeliveries()
    received.add(0xFFFFFFFF, 10)
    received.add(0, 20)
    assert received.last() == 2**32
    assert received.number(0xFFFFFFFF) == 2**32 - 1
    assert received.number(1) == UNKNOWN
    assert [received.end_of(number) for number in (0xFFFFFFFE, 0xFFFFFFFF, 0, 1)] == [-1, 10, 20, -1]


def test_the_oldest_are_forgotten() -> None:
    received = ReceivedDeliveries()
    for number in range(10 * MAX_UNPROVED):
        received.add(number, number)
    assert MAX_UNPROVED // 2 <= len(received.ends) <= MAX_UNPROVED
    assert received.end_of(10 * MAX_UNPROVED - 1) == 10 * MAX_UNPROVED - 1
    assert received.end_of(0) == -1


@pytest.mark.skipif(not INTERPRETED, reason="compiled lines are not traced")
def test_no_delivery_is_searched_for() -> None:
    """A disposition of deliveries that are forgotten takes as little as any other."""
    received = ReceivedDeliveries()
    for number in range(2000):
        received.add(10_000 + number, number)
    lines = 0

    def tracer(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += 1
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        assert received.end_of(3) == -1
    finally:
        sys.settrace(before)
    assert lines < 20
