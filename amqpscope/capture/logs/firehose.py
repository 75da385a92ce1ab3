"""Logs of RabbitMQ's plugin `rabbitmq_tracing`, which writes what the firehose tells: messages, no frames.

As text, a message is a line of 80 `=`, a line with its time, fields with names, and its payload as it is:

    2026-11-29T00:52:59.208+00:00: Message published

    Connection:   127.0.0.1:54260 -> 127.0.0.9:5672
    Exchange:     logs-x
    Routing keys: [<<"a.b">>]
    Payload:
    body

As JSON, it is an object in one line, with its payload in base64. Of a connection the log has nothing but its
name. So no frame is made of a message, and nothing is judged.
"""

import binascii
import json
import re
from typing import Final

from amqpscope.capture.file_reader import FileReader
from amqpscope.capture.logs.stamps import time_of
from amqpscope.capture.notes import Notes
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.traced import TracedMessage
from amqpscope.limits import (
    MAX_LOG_LINE,
    MAX_TRACED_FIELDS,
    MAX_TRACED_LINES,
    MAX_TRACED_NAMES,
    MAX_TRACED_OCTETS,
)
from dissectors.wording import count

__all__ = ["TraceReader", "trace_reader"]

_RULE: Final = b"=" * 80
_HEAD: Final = re.compile(rb"(\d{4}-[^ ]{5,40}(?: [0-9:.]{5,20})?): Message (published|received)\r?$")
_FIELD: Final = re.compile(rb"([A-Z][a-z]{1,11}(?: [a-z]{4,6})?): {0,20}(.*)$", re.DOTALL)
_TOKEN: Final = re.compile(r"<<\"((?:[^\"\\]|\\.)*)\">>|[\[\]{}]|(?<=,)-?\d{1,20}(?=\})")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_JSON: Final = re.compile(rb"^\s{0,9}\{")
_LIKE_JSON: Final = b'{"channel":'
_NAMES: Final = {
    "content_type": "content-type",
    "content_encoding": "content-encoding",
    "delivery_mode": "delivery-mode",
    "priority": "priority",
    "correlation_id": "correlation-id",
    "reply_to": "reply-to",
    "expiration": "expiration",
    "message_id": "message-id",
    "timestamp": "timestamp",
    "type": "type",
    "user_id": "user-id",
    "app_id": "app-id",
}
"""The properties that are shown, and what the specification calls them."""


def trace_reader(opening: bytes, sink: SegmentSink) -> "TraceReader | None":
    """A reader for the log that begins with these octets, None if it is no log of traced messages."""
    trial = TraceReader(SegmentSink())
    trial.feed(opening)
    return TraceReader(sink) if trial.is_one() else None


