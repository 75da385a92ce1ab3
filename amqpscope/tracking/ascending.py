"""Numbered things that wait, to be found by their numbers from the smallest upwards.

Who looks for the first entry of a dictionary steps over all entries that were deleted before it, each time.
So the numbers are kept beside it, in order. Nearly always a new number is the greatest: then it costs an
append. Numbers whose entry is gone are stepped over once where they come first, and dropped when they are the
greater part.
"""

from bisect import insort
from typing import Any, Final

from dissectors.wire import i64

__all__ = ["Ascending"]

_FEW: Final = 64
"""Numbers that may be gone without being looked for."""


class Ascending:
    """The numbers of what waits in a dictionary, and maybe of what is gone from it. It is given each time.

    numbers: in ascending order, each once. first: the index before which all are gone.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.first: i64 = 0

    def add(self, number: int, waiting: dict[int, Any]) -> None:
        """Something with this number waits from now on."""
        numbers = self.numbers
        size: i64 = len(numbers)
        if size - self.first > _FEW and size - self.first > 2 * len(waiting):
            self.numbers = sorted(waiting)
            self.first = 0
            if number not in waiting:
                insort(self.numbers, number)
            return
        if self.first > _FEW and 2 * self.first > size:
            del numbers[: self.first]
            self.first = 0
            size = len(numbers)
        if size == self.first or number > numbers[size - 1]:
            numbers.append(number)
        elif number != numbers[size - 1]:
            if number < numbers[self.first]:
                # It may be one that was gone, and waits again.
                self.numbers = [number, *numbers[self.first :]]
                self.first = 0
            else:
                insort(numbers, number, int(self.first))

    def smallest(self, waiting: dict[int, Any]) -> int:
        """The smallest number of what waits; only to be asked when something does."""
        numbers = self.numbers
        at: i64 = self.first
        while numbers[at] not in waiting:
            at += 1
        self.first = at
        return numbers[at]

    def up_to(self, number: int, waiting: dict[int, Any]) -> list[int]:
        """The numbers of what waits, in order, none of them above this one. 0: all."""
        numbers = self.numbers
        size: i64 = len(numbers)
        at: i64 = self.first
        while at < size and numbers[at] not in waiting:
            at += 1
        self.first = at
        found: list[int] = []
        last = -1
        while at < size:
            one = numbers[at]
            if number != 0 and one > number:
                break
            if one != last and one in waiting:
                found.append(one)
                last = one
            at += 1
        return found
