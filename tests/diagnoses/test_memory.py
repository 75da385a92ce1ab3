"""What watches remember of deliveries: found at the delivery, the oldest forgotten, all of it at a loss."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from amqpscope.diagnoses.memory import Memory
from amqpscope.limits import MAX_UNANSWERED
from amqpscope.tracking.events import Rememberable


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=20))
def test_what_is_put_is_taken_once(rounds: list[tuple[int, int]]) -> None:
    memory = Memory()
    waiting: list[tuple[Rememberable, str]] = []
    for put, taken in rounds:
        for number in range(put):
            one, what = Rememberable(), f"{number}"
            memory.put(one, what)
            waiting.append((one, what))
        for one, what in waiting[:taken]:
            assert memory.take(one) == what and memory.take(one) is None
        del waiting[:taken]
        assert memory.count == len(waiting)
    memory.clear()
    assert memory.count == 0 and all(memory.take(one) is None for one, _ in waiting)


def test_the_oldest_are_forgotten() -> None:
    memory = Memory()
    ones = [Rememberable() for _ in range(2 * MAX_UNANSWERED + 2)]
    for one in ones[:-1]:
        memory.put(one, "delivery")
    assert memory.count == MAX_UNANSWERED + 1
    assert memory.take(ones[MAX_UNANSWERED - 1]) is None and memory.take(ones[MAX_UNANSWERED]) == "delivery"
    memory.put(ones[-1], "delivery")
    assert memory.count == MAX_UNANSWERED + 1


def test_taken_ones_are_let_go() -> None:
    memory = Memory()
    for _ in range(1000):
        one = Rememberable()
        memory.put(one, "delivery")
        memory.take(one)
    assert len(memory._deliveries) < 100


def test_what_is_put_again_is_remembered_once() -> None:
    memory = Memory()
    one, other = Rememberable(), Rememberable()
    memory.put(one, "first")
    memory.put(other, "other")
    memory.put(one, "second")
    assert memory.count == 2
    assert memory.take(one) == "second" and memory.take(one) is None
    memory.clear()
    assert memory.count == 0 and memory.take(other) is None


def test_what_is_taken_in_order_is_let_go_of_at_once() -> None:
    memory = Memory()
    deliveries = [Rememberable() for _ in range(40)]
    for number, delivery in enumerate(deliveries):
        memory.put(delivery, number + 1)
    for number, delivery in enumerate(deliveries[:30]):
        assert memory.take(delivery) == number + 1
    assert [one for one in memory._deliveries if one is not None] == deliveries[30:]
    memory.clear()
    assert memory.count == 0 and all(one.remembered is None for one in deliveries)


def test_what_is_taken_in_any_order_is_found() -> None:
    random = Random(26)
    memory = Memory()
    known: dict[Rememberable, int] = {}
    for number in range(20_000):
        if known and random.random() < 0.49:
            delivery = random.choice(list(known)[:50])
            assert memory.take(delivery) == known.pop(delivery)
            assert memory.take(delivery) is None
        else:
            delivery = Rememberable()
            memory.put(delivery, number)
            known[delivery] = number
        assert memory.count == len(known)
        assert len(memory._deliveries) <= 2 * len(known) + 66
    memory.clear()
    assert memory.count == 0 and all(one.remembered is None for one in known)
