"""One end of a forwarded connection: its socket, perhaps with TLS, and the octets that wait for it."""

import contextlib
import errno
import socket
import struct
import sys
from collections import deque
from typing import Final

from amqpscope.capture.proxy.encryption import Encryption
from amqpscope.capture.proxy.packets import MOST_OCTETS

__all__ = ["Side"]

_RESET_AT_CLOSE: Final = struct.pack("ii", 1, 0)
_UNACKNOWLEDGED: Final = 0x5411  # SIOCOUTQ


class Side:
    """Reads from a connected socket that does not block, and writes to it.

    `waiting`: octets for the socket that the kernel has not taken yet.
    """

    def __init__(self, raw: socket.socket) -> None:
        self.raw = raw
        self._encryption: Encryption | None = None
        self._pending = bytearray()
        # Octets that the kernel has taken, as on the wire; plain octets that were written.
        self._handed = 0
        self._written = 0
        # With TLS: behind which octet on the wire how many plain ones are complete.
        self._marks: deque[tuple[int, int]] = deque()
        self._complete = 0
        self._ending = False
        # FIN was handed to the kernel.
        self.shut = False
        # It takes nothing any more.
        self.deaf = False
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def encrypt(self, encryption: Encryption) -> None:
        """From now on octets on the wire are those of TLS, which has begun."""
        self._encryption = encryption

    @property
    def waiting(self) -> int:
        """Octets that the kernel has not taken yet."""
        return len(self._pending)

    def read(self) -> tuple[bytes, bool]:
        """Plain octets that are complete, and whether the stream has ended behind them.

        Raises OSError if the peer has reset the connection.
        """
        try:
            octets = self.raw.recv(MOST_OCTETS)
        except (BlockingIOError, InterruptedError):
            return b"", False
        encryption = self._encryption
        if encryption is None or not octets:
            return octets, not octets
        encryption.take_in(octets)
        read = encryption.read()
        try:
            self._queue(encryption.outgoing())
        except OSError:
            self.forget()
        return read

    def read_early(self) -> tuple[bytes, bool]:
        """What came with the end of the TLS handshake, as `read` gives it."""
        return (b"", False) if self._encryption is None else self._encryption.read()

    def write(self, octets: bytes) -> None:
        """Write plain octets, or keep them until the kernel takes them. Raises OSError."""
        if self.deaf:
            return
        self._written += len(octets)
        encryption = self._encryption
        if encryption is None:
            if self._pending:
                self._pending += octets
            else:
                taken = self._send(octets)
                if taken < len(octets):
                    self._pending += memoryview(octets)[taken:]
            return
        encryption.write(octets)
        secret = encryption.outgoing()
        self._marks.append((self._handed + len(self._pending) + len(secret), self._written))
        self._queue(secret)

    def end(self) -> None:
        """No more octets follow: hand FIN to the kernel, behind all others. Raises OSError."""
        if self._ending or self.deaf:
            return
        self._ending = True
        if self._encryption is not None:
            self._encryption.end()
            self._queue(self._encryption.outgoing())
        self.flush()

    def flush(self) -> None:
        """Hand to the kernel what it takes now. Raises OSError."""
        if self._pending:
            taken = self._send(self._pending)
            del self._pending[:taken]
        if self._ending and not self._pending and not self.shut:
            self.shut = True
            self.raw.shutdown(socket.SHUT_WR)

    def forget(self) -> None:
        """The peer takes nothing any more."""
        self.deaf = True
        self._pending.clear()

    def acknowledged(self) -> int:
        """Plain octets that the peer's host has acknowledged, and one for FIN.

        Where the kernel does not say: that it was handed.
        """
        unacknowledged = self.unacknowledged()
        end = self._handed + (1 if self.shut else 0)
        reached = end - unacknowledged
        if self._encryption is None:
            return max(reached, 0)
        marks = self._marks
        while marks and marks[0][0] <= reached:
            self._complete = marks.popleft()[1]
        return self._complete + (1 if self.shut and not unacknowledged else 0)

    def unacknowledged(self) -> int:
        """Octets on the wire, FIN among them, that the peer's host has not acknowledged."""
        if sys.platform != "linux":
            return 0
        import fcntl  # which not every system has

        try:
            answer = fcntl.ioctl(self.raw.fileno(), _UNACKNOWLEDGED, bytes(4))
        except OSError:
            return 0
        return max(int.from_bytes(answer, sys.byteorder, signed=True), 0)

    def close(self, reset: bool = False) -> None:
        """Close the socket. reset: by RST."""
        if reset:
            with contextlib.suppress(OSError):
                self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        self.raw.close()

    def _queue(self, octets: bytes) -> None:
        if octets and not self.deaf:
            self._pending += octets
            self.flush()

    def _send(self, octets: bytes | bytearray) -> int:
        try:
            taken = self.raw.send(octets)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            if error.errno == errno.ENOBUFS:
                return 0
            raise
        self._handed += taken
        return taken
