"""Text within the columns of a terminal."""

from __future__ import annotations

import pytest
import rich.cells
from hypothesis import given
from hypothesis import strategies as st

from amqpscope.report.printable import cells, wrap

TEXTS = st.text("a b茶ｱ\u0301", max_size=60)


@given(text=TEXTS, first=st.integers(0, 12), more=st.integers(0, 12))
def test_lines_fit_and_hold_all_that_was_said(text: str, first: int, more: int) -> None:
    width = max(2, first) + more
    lines = wrap(text, first, width)
    assert all(cells(line) <= room for line, room in zip(lines, [first] + [width] * len(lines), strict=False))
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_a_long_line_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what is left of it for every line that it takes."""
    counted = []
    size = rich.cells.get_character_cell_size
    monkeypatch.setattr(rich.cells, "get_character_cell_size", lambda one: counted.append(one) or size(one))
    text = "茶" * 5_000
    assert wrap(text, 40, 40) == ["茶" * 20] * 250
    assert len(counted) < 2 * len(text)
