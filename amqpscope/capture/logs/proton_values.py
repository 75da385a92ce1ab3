"""Values as Qpid Proton prints them: `@open(16) [container-id="x", max-frame-size=0x8000]`.

Numbers without a sign are hexadecimal. `:x` is a symbol, `b"x"` a binary, `@x y` the value y described by x,
`@<symbol>[...]` an array, `{...}` a map and `[...]` a list. Octets that cannot be printed are `\\x00`.
"""

import re
from typing import Final

from amqpscope.capture.logs.encoding import UNLOGGED, NamedComposite, Tagged, definition
from amqpscope.limits import MAX_LOG_DEPTH
from dissectors.amqp10.values import Symbol

__all__ = ["Cut", "Unreadable", "octets_of", "read_performative", "read_value"]

_NUMBER: Final = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+(\.\d+)?(?:[eE][+-]?\d+)?|inf|nan)")
_WORD: Final = re.compile(r"[^\s\[\]{}(),=\"]+")
_NAMED: Final = re.compile(r"@([a-z-]+)\((\d+)\) ?\[")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_OTHERS: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0"}


class Unreadable(ValueError):
    """The text is not what Proton prints."""


class Cut(Unreadable):
    """Proton has cut the text off here."""


class _Text:
    """What is left to read of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def takes(self, mark: str) -> bool:
        """Pass over `mark` if it comes next."""
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def refuse(self) -> Unreadable:
        """Why it cannot go on here."""
        return Cut() if self.text.startswith("...", self.at) or self.at >= len(self.text) else Unreadable()


def octets_of(quoted: str) -> bytes:
    """The octets that Proton printed so."""

    def octet(found: re.Match[bytes]) -> bytes:
        mark = found[1]
        return bytes([int(mark[1:], 16)]) if len(mark) == 3 else _OTHERS.get(mark, mark)

    return _ESCAPED.sub(octet, quoted.encode("utf-8", "replace"))


def read_performative(text: str) -> tuple[NamedComposite, str]:
    """The performative with which a text begins, and what follows it. Raises Unreadable.

    Of one that Proton has cut off, the fields that are not printed are UNLOGGED.
    """
    source = _Text(text)
    found = source.match(_NAMED)
    if found is None or definition(found[1]) is None:
        raise Unreadable
    return _composite(source, found[1]), text[source.at :]


def read_value(text: str) -> object:
    """The value that a text is. Raises Unreadable."""
    return _value(_Text(text))


def _composite(source: _Text, name: str) -> NamedComposite:
    known = definition(name)
    if known is None:
        raise Unreadable
    fields: dict[str, object] = {}
    if source.takes("]"):
        return NamedComposite(name, fields)
    names = [field.name for field in known.fields]
    try:
        while True:
            word = source.match(_WORD)
            if word is None or word[0] not in names or not source.takes("="):
                raise source.refuse()
            fields[word[0]] = UNLOGGED
            fields[word[0]] = _value(source)
            if source.takes("]"):
                return NamedComposite(name, fields)
            if not source.takes(", "):
                raise source.refuse()
    except Cut:
        last = max((names.index(one) for one in fields), default=-1)
        fields.update(dict.fromkeys(names[last + 1 :], UNLOGGED))
        source.at = len(source.text)
        return NamedComposite(name, fields)


def _value(source: _Text) -> object:
    source.depth += 1
    if source.depth > MAX_LOG_DEPTH:
        raise Unreadable
    try:
        return _any(source)
    finally:
        source.depth -= 1


def _any(source: _Text) -> object:
    if source.takes(":"):
        return (
            Symbol(_quoted(source).decode("ascii", "replace"))
            if source.text.startswith('"', source.at)
            else Symbol(_word(source))
        )
    if source.text.startswith('b"', source.at):
        source.at += 1
        return _quoted(source)
    if source.text.startswith('"', source.at):
        return _quoted(source).decode("utf-8", "replace")
    if source.takes("["):
        return _items(source)
    if source.takes("{"):
        return _map(source)
    if source.text.startswith("@", source.at):
        return _described(source)
    number = source.match(_NUMBER)
    if number is not None:
        word = number[0]
        if "0x" in word:
            return int(word, 16)
        return float(word) if number[1] or not word.lstrip("-").isdigit() else int(word)
    for word, value in (("true", True), ("false", False), ("null", None)):
        if source.takes(word):
            return value
    raise source.refuse()


def _described(source: _Text) -> object:
    named = source.match(_NAMED)
    if named is not None:
        return _composite(source, named[1])
    source.takes("@")
    if source.takes("<"):
        _word(source)
        if not source.takes("["):
            raise source.refuse()
        return _items(source)
    descriptor = _value(source)
    if not source.takes(" "):
        raise source.refuse()
    return Tagged(descriptor, _value(source))


def _word(source: _Text) -> str:
    word = source.match(_WORD)
    if word is None:
        raise source.refuse()
    return word[0]


def _quoted(source: _Text) -> bytes:
    found = source.match(_QUOTED)
    if found is None:
        raise Cut()
    return octets_of(found[1])


def _items(source: _Text) -> list[object]:
    items: list[object] = []
    while not source.takes("]"):
        if items and not source.takes(", "):
            raise source.refuse()
        items.append(_value(source))
    return items


def _map(source: _Text) -> dict[object, object]:
    entries: dict[object, object] = {}
    while not source.takes("}"):
        if entries and not source.takes(", "):
            raise source.refuse()
        key = _value(source)
        if not source.takes("=") or not isinstance(key, (str, int, bytes)):
            raise source.refuse()
        entries[key] = _value(source)
    return entries
