"""Where two strands part that are too long to be compared frame by frame."""

from __future__ import annotations

from array import array

import pytest

from amqpscope.diff import alignment
from amqpscope.diff.alignment import AlignedStep, aligned
from amqpscope.diff.forms import CanonicalFrame, CanonicalFrameTable, FormEntry


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "MAX_ALIGNED", 4)


def strands(a: str, b: str) -> tuple[array[int], array[int], CanonicalFrameTable]:
    """Two strands, a letter for a frame; a letter and its capital are frames of one name."""
    table = CanonicalFrameTable()
    numbers = {
        letter: table.number(CanonicalFrame(letter.lower(), (FormEntry("field", letter),)))
        for letter in dict.fromkeys(a + b)
    }
    return array("l", [numbers[one] for one in a]), array("l", [numbers[one] for one in b]), table


def test_a_frame_with_another_value() -> None:
    assert aligned(*strands("abcdefgh", "abCdefgH")) == ([AlignedStep(2, 2, 2, 2)], False)


def test_a_frame_that_only_the_second_strand_has() -> None:
    assert aligned(*strands("abdefgh", "abcdefgi")) == ([AlignedStep(-1, 2, 2, 2)], False)


def test_a_frame_that_only_the_first_strand_has() -> None:
    assert aligned(*strands("abcdefgi", "abdefgh")) == ([AlignedStep(2, -1, 2, 2)], False)


def test_short_differences_are_all_found() -> None:
    steps, complete = aligned(*strands("abcd", "aBcD"))
    assert complete
    assert steps == [AlignedStep(1, 1, 1, 1), AlignedStep(3, 3, 3, 3)]
