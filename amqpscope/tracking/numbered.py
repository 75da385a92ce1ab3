"""Numbered entries that wait, found by their numbers from the smallest upwards.

Theory of operation. Numbers such as delivery-tags go up by one with nearly every entry. So the entries stand
in a list, where their places follow from their numbers. An entry that no longer waits leaves None there. An
entry whose number is far from the others stands in a dictionary, with its number in `Ascending`, and so do
the few that keep waiting while very many behind them are gone.
"""

from typing import Any, Final

from amqpscope.tracking.ascending import Ascending
from dissectors.wire import COUNTABLE, countable, i64

__all__ = ["Numbered"]

_FEW: Final = 64
"""Places of entries that are gone, which may stand in the list."""

_MOSTLY_GONE: Final = 4096
"""Places from which on the list is given up if three quarters of them are empty."""

# mypyc: null object, of those without a number that is far from the others. Nothing writes to it.
_NONE_FAR: Final[dict[int, Any]] = {}


class Numbered:
    """Entries of one kind, each with a number of its own, which is not negative."""

    def __init__(self) -> None:
        # How many there are in the list.
        self.listed: i64 = 0
        # The list, the number of its first place, and the place before which there are none.
        self.row: list[Any] = []
        self.base: i64 = 0
        self.start: i64 = 0
        # The others, and their numbers in order.
        self.far: dict[int, Any] = _NONE_FAR
        self.order: Ascending | None = None

    def __len__(self) -> int:
        return int(self.count())

    def count(self) -> i64:
        """How many wait. mypyc: what is asked with each message asks this, because `len` goes by an `int`."""
        return self.listed + len(self.far)

    def __contains__(self, number: int) -> bool:
        return self.get(number) is not None

    def put(self, number: int, entry: object) -> None:
        """An entry waits from now on, instead of the one that had its number."""
        row = self.row
        size: i64 = len(row)
        if self.listed == 0:
            if size > 0:
                row.clear()
                size = 0
            self.start = 0
            self.base = countable(number)
        elif size > _FEW:
            if self.start > _FEW and 2 * self.start > size:
                del row[: self.start]
                self.base += self.start
                self.start = 0
                size = len(row)
            elif size > _MOSTLY_GONE and 4 * self.listed < size:
                self._spread()
                self.base = countable(number)
                size = 0
        at = countable(number) - self.base
        if at == size and number < COUNTABLE:
            row.append(entry)
            self.listed += 1
            if self.far:
                self.far.pop(number, None)
        elif self.start <= at < size and number < COUNTABLE:
            if row[at] is None:
                self.listed += 1
            row[at] = entry
        elif size < at < size + _FEW and not self.far and number < COUNTABLE:
            while size < at:
                row.append(None)
                size += 1
            row.append(entry)
            self.listed += 1
        else:
            self._put_far(number, entry)

    def _put_far(self, number: Any, entry: object) -> None:
        order = self.order
        if order is None:
            order = self.order = Ascending()
            self.far = {}
        self.far[number] = entry
        order.add(number, self.far)

    def _spread(self) -> None:
        """Few of the list are left, and the first of them holds the place of all behind it: move these."""
        at = self.base
        for entry in self.row:
            if entry is not None:
                self._put_far(int(at), entry)
            at += 1
        self.row.clear()
        self.listed = 0
        self.start = 0

    def get(self, number: int) -> Any:
        """The entry with a number, None if there is none."""
        at = countable(number) - self.base
        size: i64 = len(self.row)
        if 0 <= at < size:
            entry = self.row[at]
            if entry is not None and number < COUNTABLE:
                return entry
        return self.far.get(number) if self.far else None

    def take(self, number: int) -> Any:
        """The entry with a number, which waits no longer; None if there is none."""
        row = self.row
        at = countable(number) - self.base
        size: i64 = len(row)
        if 0 <= at < size:
            entry = row[at]
            if entry is not None and number < COUNTABLE:
                row[at] = None
                self.listed -= 1
                if at == self.start:
                    at += 1
                    while at < size and row[at] is None:
                        at += 1
                    self.start = at
                return entry
        return self.far.pop(number, None) if self.far else None

    def _end(self, number: int) -> i64:
        """The place behind those with numbers up to this one. 0: behind all."""
        size: i64 = len(self.row)
        return size if number == 0 else min(max(countable(number) - self.base + 1, self.start), size)

    def up_to(self, number: int) -> list[Any]:
        """The entries with numbers up to this one, in their order. 0: all."""
        end = self._end(number)
        row = self.row
        found = row[self.start : end]
        if self.listed < len(row) - self.start:
            found = [entry for entry in found if entry is not None]
        if not self.far or self.order is None:
            return found
        all_of_them = {one: self.far[one] for one in self.order.up_to(number, self.far)}
        at = self.start
        while at < end:
            if row[at] is not None:
                all_of_them[int(self.base + at)] = row[at]
            at += 1
        return [all_of_them[one] for one in sorted(all_of_them)]

    def take_up_to(self, number: int) -> list[Any]:
        """The same entries, which wait no longer."""
        found = self.up_to(number)
        if self.far and self.order is not None:
            for one in self.order.up_to(number, self.far):
                del self.far[one]
        end = self._end(number)
        row = self.row
        size: i64 = len(row)
        if end == size:
            row.clear()
            self.listed = 0
            self.start = 0
            return found
        at = self.start
        while at < end:
            if row[at] is not None:
                row[at] = None
                self.listed -= 1
            at += 1
        while at < size and row[at] is None:
            at += 1
        self.start = at
        return found

    def oldest(self) -> Any:
        """The entry with the smallest number, None if there is none."""
        first: Any = None
        if self.listed > 0:
            at = self.start
            while self.row[at] is None:
                at += 1
            self.start = at
            first = self.row[at]
        if self.far and self.order is not None:
            number = self.order.smallest(self.far)
            # mypyc: countable, because one of the wire may need 64 bits. It is none of the list.
            if first is None or countable(number) < self.base + self.start:
                return self.far[number]
        return first

    def entries(self) -> list[Any]:
        """All, in the order of their numbers."""
        return self.up_to(0)
