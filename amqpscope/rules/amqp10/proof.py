"""A fault that the octets themselves prove: how a problem of the dissector becomes a finding."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case
from dissectors.interface import Problem

__all__ = ["proved"]

# Legal octets can look like these: the text leaves it open, or our tables may be too old.
_ARGUABLE: Final = (
    "T-COMP-REQUIRES",
    "T-DESC-DOMAIN0",
    "T-UUID-4122",
    "M-ADDR-TYPE",
    "M-ID-TYPE",
    "M-SECT-KNOWN",
    "C-HDR-VERMATCH",
)


def proved(case: Case, rule: str, problem: Problem) -> None:
    """Report a rule that the octets break where the problem says."""
    path = problem.path or f"octet {problem.offset}"
    certainty = POSSIBLE if problem.code in _ARGUABLE else CERTAIN
    evidence: dict[str, object] = {"offset": int(problem.offset), "path": problem.path}
    case.report(rule, f"{path}: {problem.reason}", certainty, evidence)
