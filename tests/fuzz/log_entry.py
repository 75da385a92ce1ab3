"""The fuzz entry of logs: any lines, which may be those of a client library."""

from __future__ import annotations

import zlib

from amqpscope.capture.logs.firehose import trace_reader
from amqpscope.capture.logs.reader import log_reader
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.traced import TracedMessage
from dissectors.wire import i64

__all__ = ["logs"]


class _Sink(SegmentSink):
    """Keeps what a reader gives."""

    def __init__(self) -> None:
        self.given: list[tuple[object, ...]] = []
        self.notes: list[tuple[str, str]] = []

    def segment(self, segment: Segment) -> None:
        """A segment: octets of one direction, all of them in order."""
        self.given.append((segment.key, segment.packet, segment.seq, segment.ack, segment.flags, segment.buf))

    def logged(self, key: bytes, own: i64, retold: bool) -> None:
        self.given.append((key, int(own), retold))

    def traced(self, message: TracedMessage) -> None:
        self.given.append((message.line, message.time, *message.content()))

    def note(self, code: str, packet: i64, time: i64, detail: str) -> None:
        self.notes.append((code, detail))


def logs(octets: bytes) -> None:
    """A file that may be a log: in any pieces it is read the same, and its notes can be shown."""
    whole = _read(octets, [])
    if whole is None:
        return
    chance = zlib.crc32(octets)
    cuts = sorted({(chance * (n + 1) * 7919) % len(octets) for n in range(12)})
    pieces = _read(octets, cuts)
    assert pieces is not None
    assert pieces.given == whole.given
    assert pieces.notes == whole.notes
    assert len(whole.notes) <= 100
    for code, detail in whole.notes:
        assert code.startswith("capture/")
        assert detail.isascii()
        assert detail.isprintable()


def _read(octets: bytes, cuts: list[int]) -> _Sink | None:
    sink = _Sink()
    reader = log_reader(octets, sink) or trace_reader(octets, sink)
    if reader is None:
        return None
    for begin, end in zip([0, *cuts], [*cuts, len(octets)], strict=True):
        reader.feed(octets[begin:end])
    reader.finish()
    return sink
