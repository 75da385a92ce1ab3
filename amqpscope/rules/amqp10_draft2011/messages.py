"""What the sections of a message hold (sections 4.2.1 to 4.2.5). The dissector finds the faults."""

from typing import Final

from amqpscope.rules.declaration import Rules

RULES: Final = Rules("amqp10_draft2011/messages")


M_SECT_KNOWN: Final = RULES.rule(
    "M-SECT-KNOWN",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:decode-error",
    proved="possible",
)
"""A sender sends a section whose section-code is not a number from 0 to 6.

Demands: In a message of message-format 0, each section must have a section-code that the draft assigns.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 4.2 and 4.2.1
Evidence: the section-code in each fragment that a transfer carries, once the message is complete
Why it matters: The receiver does not know how to read the section, and may refuse the whole message.
Silent when: a part of the message was not captured, or when the message has a message-format other than 0.
Only possible because: Another revision of the draft may assign the section-code.
How to mend it: Use only the section-codes 0 to 6: header, properties, footer, data, amqp-data, amqp-map and
amqp-list.
"""


M_SECT_TYPE: Final = RULES.rule(
    "M-SECT-TYPE", "MUST", "keyword", by="sender", usual_answer="amqp:decode-error", proved="certain"
)
"""A sender puts a value of the wrong type into a section.

Demands: A header, properties or footer section must be empty, or must hold the composite of the same name. An
amqp-map section must be empty or hold a map, and an amqp-list section must be empty or hold a list.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 4.2.1
Evidence: the descriptor or the format code of the value in a section that was captured completely
Why it matters: The receiver cannot use the section. Durability, priority or the message-id may be lost.
Silent when: a part of the message was not captured, or when the message has a message-format other than 0.
How to mend it: Choose the section-code by the value that the section holds. Send raw octets in a data section
and other values in an amqp-data section.
"""


M_PAYLOAD_WHOLE: Final = RULES.rule(
    "M-PAYLOAD-WHOLE", "MUST", "keyword", by="sender", usual_answer="amqp:decode-error", proved="certain"
)
"""A sender puts more than one value into a section that may hold only one.

Demands: A header, properties, footer, amqp-map or amqp-list section must not hold more than one value.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 4.2.1
Evidence: the number of values in a section that was captured completely
Why it matters: The receiver reads the first value and loses the other values, or refuses the message.
Silent when: a part of the message was not captured, or when the message has a message-format other than 0.
How to mend it: Begin a new section for each value, or put all values into one amqp-data section. Check that
no octets of a reused buffer follow the value.
"""
