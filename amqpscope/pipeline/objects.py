"""Objects of these packages, with all that they hold, as octets; and the same objects made of these octets.

An object is its class and its attributes. `pickle` writes both, of any object, compiled or not. What belongs
to a module, such as a null object that many share, is written as its name: once loaded, it is the very same
thing again, and `is` says so. So are the things that are *outside*, which both sides have.

The octets may come from anybody. So loading calls no class and no function that the octets name, but the
methods of `_Unpickler`: these make objects without attributes, of the modules in `MODULES` alone. No class
there touches files, processes or the network. Compiled code trusts that attributes are there: an object that
lacks one is refused.
"""

import datetime
import decimal
import importlib
import io
import pickle
import sys
import uuid
from collections import Counter, OrderedDict, deque
from types import ModuleType
from typing import Any, Final, NamedTuple, NoReturn

from amqpscope.pipeline.object_names import Name, ObjectNames

__all__ = ["MODULES", "Censor", "NotKept", "NotLoaded", "dumped", "loaded"]

MODULES: Final = (
    "amqpscope.analysis.",
    "amqpscope.capture.segment",
    "amqpscope.diagnoses.",
    "amqpscope.layers.",
    "amqpscope.model.",
    "amqpscope.pipeline.columns",
    "amqpscope.pipeline.deliver",
    "amqpscope.pipeline.frame_columns",
    "amqpscope.pipeline.rows",
    "amqpscope.reassembly.",
    "amqpscope.report.amqp",
    "amqpscope.report.connection_summary",
    "amqpscope.report.json_",
    "amqpscope.report.links",
    "amqpscope.report.moment",
    "amqpscope.rules.",
    "amqpscope.tracking.",
    "dissectors.",
)
"""What the names of modules begin with whose objects are written and made."""

_NOT: Final = (
    "amqpscope.diagnoses.registry",
    "amqpscope.rules.registry",
    "amqpscope.tracking.diagrams",
    "dissectors.spec.",
)
"""Of these modules none."""

_PLAIN: Final = (tuple, decimal.Decimal, str, int, bytes, float)


class NotKept(Exception):
    """Something cannot be put into octets."""


class NotLoaded(Exception):
    """The octets are not those of objects."""


def _may(module: str) -> bool:
    """Whether objects of a module may be made."""
    return module.startswith(MODULES) and not module.startswith(_NOT)


def _slots(of: type) -> list[str]:
    """The names of the attributes that a class declares, compiled or by `__slots__`."""
    names: list[str] = []
    for one in of.__mro__:
        own = vars(one)
        declared = own.get("__mypyc_attrs__", own.get("__slots__", ()))
        names += [declared] if isinstance(declared, str) else declared
    return [name for name in dict.fromkeys(names) if name not in ("__dict__", "__weakref__")]


def _compiled(of: type) -> bool:
    """Whether it is compiled, or derives from a class that is."""
    return any("__mypyc_attrs__" in vars(one) for one in of.__mro__)


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


class Censor:
    """Decides what is not written. This one lets everything pass."""

    def concerns(self, of: type) -> bool:
        """Whether there are things of this type that `forbids` may forbid."""
        return False

    def forbids(self, thing: Any) -> bool:
        """Whether nothing can be written because of this thing."""
        return False

    def look(self, thing: Any) -> None:
        """Raise NotKept if it forbids a thing."""
        if self.forbids(thing):
            raise NotKept("something in it may be a password")

    def instead(self, thing: Any) -> Any:
        """What is written in place of an object, of the same class."""
        return thing

    def may_blacken(self, thing: Any) -> bool:
        """Whether `blacken` may change anything of this object."""
        return False

    def blacken(self, thing: Any, state: dict[str, Any]) -> None:
        """Change what is written of an object's attributes."""


class _Form(NamedTuple):
    """How the objects of a class are written. name: of the class, alone in a tuple. slots: the attributes
    that it declares. free: it has others. plain: the class of Python's that it derives from, None if it is
    none of `_PLAIN`.
    """

    name: tuple[Name]
    slots: list[str]
    free: bool
    compiled: bool
    plain: type | None


