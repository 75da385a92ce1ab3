"""All connections of one capture: which segment belongs to which, and how they are numbered.

A connection is found by its addresses and ports. The same ports used again are another connection: after a
SYN with a new sequence number; or without one after a jump in sequence and a silence. One that has ended
(both ends sent FIN, or one RST) needs no silence. A connection under way ignores a SYN (RFC 9293, section
3.10.7.4): so what a SYN on its ports begins is another one only when it is answered, or its sender goes on
behind it, and not where the connection went on. It is remembered for a while, so that a late retransmission
is not taken for a new connection, and then forgotten; so is the one that was silent longest when there are
too many, or too many that never said anything. What the next connection between the same ends needs of a
forgotten one is its numbers.

Numbers. `instance` counts the connections between two ends. `stream` is Wireshark's `tcp.stream`, which
Wireshark counts up for two ends that are new to it and for a SYN with a new sequence number, but not for a
connection that is only told from an earlier one by a jump: the two share a number.
"""

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.correlation.correlate import correlate
from amqpscope.limits import (
    ENDED_AT_ONCE,
    LIVE_ENDED,
    LIVE_NEVER_SPOKE,
    LIVE_SILENT,
    MAX_CAPTURE_NOTES,
    MAX_CORRELATED_LINKS,
    MAX_LINGERING,
    MAX_OPEN_CONNECTIONS,
    MAX_OTHER_CONNECTIONS,
    MAX_PAIRS,
    MAX_SILENT_CONNECTIONS,
    NEW_CONNECTION_SILENCE,
)
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note, mishap
from amqpscope.model.records import Connection, Counter, FrameRecord
from amqpscope.protocols import is_amqp
from amqpscope.rules.overdue import Overdue
from amqpscope.tracking.correlation_budget import CorrelationBudget
from amqpscope.tracking.summary import ConnectionSummary
from dissectors.wire import i64

__all__ = ["ConnectionTable", "PairNumbers"]

# TCP flag bits (RFC 9293, section 3.1).
_FLAG_FIN = 0x01
_FLAG_SYN = 0x02
_FLAG_RST = 0x04
_FLAG_ACK = 0x10
_FLAGS_FIN_RST = 0x05
_FLAGS_SYN_ACK = 0x12

# The first octet of every protocol header, and those that are known.
_A = 0x41
_HEADERS = (b"AMQP\0\1\0\0", b"AMQP\2\1\0\0", b"AMQP\3\1\0\0", b"AMQP\0\0\x09\1")

# `ConnectionAnalysis.closing` when both directions are over.
_CLOSED = 3


