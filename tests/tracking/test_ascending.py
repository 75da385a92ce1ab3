"""What waits, by number: found in order, whatever has gone meanwhile, and whatever came when."""

from __future__ import annotations

from random import Random

import pytest

from amqpscope.tracking.ascending import Ascending


@pytest.mark.parametrize("seed", range(20))
def test_it_finds_what_a_sorted_dictionary_has(seed: int) -> None:
    random = Random(seed)
    ascending = Ascending()
    waiting: dict[int, str] = {}
    for _ in range(2000):
        number = random.randrange(1, 300)
        what = random.randrange(6)
        if what < 3:
            if number not in waiting or random.random() < 0.1:
                waiting[number] = ""
                ascending.add(number, waiting)
        elif what == 3:
            waiting.pop(number, None)
        elif what == 4 and waiting:
            assert ascending.smallest(waiting) == min(waiting)
        else:
            top = random.choice([0, number])
            assert ascending.up_to(top, waiting) == [one for one in sorted(waiting) if not top or one <= top]
            if random.random() < 0.1:
                waiting.clear()


def test_numbers_that_are_gone_take_no_room() -> None:
    ascending = Ascending()
    waiting: dict[int, str] = {}
    for number in range(1, 100_000):
        waiting[number] = ""
        ascending.add(number, waiting)
        waiting.pop(number - 3, None)
        assert ascending.up_to(0, waiting) == sorted(waiting)
    assert len(ascending.numbers) < 100
