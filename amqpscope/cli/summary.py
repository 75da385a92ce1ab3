"""`amqpscope summary`: what happened on each connection."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated, Any

import typer

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.capture.source import only_once
from amqpscope.cli.inputs import (
    CaptureArgument,
    JobsOption,
    Paths,
    ReadingOptions,
    capture_status,
)
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.output import TextOrJson, progress, say
from amqpscope.cli.place_options import connection_option
from amqpscope.cli.selection import Selection, WantedConnection
from amqpscope.cli.status import Status, worst
from amqpscope.errors import CaptureError, FilterError
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.input.diagnoses_work import DiagnosesWork
from amqpscope.input.jobs import jobs_of
from amqpscope.limits import MAX_SUMMARY_DETAILS, MAX_SUMMARY_ROWS
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.protocols import is_amqp
from amqpscope.report.backlog import Backlog
from amqpscope.report.capture_summary import CaptureSummary
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.report.diagnosis_text import DiagnosisBacklog
from amqpscope.report.line import Line
from amqpscope.report.notes import any_connection, note_lines, notes_about
from amqpscope.report.numbers_text import number_lines
from amqpscope.report.painter import painter
from amqpscope.report.printable import printable
from amqpscope.report.shell import shell_word
from amqpscope.report.summary import connection_object, summary_json
from amqpscope.report.summary_table import FINE, ConnectionFindings, SummaryRow, table_lines
from amqpscope.report.summary_text import connection_lines
from amqpscope.report.traced_text import TraceSummary
from dissectors.wording import count

__all__ = ["EPILOG", "summary"]

EPILOG = """
The number of a connection is Wireshark's tcp.stream. For a peer, the summary
counts the octets of its TCP stream. `missing` octets are not in the capture.
`resent` octets are in the capture more than once. For a link, the summary
counts the octets of the messages, without frame headers.

For connections that went wrong, and for connections that --connection
selects, the summary also shows the outcomes of the messages, who waited for
whom, and how long answers took. The text shows at most eight rows of each
table. The JSON output has all rows. If a percentile is computed from more
than 256 values, the shown percentile may be up to one eighth too large.

