"""Entries that wait, by number: found as in a sorted dictionary, whatever has gone meanwhile."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from amqpscope.tracking.numbered import Numbered

HUGE = (1 << 64) - 1


def same(numbered: Numbered, known: dict[int, Any], top: int) -> None:
    assert len(numbered) == len(known)
    ordered = sorted(known)
    assert numbered.oldest() == (known[ordered[0]] if known else None)
    assert numbered.entries() == [known[one] for one in ordered]
    assert numbered.up_to(top) == [known[one] for one in ordered if not top or one <= top]


@pytest.mark.parametrize("seed", range(40))
def test_it_finds_what_a_sorted_dictionary_has(seed: int) -> None:
    random = Random(seed)
    numbered = Numbered()
    known: dict[int, Any] = {}
    last = 0
    odd = random.choice([0.0, 0.02, 0.3])
    for step in range(1500):
        what = random.randrange(8)
        if random.random() < odd:
            number = random.choice([random.randrange(1, 300), last + random.randrange(1, 200), HUGE - step])
        else:
            number = last + 1
        if what < 4:
            entry = [number, step]
            numbered.put(number, entry)
            known[number] = entry
            last = number if number < HUGE - 5000 else last
        elif what == 4 and known:
            number = random.choice(list(known))
            assert number in numbered and numbered.get(number) is known[number]
            assert numbered.take(number) is known.pop(number)
            assert number not in numbered and numbered.take(number) is None
        elif what == 5:
            assert numbered.get(number) is known.get(number)
        elif what == 6:
            same(numbered, known, random.choice([0, number]))
        elif random.random() < 0.3:
            top = random.choice([0, 1, last // 2, last, number])
            taken = [one for one in sorted(known) if not top or one <= top]
            assert numbered.take_up_to(top) == [known.pop(one) for one in taken]
    same(numbered, known, 0)


def test_numbers_that_are_gone_take_no_room() -> None:
    numbered = Numbered()
    for number in range(1, 50_000):
        numbered.put(number, number)
        assert number < 4 or numbered.take(number - 3) == number - 3
    assert len(numbered) == 3 and len(numbered.row) < 200


def test_one_that_keeps_waiting_holds_no_place_of_those_behind_it() -> None:
    numbered = Numbered()
    numbered.put(1, 1)
    for number in range(2, 50_000):
        numbered.put(number, number)
        numbered.take(number)
    assert numbered.entries() == [1] and len(numbered.row) < 10_000
    assert numbered.oldest() == 1 and numbered.take(1) == 1 and len(numbered) == 0


def test_numbers_beyond_63_bits_are_found() -> None:
    numbered = Numbered()
    for number in (HUGE, 5, HUGE - 1, 6):
        numbered.put(number, number)
    assert numbered.entries() == [5, 6, HUGE - 1, HUGE]
    assert numbered.up_to(HUGE - 1) == [5, 6, HUGE - 1]
    assert HUGE in numbered and HUGE - 2 not in numbered
    assert numbered.take(HUGE) == HUGE and numbered.take_up_to(0) == [5, 6, HUGE - 1] and len(numbered) == 0


@pytest.mark.parametrize("huge", [(1 << 63) - 1, 1 << 63, HUGE])
def test_the_oldest_is_found_next_to_numbers_beyond_63_bits(huge: int) -> None:
    numbered = Numbered()
    for number in (1, huge, 2):
        numbered.put(number, number)
    assert numbered.oldest() == 1 and numbered.take(1) == 1
    assert numbered.oldest() == 2 and numbered.take(2) == 2
    assert numbered.oldest() == huge
