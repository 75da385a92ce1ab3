"""A relay on loopback that remembers what passes: recordings of real programs without any privilege.

with Relay(port) as relay:
    ...  # a client connects to relay.port, and what it says goes to the server at `port`
relay.turns
"""

from __future__ import annotations

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
        self._lock = threading.Lock()
        self._tls = tls
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._ends: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._listener.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
            if self._tls is not None:
                # With a limit of time, its two threads do not wait inside OpenSSL.
                client.settimeout(PATIENCE)
                client = self._tls.wrap_socket(client, server_side=True)
            server = socket.create_connection(self._server, PATIENCE)
        except OSError:
            return
        self._ends = [client, server]
        for direction, (one, other) in enumerate(((client, server), (server, client))):
            thread = threading.Thread(target=self._pass, args=(direction, one, other), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _pass(self, direction: int, one: socket.socket, other: socket.socket) -> None:
        try:
            while octets := one.recv(65536):
                with self._lock:
                    self.turns.append(Turn(direction, octets))
                other.sendall(octets)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass
