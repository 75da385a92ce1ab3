"""What a rule of the April-2011 draft is given: a frame in the terms of the final specification, and as sent.

Functions of the final's rules report here under the final's ids. A rule that the draft has, too, is
reported under the draft's id and in the draft's words; all others are dropped.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.connection import C_MAXFRAME_FLOOR, C_OPEN_SIZE, C_PIPE_SIZE
from amqpscope.rules.amqp10.counting import L_CREDIT_DECR, L_CREDIT_FORMULA, L_CREDIT_NODC
from amqpscope.rules.amqp10.ending import L_ATTACH_ANSWER
from amqpscope.rules.amqp10.link import (
    L_CREDIT,
    L_CREDIT_INIT,
    L_CREDIT_OWNER,
    L_HANDLE_INUSE,
    L_UNATTACHED_FLOW,
    L_UNATTACHED_TRANSFER,
)
from amqpscope.rules.amqp10.redelivery import M_REJ_ANNOTATE
from amqpscope.rules.amqp10.sasl import SA_FRAME_512
from amqpscope.rules.amqp10_draft2011.same import RULES
from amqpscope.rules.declaration import DECLARED, SUBJECTS, Rules
from amqpscope.rules.judge import NO_RECORD
from dissectors.amqp10.performatives import Transfer
from dissectors.wire import i64

__all__ = ["CaseDraft2011"]

LEAST_MAX_FRAME_SIZE: Final = 4096
"""MIN-MAX-FRAME-SIZE, section 3.8.22."""

# Whether transfer-count goes up with the first or with the last transfer of a message the draft does not say.
_OF_CREDIT: Final = (L_CREDIT, L_CREDIT_INIT, L_CREDIT_NODC)
_OF_STATED_CREDIT: Final = (L_CREDIT_DECR, L_CREDIT_FORMULA, L_CREDIT_OWNER)

# The draft names other conditions for these than the final, whose answers are due.
_ANSWERED_OTHERWISE: Final = (L_HANDLE_INUSE, L_UNATTACHED_FLOW, L_UNATTACHED_TRANSFER)

# The final's functions judge these by this edition's number, or by where the draft has the same.
_JUDGED_ALIKE: Final = (C_OPEN_SIZE, C_PIPE_SIZE, C_MAXFRAME_FLOOR, SA_FRAME_512, M_REJ_ANNOTATE)

_FINAL: Final = "amqp10/"


class CaseDraft2011(Case10):
    """One frame before the judge. sent: the record of the frame as it was sent; `record` has the
    translated.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.least_max_frame_size = LEAST_MAX_FRAME_SIZE
        self.sent: FrameRecord = NO_RECORD

    def rule_of_the_final(self, rule: str) -> str:
        final = _FINAL + rule.partition("/")[2]
        if DECLARED[rule].same_as != final or final in _ANSWERED_OTHERWISE:
            return ""
        return final

    def report(
        self,
        rule: str,
        message: str,
        certainty: i64 = CERTAIN,
        evidence: dict[str, object] | None = None,
        others: list[int] | None = None,
        since: i64 = -1,
    ) -> None:
        if rule.startswith(_FINAL):
            own = f"{RULES.namespace}/{rule.partition('/')[2]}"
            declared = DECLARED.get(own)
            if declared is None or not (declared.same_as or declared.proved or rule in _JUDGED_ALIKE):
                return
            if rule == L_ATTACH_ANSWER and self.attached_again():
                return
            if certainty == CERTAIN and (declared.proved == "possible" or self.is_of_pieces(rule)):
                certainty = POSSIBLE
            rule = own
            rules = SUBJECTS[declared.subject] if declared.same_as else RULES
            message = rules.in_its_terms(message)
            if evidence is not None:
                evidence = {_key_in_terms(rules, key): value for key, value in evidence.items()}
        super().report(rule, message, certainty, evidence, others, since)

    def attached_again(self) -> bool:
        """Whether the other peer has attached the link before: such an attach is ignored if the link endpoint
        is gone (section 3.6.4).
        """
        return self.link is not None and self.link.attachment.peer_times > 1

    def is_of_pieces(self, rule: str) -> bool:
        """Whether a fault rests on when a message of several transfers counts."""
        body = self.record.frame.body
        if isinstance(body, Transfer):
            return rule in _OF_CREDIT and body.more is True
        link = self.link
        return rule in _OF_STATED_CREDIT and link is not None and link.open is not None


def _key_in_terms(rules: Rules, key: str) -> str:
    """The name of evidence, in the words of the draft."""
    return rules.in_its_terms(key.replace("_", "-")).replace("-", "_")
