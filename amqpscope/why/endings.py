"""Why connections, sessions, links and channels ended: what began and ended on a connection, and how.

Theory of operation. Each connection is followed for what begins and ends. Of two detaches, ends or closes,
the first is the end and the second its answer; everything inside ends with its outer layer. When all frames
are read, each end is traced back (`tracing`).
"""

from typing import NamedTuple

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.limits import MAX_ENDINGS
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.reassembly.stalls import Stalls
from amqpscope.why.frame_ref import Position

__all__ = ["AT_ONCE", "JUST_BEFORE", "OWN", "CauseStep", "Ended", "Ending", "Following", "StreamEnd", "Thing"]

_NEWEST = 64
"""Frames of a peer that are remembered, to tell the last that had reached the other one."""

OWN = ("320", "amqp:connection:forced", "amqp:link:detach-forced")
"""Errors that blame nobody."""

JUST_BEFORE = 10_000_000_000
"""Nanoseconds before an end within which something may be its cause without more to show that."""

_QUIET = 60_000_000_000
"""Nanoseconds without a word that may be a reason to end something: the limits of services, and of what lies
between the two, are minutes."""

AT_ONCE = 5_000_000_000
"""Nanoseconds before an end that belong to it."""

_HEARTBEATS = ("empty", "heartbeat")
"""Frames that are about nothing."""

_ON_IT = 16
"""Frames of a peer about one thing that are remembered."""


class CauseStep(NamedTuple):
    """One step back from an end.

    what: in a few words, "" of a diagnosis. mark: the frame, if it is one. finding, diagnosis: if it is one.
    packet: of something known only by that, 0 if none. sure: it is a cause, and not only what came before.
    """

    what: str
    mark: Position | None
    finding: Finding | None
    packet: int
    sure: bool
    diagnosis: Diagnosis | None = None


class Ended(NamedTuple):
    """How a peer ended something.

    condition: of the error it gives, "" if none. reached: the last frame of the other peer's about it, just
    before, that had reached it; silence: how long (ns) before that one's newest frame had come. quiet: the
    last frame about it (of the connection: of all), if it was long ago. reported: the error that the other
    peer had reported just before, if this one went on with nothing since; before: the last that this one had
    said of itself. cause: what it refuses.
    """

    peer: str
    how: str
    mark: Position
    condition: str
    reached: Position | None
    silence: int
    quiet: Position | None
    before: Position | None
    reported: "Ended | None"
    cause: CauseStep | None


class Thing:
    """What can end: its name, what is around it, and its end. begun: where it began.

    ended: by whoever did it first. crossed: how the other peer ended it with an error, when it did not know
    of that yet. said: of each peer the newest frames about it. queue: which one a consumer consumes from.
    """

    __slots__ = ("around", "begun", "crossed", "ended", "name", "queue", "said")

    def __init__(self, name: str, around: "Thing | None", begun: Position | None) -> None:
        self.name = name
        self.around = around
        self.begun = begun
        self.ended: Ended | None = None
        self.crossed: Ended | None = None
        self.queue = ""
        self.said: dict[str, list[Position]] = {CLIENT: [], SERVER: []}

    def add(self, peer: str, mark: Position) -> None:
        """A peer said something about it."""
        said = self.said[peer]
        said.append(mark)
        if len(said) > _ON_IT:
            del said[0]


class Ending(NamedTuple):
    """Why one thing ended, the first cause last."""

    thing: str
    what: str
    peer: str
    mark: Position | None
    condition: str
    steps: list[CauseStep]

    @property
    def itself(self) -> bool:
        """Whether a peer ended this, and not only what is around it."""
        return self.mark is not None or (self.thing == "connection" and self.peer != "")

    @property
    def in_order(self) -> bool:
        """Whether nothing is to be explained: a peer ended this without an error and without anything before
        that may be the cause, or it ended with what is around it, or it has not ended.
        """
        if self.condition:
            return False
        if not self.itself:
            return True
        return self.mark is not None and not self.steps


class StreamEnd(NamedTuple):
    """The end of the stream that ended first: its time (ns), the peer, `fin` or `rst`, and the packet."""

    time: int
    peer: str
    how: str
    packet: int


