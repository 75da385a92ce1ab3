"""A conversation in TLS: Python's ssl at both ends, in memory, and what they said on the wire.

    recording = TlsRecording(version="1.2", suites="ECDHE-RSA-AES128-GCM-SHA256")
    recording.say(0, b"from the client")
    recording.turns, recording.keylog

Turns begin with those of the handshake: `handshake` says how many. What Python's ssl has no word for (suites
of TLS 1.3, padding, KeyUpdate) is asked of the OpenSSL beneath it.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import functools
import ssl
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

__all__ = ["Ends", "TlsRecording", "Turn", "choose_suites13"]

VERSIONS = {
    "1.0": ssl.TLSVersion.TLSv1,
    "1.1": ssl.TLSVersion.TLSv1_1,
    "1.2": ssl.TLSVersion.TLSv1_2,
    "1.3": ssl.TLSVersion.TLSv1_3,
}

NO_ENCRYPT_THEN_MAC = 1 << 19

# Behind the header of a Python object: of a context its SSL_CTX; of an object the socket, then its SSL.
_CONTEXT, _OBJECT = 16, 24


class Turn(NamedTuple):
    """Octets of one direction that one packet carries."""

    direction: int
    octets: bytes


@functools.cache
def credentials(kind: str = "rsa", ends: int = 2040) -> str:
    """A file with a private key and its certificate for `broker.example`, made here. ends: its last year."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "broker.example")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(ends, 1, 1, tzinfo=datetime.UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("broker.example")]), False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path = Path(tempfile.mkdtemp()) / f"{kind}.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return str(path)


def _openssl() -> ctypes.CDLL:
    """The OpenSSL that Python's ssl uses."""
    return ctypes.CDLL(ssl._ssl.__file__)  # type: ignore[attr-defined]


def _pointer(thing: object, at: int) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(id(thing) + at)


def choose_suites13(context: ssl.SSLContext, suites: str) -> None:
    """Let a context take only these suites of TLS 1.3, for which Python's ssl has no word."""
    if not _openssl().SSL_CTX_set_ciphersuites(_pointer(context, _CONTEXT), suites.encode()):
        pytest.skip(f"OpenSSL has no {suites} here")


class Ends(NamedTuple):
    """The contexts of a client and a server, used for several connections."""

    client: ssl.SSLContext
    server: ssl.SSLContext
    keylog: Path

    @staticmethod
    def make(
        version: str = "1.3",
        suites: str = "",
        *,
        kind: str = "rsa",
        etm: bool = True,
        padding: int = 0,
        curve: str = "",
        client_certificate: bool = False,
        alpn: str = "",
    ) -> Ends:
        client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        keylog = Path(tempfile.mkdtemp()) / "keys.txt"
        client.check_hostname = False
        client.verify_mode = ssl.CERT_NONE
        client.keylog_filename = str(keylog)
        server.load_cert_chain(credentials(kind))
        if client_certificate:
            server.verify_mode = ssl.CERT_REQUIRED
            server.load_verify_locations(credentials(kind))
            client.load_cert_chain(credentials(kind))
        if curve:
            server.set_ecdh_curve(curve)
        for context in (client, server):
            if version != "1.3":
                context.set_ciphers(f"{suites or 'DEFAULT'}:@SECLEVEL=0")
            elif suites:
                choose_suites13(context, suites)
            context.minimum_version = context.maximum_version = VERSIONS[version]
            if alpn:
                context.set_alpn_protocols([alpn])
            if not etm:
                context.options |= NO_ENCRYPT_THEN_MAC
            if padding:
                _openssl().SSL_CTX_set_block_padding(_pointer(context, _CONTEXT), ctypes.c_size_t(padding))
        return Ends(client, server, keylog)


class TlsRecording:
    """One connection between two ends. session: of an earlier connection, to be resumed."""

    def __init__(
        self, ends: Ends | None = None, *, session: ssl.SSLSession | None = None, **wanted: object
    ) -> None:
        self.ends = ends or Ends.make(**wanted)  # type: ignore[arg-type]
        into = [ssl.MemoryBIO(), ssl.MemoryBIO()]
        self.into, self.outof = into, [ssl.MemoryBIO(), ssl.MemoryBIO()]
        self.peers = [
            self.ends.client.wrap_bio(
                into[0], self.outof[0], server_hostname="broker.example", session=session
            ),
            self.ends.server.wrap_bio(into[1], self.outof[1], server_side=True),
        ]
        self.turns: list[Turn] = []
        self.failure = ""
        self._shake_hands()
        self.handshake = len(self.turns)

    @property
    def keylog(self) -> bytes:
        return self.ends.keylog.read_bytes()

    @property
    def session(self) -> ssl.SSLSession | None:
        return self.peers[0].session

    def _shake_hands(self) -> None:
        done = [False, False]
        for _ in range(10):
            for direction in (0, 1):
                try:
                    if not done[direction]:
                        self.peers[direction].do_handshake()
                        done[direction] = True
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLError as error:
                    self.failure = error.reason or "failed"
                    done[direction] = True
                self.flush(direction)
            if all(done):
                break
        self._read(0)

    def _read(self, direction: int) -> bytes:
        """What a peer can read, and its answers."""
        got = b""
        try:
            while octets := self.peers[direction].read(65536):
                got += octets
        except ssl.SSLError:
            pass
        self.flush(direction)
        return got

    def flush(self, direction: int) -> None:
        """What a peer has to say goes to the wire, as one turn."""
        octets = self.outof[direction].read()
        if octets:
            self.turns.append(Turn(direction, octets))
            self.into[1 - direction].write(octets)

    def say(self, direction: int, octets: bytes) -> None:
        """Application data, in one turn."""
        self.peers[direction].write(octets)
        self.flush(direction)
        assert self._read(1 - direction) == octets

    def update_keys(self, direction: int, answered: bool = False) -> None:
        """A KeyUpdate, which goes with the next data."""
        pointer = _pointer(self.peers[direction]._sslobj, _OBJECT)  # type: ignore[attr-defined]
        assert _openssl().SSL_key_update(pointer, 1 if answered else 0) == 1

    def renegotiate(self) -> None:
        """The client of TLS 1.2 begins another handshake, to its end."""
        pointer = _pointer(self.peers[0]._sslobj, _OBJECT)  # type: ignore[attr-defined]
        assert _openssl().SSL_renegotiate(pointer) == 1
        _openssl().SSL_do_handshake(pointer)
        self.flush(0)
        for _ in range(4):
            for direction in (1, 0):
                self._read(direction)

    def close(self, direction: int) -> None:
        """close_notify."""
        with contextlib.suppress(ssl.SSLError):
            self.peers[direction].unwrap()
        self.flush(direction)
