"""The first reading of a capture that is to be cut: the connection of each packet, and the findings.

A survey keeps a few octets for each packet, and the findings. A survey keeps no frame.
"""

from array import array
from collections.abc import Callable
from typing import Final, NamedTuple

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.recorder import Packet, PacketRecorder
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.errors import CaptureError
from amqpscope.input.capture import Capture
from amqpscope.input.selection import EVERYTHING, FrameSelection
from amqpscope.limits import MAX_ANNOTATED, MAX_CUT_PACKETS
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.protocols import PROTOCOLS
from amqpscope.report.finding_counts import kind
from amqpscope.report.findings import message_of
from amqpscope.report.links import LinkNames

__all__ = [
    "FRAGMENT",
    "NO_CONNECTION",
    "CutSurvey",
    "KnownFinding",
    "comment_of",
    "number_of",
    "stream_of",
]

NO_CONNECTION: Final = -1
"""Stands for the connection of a packet without a TCP segment."""

FRAGMENT: Final = -2
"""Stands for the connection of a packet that is a fragment of an IP datagram."""

_SYN: Final = 0x02
_ACK: Final = 0x10
_EDGES: Final = 0x07  # FIN, SYN and RST


class KnownFinding(NamedTuple):
    """What is compared of the findings of a capture and of its cut.

    stream: the number of the connection. wanted: the selection takes the finding. comment: see `comment_of`.
    """

    packet: int
    stream: int
    rule: str
    peer: str
    certain: bool
    wanted: bool
    comment: str


def number_of(connection: Connection) -> int:
    """The number of a connection in a survey. Several on the same ports may have the same `stream`."""
    return connection.instance << 32 | connection.stream


def stream_of(number: int) -> int:
    """The `stream` of the connection that has this number in a survey."""
    return number & 0xFFFFFFFF


def comment_of(finding: Finding) -> str:
    """What a comment on the packet of a finding says."""
    return f"{kind(finding)} {finding.rule} by the {finding.peer}: {message_of(finding)}"


class CutSurvey:
    """One capture, read once.

    streams, times, taken, lasting, edges have an entry for each packet, counted from 1: the number of its
    connection, or one of the numbers above; its time in nanoseconds since 1970; whether it has octets of a
    frame that the selection takes; whether it has octets of a frame that later frames depend on. edges:
    whether it has SYN, FIN or RST.

    selection: what somebody wants. connections: those that are known, by number; wanted: the
    numbers of those that the selection takes. syns: each packet with a SYN on the ports of another
    connection, and the key of its direction. left_out: findings for which there was no room.
    """

    def __init__(self, capture: Capture, selection: FrameSelection = EVERYTHING) -> None:
        self.streams = array("q", [NO_CONNECTION])
        self.times = array("q", [0])
        self.taken = bytearray(1)
        self.lasting = bytearray(1)
        self.edges = bytearray(1)
        self.connections: dict[int, Connection] = {}
        self.wanted: set[int] = set()
        self.findings: list[KnownFinding] = []
        self.syns: list[tuple[int, bytes]] = []
        self.left_out = 0
        self._capture = capture
        self.selection = selection
        self._names = LinkNames()

    @property
    def packets(self) -> int:
        """How many packets there are."""
        return len(self.streams) - 1

    def read(
        self,
        take: Callable[[FrameRecord], None] | None = None,
        over: Callable[[ConnectionAnalysis], None] | None = None,
    ) -> None:
        """Read the capture to its end. take: is given each frame; over: each connection that is over.

        Raises CaptureError.
        """
        capture = self._capture
        selection = self.selection
        selection.restart()
        taps: list[_Tap] = []

        def tapped(table: ConnectionTable) -> PacketDecoder:
            taps.append(_Tap(table, self))
            return taps[0].decoder

        capture.tap(tapped)
        started = False
        for records in capture.blocks():
            if records and not started:
                started = True
                selection.start(int(records[0].time))
            for record in records:
                self._frame(record)
                if take is not None:
                    take(record)
            self._found(capture.take_findings())
            for analysis in capture.take_ended():
                connection = analysis.connection
                self._names.forget(connection)
                self._know(connection)
                if over is not None:
                    over(analysis)
        self._found(capture.take_findings())
        taps[0].settle_fragment()
        for flags in (self.taken, self.lasting):
            flags.extend(bytes(len(self.streams) - len(flags)))

    def add(self, packet: int, time: int) -> None:
        """The next packet, or one behind some that could not be read. Raises CaptureError for too many."""
        if packet > MAX_CUT_PACKETS:
            raise CaptureError(f"{self._capture.name}: more than {MAX_CUT_PACKETS} packets, too many to cut")
        while len(self.streams) <= packet:
            self.streams.append(NO_CONNECTION)
            self.times.append(time)
            self.edges.append(0)

    def _know(self, connection: Connection) -> None:
        number = number_of(connection)
        if number in self.connections or len(self.connections) >= MAX_CUT_PACKETS // 10:
            return
        self.connections[number] = connection
        if self.selection.of_connection(connection):
            self.wanted.add(number)

    def _frame(self, record: FrameRecord) -> None:
        connection = record.connection
        if number_of(connection) not in self.connections:
            self._know(connection)
        selection = self.selection
        link = self._names.of(record) if selection.links else None
        first, last = int(record.packet), int(record.last_packet)
        if selection.takes(record, link):
            _mark(self.taken, first, last)
        protocol = PROTOCOLS.get(connection.protocol)
        if protocol is None or record.frame.name not in protocol.passing:
            _mark(self.lasting, first, last)

    def _found(self, findings: list[Finding]) -> None:
        for finding in findings:
            if len(self.findings) >= MAX_ANNOTATED:
                self.left_out += 1
                continue
            known = KnownFinding(
                int(finding.packet),
                number_of(finding.connection),
                finding.rule,
                finding.peer,
                finding.certain,
                self.selection.takes_finding(finding),
                comment_of(finding),
            )
            self.findings.append(known)


