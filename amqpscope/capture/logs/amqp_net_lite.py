"""Logs of AMQP.Net Lite, `Trace.TraceLevel = TraceLevel.Frame`:

    [09:49:15.211] SEND (ch=0) begin(next-outgoing-id:4294967293,incoming-window:2048,outgoing-window:2048)

What stands before a frame is up to the program. Older releases leave out a field that is null. Newer ones
leave it out only if it has no number, no truth value and no mode, and show 0, False or the first mode else.
So of such a value it is not known whether it was null, unless both mean the same. The names of connections
are not printed. Empty frames are printed only when they are sent, so nothing can be said of the idle
time-out of the endpoint that logs. The library does not install here: the forms are those of its source
(github.com/Azure/amqpnetlite: src/Connection.cs, src/Trace.cs, and the classes in src/Framing and src/Sasl)
and of lines that its users have published.

A frame is printed after it was sent, by the thread that has sent it. So an answer may stand before its
question, and of two frames the later one may stand first: `ordered` is False.
"""

import re
from typing import Final

from amqpscope.capture.logs.encoding import AS_NULL, UNLOGGED, NamedComposite, definition, header
from amqpscope.capture.logs.entries import CONTINUES, Entry, Spoken
from amqpscope.capture.logs.stamps import ClockFace
from amqpscope.capture.logs.unnamed import Unnamed
from amqpscope.capture.unlogged import PAYLOAD
from amqpscope.limits import MAX_LOG_CONNECTIONS, MAX_LOG_DEPTH
from dissectors.amqp10.composite import Field
from dissectors.amqp10.values import Symbol

__all__ = ["AmqpNetLiteFrames"]

_FRAMES: Final = ("open", "begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close")
_LAYER: Final = ("sasl-mechanisms", "sasl-init", "sasl-challenge", "sasl-response", "sasl-outcome")
_FRAME: Final = re.compile(
    rf"\b(SEND|RECV) (?:\(ch=(\d{{1,5}})\) ({'|'.join(_FRAMES)})|({'|'.join(_LAYER)}))\(", re.ASCII
)
_HEADER: Final = re.compile(r"\b(SEND|RECV) AMQP ([03]) 1[ .]0[ .]0\s{0,9}$", re.ASCII)
_EMPTY: Final = re.compile(r"\b(SEND|RECV) \(ch=(\d{1,5})\) empty\s{0,9}$", re.ASCII)
_OCTETS: Final = re.compile(r"\b(?:SEND|RECV) [0-9A-F]{8,}", re.ASCII)
_PAYLOAD: Final = re.compile(r"\) payload (\d{1,10})$", re.ASCII)
_LIKE: Final = re.compile(r"\b(?:SEND|RECV) \(ch=", re.ASCII)
_CUT: Final = re.compile(r"\b(?:SEND|RECV)(?: ([^()\[\]{}]{0,20}))?$", re.ASCII)
_WHOLE: Final = ("(ch=", "AMQP 0 1.0.0", "AMQP 3 1 0 0", "AMQP 0 1 0 0", *(f"{name}(" for name in _LAYER))
"""How the texts behind SEND and RECV begin."""
_LAYERS: Final = {"0": "AMQP", "3": "SASL"}
_TITLES: Final = {
    "open": {"hostname": "host-name"},
    "flow": {
        "next-incoming-id": "next-in-id",
        "incoming-window": "in-window",
        "next-outgoing-id": "next-out-id",
        "outgoing-window": "out-window",
    },
}
"""Fields that the library calls something else."""
_MODES: Final[dict[str, dict[str, int]]] = {
    "sender-settle-mode": {"Unsettled": 0, "Settled": 1, "Mixed": 2},
    "receiver-settle-mode": {"First": 0, "Second": 1},
    "sasl-code": {"Ok": 0, "Auth": 1, "Sys": 2, "SysPerm": 3, "SysTemp": 4},
}
_STATES: Final = ("received", "accepted", "rejected", "released", "modified")
_INNER: Final = re.compile(r"([a-z-]{5,20})\(", re.ASCII)
_MAPS: Final = ("fields", "map", "filter-set", "node-properties")
_NULLABLE: Final = (
    *("string", "symbol", "*", "binary", "delivery-tag", "terminus-expiry-policy", "error"),
    *("fields", "map", "filter-set", "node-properties"),
)
"""Types of which a null is left out."""
_ALLOWING: Final = (
    *("max-frame-size", "channel-max", "handle-max", "snd-settle-mode", "rcv-settle-mode"),
    *("message-format", "available"),
)
"""Fields in which null allows all that 0 allows, and more."""
_TEXTS: Final = ("string", "symbol", "terminus-expiry-policy", "*")


