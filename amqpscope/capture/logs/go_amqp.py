"""Logs of go-amqp, and of the Azure SDK for Go on it, built with `-tags debug` (DEBUG_LEVEL=1 or more):

    14:26:21.985146 TX (connWriter 0xc000002180) timeout 30s: Frame{Type: AMQP, Channel: 0, Body: Close{...}}

and what its newer releases give to a handler of log/slog, as text or JSON:

    time=... level=INFO msg="RX (connReader)" conn_ptr=0xc000002180 frame="Frame{...}"

Older releases do not print the address of the connection. A frame is printed as its fields in their order,
a field that was null has its zero or its default. Protocol headers and the secrets of SASL are not printed,
and empty frames only at a high level: so nothing can be said of idle time-outs. The library does not
install here: the forms are those of its source (github.com/Azure/go-amqp: conn.go, sasl.go,
internal/frames/frames.go, internal/encoding/types.go) and of lines that its users have published.

Frames are printed by one goroutine for each direction: sent ones before they are sent, received ones before
the program has seen them. So the log proves no more than a capture does of what the endpoint had processed.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from amqpscope.capture.logs.encoding import AS_NULL, UNLOGGED, NamedComposite, definition, frame
from amqpscope.capture.logs.entries import CONTINUES, DAMAGED, LOST, UNPLACED, Entry, LineFormat, Spoken
from amqpscope.capture.logs.ordered import pieces
from amqpscope.capture.logs.stamps import ClockFace
from amqpscope.capture.unlogged import PAYLOAD
from amqpscope.limits import MAX_LOG_DEPTH
from dissectors.amqp10.composite import Field
from dissectors.amqp10.values import Symbol

__all__ = ["GoAmqpFrames"]

_PLACES: Final = (
    *("connReader", "connWriter", "openAMQP", "negotiateSASL", "saslOutcome"),
    *("ConnSASLPlain", "ConnSASLAnonymous", "ConnSASLExternal"),
)
"""The functions of the library that print a frame which they send or have received."""
_PLACE: Final = re.compile(
    rf"\b(TX|RX) \(({'|'.join(_PLACES)})(?: (0x[0-9a-f]{{1,16}}))?\)(?: timeout(?: [0-9a-zµ.]{{1,20}})?)?",
    re.ASCII,
)
_BEFORE: Final = re.compile(r"\b[TR]X |\d\d:\d\d:.{0,20}\d\d:\d\d:\d\d", re.ASCII)
"""Another line, in front of one."""
_BEHIND: Final = ": Frame{"
_CUT: Final = re.compile(r"\b[TR]X \(([A-Za-z]{0,20})(?: (?:0x?)?[0-9a-f]{0,16})?$", re.ASCII)
_CUT_PLAIN: Final = re.compile(r"(?:^|\s)\d\d:\d\d:\d\d\.\d{1,6} ?(?:[TR]X?)? ?$", re.ASCII)
"""The beginning of another line, up to the name of a function, at the end of one."""
_CUT_SLOG: Final = re.compile(
    r"(?:\{\s?\"time\":[^{}]{0,60}"
    r"|time=[0-9T:.Z+-]{0,40}(?: (?:l|le|lev|leve|level(?:=[A-Z]{0,8})?))?"
    r"(?: (?:m|ms|msg|msg=|msg=\"[A-Z]{0,2} ?))?)$",
    re.ASCII,
)
"""The beginning of a line of slog, up to its message."""
_POINTER: Final = re.compile(r"\bconn_ptr=(0x[0-9a-f]{1,16})\b", re.ASCII)
_QUOTED: Final = re.compile(r" frame=(\"(?:[^\"\\]|\\.)*\"|Frame\{\S*\}(?= |$))", re.ASCII)
_FRAME: Final = re.compile(
    r"Frame\{Type: (?:AMQP|SASL), Channel: (\d{1,5}), Body: ([A-Z][A-Za-z]{1,19})\{", re.ASCII
)
_WORD: Final = re.compile(r"([A-Za-z]{1,20})\{", re.ASCII)
_NAMES: Final = {
    "challenge": "sasl-challenge",
    "response": "sasl-response",
}
"""Frames that the library calls something else."""
_TITLES: Final = {
    "idle-time-out": "IdleTimeout",
    "snd-settle-mode": "SenderSettleMode",
    "rcv-settle-mode": "ReceiverSettleMode",
    "sasl-server-mechanisms": "Mechanisms",
}
"""Fields that it calls something else."""
_SPACED: Final = ("container-id", "sasl-server-mechanisms", "mechanism", "code")
"""Fields behind whose name it prints a space."""
_WORDS: Final[dict[str, dict[str, object]]] = {
    "role": {"Sender": False, "Receiver": True},
    "sender-settle-mode": {"unsettled": 0, "settled": 1, "mixed": 2},
    "receiver-settle-mode": {"first": 0, "second": 1},
    "boolean": {"true": True, "false": None},
}
"""How the library prints values of these types. A boolean that is null is printed as false."""
_STATES: Final = ("Accepted", "Released", "Rejected", "Modified")
_MAPS: Final = ("fields", "map", "filter-set", "node-properties")
_NUMBERS: Final = (
    *("uint", "ushort", "ulong", "ubyte", "handle", "seconds", "transfer-number", "sequence-no"),
    *("delivery-number", "message-format", "terminus-durability", "sasl-code"),
)
_NULL: Final = "<nil>"


class GoAmqpFrames(LineFormat):
    """What the library prints when it is built for debugging, or gives to a logger."""

    library = "go-amqp"
    prints_headers = False
    exact = False
    unplaced = "the log does not say to which connection these frames belong"

    def __init__(self) -> None:
        self._clock = ClockFace()
        # Of the newest connection without an address: its number, whether it has sent an open, and received
        # one, and who has closed it; who may still close one before it; several of these are open at a time.
        self._number = 0
        self._opened = False
        self._answered = False
        self._closed: set[bool] = set()
        self._late: set[bool] = set()
        self._unclear = False
        # The lines are not those of slog.
        self._plain = False

    def take(self, line: str) -> Entry | Spoken | None:
        if "X (" not in line:
            cut = _CUT_PLAIN.search(line[-24:]) or (not self._plain and _CUT_SLOG.match(line))
            return DAMAGED if cut else None
        if line.startswith("{") and '"msg"' in line:
            return self._json(line)
        found = _PLACE.search(line)
        if found is None:
            cut = _CUT.search(line)
            return DAMAGED if cut and any(one.startswith(cut[1]) for one in _PLACES) else None
        rest = line[found.end() :]
        if _PLACE.search(rest) or _BEFORE.search(line[: found.start()]):
            return DAMAGED  # several lines in one
        if rest.startswith('"'):
            return self._text(line, found)
        if not rest.startswith(_BEHIND):
            return DAMAGED if _BEHIND.startswith(rest.rstrip()) else CONTINUES
        self._plain = True
        return self._entry(found, found[3] or "", rest[2:].rstrip("\" '"), line[: found.start()])

    def _text(self, line: str, found: re.Match[str]) -> Entry | Spoken | None:
        """A line of slog's TextHandler."""
        pointer = _POINTER.search(line, found.end())
        quoted = _QUOTED.search(line, found.end())
        if pointer is None or quoted is None:
            # A message without a frame has an error, or is of another connection's beginning.
            return CONTINUES if pointer is not None and " error=" in line else DAMAGED
        text = quoted[1]
        if text.startswith('"'):
            try:
                text = json.loads(text)
            except ValueError:
                text = ""
        return self._entry(found, pointer[1], str(text), line[: found.start()])

    def _json(self, line: str) -> Entry | Spoken | None:
        """A line of slog's JSONHandler."""
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return DAMAGED if _PLACE.search(line) else None
        message = said.get("msg") if isinstance(said, dict) else None
        found = _PLACE.fullmatch(message) if isinstance(message, str) else None
        if found is None:
            return None
        text, pointer = said.get("frame"), said.get("conn_ptr")
        if not isinstance(text, str):
            return CONTINUES
        return self._entry(
            found, pointer if isinstance(pointer, str) else "", text, str(said.get("time", ""))
        )

    def _entry(self, found: re.Match[str], pointer: str, text: str, before: str) -> Entry | Spoken:
        """The entry of a frame. pointer: to its connection, "" if the log does not have it."""
        sent = found[1] == "TX"
        time = self._clock.time_of(before)
        begun = _FRAME.match(text)
        name = "" if begun is None else _hyphened(begun[2])
        if not pointer:
            if self._is_unplaced(sent, name):
                return UNPLACED
            if begun is None:
                return DAMAGED  # it may be the first one of another connection
            pointer = str(self._number)
        lost = Entry(pointer, sent, LOST, b"", time)
        if begun is None or not text.endswith("}}") or int(begun[1]) > 0xFFFF:
            return lost
        try:
            body, missing = _performative(name, text[begun.end() : -2], sent)
        except ValueError:
            return lost
        return Entry(pointer, sent, name, frame(int(begun[1]), body, b"", missing), time)

    def _is_unplaced(self, sent: bool, name: str) -> bool:
        """Whether it is not clear of which connection a frame is; else it is of the newest."""
        if (name == "open" and sent) or name == "sasl-mechanisms":
            if self._opened or self._answered or self._closed:
                self._unclear = self._unclear or not self._closed
                self._late |= {True, False} - self._closed
                self._number += 1
                self._closed = set()
                self._answered = False
            self._opened = name == "open"
        elif name == "open":
            self._answered = True
        elif name == "close":
            self._unclear = self._unclear or sent in self._late
            self._closed.add(sent)
        elif name and not name.startswith("sasl-"):
            if self._late and not self._answered:
                self._unclear = True  # of a connection before
            self._answered = True
        return self._unclear