def _mark(flags: bytearray, first: int, last: int) -> None:
    """Set the entries from `first` to `last`."""
    if len(flags) <= last:
        flags.extend(bytes(last + 1 - len(flags)))
    flags[first : last + 1] = b"\1" * (last + 1 - first)


class _Tap(SegmentSink):
    """Hands segments on to the table, and tells the survey to which connection each packet belongs."""

    def __init__(self, table: ConnectionTable, survey: CutSurvey) -> None:
        super().__init__()
        self.decoder = PacketDecoder(self)
        self.decoder.recorder = _Packets(self, survey)
        self._table = table
        self._survey = survey
        self._fragments = 0

    def segment(self, segment: Segment) -> None:
        table = self._table
        key = segment.key
        before = table.analysis_of(key)
        table.segment(segment)
        after = table.analysis_of(key)
        if after is None:
            return
        packet = int(segment.packet)
        flags = int(segment.flags)
        self._survey.streams[packet] = number_of(after.connection)
        self._survey.edges[packet] = flags & _EDGES != 0
        if after is before and flags & (_SYN | _ACK) == _SYN:
            self._survey.syns.append((packet, key))

    def settle_fragment(self) -> None:
        """The packet before was walked: remember whether it was a fragment and nothing else."""
        fragments = int(self.decoder.fragments)
        if fragments != self._fragments:
            self._fragments = fragments
            if self._survey.streams[-1] == NO_CONNECTION:
                self._survey.streams[-1] = FRAGMENT

    def note(self, code: str, packet: int, time: int, detail: str) -> None:
        self._table.note(code, packet, time, detail)

    def secrets(self, octets: bytes) -> None:
        self._table.secrets(octets)

    def dropped(self, packet: int, time: int, count: int) -> None:
        self._table.dropped(packet, time, count)


class _Packets(PacketRecorder):
    """Tells the survey of each packet before it is walked."""

    def __init__(self, tap: _Tap, survey: CutSurvey) -> None:
        self._tap = tap
        self._survey = survey

    def packet(self, packet: Packet) -> None:
        self._tap.settle_fragment()
        self._survey.add(int(packet.number), int(packet.time))
