"""Messages: their sections and the order of the sections (messaging.xml, "message-format")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10 import content
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from dissectors.amqp10.message import BATCH_FORMAT, Message
from dissectors.amqp10.outline import SECTIONS, TYPED
from dissectors.amqp10.types import SIZE_FAULTS
from dissectors.wire import i64

__all__ = ["judge_message", "plainly_sound"]

RULES: Final = Rules("amqp10/message")


_ORDER: Final = {
    "header": 0,
    "delivery-annotations": 1,
    "message-annotations": 2,
    "properties": 3,
    "application-properties": 4,
    "data": 5,
    "amqp-sequence": 5,
    "amqp-value": 5,
    "footer": 6,
}

# Faults after which the sections of the message are unknown.
_STRUCTURE: Final = (*SIZE_FAULTS, "T-CODE-EXT", "limit")


# The sections in the words of `outline`: those before the body and the footer ascend; the body is one kind.
_DATA: Final = 0x75 - 0x6F
_SEQUENCE: Final = 0x76 - 0x6F
_VALUE: Final = 0x77 - 0x6F


def plainly_sound(message: Message) -> bool:
    """Whether a message can be seen to break no rule of this file, or of `content`, without decoding it.

    True for nearly every one. False says nothing: it has to be decoded.
    """
    if not message.complete or message.message_format != 0:
        return False
    sections = message.outline()
    typed = sections & TYPED != 0
    sections = sections & SECTIONS
    # From the last to the first.
    after: i64 = 15
    body: i64 = 0
    while sections > 0:
        section = sections & 15
        sections = sections >> 4
        if section > after or (section == after and section != _DATA and section != _SEQUENCE):
            return False
        if _DATA <= section <= _VALUE:
            if body > 0 and body != section:
                return False
            body = section
        after = section
    if typed and body != _DATA:
        return False
    return body > 0


M_SECT_ORDER: Final = RULES.rule(
    "M-SECT-ORDER", "MUST", "definition", by="sender", usual_answer="amqp:decode-error"
)


def section_out_of_order(case: Case10, name: str, last: str, names: list[str]) -> None:
    """A sender puts the sections of a message in a wrong order.

    Demands: The sections of a message must come in this order: header, delivery-annotations,
    message-annotations, properties, application-properties, body, footer.
    Source: messaging.xml section message-format
    Evidence: the order of the section descriptors
    Why it matters: Receivers read the sections in the specified order. Receivers may ignore a section that
    comes too late, or may refuse the message because they cannot decode it.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0.
    How to mend it: Encode the sections in this order: header, delivery-annotations, message-annotations,
    properties, application-properties, body, footer. When you add a section such as annotations, insert the
    section at the right place.
    """
    case.report(
        M_SECT_ORDER,
        f"the section {name} comes after the section {last}, but has to come before it",
        CERTAIN,
        {"sections": names[:16]},
    )


M_SECT_ONCE: Final = RULES.rule(
    "M-SECT-ONCE", "MUST", "definition", by="sender", usual_answer="amqp:decode-error"
)


def section_twice(case: Case10, name: str, names: list[str]) -> None:
    """A sender puts a section twice into a message, although this section may appear only once.

    Demands: Header, delivery-annotations, message-annotations, properties, application-properties and footer
    must appear at most once each.
    Source: messaging.xml section message-format
    Evidence: a section descriptor that appears twice
    Why it matters: The specification does not say which of the two sections applies. Receivers may use
    different sections, or refuse the message.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0.
    How to mend it: Encode header, delivery-annotations, message-annotations, properties,
    application-properties and footer at most once. To add entries to a section that exists, put the entries
    into this section instead of writing a second section.
    """
    case.report(M_SECT_ONCE, f"the message has two {name} sections", CERTAIN, {"sections": names[:16]})


M_BODY_PRESENT: Final = RULES.rule(
    "M-BODY-PRESENT", "MUST", "definition", by="sender", usual_answer="amqp:decode-error"
)


def message_without_body(case: Case10, names: list[str]) -> None:
    """A sender sends a message without a body section.

    Demands: A message must have a body: data sections, amqp-sequence sections or one amqp-value section.
    Source: messaging.xml section message-format
    Evidence: a message that has none of the sections data (0x75), amqp-sequence (0x76) and amqp-value
    (0x77)
    Why it matters: Every message must have a body, even if its content is empty. Receivers may fail to decode
    the message or refuse it.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0.
    How to mend it: Always encode a body section. For an empty message, write one data section with empty
    binary, or an amqp-value section with null.
    """
    case.report(M_BODY_PRESENT, "the message has no body section", CERTAIN, {"sections": names[:16]})


M_BODY_NOMIX: Final = RULES.rule(
    "M-BODY-NOMIX", "MUST NOT", "definition", by="sender", usual_answer="amqp:decode-error"
)


def bodies_of_several_kinds(case: Case10, names: list[str]) -> None:
    """A sender mixes data, amqp-sequence and amqp-value sections in the body of one message.

    Demands: All body sections of a message must be of the same kind.
    Source: messaging.xml section message-format
    Evidence: two of the sections data (0x75), amqp-sequence (0x76) and amqp-value (0x77) in one message
    Why it matters: The body must consist of one kind of section. Receivers may read only a part of the
    content or refuse the message.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0.
    How to mend it: Choose one kind for the body: one or more data sections, one or more amqp-sequence
    sections, or a single amqp-value section. Clear the old body before you set a body of another kind.
    """
    case.report(
        M_BODY_NOMIX,
        "the body of the message has sections of more than one kind",
        CERTAIN,
        {"sections": names[:16]},
    )


M_BODY_ONEVALUE: Final = RULES.rule(
    "M-BODY-ONEVALUE", "MUST", "definition", by="sender", usual_answer="amqp:decode-error"
)


def several_values_as_body(case: Case10, names: list[str], count: int) -> None:
    """A sender puts several amqp-value sections into one message.

    Demands: The body of a message must not have more than one amqp-value section.
    Source: messaging.xml section message-format
    Evidence: a second section amqp-value (0x77)
    Why it matters: The body can hold only one amqp-value section. Receivers may use only one of the values,
    or refuse the message.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0.
    How to mend it: Encode one amqp-value section per message. To send several values, put them into a list
    inside the amqp-value section, or use amqp-sequence sections.
    """
    case.report(
        M_BODY_ONEVALUE,
        f"the message has {count} amqp-value sections, but only one is allowed",
        CERTAIN,
        {"sections": names[:16]},
    )


def _judge_order(case: Case10, names: list[str]) -> None:
    before = -1
    last = ""
    for name in names:
        place = _ORDER[name]
        if place < before:
            section_out_of_order(case, name, last, names)
            return
        if place == before and place != 5:
            section_twice(case, name, names)
            return
        before = place
        last = name


def _judge_body(case: Case10, names: list[str]) -> None:
    kinds = [name for name in names if _ORDER[name] == 5]
    if not kinds:
        message_without_body(case, names)
    elif any(kind != kinds[0] for kind in kinds):
        bodies_of_several_kinds(case, names)
    elif kinds[0] == "amqp-value" and len(kinds) > 1:
        several_values_as_body(case, names, len(kinds))


M_SECT_KNOWN: Final = RULES.rule(
    "M-SECT-KNOWN",
    "MUST",
    "inferred",
    by="sender",
    warning="The specification implies the demand without stating the demand.",
    usual_answer="amqp:decode-error",
    proved="possible",
)
"""A message contains a value that is not one of the nine message sections.

