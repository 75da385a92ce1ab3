"""Bounded traffic over loopback, and what a live source makes of it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from amqpscope.capture.live.source import LiveSource
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.errors import CaptureError

__all__ = ["Segments", "catch", "conversation", "free_port", "refusal"]

PATIENCE = 60.0
"""Seconds after which a test has failed. Nothing takes so long."""


class Segments(SegmentSink):
    """All segments, as the sender's port, their number, time and octets."""

    def __init__(self) -> None:
        self.all: list[tuple[int, int, int, bytes]] = []
        self.notes: list[str] = []
        self._first: dict[int, int] = {}
        self._streams: dict[int, dict[int, bytes]] = {}
        self.cut = 0

    def segment(self, segment: Segment) -> None:
        port = int.from_bytes(segment.key[-4:-2], "big")
        octets = segment.buf[segment.start : segment.end]
        self.all.append((port, segment.packet, segment.time, octets))
        self.cut += segment.cut
        first = self._first.setdefault(port, segment.seq + (segment.flags & 2) // 2)
        self._streams.setdefault(port, {})[segment.seq - first & 0xFFFF_FFFF] = octets

    def note(self, code: str, packet: int, time: int, detail: str) -> None:
        self.notes.append(code)

    def octets_from(self, port: int) -> bytes:
        """What was sent from a port, up to the first octet that is missing. Some may be sent again."""
        stream = b""
        for place, octets in sorted(self._streams.get(port, {}).items()):
            if place <= len(stream) < place + len(octets):
                stream += octets[len(stream) - place :]
        return stream


def refusal(opening: Callable[[], LiveSource]) -> str:
    """Why it is not opened, "" if it is (and closed again)."""
    try:
        opening().close()
    except CaptureError as error:
        return str(error)
    return ""


def free_port() -> int:
    """A port that nobody has. Who captures only that one takes nothing of what others say meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def conversation(
    said: bytes, answered: bytes = b"", *, address: str = "127.0.0.1", port: int = 0
) -> tuple[int, int]:
    """One connection over loopback: what the client says, and what the server answers. Both their ports."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family) as listening:
        listening.settimeout(PATIENCE)
        server_port = listening.getsockname()[1]
        with socket.create_connection((address, server_port), timeout=PATIENCE) as client:
            server, _ = listening.accept()
            server.settimeout(PATIENCE)
            with server:
                sending = threading.Thread(target=client.sendall, args=(said,))
                sending.start()
                missing = len(said)
                while missing > 0:
                    missing -= len(server.recv(65536)) or missing
                sending.join(PATIENCE)
                server.sendall(answered)
                missing = len(answered)
                while missing > 0:
                    missing -= len(client.recv(65536)) or missing
            return client.getsockname()[1], server_port


def catch(source: LiveSource, decoder: PacketDecoder, until: Callable[[], bool]) -> None:
    """Take what comes until that is so."""
    deadline = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < deadline, "it did not come"
        source.wait(1.0)
        source.take(decoder)
