"""Opening protected records, one class for each form of protection.

A cipher has the keys of one direction until they change, and the number of the next record. Whoever lost
records tries other numbers: a number is right when the record authenticates.
"""

import hmac
from abc import ABC, abstractmethod
from typing import Any, Final

from amqpscope.layers.tls.schedule import expand_label, key_block
from amqpscope.layers.tls.suites import Suite, suite

__all__ = ["APPLICATION", "EARLY", "HANDSHAKE", "RecordCipher", "Traffic13", "cipher_of", "load_cipher"]

EARLY: Final = 0
HANDSHAKE: Final = 1
APPLICATION: Final = 2
"""The stages of TLS 1.3, each with its own keys."""

_BLOCK: Final = 16
"""Octets of a block of AES."""

Aead = Any
"""An AEAD of `cryptography`: `decrypt(nonce, data, associated_data)`."""


def _aead(of: Suite, key: bytes) -> Aead:
    """What opens records of a suite with this key."""
    from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

    if of.mode == "GCM":
        return AESGCM(key)
    return ChaCha20Poly1305(key) if of.mode == "CHACHA20" else AESCCM(key, tag_length=of.tag)


def _opened(aead: Aead, nonce: bytes, octets: bytes, about: bytes) -> bytes | None:
    try:
        return bytes(aead.decrypt(nonce, octets, about))
    except Exception as error:
        # Imported only here: an import takes as long as a small record.
        from cryptography.exceptions import InvalidTag

        if isinstance(error, (InvalidTag, ValueError)):
            return None
        raise


class RecordCipher(ABC):
    """The keys of one direction.

    suite: the cipher suite. number: of the next record. kind: the content type of the record opened last.
    stage: of TLS 1.3: early data, handshake, application data. padded: some record had padding that its size
    does not show.
    """

    form: str = ""

    def __init__(self, of: Suite) -> None:
        self.suite: Suite = of
        self.number: int = 0
        self.kind: int = 0
        self.stage: int = APPLICATION
        self.padded: bool = False

    @abstractmethod
    def open(self, number: int, header: bytes, body: bytes, before: bytes | None) -> bytes | None:
        """What a record carries, None if it does not authenticate with this number.

        header: its five octets. before: the octets of the stream right before it, as many as are known, where
        the record before it was not opened; else None.
        """

    def carried(self, size: int) -> int:
        """How many octets a record with a body of `size` octets carries; -1 if that does not tell."""
        return -1

    @abstractmethod
    def keys(self) -> tuple[Any, ...]:
        """The keys, from which `load_cipher` makes it again."""

    def dump(self) -> tuple[Any, ...]:
        """The state, as plain values."""
        return (self.form, self.suite.code, self.number, self.kind, self.stage, self.padded, self.keys())


class Traffic13(RecordCipher):
    """Records of TLS 1.3 (RFC 8446, section 5.2), of one traffic secret."""

    form = "1.3"

    def __init__(self, of: Suite, secret: bytes) -> None:
        super().__init__(of)
        self.secret = secret
        self.key = expand_label(of.digest, secret, b"key", of.key)
        self.aead = _aead(of, self.key)
        self.iv = int.from_bytes(expand_label(of.digest, secret, b"iv", 12), "big")

    def open(self, number: int, header: bytes, body: bytes, before: bytes | None) -> bytes | None:
        if len(body) <= self.suite.tag:
            return None
        plain = _opened(self.aead, (self.iv ^ number).to_bytes(12, "big"), body, header)
        if plain is None:
            return None
        if plain.endswith(b"\0"):
            self.padded = True
            plain = plain.rstrip(b"\0")
        if not plain:
            return None
        self.kind = plain[-1]
        return plain[:-1]

    def updated(self) -> "Traffic13":
        """The keys behind a KeyUpdate (RFC 8446, section 7.2)."""
        return Traffic13(
            self.suite, expand_label(self.suite.digest, self.secret, b"traffic upd", len(self.secret))
        )

    def keys(self) -> tuple[Any, ...]:
        return (self.secret,)


class Aead12(RecordCipher):
    """AEAD records of TLS 1.2 (RFC 5246, section 6.2.3.3): the nonce is in the record, or is the number."""

    form = "1.2"

    def __init__(self, of: Suite, key: bytes, iv: bytes) -> None:
        super().__init__(of)
        self.key = key
        self.iv = iv
        self.aead = _aead(of, key)
        self.explicit = 0 if of.mode == "CHACHA20" else 8

    def open(self, number: int, header: bytes, body: bytes, before: bytes | None) -> bytes | None:
        size = self.carried(len(body))
        if size < 0:
            return None
        if self.explicit:
            nonce = self.iv + body[:8]
        else:
            nonce = (int.from_bytes(self.iv, "big") ^ number).to_bytes(12, "big")
        about = number.to_bytes(8, "big") + header[:3] + size.to_bytes(2, "big")
        self.kind = header[0]
        return _opened(self.aead, nonce, body[self.explicit :], about)

    def carried(self, size: int) -> int:
        size -= self.explicit + self.suite.tag
        return size if size >= 0 else -1

    def keys(self) -> tuple[Any, ...]:
        return (self.key, self.iv)


