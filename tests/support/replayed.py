"""What was recorded, said once more over real sockets: in the same order, piece by piece."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from amqpscope.capture.reader import for_magic
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink

__all__ = ["replay", "replayable", "replaying"]

PATIENCE = 60.0
"""Seconds after which a test has failed. Nothing takes so long."""


class _Pieces(SegmentSink):
    """What the two ends of one connection say, in order: who, and the octets."""

    def __init__(self) -> None:
        self.pieces: list[tuple[bytes, bytes]] = []
        self.sequences: dict[bytes, int] = {}
        self.sound = True

    def segment(self, segment: Segment) -> None:
        key, reverse, seq = segment.key, segment.reverse, segment.seq
        octets = segment.buf[segment.start : segment.end]
        known = (key, reverse) if key in self.sequences else (reverse, key)
        if self.sequences and not any(one in self.sequences for one in known):
            self.sound = False  # another connection
        if segment.flags & 2:
            seq += 1
        expected = self.sequences.get(key, seq)
        if seq != expected or segment.cut:
            self.sound = False
        if octets:
            self.pieces.append((key, octets))
        self.sequences[key] = seq + len(octets)


def _pieces(path: Path) -> _Pieces:
    sink = _Pieces()
    content = path.read_bytes()
    reader = for_magic(content, sink)
    assert reader is not None
    reader.feed(content)
    return sink


def replayable(path: Path) -> bool:
    """Whether it holds one connection, complete and in order."""
    sink = _pieces(path)
    return sink.sound and len(sink.sequences) == 2


def replay(path: Path, address: str = "127.0.0.1", port: int = 5672) -> None:
    """Say it all over one connection: each piece when the other end has read what came before it."""
    with replaying(path, 0, address, port):
        pass


@contextmanager
def replaying(path: Path, said: int, address: str = "127.0.0.1", port: int = 5672) -> Iterator[None]:
    """Say the first `said` pieces, then what the block does, and then the others."""
    pieces = _pieces(path).pieces
    client_key = next(iter(_pieces(path).sequences))
    with socket.create_server((address, port)) as listening:
        listening.settimeout(PATIENCE)
        with socket.create_connection((address, port), timeout=PATIENCE) as client:
            server, _ = listening.accept()
            server.settimeout(PATIENCE)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with server:
                for number, (key, octets) in enumerate(pieces):
                    if number == said:
                        yield
                    speaker, listener = (client, server) if key == client_key else (server, client)
                    speaker.sendall(octets)
                    missing = len(octets)
                    while missing > 0:
                        got = listener.recv(missing)
                        assert got, "the other end has gone"
                        missing -= len(got)
