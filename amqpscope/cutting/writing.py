"""Writing the packets of a capture once more: all or some, with comments."""

from collections.abc import Mapping, Sequence
from typing import Final

from amqpscope import __version__
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.pcapng import PcapngReader
from amqpscope.capture.reader import CaptureReader
from amqpscope.capture.recorder import Packet, PacketRecorder
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.source import CaptureSource
from amqpscope.input.capture import BLOCK

__all__ = ["IRRELEVANT", "KEPT", "LEFT_OUT", "copy_packets", "recorder_at"]

KEPT: Final = 1
"""A packet that is written."""

LEFT_OUT: Final = 0
"""A packet of a connection that is not written: the file counts it as lost."""

IRRELEVANT: Final = 2
"""A packet without TCP that is not written."""

_APPLICATION: Final = f"amqpscope {__version__}"


def recorder_at(path: str, remark: str = "") -> PcapngRecorder:
    """What writes a pcapng file. remark: a comment on its section. Raises CaptureError."""
    return PcapngRecorder(path, _APPLICATION, remark=remark)


def copy_packets(
    path: str,
    recorder: PcapngRecorder,
    comments: Mapping[int, Sequence[str]],
    kept: bytes | bytearray | None = None,
) -> None:
    """Write the packets of the capture at `path` to a pcapng file, as they are. recorder: see `recorder_at`.

    comments: by number of the packet, from 1. kept: KEPT, LEFT_OUT or IRRELEVANT for each packet, None to
    keep all. What the file says of its interfaces and of lost packets, and its TLS secrets, are written, too.
    Raises CaptureError.
    """
    source = CaptureSource(path)
    copying = _Copying(recorder, comments, kept)
    try:
        sink = _Asides(recorder, copying)
        decoder = PacketDecoder(sink)
        decoder.recorder = copying
        reader = source.start(sink, decoder)
        copying.reader = reader
        while block := source.read(BLOCK):
            reader.feed(block)
            recorder.flush()
        reader.finish()
    finally:
        source.close()
        recorder.finish(0, [], [copying.dropped] if copying.dropped else [])


class _Asides(SegmentSink):
    """Hands on what a file says beside its packets."""

    def __init__(self, recorder: PcapngRecorder, copying: "_Copying") -> None:
        super().__init__()
        self._recorder = recorder
        self._copying = copying

    def secrets(self, octets: bytes) -> None:
        self._recorder.embed(octets)

    def dropped(self, packet: int, time: int, count: int) -> None:
        self._copying.dropped += count
        if packet:
            self._copying.lost += count


class _Copying(PacketRecorder):
    """Hands packets on, each with its comments and the number that it has then.

    lost: packets that are missing before the next one. dropped: all that are missing.
    """

    def __init__(
        self, recorder: PcapngRecorder, comments: Mapping[int, Sequence[str]], kept: bytes | bytearray | None
    ) -> None:
        self.reader: CaptureReader | None = None
        self.lost = 0
        self.dropped = 0
        self._recorder = recorder
        self._comments = comments
        self._kept = kept
        self._written = 0
        self._described: set[tuple[int, int]] = set()

    def packet(self, packet: Packet) -> None:
        number = int(packet.number)
        kept = self._kept
        if kept is not None and kept[number] != KEPT:
            if kept[number] == LEFT_OUT:
                self.lost += 1
                self.dropped += 1
            return
        place = (int(packet.interface), int(packet.link_type))
        if place not in self._described:
            self._described.add(place)
            self._describe(*place)
        if self.lost:
            self._recorder.lost(place[0], self.lost)
            self.lost = 0
        self._written += 1
        packet.number = self._written
        self._recorder.packet(packet)
        for text in self._comments.get(number, ()):
            self._recorder.comment(self._written, text)

    def _describe(self, index: int, link_type: int) -> None:
        reader = self.reader
        if isinstance(reader, PcapngReader) and index < len(reader.interfaces):
            name, description, its_filter = (
                text.decode("utf-8", "replace") for text in reader.interfaces[index].texts
            )
            self._recorder.interface(index, name, link_type, description, its_filter)
