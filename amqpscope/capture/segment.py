"""A TCP segment as it was captured: what the capture layer gives, and reassembly takes."""

from typing import Final

from dissectors.wire import i64

__all__ = ["UNKNOWN_WINDOW", "Segment"]

UNKNOWN_WINDOW: Final = 0xFFFFFFFF
"""Stands for a window of which nothing is known."""


class Segment:
    """One captured TCP segment, with or without payload: `buf[start:end]`.

    The capture layer fills the same object again for each packet, so a segment is only lent for the call that
    brings it; `kept` gives one that stays.
    """

    def __init__(self) -> None:
        # Source address, destination address, source port, destination port as on the wire: 12 octets for
        # IPv4, 36 for IPv6.
        self.key: bytes = b""
        # The same with the ends swapped.
        self.reverse: bytes = b""
        # Number of the packet as Wireshark counts, from 1.
        self.packet: i64 = 0
        # Nanoseconds since 1970.
        self.time: i64 = 0
        # The raw 32 bit sequence number.
        self.seq: i64 = 0
        # The raw 32 bit acknowledgement number, -1 when the ACK flag is off.
        self.ack: i64 = -1
        # The low 8 flag bits.
        self.flags: i64 = 0
        # The window field as in the header in the low 16 bits. Above them, of a SYN, 1 plus the shift count
        # of its window scale option (RFC 7323, section 2.2), 16 if it has no such option; 0 if that is not
        # known, or the segment is no SYN.
        self.window: i64 = UNKNOWN_WINDOW
        # Of the IPv4 datagram that brought the segment, 0 if it has none (as in IPv6) or it is not known.
        self.identification: i64 = 0
        # Holds the captured payload.
        self.buf: bytes = b""
        # Where in `buf` the payload begins.
        self.start: i64 = 0
        # Where in `buf` the payload ends.
        self.end: i64 = 0
        # Octets of payload that followed on the wire and were not captured.
        self.cut: i64 = 0

    def kept(self) -> "Segment":
        """A copy that holds its payload and nothing else of `buf`."""
        copy = Segment()
        copy.key = self.key
        copy.reverse = self.reverse
        copy.packet = self.packet
        copy.time = self.time
        copy.seq = self.seq
        copy.ack = self.ack
        copy.flags = self.flags
        copy.window = self.window
        copy.identification = self.identification
        copy.buf = self.buf[self.start : self.end]
        copy.end = len(copy.buf)
        copy.cut = self.cut
        return copy
