"""The private keys of servers, in PEM files."""

import os
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from amqpscope.errors import FilterError
from amqpscope.layers.secrets import ServerKey
from amqpscope.layers.tls.handshake import parsed_certificate

__all__ = ["PASSPHRASE", "server_key"]

PASSPHRASE: Final = "AMQPSCOPE_TLS_KEY_PASSPHRASE"  # noqa: S105
"""The environment variable with the passphrase of an encrypted key."""

_LARGEST: Final = 1024 * 1024
"""Octets of a PEM file. One with a key and a chain of certificates has some kilobytes."""


class _RsaKey(ServerKey):
    """A key of `cryptography`."""

    def __init__(self, key: RSAPrivateKey) -> None:
        self._key = key
        self._public = key.public_key().public_numbers()

    def fits(self, certificate: bytes) -> bool:
        try:
            public = parsed_certificate(certificate).public_key()
            return bool(public.public_numbers() == self._public)
        except Exception:  # a hostile certificate raises what it likes
            return False

    def decrypt(self, octets: bytes) -> bytes:
        try:
            return bytes(self._key.decrypt(octets, PKCS1v15()))
        except ValueError:
            return b""


def server_key(path: str) -> ServerKey:
    """The RSA key in a PEM file. Raises FilterError."""
    try:
        with open(path, "rb") as file:
            octets = file.read(_LARGEST)
    except OSError as error:
        raise FilterError(f"--tls-key {path}: {error.strerror or error}") from error
    passphrase = os.environ.get(PASSPHRASE, "")
    encrypted = b"ENCRYPTED" in octets
    if encrypted and not passphrase:
        raise FilterError(
            f"--tls-key {path}: the key is encrypted; put its passphrase into the environment variable "
            f"{PASSPHRASE}, or give a key without one"
        )
    try:
        key = load_pem_private_key(octets, os.fsencode(passphrase) if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # What cryptography says may name parts of the key.
        if encrypted:
            reason = f"the passphrase in {PASSPHRASE} does not open the key"
        else:
            reason = "has no private key in PEM (-----BEGIN PRIVATE KEY-----)"
        raise FilterError(f"--tls-key {path}: {reason}") from None
    if not isinstance(key, RSAPrivateKey):
        raise FilterError(
            f"--tls-key {path}: is not an RSA key; only RSA key exchange can be decrypted with a private key"
        )
    return _RsaKey(key)
