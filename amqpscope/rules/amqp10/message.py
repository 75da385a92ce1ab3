"""Messages: which sections, in which order (messaging.xml, "message-format")."""

from typing import Final

from amqpscope.rules.case import Case
from amqpscope.tracking.knowledge import CERTAIN
from dissectors.amqp10.message import Message
from dissectors.amqp10.outline import outline
from dissectors.wire import i64

__all__ = ["judge_message", "plainly_sound"]

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


# One code each: sections before the body, and the footer, go up; the body is one kind.
_BODY_FIRST: Final = 0x75
_BODY_LAST: Final = 0x77


def plainly_sound(message: Message) -> bool:
    """Whether a message can be seen to break no rule of this file without decoding it.

    True for nearly every one. False says nothing: it has to be decoded.
    """
    if not message.complete or message.message_format != 0:
        return False
    codes = outline(message.octets)
    if codes is None:
        return False
    before: i64 = 0
    body: i64 = 0
    for code in codes:
        if code < before or (code == before and code != _BODY_FIRST and code != _BODY_FIRST + 1):
            return False
        if _BODY_FIRST <= code <= _BODY_LAST:
            if body and body != code:
                return False
            body = code
        before = code
    return body != 0


def sections_out_of_order(case: Case, names: list[str]) -> None:
    """The sections of a message are not in their order, or one that stands once stands twice.

    Why it matters: a receiver reads them in order; what comes too late is lost or an error.
    Silent when: the message was not captured whole, or has another format.
    """
    before = -1
    last = ""
    for name in names:
        place = _ORDER[name]
        if place < before:
            case.report(
                "amqp10/M-SECT-ORDER", f"{name} stands behind {last}", CERTAIN, {"sections": names[:16]}
            )
            return
        if place == before and place != 5:
            case.report("amqp10/M-SECT-ONCE", f"{name} stands twice", CERTAIN, {"sections": names[:16]})
            return
        before = place
        last = name


def body_of_wrong_kind(case: Case, names: list[str]) -> None:
    """A message has no body, bodies of several kinds, or several amqp-value sections.

    Why it matters: the body is data, or sequences, or one value.
    Silent when: the message was not captured whole, or has another format.
    """
    kinds = [name for name in names if _ORDER[name] == 5]
    evidence: dict[str, object] = {"sections": names[:16]}
    if not kinds:
        case.report("amqp10/M-BODY-PRESENT", "the message has no body section", CERTAIN, evidence)
    elif any(kind != kinds[0] for kind in kinds):
        case.report("amqp10/M-BODY-NOMIX", "the message mixes kinds of body sections", CERTAIN, evidence)
    elif kinds[0] == "amqp-value" and len(kinds) > 1:
        case.report(
            "amqp10/M-BODY-ONEVALUE", f"the message has {len(kinds)} amqp-value sections", CERTAIN, evidence
        )


def judge_message(case: Case, message: Message) -> None:
    """The rules about a message that was captured whole."""
    if not message.complete or message.message_format != 0:
        return
    names = [section.name for section in message.sections()]
    for problem in message.problems:
        if problem.code in _STRUCTURE:
            return
    if any(name not in _ORDER for name in names):
        return
    sections_out_of_order(case, names)
    body_of_wrong_kind(case, names)