Demands: A message of message-format 0 may consist only of the nine defined sections.
Source: messaging.xml section message-format
Evidence: the descriptor of a value between the sections
Why it matters: The receiver does not know the meaning of a value that is not a section. The receiver may
refuse the whole message with a decode error.
Silent when: a part of the message was not captured, or when the message has a message-format other than 0.
Only possible because: The specification leaves room to read these octets as legal, or a newer
specification may define them.
How to mend it: Wrap every top-level value of the payload in the descriptor of one of the nine sections. Put
the content itself into a data, amqp-sequence or amqp-value section, and compare the descriptor codes with the
specification.
"""


M_PAYLOAD_WHOLE: Final = RULES.rule(
    "M-PAYLOAD-WHOLE", "MUST", "definition", by="sender", usual_answer="amqp:decode-error", proved="certain"
)
"""At the beginning of a message, between its sections or at its end, a sender puts octets that belong to no
section.

Demands: The joined payload of a delivery must consist of whole sections and nothing else. A section may span
several transfers.
Source: messaging.xml section message-format; transport.xml section links > Transferring Large Messages
Evidence: the joined payload of the transfers
Why it matters: The receiver can only refuse the message, or ignore the extra octets and lose their content.
Silent when: a part of the message was not captured, or when the message has a message-format other than 0.
Another rule, T-SIZE-OVERRUN, reports a section whose last octets are missing.
How to mend it: Encode application content inside a data section instead of writing it into the payload
directly. Check section sizes, and check that no octets of a reused buffer follow the last section.
"""


M_FMT_ZERO: Final = RULES.rule(
    "M-FMT-ZERO", "MUST", "definition", by="sender", usual_answer="amqp:not-implemented"
)


def sections_in_another_format(case: Case10, message_format: i64) -> None:
    """A sender marks a message with a message-format other than 0, although the message consists of the
    sections of message-format 0.

    Demands: Messages with the sections of AMQP 1.0 must have message-format 0.
    Source: messaging.xml section message-format > MESSAGE-FORMAT; transport.xml section definitions >
    message-format
    Evidence: the message-format of the transfer, and the payload
    Why it matters: A receiver that does not know the message-format refuses the message, or passes the
    message to the application without decoding it.
    Silent when: a part of the message was not captured, or when the message-format is the batch format of
    Event Hubs.
    Only possible because: Another message-format may have the same sections.
    How to mend it: Set message-format to 0 in the first transfer of every standard AMQP message. Use another
    message-format only for formats on which sender and receiver have agreed.
    """
    message = (
        f"the message-format is 0x{message_format:x}, but the message has the sections of message-format 0"
    )
    case.report_once(M_FMT_ZERO, message, POSSIBLE, {"message_format": int(message_format)})


M_SECT_TYPE: Final = RULES.rule(
    "M-SECT-TYPE", "MUST", "definition", by="sender", usual_answer="amqp:decode-error", proved="certain"
)
"""A sender puts a value of the wrong type into a message section.