class _Pickler(pickle.Pickler):
    """outside: by the identity of a thing that both sides have: its name."""

    def __init__(self, output: _Output, outside: dict[int, Name], censor: Censor) -> None:
        super().__init__(output, 5)
        self._censor = censor
        # It does not lead back here: a pickler in a cycle would keep alive all that it has written.
        self._names = ObjectNames({**_constants(), **outside}, censor.concerns, censor.look)
        # Not a method, since that would be slower.
        setattr(self, "persistent_id", self._names.find)  # noqa: B010
        self._forms: dict[type, _Form] = {}

    def reducer_override(self, thing: Any) -> Any:
        """How a thing is written that is none of Python's usual ones."""
        form = self._forms.get(type(thing))
        if form is None:
            of = type(thing)
            if of in (OrderedDict, deque, Counter, datetime.date):
                return NotImplemented
            if of is uuid.UUID:
                return _uuid, (thing.bytes,)
            if any(thing is one for one in _MADE_BY):
                return NotImplemented
            form = self._forms[of] = self._form(thing)
        name, slots, free, compiled, plain = form
        thing = self._censor.instead(thing)
        if plain is None and not free and not self._censor.may_blacken(thing):
            try:
                return _blank, name, tuple([getattr(thing, slot) for slot in slots]), None, None, _fill
            except AttributeError:
                pass  # written by their names, without those that it lacks
        state: dict[str, Any] = {}
        for slot in slots:
            try:
                state[slot] = getattr(thing, slot)
            except AttributeError:
                continue
        if free:
            state |= vars(thing)
        self._censor.blacken(thing, state)
        if plain is None:
            # Compiled classes take a dict: they have a `__setstate__` that sets the attributes in it.
            return _blank, name, state if compiled else (None, state)
        if plain is tuple:
            return _record, (*name, tuple(thing))
        if plain is decimal.Decimal:
            return _value, (*name, str(thing))
        value: Any = thing
        return _value, (*name, plain(value)), (None, state) if state else None

    def _form(self, thing: Any) -> _Form:
        """That of a thing's class."""
        of = type(thing)
        if not _may(of.__module__):
            raise NotKept(f"holds a {of.__module__}.{of.__qualname__}")
        slots = _slots(of)
        for slot in slots:
            self._names.ignore(slot)
        plain = next((one for one in _PLAIN if isinstance(thing, one)), None)
        return _Form(
            ((of.__module__, of.__qualname__),), slots, hasattr(thing, "__dict__"), _compiled(of), plain
        )


def _blank(name: tuple[str, str]) -> NoReturn:
    """Stands for `_Unpickler.blank`."""
    raise NotLoaded


def _fill(thing: Any, values: tuple[Any, ...]) -> NoReturn:
    """Stands for `_Unpickler.fill`."""
    raise NotLoaded


def _record(name: tuple[str, str], values: tuple[Any, ...]) -> NoReturn:
    """Stands for `_Unpickler.record`."""
    raise NotLoaded


def _value(name: tuple[str, str], plain: Any) -> NoReturn:
    """Stands for `_Unpickler.value`."""
    raise NotLoaded


def _uuid(octets: bytes) -> NoReturn:
    """Stands for `_Unpickler.uuid`."""
    raise NotLoaded


_MADE_BY: Final = (_blank, _fill, _record, _value, _uuid, OrderedDict, deque, Counter, datetime.date)


