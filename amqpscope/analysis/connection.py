"""The whole analysis of one TCP connection, from segments to frames. Sans-IO; time is an argument.

This is the one place that knows the order of the layers:

    segment -> reassembly -> (transport) -> side: detection -> dissector -> frames with their evidence
        -> (judge: endpoint states, rules -> findings)

`ConnectionAnalysis` is fed with the connection's segments in the order of the capture and gives its
`AnalysisOutput` a `FrameRecord` for every frame; if it is to judge, also a `Finding` for every rule broken.

**Which protocol.** Each direction is identified by its octets (`detection`). As soon as one speaks a
protocol that is decoded, that is the connection's, and the other one is expected to speak it, too, unless its
own octets say otherwise: what it says in another protocol, and octets that nothing is known to begin like,
become skipped frames. When both rest the connection is ignored. Which rules it is judged by is settled with
its protocol; a header of a version that is not decoded waits until then.

**What stands between.** A load balancer may put a PROXY header before the client's octets; other layers may
carry AMQP. The `LayerStack` recognises and reads them. Most connections have none.

**Who is the client.** The sender of SYN. If that was not captured some frames tell (SASL, most methods of
0-9-1), so the records of those that do not wait until one has come that does, or settles that none will
(`settle_client`).

`dump()` gives the whole state between two calls as plain values, `load()` goes on from it: compiled
objects do not pickle, and a connection may be continued in another process.
"""

from typing import Final

from amqpscope.analysis.dialects import (
    AMBIGUOUS,
    note_revision,
    note_unknown_dialect,
    spoken_dialect,
    weigh_mixture,
)
from amqpscope.analysis.direction import DirectionAnalysis, FrameSink
from amqpscope.analysis.layering import beginning_stack, headless_stack, joined_stack, note_sealed
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.layers.interface import LayerContext, PlainStream
from amqpscope.layers.stack import LayerStack, begins_in_the_middle
from amqpscope.limits import INTRODUCTION_FRAMES, MAX_LAYER_OPENING, MAX_UNDECIDED, MAX_WAITING_RECORDS
from amqpscope.model.note import ConnectionNotes
from amqpscope.model.records import Connection, FrameRecord, FrameWatch, endpoint
from amqpscope.protocols import PROTOCOLS, is_amqp, protocol_of
from amqpscope.reassembly.client import client_direction
from amqpscope.reassembly.connection import TcpConnection
from amqpscope.reassembly.provenance import Provenance
from amqpscope.reassembly.sequence import NOWHERE_NEAR
from amqpscope.rules.judge import Judge
from amqpscope.tracking.summary import ConnectionSummary, load_summary
from dissectors.detect import UNKNOWN, UNKNOWN_DIALECT
from dissectors.interface import Assembler, Frame
from dissectors.limits import RESYNC_WINDOW
from dissectors.wire import i64
from dissectors.wording import count, were

__all__ = ["ConnectionAnalysis"]

_DUMP_VERSION: Final = 39


