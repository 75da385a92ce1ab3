"""The first reading of a capture that is drawn: what is wrong in it, and which connections show it."""

import heapq
from pathlib import PurePath
from typing import Final, Protocol

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.input.capture import Capture
from amqpscope.limits import MAX_DRAWN_CONNECTIONS, MAX_DRAWN_FINDINGS
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.report.capture_summary import CaptureSummary
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.report.diagnosis_text import diagnosis_line, worst_first
from amqpscope.report.finding_counts import urgency
from amqpscope.report.ladder_model import Remark
from amqpscope.report.notes import note_lines
from amqpscope.report.outcome import nothing_to
from amqpscope.report.printable import printable
from amqpscope.report.summary_table import ConnectionFindings, SummaryRow
from amqpscope.report.triage import Triage, TroubleSentence
from amqpscope.rules.profiles import weight
from dissectors.wording import are, count

__all__ = ["ConnectionKey", "Survey", "SurveyedConnection", "Surveyor", "connection_key", "survey"]

_SENTENCES: Final = 3
"""Troubles that the overview names."""

ConnectionKey = tuple[int, int]


def connection_key(connection: Connection) -> ConnectionKey:
    """What a connection is known by in each reading of the capture."""
    return int(connection.stream), int(connection.instance)


class _Gathered:
    """The findings of a connection that is not over: how many, and those that are kept to be drawn."""

    def __init__(self) -> None:
        self.counts = ConnectionFindings()
        self.kept: list[Finding] = []
        self.more = 0

    def add(self, finding: Finding) -> None:
        """One more finding. Notes are only counted."""
        self.counts.add(finding)
        if weight(finding) == "note":
            return
        if len(self.kept) < MAX_DRAWN_FINDINGS:
            self.kept.append(finding)
        else:
            self.more += 1


class SurveyedConnection:
    """A connection that is worth drawing. row: who and how it ended. findings, diagnoses: the worst first.

    more_findings: how many findings are not kept, because there are too many.
    """

    def __init__(
        self, connection: Connection, row: SummaryRow, found: _Gathered, diagnoses: list[Diagnosis]
    ) -> None:
        self.connection = connection
        self.key = connection_key(connection)
        self.row = row
        self.findings = sorted(found.kept, key=urgency)
        self.more_findings = found.more
        self.diagnoses = worst_first(diagnoses)

    @property
    def order(self) -> tuple[int, tuple[int, bool, int], int]:
        """The worst connection first."""
        first = urgency(self.findings[0]) if self.findings else (99, True, 0)
        return self.row.rank, first, self.row.order

    @property
    def remarks(self) -> list[Remark]:
        """The diagnoses, as rows of the ladder; and how many findings are not kept."""
        found = [
            Remark("".join(text for _, text in diagnosis_line(one)), one.packet, one.seconds)
            for one in self.diagnoses
        ]
        if self.more_findings:
            more = f"{count(self.more_findings, 'more finding')} {are(self.more_findings)} not drawn"
            found.append(Remark(f"{more}: amqpscope check lists them", 0))
        return found

    @property
    def packets(self) -> frozenset[int]:
        """The packets that diagnoses name."""
        found = [(one.packet, one.ended_packet, *one.packets) for one in self.diagnoses]
        return frozenset(packet for packets in found for packet in packets if packet)

    def __lt__(self, other: "SurveyedConnection") -> bool:
        # For the heap, of which the best connection leaves first.
        return self.order > other.order


