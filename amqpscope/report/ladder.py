"""A ladder as text: the frames of a connection as arrows between two lines, the client's and the server's.

       client 10.0.0.1:51034                                server 10.0.0.2:5672
     4 │── header AMQP 1.0 ──────────────────────────────────────────────────→│
     5 │←────────────────────────────────────────────────── header AMQP 1.0 ──│
    14 │══ transfer #2 q 10 octets tag="02" ═════════════════════════════════→│
       │   × amqp10/L-CREDIT: ...                                             │

Time flows down; on the left stands the packet of a frame's first octet, and its channel where more than
one is used. What a frame says is what the timeline says of it, cut to the width; a frame with a finding
has a double line, and is reported whole. Below it stand its findings. What is found at the end of a stream
gets an arrow of its own. A silence of half a second or more is reported.

What is drawn is in `ladder_model`; this module only writes it as text. Frames that are folded are counted in
a line.
"""

import re
from collections.abc import Iterable

from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, FrameRecord, endpoint
from amqpscope.report.findings import message_of
from amqpscope.report.ladder_model import Arrow, Ladder, Remark, ladders
from amqpscope.report.line import Line
from amqpscope.report.painter import shortened
from amqpscope.report.printable import cells, printable, wrap

__all__ = ["WIDTH", "ladder", "ladder_lines"]

WIDTH = 80
"""Columns of a ladder."""

_NARROWEST = 40
"""Columns below which nothing would be left to read."""

# The line of an arrow: of a frame, of one with a finding, of octets that are no frame.
_PLAIN, _FAULTY, _SKIPPED = "─", "═", "-"

_TOKEN = re.compile(r"\S* *")


def ladder(records: Iterable[FrameRecord], findings: Iterable[Finding], width: int = WIDTH) -> list[Line]:
    """Lines, all within `width` columns, for frames in the order of the capture and what was found in them.

    Each connection has a ladder of its own.
    """
    lines: list[Line] = []
    for one in ladders(records, findings):
        if lines:
            lines.append([])
        lines += ladder_lines(one, width)
    return lines


def ladder_lines(drawn: Ladder, width: int = WIDTH) -> list[Line]:
    """The lines of one ladder, all within `width` columns."""
    return _TextLadder(drawn, max(width, _NARROWEST)).lines()


class _TextLadder:
    """Of one connection."""

    def __init__(self, drawn: Ladder, width: int) -> None:
        self._drawn = drawn
        arrows = drawn.arrows
        self._packet = max([3, *(len(str(arrow.packet)) for arrow in arrows)])
        numbers = [len(str(arrow.channel)) for arrow in arrows if arrow.channel >= 0]
        self._channel = max(numbers) + 1 if drawn.channels else 0
        self._left = self._packet + self._channel + 1
        self._inner = width - self._left - 2

    def lines(self) -> list[Line]:
        """The whole ladder."""
        shown = [self._heading()]
        for row in self._drawn.rows:
            if isinstance(row, Arrow):
                shown += self._frame(row)
            else:
                style = "note" if isinstance(row, Remark) else "dim"
                parts = _rows([(style, row.text)], self._inner - 6)
                shown += [self._between([("", "   "), *part]) for part in parts]
        return shown

    def _heading(self) -> Line:
        """Who stands where."""
        connection = self._drawn.connection
        client = connection.client_end()
        left = f"client {endpoint(*connection.end(client))}"
        right = f"server {endpoint(*connection.end(1 - client))}"
        room = self._inner + 2 - len(left) - len(right)
        if room < 1:
            left, right = "client", "server"
            room = self._inner + 2 - len(left) - len(right)
        return [("", " " * self._left), ("client", left), ("", " " * room), ("server", right)]

    def _frame(self, arrow: Arrow) -> list[Line]:
        """A frame or an end, and what was found there."""
        findings = arrow.findings
        says: Line = [("problem" if findings else "name", arrow.name), ("", " "), *arrow.says]
        channel = str(arrow.channel) if self._channel and arrow.channel >= 0 else ""
        kind = _FAULTY if findings else _SKIPPED if arrow.kind == "skipped" else _PLAIN
        lines = self._arrow(arrow.peer, arrow.packet, channel, says, kind)
        for finding in findings:
            lines += self._verdict(finding, arrow.at_fault(finding))
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

    def _verdict(self, finding: Finding, by: str) -> list[Line]:
        """What was found. by: see `Arrow.at_fault`."""
        style = "problem" if finding.certain else "note"
        certainty = "" if finding.certain else "possible "
        says: Line = [
            (style, f"× {certainty}{printable(finding.rule)}{by}: "),
            ("", printable(message_of(finding))),
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
