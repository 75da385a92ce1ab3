"""What tshark decodes of AMQP 1.0, in the specification's names, ready to be compared.

    if tshark_version():
        for frame in tshark_frames(path):
            frame.packet       the packet tshark lists the frame at: the one with its *last* octet
            frame.source       "10.0.0.1:51034"; compare direction by direction, in order
        frame.stream       tcp.stream
            frame.name         "open", "sasl-init", "header 0", "empty", "unknown 25"
            frame.fields       {"handle": "0", "source.address": "q", "offered-capabilities[0]": "x", ...}
            frame.sections     {"header": "header", "header.ttl": "3000", "amqp-value": "text", ...}
            frame.faults       tshark's expert messages of level error, and "malformed"

The source is tshark's PDML, which alone keeps the tree of fields in order (in its JSON, fields of one name
collide). `pyshark_frames` says the same through pyshark, of the fields only the performatives' numbers.

Paths. "." before a field of a composite, "[n]" for the n-th item of an array or list and of every field that
may be `multiple`, "[key]" for a map's value. A composite's own path holds its type's name: "source" is
"source", "target" may be "coordinator", "state" is "accepted".

Texts. Numbers in decimal; "true", "false"; strings and symbols as they are; binaries in hexadecimal; a time
in milliseconds since the epoch; null fields do not appear, null items are "null". An item of an array, list
or map is what tshark prints, which it cuts after some 240 characters: such a text ends with CUT.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

CUT = "…"
OUT_OF_ORDER = "tcp.reassemble_out_of_order:TRUE"

_PERFORMATIVES = {
    16: "open",
    17: "begin",
    18: "attach",
    19: "flow",
    20: "transfer",
    21: "disposition",
    22: "detach",
    23: "end",
    24: "close",
}
_SASL = {
    64: "sasl-mechanisms",
    65: "sasl-init",
    66: "sasl-challenge",
    67: "sasl-response",
    68: "sasl-outcome",
}

# tshark's field, without "amqp." and the endings below: the specification's name. One ending tells a type
# (".string"), another that a `multiple` field has one bare value ("_sym").
_NAMES = {
    "arguments.offeredCapabilities": "offered-capabilities",
    "performative.arguments.address": "address",
    "performative.arguments.available": "available",
    "performative.arguments.aborted": "aborted",
    "performative.arguments.batchable": "batchable",
    "performative.arguments.channelMax": "channel-max",
    "performative.arguments.closed": "closed",
    "performative.arguments.containerId": "container-id",
    "performative.arguments.deliveryCount": "delivery-count",
    "performative.arguments.deliveryId": "delivery-id",
    "performative.arguments.deliveryTag": "delivery-tag",
    "performative.arguments.desiredCapabilities": "desired-capabilities",
    "performative.arguments.drain": "drain",
    "performative.arguments.echo": "echo",
    "performative.arguments.error": "error",
    "performative.arguments.first": "first",
    "performative.arguments.handle": "handle",
    "performative.arguments.handleMax": "handle-max",
    "performative.arguments.hostname": "hostname",
    "performative.arguments.idleTimeout": "idle-time-out",
    "performative.arguments.incomingLocales": "incoming-locales",
    "performative.arguments.incomingWindow": "incoming-window",
    "performative.arguments.incompleteUnsettled": "incomplete-unsettled",
    "performative.arguments.initDeliveryCount": "initial-delivery-count",
    "performative.arguments.last": "last",
    "performative.arguments.linkCredit": "link-credit",
    "performative.arguments.maxFrameSize": "max-frame-size",
    "performative.arguments.maxMessageSize": "max-message-size",
    "performative.arguments.messageFormat": "message-format",
    "performative.arguments.more": "more",
    "performative.arguments.name": "name",
    "performative.arguments.nextIncomingId": "next-incoming-id",
    "performative.arguments.nextOutgoingId": "next-outgoing-id",
    "performative.arguments.outgoingLocales": "outgoing-locales",
    "performative.arguments.outgoingWindow": "outgoing-window",
    "performative.arguments.properties": "properties",
    "performative.arguments.rcvSettleMode": "rcv-settle-mode",
    "performative.arguments.remoteChannel": "remote-channel",
    "performative.arguments.resume": "resume",
    "performative.arguments.role": "role",
    "performative.arguments.settled": "settled",
    "performative.arguments.sndSettleMode": "snd-settle-mode",
    "performative.arguments.source": "source",
    "performative.arguments.target": "target",
    "performative.arguments.terminusDurable": "durable",
    "performative.arguments.unsettled": "unsettled",
    "properties.capabilities": "capabilities",
    "properties.distributionMode": "distribution-mode",
    "properties.dynamic": "dynamic",
    "properties.dynamicNodeProperties": "dynamic-node-properties",
    "properties.expiryPolicy": "expiry-policy",
    "properties.filter": "filter",
    "properties.outcomes": "outcomes",
    "properties.timeout": "timeout",
    "error.condition": "condition",
    "error.description": "description",
    "error.info": "info",
    "received.sectionNumber": "section-number",
    "received.sectionOffset": "section-offset",
    "modified.deliveryFailed": "delivery-failed",
    "modified.undeliverableHere": "undeliverable-here",
    "tx.arguments.fail": "fail",
    "tx.arguments.globalId": "global-id",
    "tx.arguments.txnId": "txn-id",
    "sasl.mechanisms": "sasl-server-mechanisms",
    "sasl.mechanism": "mechanism",
    "sasl.initResponse": "initial-response",
    "sasl.challenge": "challenge",
    "sasl.response": "response",
    "sasl.saslCode": "code",
    "sasl.addData": "additional-data",
    "message.durable": "durable",
    "message.priority": "priority",
    "message.ttl": "ttl",
    "message.firstAcquirer": "first-acquirer",
    "message.messageId": "message-id",
    "message.userId": "user-id",
    "message.to": "to",
    "message.subject": "subject",
    "message.replyTo": "reply-to",
    "message.correlationId": "correlation-id",
    "message.contentType": "content-type",
    "message.contentEncoding": "content-encoding",
    "message.expiryTime": "absolute-expiry-time",
    "message.creationTime": "creation-time",
    "message.groupId": "group-id",
    "message.groupSequence": "group-sequence",
    "message.replyToGroupId": "reply-to-group-id",
    "header": "header",
    "deliveryAnnotations": "delivery-annotations",
    "messageAnnotations": "message-annotations",
    "properties": "properties",
    "applicationProperties": "application-properties",
    "data": "data",
    "sequence": "amqp-sequence",
    "value": "amqp-value",
    "footer": "footer",
}
_ENDINGS = re.compile(r"(\.string|\.uint|\.bytes|\.guid|_sym)$")

# Composites that tshark names by their type: which field they fill depends on where they stand.
_TYPES = {
    "delivery-state.received": "received",
    "delivery-state.accepted": "accepted",
    "delivery-state.rejected": "rejected",
    "delivery-state.released": "released",
    "delivery-state.modified": "modified",
    "tx.declared": "declared",
    "tx.transactionalState": "transactional-state",
    "tx.coordinator": "coordinator",
    "tx.declare": "declare",
    "tx.discharge": "discharge",
    "lifetime-policy.deleteOnClose": "delete-on-close",
    "lifetime-policy.deleteOnNoLinks": "delete-on-no-links",
    "lifetime-policy.deleteOnNoMessages": "delete-on-no-messages",
    "lifetime-policy.deleteOnNoLinksOrMessages": "delete-on-no-links-or-messages",
}
_BOOLEANS = {
    "aborted",
    "batchable",
    "closed",
    "delivery-failed",
    "drain",
    "dynamic",
    "echo",
    "fail",
    "first-acquirer",
    "incomplete-unsettled",
    "more",
    "resume",
    "role",
    "settled",
    "undeliverable-here",
}
_BINARIES = {
    "additional-data",
    "challenge",
    "data",
    "delivery-tag",
    "global-id",
    "initial-response",
    "response",
    "txn-id",
    "user-id",
}
# Fields that are a number, and that stand in no composite inside a performative.
NUMBERS = {
    "available",
    "channel-max",
    "delivery-id",
    "first",
    "handle",
    "handle-max",
    "idle-time-out",
    "incoming-window",
    "initial-delivery-count",
    "last",
    "link-credit",
    "max-frame-size",
    "max-message-size",
    "next-incoming-id",
    "next-outgoing-id",
    "outgoing-window",
    "remote-channel",
}
_TIMES = {"absolute-expiry-time", "creation-time"}
_MULTIPLE = {
    "capabilities",
    "desired-capabilities",
    "incoming-locales",
    "offered-capabilities",
    "outcomes",
    "outgoing-locales",
    "sasl-server-mechanisms",
}

# An item as tshark prints it: "key (type): text", "key : descriptor (type): text", "key: (null)".
_ITEM = re.compile(r"^(?: \[truncated\])?(.*?)(?: : (.*?))?(?: \(([^()]*)\))?(?:: (.*))?$", re.DOTALL)

# What tshark writes into its XML as it came off the wire, though XML has no room for it.
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class TsharkFrame:
    packet: int
    source: str
    destination: str
    kind: str  # header, amqp, sasl
    name: str
    channel: int
    size: int
    fields: dict[str, str] = field(default_factory=dict)
    sections: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    stream: int = -1


def tshark_version() -> str | None:
    """As "4.0.17", or None if there is no tshark."""
    if not shutil.which("tshark"):
        return None
    printed = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+\.\d+\.\d+", printed)
    return found.group() if found else None


def tshark_frames(
    path: Path, *, preferences: Sequence[str] = (), decode_as: Sequence[str] = ()
) -> list[TsharkFrame]:
    """All AMQP 1.0 frames and protocol headers, in tshark's order.

    preferences   as for -o, such as "tls.keylog_file:FILE"
    decode_as     as for -d, such as "tcp.port==5671,amqp"
    """
    command = ["tshark", "-n", "-r", str(path), "-Y", "amqp", "-T", "pdml", "-J", "amqp ip ipv6 tcp"]
    for preference in (OUT_OF_ORDER, *preferences):
        command += ["-o", preference]
    for rule in decode_as:
        command += ["-d", rule]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8", errors="replace"
        )
        assert process.stdout is not None
        frames: list[TsharkFrame] = []
        parser: ET.XMLPullParser[Any] = ET.XMLPullParser(["end"])
        for line in process.stdout:
            parser.feed(_NO_XML.sub("\ufffd", line))
            for _, element in cast("Iterator[tuple[str, ET.Element]]", parser.read_events()):
                if element.tag == "packet":
                    frames += _packet(element)
                    element.clear()
        # 2: a file that ends inside a packet, of which the part before was read.
        if process.wait() not in (0, 2):
            errors.seek(0)
            raise RuntimeError(errors.read().decode(errors="replace"))
    return frames


def pyshark_frames(path: Path) -> list[tuple[int, str, int, dict[str, str]]]:
    """(packet as tshark lists it, name, channel, NUMBERS) of each frame by pyshark; for small captures."""
    import pyshark  # it starts an event loop

    loop = asyncio.new_event_loop()
    capture = pyshark.FileCapture(
        str(path),
        display_filter="amqp",
        override_prefs={"tcp.reassemble_out_of_order": "TRUE"},
        eventloop=loop,
    )
    frames = []
    try:
        for packet in capture:
            for layer in packet.layers:
                if layer.layer_name != "amqp":
                    continue
                values = {key: str(value) for key, value in layer._all_fields.items()}
                reported = _identify(values)
                if reported:
                    numbers = {
                        name: values[f"amqp.{theirs}"]
                        for theirs, name in _NAMES.items()
                        if name in NUMBERS and f"amqp.{theirs}" in values
                    }
                    frames.append((int(packet.number), reported[1], reported[2], numbers))
    finally:
        # At the end of the file it has waited for tshark already; a second time it may find no child and
        # take that for a crash.
        capture._running_processes.clear()
        capture.close()
        loop.close()
    return frames


def _identify(values: dict[str, str]) -> tuple[str, str, int, int] | None:
    """Kind, name, channel and size from the fields on top; None for what is not AMQP 1.0."""
    if "amqp.init.protocol" in values:
        version = tuple(values.get(f"amqp.init.version_{part}") for part in ("major", "minor", "revision"))
        return ("header", f"header {values['amqp.init.id']}", 0, 8) if version == ("1", "0", "0") else None
    if "amqp.doff" not in values or "amqp.channel" not in values:
        return None
    sasl = values.get("amqp.type") == "1"
    body = values.get("amqp.sasl.method" if sasl else "amqp.performative")
    names = _SASL if sasl else _PERFORMATIVES
    name = "empty" if body is None else names.get(int(body), f"unknown {body}")
    return "sasl" if sasl else "amqp", name, int(values["amqp.channel"]), int(values["amqp.length"])


def _packet(packet: ET.Element) -> Iterator[TsharkFrame]:
    number, stream, source, destination = 0, -1, "", ""
    ports = ("", "")
    addresses = ("", "")
    for proto in packet:
        values = {element.get("name", ""): element.get("show", "") for element in proto}
        kind = proto.get("name")
        if kind == "geninfo":
            number = int(values["num"])
        elif kind in ("ip", "ipv6"):
            addresses = (values[f"{kind}.src"], values[f"{kind}.dst"])
        elif kind == "tcp":
            ports = (values["tcp.srcport"], values["tcp.dstport"])
            stream = int(values["tcp.stream"])
            source, destination = (
                f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
                for address, port in zip(addresses, ports, strict=True)
            )
        elif kind == "amqp":
            reported = _identify(values)
            if reported:
                frame = TsharkFrame(number, source, destination, *reported, stream=stream)
                frame.faults = _faults(proto)
                for element in proto.findall("field[@name='amqp.method.arguments']"):
                    _children(element, "", frame.name, frame.fields)
                    proto.remove(element)
                _message(proto, frame.sections)
                yield frame


def _faults(proto: ET.Element) -> list[str]:
    faults = []
    for element in proto.iter("field"):
        if element.get("name") == "_ws.malformed":
            faults.append("malformed")
        if element.get("name") == "_ws.expert" and "Error" in element.get("showname", ""):
            faults += [e.get("show", "") for e in element if e.get("name") == "_ws.expert.message"]
    return faults


def _message(proto: ET.Element, into: dict[str, str]) -> None:
    """The sections of a message; of several with one name the second is "data 2", and so on."""
    seen: Counter[str] = Counter()
    for element in proto:
        section: dict[str, str] = {}
        _element(element, "", "", 0, section)
        if section:
            name = re.split(r"[.\[]", next(iter(section)))[0]
            seen[name] += 1
            numbered = name if seen[name] == 1 else f"{name} {seen[name]}"
            into.update((numbered + path.removeprefix(name), text) for path, text in section.items())


def _children(element: ET.Element, path: str, parent: str, into: dict[str, str]) -> None:
    items = 0
    for child in element:
        _element(child, path, parent, items, into)
        items += child.get("name") in ("amqp.list", "amqp.map")


def _element(element: ET.Element, path: str, parent: str, n: int, into: dict[str, str]) -> None:
    """One field of tshark's tree, the n-th under the type or field `parent` at `path`."""
    known = element.get("name", "").removeprefix("amqp.")
    shown = element.get("showname", "")
    if known in ("list", "map"):
        _item(element, path, parent, n, into)
        return
    bare = _ENDINGS.sub("", known)
    if known in _TYPES:
        name, text = _place(known, parent, shown), _TYPES[known]
    elif bare in _NAMES:
        name = _NAMES[bare]
        text = _text(element, name)
    else:
        return
    where = path + name if name.startswith("[") else f"{path}.{name}" if path else name
    if name in _MULTIPLE and bare == known and len(element) == 0 and "array" not in shown:
        where += "[0]"
    if name in _MULTIPLE and known.endswith("_sym"):
        where += "[0]"
    if text or len(element) == 0:
        into[where] = text
    _children(element, where, _TYPES.get(known, name), into)


