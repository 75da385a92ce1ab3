"""`amqpscope summary`: what happened on each connection."""

import enum
import sys
from typing import Annotated

import typer

from amqpscope.analysis import ConnectionAnalysis
from amqpscope.cli.inputs import Input, Merge, Via, inputs
from amqpscope.cli.output import painter, progress, say
from amqpscope.cli.read import capture_status
from amqpscope.cli.status import Status, worst
from amqpscope.errors import CaptureError
from amqpscope.reading import Capture
from amqpscope.report.notes import note_lines
from amqpscope.report.printable import printable
from amqpscope.report.summary import Summary, summary_json
from amqpscope.report.summary_text import connection_lines, count
from amqpscope.selection import check_connection, is_connection

__all__ = ["EPILOG", "summary"]

EPILOG = """
A connection's number is Wireshark's tcp.stream. Octets of a peer are those of
its stream; missing ones were not captured, resent ones were captured twice.
Octets of a link are those of its messages.

Exit status: 0 fine, 2 a failure, 3 no AMQP 1.0 or 0-9-1 to read, 130 interrupted.
"""


class Format(enum.StrEnum):
    """Forms of output."""

    text = "text"
    json = "json"


def summary(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Captures, pcap or pcapng, also in gzip or zstd; directories of them; - is standard input.",
        ),
    ],
    connection: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH", help="Only this connection: its number, ADDRESS, ADDRESS:PORT or its id."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also connections that are not AMQP.")] = False,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="text|json",
            show_default=False,
            help="text; json: one object a line and capture.",
        ),
    ] = Format.text,
    merge: Merge = False,
    via: Via = None,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Exit with 0 also if there is no AMQP 1.0 or 0-9-1 to read.")
    ] = False,
) -> int:
    """Show what happened on each connection: who talked, which links, how much, how it ended and why."""
    if connection is not None:
        check_connection(connection)
    statuses = []
    for one in inputs(paths, merge, via):
        try:
            statuses.append(_summarise(one, connection, everything, form, allow_empty))
        except CaptureError as error:
            sys.stdout.flush()
            say(str(error))
            statuses.append(Status.FAILURE)
    return worst(statuses)


def _summarise(one: Input, wanted: str | None, everything: bool, form: Format, allow_empty: bool) -> Status:
    gathered = Summary()
    with one.open() as capture:
        broken: BaseException | None = None
        try:
            with progress(capture, streaming=False) as meter:
                for records in capture.blocks():
                    for record in records:
                        gathered.add(record)
                    meter.update()
        except (KeyboardInterrupt, CaptureError) as error:
            # What was read so far is worth having, above all of a live capture.
            capture.stop()
            if not capture.connections:
                raise
            broken = error
        analyses = [
            analysis
            for analysis in capture.connections
            if (wanted is None or is_connection(analysis.connection, wanted))
            and (everything or analysis.connection.frames or analysis.connection.protocol.startswith("amqp"))
        ]
        if form is Format.json:
            print(summary_json(capture.name, analyses, gathered, capture.notes, capture.connections_not_kept))
        else:
            _show(capture, analyses, gathered)
        if broken is not None:
            if isinstance(broken, KeyboardInterrupt):
                sys.stdout.flush()
                say(f"{capture.name}: interrupted: only what was read before")
            raise broken
        return capture_status(capture, allow_empty)


def _show(capture: Capture, analyses: list[ConnectionAnalysis], gathered: Summary) -> None:
    paint, width = painter()
    others = len(capture.connections) - len(analyses) + capture.connections_not_kept
    head = f"{printable(capture.name)}: {count(len(analyses), 'connection')}"
    if others:
        head += f", {count(others, 'other')} not shown"
    print(paint.paint([("rule", head)], 2))
    for analysis in analyses:
        print()
        for line in connection_lines(analysis, gathered.connections.get(analysis.connection), width):
            print(paint.paint(line, 6))
    for text in note_lines(capture.notes):
        print(paint.paint([("note", f"note: {printable(text)}")], 6))
