"""`amqpscope sniff`: what is said on an interface, as it is said, with verdicts."""

import enum
import sys
from typing import Annotated

import typer

from amqpscope.capture.live.opening import list_interfaces, open_source
from amqpscope.capture.live.privileges import give_up
from amqpscope.cli import quantities
from amqpscope.cli.inputs import (
    DialectOption,
    KeyLogOption,
    ServerKeyOption,
    same_file,
    secrets_of,
)
from amqpscope.cli.judging import (
    AllowEmpty,
    BaselineOption,
    ConfigOption,
    FailOnOption,
    FailOnPossible,
    IgnoreOption,
    NoConfig,
    ProfileOption,
    SelectOption,
    SpecOption,
    StrictOption,
    configuration_of,
    given_of,
    today,
)
from amqpscope.cli.live_session import LiveSession, Stop
from amqpscope.cli.live_view import LiveView
from amqpscope.cli.live_writers import LiveJson, LiveText
from amqpscope.cli.nonblocking_output import NonBlockingOutput
from amqpscope.cli.read import TimeFormat
from amqpscope.cli.recording import LiveRecording, rotation_of
from amqpscope.cli.selection import Selection, parse_names
from amqpscope.cli.status import Status
from amqpscope.errors import FilterError
from amqpscope.input.capture import CaptureOptions
from amqpscope.input.live import LiveWatch
from amqpscope.policy.policy import Policy
from amqpscope.report.printable import printable
from amqpscope.report.timeline import TIME_FORMATS
from amqpscope.rules.rule_names import rules_like

__all__ = ["EPILOG", "sniff"]


class SniffFormat(enum.StrEnum):
    """Forms of output."""

    text = "text"
    ndjson = "ndjson"


_STEP = 0.25
"""Seconds to wait for packets, after which the clock is looked at."""

_BEFORE = 10
"""Seconds that are kept before the finding that --until waits for."""

_AFTER = 1_000_000_000
"""Nanoseconds that are captured behind it, so that the other peer's reaction is there."""

_FROM = "Where packets come from"
_SHOWN = "What is shown"
_FILES = "What is recorded"
_END = "When it ends"

_TIMES = "Set the form of times. " + "; ".join(f"{name}: {meaning}" for name, meaning in TIME_FORMATS.items())

EPILOG = """\b
The timeline has the same form as that of `read`. Below a frame, !! marks a
finding, as soon as the finding is definite. When the other peer answers the
fault in a later frame, -> below that frame marks the answer. If a peer sends
nothing for longer than the agreed timeout allows, `sniff` reports this at
once.

\b
If the kernel drops packets, `sniff` reports their number. If frames arrive
faster than the terminal can show them, the timeline omits some frames. Checks
and recordings never omit frames.

\b
Examples:
  amqpscope sniff                           use all interfaces, AMQP ports
  amqpscope sniff -i lo --quiet             show only findings
  amqpscope sniff -i eth0 --filter 'host 10.0.0.7' -w seen.pcapng
  amqpscope sniff -w day.pcapng --rotate 1h --rotate 500MB --files 24
  amqpscope sniff --until amqp10/L-CREDIT -w breach.pcapng --before 30s
  ssh broker tcpdump -U -w - port 5672 | amqpscope sniff -i -

\b
Exit status: 0 fine, 1 findings that count, 2 a failure (no permission, no
such interface), 3 no AMQP 1.0 or 0-9-1 was seen, or only encrypted,
130 interrupted (Ctrl-C), 143 terminated.
"""


