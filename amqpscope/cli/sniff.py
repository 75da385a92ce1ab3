"""`amqpscope sniff`: what is said on an interface, as it is said, with verdicts."""

import functools
from typing import Annotated

import typer

from amqpscope.capture.live.opening import list_interfaces, open_source
from amqpscope.cli.inputs import DialectOption, KeyLogOption, ServerKeyOption, same_file
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
    given_of,
)
from amqpscope.cli.live_options import (
    AddressOption,
    BeforeOption,
    CountOption,
    DurationOption,
    EmbedKeysOption,
    FilesOption,
    FormOption,
    LiveFormat,
    OnlyOption,
    QuietOption,
    RotateOption,
    TimeOption,
    TopOption,
    UntilOption,
    VerboseOption,
    WriteOption,
)
from amqpscope.cli.live_run import LiveChoices, watch_live
from amqpscope.cli.read import TimeFormat
from amqpscope.cli.status import Status
from amqpscope.errors import FilterError
from amqpscope.report.printable import printable

__all__ = ["EPILOG", "sniff"]

_FROM = "Where packets come from"

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
    top: TopOption = False,
    only: OnlyOption = None,
    address: AddressOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
    time: TimeOption = TimeFormat.a,
    form: FormOption = LiveFormat.text,
    path: WriteOption = None,
    rotate: RotateOption = None,
    files: FilesOption = None,
    embed_keys: EmbedKeysOption = False,
    until: UntilOption = None,
    before: BeforeOption = None,
    duration: DurationOption = None,
    most: CountOption = None,
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
    if path is not None and path != "-" and "-" in (interfaces or []) and same_file(path, "-"):
        raise FilterError(f"--write {path}: is the file that standard input reads")
    choices = LiveChoices(
        top=top,
        only=only,
        address=address,
        quiet=quiet,
        verbose=verbose,
        time=time,
        form=form,
        path=path,
        rotate=rotate,
        files=files,
        embed_keys=embed_keys,
        until=until,
        before=before,
        duration=duration,
        most=most,
        given=given,
        config=config,
        no_config=no_config,
        dialect=dialect,
        tls_keylog=tls_keylog,
        tls_key=tls_key,
    )
    opened = functools.partial(open_source, interfaces or ["any"], packet_filter, any_port)
    return watch_live(choices, opened, packet_filter)


def _list() -> int:
    """The interfaces there are, one a line."""
    interfaces = list_interfaces()
    width = max(len(one.name) for one in interfaces)
    for one in interfaces:
        state = "" if one.up else " (down)"
        print(f"{printable(one.name):<{width}}  {printable(one.description)}{state}".rstrip())
    return Status.FINE
