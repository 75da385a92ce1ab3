"""AMQP 1.0 for people."""

from typing import ClassVar

from amqpscope.report.amqp10 import brief, details
from amqpscope.report.amqp10.value_text import TEXT
from amqpscope.report.line import Line, Pen
from amqpscope.report.text_renderer import TextRenderer
from amqpscope.report.value_text import ValueText, hidden_text
from amqpscope.tracking.amqp10.identity import Link
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.message import Message
from dissectors.interface import Frame

__all__ = ["Amqp10TextRenderer"]

_NAME_STYLES = {
    "transfer": "transfer",
    "disposition": "transfer",
    "flow": "flow",
    "detach": "end",
    "end": "end",
    "close": "end",
    "undecodable": "problem",
    "empty": "dim",
}


class Amqp10TextRenderer(TextRenderer):
    """How frames of AMQP 1.0 are reported."""

    text: ClassVar[ValueText] = TEXT

    name_width = 11  # of disposition; the longer names of SASL frames stand out of their column

    def style(self, frame: Frame) -> str:
        if frame.kind == "sasl" and frame.name != "undecodable":
            return "sasl"
        return _NAME_STYLES.get(frame.name, "name")

    def line(self, frame: Frame, link: Link | None, message: object, vague: bool) -> Line:
        return brief.details(frame, link, message if isinstance(message, Message) else None, vague)

    def write(self, pen: Pen, frame: Frame, link: Link | None, message: object, vague: bool) -> None:
        brief.write(pen, frame, link, message if isinstance(message, Message) else None, vague)

    def hides_all(self, frame: Frame, guarded: bool) -> bool:
        body = frame.body
        return guarded and not (isinstance(body, Composite) and body.definition().is_sasl_frame)

    def guarded_value(self, value: object) -> str:
        return TEXT.value(value) if isinstance(value, (int, bool)) else hidden_text(value)

    def content(self, message: object, hidden: bool, verbosity: int) -> list[Line]:
        return details.content(message, hidden, verbosity) if isinstance(message, Message) else []

    def message_octets(self, message: object, hidden: bool) -> list[Line]:
        return details.message_octets(message, hidden) if isinstance(message, Message) else []
