"""Two ladders side by side, aligned, with what differs marked: as SVG, and as a page without a script.

Which frames differ, `amqpscope.diff` decides. This module only sets the rows of both ladders against each
other: frames with the same difference, and between them frames of the same peer and name.
"""

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from html import escape
from pathlib import PurePath
from typing import Final, NamedTuple

from amqpscope.draw.svg import STYLE, TOP, WIDTH, SvgLadder, opening, row_height, safe
from amqpscope.draw.words import heading_text
from amqpscope.input.capture import Capture
from amqpscope.report.ladder_model import Arrow, Ladder, LadderBuilder
from amqpscope.report.links import LinkNames
from amqpscope.report.page import framed
from amqpscope.report.printable import cut, printable

__all__ = ["ComparedLadder", "DifferenceMark", "comparison_html", "comparison_svg"]

_GAP: Final = 24
"""Pixels between the ladders."""

_LONGEST: Final = 300
"""Characters of a sentence about a difference."""

_KINDS: Final = {"changed": "≠", "only": "+"}

_STYLE: Final = """
.band { fill: var(--possible); opacity: 0.16; }
.band.only { fill: var(--error); }
.sign { font-weight: 700; font-size: 15px; }
"""

_PAGE_STYLE: Final = """
body { margin: 0; padding: 12px 20px; font: 14px/1.45 system-ui, sans-serif; color-scheme: light dark;
  background: #fff; color: #1c2430; }
h1 { font-size: 18px; overflow-wrap: anywhere; }
li { margin: 4px 0; overflow-wrap: anywhere; }
a { color: inherit; }
svg { max-width: 100%; height: auto; }
:target { stroke: #7a4bd0; stroke-width: 3; }
@media (prefers-color-scheme: dark) { body { background: #14181e; color: #e4e8ee; } }
@media print { body { background: #fff; color: #000; } }
"""


class DifferenceMark(NamedTuple):
    """A frame differs. number: of the difference, the same in both runs. kind: `changed`, or `only` here."""

    number: int
    kind: str


class ComparedLadder:
    """The ladder of one run. name: of the capture. marks: by peer and offset of a frame."""

    def __init__(self, name: str, ladder: Ladder, marks: dict[tuple[str, int], DifferenceMark]) -> None:
        self.name = printable(PurePath(name).name)
        self.ladder = ladder
        self.marks = marks

    @staticmethod
    def of(capture: Capture, stream: int, marks: Mapping[int, DifferenceMark]) -> "ComparedLadder | None":
        """Read a capture to its end; None if the connection has no frames. marks: by the number of the frame
        on the connection, from 0."""
        names = LinkNames()
        wanted: set[int] = set()
        found: dict[tuple[str, int], DifferenceMark] = {}
        builder: LadderBuilder | None = None
        number = 0
        for record in capture:
            if record.connection.stream != stream:
                continue
            link = names.of(record)
            if builder is None:
                builder = LadderBuilder(record.connection, folds=True, wanted=wanted)
            mark = marks.get(number)
            if mark is not None:
                wanted.add(int(record.packet))
                found[record.peer, int(record.frame.offset)] = mark
            builder.add(record, link, names)
            number += 1
        return None if builder is None else ComparedLadder(capture.name, builder.ladder(), found)

    def mark(self, row: object) -> DifferenceMark | None:
        """The mark of a row."""
        return self.marks.get((row.peer, row.offset)) if isinstance(row, Arrow) else None

    def keys(self, letter: str) -> list[tuple[object, ...]]:
        """What each row is, for the alignment."""
        keys: list[tuple[object, ...]] = []
        for row in self.ladder.rows:
            mark = self.mark(row)
            if mark is not None:
                keys.append((mark.number, mark.kind, letter if mark.kind == "only" else ""))
            elif isinstance(row, Arrow):
                keys.append((row.peer, row.name))
            else:
                keys.append((type(row).__name__,))
        return keys


def comparison_svg(a: ComparedLadder, b: ComparedLadder) -> str:
    """Both ladders as a file."""
    return "\n".join(_svg(a, b, f"{STYLE}{_STYLE}")) + "\n"


def comparison_html(a: ComparedLadder, b: ComparedLadder, differences: list[str]) -> str:
    """Both ladders as a page. differences: a sentence each, by the numbers of the marks."""
    style = f"{STYLE}{_STYLE}{_PAGE_STYLE}"
    title = f"{a.name} and {b.name}"
    marked = {mark.number for one in (a, b) for mark in one.marks.values()}
    items = []
    for number, difference in enumerate(differences):
        text = escape(cut(printable(difference), _LONGEST))
        items.append(f'<li><a href="#d{number}">{text}</a></li>' if number in marked else f"<li>{text}</li>")
    lines = ["<main>", f"<h1>{escape(title)}</h1>", "<ol>", *items, "</ol>", *_svg(a, b, ""), "</main>", ""]
    return framed(title, "\n".join(lines), style)


def _svg(a: ComparedLadder, b: ComparedLadder, style: str) -> Iterator[str]:
    """The lines of both ladders."""
    places_a, places_b, end = _aligned(a, b)
    yield from opening(f"{a.name} and {b.name}, side by side", 2 * WIDTH + _GAP, end + 16, style)
    numbered: set[int] = set()
    for at, (letter, one, places) in enumerate((("A", a, places_a), ("B", b, places_b))):
        left = at * (WIDTH + _GAP)
        yield f'<g transform="translate({left} 0)">'
        yield from _bands(one, places, letter, numbered)
        title = f"{letter}: {cut(one.name, 60)}, {heading_text(one.ladder.connection)}"
        yield from SvgLadder(one.ladder, title, places, end).lines()
        yield "</g>"
    yield "</svg>"


def _bands(one: ComparedLadder, places: list[int], letter: str, numbered: set[int]) -> Iterator[str]:
    """What is behind the rows that differ, with a sign. The first band of a difference has its id."""
    for row, place in zip(one.ladder.rows, places, strict=True):
        mark = one.mark(row)
        if mark is None:
            continue
        name = "" if mark.number in numbered else f' id="d{mark.number}"'
        numbered.add(mark.number)
        words = "differs" if mark.kind == "changed" else f"is only in {letter}"
        sign = "−" if mark.kind == "only" and letter == "A" else _KINDS[mark.kind]
        yield (
            f'<rect{name} class="band {mark.kind}" x="4" y="{place}" width="{WIDTH - 8}" '
            f'height="{row_height(row)}" rx="4"><title>{safe(words)}</title></rect>'
        )
        yield f'<text class="sign" x="10" y="{place + 18}">{sign}</text>'


def _aligned(a: ComparedLadder, b: ComparedLadder) -> tuple[list[int], list[int], int]:
    """Where the rows of both begin, and where the lifelines end."""
    places_a: list[int] = []
    places_b: list[int] = []
    at = TOP
    matcher = SequenceMatcher(None, a.keys("A"), b.keys("B"), False)
    for what, a1, a2, b1, b2 in matcher.get_opcodes():
        at_a = at_b = at
        rows_a, rows_b = a.ladder.rows[a1:a2], b.ladder.rows[b1:b2]
        if what == "equal":
            for row, other in zip(rows_a, rows_b, strict=True):
                places_a.append(at_a)
                places_b.append(at_a)
                at_a += max(row_height(row), row_height(other))
        else:
            for row in rows_a:
                places_a.append(at_a)
                at_a += row_height(row)
            for row in rows_b:
                places_b.append(at_b)
                at_b += row_height(row)
        at = max(at_a, at_b)
    return places_a, places_b, at + 12
