"""What somebody makes of a finding: the edition that it follows, a product's habit, a policy."""

from typing import Final

__all__ = ["FIRST_ASSESSMENT", "Assessment"]


class Assessment:
    """Beside a finding, which says what happened. It does not change: another one takes its place."""

    def __init__(
        self,
        edition: str = "final",
        profile: str = "",
        level: str = "",
        suppressed_by: str = "",
        reason: str = "",
    ) -> None:
        # The edition of the specification that the finding follows.
        self.edition: str = edition
        # The profile of the product whose habit the fault is, "" if it is nobody's.
        self.profile: str = profile
        # The severity that a policy gives the finding instead of the rule's, "" for none.
        self.level: str = level
        # Why it does not count: `allow` or `baseline`; "" if it does.
        self.suppressed_by: str = suppressed_by
        # The same in the words of the allow-list, or the name of the baseline's file.
        self.reason: str = reason

    def by_edition(self, edition: str) -> "Assessment":
        """The same for a finding that follows this edition."""
        return Assessment(edition, self.profile, self.level, self.suppressed_by, self.reason)

    def by_profile(self, profile: str) -> "Assessment":
        """The same for a fault that is, or with "" is not, a habit of this product."""
        if profile == self.profile:
            return self
        return Assessment(self.edition, profile, self.level, self.suppressed_by, self.reason)

    def by_policy(self, level: str, suppressed_by: str, reason: str) -> "Assessment":
        """The same with what a policy decides."""
        if (level, suppressed_by, reason) == (self.level, self.suppressed_by, self.reason):
            return self
        return Assessment(self.edition, self.profile, level, suppressed_by, reason)


FIRST_ASSESSMENT: Final = Assessment()
"""Of a finding that was just made."""
