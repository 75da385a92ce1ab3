"""`amqpscope summary`: what happened on each connection."""

import enum
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from amqpscope.analysis import ConnectionAnalysis
from amqpscope.cli.output import console, note_lines, progress, say
from amqpscope.cli.read import capture_status
from amqpscope.cli.status import Status, worst
from amqpscope.errors import CaptureError
from amqpscope.model import CLIENT, SERVER, endpoint
from amqpscope.reading import Capture
from amqpscope.report.moment import iso
from amqpscope.report.printable import printable
from amqpscope.report.summary import ConnectionSummary, Summary, ending, protocol_name, summary_json

__all__ = ["summary"]


class Format(enum.StrEnum):
    """Forms of output."""

    text = "text"
    json = "json"


def summary(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Captures to read, pcap or pcapng; - for standard input."),
    ],
    everything: Annotated[bool, typer.Option("--all", help="Also connections that are not AMQP.")] = False,
    form: Annotated[
        Format, typer.Option("--format", help="Form of the output; json is one line a capture.")
    ] = Format.text,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Exit with 0 also if there is no AMQP.")
    ] = False,
) -> int:
    """Show what happened on each connection: peers, sessions, links, messages, octets, and how it ended."""
    statuses = []
    for path in paths:
        try:
            statuses.append(_summarise(path, everything, form, allow_empty))
        except CaptureError as error:
            sys.stdout.flush()
            say(str(error))
            statuses.append(Status.FAILURE)
    return worst(statuses)


def _summarise(path: str, everything: bool, form: Format, allow_empty: bool) -> Status:
    gathered = Summary()
    with Capture(path) as capture:
        with progress(capture, streaming=False) as meter:
            for records in capture.blocks():
                for record in records:
                    gathered.add(record)
                meter.update()
        analyses = [
            analysis
            for analysis in capture.connections
            if everything or analysis.connection.frames or analysis.connection.protocol not in ("", "unknown")
        ]
        if form is Format.json:
            print(summary_json(capture.name, analyses, gathered, capture.notes))
        else:
            _show(capture, analyses, gathered)
        return capture_status(capture, allow_empty)


def _show(capture: Capture, analyses: list[ConnectionAnalysis], gathered: Summary) -> None:
    output = console()
    shown = len(analyses)
    total = len(capture.connections)
    others = f", {total - shown} others not shown (--all)" if total > shown else ""
    output.print(Text(f"{printable(capture.name)}: {_count(shown, 'connection')}{others}", style="bold"))
    for analysis in analyses:
        output.print()
        _show_connection(output, analysis, gathered.connections.get(analysis.connection))
    for text in note_lines(capture.notes):
        output.print(Text(f"note: {printable(text)}", style="yellow"))


def _show_connection(output: Console, analysis: ConnectionAnalysis, known: ConnectionSummary | None) -> None:
    connection = analysis.connection
    facts = [analysis.tcp.facts(0), analysis.tcp.facts(1)]
    start = min(fact.first_time for fact in facts if fact.segments) if any(f.segments for f in facts) else 0
    span = max(fact.last_time for fact in facts) - start
    tls = ", encrypted" if connection.encrypted and connection.protocol != "tls" else ""
    head = Text(f"connection {connection.stream}  ", style="bold")
    head.append(f"{protocol_name(connection.protocol)}{tls}", style="bold green" if known else "bold yellow")
    head.append(f"  {iso(start)}  {span / 1e9:.3f} s  {connection.id}", style="dim")
    output.print(head)

    peers = Table(box=None, padding=(0, 2, 0, 2), show_edge=False, header_style="dim")
    columns = (
        "",
        "endpoint",
        "container",
        "product",
        "frames",
        "messages",
        "octets",
        "missing",
        "resent",
        "ended",
    )
    for name in columns:
        right = name in ("frames", "messages", "octets", "missing", "resent")
        peers.add_column(name, justify="right" if right else "left", overflow="fold")
    ends = ending(known, analysis)
    client = max(int(connection.client), 0)
    for peer, direction in ((CLIENT, client), (SERVER, 1 - client)):
        fact = analysis.tcp.facts(direction)
        row = [
            peer,
            endpoint(*connection.end(direction)),
            known.containers[peer] if known else "",
            known.products[peer] if known else "",
            str(known.frames[peer]) if known else "",
            str(known.messages[peer]) if known else "",
            str(fact.delivered),
            str(fact.missing or ""),
            str(fact.retransmitted or ""),
            ends[peer],
        ]
        peers.add_row(*[Text(printable(cell), style="cyan" if peer == CLIENT else "magenta") for cell in row])
    output.print(peers)
    if known is None:
        return
    if known.mechanism or known.sasl_outcome:
        output.print(
            Text(f"  SASL {printable(known.mechanism) or '?'}: {known.sasl_outcome or 'no outcome'}")
        )
    output.print(Text(f"  {_count(known.sessions, 'session')}, {_count(len(known.links), 'link')}"))
    if known.links:
        output.print(_links(known))
    for text in known.errors:
        output.print(Text(f"  {printable(text)}", style="red"))
    if known.problems:
        output.print(
            Text(f"  {_count(known.problems, 'frame')} with problems (read --only problem)", style="red")
        )


def _links(known: ConnectionSummary) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 2), show_edge=False, header_style="dim")
    for name in ("link", "sender", "source", "target", "transfers", "messages", "octets", "ended"):
        right = name in ("transfers", "messages", "octets")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for link in known.links.values():
        target = "coordinator" if link.link.coordinator else link.link.target or ""
        row = [link.link.name, link.sender, link.link.source or "", target]
        row += [str(link.transfers), str(link.messages), str(link.octets), link.ended or "not detached"]
        table.add_row(*[Text(printable(cell)) for cell in row])
    return table


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
