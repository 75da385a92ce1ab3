"""What watches remember of deliveries: found at the delivery, the oldest forgotten, all of it at a loss."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from amqpscope.diagnoses.memory import Memory
from amqpscope.limits import MAX_UNANSWERED
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.events import Rememberable


class Deliveries:
    """Deliveries that are outstanding on two channels of a conversation."""

    def __init__(self) -> None:
        self.conversation = Conversation091()
        self.channels: list[Any] = [self.conversation.view.unknown(number) for number in (1, 2)]
        self.memory = Memory(self.conversation)
        self.started = 0

    def start(self) -> Rememberable:
        self.started += 1
        delivery = ConsumerDelivery(self.started, "c", 0, self.started, self.started)
        self.channels[self.started % 2].deliveries.add(delivery)
        return delivery

    def put(self, what: object) -> Rememberable:
        delivery = self.start()
        self.memory.put(delivery, what)
        return delivery


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=20))
def test_what_is_put_is_taken_once(rounds: list[tuple[int, int]]) -> None:
    deliveries = Deliveries()
    memory = deliveries.memory
    waiting: list[tuple[Rememberable, str]] = []
    for put, taken in rounds:
        for number in range(put):
            waiting.append((deliveries.put(f"{number}"), f"{number}"))
        for one, what in waiting[:taken]:
            assert memory.take(one) == what and memory.take(one) is None
        del waiting[:taken]
        assert memory.count == len(waiting)
    memory.clear()
    assert memory.count == 0 and all(memory.take(one) is None for one, _ in waiting)


def test_the_oldest_are_forgotten() -> None:
    deliveries = Deliveries()
    memory = deliveries.memory
    ones = [deliveries.put("delivery") for _ in range(2 * MAX_UNANSWERED + 1)]
    assert memory.count == MAX_UNANSWERED + 1
    assert memory.take(ones[MAX_UNANSWERED - 1]) is None and memory.take(ones[MAX_UNANSWERED]) == "delivery"
    deliveries.put("delivery")
    assert memory.count == MAX_UNANSWERED + 1


def test_those_that_no_frame_can_name_are_counted_until_the_next_are_forgotten() -> None:
    deliveries = Deliveries()
    for _ in range(2 * MAX_UNANSWERED):
        deliveries.put("delivery")
    deliveries.channels[0].deliveries.recover()
    deliveries.put("delivery")
    assert deliveries.memory.count == MAX_UNANSWERED + 1


def test_what_is_put_again_is_remembered_once() -> None:
    deliveries = Deliveries()
    memory = deliveries.memory
    one, other = deliveries.put("first"), deliveries.put("other")
    memory.put(one, "second")
    assert memory.count == 2
    assert memory.take(one) == "second" and memory.take(one) is None
    memory.clear()
    assert memory.count == 0 and memory.take(other) is None


def test_what_is_taken_in_any_order_is_found() -> None:
    random = Random(26)
    deliveries = Deliveries()
    memory = deliveries.memory
    known: dict[Rememberable, int] = {}
    for number in range(20_000):
        if known and random.random() < 0.49:
            delivery = random.choice(list(known)[:50])
            assert memory.take(delivery) == known.pop(delivery)
            assert memory.take(delivery) is None
        else:
            known[deliveries.put(number)] = number
        assert memory.count == len(known)
    memory.clear()
    assert memory.count == 0 and all(one.remembered is None for one in known)
