"""The full-screen view: which page is shown, what is picked on it, and what a key changes.

Nothing here knows a terminal. `key` takes names of keys, `render` gives exactly as many lines as the screen
has, and everything between is reported to `update`, `saw` and `found`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.report.line import Line
from amqpscope.report.links import LinkNames
from amqpscope.report.printable import cut, printable
from amqpscope.report.top import pages
from amqpscope.report.top.layout import head
from amqpscope.report.top.model import TopModel
from amqpscope.report.top.rows import SORTS, ReportedFinding, Row
from amqpscope.report.who import ends

__all__ = ["TopView"]

_CONNECTIONS: Final = "connections"
_CONNECTION: Final = "connection"
_TIMELINE: Final = "timeline"
_FINDINGS: Final = "findings"
_HELP: Final = "help"

_LONGEST_FILTER = 80

_SAID_FOR = 10_000_000_000
"""Nanoseconds for which a sentence stays on the screen."""

_KEYS = {
    _CONNECTIONS: "Enter look inside  f findings  s sort  / filter  p pause  ? help  q quit",
    _CONNECTION: "Esc back  t timeline  f findings  ↑↓ scroll  p pause  ? help  q quit",
    _TIMELINE: "Esc back  ↑↓ PgUp PgDn scroll  End follow  p pause  ? help  q quit",
    _FINDINGS: "Esc back  Enter its connection  ↑↓ pick  p pause  ? help  q quit",
    _HELP: "any key: back",
}


class TopView:
    """The view. source: what is captured. open: False once the person quits."""

    def __init__(self, source: str, names: LinkNames | None = None) -> None:
        self.source = source
        self.open = True
        self.paused = False
        self.model = TopModel(names)
        self._page: str = _CONNECTIONS
        self._before: list[str] = []
        self._picked: Row | None = None
        self._follows = False  # the first row is picked, whichever that is
        self._reported: ReportedFinding | None = None
        self._of: Row | None = None  # whose findings are shown, None for all
        self._sort = next(iter(SORTS))
        self._filter = ""
        self._typing: str | None = None
        self._offset = 0
        self._anchor: int | None = None  # the last line of the timeline that is shown, None: the newest
        self._height = 10
        self._rows: list[Row] = []
        self._shown: list[Row] = []
        self._said = ""
        self._said_at = 0

    # What comes

    def saw(self, records: Iterable[FrameRecord]) -> None:
        """Frames, in the order of the analysis."""
        self.model.saw(records)

    def found(self, findings: Iterable[Finding]) -> None:
        """Findings, each once, complete or not."""
        self.model.found(findings)

    def amended(self, findings: Iterable[Finding]) -> None:
        """Findings that were reported before, to which the other peer has reacted now."""
        self.model.amended(findings)

    def say(self, text: str) -> None:
        """Something to tell, which stays for some seconds: an interface went down."""
        self._said = printable(text)
        self._said_at = self.model.now

    def update(
        self,
        now: int,
        analyses: Iterable[ConnectionAnalysis],
        packets: int = 0,
        dropped: int = 0,
        lasting: Mapping[Connection, list[Diagnosis]] | None = None,
    ) -> None:
        """About once a second: how things stand at `now` (ns), with all connections that are open.

        packets, dropped: so far, of the whole capture. lasting: the waits
        that last, by connection. A view that is paused takes no notice.
        """
        if self.paused:
            self.model.let_go()
            return
        looked_at = [] if self._picked is None else [self._picked]
        looked_at += [row for row in self._shown if row is not self._picked]
        self.model.update(now, analyses, packets, dropped, looked_at, lasting or {})
        self._sort_rows()

    def _sort_rows(self) -> None:
        self._rows = self.model.sorted(self._sort, self._filter.lower())
        picked = self._picked
        if self._page != _CONNECTIONS:
            return
        if not self._follows and picked is not None and picked in self._rows:
            return
        self._picked = self._rows[0] if self._rows else None
        self._follows = True

    # Keys

    def key(self, key: str) -> None:
        """A key was pressed, by its name (`up`, `enter`, `escape` ...) or as the character that it gives."""
        if self._typing is not None:
            self._type(key)
            return
        if self._page == _HELP:
            self._back()
            return
        if key == "q":
            self.open = False
        elif key in ("?", "f1"):
            self._go(_HELP)
        elif key in ("p", " "):
            self.paused = not self.paused
        elif key in ("escape", "left", "h", "backspace"):
            if self._before:
                self._back()
            elif self._filter:
                self._filter = ""
                self._sort_rows()
        elif key == "f":
            if self._page != _FINDINGS:
                self._of = self._picked if self._page in (_CONNECTION, _TIMELINE) else None
                self._reported = None
                self._go(_FINDINGS)
        elif key in ("up", "k"):
            self._move(-1)
        elif key in ("down", "j"):
            self._move(1)
        elif key == "pageup":
            self._move(-max(self._height - 1, 1))
        elif key == "pagedown":
            self._move(max(self._height - 1, 1))
        elif key in ("home", "g"):
            self._move(-1_000_000)
        elif key in ("end", "G"):
            self._move(1_000_000)
        else:
            self._page_key(key)

    def _page_key(self, key: str) -> None:
        """A key that does something on some pages only."""
        if self._page == _CONNECTIONS:
            if key in ("enter", "right", "l") and self._picked is not None:
                self._go(_CONNECTION)
            elif key == "t" and self._picked is not None:
                self._go(_TIMELINE)
            elif key == "s":
                sorts = list(SORTS)
                self._sort = sorts[(sorts.index(self._sort) + 1) % len(sorts)]
                self._follows = True
                self._sort_rows()
            elif key == "/":
                self._typing = self._filter
        elif self._page == _CONNECTION and key in ("t", "enter", "right", "l"):
            self._go(_TIMELINE)
        elif self._page == _FINDINGS and key in ("enter", "right", "l") and self._reported is not None:
            row = self.model.rows.get(self._reported.row.connection)
            if row is None:
                self.say("the connection has ended, and its frames are no longer kept")
            else:
                self._picked = row
                self._follows = False
                self._before.clear()
                self._page = _CONNECTIONS
                self._go(_CONNECTION)

    def _type(self, key: str) -> None:
        """A key while a filter is typed."""
        typed = self._typing or ""
        if key == "enter":
            self._typing = None
        elif key == "escape":
            self._typing = None
            self._filter = ""
        elif key == "backspace":
            self._typing = self._filter = typed[:-1]
        elif key == "space":
            self._typing = self._filter = typed + " "
        elif len(key) == 1 and key.isprintable() and len(typed) < _LONGEST_FILTER:
            self._typing = self._filter = typed + key
        self._follows = True
        self._sort_rows()

    def _go(self, page: str) -> None:
        self._before.append(self._page)
        self._page = page
        self._offset = 0
        self._anchor = None

    def _back(self) -> None:
        self._page = self._before.pop()
        self._offset = 0
        self._anchor = None
        if self._page == _CONNECTIONS:
            self._follows = False
            self._sort_rows()

    def _move(self, by: int) -> None:
        """So many lines down, or up."""
        if self._page == _CONNECTIONS:
            if self._rows:
                at = self._rows.index(self._picked) if self._picked in self._rows else 0
                at = min(max(at + by, 0), len(self._rows) - 1)
                self._picked = self._rows[at]
                # Who goes to the top wants to see what comes there.
                self._follows = at == 0
        elif self._page == _FINDINGS:
            reported = self._findings()
            if reported:
                at = reported.index(self._reported) if self._reported in reported else 0
                self._reported = reported[min(max(at + by, 0), len(reported) - 1)]
        elif self._page == _TIMELINE and self._picked is not None:
            row = self._picked
            last = row.history.written if self._anchor is None else self._anchor
            last += by
            first = row.history.written - len(row.history.lines)
            last = max(last, min(first + self._height, row.history.written))
            self._anchor = None if last >= row.history.written else last
        elif self._page == _CONNECTION:
            self._offset = max(self._offset + by, 0)

    # The picture

    def render(self, width: int, height: int) -> list[Line]:
        """The screen: `height` lines, each to be cut at `width` columns."""
        top = pages.title(self.model, self.source, width)
        if self._page == _CONNECTIONS:
            top[1].append(("dim", f"   by {self._sort}"))
            if self._filter:
                top[1] += [("dim", ", only "), ("name", cut(printable(self._filter), 20))]
        if self.paused:
            top[1] = [("selected", " paused "), ("", " "), *top[1]]
        bottom = [self._bottom()]
        room = max(height - len(top) - len(bottom), 1)
        page = self._page
        if page == _CONNECTIONS:
            body = self._connections(width, room)
        elif page == _FINDINGS:
            body = self._finding_page(width, room)
        elif page == _HELP:
            body = [[], *pages.help_lines()]
        elif self._picked is None:
            body = []
        elif page == _TIMELINE:
            body = self._timeline(self._picked, room)
        else:
            body = self._inside(self._picked, width, room)
        body = body[:room] + [[] for _ in range(room - len(body))]
        return (top + body + bottom)[-height:] if height < 4 else top + body + bottom

    def _bottom(self) -> Line:
        if self._typing is not None:
            return [("name", "filter: "), ("", printable(self._typing)), ("selected", " ")]
        if self._said and self.model.now - self._said_at < _SAID_FOR:
            return [("note", self._said)]
        return [("dim", _KEYS[self._page])]

    def _connections(self, width: int, room: int) -> list[Line]:
        model = self.model
        rows = self._rows
        picked = self._picked
        below: list[Line] = []
        if picked is not None and room >= 12:
            below = pages.details(picked, width, 3)
            below = [[("dim", "─" * width)], *below]
        reported = (
            list(model.reported)[-min(max((room - 12) // 4, 0), 6) :] if room >= 16 and model.reported else []
        )
        if reported:
            below.append([("dim", "─" * width)])
            below += [pages.finding_line(one, width, False) for one in reversed(reported)]
        space = max(room - 1 - len(below), 1)
        self._height = max(space // pages.lines_of_row(width), 1)
        at = rows.index(picked) if picked in rows else 0
        self._offset = _scrolled(self._offset, at, self._height, len(rows))
        self._shown = rows[self._offset : self._offset + self._height]
        columns = pages.connection_table(self._shown, width)
        lines = pages.connections(columns, self._shown, picked, model.now, width)[:space]
        if not rows:
            hidden = f"; {model.others} without" if model.others else ""
            text = "  none fits the filter" if model.rows else f"  no AMQP connection yet{hidden}"
            lines = [[("dim", text)]]
        more = len(rows) - self._offset - len(self._shown)
        heading = head(columns)
        if more > 0:
            heading = [(style, text.rstrip()) for style, text in heading]
            heading.append(("dim", f"  ({more} more below)"))
        return [heading, *lines, *[[] for _ in range(space - len(lines))], *below]

    def _inside(self, row: Row, width: int, room: int) -> list[Line]:
        self._shown = []
        lines = pages.inside(row, self.model.now, width)
        reported = row.reported[-3:]
        timeline = row.history.lines
        # A third for the last frames at least, more if there is room.
        least = min(len(timeline) + 1, max(room // 3, 3)) if timeline else 0
        upper = max(min(len(lines), room - least - (len(reported) + 1 if reported else 0)), 1)
        self._height = upper
        self._offset = min(self._offset, max(len(lines) - upper, 0))
        shown = lines[self._offset : self._offset + upper]
        hidden = len(lines) - self._offset - upper
        if hidden > 0 and shown:
            shown[-1] = [("dim", f"… {hidden + 1} lines more: ↓")]
        if reported:
            shown.append([("rule", "FINDINGS")])
            shown += [pages.finding_line(one, width, False) for one in reversed(reported)]
        left = room - len(shown) - 1
        if timeline and left > 0:
            shown.append([("rule", "LAST FRAMES")])
            shown += timeline[-left:]
        return shown

    def _timeline(self, row: Row, room: int) -> list[Line]:
        self._shown = []
        self._height = max(room - 1, 1)
        timeline = row.history.lines
        end = len(timeline)
        if self._anchor is not None:
            first = row.history.written - len(timeline)
            end = min(max(self._anchor - first, min(self._height, len(timeline))), len(timeline))
        lines = timeline[max(end - self._height, 0) : end]
        state = "newest below" if end == len(timeline) else f"{len(timeline) - end} newer lines below"
        heading: Line = [("rule", "FRAMES "), ("name", ends(row.connection.id)), ("dim", f"  {state}")]
        return [heading, *lines]

    def _findings(self) -> list[ReportedFinding]:
        """Those of the page of findings, the newest first."""
        reported = self.model.reported if self._of is None else self._of.reported
        return list(reversed(reported))

    def _finding_page(self, width: int, room: int) -> list[Line]:
        self._shown = []
        reported = self._findings()
        if self._reported not in reported:
            self._reported = reported[0] if reported else None
        if self._reported is None:
            return [[("rule", "FINDINGS")], [("dim", "  none yet")]]
        below = [[("dim", "─" * width)], *pages.finding_lines(self._reported, width, max(room // 3, 2))]
        self._height = max(room - 1 - len(below), 1)
        at = reported.index(self._reported)
        self._offset = _scrolled(self._offset, at, self._height, len(reported))
        shown = reported[self._offset : self._offset + self._height]
        whose = "" if self._of is None else f" of {ends(self._of.connection.id)}"
        heading: Line = [("rule", "FINDINGS"), ("dim", f"{whose}, the newest first")]
        lines = pages.findings(shown, self._reported, width)
        return [heading, *lines, *[[] for _ in range(self._height - len(lines))], *below]


def _scrolled(offset: int, at: int, height: int, size: int) -> int:
    """The first line shown, so that line `at` of `size` is."""
    offset = min(max(offset, at - height + 1), at)
    return max(min(offset, size - height), 0)