def _place(known: str, parent: str, shown: str) -> str:
    """The field that a composite named by its type fills."""
    if parent == "unsettled":
        return f"[{shown.split(' (')[0]}]"
    if known == "tx.coordinator":
        return "target"
    if known.startswith("lifetime-policy."):
        return "[lifetime-policy]"
    if parent == "source":
        return "default-outcome"
    return "outcome" if parent == "transactional-state" else "state"


def _text(element: ET.Element, name: str) -> str:
    shown, value = element.get("show", ""), element.get("value", "")
    if name in ("amqp-value", "amqp-sequence") or (len(element) and name not in _NAMES.values()):
        return _printed(element)
    if name in ("source", "target", "error", "header") and not value:
        return name
    if name == "properties" and not value:
        return "properties" if element.get("name") == "amqp.properties" else ""
    if name == "durable":
        return (
            shown if element.get("name") == "amqp.performative.arguments.terminusDurable" else _boolean(shown)
        )
    if name in _BOOLEANS:
        return _boolean(shown)
    if name in _BINARIES or element.get("name", "").endswith(".bytes"):
        return value
    if name in _TIMES:
        return str(int.from_bytes(bytes.fromhex(value), "big", signed=True))
    return shown


def _boolean(shown: str) -> str:
    return "true" if shown in ("1", "True") else "false"


def _item(element: ET.Element, path: str, parent: str, n: int, into: dict[str, str]) -> None:
    """An item of a list, an array or a map, of which tshark only prints a line."""
    matched = _ITEM.match(element.get("showname", ""))
    assert matched
    key, _descriptor, _type, _ = matched.groups()
    labels = {"list-item", "Mechanisms", "Outcomes", "Capabilities", "Outgoing-Locales", "Incoming-Locales"}
    labels |= {"Offered-Capabilities", "Desired-Capabilities", "AMQP-Value", "AMQP-Sequence"}
    where = f"{path}[{n}]" if key in labels else f"{path}[{key}]"
    text = _printed(element)
    if text or not len(element):
        into[where] = text
    _children(element, where, parent, into)


def _printed(element: ET.Element) -> str:
    """The text of an item's line; "" for a list, map or array, whose items are below."""
    line = element.get("showname", "")
    matched = _ITEM.match(line)
    assert matched
    text = matched.group(4) or ""
    if text == "(null)":
        return "null"
    return text + CUT if line.startswith(" [truncated]") and not text.endswith(CUT) else text