class Cbc(RecordCipher):
    """Records of a block cipher, or of none, with an HMAC (RFC 5246, section 6.2.3; RFC 7366).

    iv: of the first record, before TLS 1.1; else empty. etm: the HMAC is that of the ciphertext.
    """

    form = "cbc"

    def __init__(self, of: Suite, key: bytes, mac: bytes, iv: bytes, etm: bool) -> None:
        super().__init__(of)
        self.key = key
        self.mac = mac
        self.etm = etm and of.mode == "CBC"
        self.size = len(mac)
        # Before TLS 1.1 a record is chained to the last block of the one before.
        self.chained = bool(iv)
        self.last = iv

    def open(self, number: int, header: bytes, body: bytes, before: bytes | None) -> bytes | None:
        self.kind = header[0]
        about = number.to_bytes(8, "big") + header[:3]
        mac = b""
        if self.etm:
            at = len(body) - self.size
            mac = body[max(at, 0) :]
            body = body[: max(at, 0)]
            before = before[: -self.size] if before is not None else None
            if not self.authentic(about, body, mac):
                return None
        # The first record is chained to what the keys say.
        plain = self.decrypted(body, before if number else None)
        if not plain:
            return None
        at = len(plain)
        if self.suite.mode == "CBC":
            at -= plain[-1] + 1
        if not self.etm:
            at -= self.size
            mac = plain[max(at, 0) : max(at, 0) + self.size]
        if at < 0 or not (self.etm or self.authentic(about, plain[:at], mac)):
            return None
        if self.chained:
            self.last = body[-_BLOCK:]
        return plain[:at]

    def authentic(self, about: bytes, octets: bytes, mac: bytes) -> bool:
        """Whether this is the HMAC of the octets."""
        made = hmac.digest(self.mac, about + len(octets).to_bytes(2, "big") + octets, self.suite.mac)
        return hmac.compare_digest(made, mac)

    def decrypted(self, body: bytes, before: bytes | None) -> bytes:
        """The blocks of a record; empty if they are none."""
        if self.suite.mode == "NULL":
            return body
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CBC

        if self.chained:
            iv = before[-_BLOCK:] if before is not None else self.last
        else:
            iv, body = body[:_BLOCK], body[_BLOCK:]
        if len(iv) != _BLOCK or not body or len(body) % _BLOCK:
            return b""
        decryptor = Cipher(AES(self.key), CBC(iv)).decryptor()
        return bytes(decryptor.update(body) + decryptor.finalize())

    def keys(self) -> tuple[Any, ...]:
        return (self.key, self.mac, self.last, self.etm)


def cipher_of(
    of: Suite, version: int, master: bytes, randoms: tuple[bytes, bytes], direction: int, etm: bool
) -> RecordCipher:
    """The cipher of the client (0) or server (1), of TLS 1.2 and before. version: as on the wire. randoms: of
    the client and the server. Raises ValueError where the system forbids the digests.
    """
    mac, size = block_sizes(of, version)
    block = key_block(version, of.digest, master, *randoms, size)
    key = block[2 * mac + direction * of.key :][: of.key]
    ivs = block[2 * (mac + of.key) :]
    if of.mode in ("CBC", "NULL"):
        implicit = version <= 0x0301 and of.mode == "CBC"
        iv = ivs[direction * _BLOCK :][:_BLOCK] if implicit else b""
        return Cbc(of, key, block[direction * mac :][:mac], iv, etm)
    fixed = 12 if of.mode == "CHACHA20" else 4
    return Aead12(of, key, ivs[direction * fixed :][:fixed])


def block_sizes(of: Suite, version: int) -> tuple[int, int]:
    """Octets of one key of the HMAC, and of the whole key block."""
    mac = {"": 0, "md5": 16, "sha1": 20, "sha256": 32, "sha384": 48}[of.mac]
    iv = {"CHACHA20": 12, "CBC": _BLOCK if version <= 0x0301 else 0, "NULL": 0}.get(of.mode, 4)
    return mac, 2 * (mac + of.key + iv)


_FORMS: Final[dict[str, Any]] = {"1.3": Traffic13, "1.2": Aead12, "cbc": Cbc}


def load_cipher(state: tuple[Any, ...]) -> RecordCipher:
    """The object of what `RecordCipher.dump` returned."""
    form, code, number, kind, stage, padded, keys = state
    cipher: RecordCipher = _FORMS[form](suite(code), *keys)
    cipher.number, cipher.kind, cipher.stage, cipher.padded = number, kind, stage, padded
    return cipher