def _hyphened(name: str) -> str:
    """`SaslInit` as `sasl-init`."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
    return _NAMES.get(plain, plain)


def _title(field: Field) -> str:
    """`next-outgoing-id` as `NextOutgoingID: `."""
    words = (word.capitalize() for word in field.name.split("-"))
    title = _TITLES.get(field.name) or "".join("ID" if word == "Id" else word for word in words)
    return f"{title} : " if field.name in _SPACED else f"{title}: "


def _performative(name: str, text: str, sent: bool) -> tuple[NamedComposite, int]:
    """A frame, from what stands in its brackets, and the octets of its payload. Raises ValueError."""
    missing = 0
    if name == "transfer":
        text, mark, size = text.rpartition(", Payload [size]: ")
        if not mark or not size.isdecimal() or not size.isascii() or len(size) > 10:
            raise ValueError("no size")
        missing = min(int(size), PAYLOAD)
    return _composite(name, text, sent, 0), missing


def _composite(name: str, text: str, sent: bool, depth: int) -> NamedComposite:
    """A composite, from what stands in its brackets. Raises ValueError."""
    known = definition(name)
    if known is None or depth > MAX_LOG_DEPTH:
        raise ValueError("no composite")
    marks: list[str] = []
    for field in known.fields:
        # The one comma that the library leaves out.
        before = "" if not marks else " " if (name, field.name) == ("source", "outcomes") else ", "
        marks.append(before + _title(field))
    found = dict(zip((field.name for field in known.fields), pieces(text, marks), strict=True))
    return NamedComposite(
        name,
        {field.name: _field(name, field, found[field.name], sent, depth, found) for field in known.fields},
    )


def _field(name: str, field: Field, text: str, sent: bool, depth: int, others: Mapping[str, str]) -> object:
    """The value of a field; UNLOGGED if the text does not tell it. others: the texts of all fields."""
    if text == _NULL:
        return None
    if field.type in _WORDS:
        return _WORDS[field.type].get(text, UNLOGGED)
    if field.name in ("source", "target", "error", "state", "default-outcome"):
        return _inner(field.name, text, sent, depth)
    if field.multiple:
        return _symbols(text)
    if field.type in _MAPS:
        return UNLOGGED if text != "map[]" else AS_NULL if field.name == "unsettled" and not sent else None
    if field.name == "idle-time-out":
        return None if text == "0s" else UNLOGGED
    if field.name == "delivery-tag":
        return _hexadecimal(text)
    if field.type == "binary":
        return None if text == "[]" else UNLOGGED
    if field.type in _NUMBERS:
        return _number(name, field, text, others)
    if not text and not field.mandatory:
        # The library leaves an empty text out of what it sends, and shows null as an empty text.
        if field.name == "address" and others.get("dynamic") == "true":
            return None if sent else UNLOGGED
        return None if sent else AS_NULL
    return text


def _number(name: str, field: Field, text: str, others: Mapping[str, str]) -> object:
    if not text.isdecimal() or not text.isascii() or len(text) > 20:
        return UNLOGGED
    if int(text) == 0 and not field.mandatory:
        if field.name == "initial-delivery-count" and others.get("role") == "Receiver":
            return None
        if field.name == "max-message-size" or (field.default == 0 and name in ("source", "target")):
            return None
    return int(text)


def _inner(field: str, text: str, sent: bool, depth: int) -> object:
    """A composite within another one."""
    if text in ("Accepted", "Released"):
        return NamedComposite(text.lower(), {})
    if text == "*Error(nil)":
        return None
    found = _WORD.match(text.removeprefix("*"))
    if found is None or not text.endswith("}"):
        return UNLOGGED
    inner = text.removeprefix("*")[found.end() : -1]
    word = found[1]
    if field in ("source", "target"):
        # The library calls both of them source.
        name = field if word in ("source", "target") else ""
    elif field == "error":
        name = "error" if word == "Error" else ""
    else:
        name = word.lower() if word in _STATES else ""
    try:
        return _composite(name, inner, sent, depth + 1)
    except ValueError:
        return UNLOGGED


def _symbols(text: str) -> object:
    """An array of symbols: `[a b]`."""
    if not text.startswith("[") or not text.endswith("]"):
        return UNLOGGED
    items = text[1:-1].split(" ")
    if items == [""]:
        return None
    return [Symbol(one) for one in items] if all(one.isascii() and one for one in items) else UNLOGGED


def _hexadecimal(text: str) -> object:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return UNLOGGED
