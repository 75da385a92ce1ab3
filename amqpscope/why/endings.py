"""Why connections, sessions, links and channels ended, back to the first cause that the capture shows.

Theory of operation. The frames of a connection are followed for what begins and ends: the first detach, end
or close of two is the end, the other one its answer; what is inside ends with what is around it. When all is
read each end is traced back, one step a cause:

    an end with an error    the finding that it answers, if the error is the one that is due for it; or the
                            method that a close of AMQP 0-9-1 names (`report.amqp091.diagnosis`); or the
                            attach or login that is refused; or a silence for longer than was agreed
    an end without          the error that its sender had been told of just before, if nothing was sent since
    no end, but FIN or RST  the silence before it, if that was longer than agreed
    an end with the outer   the end of that

and then, in turn, that one's. What cannot be traced so is told with the last thing that its sender had from
the other peer, which may be the cause, and is not called one.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from amqpscope.analysis import ConnectionAnalysis
from amqpscope.finding import Finding
from amqpscope.limits import MAX_ENDED_CONNECTIONS, MAX_ENDINGS
from amqpscope.model import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.report.diagnoses import diagnosis_of
from amqpscope.report.diagnosis import Diagnosed, Diagnosis
from amqpscope.report.findings import expected_condition
from amqpscope.rereadable import Rereadable
from amqpscope.rules.profiles import weight
from amqpscope.why.place import Mark

__all__ = ["Ended", "Ending", "Following", "Step", "StreamEnd", "Thing", "Tracing", "endings_of"]

_NEWEST = 64
"""Frames of a peer that are remembered, to tell the last that had reached the other one."""

_FINDINGS = 2000
"""Findings of a connection that are kept, the first, to trace ends to."""

_MOST_STEPS = 8

_OWN = ("320", "amqp:connection:forced", "amqp:link:detach-forced")
"""Errors that blame nobody."""

_SECOND = 1_000_000_000


class Step(NamedTuple):
    """One step back from an end.

    what: in a few words. mark: the frame, if it is one. finding: if it is one. packet: of something known
    only by that, 0 if none. sure: it is a cause, and not only what came before.
    """

    what: str
    mark: Mark | None
    finding: Finding | None
    packet: int
    sure: bool


class Ended(NamedTuple):
    """What ended first: of two who end the same thing, the one that did it first.

    condition: of the error it gives, "" if none. reached: the last frame of the other peer's that had
    reached it, and silence: how long (ns) before that one's newest had come. told: the error that the other
    peer had told of before, if nothing was sent since; before: the last that this one had told of itself.
    cause: what it refuses.
    """

    peer: str
    how: str
    mark: Mark
    condition: str
    reached: Mark | None
    silence: int
    before: Mark | None
    told: "Ended | None"
    cause: Step | None


class Thing:
    """What can end: its name, what is around it, and its end. begun: where it began."""

    def __init__(self, name: str, around: "Thing | None", begun: Mark | None) -> None:
        self.name = name
        self.around = around
        self.begun = begun
        self.ended: Ended | None = None


class Ending(NamedTuple):
    """Why one thing ended, the first cause last."""

    thing: str
    what: str
    peer: str
    mark: Mark | None
    condition: str
    steps: list[Step]


class StreamEnd(NamedTuple):
    """The end of the stream that ended first: its time (ns), the peer, `fin` or `rst`, and the packet."""

    time: int
    peer: str
    how: str
    packet: int


class Following(ABC):
    """Follows one connection for what begins and ends."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.whole = Thing("connection", None, None)
        self.things: list[Thing] = []
        self.more = 0
        # Of the connection, once it is over; None if the capture ended before.
        self.stream_end: StreamEnd | None = None
        # The errors that each peer has told of, the newest, while the other one has sent no message since.
        self.told: dict[str, Ended] = {}
        self._errors: dict[str, Mark] = {}
        self.last_mark: dict[str, Mark] = {}
        self.last_time: dict[str, int] = {}
        self._newest: dict[str, deque[Mark]] = {CLIENT: deque(maxlen=_NEWEST), SERVER: deque(maxlen=_NEWEST)}

    def take(self, record: FrameRecord) -> None:
        """The next frame of the connection."""
        self.follow(record)
        mark = Mark.of(record)
        self._newest[record.peer].append(mark)
        self.last_mark[record.peer] = mark
        self.last_time[record.peer] = int(record.last_time)

    @abstractmethod
    def follow(self, record: FrameRecord) -> None:
        """What a frame begins or ends."""

    def patience(self, peer: str) -> tuple[str, int]:
        """How long (ns) a peer waits for the other one, and what that is called; 0 for ever."""
        return "", 0

    def begin(self, name: str, around: Thing, record: FrameRecord) -> Thing:
        """Something begins."""
        thing = Thing(name, around, Mark.of(record))
        if len(self.things) < MAX_ENDINGS:
            self.things.append(thing)
        else:
            self.more += 1
        return thing

    def goes_on(self, record: FrameRecord) -> None:
        """A peer sends a message: what it had been told of before is no reason for what it ends later."""
        other = SERVER if record.peer == CLIENT else CLIENT
        told = self.told.get(other)
        if told is not None and record.acknowledged >= told.mark.end:
            del self.told[other]

    def end(self, thing: Thing, how: str, condition: str, record: FrameRecord, cause: Step | None) -> None:
        """Something ends, if it has not already."""
        peer = record.peer
        other = SERVER if peer == CLIENT else CLIENT
        told = self.told.get(other)
        reached = None
        for mark in reversed(self._newest[other]):
            if mark.end <= record.acknowledged:
                reached = mark
                break
        if told is not None and (record.acknowledged < told.mark.end or condition):
            told = None
        silence = int(record.time) - self.last_time.get(other, int(record.time))
        before = self._errors.get(peer)
        ended = Ended(peer, how, Mark.of(record), condition, reached, silence, before, told, cause)
        if condition:
            self._errors[peer] = ended.mark
        if thing.ended is None:
            thing.ended = ended
            if condition:
                self.told[peer] = ended


