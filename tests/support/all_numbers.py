"""Two conversations in which every frame of a protocol stands, every field that is a number, and every type.

For tests that put other numbers there (`support.number_fields`). Whether they may be said there is not asked.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from support import amqp091_encode as amqp091
from support import amqp10_encode as amqp
from support.amqp10_encode import COMPOSITES, Encoded
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

__all__ = ["SAYINGS", "say_all"]

# ---- AMQP 1.0 ----------------------------------------------------------------------------------------------


def _every_type() -> list[tuple[str, Encoded]]:
    """A value of each type that holds a number."""
    return [
        ("ubyte", amqp.ubyte(1)),
        ("ushort", amqp.ushort(1)),
        ("uint", amqp.uint(1)),
        ("ulong", amqp.ulong(1)),
        ("byte", amqp.byte(1)),
        ("short", amqp.short(1)),
        ("int", amqp.int_(1)),
        ("long", amqp.long(1)),
        ("float", amqp.float_(1.0)),
        ("double", amqp.double(1.0)),
        ("decimal32", amqp.decimal32(Decimal(1))),
        ("decimal64", amqp.decimal64(Decimal(1))),
        ("decimal128", amqp.decimal128(Decimal(1))),
        ("char", amqp.char("1")),
        ("timestamp", amqp.timestamp(1)),
        ("list", amqp.list_([amqp.ulong(1)])),
        ("array", amqp.array([amqp.ulong(1, "widest")])),
        ("described", amqp.described(1, amqp.ulong(1))),
    ]


def _fields() -> Encoded:
    return amqp.map_([(amqp.symbol(name), value) for name, value in _every_type()])


def _keys() -> Encoded:
    """The same as keys: they need not have a hash."""
    return amqp.map_([(value, amqp.ulong(1)) for _, value in _every_type()])


def _all_of(name: str) -> dict[str, Any]:
    """A number in each field of a composite that can hold one."""
    given: dict[str, Any] = {}
    for field, kind in COMPOSITES[name][1]:
        if kind in ("ubyte", "ushort", "uint", "ulong", "timestamp", "message-id"):
            given[field.replace("-", "_")] = 1
        elif kind == "fields":
            given[field.replace("-", "_")] = _fields()
    return given


def _states() -> list[Encoded]:
    return [
        amqp.received(**_all_of("received")),
        amqp.modified(delivery_failed=True, **_all_of("modified")),
        amqp.rejected(error=amqp.error(condition="amqp:internal-error", info=_fields())),
        amqp.transactional_state(txn_id=b"t", outcome=amqp.accepted()),
    ]


def _terminus(name: str) -> Encoded:
    return amqp.composite(name, address="q", **_all_of(name))


def _message() -> bytes:
    named = [(amqp.string(name), value) for name, value in _every_type()]
    return b"".join(
        [
            amqp.header(**_all_of("header")),
            amqp.section("delivery-annotations", _fields()),
            amqp.section("message-annotations", _fields()),
            amqp.properties(**_all_of("properties")),
            amqp.section("application-properties", amqp.map_(named)),
            amqp.amqp_sequence([value for _, value in _every_type()]),
            amqp.section("footer", _fields()),
        ]
    )


def _say_all10(d: Dialogue) -> None:
    client, server = d.client, d.server
    client.header(3)
    server.header(3)
    server.mechanisms()
    client.init()
    server.outcome(0)
    d.headers()
    client.open(**_all_of("open"))
    server.open(**_all_of("open"))
    client.begin(**_all_of("begin") | {"remote_channel": None})
    server.begin(**_all_of("begin") | {"remote_channel": 0})
    sent = {"name": "q", "source": _terminus("source"), "target": _terminus("target")}
    unsettled = amqp.map_([(amqp.binary(b"t%d" % n), state) for n, state in enumerate(_states())])
    about = _all_of("attach") | {"handle": 0, "unsettled": unsettled}
    client.attach(amqp.SENDER, **sent, **about)
    server.attach(amqp.RECEIVER, **sent, **about)
    for state in _states():
        server.flow(**_all_of("flow") | {"handle": 0, "link_credit": 100, "properties": None})
        client.transfer(_message(), **_all_of("transfer") | {"handle": 0, "message_format": 0}, state=state)
        server.disposition(0, 1, state=state, settled=False)
        client.disposition(0, 1, role=amqp.SENDER, state=state)
    client.transfer(amqp.amqp_value(_keys()), message_format=1)
    client.flow(**_all_of("flow") | {"handle": 0}, echo=True)
    error = amqp.error(condition="amqp:connection:redirect", info=_fields())
    client.frame(amqp.detach(handle=0, error=error))
    server.frame(amqp.detach(handle=0, error=amqp.error(condition="amqp:link:redirect", info=_keys())))
    client.frame(amqp.end(error=error))
    server.frame(amqp.end())
    client.empty()
    client.frame(amqp.close(error=error))
    server.close()


# ---- AMQP 0-9-1 --------------------------------------------------------------------------------------------


def _table() -> dict[str, Any]:
    numbers = {tag: (tag, 1) for tag in "bBusIiLlTfd"}
    return {**numbers, "D": ("D", (1, 1)), "A": ("A", [("l", 1)]), "F": ("F", {"l": ("l", 1)}), "t": True}


_PROPERTIES: dict[str, Any] = {
    "content_type": "text/plain",
    "delivery_mode": 2,
    "priority": 1,
    "expiration": "1",
    "message_id": "m",
    "timestamp": 1,
}


def _say_all091(d: Dialogue091) -> None:
    client, server = d.client, d.server
    client.header()
    server.start(properties=_table())
    client.start_ok(properties=_table())
    server.tune(heartbeat=1)
    client.tune_ok()
    client.method("connection.open", virtual_host="/")
    server.method("connection.open-ok")
    d.channel(1)
    for name, (_, _, form) in amqp091.METHODS.items():
        if not name.startswith(("connection.", "channel.")):
            given = {"arguments": _table()} if "arguments:F" in form else {}
            if name == "confirm.select":
                given["no_wait"] = True
            speaker = server if name.endswith(("-ok", "-empty", ".return", ".deliver")) else client
            speaker.method(name, **given)
            if name in ("basic.publish", "basic.return", "basic.deliver", "basic.get-ok"):
                header = amqp091.content_header(5, headers=_table(), **_PROPERTIES)
                speaker.frame(amqp091.HEADER, 1, header)
                speaker.frame(amqp091.BODY, 1, b"hello")
    for tag in (1, 2):
        client.publish(b"hello")
        server.deliver(b"hello")
        server.ack(delivery_tag=tag)
        client.nack(delivery_tag=tag)
    server.heartbeat()
    for speaker in (client, server):
        speaker.method("channel.flow", active=True)
        speaker.method("channel.flow-ok", active=True)
    client.method("channel.close", reply_code=200, class_id=60, method_id=40)
    server.method("channel.close-ok")
    server.method("connection.blocked", reason="memory")
    server.method("connection.unblocked")
    client.method("connection.update-secret", new_secret=b"s")
    server.method("connection.update-secret-ok")
    server.method("connection.secure")
    client.method("connection.secure-ok")
    client.method("connection.close", reply_code=320, class_id=60, method_id=40)
    server.method("connection.close-ok")


SAYINGS: dict[str, Any] = {"amqp10": (Dialogue, _say_all10), "amqp091": (Dialogue091, _say_all091)}


def say_all(protocol: str, **how: Any) -> Any:
    """The conversation of a protocol. how: of its dialogue."""
    kind, tell = SAYINGS[protocol]
    d = kind(**how)
    tell(d)
    d.client.fin()
    d.server.fin()
    return d
