"""The PROXY header that a load balancer puts before a client's octets: removed, and reported.

Theory of operation. The layer stands in front of one direction, if its first octets may begin such a header,
and holds what comes until they tell. Then it tells what is behind it, where the direction's own octets begin,
and hands on to it what it holds of those, each piece with the packet that brought it. If there was no header
it only passes on what comes.

Offsets stay those of the TCP stream: acknowledgements count in them.
"""

from typing import Any, Final

from amqpscope.analysis.layer import PlainStream
from amqpscope.reassembly.provenance import Provenance
from dissectors.proxy import MORE, NONE, proxy_header, proxy_size
from dissectors.wire import i64

__all__ = ["ProxyLayer", "may_begin"]

# What of a header is kept to be read: its line, or the addresses of version 2. The rest is only counted.
_READ: Final = 256


class _Piece:
    """Octets of the direction that wait, or how many are missing."""

    def __init__(self, offset: i64, octets: bytes, missing: i64, provenance: Provenance) -> None:
        self.offset: i64 = offset
        self.octets: bytes = octets
        self.missing: i64 = missing
        self.provenance: Provenance = provenance


class ProxyLayer(PlainStream):
    """Takes the PROXY header off one direction, if there is one. inner: takes the rest."""

    def __init__(self, inner: PlainStream) -> None:
        self.inner: PlainStream = inner
        # The stream's first octets in one piece, and all that came until the header's size is known.
        self.front: bytes = b""
        self.pieces: list[_Piece] = []
        self.size: i64 = MORE
        self.packet: i64 = 0
        self.time: i64 = 0

    def data(self, offset: i64, buf: bytes, start: i64, end: i64, provenance: Provenance) -> None:
        if self.size == NONE:
            self.inner.data(offset, buf, start, end, provenance)
            return
        if offset == 0:
            self.packet = provenance.packet
            self.time = provenance.time
        if len(self.front) == offset and len(self.front) < _READ:
            self.front += buf[start : min(end, start + _READ - len(self.front))]
        if self.size == MORE:
            self.pieces.append(_Piece(offset, buf[start:end], 0, provenance))
            self.size = proxy_size(self.front)
            if self.size == MORE:
                return
            if self.size == NONE or offset + (end - start) >= self.size:
                self.unwrap()
            else:
                self.pieces = []
        elif offset + (end - start) >= self.size:
            self.pieces = [_Piece(offset, buf[start:end], 0, provenance)]
            self.unwrap()

    def gap(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        if self.size == NONE:
            self.inner.gap(offset, size, packet, time)
            return
        hole = _Piece(offset, b"", size, Provenance(packet, time, -1))
        if self.size == MORE:
            self.size = NONE
            self.pieces.append(hole)
            self.unwrap()
        elif offset + size >= self.size:
            self.pieces = [hole]
            self.unwrap()

    def finish(self, reason: str) -> None:
        if self.size == MORE:
            self.size = NONE
        self.unwrap()
        self.inner.finish(reason)

    def unwrap(self) -> None:
        """It is known where the direction's own octets begin: hand on those that are held."""
        inner = self.inner
        if self.size > 0:
            inner.begin_behind(proxy_header(self.front, self.size), self.packet, self.time)
        pieces = self.pieces
        self.pieces = []
        for piece in pieces:
            passed: i64 = max(self.size - piece.offset, 0)
            own: i64 = len(piece.octets)
            if passed < own:
                inner.data(piece.offset + passed, piece.octets, passed, own, piece.provenance)
            elif passed < piece.missing:
                shown = piece.provenance
                inner.gap(piece.offset + passed, piece.missing - passed, shown.packet, shown.time)

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """The state, as plain values."""
        return (
            self.front,
            tuple(
                (
                    int(piece.offset),
                    piece.octets,
                    int(piece.missing),
                    piece.provenance.dump(),
                )
                for piece in self.pieces
            ),
            (int(self.size), int(self.packet), int(self.time)),
        )

    @staticmethod
    def load(state: tuple[Any, ...], inner: PlainStream) -> "ProxyLayer":
        """What `dump` gave, as a layer again."""
        layer = ProxyLayer(inner)
        layer.front, pieces, reported = state
        layer.pieces = [
            _Piece(offset, octets, missing, Provenance(*provenance))
            for offset, octets, missing, provenance in pieces
        ]
        layer.size, layer.packet, layer.time = reported
        return layer


def may_begin(buf: bytes, start: i64, end: i64) -> bool:
    """Whether a PROXY header may begin with the octets buf[start:end]."""
    return end > start and proxy_size(buf[start : min(end, start + _READ)]) != NONE
