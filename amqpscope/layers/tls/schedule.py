"""Keys from secrets: HKDF-Expand-Label of TLS 1.3 (RFC 8446, section 7), and the PRF before it (RFC 5246,
section 5; RFC 2246, section 5)."""

import hashlib
import hmac

__all__ = ["expand_label", "key_block", "prf"]


def expand_label(digest: str, secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label without context: `size` octets of a traffic secret."""
    label = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes((len(label),)) + label + b"\0"
    made = block = b""
    count = 0
    while len(made) < size:
        count += 1
        block = hmac.digest(secret, block + info + bytes((count,)), digest)
        made += block
    return made[:size]


def key_block(
    version: int, digest: str, master: bytes, client_random: bytes, server_random: bytes, size: int
) -> bytes:
    """The first `size` octets of the key block of TLS 1.2 and before. version: as on the wire."""
    return prf(version, digest, master, b"key expansion" + server_random + client_random, size)


def prf(version: int, digest: str, secret: bytes, seed: bytes, size: int) -> bytes:
    """The PRF of TLS 1.2 and before: `size` octets of a secret. version: as on the wire. seed: behind its
    label. Raises ValueError where the system forbids the digests.
    """
    if version >= 0x0303:
        return _expand(digest, secret, seed, size)
    # Before TLS 1.2: both halves of the secret, which overlap if its size is odd.
    half = (len(secret) + 1) // 2
    first = _expand("md5", secret[:half], seed, size)
    second = _expand("sha1", secret[len(secret) - half :], seed, size)
    return bytes(one ^ other for one, other in zip(first, second, strict=True))


def _expand(digest: str, secret: bytes, seed: bytes, size: int) -> bytes:
    """P_hash of RFC 5246, section 5."""
    if digest in ("md5", "sha1"):
        hashlib.new(digest, usedforsecurity=False)  # raises ValueError where the system forbids it
    made = b""
    step = seed
    while len(made) < size:
        step = hmac.digest(secret, step, digest)
        made += hmac.digest(secret, step + seed, digest)
    return made[:size]
