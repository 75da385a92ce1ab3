"""Gathers the summary and the diagnoses of a capture, connection by connection, while it is read."""

from collections.abc import Mapping

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import PEERS, Connection, FrameRecord
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.report.json_renderers import FORMS
from amqpscope.report.links import LinkNames
from amqpscope.report.summary import add_frame

__all__ = ["CaptureSummary"]


class CaptureSummary:
    """Gathers what the frames of a capture say, connection by connection, until it is taken.

    limits: the configured limits of diagnoses. diagnoses: what makes them.
    """

    def __init__(self, limits: Mapping[str, float]) -> None:
        self._names = LinkNames()
        self.diagnoses: CaptureDiagnoses = CaptureDiagnoses(limits)
        self.connections: dict[Connection, ConnectionOverview] = {}

    def add(self, record: FrameRecord) -> None:
        """Take one frame record."""
        connection = record.connection
        summary = self.connections.get(connection)
        watch = self.diagnoses.watch(connection, self._names.conversation(connection))
        if summary is None:
            summary = ConnectionOverview(connection, watch.conversation)
            watch.measure()
            self.connections[connection] = summary
        watch.prepare(record)
        link = self._names.of(record)
        watch.follow(record)
        add_frame(summary, record, link, FORMS.of(record.frame))

    def judge(self, findings: list[Finding]) -> None:
        """Findings, of connections that are not over."""
        self.diagnoses.judge(findings)

    def take(self, analysis: ConnectionAnalysis) -> tuple[ConnectionOverview | None, list[Diagnosis]]:
        """What the frames of a connection said, None if it had none, and its diagnoses.

        It is over: nothing is kept of it.
        """
        connection = analysis.connection
        self._names.forget(connection)
        known = self.connections.pop(connection, None)
        if known is not None:
            watched = self.diagnoses.watch(connection)
            known.numbers = watched.numbers
            transport = watched.transport
            for side, peer in enumerate(PEERS):
                known.of(peer).limit = int(transport.side(side).agreed)
        return known, self.diagnoses.end(analysis)

    def finish(self) -> list[Diagnosis]:
        """All connections are over: the diagnoses that only several of them give."""
        return self.diagnoses.finish()
