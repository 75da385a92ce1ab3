"""A relay on loopback that remembers what passes: recordings of real programs without any privilege.

with Relay(port) as relay:
    ...  # a client connects to relay.port, and what it says goes to the server at `port`
relay.turns
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from support.tls import Turn

__all__ = ["Relay", "free_port"]

PATIENCE = 30.0
"""Seconds after which a peer has failed. Nothing takes so long."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Relay:
    """Between one client and the server at a port of loopback. tls: it takes TLS of the client, and hands on,
    and remembers, what that carries.
    """

    def __init__(self, port: int, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self._server = (address, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.port = int(self._listener.getsockname()[1])
        self.turns: list[Turn] = []
        self._tls = tls
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._ends: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._listener.close()
        self._thread.join(PATIENCE)

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
            if self._tls is not None:
                client.settimeout(PATIENCE)
                client = self._tls.wrap_socket(client, server_side=True)
            server = socket.create_connection(self._server, PATIENCE)
        except OSError:
            return
        self._ends = [client, server]
        # One thread for both directions: OpenSSL cannot read and write one connection at the same time.
        with suppress(OSError, ValueError):  # closed meanwhile
            self._hand_on(client, server)

    def _hand_on(self, client: socket.socket, server: socket.socket) -> None:
        """What either says to the other, until both have ended."""
        ways = {client: (0, server), server: (1, client)}
        while ways:
            ready = [one for one in ways if isinstance(one, ssl.SSLSocket) and one.pending()]
            ready = ready or select.select(list(ways), [], [], PATIENCE)[0]
            if not ready:
                return
            for one in ready:
                direction, other = ways[one]
                octets = one.recv(65536)
                if octets:
                    self.turns.append(Turn(direction, octets))
                    other.sendall(octets)
                else:
                    del ways[one]
                    # Not that of an SSLSocket: it would take what else comes for octets in the clear.
                    socket.socket.shutdown(other, socket.SHUT_WR)
