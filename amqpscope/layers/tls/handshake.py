"""The messages of a TLS handshake (RFC 8446, section 4; RFC 5246, section 7.4), as far as they are of use
here.

Nothing is judged: what does not fit ends the reading of a message, and what was read of it stands.
"""

import warnings
from typing import Any, Final

from amqpscope.limits import MAX_TLS_NAMES
from amqpscope.model.tls_facts import Certificate

__all__ = [
    "ALERTS",
    "CERTIFICATE",
    "CERTIFICATE_REQUEST",
    "CLIENT_HELLO",
    "CLIENT_KEY_EXCHANGE",
    "ENCRYPTED_EXTENSIONS",
    "END_OF_EARLY_DATA",
    "FINISHED",
    "HELLO_REQUEST",
    "KEY_UPDATE",
    "NEW_SESSION_TICKET",
    "SERVER_HELLO",
    "Hello",
    "certificate",
    "certificates",
    "client_hello",
    "in_clear",
    "parsed_certificate",
    "protocols",
    "read_extensions",
    "server_hello",
]

HELLO_REQUEST: Final = 0
CLIENT_HELLO: Final = 1
SERVER_HELLO: Final = 2
NEW_SESSION_TICKET: Final = 4
END_OF_EARLY_DATA: Final = 5
ENCRYPTED_EXTENSIONS: Final = 8
CERTIFICATE: Final = 11
CERTIFICATE_REQUEST: Final = 13
CLIENT_KEY_EXCHANGE: Final = 16
FINISHED: Final = 20
KEY_UPDATE: Final = 24

SERVER_NAME: Final = 0
ALPN: Final = 16
ENCRYPT_THEN_MAC: Final = 22
EXTENDED_MASTER_SECRET: Final = 23
SESSION_TICKET: Final = 35
EARLY_DATA: Final = 42
SUPPORTED_VERSIONS: Final = 43

