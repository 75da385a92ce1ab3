"""Error conditions (sections 3.8.13 to 3.8.16 and 5.2.5)."""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10_draft2011.case import CaseDraft2011
from amqpscope.rules.declaration import Rules
from dissectors.amqp10 import registry as final
from dissectors.amqp10_draft2011.performatives import Close, Detach, End, Rejected, TransferState
from dissectors.amqp10_draft2011.registry import ERROR_CONDITIONS

__all__ = ["judge_condition"]

RULES: Final = Rules("amqp10_draft2011/conditions")

_LONGEST: Final = 64
"""The number of characters of a condition that a finding shows."""


C_ERR_SYMBOL: Final = RULES.rule(
    "C-ERR-SYMBOL",
    "MUST",
    "definition",
    warning="A capture can suggest this fault but never prove it.",
    octets=True,
)


def condition_that_the_draft_lacks(case: CaseDraft2011, condition: str) -> None:
    """A peer sends an error whose condition begins with `amqp:` but is not defined by the draft.

    Demands: The condition of an error must be one of the symbols that the draft defines as error conditions.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.8.12 to 3.8.16 and 5.2.5
    Evidence: an error condition that the draft does not define
    Why it matters: Programs choose their reaction by the error condition. A program that implements the draft
    does not know error conditions of later specifications, and reacts in a general way or not at all.
    Silent when: the condition does not begin with `amqp:`.
    Only possible because: Another specification may have defined the error condition.
    How to mend it: Use an error condition that the draft defines. For a handle that is not attached or that
    is already in use, the draft defines `amqp:invalid-field`. The draft has no error conditions for
    redirects, for stolen links or for frames that are too small.
    """
    where = "only the final specification and not the draft of April 2011 defines this condition"
    if condition not in final.ERROR_CONDITIONS:
        where = "the draft of April 2011 defines no such condition"
    case.report(
        C_ERR_SYMBOL,
        f"the error condition begins with `amqp:`, but {where}",
        POSSIBLE,
        {"condition": condition[:_LONGEST]},
    )


def judge_condition(case: CaseDraft2011, sent: object) -> None:
    """The rule about the condition of a frame's error, or of the error of a rejection in its state."""
    error = None
    if isinstance(sent, (Close, End, Detach)):
        error = sent.error
    elif isinstance(sent, TransferState) and isinstance(sent.outcome, Rejected):
        error = sent.outcome.error
    if error is None or error.condition is None:
        return
    condition = str(error.condition)
    if condition.startswith("amqp:") and condition not in ERROR_CONDITIONS:
        condition_that_the_draft_lacks(case, condition)
