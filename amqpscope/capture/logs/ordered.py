"""Texts that stand behind known marks, in a known order."""

from collections.abc import Sequence

__all__ = ["pieces"]


def pieces(text: str, marks: Sequence[str]) -> list[str]:
    """What stands behind each mark, up to the next one. The text begins with the first mark.

    Raises ValueError if a mark is missing, or if it is not certain which one is the mark: another one like it
    stands in a text behind it. The last text may have any marks.
    """
    found: list[str] = []
    at = 0
    for index, mark in enumerate(marks):
        place = text.find(mark, at)
        if place < 0 or (index == 0 and place != 0):
            raise ValueError("a mark is missing")
        if index:
            found.append(text[at:place])
        at = place + len(mark)
    if marks:
        found.append(text[at:])
    for mark, one in zip(marks[1:], found[1:-1], strict=False):
        if mark in one:
            raise ValueError("not certain where the text begins")
    return found
