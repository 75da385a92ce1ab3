"""Frames as go-amqp prints them, from its public source: its `String` methods, `connReader`, `connWriter`."""

from __future__ import annotations

import json

from dissectors.amqp10.composite import Composite, Field
from dissectors.amqp10.values import Array, Map
from dissectors.interface import Frame

TITLES = {
    "idle-time-out": "IdleTimeout",
    "snd-settle-mode": "SenderSettleMode",
    "rcv-settle-mode": "ReceiverSettleMode",
    "sasl-server-mechanisms": "Mechanisms",
}
SPACED = ("container-id", "sasl-server-mechanisms", "mechanism", "code")
MODES = {
    "role": ("Sender", "Receiver"),
    "sender-settle-mode": ("unsettled", "settled", "mixed"),
    "receiver-settle-mode": ("first", "second"),
}
POINTERS = (
    *("remote-channel", "next-incoming-id", "handle", "delivery-count", "link-credit", "available", "last"),
    *("delivery-id", "message-format", "delivery-tag", "snd-settle-mode", "rcv-settle-mode", "source"),
    *("target", "state", "default-outcome"),
)
"""Fields in which null is not shown as something else."""


def line(pointer: int, sent: bool, frame: Frame, form: str = "") -> str:
    """The line of one frame; "" if it is not printed. form: of log/slog, `text` or `json`; else older."""
    if frame.kind == "header" or not isinstance(frame.body, Composite):
        return ""
    place = ("connReader", "connWriter")[sent]
    if frame.name == "open":
        place = "openAMQP"
    elif frame.name.startswith("sasl"):
        place = "ConnSASLPlain" if sent else "saslOutcome"
    kind = "SASL" if frame.kind == "sasl" else "AMQP"
    text = (
        f"Frame{{Type: {kind}, Channel: {max(int(frame.channel), 0)}, Body: {composite(frame.body, frame)}}}"
    )
    said = f"{'TX' if sent else 'RX'} ({place}"
    address = f"0xc{pointer:09x}"
    if form == "json":
        stamp = "2026-11-29T00:52:59.208Z"
        return json.dumps({"time": stamp, "msg": said + ")", "conn_ptr": address, "frame": text})
    if form == "text":
        return f'time=2026-11-29T00:52:59.208Z msg="{said})" conn_ptr={address} frame={json.dumps(text)}'
    wait = " timeout 30s" if place == "connWriter" else ""
    return f"14:26:21.985146 {said} {address}){wait}: {text}"


def composite(value: Composite, frame: Frame | None = None) -> str:
    """A frame, terminus, state or error."""
    name = value.definition().name
    if name in ("accepted", "released"):
        return name.capitalize()
    if name in ("sasl-challenge", "sasl-response"):
        word = name.removeprefix("sasl-").capitalize()
        return f"{word}{{{word}: ********}}"
    given = {field.name: one for field, one in value.fields()}
    text = ""
    for field in value.definition().fields:
        words = (word.capitalize() for word in field.name.split("-"))
        title = TITLES.get(field.name) or "".join("ID" if word == "Id" else word for word in words)
        before = "" if not text else " " if (name, field.name) == ("source", "outcomes") else ", "
        space = " " if field.name in SPACED else ""
        text += f"{before}{title}{space}: {shown(name, field, given.get(field.name), given)}"
    if name == "transfer" and frame is not None:
        text += f", Payload [size]: {frame.payload_size}"
    word = "".join(one.capitalize() for one in name.split("-"))
    word = {"Source": "source", "Target": "source", "Error": "*Error"}.get(word, word)
    return f"{word}{{{text}}}"


def shown(name: str, field: Field, value: object, given: dict[str, object]) -> str:
    """The value of a field. Null is shown as what Go has in its place."""
    if field.name == "initial-response":
        return "********"
    if value is None:
        pointer = field.name in POINTERS and not (field.name == "handle" and name != "flow")
        if pointer and not (field.name == "rcv-settle-mode" and name == "source"):
            return "<nil>"
        return absent(field)
    if field.type in MODES and isinstance(value, int):
        return MODES[field.type][int(value)]
    if field.multiple:
        items = value.items if isinstance(value, Array) else value if isinstance(value, list) else [value]
        return f"[{' '.join(str(one) for one in items)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if field.name == "idle-time-out" and isinstance(value, int):
        return f"{int(value) // 1000}s"
    if isinstance(value, bytes):
        return (
            value.hex().upper()
            if field.name == "delivery-tag"
            else f"[{' '.join(str(one) for one in value)}]"
        )
    if isinstance(value, Map):
        return "map[" + " ".join(f"{key}:{one}" for key, one in value.pairs) + "]"
    return composite(value) if isinstance(value, Composite) else str(value)


def absent(field: Field) -> str:
    """What is shown of a field that is null and no pointer."""
    if field.name == "error":
        return "*Error(nil)"
    if field.multiple or field.type == "binary":
        return "[]"
    if field.type in ("fields", "map", "filter-set", "node-properties"):
        return "map[]"
    if field.type == "boolean":
        return "false"
    if field.name == "idle-time-out":
        return "0s"
    if field.type in ("string", "symbol", "*"):
        return ""
    return str(0 if field.default is None else field.default)
