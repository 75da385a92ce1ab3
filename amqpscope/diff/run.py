"""One capture, read to be compared: the story of each of its connections, and its findings by fingerprint."""

from collections.abc import Sequence
from typing import Any

from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.diff.forms import CanonicalFrameTable
from amqpscope.diff.transcript import KeptTranscript, Names, Room, Transcript
from amqpscope.input.capture import Capture
from amqpscope.input.diagnoses_work import plain_diagnosis
from amqpscope.limits import MAX_COMPARED_CONNECTIONS, MAX_DIFFERENCES
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.model.volatile import normalize_address
from amqpscope.policy.policy import Rulings
from amqpscope.protocols import PROTOCOLS
from amqpscope.report.links import LinkNames
from amqpscope.rules.fingerprint import fingerprint

__all__ = ["ComparedRun", "DiagnosisKey", "Found", "FoundDiagnosis"]

DiagnosisKey = tuple[str, str, str]
"""The code of a diagnosis, its subject without random parts, and who has to act: the same in both runs."""


class FoundDiagnosis:
    """A diagnosis, and how many there are with its key."""

    def __init__(self, first: Diagnosis) -> None:
        self.first = first
        self.count = 0


class Found:
    """A finding, and how many of its fingerprint there are. counts: one of them makes a difference."""

    def __init__(self, first: Finding) -> None:
        self.first = first
        self.count = 0
        self.counts = False


class ComparedRun:
    """What a capture holds. stories: of its connections with AMQP, in the order in which they began.

    encrypted: connections of which nothing can be read. left_out: those beyond the bound. findings: by
    fingerprint, the first of many; findings_left_out: how many are not among them. diagnoses: by their keys,
    the first of many.
    """

    def __init__(self, name: str, table: CanonicalFrameTable, rulings: Rulings) -> None:
        self.name = name
        self.stories: list[Transcript] = []
        self.frames = 0
        self.notes: list[Note] = []
        self.protocols: dict[str, int] = {}
        self.encrypted = 0
        self.left_out = 0
        self.findings: dict[str, Found] = {}
        self.findings_left_out = 0
        self.diagnoses: dict[DiagnosisKey, FoundDiagnosis] = {}
        self._watches = CaptureDiagnoses(rulings.policy.limits)
        self._rulings = rulings
        names, room = Names(), Room()
        self._links = LinkNames()
        self._transcripts = {
            protocol.name: protocol.transcripts(room, table, names, self._links)
            for protocol in PROTOCOLS.values()
        }
        self._known: dict[Connection, Transcript | None] = {}

    def read(self, capture: Capture) -> None:
        """Take all of a capture, which judges and keeps no connections."""
        capture.watch(self._watches)
        for records in capture.blocks():
            capture.each(records, self._take)
            self._find(capture.take_findings())
            for analysis in capture.take_ended():
                try:
                    self._diagnose(self._watches.end(analysis))
                except Exception as error:
                    capture.fail(analysis.connection, error)
        self._find(capture.take_findings())
        self._diagnose(self._watches.finish())
        for transcript in self.stories:
            transcript.finish()
        self._known.clear()
        self._transcripts.clear()
        self._links = LinkNames()
        self.notes = capture.notes
        self.protocols = capture.protocols

    def dump(self) -> tuple[Any, ...]:
        """All of it as values that another process can take. It was read to its end."""
        connections = {_name(one.connection): one.connection for one in self.stories}
        connections |= {_name(one.first.connection): one.first.connection for one in self.findings.values()}
        connections |= {_name(one.connection): one.connection for one in self.notes if one.connection}
        return (
            [one.dump() for one in connections.values()],
            [(_name(one.connection), one.kept()) for one in self.stories],
            [
                (mark, _name(one.first.connection), one.first.dump(), one.first.said, one.count, one.counts)
                for mark, one in self.findings.items()
            ],
            [(key, plain_diagnosis(one.first), one.count) for key, one in self.diagnoses.items()],
            [
                (
                    one.connection and _name(one.connection),
                    one.code,
                    int(one.packet),
                    int(one.time),
                    one.detail,
                )
                for one in self.notes
            ],
            (self.frames, self.protocols, self.encrypted, self.left_out, self.findings_left_out),
        )

    def restore(self, state: tuple[Any, ...], numbers: Sequence[int]) -> None:
        """Become what `dump` returned. numbers: in the table, by those in the other process's table."""
        dumped, stories, findings, diagnoses, notes, counts = state
        connections = {_name(one): one for one in map(Connection.load, dumped)}
        self.stories = [KeptTranscript(connections[name], kept, numbers) for name, kept in stories]
        for mark, name, finding, said, count, counted in findings:
            found = self.findings[mark] = Found(Finding.load(finding, connections[name]))
            found.first.said = said
            found.count, found.counts = count, counted
        for key, diagnosis, count in diagnoses:
            known = self.diagnoses[key] = FoundDiagnosis(Diagnosis(*diagnosis))
            known.count = count
        self.notes = [
            Note(code, packet, time, detail, connections.get(name))
            for name, code, packet, time, detail in notes
        ]
        self.frames, self.protocols, self.encrypted, self.left_out, self.findings_left_out = counts

    def _take(self, record: FrameRecord) -> None:
        self.frames += 1
        connection = record.connection
        if connection in self._known:
            transcript = self._known[connection]
        else:
            transcript = self._known[connection] = self._begin(connection)
            if transcript is not None:
                transcript.midstream = not record.started
        if transcript is None:
            return
        frame = record.frame
        if frame.kind == "skipped" and frame.missing:
            transcript.cut("octets are missing in the capture", int(record.packet))
        if transcript.over:
            self._links.forget(connection)
        elif not transcript.cut_for:
            transcript.take(record, self._links)
            if transcript.cut_for and transcript.cut_at < 0:
                transcript.cut_at = int(record.packet)
        transcript.frames += 1

    def _begin(self, connection: Connection) -> Transcript | None:
        """A connection appears."""
        if len(self.stories) >= MAX_COMPARED_CONNECTIONS:
            self.left_out += 1
            return None
        new = self._transcripts.get(connection.protocol)
        if new is None:
            return None
        transcript = new(connection)
        self.stories.append(transcript)
        return transcript

    def _diagnose(self, found: list[Diagnosis]) -> None:
        for one in found:
            key = (one.code, normalize_address(one.subject), one.whose_move)
            known = self.diagnoses.get(key)
            if known is None:
                if len(self.diagnoses) >= MAX_DIFFERENCES:
                    continue
                known = self.diagnoses[key] = FoundDiagnosis(one)
            known.count += 1

    def _find(self, found: list[Finding]) -> None:
        self._watches.judge(found)
        for finding in found:
            if not self._rulings.decide(finding):
                continue
            mark = fingerprint(finding)
            known = self.findings.get(mark)
            if known is None:
                if len(self.findings) >= MAX_DIFFERENCES:
                    self.findings_left_out += 1
                    continue
                known = self.findings[mark] = Found(finding)
            known.count += 1
            known.counts = known.counts or self._rulings.policy.counts(finding)


def _name(connection: Connection) -> tuple[int, int]:
    return connection.stream, connection.instance
