"""What `read -v` and `-vv` show below the line of a frame: fields, data, malformed octets."""

from amqpscope.report.line import INDENT, Line, margin
from amqpscope.report.printable import hexdump, printable
from amqpscope.report.secrets import hides_octets, is_secret_key, problem_path
from amqpscope.report.value_text import ValueText, hidden_text
from dissectors.interface import Body, Frame, Problem
from dissectors.values import Pairs
from dissectors.wording import count

__all__ = ["LONGEST", "data", "entries", "octets", "problem_line", "tree", "unlogged_line"]

LONGEST = 1024
"""Characters of one string, and items of one list, in a line of -v; -vv and JSON show all."""

_OCTETS = 4096
"""Octets of a message's data that -vv shows. JSON has all."""


def tree(lines: list[Line], body: Body, text: ValueText, depth: int, most: int) -> None:
    """All fields of a body, one a line, bodies and maps in it opened."""
    for field, sent in body.fields():
        value = text.opened(sent)
        head: Line = [margin(depth), ("key", f"{field.name}: ")]
        if text.hides(body, field, value):
            lines.append([*head, ("", hidden_text(value))])
        elif isinstance(value, Body):
            lines.append([*head, ("", value.title())])
            tree(lines, value, text, depth + 1, most)
        elif isinstance(value, Pairs) and len(value):
            lines.append(head)
            entries(lines, value, text, depth + 1, most)
        elif body.is_odd(value):
            lines.append([*head, ("problem", text.typed(value, most))])
        else:
            lines.append(head + text.typed_field(body, field, value, most))
    for shown in text.beyond(body, most):
        lines.append([margin(depth), ("problem", "beyond the definition: "), ("", shown)])


def entries(lines: list[Line], value: Pairs, text: ValueText, depth: int, most: int) -> None:
    """The entries of a map, one a line."""
    for key, item in value.pairs:
        shown = hidden_text(item) if is_secret_key(key) else text.typed(item, most)
        lines.append([margin(depth), ("key", f"{text.value(key, most)}: "), ("", shown)])


def data(value: bytes, depth: int) -> list[Line]:
    """Binary data: as lines of text if it is that, else in hex."""
    try:
        rows = value[:_OCTETS].decode("utf-8").split("\n") if len(value) <= _OCTETS else None
    except UnicodeDecodeError:
        rows = None
    if rows is None or not all(row.replace("\t", " ").rstrip("\r").isprintable() for row in rows):
        return [[margin(1), ("", row)] for row in hexdump(value, _OCTETS)]
    return [[margin(depth), ("", printable(row.replace("\t", "    ")))] for row in rows]


def problem_line(problem: Problem, subject: str, guarded: bool) -> Line:
    """What is wrong, and where. subject: the name for a problem of the whole frame."""
    where = problem_path(problem, guarded) or subject
    return [
        ("", " " * INDENT),
        ("problem", f"! {problem.code} "),
        ("", f"{printable(where)}: {printable(problem.reason)}"),
        ("dim", f" (at octet {problem.offset})"),
    ]


def unlogged_line(problems: list[Problem]) -> Line:
    """The fields of a frame whose values a log does not hold."""
    names = [printable(problem.path.partition(".")[2]) for problem in problems]
    return [("", " " * INDENT), ("dim", f"not in the log: {', '.join(names)}")]


def octets(frame: Frame, shown: bytes, guarded: bool) -> list[Line]:
    """The octets of a malformed frame. shown: the octets that may be shown, unless they contain a secret."""
    if frame.kind == "skipped":
        return []
    if guarded or hides_octets(shown):
        return [[margin(0), ("dim", f"{count(frame.size, 'octet')}, not shown: they may hold a credential")]]
    return [[margin(0), ("dim", row)] for row in hexdump(shown)]
