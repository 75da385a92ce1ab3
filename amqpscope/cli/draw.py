"""`amqpscope draw`: a capture as a picture."""

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from amqpscope.cli.inputs import CaptureArgument, InputOptions, refuse_taken
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.output import meter, notes_to_stderr, say
from amqpscope.cli.place_options import connection_option, first_option, last_option, link_option
from amqpscope.cli.selection import Selection, parse_bound
from amqpscope.cli.status import Status
from amqpscope.draw.picture import Picture, PictureBuilder
from amqpscope.draw.survey import Survey, survey
from amqpscope.errors import CaptureError, FilterError
from amqpscope.input.replay import ReplayableCapture
from amqpscope.policy.replacement import replace_text
from dissectors.wording import count

__all__ = ["EPILOG", "draw", "draw_capture"]

EPILOG = """\b
The suffix of OUT decides the format:
  .html  a page that a browser opens without a network: what is wrong, and
         the ladder, states, flow and map of the worst connections
  .svg   the ladder of a connection, light or dark as the reader prefers
  .md    the ladder in Markdown, as a sequence diagram of Mermaid
  .txt   the ladder as text

A ladder shows the frames of a connection as arrows between client and server,
with each finding below its frame. Without --connection, the connection with
the worst finding is drawn. If a peer sends many frames of the same name, only
the first four and the frames near a finding or a diagnosis are drawn. Between
two drawn frames, one line (a fold) shows the number of frames that are left
out.

If an arrow ends below a frame of the other peer, the frame of the arrow had
not arrived when the other peer sent that frame. The TCP acknowledgement in
that frame proves this.

\b
Examples:
  amqpscope draw traffic.pcap -o traffic.html
  amqpscope draw traffic.pcap -o ladder.svg
  amqpscope draw traffic.pcap -o ladder.svg --around 1217 --scale time
  amqpscope draw traffic.pcap -o ladder.md --connection 3 --link orders
  amqpscope draw --compare before.pcap after.pcap -o compared.html

\b
Exit status: 0 drawn, 2 a failure (unreadable file, unknown suffix), 3 no
AMQP 1.0 or 0-9-1 to draw, 130 interrupted.
"""


class Scale(enum.StrEnum):
    """How far apart rows are."""

    even = "even"
    time = "time"


@with_options
def draw(
    *,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="Draw this capture file (pcap or pcapng, also compressed with gzip or zstd). Give - to "
            "read standard input. With --merge, give several files or directories. With --compare, "
            "give two files.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help=(
                "Write the picture to this file. The suffix of the file decides the format: .html, .svg, "
                ".md or .txt."
            ),
        ),
    ],
    connection: Annotated[
        str | None,
        connection_option(
            "Draw",
            what=(
                "the connection that matches WHICH. If several connections match, the connection with the "
                "worst finding is drawn"
            ),
        ),
    ] = None,
    link: Annotated[str | None, link_option("Draw only frames of")] = None,
    first: Annotated[str | None, first_option("Draw only frames")] = None,
    last: Annotated[str | None, last_option("Draw only frames")] = None,
    around: Annotated[
        int | None,
        typer.Option(
            "--around",
            metavar="PACKET",
            min=1,
            show_default=False,
            help="Draw only frames near this packet, on the connection of this packet.",
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Draw two captures of the same scenario side by side (.svg or .html). The drawing marks "
            "the differences that `amqpscope diff` finds.",
        ),
    ] = False,
    scale: Annotated[
        Scale | None,
        typer.Option(
            "--scale",
            metavar="even|time",
            show_default=False,
            help="Set the distance between rows in SVG. even: the distance is the same for all rows; time: "
            "the distance grows with the time between frames. [default: even]",
        ),
    ] = None,
    reading: InputOptions,
) -> int:
    """Draw frames as arrows between client and server, with the findings below them."""
    selection = Selection(
        connection,
        link=link,
        first=parse_bound("--from", first),
        last=parse_bound("--to", last),
    )
    captures = reading.captures(paths)
    if compare:
        from amqpscope.cli.draw_compare import draw_comparison  # brings what compares

        if not selection.everything or around:
            raise FilterError("--compare: cannot be combined with an option that selects frames")
        if scale is not None:
            raise FilterError("--compare: cannot be combined with --scale")
        return draw_comparison(captures, out)
    if scale is not None and not out.lower().endswith(".svg"):
        raise FilterError("--scale: only with --output OUT.svg")
    if len(captures) > 1:
        raise FilterError(f"draw: give one of the {len(captures)} captures, or merge them with --merge")
    return draw_capture(captures[0], out, selection, around or 0, scale is Scale.time)


