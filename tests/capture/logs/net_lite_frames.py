"""Frames as AMQP.Net Lite prints them, from its public source: `GetDebugString`, `Connection`."""

from __future__ import annotations

from dissectors.amqp10.composite import Composite, Field
from dissectors.amqp10.values import Array, Map
from dissectors.interface import Frame

TITLES = {
    ("open", "hostname"): "host-name",
    ("flow", "next-incoming-id"): "next-in-id",
    ("flow", "incoming-window"): "in-window",
    ("flow", "next-outgoing-id"): "next-out-id",
    ("flow", "outgoing-window"): "out-window",
}
MODES = {
    "sender-settle-mode": ("Unsettled", "Settled", "Mixed"),
    "receiver-settle-mode": ("First", "Second"),
    "sasl-code": ("Ok", "Auth", "Sys", "SysPerm", "SysTemp"),
}
NULLABLE = (
    *("string", "symbol", "*", "binary", "delivery-tag", "fields", "map", "filter-set", "error"),
    "node-properties",
)


def line(sent: bool, frame: Frame, newer: bool) -> str:
    """The line of one frame. newer: null is shown as 0 or False where a field has such values."""
    start = f"[09:49:15.190] {'SEND' if sent else 'RECV'} "
    if frame.kind == "header":
        version = "0 1.0.0" if sent and frame.raw[4] == 0 else f"{frame.raw[4]} 1 0 0"
        return f"{start}AMQP {version}"
    place = "" if frame.kind == "sasl" else f"(ch={max(int(frame.channel), 0)}) "
    if not isinstance(frame.body, Composite):
        return f"{start}{place}empty"
    text = start + place + composite(frame.body, newer)
    if frame.name == "transfer" and frame.payload_size:
        text += f" payload {frame.payload_size}"
    return text


def composite(value: Composite, newer: bool) -> str:
    """A frame, terminus, state or error."""
    name = value.definition().name
    given = {field.name: one for field, one in value.fields()}
    texts = []
    for field in value.definition().fields:
        text = shown(field, given.get(field.name), newer)
        if text is not None:
            texts.append(f"{TITLES.get((name, field.name), field.name)}:{text}")
    return f"{name}({','.join(texts)})"


def shown(field: Field, value: object, newer: bool) -> str | None:
    """The value of a field, None if it is left out."""
    if value is None:
        if not newer or field.multiple or field.type in NULLABLE or field.name == "expiry-policy":
            return None
        value = False if field.type in ("boolean", "role") else 0
    if field.name == "initial-response":
        return "..."
    if newer and field.type in MODES and isinstance(value, int):
        return MODES[field.type][int(value)]
    if field.multiple:
        items = value.items if isinstance(value, Array) else value if isinstance(value, list) else [value]
        return f"[{','.join(str(one) for one in items)}]"
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, Map):
        return "[" + ",".join(f"{key}:{one}" for key, one in value.pairs) + "]"
    return composite(value, newer) if isinstance(value, Composite) else str(value)