def endings_of(
    material: Rereadable, wanted: Callable[[Connection], bool], follower: Callable[[Connection], Following]
) -> tuple[list[tuple[Following, list[Ending]]], int]:
    """Of each connection that is wanted and spoke: what ended on it, the connection first.

    follower: gives what follows a connection of its protocol. Of more than `MAX_ENDED_CONNECTIONS` these are
    the first; also gives how many others there are.

    Raises CaptureError for what cannot be read.
    """
    followed: dict[Connection, Following] = {}
    diagnosed: dict[Connection, Diagnosis] = {}
    findings: dict[Connection, list[Finding]] = {}
    spoke = 0
    with material.capture(judge=True, ended=True) as capture:

        def take(record: FrameRecord) -> None:
            connection = record.connection
            following = followed.get(connection)
            if following is None:
                if len(followed) >= MAX_ENDED_CONNECTIONS or not wanted(connection):
                    return
                following = follower(connection)
                followed[connection] = following
                diagnosed[connection] = diagnosis_of(connection.protocol)
            following.take(record)
            diagnosed[connection].see(record)

        for records in capture.blocks():
            capture.each(records, take)
            for finding in capture.take_findings():
                if finding.connection in followed:
                    kept = findings.setdefault(finding.connection, [])
                    if len(kept) < _FINDINGS:
                        kept.append(finding)
            for analysis in capture.take_ended():
                connection = analysis.connection
                if connection.frames and wanted(connection):
                    spoke += 1
                    if connection in followed:
                        followed[connection].stream_end = _stream_end(analysis)
    found = []
    for connection, following in followed.items():
        try:
            told = diagnosed[connection].told()
            tracing = Tracing(following, findings.get(connection, []), told)
            found.append((following, tracing.endings()))
        except Exception as error:
            capture.fail(connection, error)
    return found, spoke - len(followed)


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


