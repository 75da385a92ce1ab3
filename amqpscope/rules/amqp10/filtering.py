"""Filters: a sender's stated filters are compared with its messages (messaging.xml, "filter-set").

The rule examines only filters whose meaning is beyond doubt. It reports only messages that cannot pass: a
name or property is present and has another value than the filter asks for.
"""

import re
from typing import Final

from amqpscope.limits import MAX_FILTERS
from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import LinkEnd
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Properties, Source
from dissectors.amqp10.values import Described, Map, Symbol, ULong

__all__ = ["judge_message"]

RULES: Final = Rules("amqp10/filtering")


# Registered at amqp.org for Apache (legacy exchanges, JMS), and AMQP Filter Expressions 1.0 (OASIS, csd01).
_SUBJECT: Final = ("apache.org:legacy-amqp-direct-binding:string", 0x468C_0000_0000)
_SELECTOR: Final = ("apache.org:selector-filter:string", 0x468C_0000_0004)
_PROPERTIES: Final = ("amqp:properties-filter", 0x173)
_APPLICATION: Final = ("amqp:application-properties-filter", 0x174)

# A selector that compares one property with one text. Names with a dot or with JMS are no properties.
_EQUALS: Final = r"\s*([A-Za-z_]\w*)\s*=\s*'([^']*)'\s*\Z"

_LONGEST: Final = 256
"""The longest selector, in characters, that the rule examines."""


M_FILTER_ACTUAL: Final = RULES.rule(
    "M-FILTER-ACTUAL",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def message_that_fails_its_filter(case: Case10, what: str, wanted: str, sent: str) -> None:
    """A sender sends a message that does not match the filter in the sender's own attach.

    Demands: The sender's attach must list the filters that are really in force.
    Source: messaging.xml section addressing > source.filter
    Evidence: the filter in the sender's attach, and the messages on the link
    Why it matters: The sender's attach says which filter is in force. A receiver that relies on the filter
    processes messages that are not meant for this receiver.
    Silent when: the sender's attach or a part of the message was not captured. The rule is also silent when
    the filter is not one of the simple filters that the rule understands.
    Only possible because: The node may interpret the filter in another way than amqpscope.
    How to mend it: Put into the source of your attach only the filters that you really apply, and leave out
    unsupported filters. Evaluate each accepted filter against every message before you send it.
    """
    case.report_once(
        M_FILTER_ACTUAL,
        f"{what} of the message does not match the filter in the sender's attach",
        POSSIBLE,
        {"field": what, "filter": wanted[:64], "sent": sent[:64]},
    )


def judge_message(case: Case10, link: LinkEnd, message: Message) -> None:
    """Judge a complete message on a link whose sender has stated filters."""
    attach = link.attach
    source = None if attach is None else attach.source
    if message.message_format != 0 or not isinstance(source, Source) or source.filter is None:
        return
    properties: Properties | None = None
    application: Map | None = None
    for section in message.sections():
        value = section.value
        if isinstance(value, Properties):
            properties = value
        elif section.name == "application-properties" and isinstance(value, Map):
            application = value
    for _, described in source.filter.pairs[:MAX_FILTERS]:
        if isinstance(described, Described):
            _judge_filter(case, described, properties, application)


def _judge_filter(
    case: Case10, described: Described, properties: Properties | None, application: Map | None
) -> None:
    value = described.value
    if _is(described, _SUBJECT) and isinstance(value, str):
        if properties is not None and properties.subject is not None:
            _compare(case, "the subject", value, properties.subject)
    elif _is(described, _SELECTOR) and isinstance(value, str):
        equals = re.match(_EQUALS, value[:_LONGEST], re.ASCII) if len(value) <= _LONGEST else None
        if equals is not None and application is not None and not equals[1].startswith("JMS"):
            _compare(case, "an application property", equals[2], application.get(equals[1]))
    elif _is(described, _APPLICATION) and isinstance(value, Map):
        for name, wanted in value.pairs[:MAX_FILTERS]:
            if application is not None and isinstance(name, str):
                _compare(case, "an application property", wanted, application.get(name))
    elif _is(described, _PROPERTIES) and isinstance(value, Map):
        if properties is not None and properties.subject is not None:
            _compare(case, "the subject", value.get("subject"), properties.subject)


def _is(described: Described, filter_type: tuple[str, int]) -> bool:
    descriptor = described.descriptor
    if isinstance(descriptor, ULong):
        return int(descriptor) == filter_type[1]
    return isinstance(descriptor, Symbol) and str(descriptor) == filter_type[0]


def _compare(case: Case10, what: str, wanted: object, sent: object) -> None:
    """Whether the filter asks for this exact text. A text with & or $ in front asks for a beginning or an
    end.
    """
    if isinstance(wanted, str) and isinstance(sent, str) and wanted != sent and wanted[:1] not in ("&", "$"):
        message_that_fails_its_filter(case, what, str(wanted), str(sent))
