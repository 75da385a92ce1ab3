"""Reporting what the dissector has proved, with where it stands."""

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import DECLARED
from dissectors.interface import Problem

__all__ = ["prove", "proved"]


def prove(case: Case091, rule: str, problem: Problem) -> None:
    """Report the rule that the problem's code names, if there is one that the problem alone proves."""
    declared = DECLARED.get(rule)
    if declared is not None and declared.proved == "properties":
        _proved_of_properties(case, rule, problem)
    elif declared is not None and declared.proved:
        proved(case, rule, problem)


def proved(case: Case091, rule: str, problem: Problem) -> None:
    """The octets of this frame break a rule, whatever the state of the connection."""
    case.report(rule, _message(problem), evidence=_evidence(problem))


def _proved_of_properties(case: Case091, rule: str, problem: Problem) -> None:
    """The same of what may stand among the properties of a message.

    A broker hands them on as they came: of a server it is possible only, and told once.
    """
    if case.record.frame.kind != "content-header":
        proved(case, rule, problem)
    elif case.me.by_client:
        proved(case, rule, problem)
        case.reported.add((case.me.peer, rule))
    else:
        case.report_once(rule, _message(problem), POSSIBLE, _evidence(problem))


def _message(problem: Problem) -> str:
    return f"{problem.path}: {problem.reason}" if problem.path else problem.reason


def _evidence(problem: Problem) -> dict[str, object]:
    evidence: dict[str, object] = {"offset": int(problem.offset)}
    if problem.path:
        evidence["path"] = problem.path
    return evidence
