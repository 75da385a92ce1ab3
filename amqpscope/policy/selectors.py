"""Which findings are selected: by rule, by a pattern of rules, or by severity.

Where one selector selects what another one ignores, the narrower wins: a rule's own id before a pattern, a
longer pattern before a shorter one, any of them before a severity. Of two alike the one that ignores wins.
"""

from collections.abc import Iterable
from typing import Final

from amqpscope.policy.terms import SEVERITIES

__all__ = ["FindingChoice", "Levels", "Selector"]

ALL: Final = "all"

_NOT: Final = -1
_BY_SEVERITY: Final = 0
_BY_PATTERN: Final = 1
_BY_ID: Final = 10_000


class Selector:
    """What one word selects: `amqp10/L-CREDIT`, `L-CREDIT`, `amqp10/M-*`, `all`, or `note`.

    narrow: how narrow it is, beside others. Raises FilterError, which begins with `where`, if no rule fits.
    """

    def __init__(self, where: str, word: str) -> None:
        word = word.strip()
        self.word = word
        self.severity = ""
        self.rules: frozenset[str] = frozenset()
        if word.lower() in SEVERITIES:
            self.severity = word.lower()
            self.narrow = _BY_SEVERITY
            return
        from amqpscope.rules.rule_names import rules_like  # reads the catalogue

        pattern = "*" if word.lower() == ALL else word
        self.rules = rules_like(where, pattern)
        literal = len(pattern.replace("*", "").replace("?", ""))
        self.narrow = _BY_ID if literal == len(pattern) else _BY_PATTERN + literal

    def fits(self, rule: str, weight: str) -> bool:
        """Whether it selects a finding of this rule that weighs so much."""
        return rule in self.rules or (self.severity != "" and self.severity == weight)


def selectors(where: str, words: Iterable[str]) -> list[Selector]:
    """Those of several texts, in each of which commas may stand between words."""
    return [Selector(where, word) for text in words for word in text.split(",")]


class FindingChoice:
    """select: only what one of these fits; None: everything. ignore: nothing that one of these fits."""

    def __init__(self, select: list[Selector] | None, ignore: list[Selector]) -> None:
        self.select = select
        self.ignore = ignore

    def takes(self, rule: str, weight: str) -> bool:
        """Whether a finding of this rule that weighs so much is shown."""
        if self.select is None and not self.ignore:
            return True
        selected = _NOT if self.select is None else _narrowest(self.select, rule, weight)
        if self.select is not None and selected == _NOT:
            return False
        ignored = _narrowest(self.ignore, rule, weight)
        return ignored == _NOT or selected > ignored


def _narrowest(among: list[Selector], rule: str, weight: str) -> int:
    return max((one.narrow for one in among if one.fits(rule, weight)), default=_NOT)


class Levels:
    """The severities that are set, by selectors of rules: the narrowest that fits, of two alike the later."""

    def __init__(self, levels: Iterable[tuple[Selector, str]]) -> None:
        self._levels: dict[str, str] = {}
        for selector, level in sorted(levels, key=lambda one: one[0].narrow):
            for rule in selector.rules:
                self._levels[rule] = level

    def of(self, rule: str) -> str:
        """The severity set for a rule, "" for none."""
        return self._levels.get(rule, "")
