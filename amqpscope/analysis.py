"""The whole analysis of one TCP connection, from segments to frames. Sans-IO; time is an argument.

This is the one place that knows the order of the layers:

    segment -> reassembly -> (transport) -> detection -> dissector -> frames with their evidence

`ConnectionAnalysis` is fed with the connection's segments in the order of the capture and appends a
`FrameRecord` for every frame to `out`. A direction whose start was captured is told by its first
octets; one that was joined in the middle is searched for a frame while nothing else is known. As
soon as one direction is AMQP 1.0, so is what the other one says, unless it says otherwise itself.

`dump()` gives the whole state between two calls as plain values, `load()` goes on from it: compiled
objects do not pickle, and a connection may be continued in another process.
"""

from amqpscope.evidence import Evidence
from amqpscope.limits import MAX_UNDECIDED
from amqpscope.model import Connection, FrameRecord
from amqpscope.reassembly.client import client_direction
from amqpscope.reassembly.connection import TcpConnection
from amqpscope.reassembly.stream import StreamSink
from amqpscope.transport.interface import PlainStream
from dissectors.amqp10.delivery import MessageAssembler
from dissectors.amqp10.frame import FrameDecoder
from dissectors.detect import MORE, UNKNOWN, detect
from dissectors.interface import Dissector, Frame
from dissectors.limits import DETECT_OCTETS
from dissectors.wire import i64

__all__ = ["ConnectionAnalysis", "Note"]

_DUMP_VERSION = 1

# Protocols whose first eight octets are AMQP's header, and which are not decoded further.
_HEADER_ONLY = ("amqp091", "amqp010", "amqp09", "amqp08", "amqp-unknown")

# Who sends what in SASL (security.xml, section "sasl"): tells the client when no SYN was captured.
_CLIENT_SAYS = ("sasl-init", "sasl-response")
_SERVER_SAYS = ("sasl-mechanisms", "sasl-challenge", "sasl-outcome")


class Note:
    """Something wrong with the capture itself: it accuses no peer.

    code: `capture/...`. packet: the one that showed it, 0 for the file as a whole. detail: for a
    person, never octets of the wire. connection: the one concerned, or None.
    """

    def __init__(self, code: str, packet: i64, time: i64, detail: str, connection: Connection | None) -> None:
        self.code: str = code
        self.packet: i64 = packet
        self.time: i64 = time
        self.detail: str = detail
        self.connection: Connection | None = connection


