"""Frames as data: what JSON, tables and filters need to know of a protocol, in one place per protocol.

A `JsonRenderer` is this place; `json_renderers` chooses the renderer for the kind of a frame. This module has
what is the same for all protocols. `JsonRenderer` itself serves frames without a protocol: headers, and
skipped octets.
"""

import math
from json.encoder import encode_basestring_ascii as quote
from typing import Final

from amqpscope.model.passwords import without_password
from amqpscope.model.records import FrameRecord
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.report.links import LinkNames
from amqpscope.report.secrets import problem_path, size_of
from amqpscope.tracking.amqp10.identity import Link
from dissectors.interface import Frame, Problem
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

__all__ = ["JsonRenderer", "float_json", "hidden_json", "problems_json", "text_json"]

_NO_PROBLEMS: Final[list[Problem]] = []
_NOWHERE: Final[list[str]] = []


def text_json(text: str) -> str:
    """A string of the wire."""
    return quote(without_password(text) if "://" in text else text)


def float_json(number: float, name: str) -> str:
    """A `float` or a `double`, as the name says. JSON has no form for infinity and what is no number."""
    text = repr(float(number))
    if not math.isfinite(number):
        return '{"' + name + '": "' + text + '"}'
    return text if name == "double" else '{"float": ' + text + "}"


def hidden_json(value: object) -> str:
    """The placeholder of a secret."""
    return '{"hidden": ' + str(size_of(value)) + "}"


def problems_json(problems: list[Problem], guarded: bool) -> str:
    """The contract's `problems` of a frame or message. guarded: its octets may be a secret."""
    if not problems:
        return "[]"
    items = [
        f'{{"code": "{p.code}", "offset": {p.offset}, "path": {quote(problem_path(p, guarded))}, '
        f'"reason": {quote(p.reason)}}}'
        for p in problems
    ]
    return "[" + ", ".join(items) + "]"


class JsonRenderer:
    """The frames of one protocol as data. One object serves the frames of one capture, in their order."""

    def names(self) -> tuple[str, ...]:
        """The names of these frames, in the specification's order."""
        return ()

    def guards(self, record: FrameRecord, link: Link | None, names: LinkNames) -> bool:
        """Whether octets of this frame may be a secret, so that it is reported without them.

        names: has been asked for the link of every record before this one.
        """
        frame = record.frame
        if frame.kind != "header":
            return True  # what was skipped may hold anything
        return bool(frame.problems) and names.may_hold_token(record, link)

    def fields(self, frame: Frame, guarded: bool) -> str:
        """The contract's `fields` of a frame, as JSON. guarded: what `guards` says of it."""
        body = frame.body
        if isinstance(body, ProtocolHeader):
            return (
                f'{{"protocol": "{body.protocol()}", "protocol-id": {body.protocol_id}, '
                f'"major": {body.major}, "minor": {body.minor}, "revision": {body.revision}}}'
            )
        return "{}"

    def has_payload(self, frame: Frame) -> bool:
        """Whether its payload is a message, or part of one."""
        return False

    def payload(self, frame: Frame) -> i64:
        """The octets of message in a frame that `has_payload`."""
        return frame.payload_size

    def message(self, record: FrameRecord, link: Link | None, names: LinkNames, bodies: bool) -> str:
        """The contract's `message` of a frame that completes one, as JSON. bodies: with its body."""
        return "null"

    def message_hidden(self, record: FrameRecord, link: Link | None, names: LinkNames, whole: bool) -> bool:
        """Whether the body of the message that this frame completes is a secret. whole: it is asked for."""
        return False

    def message_unclear(self, record: FrameRecord) -> bool:
        """Whether parts of this frame's message may be other than they seem."""
        return False

    def message_problems(self, record: FrameRecord) -> list[Problem]:
        """What is malformed in the message that this frame completes."""
        return _NO_PROBLEMS

    def summarize(self, summary: ConnectionOverview, record: FrameRecord, link: Link | None) -> None:
        """Put into a connection's summary what a frame says."""

    def addresses(self, frame: Frame) -> list[str] | None:
        """What a frame without a link names that messages go to or come from.

        None: it goes on with what its sender said before on the channel.
        """
        return _NOWHERE

    def condition(self, condition: str) -> str:
        """The condition of an error for people, with its name if it is a number."""
        return condition

    def reports_error(self, frame: Frame) -> bool:
        """Whether a frame says that something failed: an error, a refused delivery or login."""
        return False
