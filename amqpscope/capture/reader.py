"""Which reader a file takes, reported from its first octets."""

from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.pcap import PcapReader, is_pcap
from amqpscope.capture.pcapng import PcapngReader, is_pcapng
from amqpscope.capture.records import CaptureReader
from amqpscope.capture.sink import SegmentSink

__all__ = ["CaptureReader", "for_magic"]


def for_magic(first: bytes, sink: SegmentSink, decoder: PacketDecoder | None = None) -> CaptureReader | None:
    """A reader for the file that starts with `first` (at least 4 octets), or None if it is no capture.

    The octets are only looked at: the reader has to be fed the file from its first octet, these included.
    decoder: takes its packets, if not one of its own that gives their segments to `sink`.
    """
    if is_pcap(first):
        return PcapReader(sink, decoder)
    if is_pcapng(first):
        return PcapngReader(sink, decoder)
    return None
