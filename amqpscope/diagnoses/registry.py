"""All kinds of diagnoses, and their names in options and configurations.

They are declared in the files of their watches, which are imported when somebody asks for a name.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from amqpscope.diagnoses.declaration import KINDS, Kind
from amqpscope.errors import FilterError

__all__ = ["kinds", "known_codes", "known_limits"]


def kinds() -> dict[str, Kind]:
    """All kinds by their codes, in the order of their names."""
    import amqpscope.diagnoses.capture  # noqa: F401  the watches declare them

    return dict(sorted(KINDS.items()))


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
                raise FilterError(f"{option} {name}: there is no such diagnosis; there are {names}, and all")
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
