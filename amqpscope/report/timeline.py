"""The timeline of `amqpscope read`: one line a frame, in the order in which they were completed.

A line is a list of (style, text) parts; `Painter` turns it into what the output can show. Nothing
from the wire becomes part of a line without having passed `printable`.
"""

from collections.abc import Iterable

from rich.console import Console
from rich.style import Style

from amqpscope.model import CLIENT, FrameRecord, endpoint
from amqpscope.report.links import LinkOf
from amqpscope.report.moment import iso
from amqpscope.report.printable import hexdump, printable, quoted
from amqpscope.report.secrets import hides_body, hides_raw
from amqpscope.report.value_text import field_text, typed_text, value_text
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Properties, Received, Source, Target
from dissectors.amqp10.performatives import Attach, Detach, Disposition, Error, Flow, Transfer
from dissectors.amqp10.transactions import Coordinator
from dissectors.amqp10.values import Map, Raw
from dissectors.interface import Frame, Problem

__all__ = ["TIME_FORMATS", "Clock", "Painter", "Timeline"]

Line = list[tuple[str, str]]

TIME_FORMATS = {
    "r": "seconds since the capture's first frame",
    "d": "seconds since the frame shown before",
    "a": "time of day, UTC",
    "ad": "date and time, UTC",
    "e": "seconds since 1970",
}

_STYLES = {
    "": "",
    "dim": "dim",
    "client": "cyan",
    "server": "magenta",
    "name": "bold",
    "transfer": "bold green",
    "flow": "bold blue",
    "end": "bold yellow",
    "sasl": "bold dim",
    "problem": "bold red",
    "note": "yellow",
    "rule": "bold",
    "key": "dim",
    "address": "green",
    "error": "red",
}

_NAME_STYLES = {
    "transfer": "transfer",
    "disposition": "transfer",
    "flow": "flow",
    "detach": "end",
    "end": "end",
    "close": "end",
    "undecodable": "problem",
    "skipped": "problem",
    "empty": "dim",
}

# The fields of the one-line form, for performatives that are shown field by field.
_BRIEF = {
    "open": ("container-id", "hostname", "max-frame-size", "channel-max", "idle-time-out"),
    "begin": ("remote-channel", "next-outgoing-id", "incoming-window", "outgoing-window", "handle-max"),
    "sasl-mechanisms": ("sasl-server-mechanisms",),
    "sasl-init": ("mechanism", "hostname", "initial-response"),
    "sasl-challenge": ("challenge",),
    "sasl-response": ("response",),
    "sasl-outcome": ("code", "additional-data"),
}

_NAME_WIDTH = 16

# Our own signs, for outputs that cannot show them. What the wire sent is escaped by the output itself.
_ASCII = str.maketrans({"→": ">", "←": "<", "─": "-", "…": "~", "–": "-"})


class Painter:
    """Turns lines into text for one output: with colour or without, cut to its width or whole."""

    def __init__(self, console: Console, width: int | None) -> None:
        self._width = width
        self._plain = not console.encoding.lower().startswith("utf")
        system = console._color_system
        self._styles = {
            name: Style.parse(style) if style and system is not None and not console.no_color else None
            for name, style in _STYLES.items()
        }
        self._system = system

    def paint(self, line: Line) -> str:
        """One line, without a line end."""
        room = self._width
        parts = []
        for style_name, text in line:
            if self._plain:
                text = text.translate(_ASCII)
            if room is not None:
                if len(text) > room:
                    text = text[: max(room - 1, 0)] + ("…" if room > 0 else "")
                room -= len(text)
            style = self._styles.get(style_name)
            parts.append(text if style is None else style.render(text, color_system=self._system))
            if room is not None and room <= 0:
                break
        return "".join(parts)


class Clock:
    """Shows packet times in one of `TIME_FORMATS`."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._first: int | None = None
        self._before: int | None = None

    def start(self, time: int) -> None:
        """The capture's first frame, shown or not."""
        self._first = time

    def show(self, time: int) -> str:
        """The time of a frame, in ns since 1970."""
        if self._first is None:
            self._first = time
        before = time if self._before is None else self._before
        self._before = time
        if self._form == "r":
            return f"{_seconds(time - self._first):>12}"
        if self._form == "d":
            return f"{_seconds(time - before):>12}"
        if self._form == "e":
            return f"{_seconds(time):>18}"
        moment = iso(time)[:26]
        if self._form == "a":
            return moment[11:]
        return moment.replace("T", " ")


def _seconds(nanoseconds: int) -> str:
    """Seconds with six decimals, exact where a float would round."""
    sign = "-" if nanoseconds < 0 else ""
    microseconds = abs(nanoseconds) // 1000
    return f"{sign}{microseconds // 1_000_000}.{microseconds % 1_000_000:06d}"


