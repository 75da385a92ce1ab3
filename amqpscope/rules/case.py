"""What a rule of any protocol is given: a frame, and where to report.

A rule is a function of a `Case`, of its protocol's subclass. Its docstring is its documentation (what it is,
why it matters, when it is silent), its id stands beside it in the `RULES` of its file. Rules are called
directly, file by file, for the frames they are about: they run for every frame, compiled.
"""

from amqpscope.limits import MAX_GARBLED
from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord, FrameRef
from amqpscope.rules.judge import NO_RECORD
from amqpscope.tracking.clock import ClockStepGuard
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["Case"]


class Case:
    """One frame before the judge, or the end of a stream.

    connection: where it is. record: the frame; at the end of a stream there is none. spot: what findings
    point at if not at that frame. findings: what was found; found: how many since the frame came. astray: how
    much is unknown to the other peer since the frame, which names a session, a link, a channel or a delivery
    that does not exist, so that nobody knows which one its sender means; in the terms of the protocol, 0 for
    nothing. pace: how time went on so far. doubtful: one peer may have taken an RST that was not the other's,
    so that nothing is certain.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection = connection
        self.record: FrameRecord = NO_RECORD
        self.spot: FrameRef | None = None
        self.pace: ClockStepGuard = ClockStepGuard()
        self.findings: list[Finding] = []
        # What was reported by `report_once`: peer and rule; and peer, rule and kind.
        self.reported: set[tuple[str, str]] = set()
        self.found: i64 = 0
        self.astray: i64 = 0
        self.doubtful: bool = False
        # The newest frames that proved to be garbled: direction, offset, and offset behind.
        self.garbled: list[tuple[int, int, int]] = []

    def now(self) -> i64:
        """The time (ns) of what findings point at."""
        return self.record.time if self.spot is None else self.spot.time

    def place(self, finding: Finding) -> None:
        """Say where in the protocol's terms the finding is."""

    def report(
        self,
        rule: str,
        message: str,
        certainty: i64 = CERTAIN,
        evidence: dict[str, object] | None = None,
        others: list[int] | None = None,
        since: i64 = -1,
    ) -> None:
        """This frame breaks a rule. Without a certainty, whatever the peer did before.

        since: when the fault began (ns), if that was before the frame: from then on the other peer may
        react.
        """
        if certainty == LEGAL:
            return
        if self.doubtful:
            certainty = POSSIBLE
            evidence = {**(evidence or {}), "rst_in_doubt": True}
        spot = self.spot
        if spot is None:
            spot = FrameRef.of(self.record)
        elif self.connection.proxied and spot.is_end() and self.connection.peer(spot.direction) == CLIENT:
            # The end of the stream is the load balancer's, whatever the client wanted.
            certainty = POSSIBLE
        finding = Finding(rule, certainty, message, self.connection, spot, evidence or {}, others or [])
        if since >= 0:
            finding.since = since
        finding.read = self.record.acknowledged
        if self.garbled and finding.certain and self.rests_on_garbled(finding):
            _doubt_garbled(finding)
        self.place(finding)
        self.findings.append(finding)
        self.found += 1

    def misread(self, frame: Frame, direction: i64) -> None:
        """A frame is garbled: what its receiver did once it had a part of it may rest on that part."""
        if len(self.garbled) >= MAX_GARBLED:
            del self.garbled[0]
        self.garbled.append((int(direction), int(frame.offset), int(frame.offset + frame.declared_size)))
        for finding in self.findings:
            if finding.certain and finding.read > frame.offset and finding.spot.direction != direction:
                # So far nothing behind the frame was read, whatever its size is now taken to be.
                _doubt_garbled(finding)

    def rests_on_garbled(self, finding: Finding) -> bool:
        """Whether the peer at fault had received a part of a garbled frame, and not all of it."""
        read = finding.read
        sender = 1 - finding.spot.direction
        return any(direction == sender and offset < read < end for direction, offset, end in self.garbled)

    def was_told(self, rule: str) -> bool:
        """Whether `report_once` told of either peer that it breaks this rule."""
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
        """This frame breaks a rule that its sender breaks by habit: once a connection is enough.

        Once of each peer, and of each kind of the fault. What is only possible of a peer is not told if it
        was told of the other one: it may have been handed on.
        """
        direction = self.record.direction if self.spot is None else self.spot.direction
        peer = self.connection.peer(direction)
        what = f"{rule} {kind}" if kind else rule
        if (peer, what) in self.reported or (certainty != CERTAIN and self.was_told(rule)):
            return
        self.reported.add((peer, rule))
        self.reported.add((peer, what))
        self.report(rule, message, certainty, evidence, others)


def _doubt_garbled(finding: Finding) -> None:
    finding.certain = False
    finding.evidence["garbled_in_doubt"] = True
