"""Findings for programs, in one JSON object with the connections and the captures."""

import json
from typing import Any, Final, TextIO

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.input.capture import Capture
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note
from amqpscope.model.records import Connection
from amqpscope.policy.baseline import known_object
from amqpscope.policy.config_finding import RunConclusion
from amqpscope.policy.judging import PARTIAL
from amqpscope.report.backlog import Backlog
from amqpscope.report.findings import FINDINGS_SCHEMA, finding_json, remark_object
from amqpscope.report.forms import ReportForm, ReportOptions
from amqpscope.report.summary import connection_object
from amqpscope.report.writer import FindingWriter

__all__ = ["FORM"]


class JsonWriter(FindingWriter):
    """One object. Findings are written as they come; what waits for the end is in a `Backlog`."""

    connections = True
    diagnoses = True

    def __init__(self, out: TextIO, _: ReportOptions) -> None:
        super().__init__()
        self._out = out
        self._first = True
        self._connections = Backlog()
        self._diagnoses = Backlog()
        self._captures: list[dict[str, Any]] = []
        self._fixed: list[dict[str, Any]] = []
        self._begun = False

    def begin(self, path: str) -> None:
        super().begin(path)
        if not self._begun:
            self._begun = True
            self._out.write(f'{{"schema": "{FINDINGS_SCHEMA}", "findings": [')

    def add(self, finding: Finding) -> None:
        # One by one: a peer can make hundreds of thousands of faults in one block of a file.
        self._write(finding_json(finding, self.name))

    def over(self, analyses: list[ConnectionAnalysis]) -> None:
        for analysis in analyses:
            if analysis.connection.frames:
                reported = {"capture": self.name, **connection_object(analysis, None)}
                self._connections.put(len(self._captures) << 32 | analysis.order, json.dumps(reported))

    def diagnosed(self, found: list[Diagnosis], order: int, connection: Connection | None) -> None:
        for one in found:
            self._diagnoses.put(len(self._captures) << 32 | order, json.dumps(one.json()))

    def conclude(self, closing: RunConclusion) -> None:
        for remark in closing.remarks:
            self._write(json.dumps(remark_object(remark)))
        self._fixed = [known_object(known) for known in closing.fixed]

    def _write(self, line: str) -> None:
        self._out.write(("\n" if self._first else ",\n") + line)
        self._first = False

    def close(self, nothing: str, reason: str) -> None:
        capture = self.capture
        status = "ok"
        if reason:
            begun = capture is not None and bool(capture.protocols or capture.spoken)
            status = "partial" if begun else "unreadable"
        else:
            partial = next((note for note in self.notes if note.code in PARTIAL), None)
            if partial is not None:
                status, reason = "partial", f"{partial.code}: {partial.detail}"
        self._captures.append(
            {
                "capture": self.name,
                "size": None if capture is None else capture.size,
                "status": status,
                "reason": reason or None,
                "protocols": {} if capture is None else _protocols(capture),
                "ignored": self.ignored,
                "notes": [_note_object(note) for note in self.notes],
            }
        )

    def end(self) -> None:
        captures = ",\n".join(json.dumps(one) for one in self._captures)
        fixed = ",\n".join(json.dumps(one) for one in self._fixed)
        self._out.write('\n], "connections": [\n')
        between = ""
        for _, connection in self._connections:
            self._out.write(between + connection)
            between = ",\n"
        self._connections.close()
        self._out.write('\n], "diagnoses": [\n')
        between = ""
        for _, diagnosis in self._diagnoses:
            self._out.write(between + diagnosis)
            between = ",\n"
        self._diagnoses.close()
        self._out.write(f'\n], "captures": [\n{captures}\n], "fixed": [\n{fixed}\n]}}\n')
        self._out.flush()


FORM: Final = ReportForm("one JSON object with the whole report", JsonWriter, (".json",), shows_fixed=True)


def _protocols(capture: Capture) -> dict[str, int]:
    """How many TCP connections spoke each protocol; `none` those without data."""
    return {name or "none": int(number) for name, number in capture.protocols.items()}


def _note_object(note: Note) -> dict[str, Any]:
    return {
        "code": note.code,
        "severity": "note",
        "packet": int(note.packet) or None,
        "connection": None if note.connection is None else note.connection.id,
        "detail": note.detail,
    }