class Timeline:
    """Lines for frame records. verbosity: 0 one line, 1 all fields, 2 contents and octets of faults too."""

    def __init__(self, clock: Clock, verbosity: int) -> None:
        self._clock = clock
        self._verbosity = verbosity
        self._seen: set[object] = set()

    def lines(self, record: FrameRecord, link: LinkOf | None) -> Iterable[Line]:
        """Everything to be shown of one frame."""
        connection = record.connection
        if connection not in self._seen:
            self._seen.add(connection)
            yield self._heading(record)
        frame = record.frame
        style = record.peer
        arrow = "→" if style == CLIENT else "←"
        channel = "" if frame.channel < 0 else str(frame.channel)
        name_style = "sasl" if frame.kind == "sasl" else _NAME_STYLES.get(frame.name, "name")
        line: Line = [
            ("dim", f"{record.packet:>7} {self._clock.show(record.time)} {connection.stream:>4} "),
            (style, f"{arrow} {style} "),
            ("dim", f"{channel:>5} "),
            (name_style, f"{frame.name:<{_NAME_WIDTH}}"),
        ]
        line += self._details(frame, link, record.message)
        yield line
        if self._verbosity >= 1:
            yield from self._fields(frame)
        message = record.message
        if message is not None and self._verbosity >= 1:
            yield from self._message(message, link)
        for problem in frame.problems:
            yield _problem_line(problem, frame.name)
        if message is not None:
            message.sections()
            for problem in message.problems:
                yield _problem_line(problem, "message")
        if self._verbosity >= 2:
            yield from self._octets(record, link)

    def _heading(self, record: FrameRecord) -> Line:
        connection = record.connection
        client = int(connection.client)
        return [
            ("rule", f"── connection {connection.stream} ── "),
            ("client", f"client {endpoint(*connection.end(client))}"),
            ("rule", " ── "),
            ("server", f"server {endpoint(*connection.end(1 - client))}"),
            ("rule", f" ── {connection.id} "),
        ]

    # The one-line form

    def _details(self, frame: Frame, link: LinkOf | None, message: Message | None) -> Line:
        body = frame.body
        if isinstance(body, Transfer):
            return _transfer_line(frame, body, link, message)
        if isinstance(body, Flow):
            return _flow_line(body, link)
        if isinstance(body, Attach):
            return _attach_line(body)
        if isinstance(body, Disposition):
            return _disposition_line(body, link)
        if isinstance(body, Detach):
            return [*_link_part(link, body.handle), *_flag(body.closed, "closed"), *_error_part(body.error)]
        if isinstance(body, ProtocolHeader):
            version = f"{body.major}.{body.minor}.{body.revision}"
            named = body.protocol()
            if named == "unknown":
                named = f"unknown protocol id {body.protocol_id}"
            return [("", named), ("dim", f"  version {version}")]
        if isinstance(body, Composite):
            brief = _BRIEF.get(frame.name)
            line = _field_parts(body, brief)
            error = getattr(body, "error", None)
            if isinstance(error, Error):
                line += _error_part(error)
            line += _product_part(body)
            return line
        if frame.kind == "skipped":
            if frame.name == "tls":
                return [("", f"{frame.size} octets of TLS, not decrypted")]
            captured = frame.size - frame.missing
            missing = f", {frame.missing} of them not captured" if frame.missing and captured else ""
            what = "not captured" if not captured else f"in which no frame was found{missing}"
            return [("", f"{frame.size} octets {what}")]
        if body is not None and not hides_raw(frame):
            return [("", value_text(body))]
        if frame.name == "empty":
            return [("dim", "keeps the connection alive")]
        return [("", f"{frame.size} octets")]

    # All fields, contents, octets

    def _fields(self, frame: Frame) -> Iterable[Line]:
        body = frame.body
        if isinstance(body, Composite):
            yield from _tree(body, 1)

    def _message(self, message: Message, link: LinkOf | None) -> Iterable[Line]:
        hidden = hides_body(message, link)
        head = f"message, format {_format_name(message.message_format)}, {message.size} octets"
        if not message.complete:
            head += ", not all of it captured"
        yield [("", _INDENT), ("key", head)]
        for section in message.sections():
            value = section.value
            is_body = section.name in ("data", "amqp-sequence", "amqp-value", "unknown")
            if is_body and hidden:
                yield [("", _INDENT * 2), ("key", section.name), ("", f"  (hidden, {section.size} octets)")]
            elif is_body and self._verbosity < 2:
                yield [
                    ("", _INDENT * 2),
                    ("key", section.name),
                    ("dim", f"  {section.size} octets (-vv shows them)"),
                ]
            elif isinstance(value, Composite):
                yield [("", _INDENT * 2), ("key", section.name)]
                yield from _tree(value, 3)
            elif isinstance(value, Map):
                yield [("", _INDENT * 2), ("key", section.name)]
                for key, item in value.pairs:
                    yield [("", _INDENT * 3), ("key", f"{value_text(key, 0)}: "), ("", typed_text(item, 0))]
            elif isinstance(value, bytes):
                yield [("", _INDENT * 2), ("key", f"{section.name}  {len(value)} octets")]
                for row in hexdump(value, 1024):
                    yield [("", _INDENT * 3), ("dim", row)]
            else:
                yield [("", _INDENT * 2), ("key", f"{section.name}: "), ("", typed_text(value, 0))]
        for number, inner in enumerate(message.batch()):
            yield [("", _INDENT * 2), ("key", f"message {number} of the batch")]
            yield from self._message(inner, link)

    def _octets(self, record: FrameRecord, link: LinkOf | None) -> Iterable[Line]:
        frame = record.frame
        if frame.problems:
            if hides_raw(frame):
                yield [("", _INDENT), ("dim", "octets hidden: they may hold a credential")]
            else:
                octets = frame.raw[: len(frame.raw) - int(frame.payload_size)]
                for row in hexdump(octets):
                    yield [("", _INDENT), ("dim", row)]
        message = record.message
        if message is not None and message.problems and not hides_body(message, link):
            yield [("", _INDENT), ("dim", "message")]
            for row in hexdump(message.octets):
                yield [("", _INDENT), ("dim", row)]