class _Unpickler(pickle.Unpickler):
    """Makes what `_Pickler` has written. outside: things by name.

    What it finds for the octets are methods, which cannot be changed, and things that cannot be called.
    """

    def __init__(self, octets: bytes, outside: dict[tuple[str, str], Any]) -> None:
        super().__init__(io.BytesIO(octets))
        self._outside = outside
        self._classes: dict[tuple[str, str], type] = {}
        self._made: dict[int, Any] = {}  # objects that may lack attributes, by their identity
        self._slots: dict[type, list[str]] = {}

    def find_class(self, module: str, name: str) -> Any:
        """The method for one of `_MADE_BY`."""
        makers = {
            (__name__, "_blank"): self.blank,
            (__name__, "_fill"): self.fill,
            (__name__, "_record"): self.record,
            (__name__, "_value"): self.value,
            (__name__, "_uuid"): self.uuid,
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
        made = of.__new__(of, ...) if _compiled(of) else object.__new__(of)
        self._made[id(made)] = made
        return made

    def fill(self, thing: Any, values: tuple[Any, ...]) -> None:
        """Give an object without attributes all that its class declares, in their order."""
        of = type(thing)
        names = self._slots.get(of)
        if names is None:
            names = self._slots[of] = _slots(of)
        if self._made.pop(id(thing), None) is not thing or type(values) is not tuple:
            raise NotLoaded(f"has no {of.__name__}")
        for name, value in zip(names, values, strict=True):
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
        for one in _PLAIN:
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

    def check(self) -> None:
        """Raise NotLoaded if an object lacks an attribute that compiled code takes for granted."""
        slots: dict[type, list[str]] = {}
        for made in self._made.values():
            of = type(made)
            names = slots.get(of)
            if names is None:
                names = slots[of] = _slots(of) if _compiled(of) else []
            for name in names:
                try:
                    getattr(made, name)
                except AttributeError as error:
                    raise NotLoaded(f"has a {of.__name__} without {name}") from error


def _checked(name: Any) -> tuple[str, str]:
    """A name of something in a module that may be used."""
    if type(name) is not tuple or len(name) != 2:
        raise NotLoaded("has a name that is none")
    module, wanted = name
    if type(module) is not str or type(wanted) is not str or not _may(module):
        raise NotLoaded(f"names {module}.{wanted}")
    return module, wanted


def _imported(module: str) -> ModuleType:
    try:
        return sys.modules.get(module) or importlib.import_module(module)
    except ImportError as error:
        raise NotLoaded(f"names {module}") from error


def _constants() -> dict[int, tuple[str, str]]:
    """By its identity, the name of each constant that modules have which are imported by now."""
    found: dict[int, tuple[str, str]] = {}
    for module, of in list(sys.modules.items()):
        if _may(module):
            for name, thing in list(vars(of).items()):
                if not name.startswith("__") and _shared(thing):
                    found[id(thing)] = (module, name)
    return found


def _shared(thing: Any) -> bool:
    """Whether it matters which one a thing is, and nothing is done by calling it."""
    return not (
        thing is None
        or thing == ()
        or callable(thing)
        or isinstance(thing, (*_PLAIN, datetime.date, ModuleType))
    )


def _constant(name: Any) -> Any:
    module, wanted = _checked(name)
    thing = vars(_imported(module)).get(wanted)
    if wanted.startswith("__") or not _shared(thing):
        raise NotLoaded(f"names {module}.{wanted}")
    return thing


def dumped(
    thing: Any, outside: dict[tuple[str, str], Any], limit: int, censor: Censor | None = None
) -> bytes:
    """A thing with all that it holds. outside: what it holds and the other side has, by name. NotKept: it
    cannot be written, or takes more than `limit` octets.
    """
    output = _Output(limit)
    try:
        _Pickler(output, {id(one): name for name, one in outside.items()}, censor or Censor()).dump(thing)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise NotKept(f"cannot be written ({error})") from error
    return b"".join(output.parts)


def loaded(octets: bytes, outside: dict[tuple[str, str], Any]) -> Any:
    """The thing that `dumped` has written. NotLoaded: it has not."""
    unpickler = _Unpickler(octets, outside)
    try:
        thing = unpickler.load()
        unpickler.check()
    except NotLoaded:
        raise
    except Exception as error:  # pickle raises what it comes to in octets that are damaged
        raise NotLoaded(f"is damaged ({type(error).__name__})") from error
    return thing
