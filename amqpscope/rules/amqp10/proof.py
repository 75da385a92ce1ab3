"""Findings from problems of the dissector: faults that the octets themselves prove."""

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import DECLARED
from dissectors.interface import Problem
from dissectors.wire import i64

__all__ = ["prove", "proved"]


def prove(case: Case10, rule: str, problem: Problem) -> None:
    """Report the rule that the problem's code names, if there is one that the problem alone proves."""
    declared = DECLARED.get(rule)
    if declared is not None and declared.proved:
        proved(case, rule, problem, POSSIBLE if declared.proved == "possible" else CERTAIN)


def proved(case: Case10, rule: str, problem: Problem, certainty: i64 = CERTAIN) -> None:
    """Report a rule that the octets break where the problem says."""
    path = problem.path or f"octet {problem.offset}"
    evidence: dict[str, object] = {"offset": int(problem.offset), "path": problem.path}
    case.report(rule, f"{path}: {problem.reason}", certainty, evidence)
