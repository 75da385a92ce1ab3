"""Objects of these packages, with all that they hold, as octets; and the same objects made of these octets:
what `object_writer` and `object_reader` agree on.

An object is its class and its attributes. `pickle` writes both, of any object, compiled or not. What belongs
to a module, such as a null object that many share, is written as its name: once loaded, it is the very same
thing again, and `is` says so. So are the things that are *outside*, which both sides have.

The octets may come from anybody. So loading calls no class and no function that the octets name, but the
methods of the reader: these make objects without attributes, of the modules in `MODULES` alone. No class
there touches files, processes or the network. Compiled code trusts that attributes are there: an object that
lacks one is refused.
"""

import datetime
import decimal
from types import ModuleType
from typing import Any, Final, NoReturn

__all__ = [
    "MODULES",
    "PLAIN",
    "Censor",
    "Name",
    "NotKept",
    "NotLoaded",
    "attributes",
    "blank",
    "fill",
    "is_compiled",
    "is_shared",
    "may",
    "record",
    "uuid_of",
    "value",
]

Name = tuple[str, str]
"""The module of a thing, and what it is called there."""

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

PLAIN: Final = (tuple, decimal.Decimal, str, int, bytes, float)
"""Classes of Python's that classes of those modules may derive from."""


def may(module: str) -> bool:
    """Whether objects of a module may be made."""
    return module.startswith(MODULES) and not module.startswith(_NOT)


def attributes(of: type) -> list[str]:
    """The names of the attributes that a class declares, compiled or by `__slots__`."""
    names: list[str] = []
    for one in of.__mro__:
        own = vars(one)
        declared = own.get("__mypyc_attrs__", own.get("__slots__", ()))
        names += [declared] if isinstance(declared, str) else declared
    return [name for name in dict.fromkeys(names) if name not in ("__dict__", "__weakref__")]


def is_compiled(of: type) -> bool:
    """Whether a class is compiled, or derives from one that is."""
    return any("__mypyc_attrs__" in vars(one) for one in of.__mro__)


def is_shared(thing: Any) -> bool:
    """Whether it matters which one a constant is, and nothing is done by calling it."""
    return not (
        thing is None
        or thing == ()
        or callable(thing)
        or isinstance(thing, (*PLAIN, datetime.date, ModuleType))
    )


class NotKept(Exception):
    """Something cannot be put into octets."""


class NotLoaded(Exception):
    """The octets are not those of objects."""


class Censor:
    """Decides what is not written. This one lets everything pass."""

    def concerns(self, of: type) -> bool:
        """Whether `forbids` may forbid things of this type."""
        return False

    def forbids(self, thing: Any) -> bool:
        """Whether nothing can be written because of this thing."""
        return False

    def changes(self, of: type) -> bool:
        """Whether `instead` or `blacken` may change objects of this type."""
        return False

    def instead(self, thing: Any) -> Any:
        """What is written in place of an object, of the same class."""
        return thing

    def blacken(self, thing: Any, state: dict[str, Any]) -> None:
        """Change what is written of an object's attributes."""


# The octets name these functions. The reader has methods in their place.


def blank(name: Name) -> NoReturn:
    """An object of this class, without attributes."""
    raise NotLoaded


def fill(thing: Any, values: tuple[Any, ...]) -> NoReturn:
    """Give such an object all the attributes that its class declares, in their order."""
    raise NotLoaded


def record(name: Name, values: tuple[Any, ...]) -> NoReturn:
    """A named tuple of this class."""
    raise NotLoaded


def value(name: Name, plain: Any) -> NoReturn:
    """A value of this class, which adds to that of a Python value."""
    raise NotLoaded


def uuid_of(octets: bytes) -> NoReturn:
    """A UUID."""
    raise NotLoaded
