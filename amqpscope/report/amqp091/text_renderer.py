"""AMQP 0-9-1 for people."""

from typing import ClassVar

from amqpscope.report.amqp091 import brief
from amqpscope.report.amqp091.secrets import hides_all
from amqpscope.report.amqp091.value_text import TEXT
from amqpscope.report.details import data
from amqpscope.report.line import Line, Pen, margin
from amqpscope.report.text_renderer import TextRenderer
from amqpscope.report.value_text import ValueText
from amqpscope.tracking.amqp10.identity import Link
from dissectors.amqp091.message import Amqp091Message
from dissectors.interface import Frame
from dissectors.wording import count

__all__ = ["Amqp091TextRenderer"]

_CLASS_STYLES = {"connection": "sasl", "channel": "name", "basic": "transfer"}

_NAME_STYLES = {
    "connection.open": "name",
    "connection.open-ok": "name",
    "connection.close": "end",
    "connection.close-ok": "end",
    "connection.blocked": "flow",
    "connection.unblocked": "flow",
    "channel.flow": "flow",
    "channel.flow-ok": "flow",
    "channel.close": "end",
    "channel.close-ok": "end",
    "basic.qos": "flow",
    "basic.qos-ok": "flow",
    "basic.consume": "name",
    "basic.consume-ok": "name",
    "basic.cancel": "end",
    "basic.cancel-ok": "end",
    "content-header": "transfer",
    "body": "transfer",
    "heartbeat": "dim",
    "undecodable": "problem",
    "unknown": "problem",
}


class Amqp091TextRenderer(TextRenderer):
    """How frames of AMQP 0-9-1 are reported."""

    text: ClassVar[ValueText] = TEXT

    name_width = 14  # of content-header; the longer names of methods stand out of their column

    def style(self, frame: Frame) -> str:
        name = frame.name
        return _NAME_STYLES.get(name) or _CLASS_STYLES.get(name.partition(".")[0], "name")

    def line(self, frame: Frame, link: Link | None, message: object, vague: bool) -> Line:
        return brief.details(frame, message if isinstance(message, Amqp091Message) else None, vague)

    def write(self, pen: Pen, frame: Frame, link: Link | None, message: object, vague: bool) -> None:
        brief.write(pen, frame, message if isinstance(message, Amqp091Message) else None, vague)

    def hides_all(self, frame: Frame, guarded: bool) -> bool:
        return hides_all(frame, guarded)

    def shown_octets(self, frame: Frame) -> bytes:
        if frame.kind == "body":
            return super().shown_octets(frame)
        return frame.raw  # what stands behind the arguments is no message

    def content(self, message: object, hidden: bool, verbosity: int) -> list[Line]:
        if not isinstance(message, Amqp091Message):
            return []
        head = f"message of {count(message.seen, 'octet')}"
        if not message.complete:
            head += ", not all of it captured or sent"
        lines: list[Line] = [[margin(0), ("key", head)]]
        if message.method is not None:
            lines.append([margin(1), ("key", "method: "), ("", message.method.definition().name)])
        if verbosity < 2:
            lines.append(
                [margin(1), ("key", "body: "), ("dim", f"{count(message.seen, 'octet')} (-vv shows them)")]
            )
            return lines
        body = message.body
        kept = "" if len(body) == message.seen else f", shown are the first {len(body)}"
        lines.append([margin(1), ("key", "body: "), ("dim", f"{count(message.seen, 'octet')}{kept}")])
        return lines + (data(body, 2) if body else [])
