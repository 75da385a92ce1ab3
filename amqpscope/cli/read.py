"""`amqpscope read`: what was said, frame by frame."""

import enum
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.capture.source import called, only_once
from amqpscope.cli.inputs import (
    CaptureArgument,
    JobsOption,
    Paths,
    ReadingOptions,
    capture_status,
)
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.output import progress, say
from amqpscope.cli.place_options import connection_option, first_option, last_option, link_option
from amqpscope.cli.selection import Selection, parse_bound, parse_channels, parse_names
from amqpscope.cli.status import Status, worst
from amqpscope.cli.time_format import TimeFormat, time_option
from amqpscope.cli.writers import CensusWriter, FramesJsonWriter, FrameWriter
from amqpscope.errors import CaptureError, FilterError
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.input.jobs import jobs_of
from amqpscope.input.shared_work import SharedWork
from amqpscope.limits import MAX_LINKED_MESSAGES
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.report.links import LinkNames
from amqpscope.report.settlements import Place, SettledBy, SettlementLog, SettlementReader

__all__ = ["EPILOG", "read"]


class ReadFormat(enum.StrEnum):
    """Forms of output."""

    text = "text"
    json = "json"
    ndjson = "ndjson"


_WHICH = "Which frames are shown (a frame must match all options given)"
_HOW = "How frames are shown"

EPILOG = """\b
A line of the timeline:
  packet  time  connection  C (client) or S (server)  channel  frame  fields
Packets have Wireshark's packet numbers. The packet of a frame is the packet
that contains the first octet of the frame. The number of a connection is
Wireshark's tcp.stream. #7 means delivery-id 7 in AMQP 1.0, and delivery-tag 7
in AMQP 0-9-1. A link is shown as ADDRESS (NAME). incoming-window=2048@7 means
that the window has room for 2048 transfers, and that the first of them has
transfer-id 7.

Below a frame, !! marks an error or warning that `check` reports about this
frame. If the other peer answers the fault with an error, -> marks this answer
below the frame of the other peer.

Passwords, login responses and security tokens are never shown.

By default, only output on a terminal has colours. With `--color always` or
FORCE_COLOR in the environment, all output has colours. With `--color never`
or NO_COLOR in the environment, no output has colours.

\b
Examples:
  amqpscope read traffic.pcap
  amqpscope read --only attach,detach,close traffic.pcap
  amqpscope read -v --connection 3 --from +1.5 --to +2 traffic.pcap
  amqpscope read --address 'orders*' --only transfer,problem traffic.pcap
  amqpscope read --only basic.publish,basic.return,channel traffic.pcap
  amqpscope read --ladder --connection 3 --from 1200 --to 1230 traffic.pcap
  amqpscope read --around 1217 traffic.pcap
  amqpscope read --merge rotated/capture.pcap*
  amqpscope read --format ndjson --bodies traffic.pcap | jq .message.body
  tcpdump -w - port 5672 | amqpscope read -

\b
Exit status: 0 fine, 2 a failure (unreadable file, unknown option), 3 no AMQP
1.0 or 0-9-1 to read, or only encrypted AMQP, 130 interrupted.
"""


