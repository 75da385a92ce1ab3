"""Messages: which sections, in which order (messaging.xml, "message-format")."""

from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10 import content
from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.proof import proved
from dissectors.amqp10.message import BATCH_FORMAT, Message
from dissectors.amqp10.outline import SECTIONS, TYPED
from dissectors.interface import Problem
from dissectors.wire import i64

__all__ = ["PROBLEMS", "judge_message", "plainly_sound"]

_ORDER = {
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

# Faults after which it is not known which sections there are.
_STRUCTURE = ("T-SIZE-OVERRUN", "T-DESC-CTOR", "T-CODE-UNKNOWN", "T-CODE-EXT", "limit")


# What `outline` calls sections: those before the body, and the footer, go up; the body is one kind.
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


def section_out_of_order(case: Case, name: str, last: str, names: list[str]) -> None:
    """A section of a message stands behind one that it belongs before.

    Why it matters: a receiver reads them in order; what comes too late is lost or an error.
    Silent when: the message was not captured whole, or has another format.
    """
    case.report("amqp10/M-SECT-ORDER", f"{name} stands behind {last}", CERTAIN, {"sections": names[:16]})


def section_twice(case: Case, name: str, names: list[str]) -> None:
    """A section of a message that may stand there once stands twice.

    Why it matters: which of them holds is left to chance.
    Silent when: the message was not captured whole, or has another format.
    """
    case.report("amqp10/M-SECT-ONCE", f"{name} stands twice", CERTAIN, {"sections": names[:16]})


def message_without_body(case: Case, names: list[str]) -> None:
    """A message has no body.

    Why it matters: an empty message has an empty body section, too.
    Silent when: the message was not captured whole, or has another format.
    """
    case.report("amqp10/M-BODY-PRESENT", "the message has no body section", CERTAIN, {"sections": names[:16]})


def bodies_of_several_kinds(case: Case, names: list[str]) -> None:
    """A message mixes data, sequences and values in its body.

    Why it matters: the body is one kind of these.
    Silent when: the message was not captured whole, or has another format.
    """
    case.report(
        "amqp10/M-BODY-NOMIX", "the message mixes kinds of body sections", CERTAIN, {"sections": names[:16]}
    )


def several_values_as_body(case: Case, names: list[str], count: int) -> None:
    """A message has several amqp-value sections.

    Why it matters: the body is one value.
    Silent when: the message was not captured whole, or has another format.
    """
    case.report(
        "amqp10/M-BODY-ONEVALUE",
        f"the message has {count} amqp-value sections",
        CERTAIN,
        {"sections": names[:16]},
    )


def _judge_order(case: Case, names: list[str]) -> None:
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


def _judge_body(case: Case, names: list[str]) -> None:
    kinds = [name for name in names if _ORDER[name] == 5]
    if not kinds:
        message_without_body(case, names)
    elif any(kind != kinds[0] for kind in kinds):
        bodies_of_several_kinds(case, names)
    elif kinds[0] == "amqp-value" and len(kinds) > 1:
        several_values_as_body(case, names, len(kinds))


def value_that_is_no_section(case: Case, problem: Problem) -> None:
    """A value in a message is none of the nine sections.

    Why it matters: a receiver does not know where it belongs.
    Silent when: the message was not captured whole, or has another format.
    Only possible because: These octets can also be read as legal: the text leaves room, or a newer one
    defines them.
    """
    proved(case, "amqp10/M-SECT-KNOWN", problem)


def octets_that_begin_no_section(case: Case, problem: Problem) -> None:
    """Where a message should begin, go on or end stand octets that begin no section.

    Why it matters: a receiver can only refuse the message, or lose what they were to say.
    Silent when: the message was not captured whole, or has another format. A section that is cut off is found
    by T-SIZE-OVERRUN.
    """
    proved(case, "amqp10/M-PAYLOAD-WHOLE", problem)


def sections_in_another_format(case: Case, message_format: i64) -> None:
    """A message says that it is of another format than 0, and consists of the sections of format 0.

    Why it matters: a receiver that does not know the format refuses the message, or hands it on unread.
    Silent when: the message was not captured whole, or the format is the batch of Event Hubs.
    Only possible because: Another format may have the same sections.
    """
    message = f"the message-format is 0x{message_format:x}, the message a sound one of format 0"
    case.report_once("amqp10/M-FMT-ZERO", message, POSSIBLE, {"message_format": int(message_format)})


def section_of_another_type(case: Case, problem: Problem) -> None:
    """A section wraps a value of another type than its own.

    Why it matters: a receiver can only refuse the message.
    Silent when: the message was not captured whole, or has another format.
    """
    proved(case, "amqp10/M-SECT-TYPE", problem)


def annotation_with_key_of_another_type(case: Case, problem: Problem) -> None:
    """A key of annotations or of a footer is neither symbol nor ulong.

    Why it matters: nobody will find the entry.
    Silent when: the message was not captured whole, or has another format.
    """
    proved(case, "amqp10/M-ANN-KEYTYPE", problem)


def application_property_with_key_that_is_no_string(case: Case, problem: Problem) -> None:
    """A key of the application properties is no string.

    Why it matters: selectors and receivers cannot name it.
    Silent when: the message was not captured whole, or has another format.
    """
    proved(case, "amqp10/M-AP-KEY", problem)


def application_property_with_compound_value(case: Case, problem: Problem) -> None:
    """The value of an application property is a map, list or array.

    Why it matters: only simple values can be compared and filtered.
    Silent when: the message was not captured whole, or has another format.
    """
    proved(case, "amqp10/M-AP-VALUE", problem)


def message_id_of_another_type(case: Case, problem: Problem) -> None:
    """A message-id or correlation-id is none of ulong, uuid, binary, string.

    Why it matters: it cannot be matched.
    Silent when: the message was not captured whole, or has another format.
    Only possible because: These octets can also be read as legal: the text leaves room, or a newer one
    defines them.
    """
    proved(case, "amqp10/M-ID-TYPE", problem)


def judge_message(case: Case, message: Message) -> None:
    """The rules about a message that was captured whole."""
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


# What the dissector's problems break, by their code.
PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {
    "M-SECT-KNOWN": value_that_is_no_section,
    "M-PAYLOAD-WHOLE": octets_that_begin_no_section,
    "M-SECT-TYPE": section_of_another_type,
    "M-ANN-KEYTYPE": annotation_with_key_of_another_type,
    "M-AP-KEY": application_property_with_key_that_is_no_string,
    "M-AP-VALUE": application_property_with_compound_value,
    "M-ID-TYPE": message_id_of_another_type,
}

RULES = {
    "amqp10/M-SECT-ORDER": section_out_of_order,
    "amqp10/M-SECT-ONCE": section_twice,
    "amqp10/M-BODY-PRESENT": message_without_body,
    "amqp10/M-BODY-NOMIX": bodies_of_several_kinds,
    "amqp10/M-BODY-ONEVALUE": several_values_as_body,
    "amqp10/M-SECT-KNOWN": value_that_is_no_section,
    "amqp10/M-PAYLOAD-WHOLE": octets_that_begin_no_section,
    "amqp10/M-FMT-ZERO": sections_in_another_format,
    "amqp10/M-SECT-TYPE": section_of_another_type,
    "amqp10/M-ANN-KEYTYPE": annotation_with_key_of_another_type,
    "amqp10/M-AP-KEY": application_property_with_key_that_is_no_string,
    "amqp10/M-AP-VALUE": application_property_with_compound_value,
    "amqp10/M-ID-TYPE": message_id_of_another_type,
}
