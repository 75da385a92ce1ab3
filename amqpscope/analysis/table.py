"""All connections of one capture: which segment belongs to which, and how they are numbered.

A connection is found by its addresses and ports. The same ports used again are another connection: after a
SYN with a new sequence number; or without one after a jump in sequence and a silence. One that has ended
(both ends sent FIN, or one RST) needs no silence. A connection under way ignores a SYN (RFC 9293, section
3.10.7.4): so what a SYN on its ports begins is another one only when it is answered, or its sender goes on
behind it, and not where the connection went on. It is remembered for a while, so that a late retransmission
is not taken for a new connection, and then forgotten; so is the one that was silent longest when there are
too many, or too many that never said anything. What the next connection between the same ends needs of a
forgotten one is its numbers.
"""

from typing import Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.kept import Correlation, KeptConnections, Totals
from amqpscope.analysis.numbering import Numbering, reverse_key
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.share import Share
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.traced import TracedMessage
from amqpscope.limits import (
    ENDED_AT_ONCE,
    LIVE_ENDED,
    LIVE_NEVER_SPOKE,
    LIVE_SILENT,
    MAX_LINGERING,
    MAX_OPEN_CONNECTIONS,
    MAX_SILENT_CONNECTIONS,
    NEW_CONNECTION_SILENCE,
)
from amqpscope.model.note import Note, mishap
from amqpscope.model.records import Connection
from amqpscope.reassembly.sequence import sequence_number
from amqpscope.rules.overdue import Overdue
from dissectors.wire import i64

__all__ = ["ConnectionTable"]

# TCP flag bits (RFC 9293, section 3.1).
_FLAG_FIN: Final = 0x01
_FLAG_SYN: Final = 0x02
_FLAG_RST: Final = 0x04
_FLAG_ACK: Final = 0x10
_FLAGS_FIN_RST: Final = 0x05
_FLAGS_SYN_ACK: Final = 0x12

# The first octet of every protocol header, and those that are known.
_A: Final = 0x41
_HEADERS: Final = (b"AMQP\0\1\0\0", b"AMQP\2\1\0\0", b"AMQP\3\1\0\0", b"AMQP\0\0\x09\1")

# `ConnectionAnalysis.closing` when both directions are over.
_CLOSED: Final = 3


class _Knock:
    """A SYN on the ports of a connection under way. stream: the number its connection would have."""

    def __init__(self, segment: Segment, stream: int) -> None:
        self.segment: Segment = segment
        self.stream: int = stream


class _Rival:
    """Another connection on the ports of one under way, which is not known to be over: both may be at once.

    places: by the key of a direction, the sequence number of the octet that it sends next there. proved:
    octets came at such a place, so that nobody can tell which of the two any later segment is of.
    """

    def __init__(self) -> None:
        self.places: dict[bytes, int] = {}
        self.proved: bool = False

    def sends(self, segment: Segment) -> bool:
        """Whether a segment with octets is the rival's next one."""
        return segment.start < segment.end and self.places.get(segment.key, -1) == segment.seq