@with_options
def read(
    *,
    paths: Paths,
    connection: Annotated[str | None, connection_option("Show only", _WHICH)] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N,...",
            rich_help_panel=_WHICH,
            help="Show only frames on these channels. The option may be repeated.",
        ),
    ] = None,
    link: Annotated[str | None, link_option("Show only frames of", _WHICH)] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            rich_help_panel=_WHICH,
            help="Show only frames with this address (* and ? are wildcards). In AMQP 1.0, an address is "
            "the source or target of a link. In AMQP 0-9-1, an address is an exchange, a queue or a "
            "routing key. The option also shows the content frames of messages with this address.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...",
            rich_help_panel=_WHICH,
            help="Show only frames with one of these names (transfer, flow, sasl-init, header, "
            "basic.publish, ...), kinds (amqp, sasl, method, content-header, body, heartbeat) or "
            "classes (basic, queue, ...). The value `problem` selects malformed frames. The value "
            "`error` selects frames that report an error. The option may be repeated.",
        ),
    ] = None,
    first: Annotated[str | None, first_option("Show only frames", _WHICH)] = None,
    last: Annotated[str | None, last_option("Show only frames", _WHICH)] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            rich_help_panel=_WHICH,
            show_default=False,
            help="Stop when N frames have been shown.",
        ),
    ] = None,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            rich_help_panel=_HOW,
            help="Show all fields of each frame. -vv also shows message bodies and the "
            "octets of malformed data.",
        ),
    ] = 0,
    time: Annotated[TimeFormat, time_option(_HOW)] = TimeFormat.r,
    form: Annotated[
        ReadFormat,
        typer.Option(
            "--format",
            metavar="text|json|ndjson",
            show_default=False,
            rich_help_panel=_HOW,
            help="Set the output format. text: a timeline for people; ndjson: "
            "one JSON object per frame, one per line; json: one JSON object with all"
            " frames. [default: text]",
        ),
    ] = ReadFormat.text,
    bodies: Annotated[
        bool,
        typer.Option(
            "--bodies",
            rich_help_panel=_HOW,
            help="Include message bodies in the JSON output. In the text "
            "output, the option has the same effect as -vv.",
        ),
    ] = False,
    no_verdicts: Annotated[
        bool,
        typer.Option(
            "--no-verdicts",
            rich_help_panel=_HOW,
            help=(
                "Do not show findings. By default, each finding is shown below its frame. The command is "
                "faster with this option."
            ),
        ),
    ] = False,
    linked: Annotated[
        bool,
        typer.Option(
            "--linked",
            rich_help_panel=_HOW,
            help="With each message, show the packet that settles or confirms the message. In the JSON "
            "output, each acknowledgement, disposition and confirm also names the packets of the "
            "messages that it settles or confirms. With this option, the capture is read twice.",
        ),
    ] = False,
    drawn: Annotated[
        bool,
        typer.Option(
            "--ladder",
            rich_help_panel=_HOW,
            help=(
                "Draw the frames as arrows between client and server. Use --connection, --from and "
                "--to to choose frames."
            ),
        ),
    ] = False,
    around: Annotated[
        int | None,
        typer.Option(
            "--around",
            metavar="PACKET",
            min=1,
            rich_help_panel=_HOW,
            help=(
                "Draw only frames near this packet, on the connection of this packet. The option implies "
                "--ladder."
            ),
        ),
    ] = None,
    count: Annotated[
        bool,
        typer.Option(
            "--count",
            rich_help_panel=_HOW,
            help="Show only how many frames there are of each name (transfer, flow, ...).",
        ),
    ] = False,
    jobs: JobsOption = None,
    reading: ReadingOptions,
) -> int:
    """Show every protocol header, frame and message in the order of the capture."""
    selection = Selection(
        connection,
        parse_channels(",".join(channel)) if channel else None,
        link,
        address,
        parse_names(",".join(only)) if only else None,
        parse_bound("--from", first),
        parse_bound("--to", last),
    )
    if limit is not None and limit < 1:
        raise FilterError(f"--limit {limit}: must be at least 1")
    drawn = drawn or around is not None
    if drawn and (count or form is not ReadFormat.text):
        raise FilterError("--ladder: cannot be combined with --count or --format")
    if linked and (drawn or count):
        raise FilterError("--linked: cannot be combined with --ladder or --count")
    once = next(filter(only_once, paths), "")
    if linked and once:
        raise FilterError(f"--linked: reads twice, which {called(once)} cannot")
    processes = jobs_of(jobs)
    captures = reading.captures(paths)
    writer: FrameWriter
    if drawn:
        from amqpscope.cli.timeline_writers import LadderWriter

        writer = LadderWriter(around or 0)
    elif count:
        writer = CensusWriter(form is not ReadFormat.text)
    elif form is ReadFormat.text:
        from amqpscope.cli.timeline_writers import TimelineWriter  # brings what other forms do not need

        writer = TimelineWriter(
            time.value,
            max(verbose, 2 if bodies else 0),
            several=len(captures) > 1,
            # Malformed frames say themselves what is wrong with them.
            verdicts=not no_verdicts and not selection.only_problems,
            holds=not once,
        )
    else:
        writer = FramesJsonWriter(form is ReadFormat.json, bodies or verbose >= 2, linked)
    writer.about = selection.of_connection
    statuses = []
    left = limit
    for one in captures:
        status, left = _read_one(one, writer, selection, left, reading.allow_empty, linked, processes)
        statuses.append(status)
        if left == 0:
            break
    writer.end()
    if selection.connection is not None and not selection.connection.met and Status.FINE in statuses:
        statuses.append(Status.FAILURE)
    return worst(statuses)


