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
from amqpscope.rules.declaration import DECLARED, Rules
from dissectors.amqp10.composite import CompositeType
from dissectors.amqp10_draft2011.reader import DraftField
from dissectors.amqp10_draft2011.registry import COMPOSITES
from dissectors.interface import Problem
from dissectors.wire import i64

__all__ = ["judge_problem"]

RULES: Final = Rules("amqp10_draft2011/types")

FINAL: Final = "amqp10"
"""The namespace of the final's rules."""


T_CODE_LATER: Final = RULES.rule("T-CODE-LATER", "MUST", "definition", usual_answer="amqp:decode-error")


def value_with_a_later_code(case: Case10, problem: Problem) -> None:
    """A peer that speaks the draft sends a value with a format code that only later revisions assign.

    Demands: Every constructor must have a format code from the draft's list of encodings. The draft's list
    does not contain the format codes 0x43, 0x44, 0x45 and 0x56.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 2.2.5
    Evidence: the format code, and its offset in the frame
    Why it matters: A receiver that knows only the draft does not know the type of the value. The receiver
    cannot decode the frame and may close the connection with amqp:decode-error.
    Silent when: a part of the frame was not captured, or when the peer speaks the final specification. The
    rule is also silent when the rule has already reported the peer on this connection.
    Only possible because: The peer may speak a revision between the draft and the final specification that
    already has the format code.
    How to mend it: Encode the number zero as 0x52 00 or 0x53 00, an empty list as 0xC0 01 00, and booleans as
    0x41 and 0x42. Do not mix encoders of two revisions in one peer.
    """
    once = (case.me.peer, T_CODE_LATER)
    if once not in case.reported:
        case.reported |= {once}
        proved(case, T_CODE_LATER, problem, POSSIBLE)


