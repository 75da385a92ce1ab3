"""Turns lines of styled parts into what an output can show: its colours, its signs, its width."""

import os
import sys
from typing import TYPE_CHECKING, TextIO, Union

from amqpscope.report.line import Line
from amqpscope.report.printable import cells, cut, wrap

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Painter", "painter", "painter_of", "shortened"]

# Each can be read on black and on white: no yellow, no white.
_STYLES = {
    "": "",
    "dim": "dim",
    "client": "cyan",
    "server": "magenta",
    "name": "bold",
    "transfer": "bold green",
    "flow": "bold blue",
    "end": "bold dark_orange3",
    "sasl": "bold dim",
    "problem": "bold red",
    "note": "dark_orange3",
    "rule": "bold",
    "key": "dim",
    "address": "green",
    "error": "red",
    "selected": "reverse",
}

# Our own signs, for outputs that cannot show them. What the wire sent is escaped by the output itself.
_ASCII = str.maketrans(
    {"→": ">", "←": "<", "─": "-", "═": "=", "…": "~", "–": "-", "×": "x", "│": "|", "»": ">", "▌": ">"}
)

_FORCING = frozenset({"FORCE_COLOR", "TTY_COMPATIBLE"})
"""Variables that can make any output one with colours."""

_NARROWEST = 20
"""Columns that are always taken to be there."""


class Uncoloured:
    """What a painter asks of an output without colours, as `rich.console.Console` says it of any output.

    To load that takes longer than to check a small capture.
    """

    def __init__(self, out: TextIO) -> None:
        self.encoding: str = getattr(out, "encoding", None) or "utf-8"
        self._color_system = None
        self.no_color = True


class Painter:
    """Turns lines into text for one output: with colour or without, within its width or whole.

    width: columns, or None for an output that takes lines of any length (a file, a pipe).
    """

    def __init__(self, console: Union["Console", Uncoloured], width: int | None) -> None:
        self._width = None if width is None else max(width, _NARROWEST)
        self._ascii = not console.encoding.lower().startswith("utf")
        system = console._color_system
        self._styles: dict[str, tuple[str, str]] = {}
        if system is not None and not console.no_color:
            from rich.style import Style

            for name, style in _STYLES.items():
                if style:
                    before, _, after = Style.parse(style).render("\0", color_system=system).partition("\0")
                    self._styles[name] = (before, after)

    @property
    def width(self) -> int | None:
        """Columns of the output, None if it takes lines of any length."""
        return self._width

    @property
    def bare(self) -> bool:
        """Whether only the text of a line matters: no style, no width, and no sign to be replaced."""
        return self._width is None and not self._styles and not self._ascii

    def paint(self, line: Line, hang: int = -1, remark: str = "") -> str:
        """One line, without a line end.

        What is wider than the output is cut, or, with `hang`, goes on in a new line behind so many spaces.
        remark: stands at the end of the line if there is room for it.
        """
        if self.bare:
            text = "".join([text for _, text in line])
            return f"{text}  {remark}" if remark else text.rstrip()
        if remark and (self._width is None or _cells_of(line) + cells(remark) + 2 <= self._width):
            line = [*line, ("dim", f"  {remark}")]
        if self._ascii:
            line = [(style, text.translate(_ASCII)) for style, text in line]
        width = self._width
        if width is None:
            return self._join(line)
        if _cells_of(line) <= width:
            return self._join(line)
        if hang < 0:
            return self._join(shortened(line, width))
        return self._join(_wrapped(line, width, hang))

    def _join(self, line: Line) -> str:
        """The parts with their styles; spaces at the end belong to no line."""
        styles = self._styles
        last = len(line) - 1
        while last >= 0 and not line[last][1].rstrip(" ") and line[last][0] != "selected":
            last -= 1
        parts = []
        for index in range(last + 1):
            name, text = line[index]
            if index == last and name != "selected":
                text = text.rstrip(" ")
            style = styles.get(name)
            parts.append(text if style is None else f"{style[0]}{text}{style[1]}")
        return "".join(parts)


def _cells_of(line: Line) -> int:
    return sum([cells(text) for _, text in line])


def shortened(line: Line, width: int) -> Line:
    """As much of a line that is wider than `width` as fits, and a sign that there is more."""
    room = width
    kept: Line = []
    for style, text in line:
        size = cells(text)
        if size >= room:
            # Even if this part would just fit, something follows that does not.
            kept.append((style, cut(text + "  ", room)))
            break
        kept.append((style, text))
        room -= size
    return kept


def _wrapped(line: Line, width: int, hang: int) -> Line:
    """A line in several, all but the first behind `hang` spaces."""
    hang = min(hang, width // 3)
    indent = "\n" + " " * hang
    column = 0
    wrapped: Line = []
    for style, text in line:
        size = cells(text)
        if column + cells(text.rstrip(" ")) <= width:
            wrapped.append((style, text))
            column += size
            continue
        pieces = wrap(text, width - column, width - hang)
        for index, piece in enumerate(pieces):
            if index:
                # Spaces before the break would stand beyond the width.
                while wrapped and not wrapped[-1][1].rstrip(" "):
                    wrapped.pop()
                if wrapped:
                    before, last = wrapped.pop()
                    wrapped.append((before, last.rstrip(" ")))
                wrapped.append(("", indent))
                column = hang
                piece = piece.lstrip(" ")
            wrapped.append((style, piece))
            column += cells(piece)
    return wrapped


def painter() -> tuple[Painter, int | None]:
    """What paints lines for standard output, and how wide that is: None where lines may be of any length."""
    if not sys.stdout.isatty() and _FORCING.isdisjoint(os.environ):
        return Painter(Uncoloured(sys.stdout), None), None
    from rich.console import Console

    output = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
    width = output.width if sys.stdout.isatty() else None
    return Painter(output, width), width


def painter_of(out: TextIO) -> Painter:
    """What paints lines for standard output, or for a file: without colours, lines of any length."""
    if out is sys.stdout:
        return painter()[0]
    return Painter(Uncoloured(out), None)
