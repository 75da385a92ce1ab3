"""A TLS connection whose ClientHello was not captured: whose secret opens its records, and at which number.

Theory of operation. The client random finds the secrets of a connection. Without it the secrets of all
connections of the key logs are tried on its first protected records, the newest first.

If the ServerHello is there, it tells the version, the suite and the server random. Then each connection of a
key log gives one or two ciphers, and the number of a record can only be that of a record which was lost.

Where a capture begins in the middle of TLS 1.3, neither the suite nor the number of a record is known. With
AES-GCM the number need not be guessed. The tag of a record is GHASH of what it has, which depends on the key
alone, plus one encrypted block that has the nonce in it (NIST SP 800-38D, section 7.1). The library computes
GHASH with another nonce, and one decrypted block then shows the nonce, from which the number follows. Few
nonces have the form that they must have, so a wrong secret shows itself. The other suites have no such way:
there the first numbers are tried.

Before TLS 1.3 the keys depend on both randoms (RFC 5246, section 6.3), and the server's is in no key log. So
such a connection cannot be joined in the middle, without its ServerHello.
"""

import struct
from collections.abc import Iterable
from itertools import product
from typing import Final, NamedTuple

from amqpscope.layers.secrets import Secrets
from amqpscope.layers.tls.ciphers import APPLICATION, HANDSHAKE, RecordCipher, Traffic13, cipher_of
from amqpscope.layers.tls.suites import suite
from amqpscope.limits import (
    MAX_TLS_JOIN_CONNECTIONS,
    MAX_TLS_JOIN_NUMBERS,
    MAX_TLS_JOIN_TRIALS_ALL,
    MAX_TLS_JOIN_UPDATES,
)

__all__ = ["LABELS13", "MASTER", "SUITES", "Candidate", "Joined", "SealedRecord", "candidates", "joined"]

LABELS13: Final = (
    ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0"),
    ("SERVER_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"),
)
"""The labels of the secrets of TLS 1.3: of the client and the server, each of the handshake and behind it."""

MASTER: Final = "CLIENT_RANDOM"
"""The label of the master secret of TLS 1.2 and before."""

SUITES: Final = {32: (0x1301, 0x1303, 0x1304, 0x1305), 48: (0x1302,)}
"""The suites of TLS 1.3 by the octets of a secret."""

_TAG: Final = 16
_NONCE: Final = 12
_COUNTER: Final = (1).to_bytes(4, "big")
_HEADER: Final = 5
_TLS13: Final = 0x0304
_MASTER_SIZE: Final = 48
_DEAR: Final = 4096
"""Octets of a record for which numbers are not guessed: each attempt takes too long."""

_LARGEST: Final = 2**48
"""No connection has so many records."""

_PACKED: Final = struct.Struct(">HHb?IBh")

Candidate = tuple[bytes, str, bytes]
"""A client random, a label, and the secret."""


