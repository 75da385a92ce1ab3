"""Where two strands part: the sayings that one of them has and the other has not, or has otherwise."""

from array import array
from difflib import SequenceMatcher
from typing import NamedTuple

from amqpscope.diff.forms import CanonicalFrameTable
from amqpscope.limits import MAX_ALIGNED

__all__ = ["AlignedStep", "aligned"]

_PIECE = 4096


class AlignedStep(NamedTuple):
    """A saying of the first strand and one of the second that stands for it; -1 for none.

    before_a, before_b: how many of each strand stand before it.
    """

    a: int
    b: int
    before_a: int
    before_b: int


def aligned(a: "array[int]", b: "array[int]", table: CanonicalFrameTable) -> tuple[list[AlignedStep], bool]:
    """The steps in which two strands differ, in order; and whether all are there, not the first only."""
    if a == b:
        return [], True
    start = _same(a, b)
    end_a, end_b = len(a), len(b)
    while end_a > start and end_b > start and a[end_a - 1] == b[end_b - 1]:
        end_a -= 1
        end_b -= 1
    if max(end_a, end_b) - start > MAX_ALIGNED and min(end_a, end_b) > start:
        return [_first(a, b, start, table)], False
    middle_a, middle_b = list(a[start:end_a]), list(b[start:end_b])
    steps: list[AlignedStep] = []
    for what, a1, a2, b1, b2 in SequenceMatcher(None, middle_a, middle_b, False).get_opcodes():
        if what != "equal":
            steps += _replaced(middle_a, middle_b, (a1, a2), (b1, b2), start, table)
    return steps, True


def _same(a: "array[int]", b: "array[int]") -> int:
    """How many sayings two strands have in common from their start."""
    shorter = min(len(a), len(b))
    at = 0
    while at < shorter and a[at : at + _PIECE] == b[at : at + _PIECE]:
        at += _PIECE
    at = min(at, shorter)
    while at < shorter and a[at] == b[at]:
        at += 1
    return at


def _first(a: "array[int]", b: "array[int]", start: int, table: CanonicalFrameTable) -> AlignedStep:
    """The first difference of two that are too long to be set against each other."""
    if table.form(a[start]).name == table.form(b[start]).name:
        return AlignedStep(start, start, start, start)
    ahead = b[start : start + MAX_ALIGNED]
    return AlignedStep(-1, start, start, start) if a[start] in ahead else AlignedStep(start, -1, start, start)


def _replaced(
    a: list[int],
    b: list[int],
    range_a: tuple[int, int],
    range_b: tuple[int, int],
    start: int,
    table: CanonicalFrameTable,
) -> list[AlignedStep]:
    """What stands in one strand, and what in the other: those of one name are the same saying."""
    (a1, a2), (b1, b2) = range_a, range_b
    names_a = [table.form(number).name for number in a[a1:a2]]
    names_b = [table.form(number).name for number in b[b1:b2]]
    steps: list[AlignedStep] = []
    for what, i1, i2, j1, j2 in SequenceMatcher(None, names_a, names_b, False).get_opcodes():
        i1, i2, j1, j2 = i1 + a1, i2 + a1, j1 + b1, j2 + b1
        both = min(i2 - i1, j2 - j1) if what in ("equal", "replace") else 0
        for step in range(both):
            i, j = start + i1 + step, start + j1 + step
            steps.append(AlignedStep(i, j, i, j))
        for i in range(i1 + both, i2):
            steps.append(AlignedStep(start + i, -1, start + i, start + j1 + both))
        for j in range(j1 + both, j2):
            steps.append(AlignedStep(-1, start + j, start + i1 + both, start + j))
    return steps
