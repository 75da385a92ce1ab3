"""TLS inside an AMQP connection."""

from __future__ import annotations

from scenarios.pairs import legal, pair, without
from support.dialogue import Dialogue

SERVER_NAME = b"\0\0\0\x13\0\x11\0\0\x0ebroker.example"
GROUPS = b"\0\x0a\0\4\0\2\0\x1d"


def hello(kind: int, *extensions: bytes) -> bytes:
    """The record with the hello of a client (1) or a server (2)."""
    suites = b"\0\2\x13\1" if kind == 1 else b"\x13\1"
    compression = b"\1\0" if kind == 1 else b"\0"
    more = b"".join(extensions)
    body = b"\3\3" + bytes(32) + b"\0" + suites + compression + len(more).to_bytes(2, "big") + more
    handshake = bytes([kind]) + len(body).to_bytes(3, "big") + body
    return b"\x16\3\1" + len(handshake).to_bytes(2, "big") + handshake


def _secured(d: Dialogue) -> None:
    d.client.header(2).called("client header")
    d.server.header(2).called("server header")


@pair("TL-ROLE", cut=without("server header"))
def tls_role_reversed(d: Dialogue) -> None:
    _secured(d)
    if d.wrong:
        d.server.say(hello(1, GROUPS, SERVER_NAME)).breaks("TL-ROLE")
    else:
        d.client.say(hello(1, GROUPS, SERVER_NAME))
        d.server.say(hello(2))
    d.client.fin()
    d.server.fin()


@pair("TL-SNI", cut=without("client header"))
def hello_without_server_name(d: Dialogue) -> None:
    _secured(d)
    more = () if d.wrong else (SERVER_NAME,)
    said = d.client.say(hello(1, GROUPS, *more))
    if d.wrong:
        said.may_break("TL-SNI")
    d.server.say(hello(2))
    d.client.say(b"\x17\3\3\0\x20" + bytes(32))
    d.client.fin()
    d.server.fin()


@legal("a hello of TLS 1.0, without extensions, that is not seen whole")
def hello_cut_by_the_end(d: Dialogue) -> None:
    _secured(d)
    d.client.say(hello(1, GROUPS)[:-4])
    d.client.fin()
    d.server.fin()
