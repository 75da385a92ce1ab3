"""Frames for people: what a line of the timeline, and what stands below it, has to know of a protocol.

A `TextRenderer` is the one place for that a protocol has; `text_renderers` says which one a frame's kind
belongs to.
`TextRenderer` itself serves the frames that are of no protocol: headers, and what was skipped.
"""

from typing import ClassVar

from mypy_extensions import mypyc_attr

from amqpscope.report.details import LONGEST, tree
from amqpscope.report.line import Line, Pen, margin
from amqpscope.report.value_text import ValueText, hidden_text
from amqpscope.tracking.amqp10.identity import Link
from dissectors.interface import Body, Frame
from dissectors.protocol_header import ProtocolHeader
from dissectors.wording import count

__all__ = ["TextRenderer"]


@mypyc_attr(allow_interpreted_subclasses=True)
class TextRenderer:
    """How the frames of one protocol are reported. text: how its values are."""

    text: ClassVar[ValueText] = ValueText()

    name_width = 11
    """Columns of the frames' names; longer ones stand out."""

    def style(self, frame: Frame) -> str:
        """The style of a frame's name."""
        return "problem" if frame.kind == "skipped" else "name"

    def line(self, frame: Frame, link: Link | None, message: object, vague: bool) -> Line:
        """The part of a frame's line behind its name. message: what it completes, or None.

        vague: its octets may be a secret; show only numbers.
        """
        if isinstance(frame.body, ProtocolHeader):
            return _header(frame.body)
        return _skipped(frame) if frame.kind == "skipped" else [("", count(frame.size, "octet"))]

    def write(self, pen: Pen, frame: Frame, link: Link | None, message: object, vague: bool) -> None:
        """The same, put down with a pen, for who shows very many frames."""
        pen.put_line(self.line(frame, link, message, vague))

    def hides_all(self, frame: Frame, guarded: bool) -> bool:
        """Whether any field of the frame may be a secret. guarded: its octets may be."""
        return guarded

    def guarded_value(self, value: object) -> str:
        """What is shown of a field that may be a secret."""
        return hidden_text(value)

    def fields(self, frame: Frame, guarded: bool, verbosity: int) -> list[Line]:
        """All fields, one a line. guarded: the frame's octets may be a secret."""
        body = frame.body
        if not isinstance(body, Body) or isinstance(body, ProtocolHeader):
            return []  # the line has reported all of a header
        lines: list[Line] = []
        if self.hides_all(frame, guarded):
            for field, value in body.fields():
                lines.append([margin(0), ("key", f"{field.name}: "), ("", self.guarded_value(value))])
            return lines
        tree(lines, body, self.text, 0, LONGEST if verbosity < 2 else 0)
        return lines

    def shown_octets(self, frame: Frame) -> bytes:
        """The octets of a malformed frame that may be shown if no secret is in them: without message."""
        raw = frame.raw  # a copy, perhaps of megabytes
        behind = len(raw) - int(frame.trailer)
        return raw[: behind - int(frame.payload_size)] + raw[behind:]

    def content(self, message: object, hidden: bool, verbosity: int) -> list[Line]:
        """A message that a frame ends. hidden: its body is a secret. A verbosity of 2 shows bodies."""
        return []

    def message_octets(self, message: object, hidden: bool) -> list[Line]:
        """The octets of a malformed message."""
        return []


def _header(header: ProtocolHeader) -> Line:
    named = header.protocol()
    version = f"{header.major}.{header.minor}.{header.revision}"
    if named == "unknown":
        return [("problem", f"AMQP {version} "), ("", f"with protocol id {header.protocol_id}, not known")]
    return [("", f"{named.split()[0]} {version}" if named in ("AMQP 1.0", "SASL", "TLS") else named)]


def _skipped(frame: Frame) -> Line:
    if frame.name == "tls":
        return [("", f"{count(frame.size, 'octet')} of TLS, not decrypted")]
    captured = frame.size - frame.missing
    if not captured:
        return [("", f"{count(frame.size, 'octet')} not captured")]
    missing = f", {frame.missing} more not captured" if frame.missing else ""
    return [("", f"{count(captured, 'octet')} in which no frame was found{missing}")]
