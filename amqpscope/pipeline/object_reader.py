"""How octets become objects again (see `object_classes`)."""

import datetime
import decimal
import importlib
import io
import pickle
import sys
import uuid
from collections import Counter, OrderedDict, deque
from types import ModuleType
from typing import Any

from amqpscope.pipeline import object_classes
from amqpscope.pipeline.object_classes import (
    PLAIN,
    NotLoaded,
    attributes,
    is_compiled,
    is_shared,
    may,
)

__all__ = ["loaded"]


class _Unpickler(pickle.Unpickler):
    """Makes what `object_writer` has written. outside: things by name.

    What it finds for the octets are methods, which cannot be changed, and things that cannot be called.
    """

    def __init__(self, octets: bytes, outside: dict[tuple[str, str], Any]) -> None:
        super().__init__(io.BytesIO(octets))
        self._outside = outside
        self._classes: dict[tuple[str, str], type] = {}
        self._made: dict[int, Any] = {}  # objects that may lack attributes, by their identity
        self._declared: dict[type, list[str]] = {}

    def find_class(self, module: str, name: str) -> Any:
        """The method for a function that the octets may name."""
        makers = {
            (object_classes.__name__, "blank"): self.blank,
            (object_classes.__name__, "fill"): self.fill,
            (object_classes.__name__, "record"): self.record,
            (object_classes.__name__, "value"): self.value,
            (object_classes.__name__, "uuid_of"): self.uuid,
            ("collections", "OrderedDict"): self.ordered,
            ("collections", "deque"): self.deque,
            ("collections", "Counter"): self.counter,
            ("datetime", "date"): self.date,
        }
        if (module, name) not in makers:
            raise NotLoaded(f"names {module}.{name}")
        return makers[module, name]

    def persistent_load(self, name: Any) -> Any:
        """What is outside, or belongs to a module."""
        if name in self._outside:
            return self._outside[name]
        return _constant(name)

    def blank(self, name: tuple[str, str]) -> Any:
        """An object without attributes."""
        of = self._class(name)
        made = of.__new__(of, ...) if is_compiled(of) else object.__new__(of)
        self._made[id(made)] = made
        return made

    def fill(self, thing: Any, values: tuple[Any, ...]) -> None:
        """Give an object without attributes all that its class declares, in their order."""
        of = type(thing)
        if self._made.pop(id(thing), None) is not thing or type(values) is not tuple:
            raise NotLoaded(f"has no {of.__name__}")
        for name, value in zip(self._attributes(of), values, strict=True):
            setattr(thing, name, value)

    def record(self, name: tuple[str, str], values: tuple[Any, ...]) -> Any:
        """A named tuple."""
        of: Any = self._class(name)
        if not issubclass(of, tuple) or type(values) is not tuple or len(values) != len(of._fields):
            raise NotLoaded(f"has no {of.__name__}")
        return tuple.__new__(of, values)

    def value(self, name: tuple[str, str], plain: Any) -> Any:
        """A value whose class adds to that of a Python value."""
        of: Any = self._class(name)
        if issubclass(of, decimal.Decimal) and type(plain) is str:
            return decimal.Decimal.__new__(of, plain)
        for one in PLAIN:
            if issubclass(of, one) and type(plain) is one:
                return one.__new__(of, plain)
        raise NotLoaded(f"has no {of.__name__}")

    def uuid(self, octets: bytes) -> Any:
        """A UUID."""
        return uuid.UUID(bytes=octets)

    def ordered(self) -> Any:
        """An OrderedDict, empty."""
        return OrderedDict()

    def deque(self, of: tuple[()] = (), most: int | None = None) -> Any:
        """A deque, empty."""
        return deque(maxlen=most)

    def counter(self, of: dict[Any, int]) -> Any:
        """A Counter."""
        return Counter(of)

    def date(self, octets: bytes) -> Any:
        """A date, from what pickle writes of one."""
        if type(octets) is not bytes:
            raise NotLoaded("has no date")
        return datetime.date(octets)  # type: ignore[call-arg, arg-type]

    def _class(self, name: Any) -> type:
        of = self._classes.get(name)
        if of is None:
            module, wanted = _checked(name)
            of = vars(_imported(module)).get(wanted)
            if not isinstance(of, type) or of.__module__ != module:
                raise NotLoaded(f"names {module}.{wanted}")
            self._classes[name] = of
        return of

    def _attributes(self, of: type) -> list[str]:
        names = self._declared.get(of)
        if names is None:
            names = self._declared[of] = attributes(of)
        return names

    def check(self) -> None:
        """Raise NotLoaded if an object lacks an attribute that compiled code takes for granted."""
        for made in self._made.values():
            of = type(made)
            for name in self._attributes(of) if is_compiled(of) else ():
                try:
                    getattr(made, name)
                except AttributeError as error:
                    raise NotLoaded(f"has a {of.__name__} without {name}") from error


def _checked(name: Any) -> tuple[str, str]:
    """A name of something in a module that may be used."""
    if type(name) is not tuple or len(name) != 2:
        raise NotLoaded("has a name that is none")
    module, wanted = name
    if type(module) is not str or type(wanted) is not str or not may(module):
        raise NotLoaded(f"names {module}.{wanted}")
    return module, wanted


def _imported(module: str) -> ModuleType:
    try:
        return sys.modules.get(module) or importlib.import_module(module)
    except ImportError as error:
        raise NotLoaded(f"names {module}") from error


def _constant(name: Any) -> Any:
    module, wanted = _checked(name)
    thing = vars(_imported(module)).get(wanted)
    if wanted.startswith("__") or not is_shared(thing):
        raise NotLoaded(f"names {module}.{wanted}")
    return thing


def loaded(octets: bytes, outside: dict[tuple[str, str], Any]) -> Any:
    """The thing that `object_writer.dumped` has written. outside: as there. NotLoaded: it has not."""
    unpickler = _Unpickler(octets, outside)
    try:
        thing = unpickler.load()
        unpickler.check()
    except NotLoaded:
        raise
    except Exception as error:  # pickle raises what it comes to in octets that are damaged
        raise NotLoaded(f"is damaged ({type(error).__name__})") from error
    return thing