class TraceReader(FileReader):
    """Reads a log. `number`: the line at hand."""

    def __init__(self, sink: SegmentSink) -> None:
        super().__init__()
        self._sink = sink
        self._notes = Notes(sink)
        # The beginning of a line whose end has not come. Of one that is too long, the rest is only counted.
        self._carry = b""
        self._too_long = False
        self._dropped = 0
        # The line before was a line of `=`.
        self._ruled = False
        # The message at hand, as text: it, its fields, and whether its payload has begun.
        self._message: TracedMessage | None = None
        self._fields: dict[str, list[str]] = {}
        self._field = ""
        self._kept = 0  # octets of these
        self._in_payload = False
        # Octets of the payload so far, and those of lines that belong to it unless the next message begins.
        self._size = 0
        self._doubtful = 0
        self._messages = 0
        self._others = 0
        self._finished = False

    def is_one(self) -> bool:
        """Whether there is a message in what was fed."""
        return self._messages > 0 or self._in_payload

    def feed(self, block: bytes) -> None:
        parts = block.split(b"\n")
        for at, part in enumerate(parts):
            if self._too_long:
                self._dropped += len(part)
            else:
                self._carry += part
                if len(self._carry) > MAX_LOG_LINE:
                    self._too_long = True
                    self._dropped = len(self._carry)
                    self._carry = b""
            if at + 1 == len(parts):
                return
            self._end_line(1)

    def _end_line(self, newline: int) -> None:
        self.number += 1
        line, self._carry = self._carry, b""
        dropped, self._dropped = self._dropped, 0
        too_long, self._too_long = self._too_long, False
        if too_long and not self._in_payload:
            self._damage("the line is too long")
            return
        self._line(line, (dropped if too_long else len(line)) + newline)

    def _line(self, line: bytes, size: int) -> None:
        """The line of number `self.number`. size: its octets with the end of the line."""
        head = _HEAD.match(line) if self._ruled else None
        if head is not None:
            self._doubtful = 0
            self._end_message()
            self._message = TracedMessage(int(self.number), _time(head[1]), head[2] == b"published")
            self._ruled = False
            return
        self._ruled = line.rstrip(b"\r") == _RULE
        if self._in_payload:
            self._size += self._doubtful
            self._doubtful = size
            if not self._ruled:
                self._size += self._doubtful
                self._doubtful = 0
        elif self._ruled:
            if self._message is not None:
                self._end_message()
        elif self._message is not None:
            self._field_line(line)
        elif _JSON.match(line):
            self._json(line)
        elif line.strip():
            self._others += 1

    def _field_line(self, line: bytes) -> None:
        found = _FIELD.match(line)
        if found is None:
            if self._field and line.startswith(b" ") and len(self._fields[self._field]) < MAX_TRACED_LINES:
                self._fields[self._field].append(self._text(line))
            return
        self._field = found[1].decode()
        if self._field == "Payload":
            self._in_payload = True
            self._size = self._doubtful = 0
            return
        if len(self._fields) < MAX_TRACED_FIELDS:
            self._fields[self._field] = [self._text(found[2]).rstrip("\r")]
        else:
            self._field = ""

    def _text(self, octets: bytes) -> str:
        """What is kept of a text of the message at hand."""
        octets = octets[: max(MAX_TRACED_OCTETS - self._kept, 0)]
        self._kept += len(octets)
        return octets.decode("utf-8", "replace")

    def _end_message(self) -> None:
        """Give the message at hand, which is text."""
        message = self._message
        fields = {name: "".join(lines) for name, lines in self._fields.items()}
        whole = self._in_payload
        self._message, self._fields, self._field, self._in_payload = None, {}, "", False
        self._kept = 0
        if message is None:
            return
        if not whole:
            self._damage("the message in this line is incomplete")
            return
        message.connection = fields.get("Connection", "")
        message.virtual_host = fields.get("Virtual host", "")
        message.user = fields.get("User", "")
        message.exchange = fields.get("Exchange", "")
        channel = fields.get("Channel", "")
        message.channel = (
            int(channel) if channel.isascii() and channel.isdecimal() and len(channel) < 6 else -1
        )
        message.routing_keys = _erlang_texts(fields.get("Routing keys", ""))
        queue = fields.get("Queue", "")
        message.queues = [queue] if queue else _erlang_texts(fields.get("Routed queues", ""))
        message.properties = _erlang_properties(fields.get("Properties", ""))
        # Behind the payload stand an empty line and the end of its own last line.
        message.size = max(0, self._size - 2)
        self._give(message)

    def _json(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            said = None
        kind = said.get("type") if isinstance(said, dict) else None
        if not isinstance(said, dict) or kind not in ("published", "received") or "routing_keys" not in said:
            if said is None and line.lstrip().startswith(_LIKE_JSON):
                self._damage("the message in this line cannot be read")
            else:
                self._others += 1
            return
        message = TracedMessage(
            int(self.number), time_of(str(said.get("timestamp", ""))), kind == "published"
        )
        message.connection = _text(said.get("connection"))
        message.virtual_host = _text(said.get("vhost"))
        message.user = _text(said.get("user"))
        message.exchange = _text(said.get("exchange"))
        channel = said.get("channel")
        message.channel = channel if isinstance(channel, int) and 0 <= channel <= 0xFFFF else -1
        message.routing_keys = _texts(said.get("routing_keys"))
        message.queues = _texts(said.get("routed_queues") if message.published else [said.get("queue")])
        properties = said.get("properties")
        if isinstance(properties, dict):
            message.properties = [
                (name, str(properties[key])[:MAX_TRACED_NAMES])
                for key, name in _NAMES.items()
                if isinstance(properties.get(key), (str, int))
            ]
        message.size = _octets(said.get("payload"))
        self._give(message)

    def _give(self, message: TracedMessage) -> None:
        self._messages += 1
        self._sink.traced(message)

    def _damage(self, what: str) -> None:
        self._notes.add("capture/log-damaged", self.number, 0, what)

    def finish(self) -> None:
        if self._finished:
            return
        self._finished = True
        if self._carry or self._too_long:
            self._end_line(0)
        if self._in_payload:
            self._size += self._doubtful
        self._size += 1  # no empty line stands behind the last message
        self._end_message()
        what = (
            f"a log of messages that RabbitMQ has traced, not a capture: {count(self._messages, 'message')}"
        )
        if self._others:
            what += f"; {count(self._others, 'line')} with other content skipped"
        what += "; the log has no frames, so amqpscope cannot check the protocol"
        self._notes.add("capture/log", 0, 0, what)
        self._notes.finish()


def _time(octets: bytes) -> int:
    return time_of(octets.decode("ascii", "replace"))


def _erlang_tokens(text: str) -> list[str]:
    """What stands in an Erlang term: brackets, texts behind a quote, and numbers."""
    found: list[str] = []
    for token in _TOKEN.finditer(text):
        if len(found) >= MAX_TRACED_NAMES:
            break
        found.append(token[0] if token[1] is None else '"' + _ESCAPED.sub(r"\1", token[1]))
    return found


def _erlang_texts(text: str) -> list[str]:
    """The texts in a list: `[<<"a.b">>]`."""
    return [one[1:] for one in _erlang_tokens(text) if one.startswith('"')]


def _erlang_properties(text: str) -> list[tuple[str, str]]:
    """The properties in a list: `[{<<"priority">>,signedint,1}]`. What is in a table is passed over."""
    found: dict[str, str] = {}
    depth, name = 0, ""
    for token in _erlang_tokens(text):
        if token in ("[", "{"):
            depth += 1
            name = "" if depth == 2 else name
        elif token in ("]", "}"):
            depth -= 1
        elif depth == 2:
            plain = token.removeprefix('"')
            if name:
                found.setdefault(name, plain)
            else:
                name = _NAMES.get(plain, "?")
    return [(name, found[name]) for name in _NAMES.values() if name in found]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    return (
        [one for one in value[:MAX_TRACED_NAMES] if isinstance(one, str)] if isinstance(value, list) else []
    )


def _octets(payload: object) -> int:
    """How many octets a text in base64 stands for, -1 if it is none."""
    try:
        return len(binascii.a2b_base64(payload)) if isinstance(payload, str) else -1
    except (binascii.Error, ValueError):
        return -1
