"""Logs of proton-j, and of Qpid JMS, Vert.x and others that are built on it, `PN_TRACE_FRM=1`:

    [310913103:0] -> Begin{remoteChannel=null, nextOutgoingId=1, incomingWindow=2047, ...}

The number is that of the object that has the connection; behind it is the channel. A frame is printed as Java
shows an object, each field with its name. A field that was null has its default if it has one. In a text
field, null looks like the text "null". The library does not install here: the forms are those of its source
(github.com/apache/qpid-proton-j, folder proton-j/src/main/java/org/apache/qpid/proton: there
engine/impl/TransportImpl.java, engine/impl/StringUtils.java, and the classes in amqp).
"""

import re
from typing import Final

from amqpscope.capture.logs.encoding import UNLOGGED, NamedComposite, definition, frame, header
from amqpscope.capture.logs.entries import HEADER, LOST, Entry, LineFormat, Spoken
from amqpscope.capture.logs.ordered import pieces
from amqpscope.capture.logs.proton_values import octets_of
from amqpscope.capture.logs.stamps import time_of
from amqpscope.limits import MAX_LOG_CONNECTIONS, MAX_LOG_DEPTH, MAX_LOG_FRAME
from dissectors.amqp10.composite import Field
from dissectors.amqp10.values import Symbol

__all__ = ["ProtonJFrames"]

_LINE: Final = re.compile(r"\[(\d{1,11}):(\d{1,5})\] (->|<-)(?: (.*))?$", re.ASCII | re.DOTALL)
_FRAME: Final = re.compile(r"([A-Z][A-Za-z]{2,19})\{", re.ASCII)
_PAYLOAD: Final = re.compile(r"(, batchable=[a-z]{4,5}\}) \((\d{1,9})\) \"", re.ASCII)
_PROPERTY: Final = re.compile(r"(?:^|, )([A-Za-z][A-Za-z0-9_:.-]{0,63})=", re.ASCII)
_OTHER: Final = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE]-?[0-9]{1,5})?|true|false|null|", re.ASCII)
"""What need not be a text."""
_WORDS: Final[dict[str, dict[str, object]]] = {
    "role": {"SENDER": False, "RECEIVER": True},
    "sender-settle-mode": {"UNSETTLED": 0, "SETTLED": 1, "MIXED": 2},
    "receiver-settle-mode": {"FIRST": 0, "SECOND": 1},
    "terminus-durability": {"NONE": 0, "CONFIGURATION": 1, "UNSETTLED_STATE": 2},
    "sasl-code": {"OK": 0, "AUTH": 1, "SYS": 2, "SYS_PERM": 3, "SYS_TEMP": 4},
    "boolean": {"true": True, "false": False},
}
"""How the library prints values of these types."""
_WHOLE: Final = (
    *("SASL", "AMQP", "EmptyFrame{", "Open{", "Begin{", "Attach{", "Flow{", "Transfer{", "Disposition{"),
    *("Detach{", "End{", "Close{", "SaslMechanisms{", "SaslInit{", "SaslChallenge{", "SaslResponse{"),
    "SaslOutcome{",
)
"""How the texts behind an arrow begin."""
_POLICIES: Final = ("LINK_DETACH", "SESSION_END", "CONNECTION_CLOSE", "NEVER")
_STATES: Final = ("Received", "Accepted", "Rejected", "Released", "Modified", "TransactionalState")
_MAPS: Final = ("fields", "map", "filter-set", "node-properties")
_BINARY: Final = ("binary", "delivery-tag")


class ProtonJFrames(LineFormat):
    """What `PN_TRACE_FRM` prints in Java."""

    library = "proton-j"
    prints_headers = False

    def __init__(self) -> None:
        # The connections of which the log has a frame.
        self._known: set[str] = set()

    def take(self, line: str) -> Entry | Spoken | None:
        found = _LINE.search(line) if "] ->" in line or "] <-" in line else None
        if found is None:
            return None
        said = self._said(line, found)
        if said is not None and said.name != LOST and len(self._known) < MAX_LOG_CONNECTIONS:
            self._known.add(said.connection)
        return said

    def _said(self, line: str, found: re.Match[str]) -> Entry | None:
        connection, channel, arrow, text = found.groups()
        text = (text or "").rstrip()
        sent = arrow == "->"
        time = time_of(line[: found.start()])
        if text in ("SASL", "AMQP"):
            return Entry(connection, sent, HEADER, header(text), time)
        if int(channel) > 0xFFFF:
            return Entry(connection, sent, LOST, b"", time)
        if text.startswith("EmptyFrame{"):
            return Entry(connection, sent, "empty", frame(int(channel), None), time)
        named = _FRAME.match(text)
        name = "" if named is None else _hyphened(named[1])
        if named is None or definition(name) is None:
            # What follows the number of a connection is a frame, or the beginning of one.
            cut = connection in self._known or any(text and one.startswith(text) for one in _WHOLE)
            return Entry(connection, sent, LOST, b"", time) if named is not None or cut else None
        rest = text[named.end() :]
        octets, missing = b"", 0
        if name == "transfer":
            rest, octets, missing = _payload(rest)
        try:
            if not rest.endswith("}"):
                raise ValueError("no end")
            body = _composite(name, rest[:-1], 0)
        except ValueError:
            return Entry(connection, sent, LOST, b"", time)
        return Entry(connection, sent, name, frame(int(channel), body, octets, missing), time)


