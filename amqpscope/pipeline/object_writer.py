"""How objects become octets (see `object_classes`).

A state may hold millions of things, and `pickle` asks about each of them: so this is compiled.
"""

import datetime
import decimal
import pickle
import sys
import uuid
from collections import Counter, OrderedDict, deque
from types import FunctionType
from typing import Any, Final

from amqpscope.pipeline.object_classes import (
    PLAIN,
    Censor,
    Name,
    NotKept,
    attributes,
    blank,
    fill,
    is_compiled,
    is_shared,
    may,
    record,
    uuid_of,
    value,
)

__all__ = ["dumped"]

_PYTHONS: Final = (OrderedDict, deque, Counter, datetime.date)
"""Of these classes, objects are written as `pickle` does it."""

_NAMED: Final = (blank, fill, record, value, uuid_of, *_PYTHONS)
"""The only functions and classes that the octets name."""


class _Output:
    """Takes octets, but not more than `limit`."""

    def __init__(self, limit: int) -> None:
        self.parts: list[bytes] = []
        self._left = limit

    def write(self, octets: Any) -> None:
        """What the pickler gives."""
        part = bytes(octets)
        self._left -= len(part)
        if self._left < 0:
            raise NotKept("is too large")
        self.parts.append(part)


class _Form:
    """How the objects of a class are written. name: of the class, alone in a tuple. declared: the attributes
    that it declares. free: it has others. plain: the class of Python's that it derives from, None if it is
    none of `PLAIN`. in_order: its attributes are written without their names. changes: as of `Censor`.
    """

    def __init__(self, of: type, thing: Any, changes: bool) -> None:
        # Any, since compiled code would make another tuple at each use: `pickle` knows one it has written.
        self.name: Any = ((of.__module__, of.__qualname__),)
        self.declared = attributes(of)
        self.free = hasattr(thing, "__dict__")
        self.compiled = is_compiled(of)
        self.plain: Any = next((one for one in PLAIN if isinstance(thing, one)), None)
        self.in_order = self.plain is None and not self.free and not changes


class _Writer:
    """Answers what `pickle` asks. outside: by the identity of a thing that both sides have: its name.

    It does not know its pickler: in a cycle, that would keep alive all that it has written.
    """

    def __init__(self, outside: dict[int, Name], censor: Censor) -> None:
        self._censor = censor
        # By the identity of things: None for those without a name that may be written.
        self._names: dict[int, Name | None] = {**_constants(), **outside}
        for named in _NAMED:
            self._names[id(named)] = None
        self._concerned: dict[type, bool] = {FunctionType: True, type: True}
        self._forms: dict[type, _Form] = {}

    def name(self, thing: Any) -> Any:
        """The persistent id of a thing: the name of what belongs to a module or is outside, or None."""
        identity = id(thing)
        if identity in self._names:
            return self._names[identity]
        of: type = type(thing)
        concerned = self._concerned.get(of)
        if concerned is None:
            concerned = self._concerned[of] = self._censor.concerns(of)
        if concerned:
            if of is FunctionType or of is type:
                raise _holds(of)
            if self._censor.forbids(thing):
                raise NotKept("something in it may be a password")
        return None

    def __getitem__(self, of: type) -> Any:
        """What reduces objects of a type that is none of Python's usual ones."""
        if of in _PYTHONS:
            raise KeyError(of)
        return self.reduce

    def reduce(self, thing: Any) -> Any:
        """How a thing is made again, as the parts that `pickle` knows from `__reduce__`."""
        of: type = type(thing)
        form = self._forms.get(of)
        if form is None:
            if of is uuid.UUID:
                return uuid_of, (thing.bytes,)
            form = self._forms[of] = self._form(of, thing)
        if form.in_order:
            try:
                values = tuple([getattr(thing, name) for name in form.declared])
            except AttributeError:
                pass  # written by their names, without those that it lacks
            else:
                return blank, form.name, values, None, None, fill
        return self._by_name(thing, form)

    def _by_name(self, thing: Any, form: _Form) -> Any:
        thing = self._censor.instead(thing)
        state: dict[str, Any] = {}
        for name in form.declared:
            try:
                state[name] = getattr(thing, name)
            except AttributeError:
                continue
        if form.free:
            state.update(vars(thing))
        self._censor.blacken(thing, state)
        plain = form.plain
        if plain is None:
            # Compiled classes take a dict: they have a `__setstate__` that sets the attributes in it.
            return blank, form.name, state if form.compiled else (None, state)
        if plain is tuple:
            return record, (form.name[0], tuple(thing))
        if plain is decimal.Decimal:
            return value, (form.name[0], str(thing))
        return value, (form.name[0], plain(thing)), (None, state) if state else None

    def _form(self, of: type, thing: Any) -> _Form:
        if not may(of.__module__):
            raise _holds(of)
        form = _Form(of, thing, self._censor.changes(of))
        for name in form.declared:
            self._names.setdefault(id(name), None)
        return form


def _holds(of: type) -> NotKept:
    return NotKept(f"holds a {of.__module__}.{of.__qualname__}")


def _constants() -> dict[int, Name]:
    """By its identity, the name of each constant that modules have which are imported by now."""
    found: dict[int, Name] = {}
    for module, of in list(sys.modules.items()):
        if may(module):
            for name, thing in list(vars(of).items()):
                if not name.startswith("__") and is_shared(thing):
                    found[id(thing)] = (module, name)
    return found


def dumped(
    thing: Any, outside: dict[tuple[str, str], Any], limit: int, censor: Censor | None = None
) -> bytes:
    """A thing with all that it holds. outside: what it holds and the other side has, by name. NotKept: it
    cannot be written, or takes more than `limit` octets.
    """
    output = _Output(limit)
    writer = _Writer({id(one): name for name, one in outside.items()}, censor or Censor())
    pickler: Any = pickle.Pickler(output, 5)
    pickler.persistent_id = writer.name
    pickler.dispatch_table = writer
    try:
        pickler.dump(thing)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise NotKept(f"cannot be written ({error})") from error
    return b"".join(output.parts)
