"""A ladder: the frames of a connection as arrows between two lines, the client's and the server's.

       client 10.0.0.1:51034                                server 10.0.0.2:5672
     4 │── header AMQP 1.0 ──────────────────────────────────────────────────→│
     5 │←────────────────────────────────────────────────── header AMQP 1.0 ──│
    14 │══ transfer #2 q 10 octets tag="02" ═════════════════════════════════→│
       │   × amqp10/L-CREDIT: ...                                             │

Time flows down; on the left stands the packet of a frame's first octet, and its channel where more than
one is used. What a frame says is what the timeline says of it, cut to the width; a frame with a finding
has a double line, and is reported whole. Below it stand its findings. What is found at the end of a stream
gets an arrow of its own. A silence of half a second or more is reported.

Nothing from the wire gets in here but through `TextRenderer` and `printable`.
"""

import re
from collections.abc import Iterable

from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, Connection, FrameRecord, endpoint
from amqpscope.report.line import Line
from amqpscope.report.links import LinkNames
from amqpscope.report.painter import shortened
from amqpscope.report.printable import cells, printable, wrap
from amqpscope.report.redaction import guard
from amqpscope.report.text_renderers import text_renderer

__all__ = ["WIDTH", "ladder"]

WIDTH = 80
"""Columns of a ladder."""

_NARROWEST = 40
"""Columns below which nothing would be left to read."""

_SILENCE = 500_000_000
"""Nanoseconds without a frame that are reported: half a second."""

# The line of an arrow: of a frame, of one with a finding, of octets that are no frame.
_PLAIN, _FAULTY, _SKIPPED = "─", "═", "-"

_TOKEN = re.compile(r"\S* *")

_Place = tuple[str, int, int, str]


def ladder(records: Iterable[FrameRecord], findings: Iterable[Finding], width: int = WIDTH) -> list[Line]:
    """Lines, all within `width` columns, for frames in the order of the capture and what was found in them.

    Each connection has a ladder of its own.
    """
    frames: dict[Connection, list[FrameRecord]] = {}
    for record in records:
        frames.setdefault(record.connection, []).append(record)
    found: dict[Connection, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.connection, []).append(finding)
    lines: list[Line] = []
    for connection, its in frames.items():
        if lines:
            lines.append([])
        lines += _Ladder(connection, its, found.get(connection, []), max(width, _NARROWEST)).lines()
    return lines


def _place(finding: Finding) -> _Place:
    """Where the frame of a finding stands; see `_of`."""
    return finding.peer, int(finding.packet), int(finding.offset), finding.frame


def _of(record: FrameRecord) -> _Place:
    return record.peer, int(record.packet), int(record.frame.offset), record.frame.name


