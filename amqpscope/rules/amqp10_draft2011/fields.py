"""Mandatory fields (sections 3.7 and 6.3.3.2).

The dissector finds them. Of most lists the draft's text lost which fields are mandatory. Findings about these
are only possible, and only about fields that are mandatory in the revisions before and after the draft.
"""

from typing import Final

from amqpscope.rules.declaration import Rules

RULES: Final = Rules("amqp10_draft2011/fields")


P_FLOW_MAND: Final = RULES.rule(
    "P-FLOW-MAND", "MUST", "definition", layer="session", usual_answer="amqp:invalid-field", proved="certain"
)
"""A peer sends a flow in which incoming-window, next-outgoing-id or outgoing-window is missing.

Demands: A flow must have incoming-window, next-outgoing-id and outgoing-window.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.7.4
Evidence: a flow in which incoming-window, next-outgoing-id or outgoing-window (elements 2 to 4 of the list)
is null or missing
Why it matters: The receiver computes its window from these three values. Without these values, the
receiver may stop sending.
Silent when: amqpscope does not know whether the sender speaks the draft or the final specification.
How to mend it: Set incoming-window, next-outgoing-id and outgoing-window in every flow, also in a flow for
a link.
"""


P_TRANSFER_MAND: Final = RULES.rule(
    "P-TRANSFER-MAND",
    "MUST",
    "definition",
    by="sender",
    layer="delivery",
    usual_answer="amqp:invalid-field",
    proved="certain",
)
"""A sender sends a transfer in which the handle, delivery-tag, transfer-id or message-format is missing.

Demands: Every transfer must have a handle, a delivery-tag, a transfer-id and a message-format.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.7.5
Evidence: a transfer in which the handle, delivery-tag, transfer-id or message-format (element 1, 2, 3 or 10
of the list) is null or missing
Why it matters: The receiver cannot tell to which link, delivery or transfer the frame belongs, or how to read
the message.
Silent when: amqpscope does not know whether the sender speaks the draft or the final specification.
How to mend it: Set the handle, delivery-tag, transfer-id and message-format in every transfer, also in a
transfer that continues a message.
"""


P_SASLINIT_MAND: Final = RULES.rule(
    "P-SASLINIT-MAND", "MUST", "definition", by="client", layer="sasl", proved="certain"
)
"""A client sends a sasl-init without a mechanism.

Demands: A sasl-init must have a mechanism.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 6.3.3.2
Evidence: a sasl-init in which the mechanism (the first element of the list) is null or missing
Why it matters: The server cannot know how the client wants to authenticate. The SASL negotiation fails.
Silent when: amqpscope does not know whether the sender speaks the draft or the final specification.
How to mend it: Set the mechanism in sasl-init to one of the mechanisms that the server offered.
"""


P_OPEN_MAND: Final = RULES.rule(
    "P-OPEN-MAND",
    "MUST",
    "definition",
    layer="connection",
    warning="The surviving text of the draft does not say that these fields are mandatory.",
    usual_answer="amqp:invalid-field",
    proved="possible",
)
"""A peer sends an open without a container-id.

Demands: An open must have a container-id.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.7.1
Evidence: an open in which the container-id (element 1 of the list) is null or missing
Why it matters: Link names are unique only for a pair of containers, so without a container-id the other peer
cannot identify links.
Silent when: a part of the frame was not captured, or when amqpscope does not know whether the sender speaks
the draft or the final specification.
Only possible because: The surviving text of the draft does not say which fields are mandatory. In the
revision before the draft and in the final specification, these fields are mandatory.
How to mend it: In every open, set the container-id to a string that identifies the container.
"""


