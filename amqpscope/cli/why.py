"""`amqpscope why`: what a packet is, on what it rests, and what followed; or why something ended."""

import json
import os
import re
import sys
from typing import Annotated

import typer

from amqpscope.cli.inputs import CaptureArgument, InputOptions
from amqpscope.cli.judging import Spec
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.output import TextOrJson, meter, notes_to_stderr, say
from amqpscope.cli.painted import print_lines
from amqpscope.cli.selection import WantedConnection
from amqpscope.cli.status import Status, worst
from amqpscope.errors import CaptureError, FilterError
from amqpscope.input.replay import ReplayableCapture
from amqpscope.model.records import Connection
from amqpscope.model.ring_names import AGAIN
from amqpscope.report.shell import shell_word
from amqpscope.rules.profiles import AUTO, valid
from amqpscope.why.capture_ends import ends_of
from amqpscope.why.endings_text import endings_lines, wanted_of
from amqpscope.why.excerpts import ExplainedFrames
from amqpscope.why.inquiry import inquire
from amqpscope.why.json_form import answer_object, endings_object
from amqpscope.why.text import answer_lines

__all__ = ["EPILOG", "why"]

_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)

EPILOG = """\b
Some frames prove that their sender had read an earlier frame: an answer, a
count or an AMQP acknowledgement. Without such a proof, it is open whether a
peer had read a frame that had reached the peer's host. A peer cannot have
read a frame that had not arrived.

\b
Each earlier frame is shown with its effect on the explained frame:
  grants      the earlier frame allows the explained frame (such as credit)
  lacks       no captured frame allows the explained frame
  limits      the earlier frame sets a limit (such as a maximum size)
  forbids     the earlier frame forbids the explained frame (such as a close)
  sets up     the earlier frame set up the state in which the frame was sent
  belongs to  the explained frame continues the earlier frame
  matters to  a finding mentions the earlier frame

\b
With --end, connections that ended normally are not shown, unless there are
only a few connections or --connection is given. For each end that was not
normal, `why` searches for the cause: a finding, the method for which a close
reports an error, an earlier error, a silence, or a diagnosis. The word
`perhaps` marks an event that came before the end, but may not have caused the
end. The word `also` marks a diagnosis of the connection that does not explain
an end.

\b
`why` reads the capture several times, so it first copies standard input,
or a pipe, to a temporary file. With --merge, packets are numbered across all
files, as in `check --merge`. The output also shows the original file of a
packet, and the packet's number in that file.

\b
Examples:
  amqpscope why traffic.pcap 17
  amqpscope why --frame 4 traffic.pcap 17
  amqpscope why --format json traffic.pcap 17 | jq '.frames[].grounds'
  amqpscope why --merge rotated/ 1700
  amqpscope why --end --connection 3 traffic.pcap
  amqpscope why --end recorded/

\b
Exit status: 0 explained, 2 a failure (no such packet, unreadable file),
3 there is no AMQP 1.0 or 0-9-1 on the packet's connection, or in the capture,
130 interrupted. With --end and several captures, all captures are explained.
The exit status is then the first of 2, 3 and 0 that applies to any capture.
"""


@with_options
def why(
    *,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="Read this capture file (pcap or pcapng, also compressed with gzip or zstd). Give - to "
            "read standard input. With --merge or --end, several files or directories may be given.",
        ),
    ] = None,
    packet: Annotated[
        str | None,
        typer.Argument(
            metavar="[PACKET]",
            show_default=False,
            help="Explain the packet with this number (Wireshark's packet "
            "number). Leave the number out if you use --end.",
        ),
    ] = None,
    end: Annotated[
        bool,
        typer.Option(
            "--end",
            help="Explain why each connection, session, link and channel ended, and what the first cause "
            "was. Do not give a PACKET with this option.",
        ),
    ] = False,
    connection: Annotated[
        str | None,
        typer.Option(
            "--connection",
            metavar="WHICH",
            help="Explain only the connections that match WHICH. WHICH is a connection's number, a "
            "connection's id from the JSON output, an ADDRESS or an ADDRESS:PORT. Give this option "
            "only together with --end.",
        ),
    ] = None,
    frame: Annotated[
        int | None,
        typer.Option(
            "--frame",
            metavar="N",
            show_default=False,
            help="Explain only the Nth frame of the packet, counted from 1. By default, the frames with "
            "findings are explained, or the first few frames if no frame has findings.",
        ),
    ] = None,
    form: Annotated[
        TextOrJson,
        typer.Option(
            "--format",
            metavar="text|json",
            show_default=False,
            help="Set the output format. text: for people; json: one JSON object per capture. "
            "[default: text]",
        ),
    ] = TextOrJson.text,
    spec: Annotated[
        Spec,
        typer.Option(
            "--spec",
            metavar="final|csd01|csprd02",
            help="Check messages against this edition of AMQP 1.0: the final"
            " specification of 2011, or the OASIS drafts of February "
            "2012 (csd01) or May 2012 (csprd02).",
        ),
    ] = Spec.final,
    profile: Annotated[
        str,
        typer.Option(
            "--profile",
            metavar="auto|none|NAME,...",
            help="Report the known deviations of these products only as notes. The values are "
            "the same as for `check --profile`.",
        ),
    ] = AUTO,
    reading: InputOptions,
) -> int:
    """Show the frames of a packet, what allows or forbids each frame, and what followed."""
    valid(profile)
    named = paths or []
    if end:
        # The last word is none of a packet then.
        named = named if packet is None else [*named, packet]
        return _every_end(
            named,
            frame,
            connection,
            form,
            reading.captures(named),
            profile,
            spec,
        )
    if packet is None or not named:
        if packet is None and not named:
            raise FilterError("a FILE and a PACKET are needed")
        one = shell_word(named[0] if named else str(packet))
        raise FilterError(
            f"a PACKET is needed: amqpscope why {one} PACKET; `amqpscope check` names packets with findings, "
            f"and `amqpscope why --end {one}` explains how connections ended"
        )
    if connection is not None:
        raise FilterError("--connection: only with --end")
    if len(named) == 1 and _NUMBER.fullmatch(named[0]) and os.path.exists(packet):
        raise FilterError(f"the file comes before the packet: amqpscope why {shell_word(packet)} {named[0]}")
    if "#" in named[0] and not os.path.lexists(named[0]):
        _hint_at_ring(named[0], packet)
    number = _number(packet)
    captures = reading.captures(named)
    if len(captures) > 1:
        raise FilterError(
            f"packet {number}: give one of the {len(captures)} captures, or merge them with --merge"
        )
    with _material(captures[0], profile, spec) as material:
        answer = inquire(material, number)
        if frame is not None and not 1 <= frame <= len(answer.questions):
            raise FilterError(
                f"--frame {frame}: the number of frames in the packet is {len(answer.questions)}"
            )
        if answer.connection is None:
            scenes = ExplainedFrames.nothing()
        else:
            as_data = form is TextOrJson.json
            scenes = ExplainedFrames.of(material, answer.connection, answer.marks(), answer.others(), as_data)
    if form is TextOrJson.json:
        print(json.dumps(answer_object(answer, scenes)))
    else:
        print_lines(answer_lines(answer, scenes, frame or 0))
    return _status(material, answer.connection is not None)