class _Side(PlainStream):
    """One direction: which protocol it speaks, its dissector, and the evidence for octets under way."""

    def __init__(self, analysis: "ConnectionAnalysis", direction: i64) -> None:
        self.analysis: ConnectionAnalysis = analysis
        self.direction: i64 = direction
        self.protocol: str = MORE
        self.decoder: Dissector | None = None
        self.evidence: Evidence = Evidence()
        self.assembler: MessageAssembler | None = MessageAssembler() if analysis.messages else None
        # While undecided: what came so far (its start captured), or the search for a frame (not).
        self.started: bool = False
        self.whole: bool = False
        self.held: list[bytes] = []
        self.held_octets: i64 = 0
        self.origin: i64 = 0
        self.probe: FrameDecoder | None = None
        self.searched: i64 = 0
        self.ended: str = ""

    # From reassembly

    def data(
        self, offset: i64, buf: bytes, start: i64, end: i64, packet: i64, time: i64, acknowledged: i64
    ) -> None:
        decoder = self.decoder
        if decoder is None:
            if self.protocol == MORE or self.protocol == UNKNOWN:
                self.undecided(offset, buf, start, end, packet, time, acknowledged)
            return
        evidence = self.evidence
        if decoder.offset == offset:
            # Nothing is under way: all frames that come of this begin and end in this packet.
            if len(evidence.offsets) > 0:
                evidence.clear()
            decoder.feed(buf, start, end)
            frames = decoder.frames
            if frames:
                decoder.frames = []
                for frame in frames:
                    self.give(frame, packet, time, packet, time, acknowledged)
            if decoder.offset < offset + (end - start):
                evidence.add(offset, packet, time, acknowledged)
            return
        evidence.add(offset, packet, time, acknowledged)
        decoder.feed(buf, start, end)
        self.collect(decoder)

    def gap(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        decoder = self.decoder
        if decoder is None:
            if self.protocol == MORE or self.protocol == UNKNOWN:
                self.undecided_gap(offset, size, packet, time)
            return
        self.evidence.add(offset, packet, time, -1)
        decoder.gap(size)
        self.collect(decoder)

    def finish(self, reason: str) -> None:
        if self.ended:
            return
        self.ended = reason
        decoder = self.decoder
        if decoder is not None:
            decoder.end(reason)
            self.collect(decoder)

    # Frames

    def collect(self, decoder: Dissector) -> None:
        """Give out what the decoder has, with the evidence of each frame's octets."""
        evidence = self.evidence
        frames = decoder.frames
        if frames:
            decoder.frames = []
            for frame in frames:
                first = evidence.find(frame.offset)
                last = evidence.find(frame.offset + frame.size - 1)
                self.give(
                    frame,
                    evidence.packets[first],
                    evidence.times[first],
                    evidence.packets[last],
                    evidence.times[last],
                    evidence.acknowledged[first],
                )
        evidence.forget(decoder.offset)
        if isinstance(decoder, FrameDecoder) and (decoder.lost or decoder.opaque):
            evidence.thin(decoder.offset + decoder.skipped)

    def give(
        self, frame: Frame, packet: i64, time: i64, last_packet: i64, last_time: i64, acknowledged: i64
    ) -> None:
        analysis = self.analysis
        connection = analysis.connection
        if connection.client < 0:
            analysis.settle_client(self.direction, frame)
        connection.frames += 1
        if frame.kind == "skipped" and frame.name == "tls":
            connection.encrypted = True
        record = FrameRecord(
            connection, self.direction, packet, time, last_packet, last_time, acknowledged, frame
        )
        assembler = self.assembler
        if assembler is not None:
            record.message = assembler.take(frame)
        analysis.out.append(record)

    # Detection

    def begin(self, offset: i64) -> None:
        """The first octets of this direction, or the first that are missing."""
        self.started = True
        self.origin = offset
        self.whole = offset == 0 and not self.analysis.tcp.facts(self.direction).midstream

    def undecided(
        self, offset: i64, buf: bytes, start: i64, end: i64, packet: i64, time: i64, acknowledged: i64
    ) -> None:
        """Octets of a direction whose protocol is not known yet."""
        if not self.started:
            self.begin(offset)
        self.evidence.add(offset, packet, time, acknowledged)
        if not self.whole:
            self.search(buf, start, end)
            return
        if self.held_octets > MAX_UNDECIDED:
            return
        self.held.append(buf[start:end])
        self.held_octets += end - start
        if self.protocol == UNKNOWN:
            return
        if len(self.held) > 1:
            self.held = [b"".join(self.held)]
        self.decide(detect(self.held[0], True))
        if self.protocol == MORE and self.held_octets > MAX_UNDECIDED:
            self.decide(UNKNOWN)

    def undecided_gap(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        """Octets missing while undecided: what follows is like a start in the middle."""
        if not self.started:
            self.begin(offset)
        self.evidence.add(offset, packet, time, -1)
        self.whole = False
        probe = self.prober()
        for octets in self.held:
            probe.feed(octets, 0, len(octets))
        self.held = []
        probe.gap(size)

    def prober(self) -> FrameDecoder:
        """The decoder that searches for a frame while the protocol is unknown."""
        if self.probe is None:
            self.probe = FrameDecoder(True)
            self.probe.offset = self.origin
        return self.probe

    def search(self, buf: bytes, start: i64, end: i64) -> None:
        """Look for a frame in the middle of a stream."""
        probe = self.prober()
        probe.feed(buf, start, end)
        self.searched += end - start
        for frame in probe.frames:
            if frame.kind != "skipped":
                self.decide("amqp10")
                return
        if self.searched <= MAX_UNDECIDED:
            self.decide(detect(buf[start:end], False))
        elif self.searched > DETECT_OCTETS:
            self.decide(UNKNOWN)
        if self.probe is not None:
            self.evidence.thin(probe.offset + probe.skipped)

    def decide(self, protocol: str) -> None:
        """The octets say which protocol this is."""
        if protocol == MORE or protocol == self.protocol:
            return
        self.protocol = protocol
        if protocol == "amqp10":
            self.decode()
        elif protocol != UNKNOWN:
            if protocol in _HEADER_ONLY and self.whole:
                self.give_header()
            self.held = []
            self.probe = None
            self.evidence.clear()
        self.analysis.decided(self.direction, protocol)

    def decode(self) -> None:
        """This direction is AMQP 1.0: decode it from where it began."""
        if self.decoder is not None:
            return
        self.protocol = "amqp10"
        if self.probe is not None:
            decoder = self.probe
            self.probe = None
        else:
            if not self.started:
                # Nothing has come yet: its start will, if reassembly knows where that is.
                facts = self.analysis.tcp.facts(self.direction)
                self.whole = not facts.midstream and (facts.syn or self.analysis.tcp.opener() >= 0)
            decoder = FrameDecoder(not self.whole)
            decoder.offset = self.origin
            for octets in self.held:
                decoder.feed(octets, 0, len(octets))
            self.held = []
        self.decoder = decoder
        self.collect(decoder)

    def give_header(self) -> None:
        """A protocol header of a version that is not decoded."""
        decoder = FrameDecoder(False)
        decoder.feed(self.held[0], 0, 8)
        self.collect(decoder)

    # Between processes

    def dump(self) -> tuple[object, ...]:
        decoder = self.decoder
        return (
            self.protocol,
            None if decoder is None else decoder.dump(),
            self.evidence.dump(),
            None if self.assembler is None else self.assembler.dump(),
            self.started,
            self.whole,
            b"".join(self.held),
            self.held_octets,
            self.origin,
            None if self.probe is None else self.probe.dump(),
            self.searched,
            self.ended,
        )

    def restore(self, state: tuple[object, ...]) -> None:
        protocol, decoder, evidence, assembler, started, whole, held, octets, origin, probe, searched, ended = state
        assert isinstance(evidence, tuple) and isinstance(held, bytes)
        assert isinstance(octets, int) and isinstance(origin, int) and isinstance(searched, int)
        self.protocol = str(protocol)
        self.decoder = FrameDecoder.load(decoder) if isinstance(decoder, tuple) else None
        self.evidence = Evidence.load(evidence)
        self.assembler = MessageAssembler.load(assembler) if isinstance(assembler, tuple) else None
        self.started = bool(started)
        self.whole = bool(whole)
        self.held = [held] if held else []
        self.held_octets = octets
        self.origin = origin
        self.probe = FrameDecoder.load(probe) if isinstance(probe, tuple) else None
        self.searched = searched
        self.ended = str(ended)


class ConnectionAnalysis(StreamSink):
    """One TCP connection. Feed it with `segment`, end it with `finish`, take the records from `out`.

    out: where frame records are appended; may be shared by all connections of a capture.
    notes: where notes about the capture are appended. messages: put messages together.
    """

    def __init__(
        self, connection: Connection, out: list[FrameRecord], notes: list[Note], messages: bool
    ) -> None:
        self.connection: Connection = connection
        self.out: list[FrameRecord] = out
        self.notes: list[Note] = notes
        self.messages: bool = messages
        # Neither direction speaks anything that is analysed: segments are only counted.
        self.ignored: bool = False
        self.tcp: TcpConnection = TcpConnection(self)
        self.first: _Side = _Side(self, 0)
        self.second: _Side = _Side(self, 1)
        # What reassembly feeds; a layer like TLS would be set in front of a side here.
        self.first_entry: PlainStream = self.first
        self.second_entry: PlainStream = self.second

    def segment(
        self,
        direction: i64,
        time: i64,
        packet: i64,
        seq: i64,
        ack: i64,
        flags: i64,
        buf: bytes,
        start: i64,
        end: i64,
        cut: i64,
    ) -> None:
        """One segment in capture order; see `TcpConnection.segment`."""
        self.tcp.segment(direction, time, packet, seq, ack, flags, buf, start, end, cut)

    def finish(self, reason: str) -> None:
        """No more segments will come: `capture` (it ended), `evicted`, `reused` (its ports were)."""
        self.tcp.finish()
        self.first_entry.finish(reason)
        self.second_entry.finish(reason)

    # From reassembly

    def data(
        self,
        direction: i64,
        offset: i64,
        buf: bytes,
        start: i64,
        end: i64,
        packet: i64,
        time: i64,
        ack: i64,
    ) -> None:
        if self.ignored:
            return
        entry = self.first_entry if direction == 0 else self.second_entry
        entry.data(offset, buf, start, end, packet, time, ack)

    def gap(self, direction: i64, offset: i64, size: i64, packet: i64, time: i64) -> None:
        if self.ignored:
            return
        entry = self.first_entry if direction == 0 else self.second_entry
        entry.gap(offset, size, packet, time)
        if self.connection.protocol.startswith("amqp"):
            self.notes.append(
                Note(
                    "capture/gap",
                    packet,
                    time,
                    f"{size} octets sent by the {self.connection.peer(direction)} were not captured",
                    self.connection,
                )
            )

    def end(self, direction: i64, reason: str, packet: i64, time: i64) -> None:
        if direction == 0:
            self.first_entry.finish(reason)
        else:
            self.second_entry.finish(reason)

    def note(self, direction: i64, code: str, packet: i64, time: i64, detail: str) -> None:
        self.notes.append(Note(code, packet, time, detail, self.connection))

    # What is known of the connection

    def decided(self, direction: i64, protocol: str) -> None:
        """A direction's protocol became known."""
        own = self.first if direction == 0 else self.second
        other = self.second if direction == 0 else self.first
        connection = self.connection
        if protocol == "tls":
            connection.encrypted = True
        if connection.protocol in ("", UNKNOWN) or not connection.protocol.startswith("amqp"):
            if protocol != UNKNOWN or connection.protocol == "":
                connection.protocol = protocol
        if own.protocol == "amqp10":
            if other.protocol == MORE or other.protocol == UNKNOWN:
                other.decode()
        elif other.protocol == "amqp10":
            if own.protocol == UNKNOWN:
                own.decode()
        elif own.protocol not in _HEADER_ONLY and other.protocol not in _HEADER_ONLY and other.protocol != MORE:
            self.ignored = True
            own.held = []
            other.held = []
            own.evidence.clear()
            other.evidence.clear()

    def settle_client(self, direction: i64, frame: Frame) -> None:
        """Say which direction is the client's, with its first frame as the last evidence there is."""
        hint: i64 = -1
        if frame.name in _CLIENT_SAYS:
            hint = direction
        elif frame.name in _SERVER_SAYS:
            hint = 1 - direction
        connection = self.connection
        connection.client = client_direction(
            self.tcp.opener(), hint, connection.end(0)[1], connection.end(1)[1]
        )

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """The state between two calls as plain values. `out` and `notes` are the caller's and not in it."""
        connection = self.connection
        about = (
            connection.capture,
            connection.stream,
            connection.instance,
            connection.key,
            connection.client,
            connection.protocol,
            connection.encrypted,
            connection.frames,
        )
        return (
            _DUMP_VERSION,
            about,
            self.messages,
            self.ignored,
            self.tcp.dump(),
            self.first.dump(),
            self.second.dump(),
        )

    @staticmethod
    def load(state: tuple[object, ...], out: list[FrameRecord], notes: list[Note]) -> "ConnectionAnalysis":
        """An analysis that goes on where `dump` left off. Raises ValueError on another version's state."""
        if not state or state[0] != _DUMP_VERSION:
            raise ValueError(f"state of a connection in version {state[:1]}, not {_DUMP_VERSION}")
        _, about, messages, ignored, tcp, first, second = state
        assert isinstance(about, tuple) and isinstance(tcp, tuple)
        assert isinstance(first, tuple) and isinstance(second, tuple)
        capture, stream, instance, key, client, protocol, encrypted, frames = about
        connection = Connection(capture, stream, instance, key)
        connection.client = client
        connection.protocol = protocol
        connection.encrypted = encrypted
        connection.frames = frames
        analysis = ConnectionAnalysis(connection, out, notes, bool(messages))
        analysis.ignored = bool(ignored)
        analysis.tcp = TcpConnection.load(tcp, analysis)
        analysis.first.restore(first)
        analysis.second.restore(second)
        return analysis
