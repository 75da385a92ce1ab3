"""Reporting what the dissector has proved, with where it stands."""

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp091.case import Case
from dissectors.interface import Problem

__all__ = ["proved", "proved_of_properties"]


def proved(case: Case, rule: str, problem: Problem) -> None:
    """The octets of this frame break a rule, whatever the state of the connection."""
    case.report(rule, _message(problem), evidence=_evidence(problem))


def proved_of_properties(case: Case, rule: str, problem: Problem) -> None:
    """The same of what may stand among the properties of a message.

    A broker hands them on as they came: of a server it is possible only, and told once.
    """
    if case.record.frame.kind != "content-header":
        proved(case, rule, problem)
    elif case.me.by_client:
        proved(case, rule, problem)
        case.told.add((case.me.peer, rule))
    else:
        case.report_once(rule, _message(problem), POSSIBLE, _evidence(problem))


def _message(problem: Problem) -> str:
    return f"{problem.path}: {problem.reason}" if problem.path else problem.reason


def _evidence(problem: Problem) -> dict[str, object]:
    evidence: dict[str, object] = {"offset": int(problem.offset)}
    if problem.path:
        evidence["path"] = problem.path
    return evidence
