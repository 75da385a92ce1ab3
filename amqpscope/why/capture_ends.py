"""Follows the connections of a capture, and gives why what was on them ended, with the diagnoses of each."""

from collections.abc import Callable
from typing import Final, NamedTuple

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.input.capture import Capture
from amqpscope.input.replay import ReplayableCapture
from amqpscope.limits import MAX_ENDED_CONNECTIONS
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.protocols import protocol_of
from amqpscope.report.close_causes import CloseCauses
from amqpscope.report.diagnosis_text import is_trouble
from amqpscope.report.line import Line
from amqpscope.report.outcome import nothing_to
from amqpscope.report.summary_text import connection_lines
from amqpscope.why.diagnosed import explain_endings
from amqpscope.why.endings import Ending, Following
from amqpscope.why.tracing import Tracing

__all__ = ["CaptureEnds", "ConnectionEnds", "ends_of"]

_FINDINGS: Final = 2000
"""Findings of a connection that are kept, the first, to trace ends to."""


class ConnectionEnds(NamedTuple):
    """One connection: what ended on it, and its diagnoses that explain none of these ends.

    facts: what is seen of a connection in TLS of which no frame was read.
    """

    following: Following
    endings: list[Ending]
    beside: list[Diagnosis]
    facts: list[Line]


class CaptureEnds(NamedTuple):
    """A capture: its connections, the first of too many; how many more there are; the diagnoses of other
    connections; why there is no AMQP in it that could be explained, "" if there is."""

    connections: list[ConnectionEnds]
    more: int
    others: list[Diagnosis]
    nothing: str


class _Followed:
    """The connections that are followed, and what is found about them."""

    def __init__(self, wanted: Callable[[Connection], bool]) -> None:
        self.wanted = wanted
        self.connections: dict[Connection, Following] = {}
        self.causes: dict[Connection, CloseCauses] = {}
        self.findings: dict[Connection, list[Finding]] = {}
        # Of all connections that are wanted, by their ids.
        self.diagnoses: dict[str, list[Diagnosis]] = {}
        # Of connections in TLS without a frame.
        self.facts: dict[Connection, list[Line]] = {}
        self.spoke = 0
        self._watches = CaptureDiagnoses({})

    def take(self, record: FrameRecord) -> None:
        """The next frame."""
        self._watches.add(record)
        connection = record.connection
        following = self.connections.get(connection)
        if following is None:
            if len(self.connections) >= MAX_ENDED_CONNECTIONS or not self.wanted(connection):
                return
            protocol = protocol_of(connection.protocol)
            following = protocol.following(connection)
            self.connections[connection] = following
            self.causes[connection] = protocol.close_causes()
        following.take(record)
        self.causes[connection].see(record)

    def _take_sealed(self, analysis: ConnectionAnalysis) -> None:
        """A connection in TLS of which no frame was read."""
        connection = analysis.connection
        if len(self.connections) < MAX_ENDED_CONNECTIONS:
            self.connections[connection] = Following(connection)
            self.causes[connection] = CloseCauses()
            self.facts[connection] = connection_lines(analysis, None, None)[3:]

    def judge(self, findings: list[Finding]) -> None:
        """The next findings."""
        self._watches.judge(findings)
        for finding in findings:
            if finding.connection in self.connections:
                kept = self.findings.setdefault(finding.connection, [])
                if len(kept) < _FINDINGS:
                    kept.append(finding)

    def over(self, analysis: ConnectionAnalysis) -> None:
        """A connection is over."""
        connection = analysis.connection
        diagnoses = self._watches.end(analysis)
        if not self.wanted(connection):
            return
        self._diagnose(diagnoses)
        if connection.tls is not None and not connection.frames:
            self._take_sealed(analysis)
        if connection.frames or connection.tls is not None:
            self.spoke += 1
            if connection in self.connections:
                self.connections[connection].over(analysis)

    def finish(self) -> None:
        """All connections are over."""
        wanted = {connection.id for connection in self.connections}
        self._diagnose([one for one in self._watches.finish() if one.connection in wanted])

    def _diagnose(self, found: list[Diagnosis]) -> None:
        for one in found:
            if one.connection in self.diagnoses or len(self.diagnoses) < MAX_ENDED_CONNECTIONS:
                self.diagnoses.setdefault(one.connection, []).append(one)

    def traced(self, capture: Capture) -> list[ConnectionEnds]:
        """Of each connection why things ended on it. Takes its diagnoses."""
        found = []
        for connection, following in self.connections.items():
            try:
                causes = self.causes[connection].reported()
                endings = Tracing(following, self.findings.get(connection, []), causes).endings()
                diagnoses = self.diagnoses.pop(connection.id, [])
                found.append(
                    ConnectionEnds(
                        following,
                        *explain_endings(endings, following.stream_end, diagnoses),
                        self.facts.get(connection, []),
                    )
                )
            except Exception as error:
                capture.fail(connection, error)
        return found


def ends_of(material: ReplayableCapture, wanted: Callable[[Connection], bool]) -> CaptureEnds:
    """Of each connection that is wanted and spoke: what ended on it, the connection first.

    Raises CaptureError for what cannot be read.
    """
    followed = _Followed(wanted)
    with material.capture(judge=True, ended=True) as capture:
        for records in capture.blocks():
            capture.each(records, followed.take)
            followed.judge(capture.take_findings())
            for analysis in capture.take_ended():
                try:
                    followed.over(analysis)
                except Exception as error:
                    capture.fail(analysis.connection, error)
        followed.finish()
        nothing = nothing_to(capture, "explain")
    found = followed.traced(capture)
    others = [one for several in followed.diagnoses.values() for one in several if is_trouble(one)]
    return CaptureEnds(found, followed.spoke - len(followed.connections), others, nothing)
