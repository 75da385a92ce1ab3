"""Which things `objects` writes as names. It is asked about each thing in a state, which may be millions: so
this is compiled.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["Name", "ObjectNames"]

Name = tuple[str, str]


class ObjectNames:
    """By the identity of things: their names, None for those that have none and need not be looked at.

    concerns: whether things of a type are to be looked at. look: looks at a thing without a name, and raises
    an error if it must not be written.
    """

    def __init__(
        self, names: dict[int, Name | None], concerns: Callable[[type], bool], look: Callable[[Any], None]
    ) -> None:
        self._names = names
        self._concerns = concerns
        self._look = look
        self._concerned: dict[type, bool] = {}

    def ignore(self, thing: Any) -> None:
        """A thing without a name need not be looked at. It has to live on."""
        self._names.setdefault(id(thing), None)

    def find(self, thing: Any) -> Any:
        """The name of a thing, None if it has none: what `pickle` calls a persistent id."""
        identity = id(thing)
        if identity in self._names:
            return self._names[identity]
        of: type = type(thing)
        concerned = self._concerned.get(of)
        if concerned is None:
            concerned = self._concerned[of] = self._concerns(of)
        if concerned:
            self._look(thing)
        return None
