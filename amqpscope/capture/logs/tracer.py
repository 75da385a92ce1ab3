"""Logs of the Tracer of RabbitMQ's Java client (com.rabbitmq.tools.Tracer), AMQP 0-9-1:

    1795913115184: <Tracer-0> ch#0 -> {#method<connection.open>(virtual-host=/, capabilities=, ...), null, ""}

The Tracer stands between a client and a server: `->` is what the client sends. A line is a method with its
content header and its body. With NO_ASSEMBLE_FRAMES it is one frame, with NO_DECODE_FRAME nothing but the
type of a frame. Values are printed without quotes, so the types of what stands in a table are not known,
and a text that is "null" may be none. A body may have any lines in it and is not read. The time is
milliseconds since 1970. The protocol header is not printed.

The class is not in the packages that install here: the line is that of its source
(github.com/rabbitmq/rabbitmq-java-client: src/main/java/com/rabbitmq/tools/Tracer.java, up to release 4). The
text of a method was printed by the client library itself.

Each direction is printed by a thread of its own, after it was passed on. So an answer may stand before its
question: `causes` puts that right, and `ordered` is False.
"""

import re
from typing import Final

from amqpscope.capture.logs.causes091 import Causes091
from amqpscope.capture.logs.encoding import UNLOGGED
from amqpscope.capture.logs.encoding091 import (
    GREETING,
    HEARTBEAT,
    content_header,
    method,
    method_type,
)
from amqpscope.capture.logs.entries import CONTINUES, DAMAGED, LOST, Entry, LineFormat, Spoken
from amqpscope.capture.logs.ordered import pieces
from amqpscope.capture.unlogged import HEADERS, TIMESTAMP
from dissectors.amqp091.arguments import ArgumentField, MethodType
from dissectors.amqp091.methods import BASIC_PROPERTIES

__all__ = ["TracerFrames"]

_LINE: Final = re.compile(
    r"(?:^|[^\d])(\d{10,14}): ?<([^<>\s]{1,100})> ch#(\d{1,5}) (->|<-) (.*)$", re.DOTALL
)
_LIKE: Final = re.compile(r"(?:^|[^\d])\d{10,14}: ?<([^<>\s]{1,100})>? ?(.{0,20})", re.DOTALL)
_METHOD: Final = re.compile(r"\{?#method<([a-z]{2,12}\.[a-z-]{2,16})>\(", re.ASCII)
_CONTENT: Final = re.compile(r"\), ?#contentHeader<basic>\(")
_NO_CONTENT: Final = re.compile(r"\)(?:, ?null, ?(?:\"\"|0 bytes of payload)\})?$", re.ASCII)
_HEADER: Final = re.compile(r"Expected body size: \d{1,20}; #contentHeader<basic>\(", re.ASCII)
_FRAME: Final = re.compile(
    r"(?:\(withheld\) )?Frame\(type=(\d{1,3}), channel=\d{1,5}, \d{1,10} bytes", re.ASCII
)
_PROPERTY: Final = re.compile(r"(?:^|, )([A-Za-z][A-Za-z0-9_.-]{0,63})=", re.ASCII)
_RESERVED: Final = {
    "connection.open": {"reserved-1": "capabilities", "reserved-2": "insist"},
    "connection.open-ok": {"reserved-1": "known-hosts"},
    "channel.open": {"reserved-1": "out-of-band"},
    "channel.open-ok": {"reserved-1": "channel-id"},
    "exchange.declare": {"reserved-1": "ticket", "reserved-2": "auto-delete", "reserved-3": "internal"},
    "basic.get-empty": {"reserved-1": "cluster-id"},
}
"""What the library calls the reserved fields of a method; of all others "ticket"."""
_CONTENT_ENDS: Final = '"}'
_WITH_CONTENT: Final = ("basic.publish", "basic.deliver", "basic.return", "basic.get-ok")
_HEARTBEAT: Final = "8"
_BODY: Final = "3"
_NULL: Final = "null"
_SIGNED: Final = {"long": 1 << 32, "longlong": 1 << 64}
_TABLES: Final = ("client-properties", "server-properties")