class Survey:
    """What a capture has. name, title: what it is called, with and without its folder.

    sentences: what is wrong. connections: those kept, the worst first; more: how many others. notes: about
    the capture itself. octets: of all frames. frames: how many. began: the time (ns) of the first frame.
    nothing: why there is nothing to draw, "" if there is something.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.title = printable(PurePath(name).name)
        self.sentences: list[TroubleSentence] = []
        self.connections: list[SurveyedConnection] = []
        self.more = 0
        self.notes: list[str] = []
        self.octets = 0
        self.frames = 0
        self.began = 0
        self.nothing = ""


class ConnectionFilter(Protocol):
    """Which connections are worth keeping."""

    def takes(self, connection: Connection) -> bool:
        """Whether a connection is wanted."""


class Surveyor:
    """Takes what a capture gives while it is read, until `finish`. wanted, packet: as of `survey`."""

    def __init__(self, name: str, wanted: ConnectionFilter | None = None, packet: int = 0) -> None:
        self.survey = Survey(name)
        self._wanted = wanted
        self._packet = packet
        # The connection of the packet.
        self._of_packet: Connection | None = None
        self._summary = CaptureSummary({})
        self._triage = Triage(PurePath(name).name, "")
        self._findings: dict[Connection, _Gathered] = {}
        self._worst: list[SurveyedConnection] = []

    def add(self, record: FrameRecord) -> None:
        """The next frame."""
        self.survey.octets += int(record.frame.size)
        if record.packet == self._packet:
            self._of_packet = record.connection
        self._summary.add(record)

    def judge(self, findings: list[Finding]) -> None:
        """Findings, of connections that are not over."""
        self._summary.judge(findings)
        self._triage.judge(findings)
        for finding in findings:
            gathered = self._findings.get(finding.connection)
            if gathered is None:
                gathered = self._findings[finding.connection] = _Gathered()
            gathered.add(finding)

    def over(
        self, capture: Capture, analysis: ConnectionAnalysis, diagnoses: list[Diagnosis] | None = None
    ) -> None:
        """A connection is over. diagnoses: its diagnoses, None for those that the survey makes itself."""
        try:
            self._end(analysis, diagnoses)
        except Exception as error:
            capture.fail(analysis.connection, error)

    def _end(self, analysis: ConnectionAnalysis, reported: list[Diagnosis] | None) -> None:
        connection = analysis.connection
        known, made = self._summary.take(analysis)
        diagnoses = made if reported is None else reported
        self._triage.over(analysis, known, diagnoses)
        found = self._findings.pop(connection, None) or _Gathered()
        if known is None:
            return
        taken = self._wanted is None or self._wanted.takes(connection)
        if not taken or (self._packet and connection is not self._of_packet):
            self.survey.more += 1
        else:
            self._keep(analysis, known, found, diagnoses)

    def _keep(
        self,
        analysis: ConnectionAnalysis,
        known: ConnectionOverview,
        found: _Gathered,
        diagnoses: list[Diagnosis],
    ) -> None:
        """Keep a connection if it is among the worst."""
        row = SummaryRow(analysis, known, found.counts, diagnoses)
        heapq.heappush(self._worst, SurveyedConnection(analysis.connection, row, found, diagnoses))
        if len(self._worst) > MAX_DRAWN_CONNECTIONS:
            heapq.heappop(self._worst)
            self.survey.more += 1

    def finish(self, capture: Capture, diagnoses: list[Diagnosis] | None = None) -> Survey:
        """All was read. diagnoses: those about several connections, None for those that the survey makes."""
        survey = self.survey
        self._triage.finish(self._summary.finish() if diagnoses is None else diagnoses)
        survey.nothing = nothing_to(capture, "draw")
        survey.sentences = self._triage.sentences(capture, _SENTENCES)
        survey.connections = sorted(self._worst, key=lambda one: one.order)
        survey.notes = [printable(one.text) for one in note_lines(capture.notes)]
        survey.frames = capture.frames
        survey.began = capture.began
        return survey


def survey(capture: Capture, wanted: ConnectionFilter | None = None, packet: int = 0) -> Survey:
    """Read a capture to its end. It judges, and gives the connections that are over. Raises CaptureError.

    wanted: keeps only these connections. packet: keeps only the connection with a frame that begins in this
    packet; 0 for all.
    """
    surveyor = Surveyor(capture.name, wanted, packet)
    for records in capture.blocks():
        capture.each(records, surveyor.add)
        surveyor.judge(capture.take_findings())
        for analysis in capture.take_ended():
            surveyor.over(capture, analysis)
    return surveyor.finish(capture)
