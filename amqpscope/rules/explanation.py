"""The words of a rule: the first docstring after its declaration, read from the installed source.

Compiled functions have no docstrings. Each docstring describes the fault in one sentence. Fixed heads follow,
each at the beginning of a line.
"""

import re
from functools import cache
from inspect import cleandoc
from pkgutil import get_data
from typing import NamedTuple

from amqpscope.rules.declaration import SUBJECTS, namespace_of
from amqpscope.rules.registry import declaration

__all__ = ["Explanation", "explanation", "how_to_mend"]

# The declaration; then its own docstring, or the function that judges, with its docstring.
_DECLARED = (
    r'^\w+: Final(?:\[str\])? = RULES\.rule\(\s*"([A-Z0-9-]+)"'
    r'.*?^(?:"""|def (\w+)\(.*?^    """)(.*?)"""'
)

_HEADS = {
    "Demands": "demand",
    "Source": "source",
    "Evidence": "evidence",
    "Why it matters": "matters",
    "Silent when": "silent",
    "Possible because": "possible",
    "Only possible because": "only_possible",
    "How to mend it": "mend",
}
_HEAD = f"^({'|'.join(_HEADS)}):"


class Explanation(NamedTuple):
    """What the docstring of a rule says.

    file, function: the function that judges the rule; function: "" if there is none. demand: what the rule
    demands, in our words. source: document and section. evidence: what in a capture shows the fault.
    possible: why a finding may be no fault, "" if only the order of reading can excuse the peer;
    only_possible: the same if no finding of the rule is certain. In both, `{peer}` stands for the peer at
    fault and `{other}` for the other peer. mend: what the developer of the peer at fault can change.
    """

    file: str
    function: str
    fault: str
    demand: str = ""
    source: str = ""
    evidence: str = ""
    matters: str = ""
    silent: str = ""
    possible: str = ""
    only_possible: str = ""
    mend: str = ""

    def excuse(self) -> str:
        """Why a finding of the rule may be no fault; "" if the rule gives no reason of its own."""
        return self.possible or self.only_possible


def explanation(rule: str) -> Explanation | None:
    """The words of a rule by its id; None if the rule is not checked, or the source is not installed."""
    declared = declaration(rule)
    if declared is None:
        return None
    if not declared.same_as:
        return _words(declared.subject).get(rule)
    words = explanation(declared.same_as)
    if words is None:
        return None
    rules = SUBJECTS[declared.subject]
    sections = "sections" if "," in declared.section else "section"
    return Explanation(
        words.file,
        words.function,
        *(rules.in_its_terms(text) for text in words[2:]),
    )._replace(source=f"{rules.document}, {sections} {declared.section}")


def how_to_mend(rule: str) -> str:
    """What a peer that breaks a rule has to change; "" if the rule does not say so."""
    words = explanation(rule)
    return "" if words is None else words.mend


@cache
def _words(subject: str) -> dict[str, Explanation]:
    """The words of all rules in one file."""
    try:
        source = (get_data("amqpscope.rules", f"{subject}.py") or b"").decode()
    except (OSError, UnicodeDecodeError):
        return {}
    namespace = namespace_of(subject)
    words: dict[str, Explanation] = {}
    for name, function, docstring in re.findall(_DECLARED, source, re.M | re.S):
        fault, *parts = re.split(_HEAD, cleandoc(docstring), flags=re.M)
        said = {_HEADS[head]: _line(text) for head, text in zip(parts[::2], parts[1::2], strict=True)}
        words[f"{namespace}/{name}"] = Explanation(f"{subject}.py", function, _line(fault), **said)
    return words


def _line(text: str) -> str:
    return " ".join(text.split())
