"""What one line of the timeline says of an AMQP 0-9-1 frame: what matters, the most important fields first.

A method's line begins with what it is about: `#7` is delivery-tag 7; why something failed stands first and is
reported with the method that caused it. Then come the other fields in their order, what is true as a bare
word, and tables. Reserved fields, empty tables and what is not set are not reported. Sizes are octets.
"""

from amqpscope.model.passwords import without_password
from amqpscope.report.amqp091.frequent import frequent_header, frequent_method
from amqpscope.report.amqp091.json_form import refusal
from amqpscope.report.amqp091.secrets import hides_all
from amqpscope.report.amqp091.summary import named_cause
from amqpscope.report.amqp091.value_text import TEXT
from amqpscope.report.digits import digits
from amqpscope.report.line import Line, Pen, flag, key, number
from amqpscope.report.printable import in_quotes
from amqpscope.report.value_text import hidden_text, text_word
from dissectors.amqp091.arguments import Arguments, Method, UnknownMethod
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp091.tables import FieldTable
from dissectors.interface import Frame
from dissectors.wire import i64
from dissectors.wording import count

__all__ = ["describe_arguments", "describe_header", "details", "write"]

_NAME = 40
_DESCRIPTION = 400

# Fields whose names say nothing that the values do not.
_BARE = ("mechanism", "mechanisms")

# Values that every peer sends, or that stand for nothing.
_IDLE = {"version-major": 0, "version-minor": 9, "prefetch-size": 0, "locale": "en_US", "locales": b"en_US"}

_PEER_PROPERTIES = ("server-properties", "client-properties")


def details(frame: Frame, message: Amqp091Message | None, guarded: bool) -> Line:
    """The part of a frame's line behind its name. message: what it ends.

    guarded: its octets may be a secret.
    """
    pen = Pen(False)
    write(pen, frame, message, guarded)
    return pen.take_line()


def write(pen: Pen, frame: Frame, message: Amqp091Message | None, guarded: bool) -> None:
    """The same, put down with a pen."""
    body = frame.body
    if frame.kind == "body":
        pen.put("", _body(frame, message))
    elif isinstance(body, Method) and not hides_all(frame, guarded):
        if not frequent_method(pen, body):
            pen.put_line(_rarer(frame, guarded))
    elif not (
        isinstance(body, ContentHeader) and not hides_all(frame, guarded) and frequent_header(pen, body)
    ):
        pen.put_line(_rarer(frame, guarded))
    if message is not None and not message.complete:
        pen.put_line(_ended(message))


def _rarer(frame: Frame, guarded: bool) -> Line:
    """The part behind the name of a frame that is no body and not frequent."""
    body = frame.body
    if frame.kind == "heartbeat":
        return [("dim", "keeps the connection alive")]
    if hides_all(frame, guarded):
        return _size(frame)
    if isinstance(body, UnknownMethod):
        return [*number("class-id", body.class_id), *number("method-id", body.method_id), *_size(frame)]
    if isinstance(body, Method):
        return describe_arguments(body)
    if isinstance(body, ContentHeader):
        return describe_header(body)
    return _size(frame)


def _size(frame: Frame) -> Line:
    return [("", f"{count(frame.size, 'octet')} ")]


def _ended(message: Amqp091Message) -> Line:
    """What is to be said of a message that ends before its time, or of which not all is there."""
    if message.method is None:
        return [("note", f"ends a message of {count(message.seen, 'octet')} whose method is not there ")]
    whole = "" if message.header is None else f" of {message.body_size}"
    return [("note", f"ends a message not all of which is there: {message.seen}{whole} octets ")]


def _body(frame: Frame, message: Amqp091Message | None) -> str:
    size: i64 = frame.payload_captured
    text = "1 octet" if size == 1 else digits(size) + " octets"
    if message is not None and message.complete and message.frames > 1:
        text += f", the last of {message.seen} in {count(message.frames, 'frame')}"
    return text + " "


def describe_header(header: ContentHeader) -> Line:
    """The line of any content header."""
    line = [] if header.body_size < 0 else number("body-size", header.body_size)
    if header.class_id != 60:
        line += number("class-id", int(header.class_id))
    if header.weight:
        line += number("weight", int(header.weight))
    return line + describe_arguments(header.properties())


def describe_arguments(arguments: Arguments) -> Line:
    """The line of any method or property list: its fields, in the order in which they are worth reading."""
    fields = arguments.fields()
    known = {field.name: value for field, value in fields}
    style = "error" if refusal(arguments) else ""
    subject: Line = []
    others: Line = []
    flags: Line = []
    tables: Line = []
    secrets: Line = []
    for field, value in fields:
        name = field.name
        if TEXT.hides(arguments, field, value):
            secrets += key(name, hidden_text(value))
        elif isinstance(value, bool):
            flags += flag(value, name)
        elif isinstance(value, FieldTable):
            if name in _PEER_PROPERTIES:
                subject += _product(value)
            elif len(value):
                tables += key(name, TEXT.value(value))
        elif name == "class-id":
            subject += _cause(value, known.get("method-id"))
        elif name == "delivery-tag":
            subject.insert(0, ("", f"#{value} "))
        elif name == "reply-code":
            subject.append((style, f"{value} "))
        elif name == "reply-text" and isinstance(value, str):
            subject.append((style, f"{in_quotes(without_password(value), _DESCRIPTION)} "))
        elif name in _BARE:
            others.append(("", f"{TEXT.field(arguments, field, value)} "))
        elif not (_is_idle(name, value) or (field.reserved and not value)):
            others += key(name, TEXT.field(arguments, field, value).replace(" ", "", name == "heartbeat"))
    return subject + others + flags + tables + secrets


def _is_idle(name: str, value: object) -> bool:
    """Whether a value is what everybody sends, or what says nothing."""
    return name == "method-id" or _IDLE.get(name) == value


def _product(properties: FieldTable) -> Line:
    """Product and version: who one is talking to."""
    table = properties.read()
    words = [table.get(name) for name in ("product", "version")]
    text = " ".join(text_word(word, _NAME) for word in words if isinstance(word, str) and word)
    return [("dim", f"({text}) ")] if text else []


def _cause(class_id: object, method_id: object) -> Line:
    """The method that caused a close."""
    if not isinstance(class_id, int) or not isinstance(method_id, int):
        return []
    named = named_cause(class_id, method_id)
    return [("", f"caused by {named} ")] if named else []