def _hint_at_ring(given: str, packet: str) -> None:
    """Raise FilterError if a file that is not there has a name that only tables give a file that is."""
    name = AGAIN.sub("", given)
    if name != given and os.path.exists(name):
        raise FilterError(
            f"{given}: no such file: tables of a ring of captures call a newer {name} so; if the file was "
            f"not overwritten since then: amqpscope why {shell_word(name)} {packet}"
        )


def _status(material: ReplayableCapture, found: bool) -> Status:
    """found: whether there is something to explain. Damage, and what amqpscope failed to do, is reported."""
    sys.stdout.flush()
    notes_to_stderr(material.name, [*material.damage, *material.mishaps])
    if material.mishaps:
        return Status.FAILURE
    return Status.FINE if found else Status.NO_AMQP


def _number(given: str) -> int:
    """Of a packet."""
    if not _NUMBER.fullmatch(given):
        raise FilterError(f"packet {given}: must be a number")
    if int(given) < 1:
        raise FilterError(f"packet {given}: packets are counted from 1")
    return int(given)


def _material(one: CaptureArgument, profile: str, spec: Spec) -> ReplayableCapture:
    if one.refusal:
        raise CaptureError(one.refusal)
    return ReplayableCapture(one.paths, profile, spec, one.via, one.dialect, one.secrets, meter)


def _every_end(
    named: list[str],
    frame: int | None,
    connection: str | None,
    form: TextOrJson,
    captures: list[CaptureArgument],
    profile: str,
    spec: Spec,
) -> Status:
    """Why things ended, in each capture."""
    if frame is not None or (named and _NUMBER.fullmatch(named[-1]) and not os.path.exists(named[-1])):
        raise FilterError("--end: cannot be combined with a packet or --frame")
    if not named:
        raise FilterError("--end: a FILE is needed")
    statuses: list[Status] = []
    for one in captures:
        below = any(status is not Status.FAILURE for status in statuses)
        try:
            with _material(one, profile, spec) as material:
                statuses.append(_ends(material, connection, form, below))
        except CaptureError as error:
            sys.stdout.flush()
            say(str(error))
            statuses.append(Status.FAILURE)
    return worst(statuses)


def _ends(material: ReplayableCapture, which: str | None, form: TextOrJson, below: bool) -> Status:
    """Why things ended. below: what is shown about another capture."""
    named = None if which is None else WantedConnection(which)

    def wanted(connection: Connection) -> bool:
        return named is None or named.takes(connection)

    found = ends_of(material, wanted)
    missing = "" if named is None else named.missing()
    if missing:
        say(f"{material.name}: {missing}")
        notes_to_stderr(material.name, material.damage)
        return Status.FAILURE
    as_data = form is TextOrJson.json
    scenes = ExplainedFrames.of_several(material, wanted_of(found.connections), as_data)
    if as_data:
        print(json.dumps(endings_object(material.name, found, scenes)))
    else:
        if below:
            print()
        file = shell_word(material.path) if material.path else ""
        print_lines(endings_lines(material.name, found, scenes, which is not None, file))
    if found.nothing:
        sys.stdout.flush()
        say(f"{material.name}: {found.nothing}")
    return _status(material, bool(found.connections) and not found.nothing)