Demands: Each section must have the type that the specification gives for this section. Header, properties and
amqp-sequence must be lists. Annotations, application-properties and footer must be maps. A data section must
be binary.
Source: messaging.xml section message-format (section types)
Evidence: the format code after the section descriptor
Why it matters: The receiver cannot decode the section. The receiver can only refuse the message.
Silent when: a part of the message was not captured, or when the message has a message-format other than 0.
How to mend it: Encode header, properties and amqp-sequence as a list. Encode the annotations,
application-properties and footer as a map. Encode a data section as binary. Put strings into an amqp-value
section, or convert strings to binary for a data section.
"""


M_ANN_KEYTYPE: Final = RULES.rule(
    "M-ANN-KEYTYPE", "MUST", "definition", by="sender", usual_answer="amqp:decode-error", proved="certain"
)
"""In annotations or in the footer, a sender uses a key that is neither a symbol nor a ulong.

Demands: The keys of annotations and of the footer must be symbols or ulongs.
Source: messaging.xml section message-format > annotations
Evidence: the types of the keys in delivery-annotations (0x71), message-annotations (0x72) and footer (0x78)
Why it matters: Receivers look up annotations by symbol or ulong, so no receiver finds the entry. A receiver
may refuse the message with a decode error.
Silent when: a part of the message was not captured, or when the message has a message-format other than 0.
How to mend it: Encode the keys of delivery-annotations, message-annotations and footer as symbols, for
example with the prefix `x-opt-`. A common cause is that an application passes annotation keys as strings
instead of symbols.
"""


M_AP_KEY: Final = RULES.rule(
    "M-AP-KEY", "MUST", "definition", by="sender", usual_answer="amqp:decode-error", proved="certain"
)
"""In application-properties, a sender uses a key that is not a string.

Demands: The keys of application-properties must be strings.
Source: messaging.xml section message-format > application-properties
Evidence: the types of the keys in application-properties
Why it matters: Message selectors and receivers cannot name the entry. A receiver may refuse the message with
a decode error.
Silent when: a part of the message was not captured, or when the message has a message-format other than 0.
How to mend it: Encode the keys of application-properties as strings, not as symbols or numbers. Convert
keys of other types to strings before you set application-properties.
"""


M_AP_VALUE: Final = RULES.rule(
    "M-AP-VALUE", "MUST", "definition", by="sender", usual_answer="amqp:decode-error", proved="certain"
)
"""A sender uses a map, a list or an array as the value of an application property.

Demands: The values of application-properties must be simple types, not maps, lists or arrays. The
specification does not mention described values.
Source: messaging.xml section message-format > application-properties
Evidence: the types of the values in application-properties
Why it matters: Receivers and filters can compare only simple values. Receivers may ignore the property or
refuse the message.
Silent when: a part of the message was not captured, or when the message has a message-format other than 0.
How to mend it: Use only simple types as values of application-properties. Put structured data into the
body, or encode the data as a string.
"""


M_ID_TYPE: Final = RULES.rule(
    "M-ID-TYPE", "MUST", "definition", by="sender", usual_answer="amqp:decode-error", proved="possible"
)
"""A sender uses a message-id or correlation-id whose type is not ulong, uuid, binary or string.

Demands: A message-id or correlation-id must be a ulong, a uuid, a binary or a string.
Source: messaging.xml section message-format > message-id-ulong, message-id-uuid, message-id-binary,
message-id-string, properties.message-id, properties.correlation-id
Evidence: the types of message-id and correlation-id
Why it matters: Receivers cannot compare the identifier with other identifiers. Receivers can neither match
replies to requests nor detect duplicates.
Silent when: a part of the message was not captured, or when the message has a message-format other than 0.
Only possible because: The specification leaves room to read these octets as legal, or a newer
specification may define them.
How to mend it: Encode message-id and correlation-id as ulong, uuid, binary or string. Convert an
identifier of another integer type to ulong, and a symbol to string.
"""


def judge_message(case: Case10, message: Message) -> None:
    """Judge a message that was captured completely."""
    if not message.complete:
        return
    if message.message_format != 0:
        if message.message_format != BATCH_FORMAT and message.outline() > 0:
            sections_in_another_format(case, message.message_format)
        return
    names = [section.name for section in message.sections()]
    for problem in message.problems:
        if problem.code in _STRUCTURE:
            return
    if any(name not in _ORDER for name in names):
        return
    found = case.found
    _judge_order(case, names)
    if case.found == found:
        _judge_body(case, names)
    if case.found == found:
        content.judge_content(case, message.sections())
