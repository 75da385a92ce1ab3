"""What `read -v` and `-vv` say of a frame below its line: all fields, contents, malformed octets."""

from amqpscope.report.brief import Line, guarded_value
from amqpscope.report.printable import hexdump, printable
from amqpscope.report.secrets import (
    hides_field,
    hides_octets,
    hides_raw,
    is_odd,
    is_secret_key,
    is_unclear,
    problem_path,
)
from amqpscope.report.value_text import field_text, format_name, hidden_text, typed_text, value_text
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.message import BATCH_FORMAT, Message
from dissectors.amqp10.values import Map
from dissectors.interface import Frame, Problem

__all__ = ["INDENT", "content", "fields", "message_octets", "octets", "problem_line"]

INDENT = 6
"""Columns before what stands below a frame's line."""

_STEP = 2

_LONGEST = 1024
"""Characters of one string, and items of one list, in a line of -v; -vv and JSON show all."""

_OCTETS = 4096
"""Octets of a message's data that -vv shows. JSON has all."""


def _margin(depth: int) -> tuple[str, str]:
    return ("", " " * (INDENT + _STEP * depth))


def fields(body: Composite, guarded: bool, verbosity: int) -> list[Line]:
    """All fields of a performative, one a line. guarded: its octets may be a secret; show only numbers."""
    most = _LONGEST if verbosity < 2 else 0
    lines: list[Line] = []
    if guarded and not body.definition().is_sasl_frame:
        for field, value in body.fields():
            lines.append([_margin(0), ("key", f"{field.name}: "), ("", guarded_value(value))])
        return lines
    _tree(lines, body, 0, most)
    return lines


def _tree(lines: list[Line], body: Composite, depth: int, most: int) -> None:
    """All fields of a composite, composites and maps in it opened."""
    for field, value in body.fields():
        head: Line = [_margin(depth), ("key", f"{field.name}: ")]
        if hides_field(body, field, value):
            lines.append([*head, ("", hidden_text(value))])
        elif isinstance(value, Composite):
            lines.append([*head, ("", value.definition().name)])
            _tree(lines, value, depth + 1, most)
        elif isinstance(value, Map) and len(value):
            lines.append(head)
            _entries(lines, value, depth + 1, most)
        elif is_odd(body, value):
            lines.append([*head, ("problem", typed_text(value, most))])
        else:
            shown: Line = [*head, ("", field_text(body, field, value, most))]
            if field.type == "*":
                shown = [*head, ("", typed_text(value, most))]
            elif field.type != "map":
                shown.append(("dim", f" ({field.type})"))
            lines.append(shown)
    for item in body.extra or ():
        text = hidden_text(item) if body.definition().is_sasl_frame else typed_text(item, most)
        lines.append([_margin(depth), ("problem", "beyond the definition: "), ("", text)])


def _entries(lines: list[Line], value: Map, depth: int, most: int) -> None:
    """The entries of a map, one a line."""
    for key, item in value.pairs:
        text = hidden_text(item) if is_secret_key(key) else typed_text(item, most)
        lines.append([_margin(depth), ("key", f"{value_text(key, most)}: "), ("", text)])


def content(message: Message, hidden: bool, verbosity: int, depth: int = 0, number: int = 0) -> list[Line]:
    """The sections of a message. hidden: its body is a secret. Bodies are shown with a verbosity of 2.

    number: of a message in a batch.
    """
    most = _LONGEST if verbosity < 2 else 0
    head = (
        f"message {number} of the batch, {message.size} octets"
        if number
        else f"message of {message.size} octets"
    )
    if message.message_format:
        head += f", message-format {format_name(message.message_format)}"
    if not message.complete:
        head += ", not all of it captured"
    lines: list[Line] = [[_margin(depth), ("key", head)]]
    depth += 1
    unclear = is_unclear(message)
    for section in message.sections():
        value = section.value
        name = section.name
        is_body = name in ("data", "amqp-sequence", "amqp-value", "unknown")
        if hidden and (is_body or unclear or not isinstance(value, (Composite, Map))):
            text = f"(hidden, {section.size} octets)"
            lines.append([_margin(depth), ("key", f"{name}: "), ("", text)])
        elif is_body and verbosity < 2:
            lines.append(
                [_margin(depth), ("key", f"{name}: "), ("dim", f"{section.size} octets (-vv shows them)")]
            )
        elif isinstance(value, Composite):
            lines.append([_margin(depth), ("key", f"{name}:")])
            _tree(lines, value, depth + 1, most)
        elif isinstance(value, Map):
            lines.append([_margin(depth), ("key", f"{name}:")])
            _entries(lines, value, depth + 1, most)
        elif isinstance(value, bytes):
            lines.append([_margin(depth), ("key", f"{name}: "), ("dim", f"{len(value)} octets")])
            if message.message_format != BATCH_FORMAT:
                lines += _data(value, depth + 1)
        else:
            lines.append([_margin(depth), ("key", f"{name}: "), ("", typed_text(value, most))])
    for index, inner in enumerate(message.batch(), 1):
        lines += content(inner, hidden, verbosity, depth, index)
    return lines


def _data(value: bytes, depth: int) -> list[Line]:
    """Binary data: as lines of text if it is that, else in hex."""
    try:
        rows = value[:_OCTETS].decode("utf-8").split("\n") if len(value) <= _OCTETS else None
    except UnicodeDecodeError:
        rows = None
    if rows is None or not all(row.replace("\t", " ").rstrip("\r").isprintable() for row in rows):
        return [[_margin(1), ("", row)] for row in hexdump(value, _OCTETS)]
    return [[_margin(depth), ("", printable(row.replace("\t", "    ")))] for row in rows]


def problem_line(problem: Problem, subject: str, guarded: bool) -> Line:
    """What is wrong, and where. subject: what it is a problem of as a whole."""
    where = problem_path(problem, guarded) or subject
    return [
        ("", " " * INDENT),
        ("problem", f"! {problem.code} "),
        ("", f"{printable(where)}: {printable(problem.reason)}"),
        ("dim", f" (at octet {problem.offset})"),
    ]


def octets(frame: Frame, guarded: bool) -> list[Line]:
    """The octets of a malformed frame, without the message in it."""
    if frame.kind == "skipped":
        return []
    raw = frame.raw  # a copy, perhaps of megabytes
    shown = raw[: len(raw) - int(frame.payload_size)]
    if guarded or hides_raw(frame) or hides_octets(shown):
        return [[_margin(0), ("dim", f"{frame.size} octets, not shown: they may hold a credential")]]
    return [[_margin(0), ("dim", row)] for row in hexdump(shown)]


def message_octets(message: Message, hidden: bool) -> list[Line]:
    """The octets of a malformed message."""
    shown = message.octets
    if hidden or hides_octets(shown):
        return [[_margin(0), ("dim", f"message of {len(shown)} octets, not shown: it may hold a credential")]]
    return [
        [_margin(0), ("dim", "octets of the message")],
        *[[_margin(0), ("dim", row)] for row in hexdump(shown)],
    ]
