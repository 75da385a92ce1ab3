"""Hostile captures of what stands between TCP and AMQP: TLS, WebSocket, PROXY and CONNECT."""

from __future__ import annotations

import zlib
from pathlib import Path
from random import Random

from support.tcp_writer import Capture, Connection

__all__ = ["deflate_bombs", "endless_handshakes", "endless_heads", "small_websocket_frames"]

_REQUEST = b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
_ANSWER = b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Protocol: amqp\r\n%s\r\n"
_DEFLATE = b"Sec-WebSocket-Extensions: permessage-deflate\r\n"
_RANDOM = bytes(range(32))


def _another(capture: Capture, number: int) -> Connection:
    connection = capture.connection(f"10.0.0.1:{20_000 + number}")
    connection.handshake()
    return connection


def _frame(octets: bytes, first: int) -> bytes:
    """Of the server, which masks nothing."""
    size = len(octets)
    return bytes((first,)) + (bytes((size,)) if size < 126 else b"\x7f" + size.to_bytes(8, "big")) + octets


def deflate_bombs(path: Path) -> None:
    """Messages of WebSocket that are a thousand times as large as they look, on several connections."""
    bomb = zlib.compressobj(9, wbits=-15)
    octets = bomb.compress(bytes(90_000_000)) + bomb.flush(zlib.Z_SYNC_FLUSH)
    capture = Capture()
    for number in range(3):
        connection = _another(capture, number)
        connection.client.send(_REQUEST)
        connection.server.send(_ANSWER % _DEFLATE)
        connection.server.send(_frame(octets[:-4], 0xC2), each=1400)
        connection.goodbye()
    capture.write(path)


def small_websocket_frames(path: Path) -> None:
    """Very many frames of an octet or none, pings, and a loss behind each thousand."""
    capture = Capture()
    connection = _another(capture, 0)
    connection.client.send(_REQUEST)
    connection.server.send(_ANSWER % b"")
    for _ in range(100):
        connection.server.send((b"\x02\x01A\x00\x00\x89\x01p\x80\x00" * 500)[:5000], each=1400)
        with capture.missed():
            connection.server.send(b"\x82\x7f" + bytes(1000))
    connection.goodbye()
    capture.write(path)


def endless_heads(path: Path) -> None:
    """Requests, answers and PROXY headers that never end, and those that follow each other."""
    capture = Capture()
    proxy = b"\r\n\r\n\0\r\nQUIT\n"
    heads = (
        (b"CONNECT a:1 HTTP/1.1\r\n" + b"A: b\r\n" * 3000, b""),
        (b"CONNECT a:1 HTTP/1.1\r\n\r\n" * 500, b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n" * 500),
        (_REQUEST, b"HTTP/1.1 101 Yes\r\n" + b"Sec-WebSocket-Protocol: " + b"a, " * 6000),
        (b"PROXY TCP4 " + b"1" * 20_000, b""),
        (proxy + b"\x21\x11\xff\xff" + bytes(20_000), b""),
        ((proxy + b"\x20\0\0\0") * 1000, b""),
    )
    for number in range(60):
        connection = _another(capture, number)
        for end, octets in zip(
            (connection.client, connection.server), heads[number % len(heads)], strict=True
        ):
            if octets:
                end.send(octets, each=1400)
        connection.goodbye()
    capture.write(path)


def endless_handshakes(path: Path) -> None:
    """TLS without keys: messages that never end, certificates of nothing, records that look like headers."""
    capture = Capture()
    chance = Random(9)
    hello = _record(22, _message(1, b"\x03\x03" + _RANDOM + b"\0\0\x02\xc0\x2f\x01\0\0\0"))
    answer = _record(22, _message(2, b"\x03\x03" + _RANDOM + b"\0\xc0\x2f\0\0\0"))
    for number in range(12):
        connection = _another(capture, number)
        connection.client.send(hello)
        connection.server.send(answer)
        floods = (
            b"\x16\x03\x03\x40\x00" + b"\x01\xff\xff\xff" * 4096,
            _record(22, _message(11, b"\0\x0f\x00" + bytes(3) * 1000)),
            b"\x17\x03\x03\x00\x16" * 3000,
            b"\x15\x03\x03\x00\x02\x01\x00" * 2000,
            chance.randbytes(16_000),
        )
        for _ in range(8):
            connection.server.send(floods[number % len(floods)], each=1400)
        connection.goodbye()
    capture.write(path)


def _message(kind: int, body: bytes) -> bytes:
    return bytes((kind,)) + len(body).to_bytes(3, "big") + body


def _record(kind: int, body: bytes) -> bytes:
    return bytes((kind, 3, 3)) + len(body).to_bytes(2, "big") + body
