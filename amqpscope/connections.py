"""All connections of one capture: which segment belongs to which, and how they are numbered.

A connection is found by its addresses and ports. The same ports used again are another connection:
after a SYN with a new sequence number, or in the middle after a jump and a silence. One that has
ended is remembered for a while, so that a late retransmission is not taken for a new connection, and
then dropped; what a caller wants to know of it it takes from `ended`.
"""

from amqpscope.analysis import ConnectionAnalysis, Note
from amqpscope.capture.sink import SegmentSink
from amqpscope.limits import MAX_CAPTURE_NOTES, MAX_LINGERING
from amqpscope.model import Connection, FrameRecord
from dissectors.wire import i64

__all__ = ["ConnectionTable"]

# TCP flag bits (RFC 9293, section 3.1).
_FLAGS_FIN_RST = 0x05


class ConnectionTable(SegmentSink):
    """Takes the segments of a capture in order; gathers frame records in `out` and notes in `notes`.

    Both lists are the caller's to empty. capture: the name that connections carry. messages: put
    messages together. `connections` has every connection seen, in the order of `tcp.stream`, if
    `keep` is set; otherwise they are forgotten as they end.
    """

    def __init__(self, capture: str, messages: bool = True, keep: bool = True) -> None:
        super().__init__()
        self.capture: str = capture
        self.messages: bool = messages
        self.keep: bool = keep
        self.out: list[FrameRecord] = []
        self.notes: list[Note] = []
        self.notes_dropped: i64 = 0
        self.connections: list[ConnectionAnalysis] = []
        self.streams: i64 = 0
        self._forward: dict[bytes, ConnectionAnalysis] = {}
        self._backward: dict[bytes, ConnectionAnalysis] = {}
        self._instances: dict[bytes, int] = {}
        self._lingering: list[ConnectionAnalysis] = []

    def segment(
        self,
        key: bytes,
        reverse: bytes,
        packet: i64,
        time: i64,
        seq: i64,
        ack: i64,
        flags: i64,
        buf: bytes,
        start: i64,
        end: i64,
        cut: i64,
    ) -> None:
        direction: i64 = 0
        analysis = self._forward.get(key)
        if analysis is None:
            analysis = self._backward.get(key)
            direction = 1
        if analysis is None:
            analysis = self._open(key, reverse)
            direction = 0
        elif analysis.tcp.starts_new(direction, seq, flags, time):
            self._close(analysis, "reused")
            analysis = self._open(key, reverse)
            direction = 0
        analysis.tcp.segment(direction, time, packet, seq, ack, flags, buf, start, end, cut)
        if flags & _FLAGS_FIN_RST and _over(analysis):
            self._linger(analysis)

    def note(self, code: str, packet: i64, time: i64, detail: str) -> None:
        self.notes.append(Note(code, packet, time, detail, None))

    def finish(self) -> None:
        """The capture ended: whatever is still open is brought to its end."""
        for analysis in list(self._forward.values()):
            analysis.finish("capture")
        self._forward.clear()
        self._backward.clear()

    def take_records(self) -> list[FrameRecord]:
        """The frame records since the last call."""
        if not self.out:
            return []
        records = self.out[:]
        self.out.clear()
        return records

    def take_notes(self) -> list[Note]:
        """The notes since the last call."""
        notes = self.notes[:MAX_CAPTURE_NOTES]
        self.notes_dropped += len(self.notes) - len(notes)
        self.notes.clear()
        return notes

    def _open(self, key: bytes, reverse: bytes) -> ConnectionAnalysis:
        pair = key if key < reverse else reverse
        instance = self._instances.get(pair, 0)
        self._instances[pair] = instance + 1
        connection = Connection(self.capture, self.streams, instance, key)
        self.streams += 1
        analysis = ConnectionAnalysis(connection, self.out, self.notes, self.messages)
        self._forward[key] = analysis
        self._backward[reverse] = analysis
        if self.keep:
            self.connections.append(analysis)
        return analysis

    def _close(self, analysis: ConnectionAnalysis, reason: str) -> None:
        analysis.finish(reason)
        key = analysis.connection.key
        if self._forward.get(key) is analysis:
            del self._forward[key]
            del self._backward[reverse_key(key)]

    def _linger(self, analysis: ConnectionAnalysis) -> None:
        """Both directions are over. Forget the connection when enough others have ended after it."""
        if self._lingering and self._lingering[-1] is analysis:
            return
        self._lingering.append(analysis)
        if len(self._lingering) > MAX_LINGERING:
            old = self._lingering[: MAX_LINGERING // 2]
            del self._lingering[: MAX_LINGERING // 2]
            for ended in old:
                self._close(ended, "capture")


def _over(analysis: ConnectionAnalysis) -> bool:
    """Whether nothing more is to be expected: both directions ended, or one was reset."""
    first = analysis.tcp.facts(0).ended
    second = analysis.tcp.facts(1).ended
    return first == "rst" or second == "rst" or (first != "" and second != "")


def reverse_key(key: bytes) -> bytes:
    """The key of the other direction."""
    width = (len(key) - 4) // 2
    return key[width : 2 * width] + key[:width] + key[-2:] + key[-4:-2]