class PairNumbers:
    """The numbers of the last connection between two ends, of the pairs that were last put in.

    A pair is the key of either direction, the lower of the two. `most` pairs are remembered.
    """

    def __init__(self, most: int) -> None:
        self._most: int = most
        # Both in one number, instance << 32 | stream: there are many of them.
        self._numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def put(self, pair: bytes, instance: int, stream: int) -> None:
        """Remember these for `pair`. If that is one too many the oldest quarter is forgotten."""
        self._numbers.pop(pair, None)
        self._numbers[pair] = instance << 32 | stream
        if len(self._numbers) > self._most:
            for old in list(self._numbers)[: self._most // 4 + 1]:
                del self._numbers[old]

    def take(self, pair: bytes) -> tuple[int, int] | None:
        """(instance, stream) of the last connection of `pair`, which is then forgotten."""
        numbers = self._numbers.pop(pair, -1)
        return None if numbers < 0 else (numbers >> 32, numbers & 0xFFFFFFFF)


class _Knock:
    """A SYN on the ports of a connection under way. stream: the number its connection would have."""

    def __init__(self, segment: Segment, stream: int) -> None:
        self.segment: Segment = segment
        self.stream: int = stream


class ConnectionTable(SegmentSink):
    """Takes the segments of a capture in order; gathers frame records in `out` and notes in `notes`.

    These lists are the caller's to empty, by `take_records` and `take_notes`; so are the findings, by
    `take_findings`. live: the capture goes on while it is looked at: `take_fresh` has findings as soon as
    they are made, `take_amended` those that got an answer, and `tick` is to be called as time goes by.
    capture: the name that connections carry. messages: put messages together. records: gather frame
    records, else only count. judge: make findings; context: with the frames around them.
    `connections` has every connection seen, in the order in which they began, if `keep` is set; otherwise
    they are forgotten as they end, and `take_ended` gives those that did if `gather_ended` is set; `order` of
    each says when it began. Of those that were no AMQP only the first `MAX_OTHER_CONNECTIONS` are kept, or
    gathered if `few_others` is set; `not_kept` counts the others.
    `protocols` counts the connections that are over by protocol (see `ConnectionAnalysis.spoken_by_both`). An
    error of this program ends the reading of the connection in which it comes up, and no other one's;
    `failed` counts them.
    """

    def __init__(
        self,
        capture: str,
        messages: bool = True,
        keep: bool = True,
        records: bool = True,
        judge: bool = False,
        context: bool = False,
        counter: Counter | None = None,
        live: bool = False,
    ) -> None:
        self.live: bool = live
        self.fresh: list[Finding] = []
        self.amended: list[Finding] = []
        # No connection is missing among the summaries.
        self._whole: bool = True
        self.counter: Counter | None = counter
        self.capture: str = capture
        self.messages: bool = messages
        self.keep: bool = keep
        self.records: bool = records
        self.judge: bool = judge
        self.context: bool = context
        self.findings: list[Finding] = []
        # Connections that are over, and left what later ones may be held against.
        self.summaries: list[ConnectionSummary] = []
        # Judge them against each other at the end. Else they are the caller's to take.
        self.correlates: bool = True
        self._links: i64 = 0
        self._allowance: CorrelationBudget = CorrelationBudget()
        self.out: list[FrameRecord] = []
        self.notes: list[Note] = []
        self.connections: list[ConnectionAnalysis] = []
        self.not_kept: i64 = 0
        self._others: i64 = 0
        self.gather_ended: bool = False
        # Of connections without AMQP keep, or gather, only the first.
        self.few_others: bool = keep
        self._ended: list[ConnectionAnalysis] = []
        self.protocols: dict[str, int] = {}
        self.failed: i64 = 0
        # Of connections that are over: those that had frames, how many, and when the first frame was.
        self._spoken: i64 = 0
        self._frames: i64 = 0
        self._began: i64 = 0
        self.streams: i64 = 0
        self._opened: i64 = 0  # since it was looked for silent ones
        self._begun: i64 = 0
        self._forward: dict[bytes, ConnectionAnalysis] = {}
        self._backward: dict[bytes, ConnectionAnalysis] = {}
        # By the key of a connection under way: a SYN on its ports that nothing has answered yet.
        self._knocks: dict[bytes, _Knock] = {}
        self._pairs: PairNumbers = PairNumbers(MAX_PAIRS)
        self._lingering: list[tuple[ConnectionAnalysis, int]] = []
        self._noted: dict[str, int] = {}
        self._finished: bool = False

    def segment(self, segment: Segment) -> None:
        key = segment.key
        flags: i64 = segment.flags
        direction: i64 = 0
        analysis = self._forward.get(key)
        if analysis is None:
            analysis = self._backward.get(key)
            direction = 1
        if self._knocks and analysis is not None:
            knock = self._knocks.get(analysis.connection.key)
            if knock is not None and self._heed(analysis, knock, segment):
                analysis = self._forward.get(key)
                direction = 0
                if analysis is None:
                    analysis = self._backward.get(key)
                    direction = 1
        if analysis is None:
            analysis = self._open(segment)
            direction = 0
        elif self._is_another(analysis, direction, segment):
            if flags & _FLAG_SYN and analysis.closing != _CLOSED:
                self._knocks[analysis.connection.key] = _Knock(segment.kept(), self.streams)
                if flags & _FLAGS_SYN_ACK == _FLAG_SYN:
                    self.streams += 1
                return
            self._knocks.pop(analysis.connection.key, None)
            self._close(analysis, "reused")
            analysis = self._open(segment)
            direction = 0
        try:
            analysis.tcp.segment(direction, segment)
        except Exception as error:
            self._abandon(analysis, error, segment.packet, segment.time)
        if flags & _FLAGS_FIN_RST and analysis.closing != _CLOSED:
            closing: i64 = direction + 1
            if flags & _FLAG_RST:
                closing = _CLOSED if analysis.tcp.stream(direction).has_end() else 0
            analysis.closing |= closing
            if analysis.closing == _CLOSED:
                self._linger(analysis)

    def note(self, code: str, packet: i64, time: i64, detail: str) -> None:
        self.notes.append(Note(code, packet, time, detail, None))

    def dropped(self, packet: i64, time: i64, count: i64) -> None:
        """The capturing machine lost packets: whole connections may be among them."""
        self._whole = False

    def finish_some(self) -> bool:
        """The capture ended, and some of what is open is brought to its end. False if few enough are left.

        What that gives is to be taken before the next ones, so that not all of it is there at once.
        """
        if len(self._forward) <= ENDED_AT_ONCE:
            return False
        for analysis in list(self._forward.values())[:ENDED_AT_ONCE]:
            self._close(analysis, "capture")
        return True

    def finish(self) -> None:
        """The capture ended: whatever is still open is brought to its end."""
        while self._forward:
            # One that closes may let in the one that a SYN began on the same ports.
            for analysis in list(self._forward.values()):
                self._close(analysis, "capture")
        self._lingering.clear()
        self._sweep()
        if self.correlates:
            if not self._finished:
                self._correlate()
            self.summaries = []
        self._finished = True

    def tick(self, now: i64) -> list[Overdue]:
        """For a live capture, every second or so: it is `now` (ns) by the clock that packets are timed with.

        What waited too long for missing octets is passed on, dead connections are given up. Gives the peers
        that are silent for too long.
        """
        overdue: list[Overdue] = []
        for analysis in list(self._forward.values()):
            try:
                analysis.tcp.tick(now)
                if now - analysis.tcp.last_time() > _patience(analysis):
                    self._close(analysis, "evicted")
                elif analysis.judge is not None:
                    overdue += analysis.judge.overdue(now)
            except Exception as error:
                self._abandon(analysis, error, 0, now)
        return overdue

    def open_connections(self) -> list[ConnectionAnalysis]:
        """The connections that are not over, and those just over, in the order in which they began."""
        return list(self._forward.values())

    def take_fresh(self) -> list[Finding]:
        """The findings made since the last call that something is still awaited for."""
        if not self.fresh:
            return []
        fresh = self.fresh[:]
        self.fresh.clear()
        return fresh

    def take_amended(self) -> list[Finding]:
        """Those of `take_fresh` to which the other peer has reacted since the last call."""
        if not self.amended:
            return []
        amended = self.amended[:]
        self.amended.clear()
        return amended

    def take_records(self) -> list[FrameRecord]:
        """The frame records since the last call."""
        if not self.out:
            return []
        records = self.out[:]
        self.out.clear()
        return records

    def spoken(self) -> int:
        """How many connections had frames so far."""
        return self._spoken + sum(1 for one in self._forward.values() if one.connection.frames > 0)

    def frames(self) -> int:
        """How many frames there were so far."""
        return self._frames + sum(one.connection.frames for one in self._forward.values())

    def began(self) -> int:
        """The time (ns) of the first frame, 0 while there is none."""
        times = [int(one.connection.began) for one in self._forward.values() if one.connection.frames > 0]
        if self._frames > 0:
            times.append(int(self._began))
        return min(times, default=0)

    def take_findings(self) -> list[Finding]:
        """The findings since the last call for which nothing more is awaited."""
        if not self.findings:
            return []
        findings = self.findings[:]
        self.findings.clear()
        return findings

    def take_ended(self) -> list[ConnectionAnalysis]:
        """The connections that are over since the last call, in that order, if they are gathered."""
        ended = self._ended
        self._ended = []
        return ended

    def take_notes(self) -> list[Note]:
        """The notes since the last call, of each code as many as a capture may have."""
        taken: list[Note] = []
        for note in self.notes:
            count = self._noted.get(note.code, 0) + 1
            self._noted[note.code] = count
            if count <= MAX_CAPTURE_NOTES:
                taken.append(note)
        self.notes.clear()
        if self._finished:
            for code, count in self._noted.items():
                more = count - MAX_CAPTURE_NOTES
                if more > 0:
                    some = "1 more note" if more == 1 else f"{more} more notes"
                    taken.append(Note(code, 0, 0, f"{some} like these", None))
            self._noted.clear()
        return taken

    def _is_another(self, analysis: ConnectionAnalysis, direction: i64, segment: Segment) -> bool:
        """Whether a segment with the ports of a known connection belongs to a new one."""
        time: i64 = segment.time
        if analysis.closing == _CLOSED:
            time += NEW_CONNECTION_SILENCE
        header = _is_header(segment.buf, segment.start, segment.end)
        return analysis.tcp.starts_new(direction, segment.seq, segment.flags, time, header)

    def _heed(self, analysis: ConnectionAnalysis, knock: "_Knock", segment: Segment) -> bool:
        """A segment that may tell whether a SYN began another connection. Returns whether it has."""
        syn = knock.segment
        behind: i64 = (syn.seq + 1) & 0xFFFFFFFF
        if segment.key != syn.key:
            if segment.ack != behind:
                return False
        elif segment.seq != behind and not segment.flags & _FLAG_SYN:
            direction: i64 = 0 if segment.key == analysis.connection.key else 1
            if analysis.tcp.continues(direction, segment.seq):
                if not segment.flags & _FLAG_RST:
                    del self._knocks[analysis.connection.key]
                    analysis.note(
                        direction,
                        "capture/ignored",
                        syn.packet,
                        syn.time,
                        "a SYN began no other connection: its sender went on with this one",
                    )
                return False
        self._close(analysis, "reused")
        return True

    def _let_in(self, knock: "_Knock") -> None:
        """What a SYN began is a connection."""
        segment = knock.segment
        analysis = self._open(segment, knock.stream)
        try:
            analysis.tcp.segment(0, segment)
        except Exception as error:
            self._abandon(analysis, error, segment.packet, segment.time)

    def _open(self, first: Segment, reserved: int = -1) -> ConnectionAnalysis:
        """A new connection, with its first segment. reserved: its number, if it has one already."""
        key = first.key
        reverse = first.reverse
        last = self._pairs.take(_pair(key, reverse))
        instance = 0
        stream: int = self.streams if reserved < 0 else reserved
        if last is not None:
            instance = last[0] + 1
            if first.flags & _FLAGS_SYN_ACK != _FLAG_SYN:
                stream = last[1]
        if stream == self.streams:
            self.streams += 1
        connection = Connection(self.capture, stream, instance, key)
        out = self.out if self.records else None
        findings = self.findings if self.judge else None
        analysis = ConnectionAnalysis(
            connection, out, self.notes, self.messages, findings, self.context, self._allowance, self.counter
        )
        analysis.order = self._begun
        self._begun += 1
        if self.live:
            analysis.fresh = self.fresh
            analysis.amended = self.amended
        self._opened += 1
        if self._opened >= MAX_SILENT_CONNECTIONS // 2 or len(self._forward) >= MAX_OPEN_CONNECTIONS:
            self._evict()
        self._forward[key] = analysis
        self._backward[reverse] = analysis
        if self.keep:
            self.connections.append(analysis)
        return analysis

    def _close(self, analysis: ConnectionAnalysis, reason: str) -> None:
        """Bring a connection to its end and forget it."""
        connection = analysis.connection
        key = connection.key
        if self._forward.get(key) is not analysis:
            return
        try:
            analysis.finish(reason)
        except Exception as error:
            self._abandon(analysis, error, 0, analysis.tcp.last_time())
        reverse = reverse_key(key)
        del self._forward[key]
        del self._backward[reverse]
        self._pairs.put(_pair(key, reverse), connection.instance, connection.stream)
        knock = self._knocks.pop(key, None)
        if knock is not None:
            self._let_in(knock)
        summary = analysis.left
        analysis.left = None
        if summary is not None and self._links < MAX_CORRELATED_LINKS:
            self.summaries.append(summary)
            self._links += summary.weight
            if self.live and self._links >= MAX_CORRELATED_LINKS:
                # It may go on for weeks: what is older is not held against what comes.
                self._correlate()
                self.summaries = []
                self._links = 0
                self._whole = False
        protocol = connection.protocol
        if self.few_others and connection.frames == 0 and not is_amqp(protocol):
            self._others += 1
            if self._others > MAX_OTHER_CONNECTIONS:
                analysis.forgotten = True
                self.not_kept += 1
                if self.not_kept % MAX_OTHER_CONNECTIONS == 0:
                    self._sweep()
        if self.gather_ended and not analysis.forgotten:
            self._ended.append(analysis)
        counted = analysis.spoken_by_both()
        self.protocols[counted] = self.protocols.get(counted, 0) + 1
        if connection.frames > 0:
            self._spoken += 1
            self._frames += connection.frames
            if self._began == 0 or connection.began < self._began:
                self._began = connection.began

    def fail(self, connection: Connection | None, error: Exception, packet: i64, time: i64) -> None:
        """An error of this program came up when a connection was looked at, at a packet (0: at none) and time
        (ns); None: when connections were held against each other. It is told once of each.

        To be called where `error` is caught; an error for want of memory is raised again.
        """
        if isinstance(error, MemoryError):
            raise error
        if connection is None or not connection.failed:
            what = "reading this connection" if connection else "holding connections against each other"
            self.notes.append(mishap(error, packet, time, connection, what))
            self.failed += 1

    def _abandon(self, analysis: ConnectionAnalysis, error: Exception, packet: i64, time: i64) -> None:
        self.fail(analysis.connection, error, packet, time)
        self._whole = False
        analysis.give_up()

    def _correlate(self) -> None:
        """Judge the connections that are over against each other."""
        try:
            self.findings += correlate(self.summaries, self._whole)
        except Exception as error:
            self.fail(None, error, 0, 0)

    def _sweep(self) -> None:
        """Drop those that are not to be kept, many at a time."""
        if self.not_kept > 0:
            self.connections = [analysis for analysis in self.connections if not analysis.forgotten]

    def _linger(self, analysis: ConnectionAnalysis) -> None:
        """Both directions seem over. Forget the connection when enough others have ended after it."""
        self._lingering.append((analysis, analysis.tcp.delivered()))
        if analysis.tcp.is_over():
            analysis.tcp.forget()
        if len(self._lingering) > MAX_LINGERING:
            old = self._lingering[: MAX_LINGERING // 2]
            del self._lingering[: MAX_LINGERING // 2]
            for ended, delivered in old:
                if not ended.tcp.is_over() and ended.tcp.delivered() > delivered:
                    ended.closing = 0  # it went on: the RST or FIN was not its own
                else:
                    self._close(ended, "capture")

    def _evict(self) -> None:
        """Give up those that were silent longest, if there are too many: first of those that never spoke.

        Of either kind so many at a time that it need not be done soon again.
        """
        self._opened = 0
        never = [one for one in self._forward.values() if one.tcp.delivered() + one.tcp.waiting() == 0]
        if len(never) >= MAX_SILENT_CONNECTIONS // 2:
            self._give_up(never, len(never) - MAX_SILENT_CONNECTIONS // 2)
        if len(self._forward) >= MAX_OPEN_CONNECTIONS:
            self._give_up(list(self._forward.values()), MAX_OPEN_CONNECTIONS // 4)

    def _give_up(self, analyses: list[ConnectionAnalysis], count: int) -> None:
        """Give up so many of these, those that were silent longest."""
        analyses.sort(key=_last_time)
        for analysis in analyses[:count]:
            self._close(analysis, "evicted")


def _is_header(buf: bytes, start: i64, end: i64) -> bool:
    """Whether a segment's payload begins with a protocol header that is known."""
    return end - start >= 8 and buf[start] == _A and buf[start : start + 8] in _HEADERS


def _patience(analysis: ConnectionAnalysis) -> i64:
    """For how long (ns) a connection of a live capture may be silent until it is given up."""
    if analysis.closing == _CLOSED:
        return LIVE_ENDED
    if analysis.tcp.delivered() + analysis.tcp.waiting() == 0:
        return LIVE_NEVER_SPOKE
    return LIVE_SILENT


def _last_time(analysis: ConnectionAnalysis) -> int:
    """When the last segment of a connection came."""
    return analysis.tcp.last_time()


def _pair(key: bytes, reverse: bytes) -> bytes:
    """What a connection and its reverse are both remembered by."""
    return key if key < reverse else reverse


def reverse_key(key: bytes) -> bytes:
    """The key of the other direction."""
    width = (len(key) - 4) // 2
    return key[width : 2 * width] + key[:width] + key[-2:] + key[-4:-2]
