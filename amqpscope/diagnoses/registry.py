"""All kinds of diagnoses, and their names in options and configurations.

They are declared in the files of their watches, which are imported when somebody asks for a name: those of a
protocol are in its package.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from amqpscope.diagnoses.declaration import KINDS, Kind
from amqpscope.errors import FilterError
from amqpscope.protocols import PROTOCOLS

__all__ = ["kind_of", "kinds", "known_codes", "known_limits"]


@cache
def kinds() -> Mapping[str, Kind]:
    """All kinds by their codes, in the order of their names."""
    import pkgutil  # takes long to load, and most runs ask for no name

    import amqpscope.diagnoses.capture  # noqa: F401  the watches declare them

    for protocol in PROTOCOLS.values():
        package = protocol.diagnoses()
        if package is not None:
            for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
                import_module(module.name)
    return dict(sorted(KINDS.items()))


def kind_of(code: str) -> Kind:
    """The kind of this code, which this process or another one has diagnosed."""
    return KINDS[code] if code in KINDS else kinds()[code]


def known_codes(words: Iterable[str], option: str) -> frozenset[str]:
    """The codes that these words name: codes with or without `diag/`, or `all`. Raises FilterError."""
    found: set[str] = set()
    for word in words:
        known = kinds()
        for name in word.split(","):
            code = f"diag/{name.strip().removeprefix('diag/')}"
            if code == "diag/all":
                found.update(kind.code for kind in known.values() if kind.trouble)
            elif code in known:
                found.add(code)
            else:
                names = ", ".join(kind.name for kind in known.values())
                raise FilterError(
                    f"{option} {name}: there is no such diagnosis; write `all`, or one of {names}"
                )
    return frozenset(found)


def known_limits(table: Mapping[str, Any]) -> dict[str, float]:
    """Configured limits, such as `credit-none.seconds`. Raises FilterError with the wrong name."""
    found: dict[str, float] = {}
    for name, value in table.items():
        code, _, limit = name.partition(".")
        kind = kinds().get(f"diag/{code}")
        if kind is None or limit not in [one.name for one in kind.limits]:
            raise FilterError(f"{name}: there is no such limit of a diagnosis")
        if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
            raise FilterError(f"{name}: must be a number, 0 or more")
        found[name] = float(value)
    return found