def _settled(one: CaptureArgument) -> dict[Place, SettledBy]:
    """What settles each message of a capture, which is read for it. Raises CaptureError."""
    reader = SettlementReader()
    with one.open(CaptureOptions(keep=False, ended=True)) as capture, progress(capture, False) as meter:
        for records in capture.blocks():
            capture.each(records, reader.take)
            for analysis in capture.take_ended():
                reader.forget(analysis.connection)
            meter.update()
    if reader.full:
        say(f"--linked: more than {MAX_LINKED_MESSAGES} messages; what settles the others is not shown")
    return reader.settled


class _Work(SharedWork):
    """Reading all frames, where several processes do it. names, log: as the writer has them."""

    def __init__(self, writer: FrameWriter, names: LinkNames, log: SettlementLog) -> None:
        self._writer = writer
        self._names = names
        self._log = log

    @property
    def ready(self) -> bool:
        return self._writer.shares

    def share(self) -> None:
        self._writer.share()

    def frames(self, records: list[FrameRecord]) -> Sequence[object]:
        return self._writer.make(records)

    def over(self, analysis: ConnectionAnalysis, last: bool) -> object:
        connection = analysis.connection
        self._names.forget(connection)
        self._log.forget(connection)
        self._writer.forget(connection)
        return None

    def rest(self) -> object:
        return self._writer.rest()

    def take_frames(self, values: list[tuple[Connection, Any]]) -> None:
        self._writer.put(values)

    def take_rest(self, values: list[Any]) -> None:
        for value in values:
            self._writer.put_rest(value)


def _read_one(
    one: CaptureArgument,
    writer: FrameWriter,
    selection: Selection,
    left: int | None,
    allow_empty: bool,
    linked: bool,
    jobs: int,
) -> tuple[Status, int | None]:
    """One capture. Gives its status and how many frames may still be shown."""
    names = LinkNames()
    selection.restart()
    named = writer.names or selection.links
    started = False
    shown = 0
    seen = 0
    name = one.name
    counter = writer.counter()
    if left is not None or not selection.everything:
        counter = None
    judges = writer.judges
    messages = writer.messages or selection.messages
    try:
        options = CaptureOptions(
            messages=messages, keep=False, ended=True, counter=counter, judge=judges, jobs=jobs
        )
        settled = _settled(one) if linked else {}
        with one.open(options) as capture:
            name = capture.name
            log = SettlementLog(names, settled)
            link_of = log.of if writer.links else names.of
            writer.begin(capture, names, log)
            capture.trace(writer.traced)
            if left is None and selection.everything:
                capture.share(_Work(writer, names, log))
            with _reported_if_interrupted(capture, writer), progress(capture, writer.streaming) as meter:
                for records in capture.blocks():
                    seen += len(records)
                    if records and not started:
                        started = True
                        writer.start(int(records[0].time))
                        selection.start(int(records[0].time))
                    if left is None and selection.everything:
                        writer.block(records)
                        shown += len(records)
                    else:
                        for record in records:
                            link = link_of(record) if named else None
                            if selection.takes(record, link):
                                writer.frame(record, link)
                                shown += 1
                                if left is not None:
                                    left -= 1
                                    if left == 0:
                                        break
                    if judges:
                        writer.found(capture.take_findings())
                    writer.flush()
                    for analysis in capture.take_ended():
                        if selection.all_frames and selection.of_connection(analysis.connection):
                            writer.over(analysis)
                        names.forget(analysis.connection)
                        log.forget(analysis.connection)
                        selection.forget(analysis.connection)
                        writer.forget(analysis.connection)
                    meter.update()
                    if left == 0:
                        break
                if judges:
                    writer.found(capture.take_findings())
            writer.finish(capture)
            if left == 0:
                return Status.FAILURE if capture.failed else Status.FINE, left
            status = capture_status(capture, allow_empty, writer.traces)
            if status is Status.FINE and seen and not shown:
                others = f"no frame of {seen} matches the filter options"
                say(f"{capture.name}: {selection.missing() or others}")
            return status, left
    except CaptureError as error:
        writer.fail(name, str(error))
        say(str(error))
        return Status.FAILURE, left


@contextmanager
def _reported_if_interrupted(capture: Capture, writer: FrameWriter) -> Iterator[None]:
    """At Ctrl-C, write what was read so far: it is worth having, above all of a live capture."""
    try:
        yield
    except KeyboardInterrupt:
        writer.fail(capture.name, "interrupted")
        writer.end()
        if not writer.streaming:
            say(f"{capture.name}: interrupted: only what was read before")
        raise
