"""Exchanges of AMQP 0-9-1: names, types and bindings."""

from __future__ import annotations

from scenarios.pairs import SAME, legal, pair, reported, without
from support.conversation import Said
from support.dialogue091 import SERVER_CAPABILITIES, Dialogue091


def refused(d: Dialogue091, text: str, cause: str, code: int = 403) -> Said:
    """The broker closes the channel, and the client answers; the close."""
    closed = d.server.close_channel(code, text, cause)
    d.client.channel_close_ok()
    return closed


@pair("X-DEFAULT-DECL", cut=without("connection.start"), then=SAME)
def default_exchange_declared(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if d.wrong:
        d.client.method("exchange.declare", exchange="", type="direct").breaks("X-DEFAULT-DECL")
        refused(d, "ACCESS_REFUSED - operation not permitted on the default exchange", "exchange.declare")
    else:
        d.declare_exchange("x")
    d.goodbye()


@reported("the default exchange is deleted")
def default_exchange_deleted(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("exchange.delete", exchange="").breaks("X-DEFAULT-DECL")
    refused(d, "ACCESS_REFUSED - operation not permitted on the default exchange", "exchange.delete")
    d.goodbye()


@pair("X-DEFAULT-ACCESS", "X-BIND-DEFAULT", cut=without("asked"))
def default_exchange_reached(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare_exchange("x")
    if d.wrong:
        d.client.method("exchange.bind", destination="x", source="").called("asked").breaks("X-BIND-DEFAULT")
        d.server.method("exchange.bind-ok").breaks("X-DEFAULT-ACCESS")
    else:
        d.ask("exchange.bind", destination="x", source="amq.fanout")
    d.goodbye()


@pair("X-BIND-DEFAULT", cut=without("connection.start"), then=SAME)
def default_exchange_bound(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if d.wrong:
        d.client.method("exchange.bind", destination="", source="amq.fanout").breaks("X-BIND-DEFAULT")
        refused(d, "ACCESS_REFUSED - operation not permitted on the default exchange", "exchange.bind")
    else:
        d.ask("exchange.bind", destination="amq.direct", source="amq.fanout")
    d.goodbye()


@pair("X-BIND-CAP", cut=without("connection.start"))
def exchanges_bound_unasked(d: Dialogue091) -> None:
    without_it = tuple(one for one in SERVER_CAPABILITIES if one != "exchange_exchange_bindings")
    d.opened(start={"capabilities": without_it if d.wrong else SERVER_CAPABILITIES})
    d.channel(1)
    d.declare_exchange("x")
    asked, _ = d.ask("exchange.bind", destination="x", source="amq.fanout")
    if d.wrong:
        asked.breaks("X-BIND-CAP")
    d.goodbye()


@pair("X-DECL-SYNTAX", cut=without("connection.start"), then=SAME)
def exchange_named_oddly(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    asked, _ = d.declare_exchange("two words" if d.wrong else "two_words")
    if d.wrong:
        asked.breaks("X-DECL-SYNTAX")
    d.goodbye()


@pair("X-DECL-TYPE-PREFIX", cut=without("connection.start"), then=SAME)
def type_without_prefix(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if d.wrong:
        d.client.method("exchange.declare", exchange="x", type="fannout").breaks("X-DECL-TYPE-PREFIX")
        text = "PRECONDITION_FAILED - invalid exchange type 'fannout'"
        refused(d, text, "exchange.declare", 406)
    else:
        d.declare_exchange("x", "x-consistent-hash")
    d.goodbye()


@pair("X-DELETE-PREDECL", cut=without("connection.start"), then=SAME)
def predeclared_exchange_deleted(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if d.wrong:
        d.client.method("exchange.delete", exchange="amq.topic").breaks("X-DELETE-PREDECL")
        refused(d, "ACCESS_REFUSED - exchange name 'amq.topic' contains reserved prefix", "exchange.delete")
    else:
        d.declare_exchange("x")
        d.ask("exchange.delete", exchange="x")
    d.goodbye()


@legal("a passive declaration may leave out the type")
def passive_without_type(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.ask("exchange.declare", exchange="amq.topic", type="", passive=True)
    d.goodbye()
