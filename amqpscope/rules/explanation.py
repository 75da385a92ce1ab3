"""The words of a rule: the docstring of its function, read from the source that is installed.

Compiled functions have no docstrings, so the files are parsed: their tables say which function a rule
is. Each docstring tells in one sentence what the fault is. Fixed heads follow: why it matters, when the rule
is silent, and, where that is not only a matter of what a peer had read, why a finding is possible and no
more.
"""

import ast
from functools import cache
from importlib import resources
from typing import NamedTuple

from amqpscope.rules.registry import checked

__all__ = ["Explanation", "explanation"]

_MATTERS = "Why it matters:"
_SILENT = "Silent when:"
# The first where no finding of the rule is ever certain.
_NEVER_CERTAIN = "Only possible because:"
_POSSIBLE = "Possible because:"
_MEND = "How to mend it:"


class Explanation(NamedTuple):
    """What a rule's function says of itself. file, function: where it stands.

    possible: why a finding may be no fault, "" where only what a peer had read can excuse it; `{peer}` stands
    for the peer at fault, `{other}` for the other one. never_certain: no finding of the rule is certain.
    mend: what the developer of the peer at fault can change, "" where nothing is said of it.
    """

    fault: str
    matters: str
    silent: str
    possible: str
    never_certain: bool
    mend: str
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
            parts = _parts(ast.get_docstring(function) or "")
            rule = code if "/" in code else f"{namespace}/{code}"
            words[rule] = Explanation(*parts, f"{subject}.py", name)
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


def _parts(docstring: str) -> tuple[str, str, str, str, bool, str]:
    """What stands under each head as one line, and whether no finding is ever certain."""
    never_certain = _NEVER_CERTAIN in docstring
    docstring, _, mend = docstring.partition(_MEND)
    fault, _, rest = docstring.partition(_MATTERS)
    matters, _, rest = rest.partition(_SILENT)
    silent, _, possible = rest.partition(_NEVER_CERTAIN if never_certain else _POSSIBLE)
    return _line(fault), _line(matters), _line(silent), _line(possible), never_certain, _line(mend)


def _line(text: str) -> str:
    return " ".join(text.split())
