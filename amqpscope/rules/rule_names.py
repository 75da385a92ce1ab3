"""Rules as people name them on a command line: with or without namespace, in upper or lower case, by
patterns.
"""

import difflib
import fnmatch
import re

from amqpscope.errors import FilterError
from amqpscope.rules.catalogue import Rule, catalogue, guards
from amqpscope.rules.earlier_names import note_renamed
from amqpscope.rules.registry import renamed

__all__ = ["nearest", "rule_named", "rules_beginning", "rules_like"]

_NEAREST = 5


def _current(given: str) -> str:
    """The current id of a rule, if the user gave an earlier one; otherwise what the user gave."""
    wanted = given.strip().upper()
    for old, new in renamed().items():
        if wanted in (old.upper(), old.partition("/")[2].upper()):
            note_renamed(given.strip(), new)
            return new
    return given


def _known() -> dict[str, Rule]:
    """Rules and guards by the ids that people may type, in capitals."""
    known = {}
    for name, row in {**catalogue(), **guards()}.items():
        known[name.upper()] = row
        # A rule of several protocols is that of the first.
        known.setdefault(name.partition("/")[2].upper(), row)
    return known


def rule_named(given: str) -> Rule | None:
    """The rule or guard of this id, None if there is none."""
    return _known().get(_current(given).strip().upper())


def rules_beginning(given: str) -> list[Rule]:
    """The rules whose ids begin like `L-`, `L-*` or `amqp10/L-CREDIT-`; none for any other text."""
    wanted = given.strip().upper().removesuffix("*")
    if not wanted.endswith("-"):
        return []
    return [
        row
        for name, row in catalogue().items()
        if name.upper().startswith(wanted) or name.partition("/")[2].upper().startswith(wanted)
    ]


def rules_like(option: str, given: str) -> frozenset[str]:
    """The ids of the rules that match one of several patterns, joined by commas, in which `*` and `?` are
    special.

    Raises FilterError, which names the option, if a pattern matches no rule.
    """
    found: set[str] = set()
    for part in given.split(","):
        pattern = re.compile(fnmatch.translate(_current(part).strip().upper().replace("[", "[[]")))
        fitting = {
            name
            for name in catalogue()
            if pattern.match(name.upper()) or pattern.match(name.partition("/")[2].upper())
        }
        if not fitting:
            raise FilterError(f"{option} {part.strip()}: there is no such rule; {nearest(part)}")
        found |= fitting
    return frozenset(found)


def nearest(given: str) -> str:
    """Rules whose ids contain the given text, or are similar to it."""
    known = _known()
    wanted = given.strip().upper()[:64]
    if "/" not in wanted:
        known = {name: row for name, row in known.items() if "/" not in name}
    near = [name for name in known if wanted and wanted in name]
    near += difflib.get_close_matches(wanted, known, n=_NEAREST, cutoff=0.5)
    if not near:
        return "`amqpscope rules list` lists all rules"
    ids = list(dict.fromkeys(known[name].id for name in near))
    return f"similar rules: {', '.join(ids[:_NEAREST])}"
