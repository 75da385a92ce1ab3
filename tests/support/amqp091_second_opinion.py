"""AMQP 0-9-1 in a capture, as the dissector reads it and as tshark does, in one vocabulary.

    ours = our_frames(path)
    theirs = tshark_frames(path)
    differences(ours, theirs)      ["4 basic.publish routing-key: 'a', tshark 'b'", ...]

Frames are matched within one direction of one connection, in order. Texts: numbers in decimal, bits as 0 and
1, strings as they are, long strings in hexadecimal, tables leaf by leaf ("arguments.x-max-length": "integer
5"). The source is tshark's PDML, which alone keeps the order of fields.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amqpscope.capture.reader import for_magic
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.reassembly.connection import TcpConnection
from amqpscope.reassembly.provenance import Provenance
from amqpscope.reassembly.stream import StreamSink
from dissectors.amqp091 import values
from dissectors.amqp091.arguments import Arguments, Method, UnknownMethod
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.decimals import Decimal
from dissectors.amqp091.frame import Amqp091FrameDecoder
from dissectors.amqp091.tables import FieldTable
from dissectors.interface import Frame


@dataclass
class Reported:
    """A frame: where it was seen, what it is, and every field of it that is present."""

    direction: tuple[int, int]  # TCP stream, source port
    name: str
    channel: int
    size: int
    fields: dict[str, str] = field(default_factory=dict)
    frame: Frame | None = field(default=None, repr=False)
    packet: int = 0


# ---- ours


class _Streams(StreamSink):
    """The two directions of a connection, each with a decoder."""

    def __init__(self) -> None:
        self.decoders = (Amqp091FrameDecoder(), Amqp091FrameDecoder())
        self.begun = [False, False]

    def data(
        self, direction: int, offset: int, buf: bytes, start: int, end: int, provenance: Provenance
    ) -> None:
        decoder = self.decoders[direction]
        if not self.begun[direction]:
            self.begun[direction] = True
            # Neither SYN nor handshake: what comes first may be the middle of a frame.
            decoder.lost = not (buf[start:end].startswith((b"AMQP", b"\1\0\0", b"GARB")))
        decoder.feed(buf, start, end)

    def gap(self, direction: int, offset: int, size: int, packet: int, time: int) -> None:
        self.decoders[direction].gap(size)

    def end(self, direction: int, reason: str, packet: int, time: int) -> None:
        self.decoders[direction].end(reason)


class _Segments(SegmentSink):
    """The connections of a capture in the order in which they began."""

    def __init__(self) -> None:
        self.connections: list[tuple[bytes, _Streams, TcpConnection]] = []
        self.by_key: dict[bytes, int] = {}

    def segment(self, segment: Segment) -> None:
        key = segment.key
        number = self.by_key.get(key)
        if number is None:
            number = len(self.connections)
            streams = _Streams()
            self.by_key[key] = self.by_key[segment.reverse] = number
            self.connections.append((key, streams, TcpConnection(streams)))
        first, _, tcp = self.connections[number]
        tcp.segment(0 if key == first else 1, segment)


def our_frames(path: Path) -> list[Reported]:
    """All frames that the dissector finds, but skipped stretches, and protocol headers: of those tshark
    prints neither fields nor octets."""
    octets = path.read_bytes()
    sink = _Segments()
    reader = for_magic(octets[:4], sink)
    assert reader is not None
    reader.feed(octets)
    reader.finish()
    reported: list[Reported] = []
    for number, (key, streams, tcp) in enumerate(sink.connections):
        tcp.finish()
        for direction, decoder in enumerate(streams.decoders):
            ended = decoder.begun.passed == 0 and not decoder.lost
            if not ended:
                decoder.end("capture")
            port = int.from_bytes(key[-4:-2] if direction == 0 else key[-2:], "big")
            reported += [
                _ours((number, port), frame)
                for frame in decoder.frames
                if frame.kind not in ("skipped", "header")
            ]
    return reported


def _ours(direction: tuple[int, int], frame: Frame) -> Reported:
    reported = Reported(direction, frame.name, max(0, int(frame.channel)), int(frame.size), frame=frame)
    body = frame.body
    if isinstance(body, UnknownMethod):
        reported.name = f"{body.class_id}.{body.method_id}"
    elif isinstance(body, Method):
        _arguments(body, reported.fields)
    elif isinstance(body, ContentHeader):
        reported.fields |= {"class": str(body.class_id), "weight": str(body.weight)}
        reported.fields |= {"body-size": str(body.body_size), "flags": f"0x{body.flags:04x}"}
        _arguments(body.properties(), reported.fields)
    elif frame.kind == "body":
        reported.fields["payload"] = frame.payload.hex()
    return reported


def _arguments(arguments: Arguments, into: dict[str, str]) -> None:
    for definition, value in arguments.fields():
        name = definition.name
        if isinstance(value, FieldTable):
            into[name] = "table"
            for key, item in value.read():
                _leaf(f"{name}.{key}", item, into)
        elif isinstance(value, bool):
            into[name] = str(int(value))
        elif isinstance(value, bytes):
            into[name] = value.hex()
        else:
            into[name] = str(value)


_TYPES: dict[type, str] = {
    bool: "boolean",
    values.ShortShortInt: "byte",
    values.ShortShortUint: "unsigned byte",
    values.ShortInt: "short int",
    values.ShortUint: "short uint",
    values.LongInt: "integer",
    values.LongUint: "unsigned integer",
    values.LongLongInt: "long int",
    values.Amqp091Float: "float",
    float: "double",
    Decimal: "decimal",
    str: "string",
    bytes: "string",
    values.ByteArray: "byte array",
    values.Amqp091Timestamp: "timestamp",
    type(None): "void",
    values.Table: "field table",
    values.FieldArray: "array",
    values.Raw: "undecodable",
}


def _leaf(path: str, item: object, into: dict[str, str]) -> None:
    into[path] = f"{_TYPES[type(item)]} {_text(item)}".rstrip()
    if isinstance(item, values.Table):
        for key, inner in item:
            _leaf(f"{path}.{key}", inner, into)
    elif isinstance(item, values.FieldArray):
        for number, inner in enumerate(item):
            _leaf(f"{path}.[{number}]", inner, into)


def _text(item: Any) -> str:
    if item is None or isinstance(item, values.Table | values.FieldArray):
        return ""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, values.Amqp091Timestamp):
        moment = datetime.datetime.fromtimestamp(int(item), datetime.UTC)
        return f"{moment:%b} {moment.day:2}, {moment:%Y %H:%M:%S}.000000000 UTC"
    if isinstance(item, Decimal | float):
        return f"{float(item):f}"
    if isinstance(item, values.Raw):
        return item.octets.hex()
    if isinstance(item, bytes):
        return item.hex()
    return _CONTROLS.sub(lambda match: f"\\x{ord(match.group()):x}", str(item))


# ---- tshark's

# tshark's names that are not the specification's: by field, or by method and field where it matters.
_NAMES = {
    "ticket": "reserved-1",
    "nowait": "no-wait",
    "out-of-band": "reserved-1",
    "channel-id": "reserved-1",
    "capabilities": "reserved-1",
    "insist": "reserved-2",
    "known-hosts": "reserved-1",
    "filter": "arguments",
    "cluster-id": "reserved",
    "basic.get-empty.cluster-id": "reserved-1",
    "access.request-ok.ticket": "ticket",
    "exchange.declare.auto-delete": "reserved-2",
    "exchange.declare.internal": "reserved-3",
}
# What tshark adds of its own.
_ADDED = {"publish-number", "message-in", "ack-in", "returned-in"}
_CLASSES = {
    10: "connection",
    20: "channel",
    30: "access",
    40: "exchange",
    50: "queue",
    60: "basic",
    85: "confirm",
    90: "tx",
}
_TABLES = {"server-properties", "client-properties", "arguments", "headers"}
_LONG_STRINGS = {"mechanisms", "locales", "response", "challenge", "new-secret"}
_NUMBERED = re.compile(r"^(Class|Method): (.*) \((\d+)\)$")
_LEAF = re.compile(r"^(.*) \(([a-z -]+)\)(?:: (.*))?$", re.DOTALL)
_CONTROLS = re.compile("[\x00-\x1f\x7f]")  # tshark writes them in hexadecimal, in values of tables only
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def tshark_frames(path: Path) -> list[Reported]:
    """All frames that tshark finds, but protocol headers."""
    command = ["tshark", "-n", "-r", str(path), "-Y", "amqp", "-T", "pdml", "-J", "amqp tcp"]
    command += ["-o", "tcp.reassemble_out_of_order:TRUE"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode in (0, 2), done.stderr
    reported: list[Reported] = []
    text = _NO_XML.sub("\ufffd", done.stdout.decode("utf-8", errors="replace"))
    for packet in ElementTree.fromstring(text).iter("packet"):
        number = 0
        direction = (-1, -1)
        for layer in packet:
            if layer.get("name") == "geninfo":
                number = int(_show(layer, "num"))
            elif layer.get("name") == "tcp":
                direction = (int(_show(layer, "tcp.stream")), int(_show(layer, "tcp.srcport")))
            elif layer.get("name") == "amqp" and any(child.get("name") == "amqp.type" for child in layer):
                reported.append(_theirs(layer, direction, number))
    return reported


def _show(layer: ElementTree.Element, name: str) -> str:
    return next(child.get("show", "") for child in layer if child.get("name") == name)


def _theirs(layer: ElementTree.Element, direction: tuple[int, int], packet: int) -> Reported:
    found = {child.get("name", ""): child for child in layer}
    reported = Reported(direction, "", 0, 0, packet=packet)
    reported.channel = int(_show(layer, "amqp.channel"))
    reported.size = int(_show(layer, "amqp.length")) + 8
    kind = _show(layer, "amqp.type")
    reported.name = {"1": "method", "2": "content-header", "3": "body", "8": "heartbeat"}.get(kind, "unknown")
    if kind == "1" and "amqp.method.method" in found:
        reported.name = _method_name(layer, found)
    for name, element in found.items():
        if name == "amqp.method.arguments" or name == "amqp.header.properties":
            for child in element:
                _argument(reported, child)
        elif name.startswith("amqp.header."):
            value = element.get("show", "")
            reported.fields[{"property-flags": "flags"}.get(name[12:], name[12:])] = value
        elif name == "amqp.payload":
            reported.fields["payload"] = element.get("value", "")
    return reported


def _method_name(layer: ElementTree.Element, found: dict[str, ElementTree.Element]) -> str:
    named = _NUMBERED.match(found["amqp.method.method"].get("showname", ""))
    class_id, method_id = int(_show(layer, "amqp.method.class")), int(_show(layer, "amqp.method.method"))
    if named is None or class_id not in _CLASSES or named.group(2) == "Unknown":
        return f"{class_id}.{method_id}"
    return f"{_CLASSES[class_id]}.{named.group(2).lower()}"


def _argument(reported: Reported, element: ElementTree.Element) -> None:
    name = element.get("name", "").rpartition(".")[2].replace("_", "-")
    if name in _ADDED or not element.get("name", "").startswith("amqp.method."):
        return
    name = _NAMES.get(f"{reported.name}.{name}") or _NAMES.get(name, name)
    shown = element.get("show", "")
    if name in _TABLES:
        reported.fields[name] = "table"
        for child in element:
            _their_leaf(name, child, reported.fields)
    elif element.get("unmaskedvalue") is not None:
        reported.fields[name] = {"True": "1", "False": "0"}.get(shown, shown)
    elif name in _LONG_STRINGS or (reported.name, name) == ("channel.open-ok", "reserved-1"):
        reported.fields[name] = shown.replace(":", "")
    elif name == "timestamp":
        reported.fields[name] = str(int(element.get("value", ""), 16))
    else:
        reported.fields[name] = shown


def _their_leaf(path: str, element: ElementTree.Element, into: dict[str, str]) -> None:
    leaf = _LEAF.match(element.get("showname", ""))
    if leaf is None:
        return
    path = f"{path}.{leaf.group(1)}"
    into[path] = f"{leaf.group(2)} {leaf.group(3) or ''}".rstrip()
    for child in element:
        _their_leaf(path, child, into)


# ---- the comparison


def differences(ours: list[Reported], theirs: list[Reported]) -> list[str]:
    """Everything that the two see differently, direction by direction."""
    found: list[str] = []
    for direction in sorted({reported.direction for reported in ours + theirs}):
        mine = [reported for reported in ours if reported.direction == direction]
        other = [reported for reported in theirs if reported.direction == direction]
        for n in range(max(len(mine), len(other))):
            our = mine[n] if n < len(mine) else None
            their = other[n] if n < len(other) else None
            if our is None or their is None:
                reported = our or their
                assert reported is not None
                who = "tshark" if our is None else "ours"
                found.append(f"{direction} frame {n}: only {who} {reported.name} of {reported.size} octets")
                continue
            where = f"{direction} frame {n} {our.name}"
            for what, a, b in (
                ("name", our.name, their.name),
                ("channel", our.channel, their.channel),
                ("size", our.size, their.size),
            ):
                if a != b:
                    found.append(f"{where} {what}: {a!r}, tshark {b!r}")
            for name in our.fields | their.fields:
                a, b = our.fields.get(name), their.fields.get(name)
                if a != b and not _truncated(a, b):
                    found.append(f"{where} {name}: {a!r}, tshark {b!r}")
    return found


def _truncated(ours: str | None, theirs: str | None) -> bool:
    """Whether tshark cut a long text short."""
    return ours is not None and theirs is not None and len(theirs) > 200 and ours.startswith(theirs[:180])
