"""Logs of the Azure SDK for Python on its own stack (azure-servicebus), `logging_enable=True`:

    2026-11-23 19:05:19,941 azure.servicebus._pyamqp.session DEBUG -> BeginFrame(remote_channel=None, ...)

A frame is printed as Python shows a named tuple. Of a frame that was received, a field that was null has its
default, a string is octets, and a composite is a list of fields. Payload and SASL frames are left out.
"""

import ast
import re
from collections.abc import Mapping
from typing import Final

from amqpscope.capture.logs.encoding import UNLOGGED, NamedComposite, definition, header
from amqpscope.capture.logs.entries import Entry, Spoken
from amqpscope.capture.logs.python_text import literal, parsed
from amqpscope.capture.logs.stamps import time_of
from amqpscope.capture.logs.unnamed import Unnamed
from amqpscope.limits import MAX_LOG_DEPTH, MAX_LOG_TUPLE
from dissectors.amqp10.composite import Field
from dissectors.amqp10.values import Symbol

__all__ = ["PyamqpFrames"]

_FRAME: Final = re.compile(r"(->|<-) (?:([A-Z][a-z]{2,11})Frame|Header)\(", re.ASCII)
_OCTETS: Final = re.compile(r"\((b'[^']{8,40}')\)", re.ASCII)
_ARROW: Final = re.compile(r"(?:->|<-)(?: |$)", re.ASCII)
_NAMES: Final = {
    "idle_timeout": "idle-time-out",
    "send_settle_mode": "snd-settle-mode",
    "filters": "filter",
}
"""Fields that the library calls something else."""
_WHOLE: Final = (
    *("OpenFrame(", "BeginFrame(", "AttachFrame(", "FlowFrame(", "TransferFrame(", "DispositionFrame("),
    *("DetachFrame(", "EndFrame(", "CloseFrame(", "EmptyFrame(", "Header("),
)
"""How the texts behind an arrow begin."""
_STATES: Final = ("received", "accepted", "rejected", "released", "modified")


