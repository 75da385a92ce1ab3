"""Types, where the draft encodes values in another way than the final specification (sections 2.2 and 2.3).

The dissector finds the faults. It reports a field only if its definition survived in the draft's text, or is
the same in the revisions before and after the draft. A fault that rests on the latter is possible.
"""

import re
from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.proof import prove, proved
from amqpscope.rules.declaration import Rules
from dissectors.amqp10.composite import CompositeType
from dissectors.amqp10_draft2011.reader import DraftField
from dissectors.amqp10_draft2011.registry import COMPOSITES
from dissectors.interface import Problem
from dissectors.wire import i64

__all__ = ["judge_problem"]

RULES: Final = Rules("amqp10_draft2011/types")


T_CODE_LATER: Final = RULES.rule("T-CODE-LATER", "MUST", "definition", usual_answer="amqp:decode-error")


def value_with_a_later_code(case: Case10, problem: Problem) -> None:
    """A peer that speaks the draft sends a value with a format code that only later revisions assign.

    Demands: Every constructor has a format code of the list of encodings, which has no 0x43, 0x44, 0x45 and
    0x56.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 2.2.5
    Evidence: the format code, and its offset in the frame
    Why it matters: A receiver that knows only the draft does not know the type of the value. The receiver
    cannot decode the frame and may close the connection with amqp:decode-error.
    Silent when: a part of the frame was not captured, when the peer speaks the final specification, or when
    the rule has already reported the peer on this connection.
    Only possible because: The peer may speak a revision between the draft and the final specification that
    already has the format code.
    How to mend it: Encode zero as 0x52 00 or 0x53 00, an empty list as 0xC0 01 00, and booleans as 0x41 and
    0x42. Do not mix encoders of two revisions in one peer.
    """
    once = (case.me.peer, T_CODE_LATER)
    if once not in case.reported:
        case.reported |= {once}
        proved(case, T_CODE_LATER, problem, POSSIBLE)


T_STR_UTF16: Final = RULES.rule(
    "T-STR-UTF16", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a string with format code 0xA2 or 0xB2 that is not well-formed UTF-16BE.

Demands: Strings with format code 0xA2 or 0xB2 are UTF-16BE.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 2.2.2 and 2.2.5
Evidence: the octets that are not UTF-16BE
Why it matters: The receiver can only refuse the string or change it. The receiver may close the connection
with amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Write two octets for each code unit, the higher one first, and both halves of every surrogate
pair. State the size in octets, not in code units.
"""


T_COMP_TYPE: Final = RULES.rule("T-COMP-TYPE", "MUST", "definition", usual_answer="amqp:decode-error")


def value_of_another_type(case: Case10, problem: Problem) -> None:
    """A peer sends a field with a value of another type than the field has.

    Demands: Each element of a composite's list has the type of the field at its position.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 2.3 and 2.3.1
    Evidence: the format code of the value, and the definition of the field
    Why it matters: The receiver cannot use the field and may close the connection with amqp:decode-error.
    Silent when: a part of the frame was not captured. The rule is also silent when the type of the field is
    known neither from the draft nor from the revisions before and after the draft.
    Possible because: The surviving text of the draft does not give the type of the field. The rule takes the
    type from the revision before the draft and from the final specification, or from the same field of
    another composite.
    How to mend it: Compare the field list of the encoder with the definition of the type. In the draft, the
    fields after options stand one place later than in the final specification.
    """
    proved(case, T_COMP_TYPE, problem, certainty_of(problem))


T_COMP_MULT_TRUE: Final = RULES.rule("T-COMP-MULT-TRUE", "MUST", "keyword", usual_answer="amqp:decode-error")


def several_values_without_true(case: Case10, problem: Problem) -> None:
    """A peer sends several values of one field in a list or an array that is not described by true.

    Demands: Several values of a field stand in a list whose descriptor is the boolean true.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 2.3
    Evidence: a list or an array without the descriptor true, in a field that may have several values
    Why it matters: The receiver takes the list for one value of a wrong type and may close the connection
    with amqp:decode-error.
    Silent when: a part of the frame was not captured, or when the type of the field is not known.
    Possible because: The surviving text of the draft does not give the definition of the field. The rule
    takes the definition from the revision before the draft and from the final specification, or from the same
    field of another composite.
    How to mend it: Write 0x00 0x41 before the list of the values. The final specification uses an array
    without a descriptor instead.
    """
    proved(case, T_COMP_MULT_TRUE, problem, certainty_of(problem))


T_COMP_MULT_NULL: Final = RULES.rule(
    "T-COMP-MULT-NULL", "MUST NOT", "keyword", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends null as one of several values of a field.

Demands: A list that is described by true has no null entries.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 2.3
Evidence: the null in the list
Why it matters: The receiver does not know whether the value is missing or wrong, and may close the connection
with amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Leave out missing values. If the field has no value at all, send null instead of the list.
"""


_JUDGED: Final[dict[str, Callable[[Case10, Problem], None]]] = {
    T_CODE_LATER: value_with_a_later_code,
    T_COMP_TYPE: value_of_another_type,
    T_COMP_MULT_TRUE: several_values_without_true,
}


def judge_problem(case: Case10, problem: Problem) -> bool:
    """Judge a problem that the dissector found by the draft's own rule; False if there is none."""
    rule = f"{RULES.namespace}/{problem.code}"
    if rule not in RULES.ids:
        return False
    judged = _JUDGED.get(rule)
    if judged is None:
        prove(case, rule, problem)
    else:
        judged(case, problem)
    return True


_DEFINITIONS: Final[dict[str, CompositeType]] = {one.name: one for one in COMPOSITES}


def certainty_of(problem: Problem) -> i64:
    """Certain if the draft's own text defines the field that the problem is about."""
    owner, *steps = re.findall(r"[a-z-]+", problem.path) or [""]
    field: object = None
    for step in steps:
        definition = _DEFINITIONS.get(owner)
        found = () if definition is None else definition.fields
        field = next((one for one in found if one.name == step), None)
        owner = field.requires or field.type if isinstance(field, DraftField) else ""
    return CERTAIN if isinstance(field, DraftField) and field.origin == "" else POSSIBLE
