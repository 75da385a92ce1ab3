"""`amqpscope cut`: a part of a capture as a file of its own, with the findings as comments."""

import os
import secrets
import shutil
import tempfile
from functools import partial
from typing import Annotated

import typer

from amqpscope.capture.source import called, only_once
from amqpscope.cli.inputs import DecodingOptions, refuse_repeated, refuse_taken
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.output import notes_to_stderr, say
from amqpscope.cli.place_options import (
    address_option,
    connection_option,
    first_option,
    last_option,
    link_option,
)
from amqpscope.cli.run_files import RunFiles
from amqpscope.cli.selection import Selection, parse_bound
from amqpscope.cli.status import Status
from amqpscope.cutting.anonymising import Anonymised
from amqpscope.cutting.cut import CutResult, CutSource, Disguise, Wish
from amqpscope.cutting.cut import cut as cut_capture
from amqpscope.errors import FilterError
from amqpscope.input.replay import copy_octets
from amqpscope.policy.replacement import replace_text
from dissectors.wording import are, count

__all__ = ["EPILOG", "cut"]

EPILOG = """\b
Without an option that chooses packets, the file contains the whole capture.
With --connection, `cut` keeps all packets of the connection. With --link,
--address, --from, --to, --around or --findings, `cut` keeps a part of each
connection. The file then also contains the handshake, the login and all
frames that open, attach or declare something, so `check` knows the state of
the connection when it reads the file. For `check`, the packets that were left
out look like lost packets, and no rule reports lost packets as a fault.

\b
`cut` checks the file that it writes. Each finding becomes a comment on its
packet (in Wireshark: frame.comment). The comment contains the number that the
packet has in the original capture. If a shortened connection does not show
the same findings of the grade `certain` as the original, `cut` keeps the
whole connection.

\b
--anonymise replaces names, credentials and data by values of the same size,
and writes packets without their link layer. At the end, the command shows
what was replaced, what was kept and what was left out.

\b
The file is read twice. Standard input, or a pipe, is first copied to a
temporary file.

\b
Examples:
  amqpscope cut traffic.pcap -o one.pcapng --connection 62
  amqpscope cut traffic.pcap -o faults.pcapng --findings
  amqpscope cut traffic.pcap -o part.pcapng --from 2026-01-31T12:00 --to +90
  amqpscope cut traffic.pcap -o orders.pcapng --address 'orders*'
  amqpscope cut traffic.pcap -o mine.pcapng --connection 62 --anonymise
  amqpscope cut traffic.pcap --findings --anonymise --report for-the-report
  tcpdump -w - port 5672 | amqpscope cut - -o faults.pcapng --findings

\b
Exit status: 0 the file is written, 2 a failure (unreadable file, no packet
matches the options), 130 interrupted.
"""

_CHOOSE = "Which packets stay"

_HIDE = "What is replaced"

_NEAR = 100

CUT_NAME = "cut.pcapng"
"""The cut in the folder of a report."""

# Each line is a rule, in the form that Wireshark imports; the file of a profile has the same form.
_COLORING = """\
@amqpscope: error@frame.comment matches "^error "@[65535,52428,52428][32768,0,0]
@amqpscope: warning@frame.comment matches "^warning "@[65535,61166,47802][26214,16384,0]
@amqpscope: possible or note@frame.comment matches "^(possible|note) "@[58082,60909,65535][0,0,26214]
"""

# The columns of a profile, in the form of Wireshark's own file: pairs of a title and a format.
_PREFERENCES = """\
gui.column.format:
\t"No.", "%m",
\t"Time", "%t",
\t"Source", "%s",
\t"Destination", "%d",
\t"Protocol", "%p",
\t"Finding", "%Cus:frame.comment:0:R",
\t"Info", "%i"
"""

# The files of a profile.
_PROFILE = {"colorfilters": _COLORING, "preferences": _PREFERENCES}

_KEPT = (
    "times, sizes, standard words outside credentials, message ids and bodies, product names, versions, "
    "mechanisms, error conditions, numbers of the protocol and numbers below 256"
)