class ConnectionAnalysis(FrameSink):
    """One TCP connection. Feed it by `tcp.segment`, end it with `finish`.

    output: what is wanted of it, and where that is gathered; shared by all connections of a capture.
    """

    def __init__(self, connection: Connection, output: AnalysisOutput) -> None:
        # Who its ends are, and what it speaks.
        self.connection: Connection = connection
        # What is wanted, and where it is gathered.
        self.output: AnalysisOutput = output
        # Notes about the capture of this connection.
        self.notes: ConnectionNotes = ConnectionNotes(connection, output.notes)
        # Comes with the first frame: most connections of a scan, or of a flood, have none.
        self.judge: Judge | None = None
        # What takes each record, None for nothing, and until the first frame is given out. It is not dumped.
        self.watch: FrameWatch | None = None
        # Its protocol is one that is decoded, and the dialect is known, if there are several.
        self.named: bool = False
        # So is the dialect of both sides, as far as these have said anything: nothing has to wait for that.
        self.settled: bool = False
        # Both streams are over and judged.
        self.concluded: bool = False
        # What it left to connections after it.
        self.left: ConnectionSummary | None = None
        # Neither direction speaks anything that is analysed: segments are only counted.
        self.ignored: bool = False
        # The table does not keep it.
        self.forgotten: bool = False
        # How many connections of its table began before it. The table's, too.
        self.order: i64 = 0
        # Which directions have sent FIN (1 and 2), both for RST. The table's; see there.
        self.closing: i64 = 0
        # Records that wait until it is known who the client is, and in which dialects the two speak.
        self.waiting: list[FrameRecord] = []
        # Of each direction, the offset of the RST that its receiver may have taken, -1: of none.
        self.doubts: tuple[int, int] | None = None
        # Puts its segments in order.
        self.tcp: TcpConnection = TcpConnection(self)
        connection.stalls = (self.tcp.stream(0).stalls, self.tcp.stream(1).stalls)
        # Decodes what is sent in direction 0.
        self.first: DirectionAnalysis = DirectionAnalysis(self, self.tcp.stream(0))
        # Decodes what is sent in direction 1.
        self.second: DirectionAnalysis = DirectionAnalysis(self, self.tcp.stream(1))
        # What stands between TCP and the two, None for nothing.
        self.stack: LayerStack | None = None
        # The capture begins in the middle, and in each segment a layer may show itself.
        self.joins: bool = False

    def finish(self, reason: str) -> None:
        """No more segments will come: `capture` (it ended), `evicted`, `reused` (its ports were)."""
        self.tcp.finish()
        if self.connection.failed:
            self.tcp.release()
            return
        if self.tcp.stream(0).ended == "rst" or self.tcp.stream(1).ended == "rst":
            reason = "rst"  # ends the other direction too
        self.entry(0).finish(reason)
        self.entry(1).finish(reason)
        connection = self.connection
        if not self.settled:
            self.settle_dialects(True)
        if connection.client < 0:
            self.set_client(-1)
        self.give_waiting(True)
        self.conclude()
        if connection.protocol == "" and (
            self.first.detection.looked_at() or self.second.detection.looked_at()
        ):
            connection.protocol = UNKNOWN
        if connection.protocol == "tls":
            note_sealed(connection, self.tcp, self.output.secrets, self.notes)
        self.notes.finish()
        self.first.release()
        self.second.release()
        # Nothing comes any more. What is let go of goes at once then, not when garbage is looked for.
        self.tcp.release()
        if self.stack is not None:
            self.stack.release()
            self.stack = None
        self.first.sink = _NOBODY
        self.second.sink = _NOBODY

    def give_up(self) -> None:
        """An error of this program came up in here: nothing more is read of the connection.

        What was found so far stands. Segments are still taken, for the connection's end has to be known.
        """
        self.ignored = True
        self.concluded = True
        self.left = None
        self.waiting = []
        judge = self.judge
        self.judge = None
        findings = self.output.findings
        if judge is not None and findings is not None:
            findings += judge.made
        for side in (self.first, self.second):
            side.release()
            side.ended = "failed"
            side.sink = _NOBODY
        self.notes.finish()

    def skip(self) -> None:
        """Another process analyses this connection: only its TCP is followed here."""
        self.judge = None
        # Whoever analyses it makes the notes about it, too.
        self.connection.protocol = ""
        self.give_up()
        self.connection.failed = True

    # From reassembly

    def data(
        self, direction: i64, offset: i64, buf: bytes, start: i64, end: i64, provenance: Provenance
    ) -> None:
        if self.ignored:
            return
        if (offset == 0 or self.joins) and self.stack is None:
            self.look_for_layer(direction, offset, buf, start, end)
        stack = self.stack
        if stack is not None:
            stack.entry(direction).data(offset, buf, start, end, provenance)
            if stack.context.faults.waiting:
                self.judge_layers(stack, False)
        elif direction == 0:
            self.first.data(offset, buf, start, end, provenance)
        else:
            self.second.data(offset, buf, start, end, provenance)

    def gap(self, direction: i64, offset: i64, size: i64, packet: i64, time: i64) -> None:
        if self.ignored:
            return
        if offset == 0 and self.stack is None:
            self.stack = headless_stack(self.layer_context(), self.tcp, self.first, self.second, direction)
        self.entry(direction).gap(offset, size, packet, time)
        sender = endpoint(*self.connection.end(direction))
        missing = f"{count(size, 'octet')} sent by {sender} {were(size)} not captured"
        self.note(direction, "capture/gap", packet, time, missing)

    def entry(self, direction: i64) -> PlainStream:
        """What takes a direction's octets from TCP now."""
        if self.stack is not None:
            return self.stack.entry(direction)
        return self.first if direction == 0 else self.second

    def judge_layers(self, stack: LayerStack, over: bool) -> None:
        """Report the faults of layers, once it is known that these carry AMQP.

        over: no frame comes any more that could show it; what the client asked for decides.
        """
        websocket = self.connection.websocket
        if not self.spoken() and not (over and websocket is not None and websocket.for_amqp()):
            return
        faults = stack.context.faults.take()
        findings = self.output.findings
        if findings is None or self.concluded or websocket is None or self.tcp.opener() != websocket.client:
            return
        from amqpscope.rules.ws.judge import judge_faults

        found = judge_faults(self.connection, faults, self.doubts is not None)
        fresh = self.output.fresh
        if fresh is not None:
            for finding in found:
                finding.reported = True
            fresh += found
        findings += found

    def look_for_layer(self, direction: i64, offset: i64, buf: bytes, start: i64, end: i64) -> None:
        """If a layer may begin with the first octets of a direction, have it chosen; or, where the capture
        begins in the middle, if a segment may be of one.
        """
        octets = buf[start : min(end, start + MAX_LAYER_OPENING)]
        context = self.layer_context()
        if offset == 0:
            self.stack = beginning_stack(context, self.tcp, self.first, self.second, direction, octets)
        if self.stack is None:
            midstream = self.tcp.stream(direction).start.midstream
            self.joins = (midstream or self.joins) and offset < MAX_UNDECIDED and not self.spoken()
            if self.joins and midstream and begins_in_the_middle(octets, context.secrets):
                self.stack = joined_stack(context, self.tcp, self.first, self.second, direction, offset)

    def layer_context(self) -> LayerContext:
        return LayerContext(self.notes, self.output.secrets)

    def heard(self, direction: i64, acknowledged: i64) -> i64:
        """An acknowledgement sent in a direction, in octets of what the other direction's layers carry."""
        if self.stack is None:
            return acknowledged
        return self.stack.inner(1 - direction, acknowledged)

    def end(self, direction: i64, reason: str, packet: i64, time: i64) -> None:
        side = self.first if direction == 0 else self.second
        side.end_packet = packet
        side.end_time = time
        self.entry(direction).finish(reason)
        if self.connection.client >= 0 and self.tcp.stream(1 - direction).ended:
            self.conclude()

    def conclude(self) -> None:
        """Both streams are over: judge how they ended, and let go of all but what is left to others."""
        if self.concluded:
            return
        if not self.settled:
            self.settle_dialects(True)
        if self.stack is not None and self.stack.context.faults.waiting:
            self.judge_layers(self.stack, True)
        self.concluded = True
        self.first.release()
        self.second.release()
        judge = self.judge
        if judge is None:
            return
        client = self.connection.client
        if self.doubts is not None:
            first = self.heard(1, self.tcp.stream(0).acked)
            second = self.heard(0, self.tcp.stream(1).acked)
            judge.doubt(self.settle_doubts(first, second))
        for direction in (client, 1 - client):
            stream = self.tcp.stream(direction)
            side = self.first if direction == 0 else self.second
            packet: i64 = side.end_packet
            time: i64 = side.end_time
            reason = stream.ended
            if not reason:
                reason = "capture"
                packet = stream.packet
                time = stream.time
            judge.end(
                direction,
                reason,
                packet,
                time,
                self.heard(direction, self.tcp.end_acknowledged(direction)),
                self.tcp.ended_after(direction),
            )
        judge.finish()
        self.left = judge.left()
        self.judge = None

    def doubt(self, direction: i64, offset: i64) -> None:
        if offset != NOWHERE_NEAR:
            offset = self.heard(1 - direction, offset)
        first, second = (-1, -1) if self.doubts is None else self.doubts
        if direction == 0:
            self.doubts = (max(int(offset), first), second)
        else:
            self.doubts = (first, max(int(offset), second))

    def doubt_all(self) -> None:
        """Which of the octets that come are this connection's is not known from here on."""
        self.doubts = (NOWHERE_NEAR, NOWHERE_NEAR)

    def settle_doubts(self, first: i64, second: i64) -> bool:
        """So many octets of each stream are acknowledged: whether a peer may still have taken an RST."""
        in_first, in_second = (-1, -1) if self.doubts is None else self.doubts
        if first > in_first:
            in_first = -1
        if second > in_second:
            in_second = -1
        self.doubts = None if in_first < 0 and in_second < 0 else (in_first, in_second)
        return self.doubts is not None

    def note(self, direction: i64, code: str, packet: i64, time: i64, detail: str) -> None:
        self.notes.add(code, packet, time, detail)

    # From the sides

    def frame(self, direction: i64, frame: Frame, first: Provenance, last: Provenance) -> None:
        connection = self.connection
        connection.frames += 1
        if connection.frames == 1:
            connection.began = first.time
        if frame.kind == "skipped" and frame.name == "tls":
            connection.encrypted = True
        counter = self.output.counter
        if counter is not None and self.named and connection.client >= 0:
            counter.count(frame, direction == connection.client)
            return
        if connection.retold:
            from amqpscope.analysis.unlogged import settle_unlogged  # only logs need it

            settle_unlogged(frame)
        own = self.first if direction == 0 else self.second
        other = self.second if direction == 0 else self.first
        record = FrameRecord(connection, direction, first, last, frame)
        if self.stack is not None:
            record.acknowledged = self.heard(direction, record.acknowledged)
        record.started = own.detection.whole
        record.unseen = other.unclear(record.acknowledged)
        decoder = own.decoder
        if decoder is not None:
            if decoder.wants_frames:
                self.observe(frame)
            if decoder.suspect:
                self.settled = False
        if not self.settled:
            self.settle_dialects(not self.may_wait() or frame.size > RESYNC_WINDOW)
            if self.settled and decoder is not None:
                # What has decided may show how this frame is to be read, too.
                record.frame = decoder.decode_again(frame)
        if connection.client < 0 and not self.settle_client(direction, frame):
            self.wait(record)
        elif not self.settled and self.may_wait():
            self.wait(record)
        else:
            self.assemble(own, record)
            self.give(record)

    def assemble(self, side: DirectionAnalysis, record: FrameRecord) -> None:
        """Put a side's next frame to its messages."""
        frame = record.frame
        dialect = frame.dialect
        if dialect is not side.dialect and dialect and dialect != side.dialect:
            side.assemble(self.spoken(), dialect)
        assembler = side.assembler
        if assembler is not None:
            record.message = assembler.take(frame)

    def dialect(self) -> str:
        return self.output.dialect

    def observe(self, frame: Frame) -> None:
        """A frame may tell both decoders how to go on."""
        for side in (self.first, self.second):
            decoder = side.decoder
            if decoder is not None:
                decoder.observe(frame)

    def assembler(self, protocol: str) -> Assembler | None:
        output = self.output
        return PROTOCOLS[protocol].assembler(output.records is not None) if output.messages else None

    def spoken(self) -> str:
        protocol = PROTOCOLS.get(self.connection.protocol)
        return "" if protocol is None else protocol.usual or protocol.name

    def name(self, direction: i64, protocol: str) -> None:
        connection = self.connection
        if not self.named and not self.spoken():
            connection.protocol = protocol
            if protocol not in AMBIGUOUS:
                self.named = True
                self.settled = True
                if connection.client >= 0:
                    self.give_waiting(False)
        # What the other side has said comes before the frames of this one.
        other = self.second if direction == 0 else self.first
        other.expect(protocol)

    def decided(self, direction: i64) -> None:
        own = self.first if direction == 0 else self.second
        protocol = own.detection.protocol
        connection = self.connection
        if protocol == "tls":
            connection.encrypted = True
        if not is_amqp(connection.protocol) and (protocol != UNKNOWN or connection.protocol == ""):
            connection.protocol = protocol
        self.notes.tell()

    def stopped_looking(self) -> None:
        # If both are not looked at, neither are their octets.
        if not (self.first.detection.resting and self.second.detection.resting) or self.spoken():
            return
        self.ignored = not is_amqp(self.connection.protocol)
        self.first.release()
        self.second.release()

    def spoken_by_both(self) -> str:
        """What the connection counts as: its protocol, or two, as `amqp091>http`, the client's first.

        Two where one of them speaks AMQP, and the other has said something in another protocol.
        """
        connection = self.connection
        if not self.first.is_foreign() and not self.second.is_foreign():
            return connection.protocol
        first, second = self.first, self.second
        if connection.client == 1:
            first, second = second, first
        return f"{first.protocol}>{second.protocol}"

    # Who the client is, and what waits for that

    def may_wait(self) -> bool:
        """Whether one more record may wait."""
        return len(self.waiting) < MAX_WAITING_RECORDS

    def settle_client(self, direction: i64, frame: Frame) -> bool:
        """Say which direction is the client's, if this frame tells or none that follows will."""
        hint: i64 = -1
        protocol = PROTOCOLS.get(self.connection.protocol)
        says: i64 = -1 if protocol is None else protocol.says_client(frame)
        if says >= 0:
            hint = direction if says > 0 else 1 - direction
        elif frame.kind == "header" or frame.kind == "skipped":
            if self.tcp.opener() < 0 and self.may_wait():
                return False
        self.set_client(hint)
        return True

    def set_client(self, hint: i64) -> None:
        """Choose the client by all there is; `hint` is the direction that speaks as one, or -1."""
        connection = self.connection
        connection.client = client_direction(self.tcp.opener(), hint, connection.port(0), connection.port(1))
        self.give_waiting(False)

    def wait(self, record: FrameRecord) -> None:
        """Keep a record until the client, the protocol and its dialect are known."""
        # A frame lies in the reader's buffer, which is not to be kept for a few octets.
        record.frame.detach()
        self.waiting.append(record)

    def give_waiting(self, at_last: bool) -> None:
        """The client is known, and the protocol; at_last: or will never be."""
        waiting = self.waiting
        if waiting and (at_last or self.settled):
            self.waiting = []
            for record in waiting:
                side = self.first if record.direction == 0 else self.second
                if side.decoder is not None:
                    record.frame = side.decoder.decode_again(record.frame)
                self.assemble(side, record)
                self.give(record)

    # Dialects

    def settle_dialects(self, at_last: bool) -> None:
        """See whether the dialects of both sides are known by now; at_last: nobody waits any longer."""
        spoken = self.spoken()
        if not spoken:
            return
        if not self.named:
            name = spoken_dialect(spoken, self.output.dialect, self.first, self.second, at_last)
            if not name:
                return
            self.connection.protocol = name
            self.named = True
            if name == UNKNOWN_DIALECT:
                note_unknown_dialect(self.notes)
        unknown = self.connection.protocol == UNKNOWN_DIALECT
        for side in (self.first, self.second):
            decoder = side.decoder
            if decoder is None:
                continue
            if decoder.suspect and not at_last:
                return
            if decoder.suspect or unknown:
                decoder.settle_dialect(unknown)
        self.settled = True
        if self.connection.client >= 0:
            self.give_waiting(False)

    def give(self, record: FrameRecord) -> None:
        """Give out the record of a frame, and have it judged."""
        output = self.output
        connection = self.connection
        if record.frame.dialect:
            if record.frame.problems:
                note_revision(self.notes, record)
            if not protocol_of(connection.protocol).dialect:
                weigh_mixture(record, self.second if record.direction == 0 else self.first)
        if connection.frames <= INTRODUCTION_FRAMES:
            name = protocol_of(connection.protocol).introduction(record.frame)
            if name is not None:
                connection.introduce(record.direction, record.packet, name)
        records = output.records
        if records is not None:
            records.append(record)
        watch = self.watch
        if watch is None and output.watch is not None:
            watch = self.watch = output.watch.of(connection)
        if watch is not None:
            watch.add(record)
        findings = output.findings
        if findings is not None and not self.concluded:
            judge = self.judge
            if judge is None:
                protocol = protocol_of(connection.protocol)
                judge = protocol.judge(connection, findings, output.contexts, output.allowance)
                judge.fresh = output.fresh
                judge.amended = output.amended
                judge.believe_log()
                self.judge = judge
            if self.doubts is not None:
                known = record.acknowledged
                by_first = record.direction == 0
                judge.doubt(self.settle_doubts(-1 if by_first else known, known if by_first else -1))
            judge.take(record)

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """The state between two calls as plain values.

        What was gathered in `output` is not in it, nor are the frames around findings.
        """
        return (
            _DUMP_VERSION,
            self.connection.dump(),
            (self.ignored, self.named, self.settled, self.joins),
            self.closing,
            tuple(record.dump() for record in self.waiting),
            self.notes.dump(),
            self.tcp.dump(),
            self.first.dump(),
            self.second.dump(),
            None if self.output.findings is None else () if self.judge is None else self.judge.dump(),
            (self.concluded, None if self.left is None else self.left.dump()),
            self.doubts,
            None if self.stack is None else self.stack.dump(),
        )

    @staticmethod
    def load(state: tuple[object, ...], output: AnalysisOutput) -> "ConnectionAnalysis":
        """An analysis that goes on where `dump` left off.

        output: has to take findings if it judged. Raises ValueError on another version's state.
        """
        if not state or state[0] != _DUMP_VERSION:
            raise ValueError(f"state of a connection in version {state[:1]}, not {_DUMP_VERSION}")
        _, about, standing, closing, waiting, noted, tcp, first, second, judge, over = state[:11]
        doubts, layers = state[11:]
        assert isinstance(about, tuple) and isinstance(tcp, tuple) and isinstance(closing, int)
        assert isinstance(waiting, tuple) and isinstance(noted, tuple)
        assert isinstance(first, tuple) and isinstance(second, tuple) and isinstance(over, tuple)
        connection = Connection.load(about)
        analysis = ConnectionAnalysis(connection, output)
        assert isinstance(standing, tuple)
        analysis.ignored, analysis.named, analysis.settled, analysis.joins = standing
        analysis.closing = closing
        analysis.waiting = [FrameRecord.load(record, connection) for record in waiting]
        analysis.notes.restore(noted)
        analysis.tcp = TcpConnection.load(tcp, analysis)
        connection.stalls = (analysis.tcp.stream(0).stalls, analysis.tcp.stream(1).stalls)
        analysis.first.stream = analysis.tcp.stream(0)
        analysis.second.stream = analysis.tcp.stream(1)
        analysis.first.restore(first)
        analysis.second.restore(second)
        assert doubts is None or isinstance(doubts, tuple)
        analysis.doubts = doubts
        if isinstance(layers, tuple):
            analysis.stack = LayerStack.load(
                layers, analysis.layer_context(), analysis.first, analysis.second
            )
        concluded, left = over
        analysis.concluded = bool(concluded)
        analysis.left = None if left is None else load_summary(left)
        if isinstance(judge, tuple):
            if output.findings is None:
                raise ValueError("a judged connection needs a destination for its findings")
            if judge:
                analysis.judge = protocol_of(connection.protocol).load_judge(
                    judge, connection, output.findings
                )
        return analysis


# mypyc: null object, the owner of the directions of a connection that is over. Nothing writes to it.
_NOBODY: Final = ConnectionAnalysis(Connection("", 0, 0, bytes(12)), AnalysisOutput())
