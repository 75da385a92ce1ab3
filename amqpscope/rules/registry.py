"""Which rules are checked: all rules that the files in the packages of the protocols declare."""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from amqpscope.protocols import RULE_SPACES
from amqpscope.rules.declaration import DECLARED, Declaration

__all__ = ["checked", "renamed"]


@cache
def checked() -> Mapping[str, Declaration]:
    """The rules that are checked, by id."""
    for protocol in RULE_SPACES.values():
        package = protocol.rules()
        if package is not None:
            for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
                import_module(module.name)
    return DECLARED


@cache
def renamed() -> dict[str, str]:
    """The current id of a rule, by each of its earlier ids."""
    return {old: one.id for one in checked().values() for old in one.renamed_from}
