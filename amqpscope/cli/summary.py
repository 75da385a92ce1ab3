"""`amqpscope summary`: what happened on each connection."""

import json
import sys
from abc import ABC, abstractmethod
from typing import Annotated

import typer

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.cli.inputs import (
    CaptureArgument,
    DialectOption,
    KeyLogOption,
    Merge,
    Paths,
    Via,
    capture_status,
    inputs,
)
from amqpscope.cli.output import TextOrJson, progress, say
from amqpscope.cli.selection import check_connection, is_connection
from amqpscope.cli.status import Status, worst
from amqpscope.errors import CaptureError
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.protocols import is_amqp
from amqpscope.report.backlog import Backlog
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.report.notes import note_lines
from amqpscope.report.painter import painter
from amqpscope.report.printable import printable
from amqpscope.report.summary import CaptureSummary, connection_object, summary_json
from amqpscope.report.summary_text import connection_lines, count

__all__ = ["EPILOG", "summary"]

EPILOG = """
The number of a connection is Wireshark's tcp.stream. The octets of a peer are
the octets of its TCP stream. Missing octets were not captured, and resent
octets were captured twice. The octets of a link are the octets of its
messages, without frame headers.

Exit status: 0 fine, 2 a failure, 3 no AMQP 1.0 or 0-9-1 to read, 130 interrupted.
"""


def summary(
    paths: Paths,
    connection: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            help="Show only the connection with this number, or connections "
            "with this ADDRESS, ADDRESS:PORT or id from the JSON "
            "output.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list connections that do not speak AMQP.")
    ] = False,
    form: Annotated[
        TextOrJson,
        typer.Option(
            "--format",
            metavar="text|json",
            show_default=False,
            help="Set the output format. text: for people (default); json: one JSON "
            "object per capture, one per line.",
        ),
    ] = TextOrJson.text,
    merge: Merge = False,
    via: Via = None,
    dialect: DialectOption = None,
    tls_keylog: KeyLogOption = None,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty", help="Exit with status 0 even if the capture has no AMQP 1.0 or 0-9-1."
        ),
    ] = False,
) -> int:
    """Show the peers, links and traffic of each connection, and how and why the connection ended."""
    if connection is not None:
        check_connection(connection)
    statuses = []
    for one in inputs(paths, merge, via, dialect, tls_keylog):
        try:
            statuses.append(_summarise(one, connection, everything, form, allow_empty))
        except CaptureError as error:
            sys.stdout.flush()
            say(str(error))
            statuses.append(Status.FAILURE)
    return worst(statuses)


def _summarise(
    one: CaptureArgument, wanted: str | None, everything: bool, form: TextOrJson, allow_empty: bool
) -> Status:
    gathered = CaptureSummary()
    with one.open(CaptureOptions(keep=False, ended=True)) as capture:
        writer = _JsonWriter() if form is TextOrJson.json else _TextWriter()

        def over() -> None:
            for analysis in capture.take_ended():
                connection = analysis.connection
                known = gathered.take(connection)
                if (wanted is None or is_connection(connection, wanted)) and (
                    everything or connection.frames or is_amqp(connection.protocol)
                ):
                    try:
                        writer.add(analysis, known)
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
            if not (len(writer.reported) or writer.others):
                raise
            broken = error
        writer.write(capture)
        if broken is not None:
            if isinstance(broken, KeyboardInterrupt):
                sys.stdout.flush()
                say(f"{capture.name}: interrupted: only what was read before")
            raise broken
        return capture_status(capture, allow_empty)


class _Writer(ABC):
    """Writes the summary of a capture when all is read.

    reported: what is written of each connection, by their order. others: connections that are not shown.
    """

    def __init__(self) -> None:
        self.reported = Backlog()
        self.others = 0

    @abstractmethod
    def add(self, analysis: ConnectionAnalysis, known: ConnectionOverview | None) -> None:
        """One connection, which is over. known: what its frames said, None if it had none."""

    @abstractmethod
    def write(self, capture: Capture) -> None:
        """All of it."""


class _JsonWriter(_Writer):
    """One object, in one line."""

    def add(self, analysis: ConnectionAnalysis, known: ConnectionOverview | None) -> None:
        self.reported.put(int(analysis.order), json.dumps(connection_object(analysis, known)))

    def write(self, capture: Capture) -> None:
        connections = (text for _, text in self.reported)
        for part in summary_json(capture.name, connections, capture.notes, capture.connections_not_kept):
            sys.stdout.write(part)
        sys.stdout.write("\n")
        self.reported.close()


class _TextWriter(_Writer):
    """For people: a few lines a connection."""

    def __init__(self) -> None:
        super().__init__()
        self._painter, self._width = painter()

    def add(self, analysis: ConnectionAnalysis, known: ConnectionOverview | None) -> None:
        lines = [self._painter.paint(line, 6) for line in connection_lines(analysis, known, self._width)]
        self.reported.put(int(analysis.order), "\n".join(lines))

    def write(self, capture: Capture) -> None:
        others = self.others + capture.connections_not_kept
        head = f"{printable(capture.name)}: {count(len(self.reported), 'connection')}"
        if others:
            head += f", {count(others, 'other')} not shown"
        print(self._painter.paint([("rule", head)], 2))
        for _, text in self.reported:
            print(f"\n{text}")
        for text, style, hang in note_lines(capture.notes):
            print(self._painter.paint([(style, f"note: {printable(text)}")], hang))
        self.reported.close()
