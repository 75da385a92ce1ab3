"""Tables for people: columns as wide as their texts, on an output of some width."""

from collections.abc import Sequence

from amqpscope.report.line import Line
from amqpscope.report.printable import cells, cut

__all__ = ["TableColumn", "table"]

_BETWEEN = "  "


class TableColumn:
    """A column. right: its texts stand at its right edge. least: to how many columns it may be narrowed, its
    texts cut; 0: it is never cut. optional: it is left out where there is no room for it.
    """

    def __init__(self, heading: str, right: bool = False, least: int = 0, optional: bool = False) -> None:
        self.heading = heading
        self.right = right
        self.least = least
        self.optional = optional


def table(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[tuple[str, str]]], width: int | None
) -> list[Line]:
    """A line with the headings, and one for each row of styled, printable texts.

    width: columns of the output, None for any. What takes too much is narrowed, the widest first; then
    optional columns are left out, the last first. [] if there is no room for what is left.
    """
    used = [at for at in range(len(columns)) if any(row[at][1] for row in rows)]
    while True:
        widths = _widths([columns[at] for at in used], [[row[at][1] for at in used] for row in rows], width)
        if widths:
            break
        left_out = next((at for at in reversed(used) if columns[at].optional), None)
        if left_out is None:
            return []
        used.remove(left_out)
    headings = [("dim", columns[at].heading) for at in used]
    chosen = [headings, *([row[at] for at in used] for row in rows)]
    return [_line([columns[at] for at in used], widths, row) for row in chosen]


def _widths(columns: list[TableColumn], rows: list[list[str]], width: int | None) -> list[int]:
    """How wide each column is, [] if they do not fit."""
    widths = [
        max(len(column.heading), *(cells(row[at]) for row in rows)) for at, column in enumerate(columns)
    ]
    if width is None:
        return widths
    room = width - len(_BETWEEN) * (len(columns) - 1)
    while sum(widths) > room:
        slack = [
            (widths[at] - max(column.least, len(column.heading)), at)
            for at, column in enumerate(columns)
            if column.least
        ]
        most, at = max(slack, default=(0, 0))
        if most <= 0:
            return []
        widths[at] -= min(most, sum(widths) - room)
    return widths


def _line(columns: list[TableColumn], widths: list[int], row: Sequence[tuple[str, str]]) -> Line:
    line: Line = []
    for column, width, (style, text) in zip(columns, widths, row, strict=True):
        shown = cut(text, width)
        space = " " * (width - cells(shown))
        if line:
            line.append(("", _BETWEEN))
        line += [("", space), (style, shown)] if column.right else [(style, shown), ("", space)]
    return line
