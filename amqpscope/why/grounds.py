"""What earlier frames mean for later ones: the part that no protocol has a say in.

A `Grounds` is fed with the frames of one connection in order. Asked about the next one it says which of those
before it grant, limit or forbid it. It remembers places, not contents, and of each kind only what can still
matter, so that its memory does not grow with the connection.

What a frame names itself (a handle, a delivery-tag) is enough to find them: whether it was allowed is for the
rules, whose findings are told beside it.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import Generic, TypeVar

from amqpscope.limits import MAX_REMEMBERED_PLACES
from amqpscope.model import FrameRecord
from amqpscope.report.printable import in_quotes
from amqpscope.report.secrets import without_password
from amqpscope.why.place import Ground, Mark, Sequel

__all__ = ["Grounds", "Portion", "Recent", "Watch", "name_text"]

Key = TypeVar("Key")
Value = TypeVar("Value")

_NAME = 60
"""Characters that are told of a name that the wire gave."""


def name_text(name: str | None) -> str:
    """A name of the wire, as it may be shown: in quotes."""
    return in_quotes(without_password(name or ""), _NAME)


class Recent(Generic[Key, Value]):
    """A table of which the oldest entries are forgotten."""

    def __init__(self, most: int = MAX_REMEMBERED_PLACES) -> None:
        self._most = most
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def put(self, key: Key, value: Value) -> None:
        """The newest entry."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def get(self, key: Key) -> Value | None:
        """The entry, None if there is none or it was forgotten."""
        return self._entries.get(key)

    def pop(self, key: Key) -> Value | None:
        """The entry, which is there no more."""
        return self._entries.pop(key, None)

    def newest_first(self) -> list[Value]:
        """All entries."""
        return list(reversed(self._entries.values()))

    def items_newest_first(self) -> list[tuple[Key, Value]]:
        """All entries with their keys."""
        return list(reversed(self._entries.items()))


class Portion(Generic[Key, Value]):
    """What one session or channel has of a table that all of a connection share, so that this is bounded.

    owner: what tells it from all others of the connection.
    """

    def __init__(self, shared: Recent[tuple[int, Key], Value], owner: int) -> None:
        self._shared = shared
        self._owner = owner

    def put(self, key: Key, value: Value) -> None:
        """The newest entry."""
        self._shared.put((self._owner, key), value)

    def get(self, key: Key) -> Value | None:
        """The entry, None if there is none or it was forgotten."""
        return self._shared.get((self._owner, key))

    def newest_first(self) -> list[Value]:
        """All entries."""
        return [value for (owner, _), value in self._shared.items_newest_first() if owner == self._owner]


class Watch(ABC):
    """Looks, behind one frame, for those that answer it."""

    def __init__(self) -> None:
        self.sequels: list[Sequel] = []
        self.over = False

    @abstractmethod
    def see(self, record: FrameRecord) -> None:
        """A later frame of the connection."""

    def add(self, what: str, record: FrameRecord, last: bool = False) -> None:
        """A frame that follows from the one in question. last: nothing more is looked for."""
        self.sequels.append(Sequel(what, Mark.of(record)))
        self.over = self.over or last


class Grounds(ABC):
    """What one connection's frames so far mean for the next."""

    @abstractmethod
    def of(self, record: FrameRecord) -> list[Ground]:
        """What has a say about a frame that is not taken yet, the outermost layer first."""

    @abstractmethod
    def of_end(self, direction: int, by_client: bool) -> list[Ground]:
        """What has a say about a stream that ends now. by_client: it is the client's."""

    @abstractmethod
    def subject(self, record: FrameRecord) -> str:
        """The name of the link, or the tag of the consumer, that a frame is about; "" if it has none."""

    @abstractmethod
    def take(self, record: FrameRecord) -> None:
        """The next frame of the connection."""

    @abstractmethod
    def watch(self, record: FrameRecord) -> Watch:
        """What looks for the frames that answer this one, which is not taken yet."""
