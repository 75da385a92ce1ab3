"""The last frames of a connection: as records until the next update, then as lines of a timeline."""

from typing import Final

from amqpscope.model.records import FrameRecord
from amqpscope.report.line import Line
from amqpscope.report.links import LinkNames
from amqpscope.report.timeline import Clock, Timeline
from amqpscope.tracking.amqp10.identity import Link

__all__ = ["MAX_LINES_OF_OTHERS", "FrameHistory"]

MAX_LINES: Final = 500
"""Lines of the connection that is looked at."""

MAX_LINES_OF_OTHERS: Final = 40
"""And of any other: enough to see how it came to what it is when it is picked."""

_RECENT = 30
"""Frames of such a one between two updates of which lines are made."""


class FrameHistory:
    """The last frames of one connection. Of one that nobody looks at, fewer are kept."""

    __slots__ = ("_came", "_recent", "_timeline", "lines", "looked_at", "written")

    def __init__(self) -> None:
        # Its connection is the one that is looked at.
        self.looked_at = False
        # The last lines, and how many were written in all.
        self.lines: list[Line] = []
        self.written = 0
        # The last records since lines were made of them, and how many came since then.
        self._recent: list[tuple[FrameRecord, Link | None]] = []
        self._came = 0
        # What makes the lines, None as long as there are none.
        self._timeline: Timeline | None = None

    def saw(self, record: FrameRecord, link: Link | None) -> None:
        """One more frame, of this link."""
        recent = self._recent
        recent.append((record, link))
        self._came += 1
        if len(recent) >= 2 * _RECENT and (not self.looked_at or len(recent) >= 2 * MAX_LINES):
            del recent[: len(recent) // 2]

    @property
    def waits(self) -> bool:
        """Whether frames came of which no lines are made yet."""
        return self._came > 0

    def drop_records(self) -> None:
        """Of the frames that came since the last lines keep only their number."""
        self._recent = []

    def drop_lines(self) -> None:
        """Start anew with the next line."""
        self.lines = []
        self._timeline = None

    def write(self, names: LinkNames, most: int | None) -> int:
        """Make lines of the newest records, of at most so many (None: no bound); return of how many.

        The first line says how many frames came before these. The records go, and the oldest lines.
        """
        take = min(len(self._recent), MAX_LINES if self.looked_at else _RECENT)
        if most is not None:
            take = min(take, most)
        hidden = self._came - take
        if hidden:
            self.add([("dim", f"      … {hidden} frame{'s' if hidden > 1 else ''} …")])
        timeline = self._timeline
        first = timeline is None
        if timeline is None:
            timeline = self._timeline = Timeline(Clock("a"), 0, names)
        records = self._recent[len(self._recent) - take :] if take else []
        self._recent = []
        self._came = 0
        for record, link in records:
            lines = timeline.lines(record, link)
            if first:
                lines = lines[1:]  # which connection it is stands above it
                first = False
            for line, _ in lines:
                self.add(line)
        excess = len(self.lines) - (MAX_LINES if self.looked_at else MAX_LINES_OF_OTHERS)
        if excess > 0:
            del self.lines[:excess]
        return take

    def add(self, line: Line) -> None:
        """One more line."""
        self.lines.append(line)
        self.written += 1
