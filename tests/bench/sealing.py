"""TLS 1.3 for the bench's connections: the octets of a turn in records, and the key log that opens them.

The secrets are a function of the connection's number, so that the same captures come with the same key log.
The schedule and the records are independent of the product. The handshake is as short as one can be:
hellos, EncryptedExtensions and Finished of the server, Finished of the client.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterator

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["Sealing"]

RECORD = 4096
"""Octets of application data in a record: between what brokers and clients write at once."""

_HANDSHAKE, _DATA = 0x16, 0x17


def _expand(secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label of RFC 8446, section 7.1, of at most one block."""
    info = struct.pack(">HB", size, 6 + len(label)) + b"tls13 " + label + b"\0"
    return hmac.digest(secret, info + b"\1", "sha256")[:size]


class _Keys:
    """The keys of one direction."""

    def __init__(self, secret: bytes) -> None:
        self.aead = AESGCM(_expand(secret, b"key", 16))
        self.iv = int.from_bytes(_expand(secret, b"iv", 12), "big")
        self.number = 0

    def seal(self, kind: int, octets: bytes) -> bytes:
        """One record."""
        header = struct.pack(">BHH", _DATA, 0x0303, len(octets) + 17)
        nonce = (self.iv ^ self.number).to_bytes(12, "big")
        self.number += 1
        return header + self.aead.encrypt(nonce, octets + bytes([kind]), header)


class Sealing:
    """The TLS of one connection. client, server: 0 and 1."""

    def __init__(self, number: int) -> None:
        self._seed = hashlib.sha256(b"connection %d" % number).digest()
        self.random = self._secret(b"random")
        self._handshake = [_Keys(self._secret(b"handshake %d" % peer)) for peer in (0, 1)]
        self._traffic = [_Keys(self._secret(b"traffic %d" % peer)) for peer in (0, 1)]

    def _secret(self, name: bytes) -> bytes:
        return hashlib.sha256(self._seed + name).digest()

    def keylog(self) -> str:
        """The lines of the key log."""
        names = ("HANDSHAKE_TRAFFIC_SECRET", "TRAFFIC_SECRET_0")
        return "".join(
            f"{peer}_{name} {self.random.hex()} {self._secret(b'%s %d' % (word, index)).hex()}\n"
            for index, peer in enumerate(("CLIENT", "SERVER"))
            for name, word in zip(names, (b"handshake", b"traffic"), strict=True)
        )

    def handshake(self) -> Iterator[tuple[int, bytes]]:
        """What the client (0) and the server (1) send, turn by turn."""
        versions = b"\0\x2b\0\3\2\3\4"
        body = b"\3\3" + self.random + b"\0" + b"\0\2\x13\1" + b"\1\0"
        yield 0, self._clear(1, body + struct.pack(">H", len(versions)) + versions)
        version = b"\0\x2b\0\2\3\4"
        body = b"\3\3" + self._secret(b"server random") + b"\0" + b"\x13\1" + b"\0"
        hello = self._clear(2, body + struct.pack(">H", len(version)) + version)
        finished = struct.pack(">I", 20 << 24 | 32) + bytes(32)
        yield 1, hello + self._handshake[1].seal(_HANDSHAKE, b"\x08\0\0\2\0\0" + finished)
        yield 0, self._handshake[0].seal(_HANDSHAKE, finished)

    def _clear(self, kind: int, body: bytes) -> bytes:
        message = struct.pack(">I", kind << 24 | len(body)) + body
        return struct.pack(">BHH", _HANDSHAKE, 0x0301, len(message)) + message

    def seal(self, peer: int, octets: bytes) -> bytes:
        """Application data in records."""
        keys = self._traffic[peer]
        return b"".join(keys.seal(_DATA, octets[at : at + RECORD]) for at in range(0, len(octets), RECORD))
