"""`amqpscope sniff`: what is said on an interface, as it is said, with verdicts."""

import functools
from typing import Annotated

import typer

from amqpscope.capture.live.opening import list_interfaces, open_source
from amqpscope.cli.live_options import LiveOptions
from amqpscope.cli.live_run import watch_live
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.status import Status
from amqpscope.report.printable import printable

__all__ = ["EPILOG", "sniff"]

_FROM = "Where packets come from"

EPILOG = """\b
The timeline has the same form as that of `read`. Below a frame, !! marks a
finding, as soon as no later frame can change the finding. If the other peer
answers the fault in a later frame, -> marks this answer below the later
frame. If a peer sends nothing for longer than the agreed timeout allows,
`sniff` reports this at once.

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
Exit status: 0 fine, 1 findings that make the command fail, 2 a failure (no
permission, no such interface), 3 no AMQP 1.0 or 0-9-1 was seen, or only
encrypted AMQP, 130 interrupted (Ctrl-C), 143 terminated.
"""


@with_options
def sniff(
    *,
    interfaces: Annotated[
        list[str] | None,
        typer.Option(
            "--interface",
            "-i",
            metavar="NAME",
            rich_help_panel=_FROM,
            show_default=False,
            help="Capture on this network interface. The option may be repeated (-i lo -i eth0). Give `any` "
            "to capture on all interfaces, or - to read a capture from standard input. [default: any]",
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
            help="Capture only packets that match this tcpdump expression (needs scapy and libpcap). By "
            "default, only packets of the AMQP ports are captured.",
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
    live: LiveOptions,
) -> int:
    """Show the AMQP traffic of network interfaces, and broken rules, while the packets arrive."""
    if listed:
        return _list()
    names = interfaces or ["any"]
    opened = functools.partial(open_source, names, packet_filter, any_port)
    return watch_live(live, opened, packet_filter, ["-"] if "-" in names else [])


def _list() -> int:
    """The interfaces there are, one a line."""
    interfaces = list_interfaces()
    width = max(len(one.name) for one in interfaces)
    for one in interfaces:
        state = "" if one.up else " (down)"
        print(f"{printable(one.name):<{width}}  {printable(one.description)}{state}".rstrip())
    return Status.FINE