@with_options
def cut(
    *,
    path: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Read this capture file (pcap or pcapng, also compressed with gzip or zstd). Give - to "
            "read standard input.",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="OUT.pcapng", help="Write the chosen packets to this file."),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            "--report",
            metavar="FOLDER",
            help="Write a folder for a bug report: the chosen packets as a capture file, the findings as "
            "Markdown, an HTML page that shows the conversation, and the versions of amqpscope, Python "
            "and the system.",
        ),
    ] = None,
    coloring: Annotated[
        str | None,
        typer.Option(
            "--coloring-rules",
            metavar="FILE",
            help="Also write coloring rules to this file, so that Wireshark can color the packets with "
            "findings. To use the file, choose View > Coloring Rules > Import in Wireshark.",
        ),
    ] = None,
    wireshark_profile: Annotated[
        str | None,
        typer.Option(
            "--wireshark-profile",
            metavar="FOLDER",
            help="Also write a Wireshark profile to this folder. The profile has the coloring rules, and a "
            "column with the findings. Wireshark looks for profiles in the folder `profiles` of your "
            "personal configuration (Help > About Wireshark > Folders). FOLDER must be empty, or must "
            "not exist yet. One Wireshark profile works for all captures.",
        ),
    ] = None,
    connection: Annotated[str | None, connection_option("Keep", _CHOOSE)] = None,
    link: Annotated[str | None, link_option("Keep frames of", _CHOOSE)] = None,
    address: Annotated[
        str | None, address_option("Keep", _CHOOSE, "an exchange, a queue or a routing key")
    ] = None,
    first: Annotated[str | None, first_option("Keep packets", _CHOOSE)] = None,
    last: Annotated[str | None, last_option("Keep packets", _CHOOSE)] = None,
    around: Annotated[
        int | None,
        typer.Option(
            "--around",
            metavar="PACKET",
            min=1,
            rich_help_panel=_CHOOSE,
            help="Keep the packets of the same connection that are near this packet (see --near).",
        ),
    ] = None,
    findings: Annotated[
        bool,
        typer.Option(
            "--findings",
            rich_help_panel=_CHOOSE,
            help="Keep the packets near findings of `check` (see --near). If you add other options of this "
            "group, only findings that match these options are used.",
        ),
    ] = False,
    near: Annotated[
        int | None,
        typer.Option(
            "--near",
            metavar="N",
            rich_help_panel=_CHOOSE,
            show_default=False,
            help="With --around or --findings, keep N packets of the connection before each chosen packet, "
            f"and N packets after this packet. [default: {_NEAR}]",
        ),
    ] = None,
    anonymise: Annotated[
        bool,
        typer.Option(
            "--anonymise",
            rich_help_panel=_HIDE,
            help="Replace addresses, names, credentials, application data, ids and bodies by other values "
            "of the same size. TLS connections and packets without TCP are left out of the file.",
        ),
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            rich_help_panel=_HIDE,
            show_default=False,
            help="Derive the replacements from this key: the same key gives the same replacements in each "
            "run. [default: a random key]",
        ),
    ] = None,
    ports: Annotated[
        bool, typer.Option("--ports", rich_help_panel=_HIDE, help="Replace the TCP ports, too.")
    ] = False,
    decoding: DecodingOptions,
) -> int:
    """Write a part of a capture to a file of its own, with the findings as comments on packets."""
    selection = Selection(
        connection,
        link=link,
        address=address,
        first=parse_bound("--from", first),
        last=parse_bound("--to", last),
    )
    if around is not None and not selection.everything:
        raise FilterError(f"--around: cannot be combined with {selection.words.split()[0]}")
    if not anonymise and (key is not None or ports):
        raise FilterError(f"{'--ports' if key is None else '--key'}: only with --anonymise")
    if key == "":
        raise FilterError("--key '': must not be empty")
    if near is not None and near < 0:
        raise FilterError(f"--near {near}: must be at least 0")
    near_something = findings or around is not None
    if near is not None and not near_something:
        raise FilterError("--near: only with --around or --findings")
    read = [path, *decoding.files()]
    refuse_repeated(read)
    output = _checked_output(read, output, report, coloring, wireshark_profile)
    tls = decoding.secrets()
    disguise = (
        Disguise(secrets.token_bytes(32) if key is None else key.encode(), ports) if anonymise else None
    )
    everything = selection.everything and not near_something
    wish = Wish(
        selection,
        everything,
        selection.all_frames and not near_something,
        findings,
        around or 0,
        _NEAR if near is None else near,
    )
    with RunFiles() as files:
        for folder in (report, wireshark_profile):
            if folder is not None:
                from amqpscope.cli.cut_report import new_folder  # brings what draws

                files.at_end(new_folder(folder))
        if coloring is not None:
            files.new(coloring).open().write(_COLORING)
        meanwhile = tempfile.mkdtemp(prefix="amqpscope-")
        files.at_end(partial(shutil.rmtree, meanwhile, ignore_errors=True))
        with files.new(output).reserved() as out:
            source = _readable(path, meanwhile)._replace(dialect=decoding.dialect or "", secrets=tls)
            result = cut_capture(source, wish, out, meanwhile, disguise)
        files.complete()
        if report is not None:
            from amqpscope.cli.cut_report import write_report

            shown = source if disguise is None else source._replace(secrets=None)
            write_report(report, output, shown, disguise is not None)
        if wireshark_profile is not None:
            for name, text in _PROFILE.items():
                replace_text(os.path.join(wireshark_profile, name), text)
    notes_to_stderr(source.name, result.notes)
    _report(output, result)
    return Status.FINE


