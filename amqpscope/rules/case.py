"""The input of a rule of any protocol: a frame, and where to report findings.

A rule is a function of its protocol's subclass of `Case`. Its docstring is its documentation (what the fault
is, why it matters, when the rule is silent). Its id stands beside it in the `RULES` of its file. The judge of
the protocol calls rules directly, file by file, for the frames that they are about. Rules are compiled,
because they run for every frame.
"""

from typing import Final

from amqpscope.limits import MAX_GARBLED
from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord, FrameRef
from amqpscope.rules.declaration import DECLARED
from amqpscope.rules.judge import NO_RECORD
from amqpscope.tracking.clock import ClockStepGuard
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["Case"]

# mypyc: null object. Each `frozenset()` of its own takes 216 octets, compiled.
_NONE_REPORTED: Final[frozenset[tuple[str, str]]] = frozenset()


class Case:
    """One frame to be judged, or the end of a stream.

    connection: where the frame is. record: the frame; at the end of a stream there is none. spot: what
    findings point at, if not at that frame. findings: all findings; found: how many of them this frame has
    given. astray: how much is unknown of both peers after the frame. Such a frame names a session, a
    link, a channel or a delivery that does not exist, so nobody knows which one its sender means; the
    protocol defines the values, and 0 means nothing. pace: how evenly time has passed so far. doubtful: one
    peer may have accepted an RST that the other peer did not send, so that nothing is certain.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection = connection
        self.record: FrameRecord = NO_RECORD
        self.spot: FrameRef | None = None
        self.pace: ClockStepGuard = ClockStepGuard()
        self.findings: list[Finding] = []
        # The findings of `report_once`: by peer and rule; and by peer, rule and kind.
        self.reported: frozenset[tuple[str, str]] = _NONE_REPORTED
        self.found: i64 = 0
        self.astray: i64 = 0
        self.doubtful: bool = False
        # The newest frames that proved to be garbled: direction, first offset, and offset after the end.
        self.garbled: tuple[tuple[int, int, int], ...] = ()

    def now(self) -> i64:
        """The time (ns) of what findings point at."""
        return self.record.time if self.spot is None else self.spot.time

    def place(self, finding: Finding) -> None:
        """Add the place of the finding in the protocol's terms."""

    def report(
        self,
        rule: str,
        message: str,
        certainty: i64 = CERTAIN,
        evidence: dict[str, object] | None = None,
        others: list[int] | None = None,
        since: i64 = -1,
    ) -> None:
        """Report that this frame breaks a rule. Without a certainty, the finding is certain.

        since: when the fault began (ns), if it began before the frame. The other peer may react to the fault
        from then on.
        """
        if certainty == LEGAL or (self.connection.retold and DECLARED[rule].octets):
            return
        if self.doubtful:
            certainty = POSSIBLE
            evidence = {**(evidence or {}), "rst_in_doubt": True}
        spot = self.spot
        if spot is None:
            spot = FrameRef.of(self.record)
        elif self.connection.proxied and spot.is_end() and self.connection.peer(spot.direction) == CLIENT:
            # A load balancer has ended the stream, whatever the client wanted.
            certainty = POSSIBLE
        finding = Finding(rule, certainty, message, self.connection, spot, evidence or {}, others or [])
        if since >= 0:
            finding.since = since
        finding.read = self.record.acknowledged
        finding.guessed = self.spot is None and self.record.frame.guessed and DECLARED[rule].octets
        if finding.guessed and finding.certain and self.record.frame.missing > 0:
            # Whether a frame begins where this one ends is not known.
            _doubt_boundary(finding)
        if self.garbled and finding.certain and self.rests_on_garbled(finding):
            _doubt_garbled(finding)
        self.place(finding)
        self.findings.append(finding)
        self.found += 1

    def misread(self, frame: Frame, direction: i64) -> None:
        """A frame is garbled. What its receiver did after it had received a part of the frame may depend on
        that part.
        """
        place = (int(direction), int(frame.offset), int(frame.offset + frame.declared_size))
        self.garbled = (*self.garbled, place)[-MAX_GARBLED:]
        for finding in self.findings:
            if finding.certain and finding.read > frame.offset and finding.spot.direction != direction:
                # So far nothing after the frame was read, whatever size the frame is now assumed to have.
                _doubt_garbled(finding)

    def lose_track(self, direction: i64) -> None:
        """A peer sends octets that are no frame. If the frames before were found by searching, these frames
        may be the content of a message, which ends here.
        """
        for finding in self.findings:
            if finding.guessed and finding.certain and finding.spot.direction == direction:
                _doubt_boundary(finding)

    def rests_on_garbled(self, finding: Finding) -> bool:
        """Whether the peer at fault had received a part of a garbled frame, and not all of it."""
        read = finding.read
        sender = 1 - finding.spot.direction
        return any(direction == sender and offset < read < end for direction, offset, end in self.garbled)

    def was_reported(self, rule: str) -> bool:
        """Whether `report_once` has reported for either peer that the peer breaks this rule."""
        return (CLIENT, rule) in self.reported or (SERVER, rule) in self.reported

    def report_once(
        self,
        rule: str,
        message: str,
        certainty: i64,
        evidence: dict[str, object],
        others: list[int] | None = None,
        kind: str = "",
    ) -> None:
        """Report that this frame breaks a rule, but only once per connection, peer and kind of the fault.

        A finding that is only possible is not reported if the other peer was reported, because the fault may
        have been forwarded.
        """
        direction = self.record.direction if self.spot is None else self.spot.direction
        peer = self.connection.peer(direction)
        what = f"{rule} {kind}" if kind else rule
        if (peer, what) in self.reported or (certainty != CERTAIN and self.was_reported(rule)):
            return
        self.reported |= {(peer, rule), (peer, what)}
        self.report(rule, message, certainty, evidence, others)


def _doubt_garbled(finding: Finding) -> None:
    finding.certain = False
    finding.evidence["garbled_in_doubt"] = True


def _doubt_boundary(finding: Finding) -> None:
    finding.certain = False
    finding.evidence["boundary_in_doubt"] = True
