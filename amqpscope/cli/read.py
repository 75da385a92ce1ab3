"""`amqpscope read`: what was said, frame by frame."""

import enum
from typing import Annotated

import typer

from amqpscope.cli.output import progress, say
from amqpscope.cli.status import Status, worst
from amqpscope.cli.writers import CensusWriter, JsonWriter, TimelineWriter, Writer
from amqpscope.errors import CaptureError, FilterError
from amqpscope.reading import Capture
from amqpscope.report.links import LinkNames
from amqpscope.report.summary import protocol_name
from amqpscope.report.timeline import TIME_FORMATS
from amqpscope.selection import Selection, parse_bound, parse_names

__all__ = ["capture_status", "read"]


class Format(enum.StrEnum):
    """Forms of output."""

    text = "text"
    json = "json"
    ndjson = "ndjson"


class TimeFormat(enum.StrEnum):
    """Forms of packet times."""

    r = "r"
    d = "d"
    a = "a"
    ad = "ad"
    e = "e"


_TIMES = "; ".join(f"{name}: {meaning}" for name, meaning in TIME_FORMATS.items())


def read(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Captures to read, pcap or pcapng; - for standard input."),
    ],
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose", "-v", count=True, help="All fields; -vv also contents and the octets of faults."
        ),
    ] = 0,
    connection: Annotated[
        str | None,
        typer.Option(help="Only this connection: its tcp.stream number, ADDRESS, ADDRESS:PORT, or its id."),
    ] = None,
    channel: Annotated[str | None, typer.Option(help="Only these channels, separated by commas.")] = None,
    link: Annotated[
        str | None, typer.Option(help="Only links of this name; * and ? stand for any characters.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Only links from or to this address; * and ? stand for any characters.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(help="Only these frames, separated by commas: transfer,flow,...; amqp, sasl, problem."),
    ] = None,
    first: Annotated[
        str | None,
        typer.Option("--from", help="From here on: a packet number, +SECONDS, or an ISO 8601 time."),
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="Up to here: as --from.")] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Stop after so many frames.")] = None,
    time: Annotated[TimeFormat, typer.Option("-t", help=_TIMES)] = TimeFormat.r,
    form: Annotated[Format, typer.Option("--format", help="Form of the output.")] = Format.text,
    bodies: Annotated[bool, typer.Option("--bodies", help="Message bodies in JSON (text: -vv).")] = False,
    count: Annotated[bool, typer.Option("--count", help="Count frames instead of showing them.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Exit with 0 also if there is no AMQP.")
    ] = False,
) -> int:
    """Show what was said: every protocol header, SASL frame, performative and message, in order."""
    try:
        selection = Selection(
            connection,
            frozenset(int(number) for number in channel.split(",")) if channel is not None else None,
            link,
            address,
            parse_names(only) if only is not None else None,
            parse_bound(first) if first is not None else None,
            parse_bound(last) if last is not None else None,
        )
    except ValueError:
        raise FilterError(f"--channel {channel!r}: channels are numbers separated by commas") from None
    writer: Writer
    if count:
        writer = CensusWriter(form is not Format.text)
    elif form is Format.text:
        writer = TimelineWriter(time.value, verbose, several=len(paths) > 1)
    else:
        writer = JsonWriter(form is Format.json, bodies or verbose >= 2)
    statuses = []
    left = limit
    for path in paths:
        status, left = _read_one(path, writer, selection, left, allow_empty)
        statuses.append(status)
    writer.end()
    return worst(statuses)


def _read_one(
    path: str, writer: Writer, selection: Selection, left: int | None, allow_empty: bool
) -> tuple[Status, int | None]:
    """One capture. Gives its status and how many frames may still be shown."""
    names = LinkNames()
    named = writer.names or not selection.everything
    try:
        with Capture(path, messages=writer.messages) as capture:
            writer.begin(capture)
            with progress(capture, writer.streaming) as meter:
                started = False
                for records in capture.blocks():
                    if records and not started:
                        started = True
                        writer.start(int(records[0].time))
                    if left is None and not named:
                        writer.block(records)
                    else:
                        for record in records:
                            link = names.of(record)
                            if left != 0 and selection.takes(record, link):
                                writer.frame(record, link)
                                if left is not None:
                                    left -= 1
                        writer.flush()
                    meter.update()
                    if left == 0:
                        break
            writer.finish(capture)
            return capture_status(capture, allow_empty, stopped=left == 0), left
    except CaptureError as error:
        writer.flush()
        say(str(error))
        return Status.FAILURE, left


def capture_status(capture: Capture, allow_empty: bool, stopped: bool = False) -> Status:
    """What the capture as a whole amounts to; says so if there was nothing to decode."""
    connections = [analysis.connection for analysis in capture.connections]
    if any(one.protocol == "amqp10" for one in connections) or stopped:
        return Status.FINE
    others: dict[str, int] = {}
    for one in connections:
        if one.protocol:
            others[one.protocol] = others.get(one.protocol, 0) + 1
    found = ", ".join(f"{count} × {protocol_name(protocol)}" for protocol, count in others.items())
    if not connections:
        found = "no TCP"
    elif not found:
        found = f"{len(connections)} TCP connections without data"
    say(f"{capture.name}: no AMQP 1.0 to read ({found})")
    return Status.FINE if allow_empty else Status.NO_AMQP
