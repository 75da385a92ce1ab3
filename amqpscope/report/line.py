"""Lines for people before they are painted: parts of text, each with its style.

`painter` turns a line into what the output can show. Text from the wire enters a line only through
`printable`.
"""

__all__ = ["INDENT", "Line", "flag", "key", "margin", "number"]

Line = list[tuple[str, str]]
"""(style, text) parts."""

INDENT = 6
"""Columns before what stands below a frame's line."""

_STEP = 2


def margin(depth: int) -> tuple[str, str]:
    """The space before a line below a frame's line. depth: how many levels of fields it stands in."""
    return ("", " " * (INDENT + _STEP * depth))


def key(name: str, text: str) -> Line:
    """A field and its value."""
    return [("key", f"{name}="), ("", f"{text} ")]


def flag(value: bool | None, name: str) -> Line:
    """A word that is shown only if the flag is true."""
    return [("", f"{name} ")] if value else []


def number(name: str, value: int | None) -> Line:
    """A number, if it is present."""
    return [] if value is None else [("key", f"{name}="), ("", f"{value} ")]