class ConnectionTable(SegmentSink):
    """Takes the segments of a capture in order.

    capture: the name that connections carry. output: what is wanted, and where it is gathered; the caller
    empties it. kept: which connections are kept. Of a live capture `tick` is to be called as time goes by. An
    error of this program ends the reading of the connection in which it comes up, and no other one's.
    """

    def __init__(
        self, capture: str, output: AnalysisOutput | None = None, kept: KeptConnections | None = None
    ) -> None:
        # The name that connections carry.
        self.capture: str = capture
        # What is wanted, and where it is gathered.
        self.output: AnalysisOutput = output or AnalysisOutput()
        # The connections that are kept.
        self.kept: KeptConnections = kept or KeptConnections()
        # What is counted of those that are over.
        self.totals: Totals = Totals()
        # What those that are over left to be compared.
        self.correlation: Correlation = Correlation()
        # The connections that are analysed here, None for all.
        self.share: Share | None = None
        # Their numbers.
        self.numbering: Numbering = Numbering()
        # The connections that are not forgotten, by the key of direction 0.
        self._forward: dict[bytes, ConnectionAnalysis] = {}
        # The same by the key of direction 1.
        self._backward: dict[bytes, ConnectionAnalysis] = {}
        # By the key of a connection that a log has and that has not begun: whose log it is (see `logged`).
        self._logged: dict[bytes, tuple[int, bool]] = {}
        # By the key of a connection under way: a SYN on its ports that nothing has answered yet.
        self._knocks: dict[bytes, _Knock] = {}
        # By the key of a connection under way: another one on its ports that may be so, too.
        self._rivals: dict[bytes, _Rival] = {}
        # Connections that seem over, with how many octets they had given by then.
        self._lingering: list[tuple[ConnectionAnalysis, int]] = []
        # How many began since it was looked for silent ones.
        self._opened: i64 = 0
        # The reader's buffer that the latest segment lies in, if findings get the frames around them.
        self._buffer: bytes = b""
        # No segment follows.
        self._finished: bool = False

    def segment(self, segment: Segment) -> None:
        contexts = self.output.contexts
        if contexts is not None and segment.buf is not self._buffer:
            self._buffer = segment.buf
            contexts.release()
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
                stream = self.numbering.reserve(segment)
                self._knocks[analysis.connection.key] = _Knock(segment.kept(), stream)
                return
            self._knocks.pop(analysis.connection.key, None)
            rival = self._rival(analysis)
            self._close(analysis, "reused")
            analysis = self._open(segment)
            self._contest(analysis, rival)
            direction = 0
        if self._rivals:
            other = self._rivals.get(analysis.connection.key)
            if other is not None and not other.proved and other.sends(segment):
                if segment.seq != analysis.tcp.stream(direction).expected:
                    other.proved = True
                    self._contest(analysis, other)
        try:
            analysis.tcp.segment(direction, segment)
        except Exception as error:
            self._abandon(analysis, error, segment.packet, segment.time)
        self._end_step()
        if flags & _FLAGS_FIN_RST and analysis.closing != _CLOSED:
            closing: i64 = direction + 1
            if flags & _FLAG_RST:
                closing = _CLOSED if analysis.tcp.stream(direction).has_end() else 0
            analysis.closing |= closing
            if analysis.closing == _CLOSED:
                self._linger(analysis)

    def note(self, code: str, packet: i64, time: i64, detail: str) -> None:
        if self.share is None or self.share.number == 0:
            self.output.notes.append(Note(code, packet, time, detail, None))
        self._end_step()

    def logged(self, key: bytes, own: i64, retold: bool) -> None:
        self._logged[key] = (int(own), retold)

    def traced(self, message: TracedMessage) -> None:
        if self.share is None or self.share.number == 0:
            self.output.take_traced(message)
        self._end_step()

    def secrets(self, octets: bytes) -> None:
        self.output.secrets.take(octets)

    def dropped(self, packet: i64, time: i64, count: i64) -> None:
        """The capturing machine lost packets: whole connections may be among them."""
        self.correlation.whole = False

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
        self.kept.sweep()
        if self.correlation.wanted:
            if not self._finished:
                self._correlate()
            self.correlation.summaries = []
        self._finished = True

    def take_share(self, share: Share) -> None:
        """From now on, analyse only the connections of this share. The output is to be empty then."""
        self.share = share
        self.correlation.wanted = False
        for analysis in self._forward.values():
            if not share.owns(analysis.order):
                analysis.skip()
        self.output.notes.clear()

    def hand_over(self) -> None:
        """Other processes have analysed the open connections and all that began later: `over` takes these."""
        self._forward.clear()
        self._backward.clear()
        self._knocks.clear()
        self._rivals.clear()
        self._lingering.clear()

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

    def analysis_of(self, key: bytes) -> ConnectionAnalysis | None:
        """The connection that is under way between these ends, by the key of either direction."""
        analysis = self._forward.get(key)
        return self._backward.get(key) if analysis is None else analysis

    def open_connections(self) -> list[ConnectionAnalysis]:
        """The connections that are not over, and those just over, in the order in which they began."""
        return list(self._forward.values())

    def spoken(self) -> int:
        """How many connections had frames so far."""
        return self.totals.spoken + sum(1 for one in self._forward.values() if one.connection.frames > 0)

    def frames(self) -> int:
        """How many frames there were so far."""
        return self.totals.frames + sum(one.connection.frames for one in self._forward.values())

    def began(self) -> int:
        """The time (ns) of the first frame, 0 while there is none."""
        times = [int(one.connection.began) for one in self._forward.values() if one.connection.frames > 0]
        if self.totals.frames > 0:
            times.append(int(self.totals.began))
        return min(times, default=0)

    def take_notes(self) -> list[Note]:
        """The notes since the last call, of each code as many as a capture may have; all of a share."""
        if self.share is not None:
            notes = self.output.notes[:]
            self.output.notes.clear()
            return notes
        return self.output.take_notes(self._finished)

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
                    ignored = self._rivals.setdefault(analysis.connection.key, _Rival())
                    ignored.places[syn.key] = int(behind)
                    if syn.ack >= 0:
                        ignored.places[syn.reverse] = int(syn.ack)
                    analysis.note(
                        direction,
                        "capture/ignored",
                        syn.packet,
                        syn.time,
                        "a SYN did not begin a new connection: its sender continued this connection",
                    )
                return False
        rival = self._rival(analysis)
        self._close(analysis, "reused")
        another = self.analysis_of(syn.key)
        if another is not None:
            self._contest(another, rival)
        return True

    def _rival(self, analysis: ConnectionAnalysis) -> _Rival | None:
        """What a connection whose ports are used again is to the next one on them; None if it is over.

        How it ends is not known.
        """
        if analysis.closing == _CLOSED:
            return None
        before = self._rivals.get(analysis.connection.key)
        rival = _Rival()
        rival.proved = before is not None and before.proved
        key = analysis.connection.key
        for own, of in ((analysis.tcp.stream(0), key), (analysis.tcp.stream(1), reverse_key(key))):
            if own.start.known and not own.ended:
                rival.places[of] = int(sequence_number(own.waiting_end(), own.origin))
        analysis.doubt_all()
        return rival

    def _contest(self, analysis: ConnectionAnalysis, rival: _Rival | None) -> None:
        """A connection has a rival."""
        if rival is not None:
            self._rivals[analysis.connection.key] = rival
            if rival.proved:
                analysis.doubt_all()

    def _let_in(self, knock: "_Knock") -> None:
        """What a SYN began is a connection."""
        segment = knock.segment
        analysis = self._open(segment, knock.stream)
        try:
            analysis.tcp.segment(0, segment)
        except Exception as error:
            self._abandon(analysis, error, segment.packet, segment.time)
        self._end_step()

    def _end_step(self) -> None:
        """What a segment, a note or an end of a connection brought is complete."""
        if self.share is not None:
            self.share.end_step(self.output)

    def _open(self, first: Segment, reserved: int = -1) -> ConnectionAnalysis:
        """A new connection, with its first segment. reserved: its number, if it has one already."""
        order: i64 = self.numbering.begun
        instance, stream = self.numbering.number(first, reserved)
        analysis = ConnectionAnalysis(Connection(self.capture, stream, instance, first.key), self.output)
        if self._logged:
            analysis.connection.vantage, analysis.connection.retold = self._logged.pop(first.key, (-1, False))
        analysis.order = order
        if self.share is not None and not self.share.owns(order):
            analysis.skip()
        self._opened += 1
        if self._opened >= MAX_SILENT_CONNECTIONS // 2 or len(self._forward) >= MAX_OPEN_CONNECTIONS:
            self._evict()
        self._forward[first.key] = analysis
        self._backward[first.reverse] = analysis
        self.kept.began(analysis)
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
        self._end_step()
        del self._forward[key]
        del self._backward[reverse_key(key)]
        self.numbering.over(key, connection.instance, connection.stream)
        self._rivals.pop(key, None)
        knock = self._knocks.pop(key, None)
        if knock is not None:
            self._let_in(knock)
        if self.share is not None:
            self.share.over(analysis)
        else:
            self.over(analysis)

    def over(self, analysis: ConnectionAnalysis) -> None:
        """A connection is over, and its analysis is complete: here or, of a share, in another process."""
        summary = analysis.left
        analysis.left = None
        if summary is not None:
            self.correlation.add(summary)
            if self.output.live and self.correlation.is_full():
                self._correlate()
                self.correlation.begin_anew()
        self.kept.over(analysis)
        self.totals.add(analysis)

    def fail(self, connection: Connection | None, error: Exception, packet: i64, time: i64) -> None:
        """An error of this program came up when a connection was looked at, at a packet (0: at none) and time
        (ns); None: when connections were compared with each other. It is reported once of each.

        To be called where `error` is caught; an error for want of memory is raised again.
        """
        if isinstance(error, MemoryError):
            raise error
        if connection is None or not connection.failed:
            what = "reading this connection" if connection else "comparing connections with each other"
            self.output.notes.append(mishap(error, packet, time, connection, what))
            self.totals.failed += 1

    def _abandon(self, analysis: ConnectionAnalysis, error: Exception, packet: i64, time: i64) -> None:
        self.fail(analysis.connection, error, packet, time)
        self.correlation.whole = False
        analysis.give_up()

    def _correlate(self) -> None:
        """Judge the connections that are over against each other."""
        findings = self.output.findings
        if findings is None:
            return
        try:
            findings += self.correlation.findings()
        except Exception as error:
            self.fail(None, error, 0, 0)

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
