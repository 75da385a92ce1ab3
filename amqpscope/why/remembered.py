"""What is remembered of a connection, within a bound: of each kind the newest."""

from collections import OrderedDict
from typing import Generic, TypeVar

from amqpscope.limits import MAX_REMEMBERED_PLACES

__all__ = ["Recent"]

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """A table of which the oldest entries are forgotten."""

    __slots__ = ("_entries", "_most")

    def __init__(self, most: int = MAX_REMEMBERED_PLACES) -> None:
        self._most = most
        # None while nothing was remembered: most connections have none of very many kinds.
        self._entries: OrderedDict[Key, Value] | None = None

    def put(self, key: Key, value: Value) -> None:
        """The newest entry."""
        if self._entries is None:
            self._entries = OrderedDict()
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def get(self, key: Key) -> Value | None:
        """The entry, None if there is none or it was forgotten."""
        return None if self._entries is None else self._entries.get(key)

    def pop(self, key: Key) -> Value | None:
        """The entry, which is there no more."""
        return None if self._entries is None else self._entries.pop(key, None)

    def newest_first(self) -> list[Value]:
        """All entries."""
        return list(reversed(self._entries.values())) if self._entries else []

    def items_newest_first(self) -> list[tuple[Key, Value]]:
        """All entries with their keys."""
        return list(reversed(self._entries.items())) if self._entries else []
