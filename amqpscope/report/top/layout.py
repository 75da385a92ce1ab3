"""Columns and numbers of the full-screen view: text made exactly as wide as its place."""

from amqpscope.report.line import Line
from amqpscope.report.printable import cells, cut

__all__ = ["ScreenColumn", "amount", "fill", "head", "in_columns", "octets", "selected", "spark"]

_BARS = " ▁▂▃▄▅▆▇█"


class ScreenColumn:
    """A column: its heading and its width. right: its text stands at its right edge."""

    def __init__(self, heading: str, width: int, right: bool = False) -> None:
        self.heading = heading
        self.width = width
        self.right = right


def fill(text: str, width: int, right: bool = False) -> str:
    """Printable text in exactly so many columns: cut, or with spaces behind it (before it, if `right`)."""
    shown = cut(text, width)
    space = " " * (width - cells(shown))
    return space + shown if right else shown + space


def head(columns: list[ScreenColumn]) -> Line:
    """The headings."""
    return [("rule", " ".join(fill(column.heading, column.width, column.right) for column in columns))]


def in_columns(columns: list[ScreenColumn], parts: list[tuple[str, str]]) -> Line:
    """Styled texts, one a column."""
    line: Line = []
    for column, (style, text) in zip(columns, parts, strict=True):
        if line:
            line.append(("", " "))
        line.append((style, fill(text, column.width, column.right)))
    return line


def selected(line: Line, width: int) -> Line:
    """A line that stands out from the others, over the whole width."""
    text = "".join(part for _, part in line)
    return [("selected", fill(text, width))]


def amount(number: float) -> str:
    """A count in at most six columns: `0`, `940`, `12.4k`, `3.1M`."""
    if number < 0:
        return "-"
    if number < 9.95 and number != int(number):
        return f"{number:.1f}"
    if number < 9_999.5:
        return f"{number:.0f}"
    for unit in ("k", "M", "G"):
        number /= 1000
        if number < 99.95:
            return f"{number:.1f}{unit}"
        if number < 999.5:
            return f"{number:.0f}{unit}"
    return f"{number / 1000:.0f}T"


def octets(number: float) -> str:
    """So many octets, in at most seven columns: `512 B`, `1.2 kB`, `34 MB`."""
    if number < 999.5:
        return f"{number:.0f} B"
    for unit in ("kB", "MB", "GB"):
        number /= 1000
        if number < 9.95:
            return f"{number:.1f} {unit}"
        if number < 999.5:
            return f"{number:.0f} {unit}"
    return f"{number / 1000:.0f} TB"


def spark(numbers: list[int], width: int) -> str:
    """The last numbers as bars, the highest of them as a whole one."""
    shown = numbers[-width:]
    most = max(shown, default=0)
    if most <= 0:
        return ""
    return "".join(_BARS[0 if one <= 0 else 1 + one * 7 // most] for one in shown).rjust(width)