RETRY: Final = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random of a ServerHello that is a HelloRetryRequest (RFC 8446, section 4.1.3)."""

ALERTS: Final = {
    0: "close_notify",
    10: "unexpected_message",
    20: "bad_record_mac",
    21: "decryption_failed",
    22: "record_overflow",
    30: "decompression_failure",
    40: "handshake_failure",
    41: "no_certificate",
    42: "bad_certificate",
    43: "unsupported_certificate",
    44: "certificate_revoked",
    45: "certificate_expired",
    46: "certificate_unknown",
    47: "illegal_parameter",
    48: "unknown_ca",
    49: "access_denied",
    50: "decode_error",
    51: "decrypt_error",
    60: "export_restriction",
    70: "protocol_version",
    71: "insufficient_security",
    80: "internal_error",
    86: "inappropriate_fallback",
    90: "user_canceled",
    100: "no_renegotiation",
    109: "missing_extension",
    110: "unsupported_extension",
    111: "certificate_unobtainable",
    112: "unrecognized_name",
    113: "bad_certificate_status_response",
    115: "unknown_psk_identity",
    116: "certificate_required",
    120: "no_application_protocol",
}
"""Alert descriptions (the registry "TLS Alerts" of IANA)."""


class Hello:
    """A ClientHello or ServerHello.

    version: the chosen one, as on the wire; in a ClientHello the newest one before TLS 1.3 that the client
    speaks. session: the identity of the session. suite: the chosen one. compressed: the
    records will be.
    """

    def __init__(self) -> None:
        self.random = b""
        self.version = 0
        self.session = b""
        self.suite = 0
        self.compressed = False
        self.extensions: dict[int, bytes] = {}

    @property
    def retry(self) -> bool:
        """It is a HelloRetryRequest."""
        return self.random == RETRY


def _number(octets: bytes, at: int, size: int) -> int:
    return int.from_bytes(octets[at : at + size], "big")


def in_clear(body: bytes) -> bool:
    """Whether a record begins with a whole message in the clear, but a HelloRequest. A protected record only
    seems to by chance, about once in a million.
    """
    return len(body) >= 4 and 0 < body[0] <= FINISHED and 4 + _number(body, 1, 3) <= len(body)


def client_hello(body: bytes) -> Hello:
    """A ClientHello, or what there is of one."""
    hello = Hello()
    hello.version = _number(body, 0, 2)
    hello.random = body[2:34]
    at = 35 + _number(body, 34, 1)
    hello.session = body[35:at]
    at += 2 + _number(body, at, 2)
    at += 1 + _number(body, at, 1)
    hello.extensions = read_extensions(body[at:])
    return hello


def server_hello(body: bytes) -> Hello:
    """A ServerHello, or what there is of one."""
    hello = Hello()
    hello.version = _number(body, 0, 2)
    hello.random = body[2:34]
    at = 35 + _number(body, 34, 1)
    hello.session = body[35:at]
    hello.suite = _number(body, at, 2)
    hello.compressed = body[at + 2 : at + 3] > b"\0"
    hello.extensions = read_extensions(body[at + 3 :])
    chosen = hello.extensions.get(SUPPORTED_VERSIONS, b"")
    if len(chosen) == 2:
        hello.version = _number(chosen, 0, 2)
    return hello


def read_extensions(octets: bytes) -> dict[int, bytes]:
    """Extensions by their types, behind the length of them all."""
    found: dict[int, bytes] = {}
    at, end = 2, min(len(octets), 2 + _number(octets, 0, 2))
    while at + 4 <= end:
        size = _number(octets, at + 2, 2)
        if at + 4 + size > end:
            break
        found.setdefault(_number(octets, at, 2), octets[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def server_name(extensions: dict[int, bytes]) -> str:
    """The host name of the extension "server_name" (RFC 6066, section 3)."""
    listed = extensions.get(SERVER_NAME, b"")
    if len(listed) < 5 or listed[2] != 0:
        return ""
    return listed[5 : 5 + _number(listed, 3, 2)].decode("ascii", "replace")[:255]


def protocols(extensions: dict[int, bytes]) -> list[str]:
    """The protocols of the extension of ALPN (RFC 7301)."""
    listed = extensions.get(ALPN, b"")
    found: list[str] = []
    at = 2
    while at < len(listed) and len(found) < MAX_TLS_NAMES:
        size = listed[at]
        found.append(listed[at + 1 : at + 1 + size].decode("ascii", "replace"))
        at += 1 + size
    return found


def certificates(body: bytes, tls13: bool) -> bytes | None:
    """The first certificate of a Certificate message, in DER; b"" for none, None for a damaged message."""
    at = 1 + _number(body, 0, 1) if tls13 else 0
    whole = _number(body, at, 3)
    at += 3
    if at > len(body):
        return None
    if whole == 0:
        return b""
    size = _number(body, at, 3)
    octets = body[at + 3 : at + 3 + size]
    return octets if octets and len(octets) == size else None


def parsed_certificate(der: bytes) -> Any:
    """A certificate as `cryptography` has it, without warnings about it; raises what that raises."""
    from cryptography import x509

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x509.load_der_x509_certificate(der)


def certificate(der: bytes) -> Certificate | None:
    """What a certificate says; None if it is none, or the package `cryptography` is not there."""
    try:
        from cryptography import x509
    except ImportError:
        return None
    names: list[str] = []
    try:
        read = parsed_certificate(der)
        subject, issuer = read.subject.rfc4514_string(), read.issuer.rfc4514_string()
        begins, ends = read.not_valid_before_utc.timestamp(), read.not_valid_after_utc.timestamp()
        listed = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names += listed.get_values_for_type(x509.DNSName)
        names += [str(address) for address in listed.get_values_for_type(x509.IPAddress)]
    except x509.ExtensionNotFound:
        pass
    except Exception:  # a hostile certificate raises what it likes
        return None
    return Certificate(
        subject[:1024], issuer[:1024], [name[:255] for name in names[:MAX_TLS_NAMES]], int(begins), int(ends)
    )
