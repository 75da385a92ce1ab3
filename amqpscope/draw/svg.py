"""A ladder as SVG: one file without a script, a font or a link, light or dark as the reader prefers.

Time flows down. A frame is an arrow; its text is text, so it can be searched, selected and read aloud. An
arrow that is known to be in flight while the other peer sends ends below that peer's frame: they cross.
"""

from collections.abc import Iterator
from html import escape
from typing import Final

from amqpscope.draw.words import finding_text, heading_text, peer_text
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.report.ladder_model import Arrow, Fold, Ladder, Remark, Row, Silence, offset_text
from amqpscope.report.printable import cells, cut, wrap

__all__ = ["STYLE", "TOP", "WIDTH", "SvgLadder", "ladder_svg", "opening", "row_height", "safe"]

WIDTH: Final = 960
_CLIENT: Final = 176
_SERVER: Final = 936
TOP: Final = 92
_ROW: Final = 28
_LINE: Final = 17
"""Pixels: of the picture, its lifelines, its head, a frame, and a line of text."""

_SLANT: Final = 7
"""Pixels by which any arrow falls."""

_CELL: Final = 8
"""Pixels that a column of text takes at most, nearly always."""

_SCALED: Final = 2.0
"""How much higher a ladder is if the time is to scale."""

STYLE: Final = """
svg { color-scheme: light dark; --paper: #fff; --ink: #1c2430; --dim: #5b6675; --rule: #c9d0d9;
  --client: #1559b0; --server: #00695c; --error: #b3261e; --possible: #8a5300; --wash: #f4f6f8; }
@media (prefers-color-scheme: dark) { svg { --paper: #14181e; --ink: #e4e8ee; --dim: #9aa6b5; --rule: #3b4552;
  --client: #7fb2f5; --server: #5cc7b8; --error: #ff8a80; --possible: #e8b65a; --wash: #1c222b; } }
@media print { svg { --paper: #fff; --ink: #000; --dim: #444; --rule: #bbb;
  --client: #1559b0; --server: #00695c; --error: #b3261e; --possible: #8a5300; --wash: #f4f6f8; } }
text { font: 13px system-ui, sans-serif; fill: var(--ink); white-space: pre; }
.paper { fill: var(--paper); }
.title { font-size: 15px; font-weight: 600; }
.dim { fill: var(--dim); font-size: 12px; font-variant-numeric: tabular-nums; }
.life { stroke: var(--rule); stroke-width: 2; }
.client { fill: var(--client); stroke: var(--client); }
.server { fill: var(--server); stroke: var(--server); }
.error { fill: var(--error); stroke: var(--error); }
.possible { fill: var(--possible); stroke: var(--possible); }
line.client, line.server, line.error, line.possible { stroke-width: 1.5; }
line.error, line.possible { stroke-width: 2.5; }
text.client, text.server, text.error, text.possible { stroke: none; }
.name { font-weight: 600; }
.lost { stroke-dasharray: 5 4; }
.wash { fill: var(--wash); }
"""


def ladder_svg(ladder: Ladder, capture: str, to_scale: bool = False) -> str:
    """The ladder as a file. to_scale: distances are as the times between frames; else they are even."""
    places, bottom = _places(ladder, to_scale)
    title = heading_text(ladder.connection)
    return "\n".join(
        [
            *opening(f"{capture}: {title}", WIDTH, bottom + 16, STYLE),
            *SvgLadder(ladder, f"{cut(capture, 60)}, {title}", places, bottom).lines(),
            "</svg>\n",
        ]
    )


def opening(title: str, width: int, height: int, style: str) -> Iterator[str]:
    """The beginning of a picture: what it is, its paper, and its style, "" for that of a page around it."""
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="group" aria-labelledby="title">'
    )
    yield f'<title id="title">{safe(title)}</title>'
    if style:
        yield f"<style>{style}</style>"
    yield f'<rect class="paper" width="{width}" height="{height}"/>'


def _places(ladder: Ladder, to_scale: bool) -> tuple[list[int], int]:
    """Where each row begins, and the end of the lifelines."""
    times = [row.time for row in ladder.rows if isinstance(row, (Arrow, Fold))]
    start, last = ladder.start, max(times, default=0)
    scale = _SCALED * len(times) * _ROW / (last - start) if to_scale and last > start else 0.0
    places = []
    at = TOP
    for row in ladder.rows:
        if scale and isinstance(row, (Arrow, Fold)):
            at = max(at, TOP + round((row.time - start) * scale))
        places.append(at)
        at += row_height(row)
    return places, at + 12


