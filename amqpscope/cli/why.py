"""`amqpscope why`: what a packet is, on what it rests, and what followed."""

import enum
import json
from typing import Annotated

import typer

from amqpscope.cli.check import Spec
from amqpscope.cli.output import painter
from amqpscope.cli.status import Status
from amqpscope.errors import FilterError
from amqpscope.rules.profiles import AUTO, valid
from amqpscope.why.inquiry import inquire
from amqpscope.why.json_form import answer_object
from amqpscope.why.rereadable import Rereadable
from amqpscope.why.scenes import Scenes
from amqpscope.why.text import answer_lines

__all__ = ["EPILOG", "why"]

EPILOG = """\b
What a peer must have read its own frames prove: an answer, a count, an
acknowledgement of AMQP's. What it may have read is what had reached its host
by then. What had not arrived can excuse nothing it said.

\b
Earlier frames are told with what they do for the one in question:
  grants      it is needed, and is there: credit, a window, an attach
  lacks       nothing grants it that was captured
  limits      it bounds it: a size, a number
  forbids     it speaks against it: a close, a detach, a number in use
  sets up     it belongs to the state that the frame is said in
  belongs to  the frame goes on with it
  matters to  a finding names it

\b
The capture is read three times; - is copied to a temporary file first.

\b
Examples:
  amqpscope why traffic.pcap 17
  amqpscope why --frame 4 traffic.pcap 17
  amqpscope why --format json traffic.pcap 17 | jq '.frames[].grounds'

\b
Exit status: 0 explained, 2 a failure (no such packet, unreadable file),
3 there is no AMQP 1.0 or 0-9-1 on the packet's connection, 130 interrupted.
"""


class Format(enum.StrEnum):
    """Forms of output."""

    text = "text"
    json = "json"


def why(
    path: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A capture, pcap or pcapng, also in gzip or zstd; - is standard input."
        ),
    ],
    packet: Annotated[int, typer.Argument(metavar="PACKET", help="Its number, as Wireshark counts.")],
    frame: Annotated[
        int,
        typer.Option(
            "--frame",
            metavar="N",
            show_default=False,
            help="Explain the Nth frame of the packet, counted from 1; else those that something is found "
            "at, or the first few.",
        ),
    ] = 0,
    form: Annotated[
        Format,
        typer.Option("--format", metavar="text|json", show_default=False, help="text; json: one object."),
    ] = Format.text,
    spec: Annotated[
        Spec,
        typer.Option("--spec", metavar="final|csd01|csprd02", help="The text to judge by, as of `check`."),
    ] = Spec.final,
    profile: Annotated[
        str,
        typer.Option("--profile", metavar="auto|none|NAME,...", help="Known habits, as of `check`."),
    ] = AUTO,
) -> int:
    """Show what a packet is, what both peers knew, which packets allow or forbid it, and what followed."""
    if packet < 1:
        raise FilterError(f"packet {packet}: they are counted from 1")
    valid(profile)
    with Rereadable(path, profile, spec) as material:
        answer = inquire(material, packet)
        if frame < 0 or frame > len(answer.questions):
            raise FilterError(f"--frame {frame}: the packet has {len(answer.questions)}")
        if answer.connection is None:
            scenes = Scenes.nothing()
        else:
            as_data = form is Format.json
            scenes = Scenes.of(material, answer.connection, answer.marks(), answer.others(), as_data)
    if form is Format.json:
        print(json.dumps(answer_object(answer, scenes)))
    else:
        paint = painter()[0].paint
        for line, hang in answer_lines(answer, scenes, frame):
            print(paint(line, hang))
    return Status.FINE if answer.connection is not None else Status.NO_AMQP