def sniff(
    interfaces: Annotated[
        list[str] | None,
        typer.Option(
            "--interface",
            "-i",
            metavar="NAME",
            rich_help_panel=_FROM,
            show_default=False,
            help="Capture on this network interface. The option may be repeated (-i lo -i"
            " eth0). any: all interfaces; -: read a capture from "
            "standard input. [default: any]",
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", rich_help_panel=_FROM, help="List the network interfaces and exit.")
    ] = False,
    packet_filter: Annotated[
        str,
        typer.Option(
            "--filter",
            "-f",
            metavar="EXPRESSION",
            rich_help_panel=_FROM,
            show_default=False,
            help="Capture only packets that match this tcpdump expression (needs scapy "
            "and libpcap). Default: packets of the AMQP ports.",
        ),
    ] = "",
    any_port: Annotated[
        bool,
        typer.Option(
            "--any-port",
            rich_help_panel=_FROM,
            help="Capture TCP packets of all ports, not only of the AMQP ports.",
        ),
    ] = False,
    top: Annotated[
        bool,
        typer.Option(
            "--top",
            rich_help_panel=_SHOWN,
            help="Show a full-screen view of connections, links and credit. Connections "
            "with problems come first. Press ? for a list of keys.",
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...",
            rich_help_panel=_SHOWN,
            show_default=False,
            help="Show only frames with one of these names, kinds or classes. The values "
            "are the same as for `read --only`. The option may be repeated.",
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            rich_help_panel=_SHOWN,
            show_default=False,
            help="Show only frames with this address, exchange, queue or routing key (* "
            "and ? are wildcards).",
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", rich_help_panel=_SHOWN, help="Show only findings, without frames."),
    ] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            rich_help_panel=_SHOWN,
            help="Show all fields of each frame. -vv also shows message bodies.",
        ),
    ] = 0,
    time: Annotated[
        TimeFormat,
        typer.Option(
            "--time",
            "-t",
            metavar="r|d|a|ad|e",
            show_default=False,
            rich_help_panel=_SHOWN,
            help=f"{_TIMES}.",
        ),
    ] = TimeFormat.a,
    form: Annotated[
        SniffFormat,
        typer.Option(
            "--format",
            metavar="text|ndjson",
            show_default=False,
            rich_help_panel=_SHOWN,
            help="Set the output format. text: for people; ndjson: one JSON "
            "object per line. In ndjson, frames have the form of `read` and findings"
            " the form of `check`. [default: text]",
        ),
    ] = SniffFormat.text,
    path: Annotated[
        str | None,
        typer.Option(
            "--write",
            "-w",
            metavar="FILE",
            rich_help_panel=_FILES,
            show_default=False,
            help="Record the packets in this pcapng file, with findings as packet "
            "comments. Use `-` for standard output.",
        ),
    ] = None,
    rotate: Annotated[
        list[str] | None,
        typer.Option(
            "--rotate",
            metavar="LIMIT",
            rich_help_panel=_FILES,
            show_default=False,
            help="Start a new file after this size, time or number of packets, for "
            "example 100MB, 15min or 100000packets. The option may be repeated.",
        ),
    ] = None,
    files: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            rich_help_panel=_FILES,
            show_default=False,
            help="Keep only the N newest files of the recording.",
        ),
    ] = None,
    embed_keys: Annotated[
        bool,
        typer.Option(
            "--embed-keys",
            rich_help_panel=_FILES,
            help="Put the TLS secrets of the connections into the recording, so that everybody who has the "
            "file can decrypt it. The option needs -w and --tls-keylog or --tls-key.",
        ),
    ] = False,
    until: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE,...",
            rich_help_panel=_END,
            show_default=False,
            help=(
                "Stop when one of these rules is broken (* and ? are wildcards). With -w, record "
                "only the packets shortly before and after the finding. The option may be "
                "repeated."
            ),
        ),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            rich_help_panel=_END,
            show_default=False,
            help=(
                "Begin the recording this long before the finding, for example 10s. The recording keeps at "
                "most 128 MiB of such packets. The option needs --until and -w. [default: {_BEFORE}s]"
            ),
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            rich_help_panel=_END,
            show_default=False,
            help="Stop after this time, for example 90s, 15min or 2h.",
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--count",
            "-c",
            metavar="N",
            rich_help_panel=_END,
            show_default=False,
            help=(
                "Stop after N packets. If the kernel delivers more packets in the same block, sniff "
                "captures these packets, too."
            ),
        ),
    ] = None,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    baseline: BaselineOption = None,
    config: ConfigOption = None,
    no_config: NoConfig = False,
    spec: SpecOption = None,
    profile: ProfileOption = None,
    dialect: DialectOption = None,
    tls_keylog: KeyLogOption = None,
    tls_key: ServerKeyOption = None,
    fail_on: FailOnOption = None,
    fail_on_possible: FailOnPossible = None,
    strict: StrictOption = None,
    allow_empty: AllowEmpty = None,
) -> int:
    """Show the AMQP traffic of network interfaces, and broken rules, while the packets arrive."""
    if listed:
        return _list()
    given = given_of(
        select=select,
        ignore=ignore,
        baseline=baseline,
        fail_on=fail_on,
        possible=fail_on_possible,
        strict=strict,
        allow_empty=allow_empty,
        spec=spec,
        profile=profile,
    )
    configuration = configuration_of(config, no_config)
    policy = Policy(configuration, given, today())
    selection = Selection(address=address, only=parse_names(",".join(only)) if only else None)
    for option, number in (("--files", files), ("--count", most)):
        if number is not None and number < 1:
            raise FilterError(f"{option} {number}: must be at least 1")
    rotation = rotation_of([quantities.rotation("--rotate", one) for one in rotate or []], files or 0)
    if rotation is not None and path is None:
        raise FilterError("--rotate: needs -w, which names the file to rotate")
    awaited: frozenset[str] = rules_like("--until", ",".join(until)) if until else frozenset()
    if before is not None and (not until or path is None or rotation is not None):
        raise FilterError("--before: needs --until and -w, and cannot be combined with --rotate")
    kept = quantities.duration("--before", before) if before is not None else _BEFORE * 1_000_000_000
    if not until or rotation is not None:
        kept = 0
    limit = quantities.duration("--duration", duration) if duration is not None else 0
    stop = Stop(limit, most or 0, awaited, policy.terms.possible)
    if top and (quiet or form is not SniffFormat.text or path == "-"):
        raise FilterError("--top: cannot be combined with --quiet, --format or -w -")
    if path not in (None, "-") and "-" in (interfaces or []) and same_file(path, "-"):
        raise FilterError(f"--write {path}: is the file that standard input reads")
    secrets = secrets_of(tls_keylog, tls_key, configuration, growing=True)
    if embed_keys and (path is None or secrets is None):
        raise FilterError("--embed-keys: needs -w and --tls-keylog or --tls-key")
    with open_source(interfaces or ["any"], packet_filter, any_port) as source:
        give_up()
        recording = None
        if path is not None:
            embedded = secrets if embed_keys else None
            recording = LiveRecording(path, source, packet_filter, rotation, kept, embedded)
        recorder = None if recording is None else recording.recorder
        watch = LiveWatch(
            source,
            CaptureOptions(
                records=not quiet,
                profile=policy.profile,
                spec=policy.spec,
                dialect=dialect or "",
                secrets=secrets,
            ),
            recorder=recorder,
            limits=policy.limits if policy.diagnosing(True) else None,
        )
        audience: LiveView
        if top:
            from amqpscope.cli.live_top import LiveTop  # termios, which not every system has

            audience = LiveTop(watch)
        else:
            # What is recorded to standard output has it for itself.
            outlet = NonBlockingOutput(2 if path == "-" else 1, sys.stdout.encoding)
            if form is SniffFormat.ndjson:
                audience = LiveJson(source.name, selection, quiet, outlet, verbose >= 2)
            else:
                audience = LiveText(source.name, selection, quiet, outlet, time.value, verbose)
        if recording is not None:
            recording.tell = audience.tell
        session = LiveSession(watch, audience, recording, stop, policy)
        session.run()
    return session.status()


def _list() -> int:
    """The interfaces there are, one a line."""
    interfaces = list_interfaces()
    width = max(len(one.name) for one in interfaces)
    for one in interfaces:
        state = "" if one.up else " (down)"
        print(f"{printable(one.name):<{width}}  {printable(one.description)}{state}".rstrip())
    return Status.FINE
