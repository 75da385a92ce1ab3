"""Numbered things that wait, to be found by their numbers from the smallest upwards.

Who looks for the first entry of a dictionary steps over all entries that were deleted before it, each time.
So the numbers are kept beside it in a heap. Numbers whose entry is gone are dropped when they come up, or
when they are the greater part. Each number costs at most the logarithm of how many there are.
"""

from heapq import heappop, heappush
from typing import Any, Final

from dissectors.wire import i64

__all__ = ["Ascending"]

_FEW: Final = 64
"""Numbers that may be gone without being looked for."""


class Ascending:
    """The numbers of what waits in a dictionary, and maybe of what is gone from it. It is given each time."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def add(self, number: int, waiting: dict[int, Any]) -> None:
        """Something with this number waits from now on."""
        numbers = self.numbers
        size: i64 = len(numbers)
        if size > _FEW and size > 2 * len(waiting):
            # A list in order is a heap.
            self.numbers = sorted(waiting)
            numbers = self.numbers
        heappush(numbers, number)

    def smallest(self, waiting: dict[int, Any]) -> int:
        """The smallest number of what waits; only to be asked when something does."""
        numbers = self.numbers
        while numbers[0] not in waiting:
            heappop(numbers)
        return numbers[0]

    def up_to(self, number: int, waiting: dict[int, Any]) -> list[int]:
        """The numbers of what waits, in order, none of them above this one. 0: all."""
        if number == 0:
            self.numbers = sorted(waiting)
            return list(self.numbers)
        numbers = self.numbers
        found: list[int] = []
        last = -1
        while numbers and numbers[0] <= number:
            one = heappop(numbers)
            if one in waiting and one != last:
                found.append(one)
                last = one
        # They may go on waiting.
        for one in found:
            heappush(numbers, one)
        return found
