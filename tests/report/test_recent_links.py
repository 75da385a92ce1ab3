"""What is remembered of links by channel and number: bounded, and forgotten by channel."""

from __future__ import annotations

import pytest

from amqpscope.model.records import CLIENT
from amqpscope.report import links
from amqpscope.report.links import LinkOf, _key, _Recent

BOUND = links.MAX_NAMED_DELIVERIES


def link(name: str) -> LinkOf:
    return LinkOf(name, CLIENT)


def test_a_channel_is_forgotten_and_no_other() -> None:
    recent = _Recent()
    one, other = link("one"), link("other")
    for number in range(3):
        recent.put(_key(0, 1, number), one)
        recent.put(_key(1, 1, number), other)
    recent.drop(_key(0, 1, 0) >> 32)
    assert [recent.get(_key(0, 1, number)) for number in range(3)] == [None] * 3
    assert [recent.get(_key(1, 1, number)) for number in range(3)] == [other] * 3
    assert recent.size == 3


def test_the_oldest_are_forgotten_however_many_channels_have_them() -> None:
    recent = _Recent()
    one = link("one")
    for number in range(2 * BOUND + 2):
        recent.put(_key(0, number % 7, number), one)
    assert recent.get(_key(0, 0, 0)) is None
    last = 2 * BOUND + 1
    assert recent.get(_key(0, last % 7, last)) is one
    kept = sum(len(some) for some in (*recent.young.values(), *recent.old.values()))
    assert BOUND <= kept <= 2 * BOUND + 1


@pytest.mark.parametrize("again", [False, True])
def test_a_number_that_is_taken_out_is_counted_once(again: bool) -> None:
    recent = _Recent()
    one = link("one")
    recent.put(_key(0, 1, 5), one)
    if again:
        recent.put(_key(0, 1, 5), one)
    assert recent.size == 1
    assert recent.pop(_key(0, 1, 5)) is one and recent.pop(_key(0, 1, 5)) is None
    assert recent.size == 0
