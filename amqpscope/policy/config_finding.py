"""What is found in the configuration itself: about the file and an entry in it, not about a peer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from amqpscope.policy.baseline import BaselineEntry

__all__ = ["REMARKS", "ConfigFinding", "RunConclusion"]

EXPIRED: Final = "config/ALLOW-EXPIRED"
UNUSED: Final = "config/ALLOW-UNUSED"


class ConfigFindingKind:
    """A kind of remark: how much it weighs, what is asked for, and why."""

    def __init__(self, severity: str, text: str, matters: str) -> None:
        self.severity = severity
        self.text = text
        self.matters = matters


REMARKS: Final = {
    EXPIRED: ConfigFindingKind(
        "error",
        "An entry of the allow-list excuses findings until its expiry day is over.",
        "The findings that the entry excused count again. Decide whether to excuse these findings again.",
    ),
    UNUSED: ConfigFindingKind(
        "note",
        "An entry of the allow-list matches at least one finding.",
        "The excused finding no longer occurs, or the entry is wrong. The entry could hide a later fault.",
    ),
}
"""What there may be to be said, by its rule."""


class ConfigFinding:
    """Something about an entry of a configuration.

    rule: of `REMARKS`. message: one sentence. file, line: where the entry stands, 0 where that is not known.
    evidence: named values. counts: it makes the exit status 1.
    """

    def __init__(
        self, rule: str, message: str, file: str, line: int, evidence: dict[str, Any], counts: bool
    ) -> None:
        self.rule = rule
        self.severity = REMARKS[rule].severity
        self.message = message
        self.file = file
        self.line = line
        self.evidence = evidence
        self.counts = counts

    @property
    def place(self) -> str:
        """`amqpscope.toml, line 12`."""
        return f"{self.file}, line {self.line}" if self.line else self.file

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that stay the same wherever in the file the entry stands."""
        import hashlib  # takes long to load, and most runs have no such finding

        what = "|".join((self.rule, *(str(self.evidence[name]) for name in ("rules", "reason"))))
        return hashlib.sha256(what.encode("utf-8", "backslashreplace")).hexdigest()[:16]


class RunConclusion:
    """What is to be said when all captures were judged.

    remarks: about the configuration. baseline: which one holds, "" for none; fixed: what is in it and was not
    found any more in the captures that it was in, which were all read to their ends.
    """

    def __init__(self) -> None:
        self.remarks: list[ConfigFinding] = []
        self.baseline = ""
        self.fixed: list[BaselineEntry] = []