class PyamqpFrames(Unnamed):
    """What the library logs when it traces frames."""

    library = "the Azure SDK for Python"
    channel = 1

    def take(self, line: str) -> Entry | Spoken | None:
        if "->" not in line and "<-" not in line:
            return None
        found = _FRAME.search(line[:MAX_LOG_TUPLE])
        if found is None:
            return self._other(line[:MAX_LOG_TUPLE])
        arrow, name = found.groups()
        text = line[found.end() - 1 :].rstrip()
        whole = _OCTETS.fullmatch(text) if name is None else None
        if len(line) > MAX_LOG_TUPLE or not text.endswith(")") or (name is None and whole is None):
            return self.damaged()
        sent = arrow == "->"
        time = time_of(line[: found.start()])
        if whole is not None:
            value = literal(whole[1])
            for layer in ("AMQP", "SASL", "TLS"):
                if value == header(layer):
                    return self.entry(sent, None, time, header(layer))
            return self.entry(sent, None, time, lost=True)
        if name == "Empty":
            return self.entry(sent, None, time)
        try:
            body = _performative(name.lower(), text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return self.entry(sent, None, time, lost=True)
        return self.entry(sent, body, time)

    def _other(self, line: str) -> Spoken | None:
        """What a line says that has no frame with a bracket."""
        found = _ARROW.search(line)
        if found is None:
            return None
        before, text = line[: found.start()].rstrip(), line[found.end() :].strip()
        if " state changed:" in before:
            self.state(line)
            return None
        if "_pyamqp" in before:
            return self.damaged()
        begins = bool(text) and any(one.startswith(text) for one in _WHOLE)
        return self.damaged() if begins and (not before or before.endswith("DEBUG")) else None


def _performative(name: str, text: str) -> NamedComposite:
    """The performative of a line. text: its fields in brackets. Raises ValueError or SyntaxError."""
    known = definition(name)
    call = parsed(f"_{text}")
    if known is None or not isinstance(call, ast.Call) or call.args:
        raise ValueError("no performative")
    values = {_field_name(one.arg or ""): one.value for one in call.keywords}
    names = {field.name for field in known.fields}
    if values.keys() - names - {"payload"}:
        raise ValueError("an unknown field")
    return NamedComposite(
        name, {one.name: _field(one, values[one.name]) for one in known.fields if one.name in values}
    )


def _field_name(name: str) -> str:
    return _NAMES.get(name, name.replace("_", "-"))


def _field(field: Field, node: ast.expr) -> object:
    """The value of a field, as `encoding` takes it; UNLOGGED if the line does not tell the type."""
    try:
        value = _value(node, 0)
    except ValueError:
        return UNLOGGED
    if value is None:
        return None
    if field.name in ("source", "target", "error"):
        return _composite(field.name, value)
    if field.name in ("state", "default-outcome"):
        return _state(value)
    if field.multiple:
        items = value if isinstance(value, list) else [value]
        texts = [_text(one) for one in items]
        return [Symbol(one) for one in texts if one is not None] if None not in texts else UNLOGGED
    if field.type in ("fields", "map", "filter-set", "node-properties"):
        return _properties(value) if field.type == "fields" else {} if value == {} else UNLOGGED
    if field.type in ("string", "symbol", "terminus-expiry-policy", "*"):
        text = _text(value)
        return UNLOGGED if text is None else text
    return value


def _value(node: ast.expr, depth: int) -> object:
    """What a part of the line says: constants, lists, maps and named tuples. Raises ValueError for others."""
    if depth > MAX_LOG_DEPTH:
        raise ValueError("too deep")
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(one, depth + 1) for one in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        found: dict[object, object] = {}
        for key, value in pairs:
            if not isinstance(key, ast.Constant):
                raise ValueError("a key that is no constant")
            found[key.value] = _value(value, depth + 1)
        return found
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        values = {_field_name(one.arg or ""): _value(one.value, depth + 1) for one in node.keywords}
        return NamedComposite(node.func.id.lower(), values)
    raise ValueError("not what the library prints")


def _composite(name: str, value: object) -> object:
    """A source, target, error or outcome: a named tuple, or a list of its first fields."""
    known = definition(name)
    if known is None:
        return UNLOGGED
    if isinstance(value, list):
        if len(value) > len(known.fields):
            return UNLOGGED
        given: Mapping[str, object] = {
            field.name: one for field, one in zip(known.fields, value, strict=False)
        }
    elif isinstance(value, NamedComposite) and value.name == name:
        given = value.fields
    else:
        return UNLOGGED
    fields: dict[str, object] = {}
    for field in known.fields:
        one = given.get(field.name)
        if one is None:
            continue
        if field.name == "error":
            fields[field.name] = _composite("error", one)
        elif isinstance(one, (list, dict, NamedComposite)) or field.multiple:
            fields[field.name] = UNLOGGED
        elif isinstance(one, (str, bytes)) and field.type != "binary":
            text = _text(one)
            fields[field.name] = UNLOGGED if text is None else text
        else:
            fields[field.name] = one
    return NamedComposite(name, fields)


def _state(value: object) -> object:
    """The state of a delivery: a named tuple, or a map from its name to a list of its fields."""
    if isinstance(value, dict) and len(value) == 1:
        name, fields = next(iter(value.items()))
        return _composite(str(name), fields) if name in _STATES else UNLOGGED
    if isinstance(value, NamedComposite) and value.name in _STATES:
        return _composite(value.name, value)
    return UNLOGGED


def _properties(value: object) -> object:
    """Properties whose values are texts, numbers and truth values."""
    if not isinstance(value, dict):
        return UNLOGGED
    found: dict[object, object] = {}
    for key, one in value.items():
        name, text = _text(key), _text(one) if isinstance(one, (str, bytes)) else None
        if name is None:
            return UNLOGGED
        if not isinstance(one, (str, bytes, bool, int)) or (isinstance(one, bytes) and text is None):
            return UNLOGGED
        found[Symbol(name)] = one if text is None else text
    return found


def _text(value: object) -> str | None:
    """A text, which the library prints as octets if it has received it."""
    if isinstance(value, str):
        return value
    try:
        return value.decode() if isinstance(value, bytes) else None
    except UnicodeDecodeError:
        return None
