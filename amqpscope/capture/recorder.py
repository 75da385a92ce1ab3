"""Where a packet goes that is to be kept as it was captured, before anything is made of it."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from dissectors.wire import i64


class Packet:
    """One captured packet, `buf[start:end]`, as it was given to a `PacketDecoder`."""

    def __init__(self) -> None:
        # Counts from 1.
        self.number: i64 = 0
        # Nanoseconds since 1970.
        self.time: i64 = 0
        # On which it was captured, from 0.
        self.interface: i64 = 0
        # One of libpcap's LINKTYPE values.
        self.link_type: i64 = 0
        # Holds its octets.
        self.buf: bytes = b""
        # Where in `buf` they begin.
        self.start: i64 = 0
        # Where in `buf` they end.
        self.end: i64 = 0
        # How many octets it had on the wire.
        self.wire: i64 = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class PacketRecorder(ABC):
    """Takes every packet that a `PacketDecoder` is given, in the same order."""

    @abstractmethod
    def packet(self, packet: Packet) -> None:
        """The next captured packet. It is only lent for the call."""
