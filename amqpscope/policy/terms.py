"""Which findings make the exit status, and whether a capture may be empty."""

from typing import Final

from amqpscope.model.finding import Finding
from amqpscope.rules.profiles import weight

__all__ = ["COUNTING", "SEVERITIES", "Terms"]

SEVERITIES: Final = ("error", "warning", "note")

COUNTING: Final[dict[str, tuple[str, ...]]] = {
    "error": ("error",),
    "warning": ("error", "warning"),
    "note": SEVERITIES,
    "never": (),
}
"""What counts by the severity that is named, `never` being none."""


class Terms:
    """severities: whose findings count. possible: those that are not certain count, too.

    allow_empty: a capture without AMQP to check is no failure.
    """

    def __init__(self, severities: tuple[str, ...], possible: bool, allow_empty: bool) -> None:
        self.severities = severities
        self.possible = possible
        self.allow_empty = allow_empty

    def counts(self, finding: Finding) -> bool:
        """Whether a finding makes the exit status 1. What is suppressed does not."""
        if finding.assessment.suppressed_by:
            return False
        return weight(finding) in self.severities and (finding.certain or self.possible)
