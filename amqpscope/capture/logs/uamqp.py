"""Logs of uamqp (azure-uamqp-c and its binding to Python), `debug=True` or `logging_enable=True`:

    2026-11-23 19:06:20,294 uamqp.c_uamqp INFO b'-> [BEGIN]* {NULL,0,65536,65536,4294967295}'

The values of a frame stand in their order, without names and quotes. The descriptors of states are left out,
and so are payload and SASL frames.
"""

import re
from collections import deque
from typing import Final

from amqpscope.capture.logs.encoding import UNLOGGED, NamedComposite, definition, header
from amqpscope.capture.logs.entries import CONTINUES, Entry, Spoken
from amqpscope.capture.logs.python_text import literal
from amqpscope.capture.logs.stamps import time_of
from amqpscope.capture.logs.unnamed import Unnamed
from amqpscope.limits import MAX_LOG_DEPTH
from dissectors.amqp10.composite import Field
from dissectors.amqp10.values import Symbol

__all__ = ["UamqpFrames"]

_FRAME: Final = re.compile(r"(->|<-) \[([A-Z]{3,11})\]\* \{", re.ASCII)
_HEADER: Final = re.compile(r"(->|<-) Header \(AMQP (\d)\.1\.0\.0\)", re.ASCII)
_EMPTY: Final = re.compile(r"(->|<-) Empty frame", re.ASCII)
_SASL: Final = re.compile(r"(?:->|<-) \[SASL ", re.ASCII)
_BINARY: Final = re.compile(r"<((?:[0-9A-F]{2} ){0,4095}[0-9A-F]{2})?>", re.ASCII)
_LIKE: Final = re.compile(r"\bb['\"](?:->|<-)(?: |$)", re.ASCII)
_LAST: Final = re.compile(r"(?:->|<-) ([^<>]{1,24})$", re.ASCII)
_LAYERS: Final = {"0": "AMQP", "3": "SASL"}
_RANGES: Final = {"ushort": 1 << 16, "ubyte": 1 << 8, "ulong": 1 << 64}
_FLAGS: Final = {"true": True, "false": False}
_NAMES: Final = (*("open", "begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close"),)
_NUMERIC: Final = (
    *(
        "uint",
        "ushort",
        "ulong",
        "ubyte",
        "handle",
        "milliseconds",
        "seconds",
        "transfer-number",
        "sequence-no",
    ),
    *(
        "delivery-number",
        "message-format",
        "sender-settle-mode",
        "receiver-settle-mode",
        "terminus-durability",
    ),
)


_WHOLE: Final = (
    *(f"[{name.upper()}]* {{" for name in _NAMES),
    "Header (AMQP 0.1.0.0)",
    "Header (AMQP 3.1.0.0)",
    "Empty frame",
    "[SASL ",
)
"""How the texts behind an arrow begin."""


class UamqpFrames(Unnamed):
    """What uamqp prints when it traces frames."""

    library = "uamqp"

    def take(self, line: str) -> Entry | Spoken | None:
        if "->" not in line and "<-" not in line:
            self.state(line)
            return None
        # A message that is sent is printed before its frame, in the same line.
        found = next(iter(deque(_FRAME.finditer(line), maxlen=1)), None)
        if found is None:
            return self._other(line)
        name, sent = found[2].lower(), found[1] == "->"
        time = time_of(line[: found.start()])
        if name not in _NAMES:
            return self.damaged()
        try:
            body = _performative(
                name, _unquoted(line[found.end() :], line[found.start() - 2 : found.start()])
            )
        except ValueError:
            return self.entry(sent, None, time, lost=True)
        return self.entry(sent, body, time)

    def _other(self, line: str) -> Entry | Spoken | None:
        """What a line says that has no performative."""
        found = _HEADER.search(line)
        if found is not None:
            if found[2] == "3":
                return CONTINUES  # the frames of this layer are not logged
            if found[2] not in _LAYERS:
                return self.damaged()
            return self.entry(
                found[1] == "->", None, time_of(line[: found.start()]), header(_LAYERS[found[2]])
            )
        found = _EMPTY.search(line)
        if found is not None:
            return self.entry(found[1] == "->", None, time_of(line[: found.start()]))
        if _SASL.search(line):
            return CONTINUES
        found = _LAST.search(line[-40:].rstrip("'\" \t"))
        cut = found is not None and any(one.startswith(found[1]) for one in _WHOLE)
        return self.damaged() if cut or _LIKE.search(line) else None