class Following:
    """Follows one connection for what begins and ends. A subclass knows what its protocol has besides."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.whole = Thing("connection", None, None)
        self.things: list[Thing] = []
        self.more = 0
        # Of the connection, once it is over; None if the capture ended before. And when each peer could not
        # write.
        self.stream_end: StreamEnd | None = None
        self.stalls: dict[str, Stalls] = {}
        # What the newest frame is about.
        self.about: Thing = self.whole
        # The errors that each peer has reported, the newest, while the other one has not gone on since.
        self.reported: dict[str, Ended] = {}
        self._errors: dict[str, Position] = {}
        self.last_mark: dict[str, Position] = {}
        # The newest frames of each peer, and when each was complete.
        self.newest: dict[str, list[tuple[Position, int]]] = {CLIENT: [], SERVER: []}

    def take(self, record: FrameRecord) -> None:
        """The next frame of the connection."""
        self.about = self.whole
        self.follow(record)
        mark = Position.of(record)
        newest = self.newest[record.peer]
        newest.append((mark, int(record.last_time)))
        if len(newest) > _NEWEST:
            del newest[0]
        self.last_mark[record.peer] = mark
        if mark.name not in _HEARTBEATS:
            about: Thing | None = self.about
            while about is not None:
                about.add(record.peer, mark)
                about = about.around

    def over(self, analysis: ConnectionAnalysis) -> None:
        """The connection is over."""
        self.stream_end = _stream_end(analysis)
        for direction in (0, 1):
            self.stalls[self.connection.peer(direction)] = analysis.tcp.stream(direction).stalls

    def follow(self, record: FrameRecord) -> None:
        """What a frame begins or ends, and what it is `about`, if not the connection."""

    def patience(self, peer: str) -> tuple[str, int]:
        """How long (ns) a peer waits for the other one, and what that is called; 0 for ever."""
        return "", 0

    def begin(self, name: str, around: Thing, record: FrameRecord) -> Thing:
        """Something begins."""
        thing = Thing(name, around, Position.of(record))
        if len(self.things) < MAX_ENDINGS:
            self.things.append(thing)
        else:
            self.more += 1
        return thing

    def goes_on(self, record: FrameRecord) -> None:
        """A peer goes on: what it had been notified of before is no reason for what it ends later."""
        other = SERVER if record.peer == CLIENT else CLIENT
        reported = self.reported.get(other)
        if reported is not None and record.acknowledged >= reported.mark.end:
            del self.reported[other]

    def end(
        self, thing: Thing, how: str, condition: str, record: FrameRecord, cause: CauseStep | None
    ) -> None:
        """Something ends, if it has not already."""
        peer = record.peer
        other = SERVER if peer == CLIENT else CLIENT
        now = int(record.time)
        mark = Position.of(record)
        reached = None
        for one in reversed(thing.said[other]):
            if one.end <= record.acknowledged and now - one.time <= JUST_BEFORE:
                reached = one
                break
        reported = self.reported.get(other)
        if reported is not None and (
            record.acknowledged < reported.mark.end or not self.may_answer(thing, reported, now)
        ):
            reported = None
        ended = Ended(
            peer,
            how,
            mark,
            condition,
            reached,
            self.silence(other, now, mark.packet)[0],
            self.quiet(thing, now, mark.packet),
            self._errors.get(peer),
            None if condition else reported,
            cause,
        )
        if condition:
            self._errors[peer] = mark
        if thing.ended is None:
            thing.ended = ended
            if condition:
                self.reported[peer] = ended
        elif condition and thing.ended.peer != peer and 0 <= record.acknowledged < thing.ended.mark.end:
            thing.crossed = ended
            self.reported[peer] = ended

    def may_answer(self, thing: Thing, reported: Ended, now: int) -> bool:
        """Whether something may be ended at `now` (ns) for an error that was reported before."""
        begun = thing.begun
        if begun is not None and begun.packet > reported.mark.packet:
            return False
        return now - reported.mark.time <= JUST_BEFORE

    def silence(self, peer: str, now: int, packet: int) -> tuple[int, Position | None]:
        """How long (ns) a peer had said nothing at `now`, before this packet, and its last frame."""
        for mark, complete in reversed(self.newest[peer]):
            if mark.packet < packet:
                return max(now - complete, 0), mark
        return 0, None

    def quiet(self, thing: Thing, now: int, packet: int) -> Position | None:
        """The last frame about something, if it was long before `now` (ns) and before this packet."""
        if thing is self.whole:
            said = [one[0] for peer in (CLIENT, SERVER) for one in self.newest[peer]]
        else:
            said = [*thing.said[CLIENT], *thing.said[SERVER]]
        # What both say when they end it at last, or what shows that nobody hears it any more, is not meant.
        before = [one for one in said if now - one.time > AT_ONCE and one.packet < packet]
        last = max(before, key=lambda one: one.time, default=None)
        if last is None or now - last.time < _QUIET:
            return None
        return last


def _stream_end(analysis: ConnectionAnalysis) -> StreamEnd | None:
    """Which stream of a connection that is over ended first; None if neither did before the capture."""
    first: StreamEnd | None = None
    for direction, side in ((0, analysis.first), (1, analysis.second)):
        reason = analysis.tcp.facts(direction).ended
        if reason in ("fin", "rst"):
            peer = analysis.connection.peer(direction)
            one = StreamEnd(int(side.end_time), peer, reason, int(side.end_packet))
            first = one if first is None else min(first, one)
    return first
