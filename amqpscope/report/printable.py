"""Text from the wire, made safe to show, and its width in columns.

The sender chooses addresses, names and properties. On a terminal a control character is a command, and a
right-to-left mark reverses a line. Every character that is not plainly visible is therefore shown as an
escape: `\\n`, `\\x1b`, `\\u202e`. The same holds for combining marks without a base character, or too many of
them.
"""

import re
from functools import cache
from typing import Final

__all__ = ["cells", "cut", "hexdump", "in_quotes", "printable", "quoted", "word", "wrap"]

# Printable by their category, but nothing is seen of them: joiners, fillers, selectors, a blank pattern.
_INVISIBLE: Final = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x2800, 0x2800),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xFFA0, 0xFFA0),
        (0xE0100, 0xE01EF),
    )
    for code in range(first, last + 1)
)

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_MOST_MARKS = 3
"""Combining marks on one character. Scripts need two or three; more grow into the lines above and below."""

_PLAIN = re.compile(r"[A-Za-z0-9_./:@$%+*#~^&<>(){}?!,;|-]+\Z")

# What a string may look like that would be read as another type, or as one of our own signs.
_MISTAKABLE = (
    r"(?:null|true|false|nan|-?inf|[-+]?\d[\dA-Fa-fx.eE:+-]*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|[@({#].*)\Z"
)


def _escape(character: str) -> str:
    short = _SHORT.get(character)
    if short is not None:
        return short
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text: str) -> str:
    """`text` with every character that is not plainly visible (or could be a command) escaped."""
    if text.isascii() and text.isprintable():
        return text
    import unicodedata  # most texts are ASCII

    shown: list[str] = []
    marks = _MOST_MARKS
    for character in text:
        if not character.isprintable() or character in _INVISIBLE:
            shown.append(_escape(character))
            marks = _MOST_MARKS
        elif character > "\x7f" and unicodedata.category(character)[0] == "M":
            marks += 1
            shown.append(character if marks <= _MOST_MARKS else _escape(character))
        else:
            shown.append(character)
            marks = 0
    return "".join(shown)


def in_quotes(text: str, most: int = 0) -> str:
    """`text` in double quotes, cut to `most` characters if given."""
    if most and len(text) > most:
        text = text[: most - 1] + "…"
    return '"' + printable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def word(text: str, most: int = 0) -> str:
    """`text` as one word, where it can only be text: as it is if it is one word, else in double quotes.

    most: characters of the text before it is cut; 0 for all.
    """
    if most and len(text) > most:
        text = text[: most - 1] + "…"
        if _PLAIN.match(text, 0, most - 1):
            return text
    return text if _PLAIN.match(text) else in_quotes(text)


def quoted(text: str, most: int = 0) -> str:
    """`text` where values of any type stand: in double quotes also if it could be taken for another type."""
    if _mistakable().match(text):
        return in_quotes(text, most)
    return word(text, most)


@cache
def _mistakable() -> re.Pattern[str]:
    """`_MISTAKABLE`, compiled when the first value is shown: that takes longer than to load this module."""
    return re.compile(_MISTAKABLE)


def cells(text: str) -> int:
    """The columns that printable text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import get_character_cell_size  # most runs have only ASCII to measure

    return sum(map(get_character_cell_size, text))


def cut(text: str, most: int) -> str:
    """Printable text in at most `most` columns, its end replaced by `…` if it is longer."""
    if cells(text) <= most:
        return text
    if most < 1:
        return ""
    return text[: _fitting(text, most - 1)] + "…"


def wrap(text: str, first: int, width: int) -> list[str]:
    """Printable text in lines of at most `width` columns, the first of `first`; at spaces if it can."""
    lines: list[str] = []
    room = first
    # What is left may be long: it is looked at as far as it fits, not counted anew for each line.
    while (end := _fitting(text, room)) < len(text):
        space = text.rfind(" ", 0, end + 1)
        if space > 0:
            lines.append(text[:space])
            text = text[space + 1 :]
        elif room < width:
            # No word fits behind what the first line has already.
            lines.append("")
        else:
            end = max(end, 1)
            lines.append(text[:end])
            text = text[end:]
        room = width
    lines.append(text)
    return lines


def _fitting(text: str, most: int) -> int:
    """How many characters of `text` fit into `most` columns."""
    if text.isascii():
        return min(len(text), most)
    from rich.cells import get_character_cell_size

    taken = 0
    for index, character in enumerate(text):
        taken += get_character_cell_size(character)
        if taken > most:
            return index
    return len(text)


def hexdump(octets: bytes, most: int = 256) -> list[str]:
    """Lines of offset, sixteen octets in hex, and their ASCII; at most `most` octets, then how many more."""
    lines = []
    for at in range(0, min(len(octets), most), 16):
        row = octets[at : min(at + 16, most)]
        text = "".join(chr(octet) if 0x20 <= octet < 0x7F else "." for octet in row)
        lines.append(f"{at:04x}  {row.hex(' '):<47}  {text}")
    if len(octets) > most:
        lines.append(f"{most:04x}  … {len(octets) - most} octets more")
    return lines