class TracerFrames(LineFormat):
    """What the Tracer prints."""

    library = "RabbitMQ's Java Tracer"
    prints_headers = False
    exact = False
    ordered = False
    of_client = True
    greeting = GREETING
    causes = Causes091

    def __init__(self) -> None:
        # The line at hand is of the body of a message.
        self._in_body = False

    def take(self, line: str) -> Entry | Spoken | None:
        found = _LINE.search(line) if " ch#" in line else None
        if found is None:
            return self._other(line)
        torn = self._in_body
        time, connection, channel, arrow, text = found.groups()
        sent = arrow == "->"
        moment = int(time) * 1_000_000
        self._in_body = False
        if torn:
            # Where the body before ends is not known: this line may be one of it.
            return DAMAGED
        lost = Entry(connection, sent, LOST, b"", moment)
        if int(channel) > 0xFFFF:
            return lost
        try:
            said = self._said(int(channel), text.rstrip())
        except ValueError:
            return lost
        return said if isinstance(said, Spoken) else Entry(connection, sent, said[0], said[1], moment)

    def _said(self, channel: int, text: str) -> tuple[str, bytes] | Spoken:
        """The name and the octets of what a line holds. Raises ValueError."""
        frame = _FRAME.match(text)
        if frame is not None:
            if frame[1] == _BODY:
                return CONTINUES
            if frame[1] != _HEARTBEAT:
                raise ValueError("not decoded")
            return "heartbeat", HEARTBEAT
        header = _HEADER.match(text)
        if header is not None:
            if not text.endswith(")"):
                raise ValueError("no end")
            return "content-header", _content(channel, text[header.end() : -1])
        found = _METHOD.match(text)
        kind = None if found is None else method_type(found[1])
        if found is None or kind is None:
            raise ValueError("no method")
        rest = text[found.end() :]
        content = _CONTENT.search(rest) if text.startswith("{") and kind.name in _WITH_CONTENT else None
        if content is None:
            end = _NO_CONTENT.search(rest)
            if end is None or (text.startswith("{") and not text.endswith("}")):
                raise ValueError("no end")
            return kind.name, method(channel, kind, _arguments(kind, rest[: end.start()]))
        arguments = _arguments(kind, rest[: content.start()])
        # In the text of the last property, or in the body, anything may stand.
        properties, mark, body = rest[content.end() :].partition('), "')
        if not mark:
            properties, mark, body = rest[content.end() :].partition('),"')
        if not mark:
            properties, mark, body = rest[content.end() :].partition("), ")
            if not mark or not body.endswith(" bytes of payload}"):
                raise ValueError("no body")
        elif not body.endswith(_CONTENT_ENDS):
            self._in_body = True
        return kind.name, method(channel, kind, arguments) + _content(channel, properties)

    def _other(self, line: str) -> Spoken | None:
        """What a line says that has no frame."""
        if self._in_body:
            self._in_body = not line.endswith(_CONTENT_ENDS)
            return CONTINUES
        found = _LIKE.search(line) if ": <" in line or ":<" in line else None
        if found is None:
            return None
        rest = found[2]
        return None if rest.startswith("uncaught") or not _is_cut(rest) else DAMAGED


def _is_cut(rest: str) -> bool:
    """Whether what stands behind the name of a connection is the beginning of a frame."""
    return rest == "" or rest.startswith("ch#") or "ch#".startswith(rest)


def _arguments(kind: MethodType, text: str) -> list[object]:
    """The values of the fields of a method, from what stands in its brackets. Raises ValueError."""
    names = _RESERVED.get(kind.name, {"reserved-1": "ticket"})
    marks: list[str] = []
    for field in kind.fields:
        name = "nowait" if field.name == "no-wait" else names.get(field.name, field.name)
        marks.append(f"{', ' if marks else ''}{name}=")
    return [_argument(field, one) for field, one in zip(kind.fields, pieces(text, marks), strict=True)]


def _argument(field: ArgumentField, text: str) -> object:
    """The value of a field. Raises ValueError."""
    if field.type == "bit":
        if text not in ("true", "false"):
            raise ValueError("no truth value")
        return text == "true"
    if field.type == "table":
        return _table(text, 0) if field.name in _TABLES else {} if text == "{}" else UNLOGGED
    if field.type in ("shortstr", "longstr"):
        if "\ufffd" in text:
            raise ValueError("not UTF-8")
        return text
    return _number(field.type, text)


def _number(kind: str, text: str) -> int:
    """A number, which Java prints with a sign. Raises ValueError."""
    if len(text) > 20 or not text.isascii():
        raise ValueError("no number")
    number = int(text)
    return number + _SIGNED.get(kind, 0) if number < 0 else number


def _table(text: str, depth: int) -> object:
    """What a peer says of itself: texts, and a table of truth values. UNLOGGED if something else is there."""
    if text == "{}":
        return {}
    if not text.startswith("{") or not text.endswith("}") or depth > 1:
        return UNLOGGED
    inner = text[1:-1]
    found: dict[str, object] = {}
    name, begin, at, level = "", 0, 0, 0
    for mark in re.finditer(r"[{}]|(?:^|, )([A-Za-z][A-Za-z0-9_.-]{0,63})=", inner, re.ASCII):
        if mark[1] is None:
            level += 1 if mark[0] == "{" else -1
        elif level == 0:
            if name:
                found[name] = inner[begin : mark.start()]
            name, begin, at = mark[1], mark.end(), at + 1
    if not name or level or at != len(found) + 1 or name in found:
        return UNLOGGED
    found[name] = inner[begin:]
    for key, value in found.items():
        if str(value).startswith("{"):
            found[key] = _table(str(value), depth + 1)
            if found[key] is UNLOGGED:
                return UNLOGGED
        elif depth and value in ("true", "false"):
            found[key] = value == "true"
    return found


def _content(channel: int, text: str) -> bytes:
    """A content header, from what stands in its brackets. Raises ValueError."""
    marks = [f"{', ' if index else ''}{field.name}=" for index, field in enumerate(BASIC_PROPERTIES.fields)]
    marks[-1] = ", cluster-id="
    properties: dict[str, object] = {}
    unknown = 0
    for field, one in zip(BASIC_PROPERTIES.fields, pieces(text, marks), strict=True):
        if one == _NULL:
            continue
        if field.name == "headers":
            if one == "{}":
                properties[field.name] = {}
            else:
                unknown |= HEADERS
        elif field.name == "timestamp":
            unknown |= TIMESTAMP
        else:
            properties[field.name] = _argument(field, one)
    return content_header(channel, properties, unknown)
