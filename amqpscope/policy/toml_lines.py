"""Where in a TOML file something stands, which the parser does not say.

Lines are looked for that seem to hold a key, or the head of a table. Where there are more of them than there
should be, each is tried: all before it has to be whole TOML, so that it is not in the middle of a text, and a
key put there has to come out in the table that is asked for.
"""

import re
from typing import Any, Final

__all__ = ["line_of_key", "lines_of_entries"]

_MOST: Final = 100
"""Lines that are tried: each means to parse what stands before it."""


def line_of_key(text: str, table: tuple[str, ...], key: str) -> int:
    """The line (from 1) of a key of a table, 0 if it is not found: it may be written in many ways."""
    quoted = '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
    name = rf"(?:{re.escape(key)}|{re.escape(quoted)}|'{re.escape(key)}')"
    head = rf"\[+(?:.*[.])?\s*{name}\s*\]"
    lines = text.split("\n")
    found = _fitting(lines, re.compile(rf"\s*(?:(?:[^\[=]*[.])?\s*{name}\s*[=.]|{head})"))
    if len(found) == 1:
        return found[0]
    for number in found[:_MOST]:
        before = "\n".join(lines[: number - 1])
        if lines[number - 1].lstrip().startswith("["):
            if _at(before, ()) is not None:
                return number
            continue
        was, now = _at(before, table), _at(f"{before}\n{quoted} = 0\n", table)
        if now is not None and key in now and key not in (was or ()):
            return number
    return 0


def lines_of_entries(text: str, table: tuple[str, ...], key: str, count: int) -> list[int]:
    """The lines of the heads of so many tables of an array; all the array's own if it is written as one."""
    name = rf"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')"
    lines = text.split("\n")
    found = _fitting(lines, re.compile(rf"\s*\[\[(?:.*[.])?\s*{name}\s*\]\]"))
    if len(found) != count:
        found = [number for number in found[:_MOST] if _at("\n".join(lines[: number - 1]), ()) is not None]
    if len(found) != count:
        return [line_of_key(text, table, key)] * count
    return found


def _fitting(lines: list[str], pattern: re.Pattern[str]) -> list[int]:
    return [number for number, line in enumerate(lines, 1) if pattern.match(line)]


def _at(text: str, table: tuple[str, ...]) -> dict[str, Any] | None:
    """What a table holds; None if there is none, or the text is not whole."""
    import tomllib  # only where there is a configuration

    try:
        inner: Any = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    for name in table:
        inner = inner.get(name) if isinstance(inner, dict) else None
    return inner if isinstance(inner, dict) else None
