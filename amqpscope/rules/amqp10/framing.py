"""Types, mandatory fields and framing: what decoding itself proves.

The dissector names the rule that the octets break; each such problem is a finding. Problems that
accuse nobody (octets not captured, our own bounds) are none.
"""

from amqpscope.rules.case import Case
from amqpscope.tracking.knowledge import CERTAIN, POSSIBLE
from dissectors.interface import Problem

__all__ = ["problems_of_frame"]

# Legal octets can look like these: the text leaves it open, or our tables may be too old.
_ARGUABLE = ("T-COMP-REQUIRES", "M-ADDR-TYPE", "M-ID-TYPE", "M-SECT-KNOWN", "C-HDR-VERMATCH")


def problems_of_frame(case: Case) -> None:
    """Every fault of encoding in the frame, and in the message that it completes."""
    record = case.record
    for problem in record.frame.problems:
        _report(case, problem, "")
    message = record.message
    if message is not None and message.complete:
        message.sections()
        for problem in message.problems:
            _report(case, problem, "message ")


def _report(case: Case, problem: Problem, where: str) -> None:
    code = problem.code
    if not code[:1].isupper():
        return
    path = problem.path or f"{where or 'frame '}octet {problem.offset}"
    certainty = POSSIBLE if code in _ARGUABLE else CERTAIN
    evidence: dict[str, object] = {"offset": int(problem.offset), "path": problem.path}
    case.report(f"amqp10/{code}", f"{path}: {problem.reason}", certainty, evidence)
