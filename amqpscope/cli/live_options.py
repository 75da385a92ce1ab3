"""Options of the commands that watch live traffic: what is shown and recorded, and when the run ends."""

import enum
from typing import Annotated

import typer

from amqpscope.cli.inputs import DecodingOptions
from amqpscope.cli.judging import NewFindingOptions, RuleOptions, StatusOptions
from amqpscope.cli.option_groups import OptionGroup
from amqpscope.cli.time_format import TimeFormat, time_option

__all__ = ["BEFORE", "LiveFormat", "LiveOptions"]


class LiveFormat(enum.StrEnum):
    """Forms of output."""

    text = "text"
    ndjson = "ndjson"


BEFORE = 10
"""Seconds that are kept before the finding that --until waits for."""

_SHOWN = "What is shown"
_FILES = "What is recorded"
_END = "When it ends"


class LiveOptions(OptionGroup):
    """What is shown and recorded of live traffic, when the run ends, and what is made of it."""

    top: Annotated[
        bool,
        typer.Option(
            "--top",
            rich_help_panel=_SHOWN,
            help="Show a full-screen view of connections, links and credit. Connections with problems come "
            "first. Press ? for a list of keys.",
        ),
    ] = False
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...",
            rich_help_panel=_SHOWN,
            show_default=False,
            help="Show only frames with one of these names, kinds or classes. The values are the same as "
            "for `read --only`. The option may be repeated.",
        ),
    ] = None
    address: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            rich_help_panel=_SHOWN,
            show_default=False,
            help="Show only frames with this address, exchange, queue or routing key (* and ? are "
            "wildcards).",
        ),
    ] = None
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", rich_help_panel=_SHOWN, help="Show only the findings, not the frames."),
    ] = False
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
    ] = 0
    time: Annotated[TimeFormat, time_option(_SHOWN)] = TimeFormat.a
    form: Annotated[
        LiveFormat,
        typer.Option(
            "--format",
            metavar="text|ndjson",
            show_default=False,
            rich_help_panel=_SHOWN,
            help="Set the output format. text: for people; ndjson: one JSON object per line. In the format "
            "ndjson, frames look like the output of `read`, and findings look like the output of "
            "`check`. [default: text]",
        ),
    ] = LiveFormat.text
    path: Annotated[
        str | None,
        typer.Option(
            "--write",
            "-w",
            metavar="FILE",
            rich_help_panel=_FILES,
            show_default=False,
            help="Record the packets in this pcapng file, with findings as packet comments. Give - to write "
            "to standard output.",
        ),
    ] = None
    rotate: Annotated[
        list[str] | None,
        typer.Option(
            "--rotate",
            metavar="LIMIT",
            rich_help_panel=_FILES,
            show_default=False,
            help="Start a new file after this size, time or number of packets, for example 100MB, 15min or "
            "100000packets. The option may be repeated.",
        ),
    ] = None
    files: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            rich_help_panel=_FILES,
            show_default=False,
            help="Keep only the N newest files of the recording.",
        ),
    ] = None
    embed_keys: Annotated[
        bool,
        typer.Option(
            "--embed-keys",
            rich_help_panel=_FILES,
            help="Write the TLS secrets of the connections into the recording. Everybody who has the file "
            "can then decrypt the connections. The option needs -w, and also --tls-keylog or "
            "--tls-key.",
        ),
    ] = False
    until: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE,...",
            rich_help_panel=_END,
            show_default=False,
            help="Stop when one of these rules is broken (* and ? are wildcards). With -w, record only the "
            "packets shortly before and after the finding that stops the command. The option may be "
            "repeated.",
        ),
    ] = None
    before: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            rich_help_panel=_END,
            show_default=False,
            help=(
                "Begin the recording this long before the finding, for example 10s. Of the packets before "
                "the finding, the recording keeps the last 128 MiB. The option needs --until and "
                f"-w. [default: {BEFORE}s]"
            ),
        ),
    ] = None
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            rich_help_panel=_END,
            show_default=False,
            help="Stop after this time, for example 90s, 15min or 2h.",
        ),
    ] = None
    most: Annotated[
        int | None,
        typer.Option(
            "--count",
            "-c",
            metavar="N",
            rich_help_panel=_END,
            show_default=False,
            help="Stop after N packets. Packets that arrive together with the Nth packet are also captured.",
        ),
    ] = None
    findings: NewFindingOptions
    rules: RuleOptions
    decoding: DecodingOptions
    status: StatusOptions