class SvgLadder:
    """The ladder of one connection. places: where each row begins: arrows may end below later rows."""

    def __init__(self, ladder: Ladder, title: str, places: list[int], bottom: int) -> None:
        self._ladder = ladder
        self._title = title
        self._places = places
        self._bottom = bottom

    def lines(self) -> Iterator[str]:
        """The elements of the ladder, a line each."""
        yield f'<text class="title" x="16" y="26">{safe(self._title)}</text>'
        yield from self._peers()
        for number, row in enumerate(self._ladder.rows):
            at = self._places[number]
            if isinstance(row, Arrow):
                yield from self._arrow(row, at)
            else:
                yield from _between(row, at)

    def _peers(self) -> Iterator[str]:
        for peer, x, anchor in ((CLIENT, _CLIENT, "start"), (SERVER, _SERVER, "end")):
            name, address = peer_text(self._ladder.connection, peer)
            shown = safe(cut(name, 50))
            yield f'<text class="name {peer}" x="{x}" y="54" text-anchor="{anchor}">{shown}</text>'
            yield f'<text class="dim" x="{x}" y="72" text-anchor="{anchor}">{safe(address)}</text>'
            yield f'<line class="life" x1="{x}" y1="80" x2="{x}" y2="{self._bottom}"/>'

    def _arrow(self, arrow: Arrow, at: int) -> Iterator[str]:
        time = offset_text(arrow.time - self._ladder.start)
        line = at + _LINE + 4
        yield f'<text class="dim" x="96" y="{at + _LINE}" text-anchor="end">{time}</text>'
        channel = f"/{arrow.channel}" if self._ladder.channels and arrow.channel >= 0 else ""
        yield f'<text class="dim" x="164" y="{at + _LINE}" text-anchor="end">{arrow.packet}{channel}</text>'
        certain = any(finding.certain for finding in arrow.findings)
        style = ("error" if certain else "possible") if arrow.findings else arrow.peer
        room = (_SERVER - _CLIENT - 40) // _CELL - cells(arrow.name)
        says = cut("".join(text for _, text in arrow.says).rstrip(), max(room, 8))
        near = _CLIENT + 12 if arrow.peer == CLIENT else _SERVER - 12
        anchor = "start" if arrow.peer == CLIENT else "end"
        yield (
            f'<text x="{near}" y="{at + _LINE}" text-anchor="{anchor}"><tspan class="name">'
            f"{safe(arrow.name)}</tspan>{safe(f' {says}'.rstrip())}</text>"
        )
        start, end = (_CLIENT, _SERVER) if arrow.peer == CLIENT else (_SERVER, _CLIENT)
        fall = _SLANT
        if arrow.lands >= 0 and self._ladder.rows[arrow.lands] is not arrow:
            fall = max(fall, self._places[arrow.lands] + _LINE + 8 - line)
        lost = " lost" if arrow.kind in ("skipped", "end") else ""
        yield f'<line class="{style}{lost}" x1="{start}" y1="{line}" x2="{end}" y2="{line + fall}"/>'
        back = -9 if arrow.peer == CLIENT else 9
        yield (f'<path class="{style}" d="M{end} {line + fall}l{back} -4l0 8z"/>')
        below = at + _ROW + _LINE - 3
        for finding in arrow.findings:
            for text in _finding_lines(finding_text(finding, arrow.at_fault(finding))):
                kind = "error" if finding.certain else "possible"
                yield f'<text class="{kind}" x="{_CLIENT + 24}" y="{below}">{safe(text)}</text>'
                below += _LINE


def _between(row: Fold | Silence | Remark, at: int) -> Iterator[str]:
    """A row without an arrow."""
    lines = _folded_lines(row.text)
    style = "possible" if isinstance(row, Remark) else "dim"
    height = len(lines) * _LINE + 4
    if isinstance(row, Fold):
        width = _SERVER - _CLIENT - 16
        yield f'<rect class="wash" x="{_CLIENT + 8}" y="{at + 4}" width="{width}" height="{height}" rx="4"/>'
    for number, text in enumerate(lines):
        y = at + (number + 1) * _LINE
        middle = (_CLIENT + _SERVER) // 2
        yield f'<text class="{style}" x="{middle}" y="{y}" text-anchor="middle">{safe(text)}</text>'


def row_height(row: Row) -> int:
    """Pixels of a row."""
    if isinstance(row, Arrow):
        lines = sum(
            len(_finding_lines(finding_text(finding, row.at_fault(finding)))) for finding in row.findings
        )
        return _ROW + lines * _LINE + (6 if lines else 0)
    return len(_folded_lines(row.text)) * _LINE + 10


def _finding_lines(text: str) -> list[str]:
    room = (_SERVER - _CLIENT - 60) // _CELL
    return wrap(text, room, room)


def _folded_lines(text: str) -> list[str]:
    room = (_SERVER - _CLIENT - 40) // _CELL
    return wrap(text, room, room)


def safe(text: str) -> str:
    """Text of an element. It has passed `printable`, so it has no character that XML forbids."""
    return escape(text)