Exit status: 0 fine, 2 a failure, 3 no AMQP 1.0 or 0-9-1 to read, 130
interrupted.
"""


@with_options
def summary(
    *,
    paths: Paths,
    connection: Annotated[str | None, connection_option("Show only")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list connections that do not speak AMQP.")
    ] = False,
    form: Annotated[
        TextOrJson,
        typer.Option(
            "--format",
            metavar="text|json",
            show_default=False,
            help="Set the output format. text: for people; json: one JSON "
            "object per capture, one per line. [default: text]",
        ),
    ] = TextOrJson.text,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help=(
                "Also draw the capture as a page for a browser, and write the page to this file (see "
                "`amqpscope draw`)."
            ),
        ),
    ] = None,
    jobs: JobsOption = None,
    reading: ReadingOptions,
) -> int:
    """Show the peers, the links and the traffic of each connection, and how and why the connection ended."""
    wanted = None if connection is None else WantedConnection(connection)
    processes = jobs_of(jobs)
    statuses = []
    captures = reading.captures(paths)
    if output is not None:
        _may_draw(captures, output)
    for one in captures:
        try:
            statuses.append(_summarise(one, wanted, everything, form, reading.allow_empty, processes))
        except CaptureError as error:
            sys.stdout.flush()
            say(str(error))
            statuses.append(Status.FAILURE)
    if wanted is not None and not wanted.met and Status.FINE in statuses:
        statuses.append(Status.FAILURE)
    if output is not None and statuses == [Status.FINE]:
        from amqpscope.cli.draw import draw_capture  # brings all that draws

        sys.stdout.flush()
        statuses.append(draw_capture(captures[0], output, Selection(connection)))
    return worst(statuses)


def _may_draw(captures: list[CaptureArgument], output: str) -> None:
    """Check that a page can be drawn of what is summarised. Raises FilterError."""
    if not output.lower().endswith(".html"):
        raise FilterError(f"--output {output}: the name must end in .html")
    if len(captures) != 1 or any(map(only_once, captures[0].paths)):
        raise FilterError(
            "--output: a page shows one capture, and reads the capture again (give one file, or --merge)"
        )


def _summarise(
    one: CaptureArgument,
    wanted: WantedConnection | None,
    everything: bool,
    form: TextOrJson,
    allow_empty: bool,
    jobs: int,
) -> Status:
    if wanted is not None:
        wanted.restart()
    gathered = CaptureSummary({})
    text = form is TextOrJson.text
    options = CaptureOptions(keep=False, ended=True, judge=True, jobs=jobs)
    with one.open(options) as capture:
        writer = _TextWriter(capture, wanted is not None) if text else _JsonWriter()
        capture.trace(writer.traces.add)
        work = _Work(gathered, writer, everything)
        if wanted is not None:
            writer.about = wanted.takes
        else:
            capture.share(work)

        def over() -> None:
            findings = capture.take_findings()
            gathered.judge(findings)
            writer.take(findings)
            for analysis in capture.take_ended():
                connection = analysis.connection
                known, found = gathered.take(analysis)
                made = work.received.pop(connection, None)
                asked_for = wanted is None or wanted.takes(connection)
                if asked_for:
                    writer.diagnoses.add(found, analysis.order, connection)
                if asked_for and _is_shown(connection, everything):
                    writer.taken += 1
                    try:
                        writer.add(analysis, made or writer.make(analysis, known, found, False))
                    except Exception as error:
                        capture.fail(connection, error)
                else:
                    writer.others += 1

        broken: BaseException | None = None
        try:
            with progress(capture, streaming=False) as meter:
                for records in capture.blocks():
                    capture.each(records, gathered.add)
                    over()
                    meter.update()
        except (KeyboardInterrupt, CaptureError) as error:
            # What was read so far is worth having, above all of a live capture.
            capture.stop()
            over()
            if not (writer.taken or writer.others):
                raise
            broken = error
        writer.diagnoses.add(gathered.finish(), 0)
        writer.write(capture)
        if broken is not None:
            if isinstance(broken, KeyboardInterrupt):
                sys.stdout.flush()
                say(f"{capture.name}: interrupted: only what was read before")
            raise broken
        missing = "" if wanted is None else wanted.missing()
        if missing:
            sys.stdout.flush()
            say(f"{capture.name}: {missing}")
        return capture_status(capture, allow_empty, text)


def _is_shown(connection: Connection, everything: bool) -> bool:
    """Whether a connection that is asked for is shown; everything: also one that is not AMQP."""
    return everything or bool(connection.frames) or is_amqp(connection.protocol)


class _Work(DiagnosesWork):
    """The summary, where several processes read the capture. received: what other processes have made of
    connections, as `_Writer.make` does.
    """

    def __init__(self, gathered: CaptureSummary, writer: "_Writer", everything: bool) -> None:
        super().__init__(gathered.diagnoses)
        self._gathered = gathered
        self._writer = writer
        self._everything = everything
        self.received: dict[Connection, tuple[Any, ...]] = {}

    def frames(self, records: list[FrameRecord]) -> tuple[()]:
        for record in records:
            self._gathered.add(record)
        return ()

    def judge(self, findings: list[Finding]) -> None:
        super().judge(findings)
        self._writer.take(findings)

    def over(self, analysis: ConnectionAnalysis, last: bool) -> object:
        known, found = self._gathered.take(analysis)
        shown = _is_shown(analysis.connection, self._everything)
        return self.made(found), self._writer.make(analysis, known, found, last) if shown else None

    def take_over(self, connection: Connection, value: Any) -> None:
        diagnosed, made = value
        super().take_over(connection, diagnosed)
        if made is not None:
            self.received[connection] = made


class _Writer(ABC):
    """Writes the summary of a capture when all is read.

    reported: what is written of each connection, by their order. diagnoses: of all of them. taken:
    connections that are shown; others: those that are not. about: whether notes about one are wanted. traces:
    messages of a broker's log, which has no connections.
    """

    def __init__(self) -> None:
        self.about: Callable[[Connection], bool] = any_connection
        self.reported = Backlog()
        self.taken = 0
        self.diagnoses = DiagnosisBacklog()
        self.others = 0
        self.traces = TraceSummary()

    @abstractmethod
    def take(self, findings: list[Finding]) -> None:
        """The next findings, if there are any: those of a connection before it is over, but for some."""

    @abstractmethod
    def make(
        self,
        analysis: ConnectionAnalysis,
        known: ConnectionOverview | None,
        diagnoses: list[Diagnosis],
        late: bool,
    ) -> tuple[Any, ...]:
        """What `add` takes of a connection that is over, as plain values.

        known: what its frames said, None if it had none. late: findings on it may still come.
        """

    @abstractmethod
    def add(self, analysis: ConnectionAnalysis, made: tuple[Any, ...]) -> None:
        """One connection, which is over. made: by `make`, here or in another process."""

    @abstractmethod
    def write(self, capture: Capture) -> None:
        """All of it."""


class _JsonWriter(_Writer):
    """One object, in one line."""

    def take(self, findings: list[Finding]) -> None:
        """The object has no findings."""

    def make(
        self,
        analysis: ConnectionAnalysis,
        known: ConnectionOverview | None,
        diagnoses: list[Diagnosis],
        late: bool,
    ) -> tuple[Any, ...]:
        return (json.dumps(connection_object(analysis, known)),)

    def add(self, analysis: ConnectionAnalysis, made: tuple[Any, ...]) -> None:
        self.reported.put(int(analysis.order), made[0])

    def write(self, capture: Capture) -> None:
        connections = (text for _, text in self.reported)
        diagnoses = self.diagnoses.json()
        missing = capture.connections_not_kept
        notes = notes_about(capture.notes, self.about)
        for part in summary_json(capture.name, connections, diagnoses, notes, missing):
            sys.stdout.write(part)
        sys.stdout.write("\n")
        self.reported.close()
        self.diagnoses.close()


class _TextWriter(_Writer):
    """For people: of a few connections all there is; of many a table, and of those that went wrong more.

    asked: the connections were chosen by name, so all there is of each is shown.
    """

    def __init__(self, capture: Capture, asked: bool) -> None:
        super().__init__()
        self._painter, self._width = painter()
        self._asked = asked
        self._file = shell_word(capture.path) if capture.path else ""
        self._findings: dict[Connection, ConnectionFindings] = {}
        self._rows: list[SummaryRow] = []
        # Rows of connections that went wrong; connections that are no rows, because there are too many: those
        # in order, and those that went wrong.
        self._wrong = 0
        self._more = 0
        self._more_wrong = 0
        # What is shown of connections that went wrong, and of the first few, by their order: what happened,
        # its numbers, and what was found.
        self._details: dict[int, list[str]] = {}
        # How many of them were made.
        self._made = 0

    def take(self, findings: list[Finding]) -> None:
        for finding in findings:
            found = self._findings.get(finding.connection)
            if found is None:
                found = self._findings[finding.connection] = ConnectionFindings()
            found.add(finding)

    def make(
        self,
        analysis: ConnectionAnalysis,
        known: ConnectionOverview | None,
        diagnoses: list[Diagnosis],
        late: bool,
    ) -> tuple[Any, ...]:
        row = SummaryRow(analysis, known, self._found(analysis), diagnoses)
        # A share of the connections fills no more room than all of them.
        if not (late or self._has_room(self._made, row.rank < FINE)):
            return row.dump(), "", ""
        self._made += 1
        happened = self._paint([*connection_lines(analysis, known, self._width)])
        numbers = "" if known is None else self._paint(number_lines(analysis, known, self._width))
        return row.dump(), happened, numbers

    def add(self, analysis: ConnectionAnalysis, made: tuple[Any, ...]) -> None:
        found = self._found(analysis)
        dumped, happened, numbers = made
        row = SummaryRow.load(dumped, found)
        wrong = row.rank < FINE
        alike = self._wrong if wrong else len(self._rows) - self._wrong
        if alike < MAX_SUMMARY_ROWS:
            self._rows.append(row)
            self._wrong += wrong
            self._findings[analysis.connection] = found
        else:
            self._more += not wrong
            self._more_wrong += wrong
            self._findings.pop(analysis.connection, None)
        if self._has_room(len(self._details), wrong):
            if not (wrong or self._asked):
                numbers = ""
            details = [happened, numbers, self._paint(found.lines(self._file))]
            if self._asked:
                self.reported.put(row.order, "".join(details))
            else:
                self._details[row.order] = details

    def _found(self, analysis: ConnectionAnalysis) -> ConnectionFindings:
        """The findings on a connection."""
        return self._findings.get(analysis.connection) or ConnectionFindings()

    def _has_room(self, before: int, wrong: bool) -> bool:
        """Whether one more connection can be shown in full. before: how many are; wrong: something went wrong
        with this one.
        """
        return self._asked or before < (MAX_SUMMARY_DETAILS if wrong else _FEW)

    def _paint(self, lines: list[Line]) -> str:
        return "".join(f"{self._painter.paint(line, 6)}\n" for line in lines)

    def write(self, capture: Capture) -> None:
        self._rows.sort(key=lambda row: (row.rank, row.order))
        number = len(self._rows) + self._more + self._more_wrong
        listed = sum(row.rank < FINE for row in self._rows)
        wrong = listed + self._more_wrong
        head = f"{printable(capture.name)}: {count(number, 'connection')}"
        if number > _FEW and wrong:
            head += f", {wrong} went wrong"
        others = self.others + capture.connections_not_kept
        if others:
            head += f", {count(others, 'other')} not shown"
        self._print([[("rule", head)]])
        for line in self.diagnoses.lines():
            print(self._painter.paint(line, 6))
        if self._asked:
            for _, text in self.reported:
                print(f"\n{text}", end="")
        elif number <= _FEW:
            for order in sorted(self._details):
                print("\n" + "".join(self._details[order]), end="")
        else:
            self._write_many(listed, wrong)
        for line, hang in self.traces.lines():
            print(self._painter.paint(line, hang))
        for one in note_lines(notes_about(capture.notes, self.about)):
            print(self._painter.paint([(one.style, f"note: {printable(one.text)}")], one.hang))
        self.reported.close()
        self.diagnoses.close()

    def _write_many(self, listed: int, wrong: int) -> None:
        """A table of the connections that went wrong, more about them, and a table of the others.

        listed: how many of the `wrong` ones are rows.
        """
        rows = self._rows
        if wrong:
            self._print([[], *table_lines(rows[:listed], self._width)])
            if self._file:
                self._print([[("key", "next: "), ("", f"amqpscope why --end {self._file}")]])
        detailed = [self._details[row.order] for row in rows[:listed] if row.order in self._details]
        for happened, _, verdict in detailed:
            print(f"\n{happened}{verdict}", end="")
        if len(detailed) < wrong:
            more = f"{wrong - len(detailed)} more that went wrong: --connection shows each in full"
            self._print([[], [("note", more)]])
        if len(rows) > listed:
            self._print([[], *table_lines(rows[listed:], self._width)])
        if self._more:
            self._print([[("dim", f"and {count(self._more, 'more connection')} in order")]])

    def _print(self, lines: list[Line]) -> None:
        for line in lines:
            print(self._painter.paint(line, 2))


_FEW = 3
"""Connections of a capture that are shown in full."""
