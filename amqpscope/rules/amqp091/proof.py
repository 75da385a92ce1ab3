"""Reporting what the dissector has proved, with where it stands."""

from amqpscope.rules.amqp091.case import Case
from dissectors.interface import Problem

__all__ = ["proved"]


def proved(case: Case, rule: str, problem: Problem) -> None:
    """The octets of this frame break a rule, whatever the state of the connection."""
    evidence: dict[str, object] = {"offset": int(problem.offset)}
    if problem.path:
        evidence["path"] = problem.path
    where = f"{problem.path}: " if problem.path else ""
    case.report(rule, where + problem.reason, evidence=evidence)
