"""Frames as proton-j prints them, from its public source: its `toString` methods and `TransportImpl.log`."""

from __future__ import annotations

from dissectors.amqp10.composite import Composite
from dissectors.amqp10.values import Array, Described, Map, Symbol
from dissectors.interface import Frame

ENUMS = {
    "role": ("SENDER", "RECEIVER"),
    "sender-settle-mode": ("UNSETTLED", "SETTLED", "MIXED"),
    "receiver-settle-mode": ("FIRST", "SECOND"),
    "terminus-durability": ("NONE", "CONFIGURATION", "UNSETTLED_STATE"),
    "sasl-code": ("OK", "AUTH", "SYS", "SYS_PERM", "SYS_TEMP"),
}


def line(identity: int, sent: bool, frame: Frame) -> str:
    """The line of one frame."""
    start = f"[{identity}:{max(int(frame.channel), 0)}] {'->' if sent else '<-'} "
    if frame.kind == "header":
        return start + ("SASL" if frame.raw[4] == 3 else "AMQP")
    body = frame.body
    if not isinstance(body, Composite):
        return start + "EmptyFrame{}"
    text = start + composite(body)
    if body.definition().name == "transfer":
        text += f' ({frame.payload_size}) "{quoted(frame.payload, 64)}'
    return text


def composite(value: Composite) -> str:
    """A frame, terminus, state or error."""
    name = value.definition().name
    given = {field.name: one for field, one in value.fields()}
    texts = []
    for field in value.definition().fields:
        one = given.get(field.name)
        title, *others = field.name.split("-")
        key = title + "".join(other.capitalize() for other in others)
        texts.append(f"{'_' if name == 'sasl-outcome' else ''}{key}={shown(field, one)}")
    words = "".join(word.capitalize() for word in name.split("-"))
    return f"{words}{{{' ' if name == 'open' else ''}{', '.join(texts)}}}"


def shown(field: object, value: object) -> str:
    """The value of a field, with its default in place of null."""
    kind, default, several = (getattr(field, name) for name in ("type", "default", "multiple"))
    if value is None and default is not None and not several:
        value = default
    if kind in ENUMS and isinstance(value, int):
        return ENUMS[kind][int(value)]
    if kind == "terminus-expiry-policy":
        return str(value).upper().replace("-", "_")
    if kind in ("string", "*") and (value is None or type(value) is str):
        quote = "" if value is None and kind == "*" and getattr(field, "name", "") != "address" else "'"
        return f"{quote}{'null' if value is None else value}{quote}"
    if several and value is not None:
        items = value.items if isinstance(value, Array) else value if isinstance(value, list) else [value]
        return f"[{', '.join(str(one) for one in items)}]"
    return plain(value)


def plain(value: object) -> str:
    """A value as Java shows it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, bytes):
        return quoted(value, len(value) * 4).removesuffix('"')
    if isinstance(value, Composite):
        return composite(value)
    if isinstance(value, Map):
        return "{" + ", ".join(f"{plain(key)}={plain(one)}" for key, one in value.pairs) + "}"
    if isinstance(value, Described):
        return f"UnknownDescribedType{{descriptor={plain(value.descriptor)}, described={plain(value.value)}}}"
    if isinstance(value, Array):
        return f"[{', '.join(plain(one) for one in value.items)}]"
    return str(value) if isinstance(value, (Symbol, str)) else repr(value)


def quoted(octets: bytes, limit: int) -> str:
    """Octets, those that cannot be printed as numbers, with a quote behind them; cut if they are too long."""
    text = ""
    for octet in octets:
        mark = chr(octet) if 31 < octet < 127 and octet != 92 else f"\\x{octet:02x}"
        if len(text) + len(mark) > limit:
            return text + '"...(truncated)'
        text += mark
    return text + '"'
