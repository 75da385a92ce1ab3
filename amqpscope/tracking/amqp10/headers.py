"""The protocol headers of both peers, as one endpoint has sent and received them.

A header of each peer opens a layer: the n-th sent header answers the n-th received one, or is answered by it.
Everything later assumes that both headers are equal.
"""

from typing import Any, Final

from dissectors.amqp10.frame import ProtocolHeader
from dissectors.wire import i64

__all__ = ["Headers"]

# AMQP itself, TLS and SASL.
_KNOWN: Final = (b"\0\1\0\0", b"\2\1\0\0", b"\3\1\0\0")


class Headers:
    """Of one endpoint.

    own, theirs: the newest that was sent and received (at `could`), the four octets behind "AMQP". sent,
    received: how many. their_end: behind the received one in the peer's stream; their_packet, their_time
    (ns): where it was. disagreed: they differ, and nothing was said since. doubled: one was sent twice, so
    that which answers which cannot be determined. unparsed_end, unparsed_packet: of octets of the peer's that
    stood where its first header was due; -1 when that was judged, or never was.
    """

    def __init__(self) -> None:
        self.own: bytes = b""
        self.theirs: bytes = b""
        self.sent: i64 = 0
        self.received: i64 = 0
        self.their_end: i64 = -1
        self.their_packet: i64 = 0
        self.their_time: i64 = 0
        self.disagreed: bool = False
        self.doubled: bool = False
        self.unparsed_end: i64 = -1
        self.unparsed_packet: i64 = 0

    def send(self, header: ProtocolHeader, doubled: bool) -> None:
        """This endpoint sends one; doubled: where none is due."""
        self.own = _octets(header)
        self.sent += 1
        if doubled:
            self.doubled = True
        self.disagreed = self.differ()

    def receive(self, header: ProtocolHeader, end: i64, packet: i64, time: i64) -> None:
        """This endpoint received one."""
        self.theirs = _octets(header)
        self.received += 1
        self.their_end = end
        self.their_packet = packet
        self.their_time = time
        self.disagreed = self.differ()

    def differ(self) -> bool:
        """Whether the newest of both are for the same layer, not the same, and one is of AMQP 1.0."""
        if self.sent != self.received or self.own == self.theirs:
            return False
        return self.own in _KNOWN or self.theirs in _KNOWN

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (self.own, int(self.sent), self.disagreed, self.doubled),
            (self.theirs, int(self.received)),
            (int(self.their_end), int(self.their_packet), int(self.their_time)),
            (int(self.unparsed_end), int(self.unparsed_packet)),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Headers":
        """The object of what `dump` returned."""
        headers = Headers()
        own, theirs, where, unparsed = state
        headers.own, headers.sent, headers.disagreed, headers.doubled = own
        headers.theirs, headers.received = theirs
        headers.their_end, headers.their_packet, headers.their_time = where
        headers.unparsed_end, headers.unparsed_packet = unparsed
        return headers


def _octets(header: ProtocolHeader) -> bytes:
    return bytes([header.protocol_id, header.major, header.minor, header.revision])
