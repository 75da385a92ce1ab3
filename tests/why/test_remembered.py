"""What `why` remembers of a connection is bounded, and no session sees another one's."""

from __future__ import annotations

from amqpscope.why.remembered import Portion, Recent


def test_the_oldest_is_forgotten() -> None:
    table: Recent[int, str] = Recent(2)
    for number in (1, 2, 1, 3):
        table.put(number, f"said {number}")
    assert table.get(2) is None
    assert table.newest_first() == ["said 3", "said 1"]
    assert table.pop(1) == "said 1"
    assert table.pop(1) is None


def test_portions_share_the_bound_and_nothing_else() -> None:
    table: Recent[tuple[int, int], str] = Recent(3)
    first, second = Portion(table, 100), Portion(table, 200)
    first.put(0, "first")
    second.put(0, "second")
    assert (first.get(0), second.get(0)) == ("first", "second")
    assert first.newest_first() == ["first"]
    second.put(1, "third")
    second.put(2, "fourth")
    assert first.get(0) is None
    assert second.newest_first() == ["fourth", "third", "second"]
