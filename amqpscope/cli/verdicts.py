"""Two of the forms in which `amqpscope check` writes findings: text for people, and JSON."""

import json
import sys
from typing import Any, TextIO

from amqpscope.cli.output import notes_to_stderr, painter, plain_painter
from amqpscope.finding import Finding
from amqpscope.note import Note
from amqpscope.reading import Capture
from amqpscope.report.findings import FINDINGS_SCHEMA, finding_json
from amqpscope.report.notes import note_lines
from amqpscope.report.outcome import outcome
from amqpscope.report.painter import Painter
from amqpscope.report.printable import printable
from amqpscope.report.summary import connection_object
from amqpscope.report.summary_text import count
from amqpscope.report.timeline import Clock
from amqpscope.report.verdict import Tally, Verdicts
from amqpscope.report.writer import Writer

__all__ = ["JsonWriter", "TextWriter"]

# The file is not all there, or not all of it could be made out.
_PARTIAL = ("capture/truncated", "capture/corrupt", "capture/compression")


class TextWriter(Writer):
    """Findings for people: by connection, when the capture has ended."""

    context = True
    streaming = False

    def __init__(self, out: TextIO, most: int) -> None:
        self._out = out
        self._painter: Painter = painter()[0] if out is sys.stdout else plain_painter(out)
        self._most = most
        self._name = ""
        self._capture: Capture | None = None
        self._clock = Clock("r")
        self._verdicts = Verdicts(self._clock, most)
        # Over all captures.
        self._captures = 0
        self._with_findings = 0
        self._empty = 0
        self._failed = 0
        self._total = Tally()

    def begin(self, path: str) -> None:
        self._name = path
        self._capture = None
        self._clock = Clock("r")
        self._verdicts = Verdicts(self._clock, self._most)

    def opened(self, capture: Capture) -> None:
        self._name = capture.name
        self._capture = capture

    def take(self, findings: list[Finding]) -> None:
        for finding in findings:
            self._verdicts.add(finding)

    def finish(self, capture: Capture, nothing: str) -> None:
        self._write(capture, "")

    def fail(self, reason: str) -> None:
        reason = reason.removeprefix(f"{self._name}: ")
        self._failed += 1
        if self._capture is not None and self._capture.frames:
            self._write(self._capture, reason)
        else:
            self._captures += 1

    def _write(self, capture: Capture, reason: str) -> None:
        """All of one capture. reason: why it was not read to its end, or ""."""
        if self._captures:
            self._print([], 0)
        self._captures += 1
        self._clock.start(capture.began)
        tally = self._verdicts.tally
        self._total.merge(tally)
        self._with_findings += bool(tally.counts)
        self._empty += not (capture.frames or tally.counts or reason)
        what = outcome(capture, tally, reason)
        self._print([("rule", f"{printable(self._name)}: {what}")], 4)
        for line, hang in self._verdicts.lines():
            self._print(line, hang)
        for text in note_lines(capture.notes):
            self._print([("note", f"note: {printable(text)}")], 6)
        self._out.flush()

    def end(self) -> None:
        if self._captures < 2:
            return
        parts = [self._total.text() or "nothing wrong found"]
        if self._with_findings:
            parts[0] += f" in {self._with_findings} of them"
        if self._empty:
            parts.append(f"{self._empty} without AMQP 1.0 to check")
        if self._failed:
            parts.append(f"{self._failed} not read, or not to the end")
        self._print([], 0)
        self._print([("rule", f"{count(self._captures, 'capture')}: {'; '.join(parts)}")], 4)
        self._out.flush()

    def _print(self, line: list[tuple[str, str]], hang: int) -> None:
        self._out.write(self._painter.paint(line, hang) + "\n")


class JsonWriter(Writer):
    """Findings for programs: a line each, or all of them in one object with connections and captures."""

    def __init__(self, out: TextIO, whole: bool) -> None:
        self._out = out
        self._whole = whole
        self.connections = whole
        self._name = ""
        self._capture: Capture | None = None
        self._first = True
        self._connections: list[dict[str, Any]] = []
        self._captures: list[dict[str, Any]] = []
        self._begun = False

    def begin(self, path: str) -> None:
        self._name = path
        self._capture = None
        if self._whole and not self._begun:
            self._begun = True
            self._out.write(f'{{"schema": "{FINDINGS_SCHEMA}", "findings": [')

    def opened(self, capture: Capture) -> None:
        self._name = capture.name
        self._capture = capture

    def take(self, findings: list[Finding]) -> None:
        if not findings:
            return
        # One by one: a peer can make hundreds of thousands of faults in one block of a file.
        for finding in findings:
            line = finding_json(finding, self._name)
            if self._whole:
                self._out.write(("\n" if self._first else ",\n") + line)
                self._first = False
            else:
                self._out.write(line + "\n")
        if not self._whole:
            self._out.flush()

    def finish(self, capture: Capture, nothing: str) -> None:
        partial = next((note for note in capture.notes if note.code in _PARTIAL), None)
        if partial is None:
            self._ended("ok", None)
        else:
            self._ended("partial", f"{partial.code}: {partial.detail}")

    def fail(self, reason: str) -> None:
        capture = self._capture
        reason = reason.removeprefix(f"{self._name}: ")
        begun = capture is not None and bool(capture.protocols or capture.spoken)
        self._ended("partial" if begun else "unreadable", reason)

    def _ended(self, status: str, reason: str | None) -> None:
        capture = self._capture
        notes = capture.notes if capture is not None else []
        if not self._whole:
            if self._out is sys.stdout:
                notes_to_stderr(self._name, notes)
            return
        if capture is not None:
            self._connections += [
                {"capture": self._name, **connection_object(analysis, None)}
                for analysis in capture.connections
                if analysis.connection.frames
            ]
        self._captures.append(
            {
                "capture": self._name,
                "size": None if capture is None else capture.size,
                "status": status,
                "reason": reason,
                "protocols": {} if capture is None else _protocols(capture),
                "notes": [_note_object(note) for note in notes],
            }
        )

    def end(self) -> None:
        if self._whole:
            connections = ",\n".join(json.dumps(one) for one in self._connections)
            captures = ",\n".join(json.dumps(one) for one in self._captures)
            self._out.write(f'\n], "connections": [\n{connections}\n], "captures": [\n{captures}\n]}}\n')
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