class Tracing:
    """Traces the ends of one connection back."""

    def __init__(
        self,
        following: Following,
        findings: list[Finding],
        diagnosed: list[Diagnosed],
    ) -> None:
        self._following = following
        self._findings = findings
        self._diagnosed = diagnosed

    def endings(self) -> list[Ending]:
        """The connection, then what ended on it by its own, then what ended with it."""
        things = self._following.things
        own = [thing for thing in things if thing.ended is not None]
        found = [self._connection(), *(self._ending(thing) for thing in own)]
        return found + [self._ending(thing) for thing in things if thing.ended is None]

    def _ending(self, thing: Thing) -> Ending:
        ended = thing.ended
        if ended is not None:
            return Ending(thing.name, ended.how, ended.peer, ended.mark, ended.condition, self._causes(ended))
        around = thing.around
        while around is not None and around.ended is None and around.around is not None:
            around = around.around
        if around is None or around.ended is None:
            whole = self._connection()
            what = "had not ended" if not whole.peer else "was still there when the connection ended"
            return Ending(thing.name, what, whole.peer, None, "", [])
        name = "the connection" if around is self._following.whole else around.name
        what = f"ended with {name}"
        step = Step(f"{name} {around.ended.how}", around.ended.mark, None, 0, True)
        steps = [step, *self._causes(around.ended)]
        return Ending(thing.name, what, around.ended.peer, None, "", steps)

    def _connection(self) -> Ending:
        ended = self._following.whole.ended
        if ended is not None:
            return Ending(
                "connection", ended.how, ended.peer, ended.mark, ended.condition, self._causes(ended)
            )
        first = self._following.stream_end
        if first is None:
            return Ending("connection", "had not ended when the capture did", "", None, "", [])
        time, peer, reason, packet = first
        how = f"was ended by the {peer} without a close, with {reason.upper()} in packet {packet}"
        return Ending("connection", how, peer, None, "", self._silent(peer, time))

    def _causes(self, ended: Ended) -> list[Step]:
        """From an end back to the first cause."""
        steps: list[Step] = []
        at: Ended | None = ended
        while at is not None and len(steps) < _MOST_STEPS:
            steps += self._cause(at)
            if at.told is not None and not at.condition:
                told = at.told
                steps.append(Step(f"the {told.peer} had told of an error before", told.mark, None, 0, False))
            at = at.told if not at.condition else None
        if steps:
            return steps
        other = SERVER if ended.peer == CLIENT else CLIENT
        if ended.condition in _OWN:
            what = f"that is a reason of the {ended.peer}'s own: an operator, or a shutdown"
            return [Step(what, None, None, 0, True)]
        if ended.reached is not None and ended.condition:
            return [Step(f"the last of the {other} that had reached it", ended.reached, None, 0, False)]
        return [Step(f"the {ended.peer} gives no reason, and nothing shows one", None, None, 0, True)]

    def _cause(self, ended: Ended) -> list[Step]:
        """What an end answers."""
        if ended.condition:
            for one in self._diagnosed:
                if one.code == "diag/closed" and one.packet == ended.mark.packet and one.cause:
                    return [Step(one.text, None, self._at(ended, one.cause), one.cause, True)]
            found = self._found(ended)
            if found is not None:
                finding, due = found
                what = "this is due for it" if due else "found before it"
                return [Step(what, None, finding, int(finding.packet), due)]
        if ended.cause is not None:
            return [ended.cause]
        if ended.condition:
            return self._silence(ended.peer, ended.silence, ended.reached)
        return []

    def _at(self, ended: Ended, packet: int) -> Finding | None:
        """The finding at what a close names, if its reply is the one that is due for it."""
        for finding in self._findings:
            if int(finding.packet) == packet and finding.peer != ended.peer and _due(finding, ended):
                return finding
        return None

    def _silence(self, peer: str, silence: int, last: Mark | None) -> list[Step]:
        """A peer had waited for the other one for longer than was agreed."""
        name, patience = self._following.patience(peer)
        if not patience or silence <= patience:
            return []
        other = SERVER if peer == CLIENT else CLIENT
        waited = f"{silence / _SECOND:.3f} s of silence of the {other}"
        return [Step(f"{waited}, {name} allows {patience / _SECOND:g} s", last, None, 0, True)]

    def _found(self, ended: Ended) -> tuple[Finding, bool] | None:
        """The finding that an error answers, and whether it is the one due for it."""
        best: tuple[Finding, bool] | None = None
        before = ended.before
        for finding in self._findings:
            if finding.peer == ended.peer or int(finding.packet) > ended.mark.packet:
                continue
            if finding.reaction_packet != ended.mark.packet or weight(finding) == "note":
                continue
            if before is not None and int(finding.packet) < before.packet:
                continue  # that was the answer to it
            due = _due(finding, ended)
            if weight(finding) != "error" and not due:
                continue
            if best is None or due > best[1] or (due == best[1] and finding.certain > best[0].certain):
                best = (finding, due)
        return best

    def _silent(self, peer: str, time: int) -> list[Step]:
        """What is known of a stream that ends without a close."""
        following = self._following
        other = SERVER if peer == CLIENT else CLIENT
        last = following.last_mark.get(other)
        steps = self._silence(peer, time - following.last_time.get(other, time), last)
        told = following.told.get(other)
        if told is not None:
            steps.append(Step(f"the {other} had told of an error before", told.mark, None, 0, False))
            steps += self._causes(told)
        elif not steps and last is not None:
            steps.append(Step(f"the last that was captured of the {other}", last, None, 0, False))
        return steps


def _due(finding: Finding, ended: Ended) -> bool:
    """Whether an error is the one that a correct peer answers a fault with."""
    return ended.condition in expected_condition(finding)[0].split()
