"""Which rules are checked: all rules that the files in the packages of the protocols declare."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from amqpscope.protocols import RULE_SPACES
from amqpscope.rules.declaration import DECLARED, Declaration

__all__ = ["checked", "declaration", "renamed", "severity"]


@cache
def checked() -> Mapping[str, Declaration]:
    """The rules that are checked, by id."""
    import pkgutil  # whoever judges one protocol asks for none of the others

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


def severity(name: str, edition: str = "final") -> str:
    """`error`, `warning` or `note`: the severity of breaking a rule."""
    one = declaration(name) if edition == "final" else None
    if one is not None:
        return one.severity
    from amqpscope.rules.catalogue import rule  # brings the words of rules, which most findings do not need

    return rule(name, edition).severity


@cache
def renamed() -> dict[str, str]:
    """The current id of a rule, by each of its earlier ids."""
    return {old: one.id for one in checked().values() for old in one.renamed_from}
