"""Sequence arithmetic, above all at its wrap-arounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpscope.reassembly.sequence import sequence_number, unwrap

WRAP = 1 << 32
sequences = st.integers(0, WRAP - 1)
offsets = st.integers(0, 1 << 60)


@given(origin=sequences, offset=offsets, distance=st.integers(-(1 << 31) + 1, 1 << 31))
def test_an_offset_is_found_again_from_its_sequence_number_beside_any_near_place(
    origin: int, offset: int, distance: int
) -> None:
    raw = (origin + offset) % WRAP
    assert sequence_number(offset, origin) == raw
    assert unwrap(raw, origin, offset + distance) == offset


@given(raw=sequences, origin=sequences, near=offsets)
def test_the_answer_is_the_nearest_of_all_offsets_with_that_number(raw: int, origin: int, near: int) -> None:
    offset = unwrap(raw, origin, near)
    assert (offset + origin - raw) % WRAP == 0
    assert -(WRAP // 2) <= offset - near < WRAP // 2


@pytest.mark.parametrize("origin", [0, 1, WRAP // 2 - 1, WRAP // 2, WRAP - 1])
@pytest.mark.parametrize(
    ("near", "offset"),
    [
        (0, 0),
        (0, 1),
        (0, -1),  # before the origin
        (WRAP - 1, WRAP),  # over each wrap of the offset's low bits, both ways
        (WRAP, WRAP - 1),
        (WRAP + 5, WRAP - 5),
        (WRAP // 2 - 1, WRAP // 2),
        (WRAP // 2, WRAP // 2 - 1),
        (3 * WRAP - 1, 3 * WRAP + 1),
        (0, WRAP // 2 - 1),  # the furthest ahead
        (0, -WRAP // 2),  # the furthest behind: half way round counts as behind
        (WRAP, WRAP // 2),
        ((1 << 61) - 1, 1 << 61),
    ],
)
def test_wrap_arounds(origin: int, near: int, offset: int) -> None:
    assert unwrap((origin + offset) % WRAP, origin, near) == offset


def test_only_the_low_32_bits_of_the_numbers_count() -> None:
    assert unwrap(WRAP + 7, 5, 0) == 2
    assert unwrap(3, WRAP - 1, 0) == 4
    assert sequence_number(WRAP + 1, WRAP - 1) == 0
