"""Frames of the draft of April 2011 as JSON text.

Values, composites and frames are written as in `report.amqp10.json_form`. Fragments stand in the fields of
a transfer without their octets. A message has `format`, `size` and `complete`, its header, properties and
footer by name, and in `body` its other sections, with the values if these are asked for.
"""

from amqpscope.model.records import FrameRecord
from amqpscope.report.amqp10.json_form import Amqp10JsonRenderer, composite_json, value_json
from amqpscope.report.json_renderer import problems_json
from amqpscope.report.links import LinkNames
from amqpscope.tracking.amqp10.identity import Link, carries_tokens
from amqpscope.tracking.amqp10_draft2011.spoken import body_of
from amqpscope.tracking.amqp10_draft2011.translation import octets_of
from dissectors.amqp10.composite import Composite
from dissectors.amqp10_draft2011.message import DraftMessage
from dissectors.amqp10_draft2011.performatives import Properties, Transfer
from dissectors.interface import Frame, Problem
from dissectors.wire import i64

__all__ = ["Draft2011JsonRenderer"]

_NAMED = ("header", "properties", "footer")


def _message_json(message: DraftMessage, hidden: bool, bodies: bool) -> str:
    """A message. hidden: what its sections hold is a secret. bodies: with the values of its body."""
    text = '{"format": ' + str(message.message_format) + ', "size": ' + str(message.size)
    text += ', "complete": true' if message.complete else ', "complete": false'
    body: list[str] = []
    named: list[str] = []
    for section, value in zip(message.sections, message.values(), strict=True):
        name = section.name
        if (
            name in _NAMED
            and name not in named
            and not hidden
            and (value is None or isinstance(value, Composite))
        ):
            named.append(name)
            text += ', "' + name + '": ' + ("null" if value is None else composite_json(value))
            continue
        item = (
            '{"section": "' + name + '", "number": ' + str(section.number) + ', "size": ' + str(section.size)
        )
        if hidden:
            item += f', "value": {{"hidden": {section.size}}}'
        elif bodies:
            item += ', "value": ' + value_json(value)
        body.append(item + "}")
    text += ', "body": [' + ", ".join(body) + "]"
    if message.problems:
        text += ', "problems": ' + problems_json(message.problems, hidden)
    return text + "}"


class Draft2011JsonRenderer(Amqp10JsonRenderer):
    """The draft of April 2011 as data."""

    def guards(self, record: FrameRecord, link: Link | None, names: LinkNames) -> bool:
        frame = record.frame
        if frame.kind == "amqp" and isinstance(frame.body, Transfer):
            # Its fragments are among its octets.
            return bool(frame.problems)
        return super().guards(record, link, names)

    def has_payload(self, frame: Frame) -> bool:
        return isinstance(frame.body, Transfer)

    def payload(self, frame: Frame) -> i64:
        body = frame.body
        return octets_of(body) if isinstance(body, Transfer) else 0

    def message(self, record: FrameRecord, link: Link | None, names: LinkNames, bodies: bool) -> str:
        message = record.message
        assert isinstance(message, DraftMessage)
        return _message_json(message, self.message_hidden(record, link, names, True), bodies)

    def message_hidden(self, record: FrameRecord, link: Link | None, names: LinkNames, whole: bool) -> bool:
        message = record.message
        assert isinstance(message, DraftMessage)
        properties: Properties | None = message.properties()
        if properties is None:
            return False
        to = properties.to
        return properties.subject == "set-token" or (isinstance(to, str) and carries_tokens(to))

    def message_unclear(self, record: FrameRecord) -> bool:
        message = record.message
        assert isinstance(message, DraftMessage)
        message.values()
        return not message.complete or bool(message.problems)

    def message_problems(self, record: FrameRecord) -> list[Problem]:
        message = record.message
        assert isinstance(message, DraftMessage)
        message.values()
        return message.problems

    def reports_error(self, frame: Frame) -> bool:
        return super().reports_error(frame.with_body(body_of(frame)))
