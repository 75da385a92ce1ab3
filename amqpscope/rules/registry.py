"""Which rules are checked: all rules that the files in the packages of the protocols declare."""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from amqpscope.protocols import RULE_SPACES
from amqpscope.rules.declaration import DECLARED, Declaration

__all__ = ["checked", "declaration", "renamed"]


@cache
def checked() -> Mapping[str, Declaration]:
    """The rules that are checked, by id."""
    for protocol in RULE_SPACES.values():
        package = protocol.rules()
        if package is not None:
            for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
                import_module(module.name)
    return DECLARED


def declaration(name: str) -> Declaration | None:
    """The declaration of a rule by its id; None if the rule is not checked.

    Whoever judged by it has imported its file, so that only another name imports the files of all rules.
    """
    return DECLARED.get(name) or checked().get(name)


@cache
def renamed() -> dict[str, str]:
    """The current id of a rule, by each of its earlier ids."""
    return {old: one.id for one in checked().values() for old in one.renamed_from}
