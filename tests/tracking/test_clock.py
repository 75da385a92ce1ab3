"""What a silence is worth: the time stamps in between, without the longest stretch."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from amqpscope.limits import MAX_STRETCHES, SHORT_STRETCH
from amqpscope.tracking.clock import ClockStepGuard

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def paced(*seconds: float) -> ClockStepGuard:
    pace = ClockStepGuard()
    for second in seconds:
        pace.saw(START + round(second * SECOND))
    return pace


def test_nothing_in_between_attests_nothing() -> None:
    assert paced(0, 10).attested(START, START + 10 * SECOND) == 0


def test_what_is_attested_is_all_but_the_longest_stretch() -> None:
    assert paced(0, 1, 2, 7, 10).attested(START, START + 10 * SECOND) == 5 * SECOND


def test_what_was_before_does_not_count() -> None:
    pace = paced(0, 8, 9, 10, 11)
    assert pace.attested(START + 8 * SECOND, START + 11 * SECOND) == 2 * SECOND


def test_a_clock_that_goes_back_is_no_stretch() -> None:
    pace = paced(0, 1, 0.5, 1.5, 2)
    assert pace.attested(START, START + 2 * SECOND) == SECOND


@given(st.lists(st.integers(-SECOND, 3 * SECOND), max_size=200), st.integers(0, 200))
def test_the_longest_stretch_is_never_taken_for_less(steps: list[int], first: int) -> None:
    pace = ClockStepGuard()
    times = [START]
    for step in steps:
        times.append(times[-1] + step)
    for time in times:
        pace.saw(time)
        assert ClockStepGuard.load(pace.dump()).dump() == pace.dump()
    asked = times[min(first, len(times) - 1) :]
    since, until = asked[0], asked[-1]
    known = sorted(time for time in asked if since <= time <= until)
    longest = max((after - before for before, after in pairwise(known)), default=0)
    attested = pace.attested(since, until)
    assert attested <= until - since - longest + SHORT_STRETCH


def test_what_is_kept_is_bounded() -> None:
    pace = ClockStepGuard()
    time = START
    for n in range(10_000, 0, -1):
        time += n * SHORT_STRETCH
        pace.saw(time)
    assert len(pace.stretches) <= MAX_STRETCHES
    assert pace.attested(START, time) <= time - START - 10_000 * SHORT_STRETCH


def test_a_clock_that_was_set_back_attests_nothing() -> None:
    pace = ClockStepGuard()
    for time in range(0, 20 * SECOND, SECOND):
        pace.saw(SECOND + time)
    assert pace.attested(5 * SECOND, 15 * SECOND) == 9 * SECOND
    pace.saw(19 * SECOND)  # by another clock
    assert not pace.jumped()
    pace.saw(10 * SECOND)
    assert pace.jumped()
    assert pace.back == 9 * SECOND
    assert ClockStepGuard.load(pace.dump()).attested(5 * SECOND, 15 * SECOND) == 0


def test_a_clock_without_times_stood_still() -> None:
    pace = ClockStepGuard()
    for _ in range(3):
        pace.saw(0)
    assert pace.stood(0) and not pace.stood(1)
    assert ClockStepGuard.load(pace.dump()).stood(0)
