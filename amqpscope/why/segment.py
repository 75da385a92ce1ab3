"""What a packet of a capture is as TCP sees it, before anything is asked about the frames in it."""

import ipaddress

from amqpscope.capture.segment import Segment
from amqpscope.errors import FilterError
from amqpscope.input.replay import ReplayableCapture, SegmentProbe
from amqpscope.model.records import endpoint
from dissectors.wire import i64, u16

__all__ = ["AskedSegment", "segment_of"]

_FLAGS = ((0x02, "SYN"), (0x10, "ACK"), (0x01, "FIN"), (0x04, "RST"))


class AskedSegment:
    """The TCP segment that a question is about. key: addresses and ports as `Connection.key` has them, its
    sender first.

    octets: of its payload on the wire. flags: those that tell something, by their names. time: ns. file,
    number: where the packet is from, if the capture is several files; else "" and 0.
    """

    def __init__(self, segment: Segment, file: str, number: int) -> None:
        self.key = segment.key
        self.packet = int(segment.packet)
        self.time = int(segment.time)
        self.octets = int(segment.end - segment.start + segment.cut)
        self.file = file
        self.number = number
        self.flags = [name for bit, name in _FLAGS if segment.flags & bit]

    @property
    def ends(self) -> bool:
        """Whether it ends its sender's stream."""
        return "FIN" in self.flags or "RST" in self.flags

    @property
    def sender(self) -> str:
        """Address and port."""
        return self._end(0)

    @property
    def receiver(self) -> str:
        """Address and port."""
        return self._end(1)

    def _end(self, which: int) -> str:
        width = (len(self.key) - 4) // 2
        address = ipaddress.ip_address(self.key[which * width : (which + 1) * width])
        return endpoint(str(address), u16(self.key, len(self.key) - 4 + 2 * which))


class _PacketProbe(SegmentProbe):
    """Waits for one packet."""

    def __init__(self, packet: int) -> None:
        super().__init__()
        self.wanted = packet
        self.found: AskedSegment | None = None

    def segment(self, segment: Segment) -> None:
        if segment.packet == self.wanted:
            file, number = ("", 0) if self.merge is None else self.merge.origin(segment.packet)
            self.found = AskedSegment(segment, file, number)

    def note(self, code: str, packet: i64, time: i64, detail: str) -> None:
        """What is wrong with the capture is reported elsewhere."""


def segment_of(material: ReplayableCapture, packet: int) -> AskedSegment:
    """The TCP segment of a packet, counted from 1. FilterError says why there is none."""
    tap = _PacketProbe(packet)
    seen = 0
    for seen in material.segments(tap):
        if tap.found is not None or seen >= packet:
            break
    if tap.found is not None:
        return tap.found
    if 0 < seen < packet:
        raise FilterError(f"packet {packet}: the capture has only {seen}")
    raise FilterError(f"packet {packet}: this packet is not a TCP segment that could be read")