def _hyphened(name: str) -> str:
    """`SaslInit` as `sasl-init`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def _camel(name: str) -> str:
    """`idle-time-out` as `idleTimeOut`."""
    first, *others = name.split("-")
    return first + "".join(one.capitalize() for one in others)


def _payload(rest: str) -> tuple[str, bytes, int]:
    """What stands before the payload in a line, the octets that it holds, and how many more there were."""
    found = _PAYLOAD.search(rest)  # behind the last field: the payload may look like anything
    if found is None:
        return rest, b"", 0
    size = min(int(found[2]), MAX_LOG_FRAME)
    text = rest[found.end() :].removesuffix("...(truncated)")
    octets = octets_of(text.removesuffix('"'))[:size]
    return rest[: found.end(1)], octets, size - len(octets)


def _composite(name: str, text: str, depth: int) -> NamedComposite:
    """A composite, from what stands in its brackets. Raises ValueError."""
    known = definition(name)
    if known is None or depth > MAX_LOG_DEPTH:
        raise ValueError("no composite")
    prefix = "_" if name == "sasl-outcome" else ""
    marks = [
        f"{', ' if index else ''}{prefix}{_camel(field.name)}=" for index, field in enumerate(known.fields)
    ]
    found = pieces(text.strip() if name == "open" else text, marks)
    return NamedComposite(
        name,
        {field.name: _field(field, one, depth) for field, one in zip(known.fields, found, strict=True)},
    )


def _field(field: Field, text: str, depth: int) -> object:
    """The value of a field; UNLOGGED if the text does not tell it."""
    if text == "null":
        return None
    words = _WORDS.get(field.type)
    if words is not None:
        return words.get(text, UNLOGGED)
    if field.name in ("source", "target", "error", "state", "outcome", "default-outcome"):
        return _inner(field.name, text, depth)
    if field.multiple:
        return _symbols(text)
    if field.type in _MAPS:
        return _properties(text) if field.name == "properties" else {} if text == "{}" else UNLOGGED
    if field.type in _BINARY:
        return octets_of(text)
    if field.type == "terminus-expiry-policy":
        return text.lower().replace("_", "-") if text in _POLICIES else UNLOGGED
    if text.isdecimal() and text.isascii() and len(text) <= 20:
        return int(text) if field.type not in ("string", "symbol", "*") else UNLOGGED
    if field.type == "symbol":
        return text
    return _text(text)


def _text(text: str) -> object:
    """A text in quotes. A null is printed like the word, so the word may be either."""
    if len(text) < 2 or not text.startswith("'") or not text.endswith("'") or text == "'null'":
        return UNLOGGED
    return text[1:-1]


def _inner(field: str, text: str, depth: int) -> object:
    """A composite within another one."""
    found = _FRAME.match(text)
    if found is None or not text.endswith("}"):
        return UNLOGGED
    name = found[1]
    fits = name in _STATES if field in ("state", "outcome", "default-outcome") else name == field.capitalize()
    if not fits and not (field == "target" and name == "Coordinator"):
        return UNLOGGED
    try:
        return _composite(_hyphened(name), text[found.end() : -1], depth + 1)
    except ValueError:
        return UNLOGGED


def _symbols(text: str) -> object:
    """An array of symbols."""
    items = text[1:-1].split(", ") if text.startswith("[") and text.endswith("]") else [""]
    return [Symbol(one) for one in items] if all(one.isascii() and one for one in items) else UNLOGGED


def _properties(text: str) -> object:
    """A map of texts. UNLOGGED if one of them looks like a number or a truth value."""
    if text == "{}":
        return {}
    inner = text[1:-1]
    marks = list(_PROPERTY.finditer(inner))
    if not (text.startswith("{") and text.endswith("}")) or not marks or marks[0].start() != 0:
        return UNLOGGED
    found: dict[object, object] = {}
    for at, mark in enumerate(marks):
        end = marks[at + 1].start() if at + 1 < len(marks) else len(inner)
        value = inner[mark.end() : end]
        if "{" in value or "[" in value or _OTHER.fullmatch(value):
            return UNLOGGED
        found[Symbol(mark[1])] = value
    return found
