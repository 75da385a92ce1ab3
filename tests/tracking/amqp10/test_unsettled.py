"""The unsettled deliveries of a half of a session: found by id as in a dictionary, and forgotten in order."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpscope.capture.words import INTERPRETED
from amqpscope.model.records import CLIENT
from amqpscope.tracking.amqp10.identity import OpenDelivery, Session, UnsettledDeliveries

_IDS = 1 << 32

# How far the next id is ahead of the last one, and how many deliveries are settled then, from which on.
_STEPS = st.lists(
    st.tuples(
        st.sampled_from([1, 1, 1, 1, 2, 5, 63, 64, 65, 300, -1, -3, 0, 1 << 30, -(1 << 31)]),
        st.integers(0, 6),
        st.integers(-70, 5),
    ),
    max_size=120,
)


def _started(number: int) -> OpenDelivery:
    return OpenDelivery(Session(CLIENT), None, number)


@given(st.sampled_from([0, 1, _IDS - 3, _IDS // 2]), _STEPS)
def test_deliveries_are_found_as_in_a_dictionary(number: int, steps: list[tuple[int, int, int]]) -> None:
    unsettled = UnsettledDeliveries()
    known: dict[int, OpenDelivery] = {}
    for ahead, settled, back in steps:
        number = (number + ahead) % _IDS
        unsettled.put(number, _started(number))
        kept = unsettled.get(number)
        assert kept is not None and kept.id == number
        known[number] = kept
        first = (number + back) % _IDS
        for size in (1, 2, 80, 1 << 31):
            named = sorted((one - first) % _IDS for one in known if (one - first) % _IDS < size)
            assert [one.id for one in unsettled.among(first, size)] == [
                (first + step) % _IDS for step in named
            ]
        for step in range(settled):
            one = (first + step) % _IDS
            assert unsettled.get(one) is known.pop(one, None)
            unsettled.remove(one)
            assert unsettled.get(one) is None
        assert unsettled.count == len(known) and set(unsettled.ids()) == set(known)


@given(st.integers(0, 300), st.integers(0, 40))
def test_the_older_half_is_forgotten(many: int, settled: int) -> None:
    unsettled = UnsettledDeliveries()
    for number in range(many):
        unsettled.put(number, _started(number))
    for number in range(settled):
        unsettled.remove(number)
    left = list(range(min(settled, many), many))
    unsettled.forget_older()
    assert unsettled.ids() == left[(len(left) + 1) // 2 :]


@pytest.mark.parametrize(("settled", "left"), [(25, [*range(75)]), (24, [*range(50, 100)])])
def test_those_that_the_sender_has_settled_are_forgotten_first(settled: int, left: list[int]) -> None:
    """Where they are a quarter of all."""
    unsettled = UnsettledDeliveries()
    for number in range(100):
        unsettled.put(number, _started(number))
    for one in unsettled.among(100 - settled, settled):
        one.settled = True
    unsettled.forget_older()
    assert unsettled.ids() == left and unsettled.count == len(left)


def test_settled_deliveries_leave_no_places() -> None:
    unsettled = UnsettledDeliveries()
    for number in range(10_000):
        unsettled.put(number % _IDS, _started(number))
        if number >= 3:
            unsettled.remove(number - 3)
    assert unsettled.ids() == [9_997, 9_998, 9_999] and len(unsettled.row) < 200


@pytest.mark.parametrize("step", [1, 2, 63])
def test_deliveries_that_stay_unsettled_keep_no_places_behind_them(step: int) -> None:
    unsettled = UnsettledDeliveries()
    for number in range(0, 20_000 * step, step):
        unsettled.put(number, _started(number))
        if number > 3 * step:
            unsettled.remove(number)
    stuck = [0, step, 2 * step, 3 * step]
    assert len(unsettled.row) < 5_000
    assert unsettled.ids() == stuck and unsettled.count == 4
    assert [one.id for one in unsettled.among(0, 1 << 31)] == stuck
    assert [one.id for one in unsettled.among(2 * step, 10 * step)] == stuck[2:]
    unsettled.put(20_000 * step, _started(20_000 * step))
    unsettled.forget_older()
    assert unsettled.ids() == [3 * step, 20_000 * step]


@pytest.mark.parametrize("step", [1, 2, 63])
def test_a_window_that_moves_on_keeps_no_places_before_it(step: int) -> None:
    unsettled = UnsettledDeliveries()
    for number in range(20_000):
        unsettled.put(number * step, _started(number * step))
        if number >= 10:
            unsettled.remove((number - 10) * step)
    assert unsettled.count == 10 and len(unsettled.row) < 2_000


@pytest.mark.skipif(not INTERPRETED, reason="compiled lines are not traced")
def test_few_ids_are_looked_up_and_not_searched_for() -> None:
    """However many deliveries have ids far from each other."""
    unsettled = UnsettledDeliveries()
    for number in range(2_000):
        unsettled.put(number * 1_000, _started(number * 1_000))
    lines = 0

    def tracer(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += 1
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        found = unsettled.among(1_000, 3)
    finally:
        sys.settrace(before)
    assert [one.id for one in found] == [1_000] and lines < 60
