"""Logs of rhea: `DEBUG=rhea:raw` prints the octets of frames, `DEBUG=rhea:frames` their fields.

    2026-11-23T12:04:19.645Z rhea:frames [connection-1]:0 -> close#18 {}
    2026-11-23T12:04:19.645Z rhea:raw [connection-1] SENT: 12 0000000c0200000000531845

The fields are JSON. rhea leaves out each field that is null, and also each that is 0, false or empty.
Outcomes have no names. So of the fields that a line does not have only some are known: a mandatory one is 0,
false or empty, and one whose default is that is as good as null. Protocol headers are in `rhea:frames` only.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from amqpscope.capture.logs.encoding import UNLOGGED, NamedComposite, definition, frame, header
from amqpscope.capture.logs.entries import CONTINUES, DAMAGED, HEADER, LOST, Entry, LineFormat, Spoken
from amqpscope.capture.logs.frames import name_of
from amqpscope.capture.logs.stamps import time_of
from amqpscope.limits import MAX_LOG_FRAME
from dissectors.amqp10.composite import Field
from dissectors.amqp10.values import Symbol

__all__ = ["RheaFrames", "RheaOctets"]

_OCTETS: Final = re.compile(r"rhea:raw \[([^\]\s]{1,200})\] (SENT|RECV): (\d{1,9}) ([0-9a-f]*)", re.ASCII)
_HEADER: Final = re.compile(r"rhea:frames \[([^\]\s]{1,200})\] (->|<-) \{ protocol_id: (\d),", re.ASCII)
_FRAME: Final = re.compile(
    r"rhea:frames \[([^\]\s]{1,200})\]:(\d{1,5}) (->|<-) (?:(empty)|([a-z_]+)#[0-9a-f]+ (\{.*\}) ?(.*))",
    re.ASCII | re.DOTALL,
)
_BUFFER: Final = re.compile(r"<Buffer ((?:[0-9a-f]{2} ?)*)(?:\.\.\. (\d{1,9}) more bytes?)?>", re.ASCII)
_LAYERS: Final = {"0": "AMQP", "2": "TLS", "3": "SASL"}
_NUMBERS: Final = ("ubyte", "ushort", "uint", "ulong")


class RheaOctets(LineFormat):
    """What `rhea:raw` prints; of the lines of `rhea:frames` beside it only protocol headers."""

    library = "rhea"
    retold = False
    prints_headers = False

    def take(self, line: str) -> Entry | Spoken | None:
        if "rhea:" not in line:
            return None
        found = _OCTETS.search(line)
        if found is None:
            if "rhea:frames" in line:
                return _header(line) or CONTINUES
            return DAMAGED if "rhea:raw" in line else None
        connection, which, size, text = found.groups()
        octets = bytes.fromhex(text) if len(text) % 2 == 0 else b""
        time = time_of(line[: found.start()])
        if len(octets) != int(size) or len(octets) > MAX_LOG_FRAME or not octets:
            return Entry(connection, which == "SENT", LOST, b"", time)
        return Entry(connection, which == "SENT", name_of(octets), octets, time)


class RheaFrames(LineFormat):
    """What `rhea:frames` prints."""

    library = "rhea"

    def take(self, line: str) -> Entry | Spoken | None:
        if "rhea:frames" not in line:
            return None
        found = _FRAME.search(line)
        if found is None:
            return _header(line) or (None if "] peek_size " in line else DAMAGED)
        connection, channel, arrow, empty, name, text, rest = found.groups()
        sent = arrow == "->"
        time = time_of(line[: found.start()])
        lost = Entry(connection, sent, LOST, b"", time)
        if int(channel) > 0xFFFF:
            return lost
        if empty:
            return Entry(connection, sent, "empty", frame(int(channel), None), time)
        name = name.replace("_", "-")
        known = definition(name)
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return lost
        if known is None or not isinstance(fields, dict):
            return lost
        body = NamedComposite(name, {field.name: _field(name, field, fields) for field in known.fields})
        payload, missing = _payload(rest)
        return Entry(connection, sent, name, frame(int(channel), body, payload, missing), time)


def _header(line: str) -> Entry | None:
    """The entry of a line that has a protocol header."""
    found = _HEADER.search(line)
    if found is None or found[3] not in _LAYERS:
        return None
    time = time_of(line[: found.start()])
    return Entry(found[1], found[2] == "->", HEADER, header(_LAYERS[found[3]]), time)


def _field(name: str, field: Field, fields: Mapping[str, object]) -> object:
    """The value of a field of a performative."""
    value = fields.get(field.name.replace("-", "_"))
    if value is None:
        return _left_out(name, field)
    if isinstance(value, dict) and value.get("type") == "Buffer" and isinstance(value.get("data"), list):
        try:
            return bytes(value["data"])
        except (ValueError, TypeError):
            return UNLOGGED
    if field.type == "*" or isinstance(value, (dict, float)):
        # A terminus is a list without its type, a state is one without its name; numbers of maps lose theirs.
        return _terminus(field, value)
    if isinstance(value, list):
        return [Symbol(one) for one in value] if all(isinstance(one, str) for one in value) else UNLOGGED
    return value


def _terminus(field: Field, value: object) -> object:
    """A source or target: of its fields rhea prints the first ones in their order."""
    if field.name not in ("source", "target") or not isinstance(value, list):
        return UNLOGGED
    known = definition(field.name)
    if known is None or len(value) > len(known.fields):
        return UNLOGGED
    fields: dict[str, object] = {}
    for one, sent in zip(known.fields, value, strict=False):
        if sent is None or isinstance(sent, (bool, int, str)):
            fields[one.name] = sent
        elif one.multiple and isinstance(sent, list) and all(isinstance(item, str) for item in sent):
            fields[one.name] = [Symbol(item) for item in sent]
        else:
            fields[one.name] = UNLOGGED
    return NamedComposite(field.name, fields)


def _left_out(name: str, field: Field) -> object:
    """What a field is that rhea has left out: null, 0, false or empty."""
    if field.mandatory:
        if field.type in ("boolean", "role"):
            return False
        return "" if field.type in ("string", "symbol") else UNLOGGED if field.type == "*" else 0
    if field.type == "boolean" or (field.default in (0, False) and field.default is not None):
        return None
    if field.type in ("fields", "map", "symbol", "*", "error", "filter-set", "milliseconds"):
        return None
    if name == "open" or field.name in ("incomplete-unsettled", "max-message-size"):
        return None
    return UNLOGGED


def _payload(rest: str) -> tuple[bytes, int]:
    """The octets of payload that a line holds, and how many more there were."""
    found = _BUFFER.search(rest)
    if found is None:
        return b"", 0
    octets = bytes.fromhex(found[1])
    more = min(int(found[2] or 0), MAX_LOG_FRAME)
    return octets, more
