"""Numbered entries that wait, found by their numbers from the smallest upwards.

A search for the first entry of a dictionary steps over all deleted entries before it, each time. This module
therefore keeps the numbers beside the dictionary, in order. A new number is nearly always the greatest, and
costs one append. Numbers of deleted entries are stepped over once when they come first, and are dropped when
they are the greater part.
"""

from bisect import bisect_left, bisect_right
from typing import Any, Final

from dissectors.wire import i64

__all__ = ["Ascending"]

_FEW: Final = 64
"""Numbers that may be gone without being looked for."""


class Ascending:
    """The numbers of the entries that wait in a dictionary, and perhaps of deleted ones. Each method is given
    the dictionary.

    numbers: in ascending order from the index `first` on, each once; all entries before that index are
    deleted. greatest: no number is above it.
    """

    def __init__(self) -> None:
        # mypyc: numbers as objects, because an int of a typed list is made anew each time it is read.
        self.numbers: list[Any] = []
        self.first: i64 = 0
        self.greatest: int = -1

    def add(self, key: Any, waiting: dict[Any, Any]) -> None:
        """An entry waits from now on. key: its number, the same object as in the dictionary."""
        number: int = key
        numbers = self.numbers
        size: i64 = len(numbers)
        if size - self.first > _FEW and size - self.first > 2 * len(waiting):
            # The new number may already be in the list.
            self.numbers = sorted(waiting)
            self.first = 0
            self._insert(number)
            self.greatest = max(self.greatest, number)
            return
        if self.first > _FEW and 2 * self.first > size:
            del numbers[: self.first]
            self.first = 0
        if number > self.greatest:
            self.greatest = number
            numbers.append(key)
        else:
            self._insert(number)

    def _insert(self, number: int) -> None:
        # It may be the number of a deleted entry that waits again.
        at = bisect_left(self.numbers, number, int(self.first))
        if at == len(self.numbers) or self.numbers[at] != number:
            self.numbers.insert(at, number)

    def smallest(self, waiting: dict[Any, Any]) -> int:
        """The smallest number of the entries that wait. At least one entry must wait."""
        numbers = self.numbers
        at: i64 = self.first
        while numbers[at] not in waiting:
            at += 1
        self.first = at
        number: int = numbers[at]
        return number

    def up_to(self, number: int, waiting: dict[Any, Any]) -> list[Any]:
        """The numbers of the entries that wait, in order, up to this number. 0: all."""
        numbers = self.numbers
        size: i64 = len(numbers)
        at: i64 = self.first
        while at < size and numbers[at] not in waiting:
            at += 1
        self.first = at
        end: i64 = size if number == 0 else bisect_right(numbers, number, int(at))
        found = numbers[at:end]
        if size - at == len(waiting):
            return found
        return [one for one in found if one in waiting]