T_STR_UTF16: Final = RULES.rule(
    "T-STR-UTF16", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a string that has format code 0xA2 or 0xB2 but is not well-formed UTF-16BE.

Demands: Strings with format code 0xA2 or 0xB2 must be UTF-16BE.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 2.2.2 and 2.2.5
Evidence: the octets that are not UTF-16BE
Why it matters: The receiver can only refuse the string or change it. The receiver may close the connection
with amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Write two octets for each code unit, with the higher octet first. Write both halves of every
surrogate pair. Give the size of the string in octets, not in code units.
"""


T_COMP_TYPE: Final = RULES.rule("T-COMP-TYPE", "MUST", "definition", usual_answer="amqp:decode-error")


def value_of_another_type(case: Case10, problem: Problem) -> None:
    """A peer sends a value whose type differs from the declared type of its field.

    Demands: Each element of a composite's list must have the type of the field at its position.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 2.3 and 2.3.1
    Evidence: the format code of the value, and the definition of the field
    Why it matters: The receiver cannot use the field and may close the connection with amqp:decode-error.
    Silent when: a part of the frame was not captured. The rule is also silent when the type of the field is
    known neither from the draft nor from the revisions before and after the draft.
    Possible because: The surviving text of the draft does not give the type of the field. The rule takes the
    type from the revision before the draft and from the final specification, or from the same field of
    another composite.
    How to mend it: Compare the field list of the encoder with the definition of the type. In the draft, the
    fields after `options` stand one place later than in the final specification.
    """
    proved(case, T_COMP_TYPE, problem, certainty_of(problem))


T_COMP_MULT_TRUE: Final = RULES.rule("T-COMP-MULT-TRUE", "MUST", "keyword", usual_answer="amqp:decode-error")


def several_values_without_true(case: Case10, problem: Problem) -> None:
    """A peer sends several values of one field in a list or an array that does not have the descriptor
    `true`.

    Demands: Several values of a field must be sent in a list whose descriptor is the boolean `true`.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 2.3
    Evidence: a list or an array without the descriptor `true`, in a field that may have several values
    Why it matters: The receiver treats the list as one value of a wrong type and may close the connection
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

Demands: A list with the descriptor `true` must not contain null.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 2.3
Evidence: the null in the list of values
Why it matters: The receiver does not know whether the value is missing or wrong, and may close the connection
with amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Leave out missing values. If the field has no value at all, send null instead of the list.
"""


T_COMP_LIST: Final = RULES.rule(
    "T-COMP-LIST",
    "MUST",
    "definition",
    warning="The draft allows composites that are maps and does not name all composites that are lists.",
    usual_answer="amqp:decode-error",
    proved="possible",
)
"""A peer does not encode a composite as a list, although the name of its descriptor ends in `:list`.

Demands: A composite whose symbolic descriptor ends in `:list` must be encoded as a described list.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 2.3 and 2.3.1
Evidence: the format code after the descriptor of the composite
Why it matters: The receiver finds the fields by their positions in a list. The receiver may close the
connection with amqp:decode-error.
Silent when: a part of the frame was not captured.
Only possible because: The surviving text of the draft does not give the descriptors of most composites. In
the revision before the draft, some composites are maps.
How to mend it: Encode every composite as its descriptor and a list of its fields, in the order of the
definition.
"""


T_COMP_EXTRA: Final = RULES.rule(
    "T-COMP-EXTRA",
    "MUST NOT",
    "inferred",
    warning="The specification implies the demand without stating the demand.",
    usual_answer="amqp:decode-error",
    proved="possible",
)
"""A peer sends a composite whose list has more elements than the composite has fields.

Demands: Each element of a composite's list must stand at the position of a field.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 2.3.1
Evidence: the number of elements, and the number of fields
Why it matters: The receiver does not know what the extra elements mean, and may refuse the frame.
Silent when: a part of the frame was not captured.
Only possible because: The peer may speak another revision of the draft, in which the composite has more
fields.
How to mend it: Send only the fields of the definition. Put private data into the field `options` or
`properties`.
"""


T_ENUM_EXPIRY: Final = RULES.rule("T-ENUM-EXPIRY", "MUST", "definition", usual_answer="amqp:invalid-field")


def expiry_policy_that_is_none(case: Case10, problem: Problem) -> None:
    """A peer sends a source or target whose expiry-policy is not `session`, `connection` or `never`.

    Demands: The expiry-policy of a source or target must be `session`, `connection` or `never`.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 4.5.3 to 4.5.5
    Evidence: the expiry-policy of the source or target
    Why it matters: The peers do not agree on the time at which the terminus expires. A subscription may be
    lost too early or be kept for ever.
    Silent when: a part of the frame was not captured.
    Possible because: The surviving text of the draft does not give the type of the field expiry-policy of a
    target. The rule takes the type from the same field of a source.
    How to mend it: Set expiry-policy to `session`, `connection` or `never`. For the default `session`, the
    field may be null. The names `session-end`, `connection-close` and `link-detach` belong to the final
    specification.
    """
    proved(case, T_ENUM_EXPIRY, problem, certainty_of(problem))


T_COMP_REQUIRES: Final = RULES.rule(
    "T-COMP-REQUIRES",
    "MUST",
    "definition",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:invalid-field",
    proved="possible",
)
"""A peer sends a value that is not of the kind that its field requires, for example the boolean `true` in the
field `dynamic`.

Demands: If a field requires a kind of type, its value must be of a type that provides this kind. The kinds of
type are `source`, `target`, `transfer-state`, `outcome`, `lifetime-policy` and `address`.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.7.5 and 4.5.3
Evidence: the descriptor or the primitive type of the value
Why it matters: The receiver cannot use the field and may refuse the frame.
Silent when: a part of the frame was not captured, or when the value has a descriptor that the draft does not
define.
Only possible because: The surviving text of the draft does not say which other types may provide the kind.
How to mend it: Send a transfer-state where the final specification has a delivery state. In the field
`dynamic`, send one of the types whose names begin with `delete-on-` instead of the boolean of the final
specification.
"""


M_FILTER_VALUE: Final = RULES.rule(
    "M-FILTER-VALUE",
    "MUST",
    "keyword",
    layer="messaging",
    usual_answer="amqp:invalid-field",
    proved="certain",
)
"""A peer sends a filter-set with a value that is not a filter, because the value has no descriptor.

Demands: Every value of a filter-set must be a filter, which is a composite.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 4.5.7 and 4.5.8
Evidence: the values of the filter-set in the source
Why it matters: The other peer cannot tell which filter is meant. Messages may arrive unfiltered, or the other
peer may refuse the attach.
Silent when: a part of the frame was not captured, or when the value is null.
How to mend it: Encode each value of the filter-set as a filter with its descriptor.
"""


_JUDGED: Final[dict[str, Callable[[Case10, Problem], None]]] = {
    T_CODE_LATER: value_with_a_later_code,
    T_COMP_TYPE: value_of_another_type,
    T_COMP_MULT_TRUE: several_values_without_true,
    T_ENUM_EXPIRY: expiry_policy_that_is_none,
}


def judge_problem(case: Case10, problem: Problem) -> bool:
    """Judge a problem that the dissector found by the draft's own rule; False if there is none, or if the
    function of the final's rule judges it.
    """
    rule = f"{RULES.namespace}/{problem.code}"
    if rule not in RULES.ids:
        return False
    judged = _JUDGED.get(rule)
    if judged is not None:
        judged(case, problem)
        return True
    if f"{FINAL}/{problem.code}" in DECLARED:
        return False
    prove(case, rule, problem)
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
