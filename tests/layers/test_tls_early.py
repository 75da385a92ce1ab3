"""TLS 1.3 with 0-RTT data, and a lost update of keys. The records are written here, with fixed secrets."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from support.connection_harness import ConnectionHarness

pytest.importorskip("cryptography")

RANDOM = bytes(range(32))
SECRETS = {
    "CLIENT_EARLY_TRAFFIC_SECRET": b"\x01" * 32,
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET": b"\x02" * 32,
    "SERVER_HANDSHAKE_TRAFFIC_SECRET": b"\x03" * 32,
    "CLIENT_TRAFFIC_SECRET_0": b"\x04" * 32,
    "SERVER_TRAFFIC_SECRET_0": b"\x05" * 32,
}
HEADER = b"AMQP\0\1\0\0"
OPEN = b"\0\0\0\x11\2\0\0\0\0\x53\x10\xc0\x04\1\xa1\1a"
CLOSE = b"\0\0\0\x0c\2\0\0\0\0\x53\x18\x45"

HANDSHAKE, DATA = 22, 23


def expanded(secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label, of one block at most."""
    label = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes((len(label),)) + label + b"\0\x01"
    return hmac.digest(secret, info, hashlib.sha256)[:size]


class Writer:
    """Writes the records of one secret, of TLS_AES_128_GCM_SHA256."""

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.secret = secret
        self.aead = AESGCM(expanded(secret, b"key", 16))
        self.iv = int.from_bytes(expanded(secret, b"iv", 12), "big")
        self.number = 0

    def __call__(self, octets: bytes, kind: int = DATA) -> bytes:
        header = b"\x17\x03\x03" + (len(octets) + 17).to_bytes(2, "big")
        nonce = (self.iv ^ self.number).to_bytes(12, "big")
        self.number += 1
        return header + self.aead.encrypt(nonce, octets + bytes((kind,)), header)

    def updated(self) -> Writer:
        return Writer(expanded(self.secret, b"traffic upd", 32))


def message(kind: int, body: bytes) -> bytes:
    return bytes((kind,)) + len(body).to_bytes(3, "big") + body


def hello(kind: int, rest: bytes) -> bytes:
    whole = message(kind, b"\x03\x03" + RANDOM + b"\0" + rest)
    return b"\x16\x03\x03" + len(whole).to_bytes(2, "big") + whole


CLIENT_HELLO = hello(1, b"\0\x02\x13\x01\x01\0\0\x04\0\x2a\0\0")
SERVER_HELLO = hello(2, b"\x13\x01\0\0\x06\0\x2b\0\x02\x03\x04")


def read(turns: list[tuple[int, bytes]], *, without: str = "", lost: int = -1) -> ConnectionHarness:
    harness = ConnectionHarness()
    for label, secret in SECRETS.items():
        if label != without:
            harness.output.secrets.take(f"{label} {RANDOM.hex()} {secret.hex()}".encode())
    for number, (direction, octets) in enumerate(turns):
        if number == lost:
            harness.skip(direction, len(octets))
        else:
            harness.send(direction, octets)
    return harness.finish()


def handshake(taken: bool, early: list[bytes]) -> tuple[list[tuple[int, bytes]], Writer, Writer]:
    """The turns of a handshake with 0-RTT data, and the writers of both for what follows."""
    writers = {label: Writer(secret) for label, secret in SECRETS.items()}
    first, client = writers["CLIENT_EARLY_TRAFFIC_SECRET"], writers["CLIENT_HANDSHAKE_TRAFFIC_SECRET"]
    server = writers["SERVER_HANDSHAKE_TRAFFIC_SECRET"]
    extensions = b"\0\x04\0\x2a\0\0" if taken else b"\0\0"
    turns = [(0, CLIENT_HELLO), *((0, first(octets)) for octets in early)]
    turns.append((1, SERVER_HELLO + server(message(8, extensions) + message(20, bytes(32)), HANDSHAKE)))
    end = first(message(5, b""), HANDSHAKE) if taken else b""
    turns.append((0, end + client(message(20, bytes(32)), HANDSHAKE)))
    return turns, writers["CLIENT_TRAFFIC_SECRET_0"], writers["SERVER_TRAFFIC_SECRET_0"]


@pytest.mark.parametrize("taken", [True, False])
def test_early_data(taken: bool) -> None:
    """Data that the server took are part of the stream, with their packets; those that it refused are not."""
    turns, client, server = handshake(taken, [HEADER, OPEN])
    again = b"" if taken else client(HEADER) + client(OPEN)
    turns += [(0, again + client(CLOSE)), (1, server(HEADER + OPEN + CLOSE))]
    harness = read(turns)
    assert harness.names(0) == ["header", "open", "close"] and harness.names(1) == ["header", "open", "close"]
    packets = [int(one.packet) for one in harness.out if one.direction == 0]
    assert packets == ([4, 5, 8] if taken else [8, 8, 8])
    assert all(not one.frame.problems for one in harness.out)


def test_early_data_without_their_secret() -> None:
    """What was sent early cannot be read, and what follows is."""
    turns, client, server = handshake(True, [HEADER, OPEN])
    turns += [(0, client(CLOSE)), (1, server(HEADER + OPEN + CLOSE))]
    harness = read(turns, without="CLIENT_EARLY_TRAFFIC_SECRET")
    assert harness.names(1) == ["header", "open", "close"]
    assert "close" in harness.names(0)


def test_an_update_of_keys_that_was_lost() -> None:
    turns, client, server = handshake(False, [])
    turns += [(0, client(HEADER + OPEN)), (1, server(HEADER)), (1, server(message(24, b"\0"), HANDSHAKE))]
    turns += [(1, server.updated()(OPEN + CLOSE)), (0, client(CLOSE))]
    lost = next(number for number, turn in enumerate(turns) if turn == turns[-3])
    for missing in (-1, lost):
        harness = read(turns, lost=missing)
        names = [name for name in harness.names(1) if name != "skipped"]
        assert names == ["header", "open", "close"], missing
        assert [
            one.frame.name for one in harness.out if one.frame.problems and one.frame.kind != "skipped"
        ] == []