_INDENT = "        "


def _problem_line(problem: Problem, subject: str) -> Line:
    where = problem.path or subject
    return [
        ("", _INDENT),
        ("problem", f"! {problem.code} "),
        ("", f"{printable(where)}: {printable(problem.reason)}"),
        ("dim", f"  (octet {problem.offset})"),
    ]


def _key(name: str, text: str) -> Line:
    return [("key", f"{name}="), ("", f"{text} ")]


def _flag(value: bool | None, name: str) -> Line:
    return [("", f"{name} ")] if value else []


def _field_parts(body: Composite, names: tuple[str, ...] | None) -> Line:
    line: Line = []
    for field, value in body.fields():
        if names is None:
            if field.name not in ("error", "properties"):
                line += _key(field.name, field_text(field, value))
        elif field.name in names:
            line += (
                _key(field.name, field_text(field, value))
                if len(names) > 1
                else [("", field_text(field, value))]
            )
    return line


def _product_part(body: Composite) -> Line:
    """Product and version from open.properties: who one is talking to."""
    properties = getattr(body, "properties", None)
    if body.definition().name != "open" or not isinstance(properties, Map):
        return []
    words = [properties.get(name) for name in ("product", "version")]
    text = " ".join(quoted(word, 40).strip('"') for word in words if isinstance(word, str))
    return [("dim", f"({text})")] if text else []


def _link_part(link: LinkOf | None, handle: int | None) -> Line:
    if link is not None:
        line: Line = [("", f"{quoted(link.name, 40)} ")]
        if link.address is not None:
            line.append(("address", f"{quoted(link.address, 48)} "))
        return line
    return _key("handle", str(handle)) if handle is not None else []


def _error_part(error: Error | None) -> Line:
    if error is None:
        return []
    line: Line = [("error", f"{value_text(error.condition)} " if error.condition is not None else "error ")]
    if error.description:
        line.append(("", quoted(error.description, 160) + " "))
    return line


def _state_part(state: object) -> Line:
    if state is None:
        return []
    error = getattr(state, "error", None)
    if isinstance(state, Composite) and isinstance(error, Error):
        return [("", f"{state.definition().name} "), *_error_part(error)]
    if isinstance(state, Received):
        return [("", f"received {state.section_number}/{state.section_offset} ")]
    return [("", f"{value_text(state)} ")]


def _terminus(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, Coordinator):
        return "coordinator"
    if isinstance(value, (Source, Target)):
        if value.dynamic and value.address is None:
            return "(dynamic)"
        return "(no address)" if value.address is None else value_text(value.address, 48)
    return value_text(value, 48)


def _attach_line(attach: Attach) -> Line:
    role = {False: "sender", True: "receiver", None: "?"}[attach.role]
    line: Line = [("", f"{role} {value_text(attach.name, 40)} ")]
    if attach.handle is not None:
        line += _key("handle", str(attach.handle))
    line += [("address", f"{_terminus(attach.source)} → {_terminus(attach.target)} ")]
    for field, value in attach.fields():
        if field.name in ("snd-settle-mode", "rcv-settle-mode", "initial-delivery-count", "max-message-size"):
            line += _key(field.name, field_text(field, value))
    if attach.unsettled is not None:
        line += _key("unsettled", f"{len(attach.unsettled)} deliveries")
    return line + _flag(attach.incomplete_unsettled, "incomplete-unsettled")