class AmqpNetLiteFrames(Unnamed):
    """What the library prints when it traces frames."""

    library = "AMQP.Net Lite"
    exact = False
    ordered = False
    unplaced = "the log does not say to which connection these frames belong"

    def __init__(self) -> None:
        super().__init__()
        self._clock = ClockFace()
        # Who has begun a session on which channel that the other side has not answered.
        self._unanswered: set[tuple[bool, int]] = set()

    def take(self, line: str) -> Entry | Spoken | None:
        if "SEND" not in line and "RECV" not in line:
            return None
        found = _FRAME.search(line)
        if found is None:
            return self._other(line.rstrip())
        sent = found[1] == "SEND"
        time = self._clock.time_of(line[: found.start()])
        name = found[3] or found[4]
        channel = int(found[2] or 0)
        text, missing = line[found.end() :].rstrip(), 0
        payload = _PAYLOAD.search(text) if name == "transfer" else None
        if payload is not None:
            missing = min(int(payload[1]), PAYLOAD)
            text = text[: payload.start() + 1]
        try:
            if not text.endswith(")") or channel > 0xFFFF:
                raise ValueError("no end")
            body = _composite(name, text[:-1], sent, 0)
        except ValueError:
            return self.entry(sent, None, time, lost=True)
        if name == "begin":
            body = self._begin(sent, channel, body)
        return self.entry(sent, body, time, channel=channel, missing=missing)

    def _begin(self, sent: bool, channel: int, body: NamedComposite) -> NamedComposite:
        """A begin. A remote-channel of 0 is null if there is nothing to answer on channel 0."""
        remote = body.fields["remote-channel"]
        if remote == 0 and (not sent, 0) not in self._unanswered:
            remote = None
        if isinstance(remote, int):
            self._unanswered.discard((not sent, remote))
        elif len(self._unanswered) < MAX_LOG_CONNECTIONS:
            self._unanswered.add((sent, channel))
        return NamedComposite("begin", {**body.fields, "remote-channel": remote})

    def _other(self, line: str) -> Entry | Spoken | None:
        """What a line says that has no performative."""
        found = _HEADER.search(line)
        if found is not None:
            time = self._clock.time_of(line[: found.start()])
            if found[1] == "SEND":
                self._unanswered.clear()
            return self.entry(found[1] == "SEND", None, time, header(_LAYERS[found[2]]))
        found = _EMPTY.search(line)
        if found is not None:
            return self.entry(found[1] == "SEND", None, self._clock.time_of(line[: found.start()]))
        if _OCTETS.search(line):
            return CONTINUES  # of the level Buffer: the frame has a line of its own
        found = _CUT.search(line[-40:])
        cut = found is not None and any(one.startswith(found[1] or "") for one in _WHOLE)
        return self.damaged() if _LIKE.search(line) or (cut and self.is_begun()) else None


def _composite(name: str, text: str, sent: bool, depth: int) -> NamedComposite:
    """A composite, from what stands in its brackets. Raises ValueError."""
    known = definition(name)
    if known is None or depth > MAX_LOG_DEPTH:
        raise ValueError("no composite")
    titles = _TITLES.get(name, {})
    fields = {titles.get(field.name, field.name): field for field in known.fields}
    found: dict[str, str] = {}
    last = -1
    order = list(fields)
    for title, one in _parts(text, fields):
        place = order.index(title)
        if place <= last:
            raise ValueError("not certain where the field begins")
        last = place
        found[fields[title].name] = one
    # A newer release would have printed all fields of these types.
    newer = all(
        field.name in found for field in known.fields if field.type not in _NULLABLE and not field.multiple
    )
    values = {field.name: _field(name, field, found, sent, depth, newer) for field in known.fields}
    return NamedComposite(name, values)


