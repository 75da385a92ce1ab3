"""TLS that the proxy ends: contexts of what options name, and one connection's octets through it."""

import asyncio
import contextlib
import socket
import ssl
from typing import Final

from amqpscope.errors import FilterError

__all__ = ["Encryption", "client_context", "server_context"]

_READ: Final = 64 * 1024


def client_context(
    authority: str | None, certificate: str | None, key: str | None, insecure: bool
) -> ssl.SSLContext:
    """TLS with the target. authority: a PEM file that replaces the system's trust store.

    Raises FilterError.
    """
    # Not `ssl.create_default_context`, which writes the secrets to the file that SSLKEYLOGFILE names.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authority is None:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(authority)
        except (OSError, ValueError) as error:
            raise FilterError(
                f"--to-ca {authority}: {_reason(error, 'no certificate in PEM format')}"
            ) from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load(context, "--to-cert", certificate, "--to-key", key)
    return context


def server_context(certificate: str, key: str | None) -> ssl.SSLContext:
    """TLS with clients. Raises FilterError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, "--listen-tls", certificate, "--listen-key", key)
    return context


def _load(context: ssl.SSLContext, option: str, certificate: str, key_option: str, key: str | None) -> None:
    def refuse() -> str:
        raise FilterError(f"{option} {certificate}: the private key is encrypted; decrypt the key first")

    try:
        context.load_cert_chain(certificate, key, refuse)
    except (OSError, ValueError) as error:
        named = certificate if key is None else f"{certificate} with the key {key}"
        wrong = "no certificate or key in PEM format, or they do not belong together"
        if key is None:
            wrong = f"no certificate or key in PEM format; if the key is in another file, add {key_option}"
        raise FilterError(f"{option} {named}: {_reason(error, wrong)}") from error


def _reason(error: Exception, wrong: str) -> str:
    if isinstance(error, ssl.SSLError):
        return wrong
    return getattr(error, "strerror", None) or str(error)


class Encryption:
    """TLS of one connection, apart from its socket. Octets in clear are `plain` ones."""

    def __init__(self, context: ssl.SSLContext, server_name: str | None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )

    async def shake_hands(self, raw: socket.socket) -> None:
        """Begin TLS. Raises OSError, ssl.SSLError among them."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await loop.sock_sendall(raw, self.outgoing())
                octets = await loop.sock_recv(raw, _READ)
                if not octets:
                    raise ConnectionResetError("closed in the TLS handshake") from None
                self._incoming.write(octets)
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    await loop.sock_sendall(raw, self.outgoing())  # the alert that tells the peer why
                raise
            else:
                await loop.sock_sendall(raw, self.outgoing())
                return

    def take_in(self, octets: bytes) -> None:
        """Octets of the socket came."""
        self._incoming.write(octets)

    def read(self) -> tuple[bytes, bool]:
        """The plain octets that are complete, and whether the peer has ended TLS. Raises ssl.SSLError."""
        parts: list[bytes] = []
        try:
            while True:
                part = self._tls.read(_READ)
                if not part:
                    return b"".join(parts), True
                parts.append(part)
        except ssl.SSLWantReadError:
            return b"".join(parts), False
        except ssl.SSLError as error:
            if not parts and not isinstance(error, ssl.SSLZeroReturnError):
                raise
            return b"".join(parts), True

    def write(self, plain: bytes) -> None:
        """Encrypt octets; `outgoing` gives them. Raises ssl.SSLError."""
        at = 0
        view = memoryview(plain)
        while at < len(view):
            at += self._tls.write(view[at:])

    def end(self) -> None:
        """Say that no more octets follow. Reading goes on."""
        with contextlib.suppress(ssl.SSLError):  # it also asks for the peer's end, which need not be there
            self._tls.unwrap()

    def outgoing(self) -> bytes:
        """Octets for the socket."""
        return self._outgoing.read()
