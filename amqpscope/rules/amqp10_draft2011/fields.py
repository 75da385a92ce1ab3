"""Mandatory fields, as far as the surviving text of the draft says which are (sections 3.7.4, 3.7.5 and
6.3.3.2).

The dissector finds them. Of the other lists the text lost which fields are mandatory, so nothing is judged
there.
"""

from typing import Final

from amqpscope.rules.declaration import Rules

RULES: Final = Rules("amqp10_draft2011/fields")


P_FLOW_MAND: Final = RULES.rule(
    "P-FLOW-MAND", "MUST", "definition", layer="session", usual_answer="amqp:invalid-field", proved="certain"
)
"""A peer sends a flow without incoming-window, next-outgoing-id or outgoing-window.

Demands: A flow has incoming-window, next-outgoing-id and outgoing-window.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.7.4
Evidence: the elements 2 to 4 of the list, null or missing
Why it matters: The receiver computes its window from these three values. Without these values, the receiver
may stop sending.
Silent when: the dialect of the sender is not known.
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
"""A sender sends a transfer without handle, delivery-tag, transfer-id or message-format.

Demands: Every transfer has handle, delivery-tag, transfer-id and message-format.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.7.5
Evidence: the elements 1, 2, 3 and 10 of the list, null or missing
Why it matters: The receiver cannot tell which link, delivery or transfer the frame belongs to, or how the
message is to be read.
Silent when: the dialect of the sender is not known.
How to mend it: Set handle, delivery-tag, transfer-id and message-format in every transfer, also in a transfer
that continues a message.
"""


P_SASLINIT_MAND: Final = RULES.rule(
    "P-SASLINIT-MAND", "MUST", "definition", by="client", layer="sasl", proved="certain"
)
"""A client sends a sasl-init without mechanism.

Demands: A sasl-init has a mechanism.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 6.3.3.2
Evidence: the first element of the list, null or missing
Why it matters: The server cannot know how the client wants to authenticate. The SASL exchange fails.
Silent when: the dialect of the sender is not known.
How to mend it: Set mechanism to one of the mechanisms that the server offered.
"""