def _parts(text: str, titles: dict[str, Field]) -> list[tuple[str, str]]:
    """The fields in a text, by their titles, in their order. Raises ValueError."""
    starts: list[tuple[int, int, str]] = []
    depth = 0
    for found in re.finditer(r"[\[\](){}]|(?:^|,)([a-z-]{4,24}):", text, re.ASCII):
        if found[1] is None:
            depth += 1 if found[0] in "[({" else -1
            if depth < 0:
                raise ValueError("brackets that do not fit")
        elif depth == 0 and found[1] in titles:
            starts.append((found.start(), found.end(), found[1]))
    if depth or (text and (not starts or starts[0][0] != 0)):
        raise ValueError("no field")
    ends = [*[begin for begin, _, _ in starts[1:]], len(text)][: len(starts)]
    return [(title, text[begin:end]) for (_, begin, title), end in zip(starts, ends, strict=True)]


def _field(name: str, field: Field, found: dict[str, str], sent: bool, depth: int, newer: bool) -> object:
    """The value of a field; UNLOGGED if the text does not tell it. found: the texts of all fields.

    newer: 0 may stand for null.
    """
    text = found.get(field.name)
    if text is None:
        # A number of a newer release would be printed.
        return UNLOGGED if field.mandatory and field.type not in _TEXTS else None
    if field.name in ("source", "target", "error", "state", "default-outcome"):
        return _inner(field.name, text, sent, depth)
    if field.type in ("boolean", "role"):
        if text not in ("True", "False"):
            return UNLOGGED
        return True if text == "True" else None if newer and not field.mandatory else False
    if field.multiple:
        return _symbols(text)
    if field.type in _MAPS:
        return UNLOGGED
    if field.name == "delivery-tag":
        return _hexadecimal(text)
    if field.type == "binary":
        return UNLOGGED
    if field.type in _TEXTS:
        return text
    number = _MODES.get(field.type, {}).get(text, -1)
    if number < 0:
        if not text.isdecimal() or not text.isascii() or len(text) > 20:
            return UNLOGGED
        number = int(text)
    if field.name == "idle-time-out" and sent:
        return UNLOGGED
    return _zero(name, field, found) if newer and not number and not field.mandatory else number


def _zero(name: str, field: Field, found: dict[str, str]) -> object:
    """The value of a field that is 0 or null."""
    if field.default == 0 or field.name in ("idle-time-out", "max-message-size", "last"):
        return None  # 0 means the same as null; of a disposition whose first is not 0, it is null
    if field.name == "remote-channel":
        return 0
    if field.name == "initial-delivery-count":
        return 0 if found.get("role") == "False" else None
    if field.name == "handle":
        counted = ("delivery-count", "link-credit", "available")
        return 0 if any(found.get(one, "0") != "0" for one in counted) else UNLOGGED
    if name == "transfer" and field.name in ("delivery-id", "message-format") and "delivery-tag" in found:
        return 0
    return AS_NULL if field.name in _ALLOWING else UNLOGGED


def _inner(field: str, text: str, sent: bool, depth: int) -> object:
    """A composite within another one."""
    found = _INNER.match(text)
    if found is None or not text.endswith(")"):
        return UNLOGGED
    name = found[1]
    fits = name in _STATES if field in ("state", "default-outcome") else name == field
    if not fits and not (field == "target" and name == "coordinator"):
        return UNLOGGED
    try:
        return _composite(name, text[found.end() : -1], sent, depth + 1)
    except ValueError:
        return UNLOGGED


def _symbols(text: str) -> object:
    """One symbol, or an array of them: `[a,b]`."""
    items = text[1:-1].split(",") if text.startswith("[") and text.endswith("]") else [text]
    return [Symbol(one) for one in items] if all(one.isascii() and one for one in items) else UNLOGGED


def _hexadecimal(text: str) -> object:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return UNLOGGED