def _unquoted(text: str, before: str) -> str:
    """What stands behind the first bracket of a frame. before: the two characters before the frame."""
    text = text.rstrip()
    if before in ("b'", 'b"'):
        octets = literal(before + text)
        if not isinstance(octets, bytes):
            raise ValueError("no octets of Python")
        return octets.decode("utf-8", "replace")
    if text.endswith(("'", '"')):
        text = text[:-1]
    return text


def _performative(name: str, text: str) -> NamedComposite:
    """The performative of a line, from what stands behind its first bracket. Raises ValueError."""
    before, mark, error = text.partition("* {")
    if name in ("detach", "end", "close") and mark and error.endswith("}}"):
        items = _items(before.removesuffix(",") + "}", 0)
        if before.count(",") != (2 if name == "detach" else 0):
            raise ValueError("not the last field")
        return NamedComposite(name, {**_fields(name, items), "error": _error(error[:-2])})
    return NamedComposite(name, _fields(name, _items(text, 0)))


def _error(text: str) -> NamedComposite:
    """An error, from what stands in its brackets. Its description may contain any mark."""
    condition, _, rest = text.partition(",")
    fields: dict[str, object] = {"condition": None if condition == "NULL" else condition}
    if rest.endswith((",NULL", "}")):
        # The end of the description, or the information behind it.
        fields["description"] = fields["info"] = UNLOGGED
    elif rest:
        fields["description"] = None if rest == "NULL" else rest
    return NamedComposite("error", fields)


def _fields(name: str, items: list[str]) -> dict[str, object]:
    known = definition(name)
    if known is None or len(items) > len(known.fields):
        raise ValueError("more values than fields")
    return {field.name: _field(field, item) for field, item in zip(known.fields, items, strict=False)}


def _items(text: str, depth: int) -> list[str]:
    """The values of a list, from what stands behind its bracket to the end. Raises ValueError."""
    if depth > MAX_LOG_DEPTH or not text.endswith("}"):
        raise ValueError("no end")
    items: list[str] = []
    open_brackets, begun = 0, 0
    for at, mark in enumerate(text):
        if mark in "{[":
            open_brackets += 1
        elif mark in "}]":
            open_brackets -= 1
            if open_brackets < 0 and at != len(text) - 1:
                raise ValueError("ends too early")
        if (mark == "," and open_brackets == 0) or open_brackets < 0:
            items.append(text[begun:at])
            begun = at + 1
    if open_brackets != -1:
        raise ValueError("brackets that do not fit")
    return [] if items == [""] else items


def _field(field: Field, text: str) -> object:
    """The value of a field. Raises ValueError if it is none: the values are not those of the fields then."""
    if text == "NULL":
        return None
    if field.name in ("source", "target", "error"):
        if not text.startswith("* {"):
            raise ValueError("no composite")
        return NamedComposite(field.name, _fields(field.name, _items(text[3:], 1)))
    if field.name in ("state", "default-outcome"):
        return UNLOGGED
    if field.type in ("boolean", "role"):
        return _FLAGS[text] if text in _FLAGS else _refuse()
    if field.type in _NUMERIC:
        if not text.isdecimal() or not text.isascii() or len(text) > 20:
            raise ValueError("no number")
        return int(text) if int(text) < _RANGES.get(field.type, 1 << 32) else _refuse()
    if field.type in ("delivery-tag", "binary"):
        found = _BINARY.fullmatch(text)
        return bytes.fromhex(found[1] or "") if found else _refuse()
    if field.type in ("fields", "map", "filter-set", "node-properties"):
        return {} if text == "{}" else UNLOGGED
    if field.multiple:
        return [Symbol(one) for one in _items(text[1:], 1)] if text.startswith("{") else [Symbol(text)]
    return text


def _refuse() -> object:
    raise ValueError("not a value of this field")
