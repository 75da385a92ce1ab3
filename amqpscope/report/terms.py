"""What a run is held to: which findings make its exit status, and whether a capture may be empty."""

from amqpscope.finding import Finding
from amqpscope.rules.profiles import weight

__all__ = ["Terms"]


class Terms:
    """severities: whose findings count. possible: those that are not certain count, too.

    allow_empty: a capture without AMQP to check is no failure.
    """

    def __init__(self, severities: tuple[str, ...], possible: bool, allow_empty: bool) -> None:
        self.severities = severities
        self.possible = possible
        self.allow_empty = allow_empty

    def counts(self, finding: Finding) -> bool:
        """Whether a finding makes the exit status 1."""
        return weight(finding) in self.severities and (finding.certain or self.possible)