class SealedRecord(NamedTuple):
    """A protected record whose client random is not known, and what is known of its connection.

    version, suite: as on the wire, 0 for not known. server_random: empty if the ServerHello was not captured.
    sender: 0 for the client, 1 for the server, -1 for not known. etm: the server takes encrypt-then-MAC.
    numbers: how many numbers the record may have, from 0 on; 0 if they are not to be guessed. before: as
    `RecordCipher.open` takes it. header, body: of the record.
    """

    version: int
    suite: int
    server_random: bytes
    sender: int
    etm: bool
    numbers: int
    before: bytes | None
    header: bytes
    body: bytes

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the secrets that it may need."""
        if self.sender < 0:
            return (LABELS13[0][1], LABELS13[1][1])
        return (MASTER,) if 0 < self.version < _TLS13 else LABELS13[self.sender]

    def packed(self) -> bytes:
        """As octets, from which `unpacked` makes it again."""
        before = -1 if self.before is None else len(self.before)
        numbers = (self.version, self.suite, self.sender, self.etm, self.numbers)
        packed = _PACKED.pack(*numbers, len(self.server_random), before)
        return packed + self.server_random + (self.before or b"") + self.header + self.body

    @staticmethod
    def unpacked(octets: bytes) -> "SealedRecord":
        """The record of what `packed` gave."""
        version, code, sender, etm, numbers, random, before = _PACKED.unpack_from(octets)
        at = _PACKED.size + random
        header = at + max(before, 0)
        body = header + _HEADER
        return SealedRecord(
            version,
            code,
            octets[_PACKED.size : at],
            sender,
            etm,
            numbers,
            None if before < 0 else octets[at:header],
            octets[header:body],
            octets[body:],
        )


class Joined:
    """Whose secret opened a record: client random and label. cipher: behind the record. content: of it."""

    def __init__(self, random: bytes, label: str, cipher: RecordCipher, content: bytes) -> None:
        self.random = random
        self.label = label
        self.cipher = cipher
        self.content = content


def candidates(secrets: Secrets, record: SealedRecord, random: bytes) -> list[Candidate]:
    """The secrets that may open a record. random: the client random, empty if it is not known."""
    labels = record.labels
    known = [(random, secrets.of(random, labels[-1]))] if random else secrets.newest(MAX_TLS_JOIN_CONNECTIONS)
    return [(of, label, found[label]) for of, found in known for label in labels if label in found]


def joined(secrets: Secrets, tried: list[Candidate], record: SealedRecord) -> Joined | None:
    """Try secrets on a record; None if it opens with none of them."""
    # Behind a handshake that was captured no keys were updated yet.
    for updates in range(1 if record.server_random else MAX_TLS_JOIN_UPDATES + 1):
        if secrets.joining > MAX_TLS_JOIN_TRIALS_ALL:
            return None
        few = record.numbers == 1 or len(record.body) <= _DEAR
        guesses = record.numbers > 0 and not updates and few
        ciphers = [one for each in tried for one in _ciphers(record, each, updates, guesses)]
        shown = (
            (number, one)
            for one in ciphers
            if isinstance(one.cipher, Traffic13) and one.gcm
            for number in _number(secrets, one.cipher, record)
        )
        found = _opened(secrets, shown, record)
        if found is None and guesses:
            others = [one for one in ciphers if not one.gcm]
            most = min(record.numbers, MAX_TLS_JOIN_NUMBERS // max(len(others), 1))
            found = _opened(secrets, product(range(most), others), record)
        if found is not None:
            return found
    return None


class _Cipher:
    """What one secret may be for. gcm: the number of a record need not be guessed."""

    def __init__(self, cipher: RecordCipher, random: bytes, label: str) -> None:
        self.cipher = cipher
        self.random = random
        self.label = label
        self.gcm = isinstance(cipher, Traffic13) and cipher.suite.mode == "GCM"


def _ciphers(record: SealedRecord, candidate: Candidate, updates: int, guesses: bool) -> list[_Cipher]:
    """What a secret may be for, after so many updates of keys. guesses: also where numbers are guessed."""
    random, label, secret = candidate
    if label == MASTER:
        return _older(record, random, secret) if guesses else []
    found = []
    for code in SUITES.get(len(secret), ()):
        of = suite(code)
        if record.suite in (0, code) and (guesses or of.mode == "GCM"):
            cipher = Traffic13(of, secret)
            for _ in range(updates):
                cipher = cipher.updated()
            cipher.stage = HANDSHAKE if label in (LABELS13[0][0], LABELS13[1][0]) else APPLICATION
            found.append(_Cipher(cipher, random, label))
    return found


def _older(record: SealedRecord, random: bytes, master: bytes) -> list[_Cipher]:
    """The cipher of a master secret, for which the ServerHello has to be known."""
    of = suite(record.suite)
    if len(master) != _MASTER_SIZE or not record.server_random or not of.mode:
        return []
    randoms = (random, record.server_random)
    try:
        cipher = cipher_of(of, record.version, master, randoms, record.sender, record.etm)
    except ValueError:  # the system forbids the digests
        return []
    return [_Cipher(cipher, random, MASTER)]


def _opened(secrets: Secrets, tried: Iterable[tuple[int, _Cipher]], record: SealedRecord) -> Joined | None:
    """Open a record with one of these numbers and ciphers."""
    for number, one in tried:
        if secrets.joining > MAX_TLS_JOIN_TRIALS_ALL:
            return None
        secrets.joining += 1
        content = one.cipher.open(number, record.header, record.body, record.before)
        if content is not None:
            one.cipher.number = number + 1
            return Joined(one.random, one.label, one.cipher, content)
    return None


def _number(secrets: Secrets, cipher: Traffic13, record: SealedRecord) -> tuple[int, ...]:
    """The number of a record in AES-GCM; none if the key is another one's."""
    if secrets.joining > MAX_TLS_JOIN_TRIALS_ALL:
        return ()
    secrets.joining += 1
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    body = record.body
    size = len(body) - _TAG
    if size < 1:
        return ()
    block = Cipher(AES(cipher.key), ECB())  # noqa: S305
    other = bytes(_NONCE)
    stream = cipher.aead.encrypt(other, bytes(size), b"")[:size]
    tag = cipher.aead.encrypt(other, _xor(body[:size], stream), record.header)[size:]
    hashed = _xor(tag, block.encryptor().update(other + _COUNTER))
    counter = block.decryptor().update(_xor(body[size:], hashed))
    number = int.from_bytes(counter[:_NONCE], "big") ^ cipher.iv
    return (number,) if counter[_NONCE:] == _COUNTER and number < _LARGEST else ()


def _xor(first: bytes, second: bytes) -> bytes:
    size = len(first)
    return (int.from_bytes(first, "big") ^ int.from_bytes(second, "big")).to_bytes(size, "big")