P_BEGIN_MAND: Final = RULES.rule(
    "P-BEGIN-MAND",
    "MUST",
    "definition",
    layer="session",
    warning="The surviving text of the draft does not say that these fields are mandatory.",
    usual_answer="amqp:invalid-field",
    proved="possible",
)
"""A peer sends a begin in which next-outgoing-id, incoming-window or outgoing-window is missing.

Demands: A begin must have next-outgoing-id, incoming-window and outgoing-window.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.7.2
Evidence: a begin in which next-outgoing-id, incoming-window or outgoing-window (elements 2 to 4 of the list)
is null or missing
Why it matters: Without next-outgoing-id and the windows, the other peer cannot compute how many transfers it
may send.
Silent when: a part of the frame was not captured, or when amqpscope does not know whether the sender speaks
the draft or the final specification.
Only possible because: The surviving text of the draft does not say which fields are mandatory. In the
revision before the draft and in the final specification, these fields are mandatory.
How to mend it: Set next-outgoing-id, incoming-window and outgoing-window in every begin. If a value is 0,
encode the number 0 and not null.
"""


P_ATTACH_MAND: Final = RULES.rule(
    "P-ATTACH-MAND",
    "MUST",
    "definition",
    layer="link",
    warning="The surviving text of the draft does not say that these fields are mandatory.",
    usual_answer="amqp:invalid-field",
    proved="possible",
)
"""A peer sends an attach in which the field `name`, `handle` or `role` is missing.

Demands: An attach must have the fields `name`, `handle` and `role`.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.7.3
Evidence: an attach in which the field `name`, `handle` or `role` (elements 1 to 3 of the list) is null or
missing
Why it matters: The other peer does not learn the name or the direction of the link, or the handle that later
frames use.
Silent when: a part of the frame was not captured, or when amqpscope does not know whether the sender speaks
the draft or the final specification.
Only possible because: The surviving text of the draft does not say which fields are mandatory. In the
revision before the draft and in the final specification, these fields are mandatory.
How to mend it: Set the fields `name`, `handle` and `role` in every attach.
"""


P_DISP_MAND: Final = RULES.rule(
    "P-DISP-MAND",
    "MUST",
    "definition",
    layer="delivery",
    warning="The surviving text of the draft does not say that these fields are mandatory.",
    usual_answer="amqp:invalid-field",
    proved="possible",
)
"""A peer sends a disposition in which the field `role` or `first` is missing.

Demands: A disposition must have the fields `role` and `first`.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.7.6
Evidence: a disposition in which the field `role` or `first` (elements 1 and 3 of the list) is null or missing
Why it matters: The other peer cannot tell which transfers the disposition names.
Silent when: a part of the frame was not captured, or when amqpscope does not know whether the sender speaks
the draft or the final specification.
Only possible because: The surviving text of the draft does not say which fields are mandatory. In the
revision before the draft and in the final specification, these fields are mandatory.
How to mend it: Set the fields `role` and `first` in every disposition.
"""


P_DETACH_MAND: Final = RULES.rule(
    "P-DETACH-MAND",
    "MUST",
    "definition",
    layer="link",
    warning="The surviving text of the draft does not say that these fields are mandatory.",
    usual_answer="amqp:invalid-field",
    proved="possible",
)
"""A peer sends a detach without a handle.

Demands: A detach must have a handle.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.7.7
Evidence: a detach in which the handle (element 1 of the list) is null or missing
Why it matters: The other peer cannot tell which link is detached.
Silent when: a part of the frame was not captured, or when amqpscope does not know whether the sender speaks
the draft or the final specification.
Only possible because: The surviving text of the draft does not say which fields are mandatory. In the
revision before the draft and in the final specification, these fields are mandatory.
How to mend it: In every detach, set the handle to the handle of your attach.
"""


P_ERROR_MAND: Final = RULES.rule(
    "P-ERROR-MAND",
    "MUST",
    "definition",
    layer="connection",
    warning="The surviving text of the draft does not say that these fields are mandatory.",
    usual_answer="amqp:invalid-field",
    proved="possible",
)
"""A peer sends an error without a condition.

Demands: An error must have a condition.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.8.12
Evidence: an error in which the condition (element 0 of the list) is null or missing
Why it matters: Programs choose their reaction by the condition of the error. Without a condition,
programs can only guess.
Silent when: a part of the frame was not captured, or when amqpscope does not know whether the sender speaks
the draft or the final specification.
Only possible because: The surviving text of the draft does not say which fields are mandatory. In the
revision before the draft and in the final specification, these fields are mandatory.
How to mend it: Set the condition of every error, for example to amqp:internal-error.
"""
