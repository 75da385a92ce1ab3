"""Two of the forms in which `amqpscope check` writes findings: text for people, and JSON."""

import json
import sys
from typing import Any, TextIO

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.cli.output import notes_to_stderr, painter, plain_painter, say
from amqpscope.input.capture import Capture
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note
from amqpscope.policy.baseline import known_object
from amqpscope.policy.config_finding import RunConclusion
from amqpscope.policy.judging import PARTIAL
from amqpscope.report.backlog import Backlog
from amqpscope.report.findings import FINDINGS_SCHEMA, finding_json, remark_object
from amqpscope.report.painter import Painter
from amqpscope.report.printable import printable
from amqpscope.report.summary import connection_object
from amqpscope.report.summary_text import count
from amqpscope.report.suppressed import Suppressed, fixed_lines
from amqpscope.report.timeline import Clock
from amqpscope.report.verdict import STYLES, FindingCounts, Verdicts
from amqpscope.report.writer import FindingWriter

__all__ = ["FindingsJsonWriter", "TextWriter"]


class TextWriter(FindingWriter):
    """Findings for people: by connection, when the capture has ended."""

    context = True
    streaming = False

    def __init__(self, out: TextIO, most: int) -> None:
        super().__init__()
        self._out = out
        self._painter: Painter = painter()[0] if out is sys.stdout else plain_painter(out)
        self._most = most
        self._clock = Clock("r")
        self._verdicts = Verdicts(self._clock, most)
        # Over all captures.
        self._captures = 0
        self._with_findings = 0
        self._empty = 0
        self._failed = 0
        self._total = FindingCounts()
        self._others = Suppressed()
        self._ignored = 0

    def begin(self, path: str) -> None:
        super().begin(path)
        self._clock = Clock("r")
        self._verdicts = Verdicts(self._clock, self._most)

    def add(self, finding: Finding) -> None:
        if not finding.assessment.suppressed_by:
            self._verdicts.add(finding)

    def close(self, nothing: str, reason: str) -> None:
        self._failed += bool(reason)
        capture = self.capture
        if capture is not None and (capture.frames or not reason):
            self._empty += bool(nothing) and not (self.tally.counts or reason)
            self._write(capture, reason)
        else:
            self._captures += 1

    def _write(self, capture: Capture, reason: str) -> None:
        """All of one capture. reason: why it was not read to its end, or ""."""
        if self._captures:
            self._print([], 0)
        self._captures += 1
        self._clock.start(capture.began)
        self._total.merge(self.tally)
        self._others.merge(self.set_aside.numbers)
        self._ignored += self.ignored
        self._with_findings += bool(self.tally.counts)
        self._print([("rule", f"{printable(self.name)}: {self.outcome(reason)}")], 4)
        for line, hang in self._verdicts.lines():
            self._print(line, hang)
        for text in self.remarks():
            self._print([("note", printable(text))], 6)
        self._out.flush()

    def conclude(self, closing: RunConclusion) -> None:
        if closing.remarks or closing.fixed:
            self._print([], 0)
        for text in fixed_lines(closing):
            self._print([("note", printable(text))], 6)
        for remark in closing.remarks:
            line = [
                (STYLES[remark.severity], f"{remark.severity} {remark.rule}"),
                ("", printable(f" in {remark.place}: {remark.message}")),
            ]
            self._print(line, 4)
        self._out.flush()

    def end(self) -> None:
        if self._captures < 2:
            return
        clean = "nothing to check" if self._empty == self._captures else "nothing wrong found"
        parts = [self._total.text() or clean]
        if self._with_findings:
            parts[0] += f" in {self._with_findings} of them"
        parts += self._others.parts()
        if self._ignored:
            parts.append(f"{count(self._ignored, 'finding')} ignored")
        if 0 < self._empty < self._captures:
            parts.append(f"{self._empty} without AMQP 1.0 or 0-9-1 to check")
        if self._failed:
            parts.append(f"{self._failed} not read, or not to the end")
        self._print([], 0)
        self._print([("rule", f"{count(self._captures, 'capture')}: {'; '.join(parts)}")], 4)
        self._out.flush()

    def _print(self, line: list[tuple[str, str]], hang: int) -> None:
        self._out.write(self._painter.paint(line, hang) + "\n")


class FindingsJsonWriter(FindingWriter):
    """Findings for programs: a line each, or all of them in one object with connections and captures."""

    def __init__(self, out: TextIO, whole: bool) -> None:
        super().__init__()
        self._out = out
        self._whole = whole
        self.connections = whole
        self._first = True
        self._connections = Backlog()
        self._captures: list[dict[str, Any]] = []
        self._fixed: list[dict[str, Any]] = []
        self._begun = False

    def begin(self, path: str) -> None:
        super().begin(path)
        if self._whole and not self._begun:
            self._begun = True
            self._out.write(f'{{"schema": "{FINDINGS_SCHEMA}", "findings": [')

    def take(self, findings: list[Finding]) -> None:
        super().take(findings)
        if findings and not self._whole:
            self._out.flush()

    def add(self, finding: Finding) -> None:
        # One by one: a peer can make hundreds of thousands of faults in one block of a file.
        self._write(finding_json(finding, self.name))

    def over(self, analyses: list[ConnectionAnalysis]) -> None:
        if not self._whole:
            return
        for analysis in analyses:
            if analysis.connection.frames:
                reported = {"capture": self.name, **connection_object(analysis, None)}
                self._connections.put(len(self._captures) << 32 | analysis.order, json.dumps(reported))

    def conclude(self, closing: RunConclusion) -> None:
        for remark in closing.remarks:
            self._write(json.dumps(remark_object(remark)))
        self._fixed = [known_object(known) for known in closing.fixed]

    def _write(self, line: str) -> None:
        if self._whole:
            self._out.write(("\n" if self._first else ",\n") + line)
            self._first = False
        else:
            self._out.write(line + "\n")

    def close(self, nothing: str, reason: str) -> None:
        capture = self.capture
        if not self._whole:
            if self._out is sys.stdout:
                notes_to_stderr(self.name, self.notes)
                if self.ignored:
                    say(f"{self.name}: {count(self.ignored, 'finding')} ignored")
            return
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
        if self._whole:
            captures = ",\n".join(json.dumps(one) for one in self._captures)
            fixed = ",\n".join(json.dumps(one) for one in self._fixed)
            self._out.write('\n], "connections": [\n')
            between = ""
            for _, connection in self._connections:
                self._out.write(between + connection)
                between = ",\n"
            self._connections.close()
            self._out.write(f'\n], "captures": [\n{captures}\n], "fixed": [\n{fixed}\n]}}\n')
            self._out.flush()


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
