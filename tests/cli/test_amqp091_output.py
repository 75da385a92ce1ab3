"""What every command shows of AMQP 0-9-1: no credential, and no character that is not plainly visible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import amqp091_encode as amqp
from support.commands import amqpscope, every_way, unprintable
from support.secret_canary import GIVEN_AWAY, MARKER
from support.tcp_writer import Capture, Connection

SECRET = MARKER.encode()

TEXTS = [
    "\x1b[31mred\x1b[0m",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "\x9b31mC1\x9d0;x\x9c",
    "a\nb\rc\td\x0be\x85f\u2028g",
    "\u202egnp.exe\u202c \u2066a\u2069",
    "[red]markup[/red] [link=http://x]y[/link] [/] [bold",
    "soft\xadhyphen zero\u200bwidth\ufeff",
    "\u0301leading mark, a" + "\u0301" * 60,
    "emoji 👩‍👩‍👧 茶葉",
    "",
]


def opened(
    capture: Capture, number: int, start: bytes = b"", login: bytes = b"", opening: str = "/"
) -> Connection:
    """A connection with a channel."""
    tcp = capture.connection(f"10.0.0.1:{40000 + number}")
    client, server = tcp.client, tcp.server
    tcp.handshake()
    client.send(amqp.header())
    server.send(
        start or amqp.say("connection.start", 0, version_minor=9, mechanisms="PLAIN", locales="en_US")
    )
    client.send(login or amqp.say("connection.start-ok", 0, mechanism="PLAIN", response=b"\0a\0" + SECRET))
    server.send(amqp.say("connection.tune", 0))
    client.send(amqp.say("connection.tune-ok", 0) + amqp.say("connection.open", 0, virtual_host=opening))
    server.send(amqp.say("connection.open-ok", 0))
    client.send(amqp.say("channel.open", 1))
    server.send(amqp.say("channel.open-ok", 1))
    return tcp


def closed(tcp: Connection) -> None:
    tcp.client.send(amqp.say("connection.close", 0, reply_code=200))
    tcp.server.send(amqp.say("connection.close-ok", 0))
    tcp.goodbye()


def logins() -> list[bytes]:
    """What a client may say with a secret in it, rightly and wrongly."""
    sound = amqp.method("connection.start-ok", mechanism="PLAIN", response=b"\0a\0" + SECRET, locale="en_US")
    plain = amqp.method(
        "connection.start-ok", mechanism="AMQPLAIN", response=amqp.table({"PASSWORD": MARKER})[4:]
    )
    answer = amqp.method("connection.secure-ok", response=SECRET)
    changed = amqp.method("connection.update-secret", new_secret=SECRET, reason="expired")
    payloads = [sound, plain, answer, changed, sound[:-7], sound[:30], b"\0\x0a\0\x63" + sound[4:]]
    payloads += [sound + SECRET, sound[:4] + b"\0\0\0\x30" + sound[8:], b"\0\x0b" + sound[2:]]
    frames = [amqp.frame(amqp.METHOD, 0, payload) for payload in payloads]
    frames += [amqp.frame(kind, 0, sound) for kind in (2, 4, 8)]
    return [*frames, amqp.frame(amqp.METHOD, 1, sound), amqp.frame(amqp.METHOD, 0, sound, end=b"\0")]


def test_no_credential_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = Capture()
    for number, login in enumerate(logins()):
        tcp = opened(capture, number, login=login)
        tcp.client.send(amqp.say("connection.update-secret", 0, new_secret=SECRET, reason="expired"))
        tcp.server.send(amqp.say("connection.update-secret-ok", 0))
        keyed = {"password": MARKER, "uri": f"amqp://u:{MARKER}@h/"}
        tcp.client.send(amqp.say("queue.declare", 1, queue=f"amqp://u:{MARKER}@h/", arguments=keyed))
        tcp.client.send(amqp.say("basic.publish", 1, routing_key="q") + amqp.content(1, b"", headers=keyed))
        closed(tcp)
    path = capture.write(tmp_path / "c.pcap")
    assert SECRET in path.read_bytes()
    for arguments in every_way(path):
        result = amqpscope(capsys, *arguments)
        assert result.status == 0
        for line in (result.out + result.err).splitlines():
            assert not GIVEN_AWAY.search(line), (arguments, line[:2000])


def hostile(path: Path) -> Path:
    """A connection a text, which stands wherever a peer can choose one."""
    capture = Capture()
    for number, text in enumerate(TEXTS):
        pairs = {text: text, "product": text, "version": text, "connection_name": text, "a": ("A", [text])}
        start = amqp.say("connection.start", 0, server_properties=pairs, mechanisms=text, locales=text)
        login = amqp.say("connection.start-ok", 0, client_properties=pairs, mechanism=text, locale=text)
        tcp = opened(capture, number, start, login, text)
        client, server = tcp.client, tcp.server
        client.send(amqp.say("queue.declare", 1, queue=text, arguments=pairs))
        client.send(amqp.say("basic.consume", 1, queue=text, consumer_tag=text))
        client.send(amqp.say("basic.publish", 1, exchange=text, routing_key=text))
        client.send(amqp.content(1, text.encode(), message_id=text, headers=pairs, type=text))
        server.send(amqp.say("basic.return", 1, reply_code=312, reply_text=text) + amqp.content(1, b""))
        server.send(amqp.frame(amqp.METHOD, 1, b"\0\x63\0\x01" + text.encode()))
        server.send(amqp.frame(amqp.METHOD, 1, amqp.method("queue.declare-ok", queue=text) + text.encode()))
        server.send(amqp.say("channel.close", 1, reply_code=404, reply_text=text, class_id=50, method_id=10))
        client.send(amqp.say("connection.close", 0, reply_code=541, reply_text=text))
        tcp.goodbye()
    return capture.write(path)


def test_nothing_but_visible_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = hostile(tmp_path / "c.pcap")
    for arguments in every_way(path):
        result = amqpscope(capsys, *arguments)
        assert result.status == 0
        if "json" in arguments or "ndjson" in arguments:
            for line in result.lines if "ndjson" in arguments else [result.out]:
                json.loads(line)
            assert result.out.isascii()
        assert unprintable(result.out + result.err) == [], arguments


def test_what_is_shown_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = hostile(tmp_path / "c.pcap")
    shown = amqpscope(capsys, "read", "--connection", "0", "--only", "channel.close", path).out
    assert '404 "\\x1b[31mred\\x1b[0m" caused by queue.declare' in shown
    reported = amqpscope(capsys, "summary", path).out
    assert "404:not-found" in reported
    assert "10 connections" in reported