def draw_capture(
    one: CaptureArgument, out: str, selection: Selection, around: int = 0, to_scale: bool = False
) -> Status:
    """Draw a capture into a file, whose suffix names the form.

    around: draw only the frames next to this packet; 0 for all. to_scale: in SVG, distances are as the times
    between frames. Raises CaptureError, FilterError, OutputError.
    """
    write = _form(out, to_scale)
    if one.refusal:
        raise CaptureError(one.refusal)
    refuse_taken("--output", out, one.files)
    with ReplayableCapture(
        one.paths, via=one.via, dialect=one.dialect, secrets=one.secrets, meter=meter
    ) as material:
        with material.capture(judge=True, ended=True) as capture:
            surveyed = survey(capture, selection.connection, around)
        if surveyed.nothing:
            say(f"{surveyed.name}: {surveyed.nothing}")
            return Status.NO_AMQP
        if not surveyed.connections:
            raise CaptureError(_nothing_drawn(surveyed, selection, around))
        selection.restart()
        page = out.lower().endswith(".html")
        with material.capture(judge=False, ended=True) as capture:
            builder = _page_of(surveyed, selection) if page else _ladder_of(surveyed, selection)
            picture = builder.read(capture, around)
        if not picture.ladders:
            raise CaptureError(_nothing_drawn(surveyed, selection, around))
        replace_text(out, write(picture))
        for text in surveyed.notes:
            say(f"{surveyed.name}: {text}")
        if material.mishaps:
            notes_to_stderr(material.name, material.mishaps)
            return Status.FAILURE
    _report(out, picture)
    return Status.FINE


def _page_of(surveyed: Survey, selection: Selection) -> PictureBuilder:
    """What builds the ladders of a page: as many rows of all connections as there is room for."""
    from amqpscope.draw.page import rows_of_each

    return PictureBuilder(surveyed, surveyed.connections, selection, rows_of_each(surveyed), fields=True)


def _ladder_of(surveyed: Survey, selection: Selection) -> PictureBuilder:
    """What builds the ladder of the worst connection."""
    return PictureBuilder(surveyed, surveyed.connections[:1], selection)


def _form(out: str, to_scale: bool) -> Callable[[Picture], str]:
    """What draws the form that the suffix of a file names. Raises FilterError if there is none."""
    suffix = Path(out).suffix.lower()
    if suffix == ".svg":
        from amqpscope.draw.svg import ladder_svg

        return lambda picture: ladder_svg(picture.ladders[0][1], picture.survey.title, to_scale)
    if suffix == ".md":
        from amqpscope.draw.markdown import ladder_markdown

        return lambda picture: ladder_markdown(picture.ladders[0][1], picture.survey.title)
    if suffix == ".txt":
        from amqpscope.draw.text import ladder_text

        return lambda picture: ladder_text(picture.ladders[0][1])
    if suffix == ".html":
        from amqpscope.draw.page import page_html

        return page_html
    raise FilterError(f"--output {out}: the name must end in .html, .svg, .md or .txt")


def _nothing_drawn(surveyed: Survey, selection: Selection, around: int) -> str:
    missing = selection.missing()
    if around and not missing:
        return f"{surveyed.name}: --around {around}: no frame begins in this packet"
    return f"{surveyed.name}: {missing or 'no frame matches the options'}"


def _report(out: str, picture: Picture) -> None:
    """Say what was drawn, and what was left out."""
    if out.lower().endswith(".html"):
        say(f"{out}: {count(len(picture.ladders), 'connection')} of {picture.survey.name}")
        return
    one, ladder = picture.ladders[0]
    others = len(picture.survey.connections) + picture.survey.more - 1
    text = f"{out}: connection {one.connection.stream}, {count(len(ladder.arrows), 'frame')}"
    if ladder.folded:
        text += f" and {ladder.folded} folded"
    if others:
        text += f"; {count(others, 'other connection')} not drawn (--connection chooses)"
    say(text)
