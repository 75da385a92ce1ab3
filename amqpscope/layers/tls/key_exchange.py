"""The master secret of TLS 1.2 and before, computed with the private key of the server.

Theory of operation. In an RSA key exchange the client chooses the premaster secret and encrypts it for the
server's certificate (RFC 5246, section 7.4.7.1). The master secret comes from that and the two randoms, or,
where both peers have the extension, from a digest of the whole handshake (RFC 7627). So the messages are
kept up to ClientKeyExchange. A resumed session has no key exchange: its master secret is that of the session,
found by the identity or the ticket that the client names. No other key exchange sends anything from which a
private key gives the secret.
"""

import hashlib
from typing import Any, Final

from amqpscope.layers.secrets import Secrets
from amqpscope.layers.tls import handshake
from amqpscope.layers.tls.schedule import prf
from amqpscope.layers.tls.suites import Suite
from amqpscope.limits import MAX_TLS_HANDSHAKE

__all__ = ["KeyExchange"]

_PREMASTER: Final = 48
_MASTER: Final = 48


class KeyExchange:
    """The last handshake of a connection, as far as a private key needs it."""

    def __init__(self) -> None:
        # The ClientHello, the messages of the server, and what else the client said.
        self.hello = b""
        self.by_server = bytearray()
        self.by_client = bytearray()
        # The version and the ticket of the ClientHello.
        self.offered = 0
        self.ticket = b""
        # The session that the server names, and whether it takes the extension of RFC 7627.
        self.session = b""
        self.extended = False
        # The server's certificate, and the premaster secret as it was sent.
        self.certificate = b""
        self.encrypted = b""
        # Octets of the handshake are missing; why there is no secret.
        self.torn = False
        self.reason = ""
        # The master secret is known.
        self.master = b""

    def take(self, by_client: bool, kind: int, body: bytes, secrets: Secrets) -> None:
        """A message of the handshake."""
        if kind == handshake.NEW_SESSION_TICKET and not by_client and self.master:
            secrets.learn_session(body[6:], self.master)
        if self.encrypted or kind == handshake.HELLO_REQUEST:
            return
        message = bytes((kind,)) + len(body).to_bytes(3, "big") + body
        if kind == handshake.CLIENT_HELLO and by_client:
            hello = handshake.client_hello(body)
            self.hello = message
            self.offered = hello.version
            self.ticket = hello.extensions.get(handshake.SESSION_TICKET, b"")
        elif len(self.by_server) + len(self.by_client) + len(message) > 2 * MAX_TLS_HANDSHAKE:
            self.torn = True
        elif by_client:
            self.by_client += message
            if kind == handshake.CLIENT_KEY_EXCHANGE:
                self.encrypted = body[2:]
        else:
            self.by_server += message
            if kind == handshake.SERVER_HELLO:
                answer = handshake.server_hello(body)
                self.session = answer.session
                self.extended = handshake.EXTENDED_MASTER_SECRET in answer.extensions
            elif kind == handshake.CERTIFICATE:
                self.certificate = handshake.certificates(body, False) or b""

    def secret(self, version: int, of: Suite, randoms: bytes, secrets: Secrets) -> bytes:
        """The master secret; b"" if there is none, and `reason` says why. version: as on the wire. of: the
        suite. randoms: those of the client and the server.
        """
        self.reason = ""
        if not self.master:
            self.master = self.found(version, of, randoms, secrets)
            if self.master and self.session:
                secrets.learn_session(self.session, self.master)
        return self.master

    def found(self, version: int, of: Suite, randoms: bytes, secrets: Secrets) -> bytes:
        """As `secret`, computed now."""
        resumed = b""
        if not self.encrypted:
            resumed = secrets.sessions.get(self.ticket) or secrets.sessions.get(self.session, b"")
        if resumed:
            return resumed
        if self.torn:
            self.reason = (
                "decryption with a private key (--tls-key) needs octets of the handshake that were not "
                "captured"
            )
        elif not of.name.startswith("TLS_RSA_WITH_"):
            self.reason = f"a private key (--tls-key) can decrypt only RSA key exchange, not {of.name}"
        elif not self.encrypted:
            self.reason = (
                "the client resumed a TLS session that was not decrypted with a private key (--tls-key)"
            )
        else:
            premaster = self.premaster(version, secrets)
            if premaster:
                return self.derived(version, of, premaster, randoms)
        return b""

    def premaster(self, version: int, secrets: Secrets) -> bytes:
        """The premaster secret; b"" if no key gives it, and `reason` says why."""
        keys = secrets.server_keys
        if self.certificate:
            keys = [key for key in keys if key.fits(self.certificate)]
        if not keys:
            self.reason = "no private key (--tls-key) belongs to the certificate of the server"
        for key in keys:
            premaster = key.decrypt(self.encrypted)
            # It begins with the version of the ClientHello; some old clients put the chosen one there.
            named = int.from_bytes(premaster[:2], "big")
            if len(premaster) == _PREMASTER and named in (self.offered, version):
                return premaster
        self.reason = self.reason or "the private key (--tls-key) does not decrypt the premaster secret"
        return b""

    def derived(self, version: int, of: Suite, premaster: bytes, randoms: bytes) -> bytes:
        """The master secret (RFC 5246, section 8.1; RFC 7627, section 4)."""
        seed = b"master secret" + randoms
        digest = of.digest
        if self.extended:
            said = self.hello + self.by_server + self.by_client
            if version >= 0x0303:
                seed = b"extended master secret" + hashlib.new(digest, said).digest()
            else:
                made = [hashlib.new(name, said, usedforsecurity=False).digest() for name in ("md5", "sha1")]
                seed = b"extended master secret" + b"".join(made)
        try:
            return prf(version, digest, premaster, seed, _MASTER)
        except ValueError:
            self.reason = "this system does not allow the digest algorithms of TLS versions before 1.2"
            return b""

    def dump(self) -> tuple[Any, ...]:
        """The state, as plain values."""
        messages = (self.hello, bytes(self.by_server), bytes(self.by_client))
        chosen = (self.offered, self.ticket, self.session, self.extended)
        return (messages, chosen, self.certificate, self.encrypted, self.torn, self.master)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "KeyExchange":
        """The object of what `dump` returned."""
        one = KeyExchange()
        messages, chosen, one.certificate, one.encrypted, one.torn, one.master = state
        one.hello, by_server, by_client = messages
        one.by_server, one.by_client = bytearray(by_server), bytearray(by_client)
        one.offered, one.ticket, one.session, one.extended = chosen
        return one
