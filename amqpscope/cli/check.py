"""`amqpscope check`: who broke which rule, where, in which state, with proof."""

import enum
import json
import sys
from typing import Annotated

import typer

from amqpscope.checking import Checker
from amqpscope.cli.output import note_lines, notes_to_stderr, painter, progress, say
from amqpscope.cli.read import capture_status, open_capture
from amqpscope.cli.status import Status, worst
from amqpscope.errors import CaptureError
from amqpscope.finding import Finding
from amqpscope.reading import Capture
from amqpscope.report.findings import FINDINGS_SCHEMA, finding_json
from amqpscope.report.printable import printable
from amqpscope.report.summary import connection_object
from amqpscope.report.timeline import Clock
from amqpscope.report.verdict import Verdicts
from amqpscope.rules.catalogue import severity

__all__ = ["EPILOG", "check"]

EPILOG = """\b
A finding is certain when the capture proves it, whatever the peer had read;
possible when it depends on what was still on its way. Only certain findings
count for the exit status, unless --fail-on-possible is given.

\b
Examples:
  amqpscope check traffic.pcap
  amqpscope check --format ndjson traffic.pcap | jq .rule
  amqpscope check --fail-on warning --fail-on-possible traffic.pcap

\b
Exit status: 0 fine, 1 findings, 2 a failure (unreadable file, unknown
option), 3 no AMQP 1.0 to check, or only encrypted, 130 interrupted.
"""


class Format(enum.StrEnum):
    """Forms of output."""

    text = "text"
    json = "json"
    ndjson = "ndjson"


class FailOn(enum.StrEnum):
    """From which severity on findings make the exit status 1."""

    error = "error"
    warning = "warning"
    note = "note"
    never = "never"


_COUNTING = {
    FailOn.error: ("error",),
    FailOn.warning: ("error", "warning"),
    FailOn.note: ("error", "warning", "note"),
    FailOn.never: (),
}


def check(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Captures, pcap or pcapng; - is standard input.")
    ],
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="text|json|ndjson",
            show_default=False,
            help="text; ndjson: one JSON object a finding and line; json: one object with all.",
        ),
    ] = Format.text,
    most: Annotated[
        int,
        typer.Option(
            "--max-per-rule", min=1, metavar="N", help="Findings of one rule shown in text, by peer."
        ),
    ] = 3,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            "--fail-on", metavar="error|warning|note|never", help="Exit with 1 from this severity on."
        ),
    ] = FailOn.error,
    fail_on_possible: Annotated[
        bool, typer.Option("--fail-on-possible", help="Possible findings count, too.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="As --fail-on warning --fail-on-possible.")
    ] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Exit with 0 also if there is no AMQP 1.0 to check.")
    ] = False,
) -> int:
    """Show who broke which rule of the specification, where, and in which state."""
    if strict:
        fail_on = FailOn.warning
        fail_on_possible = True
    counting = _COUNTING[fail_on]
    writer = _TextWriter(most) if form is Format.text else _JsonWriter(form is Format.json)
    statuses = []
    for path in paths:
        try:
            with open_capture(path) as capture:
                findings = _findings(capture, context=form is Format.text)
                writer.write(capture, findings)
                failed = any(
                    severity(finding.rule) in counting and (finding.certain or fail_on_possible)
                    for finding in findings
                )
                statuses.append(Status.FINDINGS if failed else capture_status(capture, allow_empty))
        except CaptureError as error:
            sys.stdout.flush()
            say(str(error))
            statuses.append(Status.FAILURE)
    writer.end()
    return worst(statuses)


def _findings(capture: Capture, context: bool) -> list[Finding]:
    checker = Checker(context)
    with progress(capture, streaming=False) as meter:
        for records in capture.blocks():
            checker.take(records)
            meter.update()
    checker.finish(capture.connections)
    return checker.findings


class _TextWriter:
    """Findings for people."""

    def __init__(self, most: int) -> None:
        self._painter, _ = painter()
        self._most = most

    def write(self, capture: Capture, findings: list[Finding]) -> None:
        """All of one capture."""
        print(f"{printable(capture.name)}: {_counted(findings)}")
        for line, hang in Verdicts(Clock("r"), self._most).lines(findings):
            print(self._painter.paint(line, hang))
        for text in note_lines(capture.notes):
            print(self._painter.paint([("note", f"note: {printable(text)}")], 6))

    def end(self) -> None:
        """All captures are written."""


class _JsonWriter:
    """Findings for programs."""

    def __init__(self, whole: bool) -> None:
        self._whole = whole
        self._findings: list[str] = []
        self._connections: list[dict[str, object]] = []
        self._captures: list[dict[str, object]] = []

    def write(self, capture: Capture, findings: list[Finding]) -> None:
        """All of one capture."""
        lines = [finding_json(finding, capture.name) for finding in findings]
        if not self._whole:
            for line in lines:
                print(line)
            notes_to_stderr(capture.name, capture.notes)
            return
        self._findings += lines
        self._connections += [
            connection_object(analysis, None) | {"capture": capture.name}
            for analysis in capture.connections
            if analysis.connection.frames
        ]
        notes = [
            {"code": note.code, "packet": int(note.packet), "detail": note.detail} for note in capture.notes
        ]
        self._captures.append({"capture": capture.name, "notes": notes})

    def end(self) -> None:
        """All captures are written."""
        if self._whole:
            findings = ",\n".join(self._findings)
            print(
                f'{{"schema": "{FINDINGS_SCHEMA}", "findings": [\n{findings}\n], '
                f'"connections": {json.dumps(self._connections)}, "captures": {json.dumps(self._captures)}}}'
            )


def _counted(findings: list[Finding]) -> str:
    if not findings:
        return "nothing found"
    counts: dict[str, int] = {}
    for finding in findings:
        name = severity(finding.rule) if finding.certain else f"possible {severity(finding.rule)}"
        counts[name] = counts.get(name, 0) + 1
    order = ("error", "possible error", "warning", "possible warning", "note", "possible note")
    return ", ".join(
        f"{counts[name]} {name}{'s' if counts[name] > 1 else ''}" for name in order if name in counts
    )
