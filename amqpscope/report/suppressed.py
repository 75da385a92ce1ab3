"""Findings that do not count because somebody said so: counted, with the reason, a line each.

allowed: amqp10/L-CREDIT by the client (3, first in packet 17): the legacy scanner sends one too many
"""

from amqpscope.model.finding import Finding
from amqpscope.policy.config_finding import RunConclusion
from dissectors.wording import count

__all__ = ["Suppressed", "excuse", "fixed_lines", "justification"]

_WORDS = {"allow": "allowed", "baseline": "in the baseline"}

_SHOWN = 20
"""Rules that a line names."""


def excuse(finding: Finding) -> str:
    """Why a finding does not count, in a sentence; "" if it may."""
    if not finding.assessment.suppressed_by:
        return ""
    return f"It is {justification(finding).rstrip('.')}."


def justification(finding: Finding) -> str:
    """The same without an ending: `allowed: the old scanner`, `in the baseline known.json`."""
    between = " " if finding.assessment.suppressed_by == "baseline" else ": "
    return f"{_WORDS[finding.assessment.suppressed_by]}{between}{finding.assessment.reason}"


def fixed_lines(closing: RunConclusion) -> list[str]:
    """What is in the baseline and is not found any more, a line each."""
    return [
        f"fixed: {known.rule} by the {known.peer}, {known.message} (in {closing.baseline}, of "
        f"{', '.join(sorted(known.captures))})"
        for known in closing.fixed
    ]


class Suppressed:
    """Takes the suppressed findings of a capture."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        # By what suppressed them and why: by rule and peer, how many, and the packet of the first.
        self._reasons: dict[tuple[str, str], dict[tuple[str, str], list[int]]] = {}

    def add(self, finding: Finding) -> None:
        """One more."""
        by = finding.assessment.suppressed_by
        self.numbers[by] = self.numbers.get(by, 0) + 1
        rules = self._reasons.setdefault((by, finding.assessment.reason), {})
        known = rules.setdefault((finding.rule, finding.peer), [0, int(finding.packet)])
        known[0] += 1

    def merge(self, numbers: dict[str, int]) -> None:
        """The numbers of another capture, too."""
        for by, number in numbers.items():
            self.numbers[by] = self.numbers.get(by, 0) + number

    def parts(self) -> list[str]:
        """`3 findings allowed`."""
        return [f"{count(number, 'finding')} {_WORDS[by]}" for by, number in self.numbers.items()]

    def lines(self) -> list[str]:
        """A line for each reason."""
        found = []
        for (by, reason), rules in self._reasons.items():
            reported = [
                f"{rule} by the {peer} ({number}, first in packet {packet})"
                for (rule, peer), (number, packet) in rules.items()
            ]
            more = len(reported) - _SHOWN
            if more > 0:
                reported[_SHOWN:] = [f"and {more} more"]
            found.append(f"{_WORDS[by]}: {', '.join(reported)}: {reason}")
        return found
