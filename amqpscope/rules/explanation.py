"""The words of a rule: the docstring of its function, read from the source that is installed.

Compiled functions have no docstrings, so the files are parsed: their tables say which function a rule
is. Each docstring tells in one sentence what the fault is, then why it matters, then when the rule is
silent.
"""

import ast
from functools import cache
from importlib import resources
from typing import NamedTuple

from amqpscope.rules.registry import checked

__all__ = ["Explanation", "explanation"]

_MATTERS = "Why it matters:"
_SILENT = "Silent when:"


class Explanation(NamedTuple):
    """What a rule's function says of itself. file, function: where it stands."""

    fault: str
    matters: str
    silent: str
    file: str
    function: str


def explanation(rule: str) -> Explanation | None:
    """The words of a rule by its id; None if it is not checked, or the source is not installed."""
    subject = checked().get(rule)
    return None if subject is None else _words(subject).get(rule)


@cache
def _words(subject: str) -> dict[str, Explanation]:
    """The words of all rules in one file."""
    namespace = subject.partition("/")[0]
    file = resources.files("amqpscope.rules").joinpath(f"{subject}.py")
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return {}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    words: dict[str, Explanation] = {}
    for code, name in _tables(tree):
        function = functions.get(name)
        if function is not None:
            fault, matters, silent = _parts(ast.get_docstring(function) or "")
            rule = code if "/" in code else f"{namespace}/{code}"
            words[rule] = Explanation(fault, matters, silent, f"{subject}.py", name)
    return words


def _tables(tree: ast.Module) -> list[tuple[str, str]]:
    """Ids and names of functions in the dictionaries of a module."""
    entries: list[tuple[str, str]] = []
    for node in tree.body:
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(value, ast.Dict):
            for key, function in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    if isinstance(function, ast.Name):
                        entries.append((key.value, function.id))
    return entries


def _parts(docstring: str) -> tuple[str, str, str]:
    """The fault, why it matters, when the rule is silent; each as one line."""
    fault, _, rest = docstring.partition(_MATTERS)
    matters, _, silent = rest.partition(_SILENT)
    return " ".join(fault.split()), " ".join(matters.split()), " ".join(silent.split())
