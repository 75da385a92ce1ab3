"""Findings from problems of the dissector: faults that the octets themselves prove."""

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import DECLARED
from dissectors.interface import Problem
from dissectors.wire import i64

__all__ = ["prove", "proved"]


def prove(case: Case10, rule: str, problem: Problem) -> None:
    """Report the rule that the problem's code names, if the problem alone proves its violation."""
    declared = DECLARED.get(rule)
    if declared is not None and declared.proved:
        proved(case, rule, problem, POSSIBLE if declared.proved == "possible" else CERTAIN)


def proved(case: Case10, rule: str, problem: Problem, certainty: i64 = CERTAIN) -> None:
    """Report a rule with the place that the problem names."""
    path = problem.path or f"octet {problem.offset}"
    evidence: dict[str, object] = {"offset": int(problem.offset), "path": problem.path}
    case.report(rule, f"{path}: {problem.reason}", certainty, evidence)
