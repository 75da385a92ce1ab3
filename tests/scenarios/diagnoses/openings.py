"""Troubles of any protocol: how a connection opens, what TCP does, and layers around AMQP."""

from __future__ import annotations

from scenarios.diagnoses.troubles import channel091, trouble
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091
from support.dialogue_ws import DialogueWs


@trouble("wrong-port")
def http_at_the_port_of_amqp(troubled: bool) -> Conversation:
    d = Dialogue()
    if troubled:
        d.client.say(b"GET / HTTP/1.1\r\nHost: broker:5672\r\n\r\n")
        d.server.say(b"AMQP\0\0\x09\x01")
        d.tcp.goodbye()
    else:
        d.opened()
        d.goodbye()
    return d


@trouble("version-mismatch")
def the_server_speaks_another_version(troubled: bool) -> Conversation:
    d = Dialogue()
    d.client.header()
    if troubled:
        d.server.say(b"AMQP\0\0\x09\x01")
        d.tcp.goodbye()
    else:
        d.server.header()
        d.client.open()
        d.server.open()
        d.goodbye()
    return d


@trouble("no-common-mechanism")
def the_client_chooses_no_mechanism(troubled: bool) -> Conversation:
    d = Dialogue()
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms("GSSAPI")
    if troubled:
        d.tcp.goodbye()
    else:
        d.client.init("GSSAPI")
        d.server.outcome()
        d.opened()
        d.goodbye()
    return d


@trouble("login-refused")
def the_login_is_refused(troubled: bool) -> Conversation:
    d = Dialogue091()
    if troubled:
        d.started()
        d.server.close_connection(403, "ACCESS_REFUSED - Login was refused using authentication PLAIN")
        d.client.connection_close_ok()
        d.tcp.goodbye()
    else:
        d.opened()
        d.goodbye()
    return d


@trouble("proxy-header")
def a_load_balancer_names_the_client(troubled: bool) -> Conversation:
    d = Dialogue091()
    if troubled:
        d.client.say(b"PROXY TCP4 192.0.2.7 10.0.0.2 40000 5672\r\n")
    d.opened()
    d.goodbye()
    return d


@trouble("heartbeat-late")
def the_client_says_nothing(troubled: bool) -> Conversation:
    d = channel091(heartbeat=10)
    for _ in range(6):
        d.wait(seconds=5)
        d.server.heartbeat()
        if troubled:
            d.client.acknowledge()
        else:
            d.client.heartbeat()
    if not troubled:
        d.goodbye()
    return d


@trouble("silence")
def an_idle_connection_is_cut(troubled: bool) -> Conversation:
    d = channel091()
    d.client.publish()
    d.wait(seconds=400)
    d.client.publish()
    if troubled:
        d.server.end.rst()
    else:
        d.goodbye()
    return d


@trouble("network-stall")
def the_window_of_tcp_stays_closed(troubled: bool) -> Conversation:
    d = channel091()
    d.client.publish()
    if troubled:
        d.server.end.window = 0
        d.server.acknowledge()
        for _ in range(4):
            d.wait(seconds=4)
            d.client.end.keep_alive()
            d.server.acknowledge()
    else:
        d.wait(seconds=16)
    d.server.end.window = 0xFFFF
    d.server.acknowledge()
    d.client.publish()
    d.goodbye()
    return d


def _hello(d: Dialogue) -> None:
    """A ClientHello of TLS 1.2: all its random octets are the same."""
    hello = b"\x03\x03" + b"\x11" * 32 + b"\0" + b"\0\x02\xc0\x2f" + b"\x01\0"
    d.client.say(_record(22, b"\x01" + len(hello).to_bytes(3, "big") + hello))


def _answer(d: Dialogue) -> None:
    """A ServerHello."""
    hello = b"\x03\x03" + b"\x22" * 32 + b"\0" + b"\xc0\x2f" + b"\0"
    d.server.say(_record(22, b"\x02" + len(hello).to_bytes(3, "big") + hello))


def _record(kind: int, octets: bytes) -> bytes:
    return bytes([kind, 3, 3]) + len(octets).to_bytes(2, "big") + octets


@trouble("tls-alert")
def tls_fails_with_an_alert(troubled: bool) -> Conversation:
    d = Dialogue(server="10.0.0.2:5671")
    _hello(d)
    if troubled:
        d.server.say(_record(21, b"\x02\x46"))
        d.tcp.goodbye()
    else:
        _answer(d)
    return d


@trouble("tls-unanswered")
def nobody_answers_the_client_hello(troubled: bool) -> Conversation:
    d = Dialogue(server="10.0.0.2:5671")
    _hello(d)
    if troubled:
        d.server.end.fin()
        d.client.end.fin()
    else:
        _answer(d)
    return d


@trouble("tls-stalled")
def the_handshake_stops(troubled: bool) -> Conversation:
    d = Dialogue(server="10.0.0.2:5671")
    _hello(d)
    _answer(d)
    d.client.acknowledge()
    if not troubled:
        for peer in (d.client, d.server):
            peer.say(_record(20, b"\x01") + _record(22, b"\x33" * 40))
    d.wait(seconds=5)
    d.server.end.rst()
    return d


@trouble("websocket-refused")
def the_upgrade_is_refused(troubled: bool) -> Conversation:
    d = DialogueWs(server="10.0.0.2:80")
    d.upgraded(status="403 Forbidden" if troubled else "101 Switching Protocols")
    if not troubled:
        d.opened()
        d.client.close()
        d.server.close()
    d.tcp.goodbye()
    return d


@trouble("websocket-unread")
def compression_that_nobody_agreed_on(troubled: bool) -> Conversation:
    d = DialogueWs(server="10.0.0.2:80")
    d.upgraded()
    d.opened()
    if troubled:
        d.client.message(b"\x62\x64\x60", first=0xC2)
    d.client.close()
    d.server.close()
    d.tcp.goodbye()
    return d