def _flow_line(flow: Flow, link: LinkOf | None) -> Line:
    line: Line = []
    if flow.handle is not None:
        line += _link_part(link, flow.handle)
        for field, value in flow.fields():
            if field.name in ("link-credit", "delivery-count", "available"):
                line += _key(field.name, field_text(field, value))
        line += _flag(flow.drain, "drain")
    line += _flag(flow.echo, "echo")
    if flow.handle is None:
        line.append(("", "session "))
    for name, first, window in (
        ("in", flow.next_incoming_id, flow.incoming_window),
        ("out", flow.next_outgoing_id, flow.outgoing_window),
    ):
        first_text = "?" if first is None else str(first)
        line += [("key", f"{name}="), ("", f"{first_text}+{'?' if window is None else window} ")]
    return line


def _transfer_line(frame: Frame, transfer: Transfer, link: LinkOf | None, message: Message | None) -> Line:
    line: Line = []
    if transfer.delivery_id is not None:
        line.append(("", f"#{transfer.delivery_id} "))
    line += _link_part(link, transfer.handle)
    if transfer.delivery_tag is not None:
        tag = transfer.delivery_tag
        line += _key("tag", (tag[:16].hex() + ("…" if len(tag) > 16 else "")) or "(empty)")
    line += _flag(transfer.settled, "settled")
    line += _flag(transfer.more, "more")
    line += _flag(transfer.resume, "resume")
    line += _flag(transfer.aborted, "aborted")
    line += _state_part(transfer.state)
    if message is None:
        return [*line, ("dim", f"{frame.payload_size} octets ")]
    return line + _message_part(message)


def _format_name(message_format: int) -> str:
    if message_format == 0x80013700:
        return "0x80013700 (batch)"
    return str(message_format) if message_format == 0 else f"0x{message_format:08x}"


def _message_part(message: Message) -> Line:
    line: Line = []
    if message.message_format != 0:
        line += _key("format", _format_name(message.message_format))
    bodies: list[str] = []
    for section in message.sections():
        value = section.value
        if isinstance(value, Properties):
            for field, item in value.fields():
                if field.name in (
                    "message-id",
                    "to",
                    "subject",
                    "correlation-id",
                    "reply-to",
                    "content-type",
                ):
                    line += _key(field.name, field_text(field, item, 32))
        elif section.name == "application-properties" and isinstance(value, Map):
            line += _key("properties", f"{len(value)}")
        elif section.name in ("data", "amqp-sequence", "amqp-value"):
            bodies.append(section.name)
        elif isinstance(value, Raw) or section.name == "unknown":
            bodies.append("undecodable")
    kinds = ", ".join(
        f"{bodies.count(kind)} {kind}" if bodies.count(kind) > 1 else kind for kind in dict.fromkeys(bodies)
    )
    size = f"{message.size} octets" if message.complete else f"{message.size} octets, not all captured"
    line.append(("dim", f"{kinds}, {size}" if kinds else size))
    batch = message.batch()
    if batch:
        line.append(("dim", f", {len(batch)} messages"))
    return line


def _disposition_line(body: Disposition, link: LinkOf | None) -> Line:
    line: Line = []
    if body.first is not None:
        last = "" if body.last is None or body.last == body.first else f"–#{body.last}"
        line.append(("", f"#{body.first}{last} "))
    if body.role is not None:
        line.append(("dim", "by receiver " if body.role else "by sender "))
    if link is not None:
        line += _link_part(link, None)
    line += _flag(body.settled, "settled")
    return line + _state_part(body.state)


def _tree(body: Composite, depth: int) -> Iterable[Line]:
    """All fields of a composite, one a line, composites and maps in it opened."""
    for field, value in body.fields():
        head: Line = [("", _INDENT * depth), ("key", f"{field.name}: ")]
        if field.secret:
            yield [*head, ("", field_text(field, value))]
        elif isinstance(value, Composite):
            yield [*head, ("", value.definition().name)]
            yield from _tree(value, depth + 1)
        elif isinstance(value, Map):
            yield [*head, ("dim", f"{len(value)} entries")] if not len(value) else head
            for key, item in value.pairs:
                yield [
                    ("", _INDENT * (depth + 1)),
                    ("key", f"{value_text(key, 0)}: "),
                    ("", typed_text(item, 0)),
                ]
        else:
            text = field_text(field, value, 0)
            yield [*head, ("", text), *([("dim", f"  ({field.type})")] if field.type != "*" else [])]
    if body.extra is not None:
        secret = any(field.secret for field in body.definition().fields)
        for item in body.extra:
            shown = "(hidden)" if secret else typed_text(item, 0)
            yield [("", _INDENT * depth), ("key", "beyond the definition: "), ("", shown)]
