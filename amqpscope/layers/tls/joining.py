"""A TLS 1.3 connection joined in the middle: whose secret opens its records, and at which number.

Theory of operation. Without the handshake, neither the client random nor the number of a record is known. So
the secrets of all connections of the key logs are tried, the newest first. With AES-GCM the number need not
be guessed. The tag of a record is GHASH of what it has, which depends on the key alone, plus one encrypted
block that has the nonce in it (NIST SP 800-38D, section 7.1). The library computes GHASH with another nonce,
and one decrypted block then shows the nonce, from which the number follows. Few nonces have the form that
they must have, so a wrong secret shows itself. The other suites have no such way: there the first numbers are
tried.

Before TLS 1.3 the keys depend on both randoms (RFC 5246, section 6.3), and the server's is in no key log. So
such a connection cannot be joined.
"""

from collections.abc import Iterable
from itertools import product
from typing import Final

from amqpscope.layers.secrets import Secrets
from amqpscope.layers.tls.ciphers import Traffic13
from amqpscope.layers.tls.suites import suite
from amqpscope.limits import (
    MAX_TLS_JOIN_CONNECTIONS,
    MAX_TLS_JOIN_NUMBERS,
    MAX_TLS_JOIN_TRIALS_ALL,
    MAX_TLS_JOIN_UPDATES,
)

__all__ = ["CLIENT_SECRET", "SERVER_SECRET", "SUITES", "Candidate", "Joined", "candidates", "joined"]

CLIENT_SECRET: Final = "CLIENT_TRAFFIC_SECRET_0"  # noqa: S105
SERVER_SECRET: Final = "SERVER_TRAFFIC_SECRET_0"  # noqa: S105

SUITES: Final = {32: (0x1301, 0x1303, 0x1304, 0x1305), 48: (0x1302,)}
"""The suites of TLS 1.3 by the octets of a secret."""

_TAG: Final = 16
_NONCE: Final = 12
_COUNTER: Final = (1).to_bytes(4, "big")
_DEAR: Final = 4096
"""Octets of a record for which numbers are not guessed: each attempt takes too long."""

_LARGEST: Final = 2**48
"""No connection has so many records."""

Candidate = tuple[bytes, str, bytes]
"""A client random, a label, and the secret."""


class Joined:
    """Whose secret opened a record: client random and label. cipher: behind the record. content: of it."""

    def __init__(self, random: bytes, label: str, cipher: Traffic13, content: bytes) -> None:
        self.random = random
        self.label = label
        self.cipher = cipher
        self.content = content


def candidates(secrets: Secrets, random: bytes, label: str) -> list[Candidate]:
    """The secrets that may be those of a direction. random: its connection's; label: its own; each empty if
    it is not known.
    """
    known = [(random, secrets.of(random, label))] if random else secrets.newest(MAX_TLS_JOIN_CONNECTIONS)
    return [
        (of, name, found[name])
        for of, found in known
        for name in ((label,) if label else (CLIENT_SECRET, SERVER_SECRET))
        if name in found
    ]


def joined(
    secrets: Secrets, tried: list[Candidate], header: bytes, body: bytes, guess: bool
) -> Joined | None:
    """Try secrets on a record of which nothing else is known; None if it opens with none of them.

    guess: also with suites where numbers have to be guessed.
    """
    for updates in range(MAX_TLS_JOIN_UPDATES + 1):
        guesses = guess and not updates and len(body) <= _DEAR
        ciphers = _ciphers(tried, updates, guesses)
        shown = (
            (number, one)
            for one in ciphers
            if one.gcm
            for number in _number(secrets, one.cipher, header, body)
        )
        found = _opened(secrets, shown, header, body)
        if found is None and guesses:
            others = [one for one in ciphers if not one.gcm]
            most = MAX_TLS_JOIN_NUMBERS // max(len(others), 1)
            found = _opened(secrets, product(range(most), others), header, body)
        if found is not None:
            return found
    return None


class _Cipher:
    """What one secret may be for."""

    def __init__(self, cipher: Traffic13, random: bytes, label: str) -> None:
        self.cipher = cipher
        self.random = random
        self.label = label
        self.gcm = cipher.suite.mode == "GCM"


def _ciphers(tried: list[Candidate], updates: int, guesses: bool) -> list[_Cipher]:
    """What the secrets may be for, after so many updates of keys. guesses: also suites other than AES-GCM."""
    found = []
    for random, label, secret in tried:
        codes = SUITES.get(len(secret), ())
        for code in codes if guesses else codes[:1]:
            cipher = Traffic13(suite(code), secret)
            for _ in range(updates):
                cipher = cipher.updated()
            found.append(_Cipher(cipher, random, label))
    return found


def _opened(
    secrets: Secrets, tried: Iterable[tuple[int, _Cipher]], header: bytes, body: bytes
) -> Joined | None:
    """Open a record with one of these numbers and ciphers."""
    for number, one in tried:
        if secrets.joining > MAX_TLS_JOIN_TRIALS_ALL:
            return None
        secrets.joining += 1
        content = one.cipher.open(number, header, body, None)
        if content is not None:
            one.cipher.number = number + 1
            return Joined(one.random, one.label, one.cipher, content)
    return None


def _number(secrets: Secrets, cipher: Traffic13, header: bytes, body: bytes) -> tuple[int, ...]:
    """The number of a record in AES-GCM; none if the key is another one's."""
    if secrets.joining > MAX_TLS_JOIN_TRIALS_ALL:
        return ()
    secrets.joining += 1
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    size = len(body) - _TAG
    if size < 1:
        return ()
    block = Cipher(AES(cipher.key), ECB())  # noqa: S305
    other = bytes(_NONCE)
    stream = cipher.aead.encrypt(other, bytes(size), b"")[:size]
    tag = cipher.aead.encrypt(other, _xor(body[:size], stream), header)[size:]
    hashed = _xor(tag, block.encryptor().update(other + _COUNTER))
    counter = block.decryptor().update(_xor(body[size:], hashed))
    number = int.from_bytes(counter[:_NONCE], "big") ^ cipher.iv
    return (number,) if counter[_NONCE:] == _COUNTER and number < _LARGEST else ()


def _xor(first: bytes, second: bytes) -> bytes:
    size = len(first)
    return (int.from_bytes(first, "big") ^ int.from_bytes(second, "big")).to_bytes(size, "big")
