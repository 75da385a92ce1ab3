"""The handshake of WebSocket."""

from __future__ import annotations

from scenarios.pairs import legal, pair, without
from support.dialogue_ws import DialogueWs


@pair("WS-ACCEPT", cut=without("request"))
def accepts_another_key(d: DialogueWs) -> None:
    said = d.upgraded(key="another key" if d.wrong else "")
    if d.wrong:
        said.breaks("WS-ACCEPT")
    d.linked()
    d.goodbye()


@pair("WS-SUBPROTOCOL", cut=without("request"))
def subprotocol_not_offered(d: DialogueWs) -> None:
    said = d.upgraded(offer="AMQPWSB10" if d.wrong else "AMQPWSB10, amqp")
    if d.wrong:
        said.breaks("WS-SUBPROTOCOL")
    d.linked()
    d.goodbye()


@pair("WS-EXTENSION", cut=without("request"))
def extension_not_offered(d: DialogueWs) -> None:
    offered = "" if d.wrong else "permessage-deflate; client_max_window_bits"
    said = d.upgraded(extensions=(offered, "permessage-deflate"))
    if d.wrong:
        said.breaks("WS-EXTENSION")
    d.linked()
    d.goodbye()


@legal("a server that chooses no subprotocol")
def no_subprotocol(d: DialogueWs) -> None:
    d.upgraded(choose="")
    d.linked()
    d.goodbye()


@legal("an extension that is not known, with frames of another form")
def another_extension(d: DialogueWs) -> None:
    d.upgraded(extensions=("x-mux", "x-mux"))
    d.client.header()
    d.server.header()
    d.client.message(b"", first=0xF2)
    d.server.message(b"", first=0x9B)
    d.goodbye()
