"""The diagnoses of a capture: of each connection, and those that only several connections give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.connection import ConnectionDiagnosis
from amqpscope.diagnoses.several import ConnectedFact, Several
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord, FrameWatch

if TYPE_CHECKING:
    from amqpscope.tracking.events import Conversation

__all__ = ["CaptureDiagnoses", "ReceivedDiagnoses"]


class ReceivedDiagnoses:
    """What another process has made of a connection that is over.

    found: its diagnoses. facts: what it says for other connections, as `Several.connected` takes it.
    """

    def __init__(self, found: list[Diagnosis], facts: list[ConnectedFact]) -> None:
        self.found: list[Diagnosis] = found
        self.facts: list[ConnectedFact] = facts


class CaptureDiagnoses(FrameWatch):
    """Watches the connections of a capture, which is judged, too.

    limits: the configured limits, by `code.limit` as in `credit-none.seconds`. several: what the connections
    share, None for what is usual.
    """

    def __init__(self, limits: Mapping[str, float], several: Several | None = None) -> None:
        super().__init__()
        self.several: Several = several or Several(limits)
        self.watched: dict[Connection, ConnectionDiagnosis] = {}
        # The peers of each connection with findings against them.
        self.accused: dict[Connection, set[str]] = {}
        # What another process has made of connections that are over.
        self.received: dict[Connection, ReceivedDiagnoses] = {}
        self.last: ConnectionDiagnosis | None = None
        self.last_connection: Connection | None = None

    def watch(self, connection: Connection, conversation: Conversation | None = None) -> ConnectionDiagnosis:
        """What watches a connection. conversation: what follows it already, to be given at the first call."""
        if connection is self.last_connection and self.last is not None:
            return self.last
        watched = self.watched.get(connection)
        if watched is None:
            watched = ConnectionDiagnosis(connection, self.several, conversation)
            self.watched[connection] = watched
        self.last, self.last_connection = watched, connection
        return watched

    def of(self, connection: Connection) -> FrameWatch:
        return self.watch(connection)

    def add(self, record: FrameRecord) -> None:
        self.watch(record.connection).add(record)

    def judge(self, findings: list[Finding]) -> None:
        """Findings against peers of connections that are not over."""
        for finding in findings:
            self.accused.setdefault(finding.connection, set()).add(finding.peer)

    def end(self, analysis: ConnectionAnalysis) -> list[Diagnosis]:
        """A connection is over, and all its findings have come: its diagnoses, in the order of packets."""
        connection = analysis.connection
        analysis.watch = None
        self.last = self.last_connection = None
        received = self.received.pop(connection, None)
        if received is not None:
            self.accused.pop(connection, None)
            self.watched.pop(connection, None)
            for fact in received.facts:
                self.several.connected(*fact)
            return received.found
        watched = self.watched.pop(connection, None)
        if watched is None:
            watched = ConnectionDiagnosis(connection, self.several)
        return watched.finish(analysis, self.accused.pop(connection, set()))

    def finish(self) -> list[Diagnosis]:
        """All is read: the diagnoses that only several connections give."""
        return [one.diagnosis for one in self.several.churned()]
