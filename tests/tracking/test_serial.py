"""RFC 1982 numbers as counts: every wrap-around."""

from hypothesis import given
from hypothesis import strategies as st

from amqpscope.tracking.serial import nearest, raw

TOP = 0xFFFFFFFF


def test_nearest_across_the_wrap() -> None:
    assert nearest(0, TOP) == 1 << 32
    assert nearest(TOP, 1 << 32) == TOP
    assert nearest(5, TOP) == (1 << 32) + 5
    assert nearest(TOP, 0) == -1
    assert nearest(7, 7) == 7


def test_nearest_at_half_the_span_goes_up() -> None:
    assert nearest(0x80000000, 0) == 0x80000000
    assert nearest(0x80000001, 0) == 0x80000001 - (1 << 32)


@given(st.integers(0, 1 << 40), st.integers(-(1 << 31) + 1, 1 << 31))
def test_nearest_finds_any_count_within_half_a_span(reference: int, distance: int) -> None:
    assert nearest(raw(reference + distance), reference) == reference + distance