def _checked_output(
    read: list[str], output: str | None, report: str | None, coloring: str | None, profile: str | None
) -> str:
    """The file of the cut. read: all files that are read. Raises FilterError for what makes no sense."""
    if output is None and report is None:
        raise FilterError("cut: give a file (-o OUT.pcapng) or a folder (--report FOLDER)")
    for option, path in (("--output", output), ("--coloring-rules", coloring)):
        if path in ("", "-"):
            raise FilterError(f"{option} '{path}': must name a file")
    taken = list(read)
    if profile is not None:
        taken += [os.path.join(profile, name) for name in _PROFILE]
    if report is not None:
        from amqpscope.cli.cut_report import files_of_report  # brings what draws

        taken += files_of_report(report)
    if output is not None:
        refuse_taken("--output", output, taken)
        taken.append(output)
    if coloring is not None:
        refuse_taken("--coloring-rules", coloring, taken)
    return output or os.path.join(report or "", CUT_NAME)


def _readable(path: str, folder: str) -> CutSource:
    """The capture as a file that can be read several times; what can be read once is copied to the folder."""
    if not only_once(path):
        return CutSource(path, path)
    copy = os.path.join(folder, "input")
    with open(copy, "w+b") as file:
        copy_octets(path, file)
    return CutSource(copy, called(path))


def _report(output: str, result: CutResult) -> None:
    """Say on standard error what stayed, and what was left out."""
    left = result.original - result.packets
    say(
        f"{output}: {count(result.packets, 'packet')} of {result.original}, "
        f"{count(result.connections, 'connection')}, {count(len(result.findings), 'finding')} as comments"
    )
    if left:
        part = (
            f", some of them of {count(result.partial, 'connection')} that stays in part"
            if result.partial
            else ""
        )
        say(f"{output}: left out {count(left, 'packet')}{part}; `check` of this file counts them as lost")
    for stream in result.widened:
        say(
            f"{output}: connection {stream} stays whole, because a part of it does not show the same findings"
        )
    if result.anonymised is not None:
        _report_anonymised(output, result.anonymised)
    why = "packets were left out" if left else "values were replaced"
    if result.missing:
        missing = count(len(result.missing), "finding")
        say(f"{output}: {missing} of the original {are(len(result.missing))} not found, because {why}")
    if result.new:
        say(f"{output}: {count(len(result.new), 'possible finding')} only because {why}")
    if result.unsaid:
        say(f"{output}: {count(result.unsaid, 'finding')} left out, there are too many")


def _report_anonymised(output: str, made: Anonymised) -> None:
    """Say what was replaced, what stays, and what could not be masked."""
    replaced = ", ".join(f"{number} {kind}" for kind, number in sorted(made.replaced.items()))
    say(f"{output}: replaced all addresses, {replaced or 'and no other value'}")
    say(f"{output}: kept {_KEPT}")
    if made.zeroed:
        say(f"{output}: {count(made.zeroed, 'octet')} that belong to no frame are zeros")
    for why, number in made.left_out.items():
        say(f"{output}: left out {count(number, 'connection')}: {why}")