class _Ladder:
    """Of one connection."""

    def __init__(
        self, connection: Connection, records: list[FrameRecord], findings: list[Finding], width: int
    ) -> None:
        self._connection = connection
        self._records = records
        self._findings: dict[_Place, list[Finding]] = {}
        places = {_of(record) for record in records}
        # A rule that learns of a fault later knows of the frame where it ends, and not where it begins.
        ends = {
            (*place[:2], place[2] + int(record.frame.size), place[3]): place
            for record in records
            for place in [_of(record)]
        }
        # What is absent: found when a stream ended, where no frame is.
        self._absent = []
        for finding in findings:
            place = _place(finding)
            if place not in places:
                place = ends.get(place, place)
            self._findings.setdefault(place, []).append(finding)
            if place not in places:
                self._absent.append(finding)
        self._absent.sort(key=lambda finding: int(finding.packet))
        self._packet = max([3, *(len(str(record.packet)) for record in records)])
        channels = {int(record.frame.channel) for record in records if record.frame.channel >= 0}
        self._channel = max(len(str(channel)) for channel in channels) + 1 if len(channels) > 1 else 0
        self._left = self._packet + self._channel + 1
        self._inner = width - self._left - 2
        self._names = LinkNames()

    def lines(self) -> list[Line]:
        """The whole ladder."""
        shown = [self._heading()]
        before = -1
        absent = self._absent
        # Links are named in the order of the analysis; shown is the order of the packets: what was skipped is
        # known only later.
        rows = [(record, self._frame(record)) for record in self._records]
        for record, lines in sorted(rows, key=lambda row: int(row[0].packet)):
            while absent and int(absent[0].packet) < int(record.packet):
                shown += self._end(absent)
                absent = [finding for finding in absent if _place(finding) != _place(absent[0])]
            time = int(record.time)
            if before >= 0 and time - before >= _SILENCE:
                shown.append(self._between([("dim", f"   {(time - before) / 1e9:.1f} s later")]))
            before = time
            shown += lines
        while absent:
            shown += self._end(absent)
            absent = [finding for finding in absent if _place(finding) != _place(absent[0])]
        return shown

    def _heading(self) -> Line:
        """Who stands where."""
        client = self._connection.client_end()
        left = f"client {endpoint(*self._connection.end(client))}"
        right = f"server {endpoint(*self._connection.end(1 - client))}"
        room = self._inner + 2 - len(left) - len(right)
        if room < 1:
            left, right = "client", "server"
            room = self._inner + 2 - len(left) - len(right)
        return [("", " " * self._left), ("client", left), ("", " " * room), ("server", right)]

    def _frame(self, record: FrameRecord) -> list[Line]:
        """A frame, and what was found in it."""
        frame = record.frame
        link = self._names.of(record)
        vague = guard(record, link, self._names, False).vague
        reported = text_renderer(frame).line(frame, link, record.message, vague)
        findings = self._findings.get(_of(record), [])
        says: Line = [("problem" if findings else "name", frame.name), ("", " "), *reported]
        channel = str(frame.channel) if self._channel and frame.channel >= 0 else ""
        kind = _FAULTY if findings else _SKIPPED if frame.kind == "skipped" else _PLAIN
        lines = self._arrow(record.peer, int(record.packet), channel, says, kind)
        for finding in findings:
            lines += self._verdict(finding)
        return lines

    def _end(self, absent: list[Finding]) -> list[Line]:
        """The end of a stream, where something is missing."""
        first = absent[0]
        says: Line = [("problem", printable(first.frame))]
        lines = self._arrow(first.peer, int(first.packet), "", says, _FAULTY)
        for finding in absent:
            if _place(finding) == _place(first):
                lines += self._verdict(finding)
        return lines

    def _arrow(self, peer: str, packet: int, channel: str, says: Line, kind: str) -> list[Line]:
        """From the one who says it to the other; whole if it is faulty, else cut to one line."""
        room = self._inner - 6
        style = "problem" if kind == _FAULTY else peer
        if kind == _FAULTY:
            rows = _rows(says, room)
        else:
            rows = [shortened(says, room) if _size(says) > room else says]
        first = _stripped(rows[0])
        shaft = kind * (self._inner - 5 - _size(first))
        left = f"{packet:>{self._packet}}{channel:>{self._channel}} "
        line: Line = [("dim", left), (CLIENT, "│")]
        if peer == CLIENT:
            line += [(style, kind * 2), ("", " "), *first, ("", " "), (style, f"{shaft}→")]
        else:
            line += [(style, f"←{shaft}"), ("", " "), *first, ("", " "), (style, kind * 2)]
        line.append(("server", "│"))
        return [line, *(self._between([("", "   "), *row]) for row in rows[1:])]

    def _verdict(self, finding: Finding) -> list[Line]:
        """What was found."""
        style = "problem" if finding.certain else "note"
        certainty = "" if finding.certain else "possible "
        says: Line = [
            (style, f"× {certainty}{printable(finding.rule)}: "),
            ("", printable(finding.message)),
        ]
        first, *more = _rows(says, self._inner - 8)
        return [
            self._between([("", "   "), *first]),
            *(self._between([("", "     "), *row]) for row in more),
        ]

    def _between(self, text: Line) -> Line:
        """A row without an arrow."""
        text = _stripped(text)
        space = " " * (self._inner - _size(text))
        return [("", " " * self._left), (CLIENT, "│"), *text, ("", space), ("server", "│")]


def _size(line: Line) -> int:
    return sum(cells(text) for _, text in line)


def _stripped(line: Line) -> Line:
    """Without spaces at the end."""
    line = list(line)
    while line and not line[-1][1].rstrip(" "):
        line.pop()
    if line:
        line[-1] = (line[-1][0], line[-1][1].rstrip(" "))
    return line


def _rows(line: Line, room: int) -> list[Line]:
    """A line in rows of at most `room` columns, broken at spaces where that can be."""
    rows: list[Line] = [[]]
    used = 0
    for token in _tokens(line):
        size = _size(_stripped(token))
        if used and used + size > room:
            rows.append([])
            used = 0
        for style, text in token:
            for index, piece in enumerate(wrap(text, room - used, room) if size > room else [text]):
                if index:
                    rows.append([])
                    used = 0
                rows[-1].append((style, piece))
                used += cells(piece)
    return rows


def _tokens(line: Line) -> list[Line]:
    """A line's words with the spaces behind them; a word may have several styles."""
    tokens: list[Line] = [[]]
    for style, text in line:
        for piece in _TOKEN.findall(text):
            if piece:
                tokens[-1].append((style, piece))
                if piece.endswith(" "):
                    tokens.append([])
    return [token for token in tokens if token]
