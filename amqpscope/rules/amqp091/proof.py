"""Reports faults that the dissector has proved, with their path in the frame."""

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import DECLARED
from dissectors.interface import Problem

__all__ = ["prove", "proved"]


def prove(case: Case091, rule: str, problem: Problem) -> None:
    """Report the rule that the problem's code names, if the problem alone proves the fault."""
    declared = DECLARED.get(rule)
    if declared is not None and declared.proved == "properties":
        _proved_of_properties(case, rule, problem)
    elif declared is not None and declared.proved:
        proved(case, rule, problem)


def proved(case: Case091, rule: str, problem: Problem) -> None:
    """The octets of this frame break a rule, whatever the state of the connection."""
    case.report(rule, _message(problem), evidence=_evidence(problem))


def _proved_of_properties(case: Case091, rule: str, problem: Problem) -> None:
    """The same for problems that may be among the properties of a message.

    A broker forwards properties unchanged. A finding about a server is therefore only possible, and is
    reported once.
    """
    if case.record.frame.kind != "content-header":
        proved(case, rule, problem)
    elif case.me.by_client:
        proved(case, rule, problem)
        case.reported |= {(case.me.peer, rule)}
    else:
        case.report_once(rule, _message(problem), POSSIBLE, _evidence(problem))


def _message(problem: Problem) -> str:
    return f"{problem.path}: {problem.reason}" if problem.path else problem.reason


def _evidence(problem: Problem) -> dict[str, object]:
    evidence: dict[str, object] = {"offset": int(problem.offset)}
    if problem.path:
        evidence["path"] = problem.path
    return evidence
