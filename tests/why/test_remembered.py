"""What `why` remembers of a connection is bounded."""

from __future__ import annotations

from amqpscope.why.remembered import Recent


def test_the_oldest_is_forgotten() -> None:
    table: Recent[int, str] = Recent(2)
    for number in (1, 2, 1, 3):
        table.put(number, f"said {number}")
    assert table.get(2) is None
    assert table.newest_first() == ["said 3", "said 1"]
    assert table.pop(1) == "said 1"
    assert table.pop(1) is None
