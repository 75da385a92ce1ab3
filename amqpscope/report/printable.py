"""Text from the wire, made safe to show.

Addresses, names and properties are chosen by whoever sent them. On a terminal a control character is
a command, and a right-to-left mark turns a line round; so whatever is not plainly visible is shown as
an escape: `\\n`, `\\x1b`, `\\u202e`.
"""

import re

__all__ = ["hexdump", "printable", "quoted"]

# C0 and C1 controls, DEL, line separators, every bidirectional control, zero-width and other
# invisible format characters, lone surrogates, private use, noncharacters.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_PLAIN = re.compile(r"[A-Za-z0-9_./:@$%+*#~^&<>(){}?!,;|-]+\Z")


def _escape(match: re.Match[str]) -> str:
    character = match.group()
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
    return _UNSAFE.sub(_escape, text)


def quoted(text: str, most: int = 0) -> str:
    """`text` as one word: as it is if it is one, else in double quotes. Cut to `most` characters if given."""
    if most and len(text) > most:
        text = text[: most - 1] + "…"
    text = printable(text)
    if _PLAIN.match(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' if '"' in text else f'"{text}"'


def hexdump(octets: bytes, most: int = 256) -> list[str]:
    """Lines of offset, sixteen octets in hex, and their ASCII; at most `most` octets, then a line that says so."""
    lines = []
    for at in range(0, min(len(octets), most), 16):
        row = octets[at : min(at + 16, most)]
        text = "".join(chr(octet) if 0x20 <= octet < 0x7F else "." for octet in row)
        lines.append(f"{at:06x}  {row.hex(' '):<47}  {text}")
    if len(octets) > most:
        lines.append(f"{most:06x}  … {len(octets) - most} octets more")
    return lines
