"""The timeline of `amqpscope read` as text: a line a frame, with each finding below its frame.

Findings may need later frames. The newest frames are therefore held back, and written when more of them have
come than MAX_HELD_FRAMES: then such findings stand in their places. Later ones are shown where they come.
"""

import os
import sys
from collections import OrderedDict, deque
from typing import Final

from amqpscope.limits import MAX_HELD_FRAMES, MAX_PLACED_FRAMES
from amqpscope.model.finding import Finding
from amqpscope.model.records import END_OF_STREAM, Connection, FrameRecord
from amqpscope.report.finding_counts import kind
from amqpscope.report.line import INDENT, Line
from amqpscope.report.links import LinkNames
from amqpscope.report.painter import painter
from amqpscope.report.settlements import SettlementLog, settled_text
from amqpscope.report.timeline import Clock, FrameLines, FrameParts, Timeline, heading
from amqpscope.rules.peer_error import is_objection
from amqpscope.rules.profiles import weight
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wire import i64

__all__ = ["HeldTimeline", "MadeFrame"]

_BELOW: Final = INDENT + 4
"""Columns before the continuation of what stands below a frame's line."""

_Place = tuple[Connection, int, int, str]

MadeFrame = tuple[FrameParts, bool, tuple[int, int, int, list[str]], str, int, list[tuple[int, int]]]
"""What is shown of a frame, whatever is shown of others, as plain values.

In order: its lines; whether a heading stands above it; its direction, where it begins and ends in its stream,
and its problems; what stands behind its line; the number of the message that it begins, 0 for none; the
numbers of the messages that it answers, and how long (ns) they were open.
"""

_NO_CODES: Final[list[str]] = []
_NONE_SETTLED: Final[list[tuple[int, int]]] = []
_NOTHING: Final[list[str]] = []
_UNANSWERED: Final[dict[str, tuple[int, int]]] = {}
_PIECE: Final = 4096
"""Octets given to standard output at a time: a buffer takes so many whole, or none of them."""

_WRITTEN: Final = FrameLines((0, 0, 0, 0, "", "", 0, False))
"""What is kept of the lines of a frame that is written."""


class _ShownConnection:
    """A connection that has shown frames. heading: as it was last written, "" if it was not.

    begun: the frames that are not written yet and begin messages, by the numbers of the messages.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection = connection
        self.heading: str = ""
        self.begun: dict[int, _ShownFrame] = {}


class _ShownFrame:
    """A frame, and what is found at it, which is shown below it.

    on: its connection. lines: what is shown of the frame itself. direction, start, end: where it stands.
    codes: its problems.
    """

    def __init__(
        self, on: _ShownConnection, lines: FrameLines, direction: i64, start: i64, end: i64, codes: list[str]
    ) -> None:
        self.on: _ShownConnection = on
        self.lines: FrameLines = lines
        self.direction: i64 = direction
        self.start: i64 = start
        self.end: i64 = end
        self.codes: list[str] = codes
        self.name: str = lines.name
        self.packet: i64 = lines.packet
        # Whether the heading stands above it, unless it was written before with the same names.
        self.headed: bool = False
        # What stands behind its first line.
        self.remark: str = ""
        # The number of the message that it begins, 0 for none; of those that it answers, with their times.
        self.begins: i64 = 0
        self.settled: list[tuple[int, int]] = _NONE_SETTLED
        # mypyc: nearly all have nothing below, and share these.
        self.below: list[str] = _NOTHING
        # Findings that have the same answer here: the line of the answer in `below`, and how many they are.
        self.answered: dict[str, tuple[int, int]] = _UNANSWERED

    def place(self) -> _Place:
        """Where the frame begins."""
        return self.on.connection, int(self.direction), int(self.start), self.name

    def behind(self) -> _Place:
        """Where the frame ends."""
        return self.on.connection, int(self.direction), int(self.end), self.name

    def in_packet(self) -> tuple[Connection, int, int]:
        """The packet in which the peer sent it."""
        return self.on.connection, int(self.direction), int(self.packet)

    def put_below(self, lines: list[str]) -> None:
        """More lines below it."""
        if not self.below:
            self.below = []
        self.below += lines

    def put_answer(self, about: str, line: int, times: int) -> None:
        """An answer stands below it. about: what is answered; line: which of those below it is; times: how
        many findings have it.
        """
        if not self.answered:
            self.answered = {}
        self.answered[about] = (line, times)

    def written(self) -> None:
        """Only where it stands is of interest now."""
        self.lines = _WRITTEN
        self.remark = ""
        self.settled = _NONE_SETTLED
        self.below = _NOTHING
        self.answered = _UNANSWERED


class _Index:
    """Where findings go: they name the place or the end of a frame, its packet, or a frame that is written.

    past: the newest frames that are written, the oldest first. shown: those that are not written yet.
    """

    def __init__(self, past: deque[_ShownFrame], shown: list[_ShownFrame]) -> None:
        # Frames that are not written yet. A rule that learns of a fault later knows where the frame ends.
        self.places: dict[_Place, _ShownFrame] = {}
        self.ends: dict[_Place, _ShownFrame] = {}
        self.packets: dict[tuple[Connection, int, int], _ShownFrame] = {}
        # Places and ends of the newest frames that are written.
        self.past: OrderedDict[_Place, None] = OrderedDict()
        for frame in past:
            self._keep(frame)
        for frame in shown:
            self.shown(frame)

    def shown(self, frame: _ShownFrame) -> None:
        """A frame that is not written yet."""
        self.places[frame.place()] = frame
        self.ends[frame.behind()] = frame
        self.packets.setdefault(frame.in_packet(), frame)

    def wrote(self, frame: _ShownFrame) -> None:
        """The frame is written now."""
        self._keep(frame)
        self.places.pop(frame.place(), None)
        self.ends.pop(frame.behind(), None)
        self.packets.pop(frame.in_packet(), None)

    def _keep(self, frame: _ShownFrame) -> None:
        self.past[frame.place()] = None
        self.past[frame.behind()] = None
        while len(self.past) > MAX_PLACED_FRAMES:
            self.past.popitem(last=False)


class HeldTimeline:
    """Writes frames and their findings to standard output.

    judges: findings are shown. holds: the newest frames are held back until their findings are there.
    """

    def __init__(self, time_format: str, verbosity: int, judges: bool, holds: bool) -> None:
        self._judges: bool = judges
        self._holds: bool = judges and holds
        self.painter, _ = painter()
        self._time_format: str = time_format
        self._verbosity: int = verbosity
        self._held: list[_ShownFrame] = []
        self._frames: list[_ShownFrame] = []
        # What is to be written, in UTF-8.
        self._written: list[bytes] = []
        # The newest frames that are written: a late finding may be about one of them.
        self._past: deque[_ShownFrame] = deque(maxlen=MAX_PLACED_FRAMES // 2)
        # Where a finding belongs. Most captures have none, so None before the first one.
        self._index: _Index | None = None
        self._shown: dict[Connection, _ShownConnection] = {}
        # Of these, that of the newest frame.
        self._newest: _ShownConnection | None = None
        self._clock: Clock = Clock(time_format)
        self._log: SettlementLog = SettlementLog(LinkNames(), {})
        # Whether only the text of a line matters.
        self._plain: bool = self.painter.bare
        self._timeline: Timeline = Timeline(self._clock, verbosity, LinkNames(), self._plain)

    def begin(self, names: LinkNames, log: SettlementLog) -> None:
        """A capture begins."""
        self._clock = Clock(self._time_format)
        self._log = log
        self._timeline = Timeline(self._clock, self._verbosity, names, self._plain)
        self._shown = {}
        self._newest = None

    def start(self, time: int) -> None:
        """The capture's first frame, shown or not, has this time."""
        self._clock.start(time)

    def block(self, records: list[FrameRecord]) -> None:
        """The next frames. The log has not been asked for their links."""
        for record in records:
            self._take(self._made(record, self._log.of(record)))

    def frame(self, record: FrameRecord, link: Link | None) -> None:
        """The next frame. The log has just been asked for its link."""
        self._take(self._made(record, link))

    def make(self, records: list[FrameRecord]) -> list[MadeFrame]:
        """What another process can `put` of the next frames: plain values."""
        made: list[MadeFrame] = []
        for record in records:
            frame = self._made(record, self._log.of(record))
            about = (int(frame.direction), int(frame.start), int(frame.end), frame.codes)
            begins = int(frame.begins)
            made.append((frame.lines.parts(), frame.headed, about, frame.remark, begins, frame.settled))
        return made

    def put(self, connection: Connection, made: MadeFrame) -> None:
        """Take the next frame of a connection, which another process made."""
        parts, headed, (direction, start, end, codes), remark, begins, settled = made
        frame = _ShownFrame(self._on(connection), FrameLines.of(parts), direction, start, end, codes)
        frame.headed = headed
        frame.remark = remark
        frame.begins = begins
        frame.settled = settled
        self._take(frame)

    def _on(self, connection: Connection) -> _ShownConnection:
        """What is known of the connection of the newest frame."""
        newest = self._newest
        if newest is not None and newest.connection is connection:
            return newest
        known = self._shown.get(connection)
        if known is None:
            known = self._shown[connection] = _ShownConnection(connection)
        self._newest = known
        return known

    def _made(self, record: FrameRecord, link: Link | None) -> _ShownFrame:
        """What is shown of the next frame. None of it depends on other connections."""
        frame = record.frame
        timeline = self._timeline
        headed = timeline.begins(record)
        codes = _NO_CODES
        if frame.problems:
            codes = [problem.code for problem in frame.problems]
        lines = timeline.made(record, link)
        start = frame.offset
        on = self._on(record.connection)
        shown = _ShownFrame(on, lines, record.direction, start, start + frame.size, codes)
        shown.headed = headed
        log = self._log
        shown.begins = log.begun
        answered = log.answered
        if answered is not None:
            shown.remark = answered.text
            shown.settled = answered.numbers
        else:
            settled_by = log.settled_by(record)
            if settled_by is not None:
                shown.remark = settled_by.text
        return shown

    def _take(self, frame: _ShownFrame) -> None:
        """Write the next frame, or hold it back until its findings are there."""
        on = frame.on
        if not self._judges:
            if frame.headed:
                self.add(self.painter.paint(heading(on.connection, int(frame.packet)), INDENT))
            self._paint(frame)
            return
        if len(self._frames) >= MAX_HELD_FRAMES:
            self._write_older()
        self._frames.append(frame)
        if self._index is not None:
            self._index.shown(frame)
        if frame.begins:
            on.begun[int(frame.begins)] = frame
        for number, waited in frame.settled:
            # Said at those that are not written yet.
            begun = on.begun.get(number)
            if begun is not None:
                begun.remark = settled_text(int(frame.packet), waited)

    def _paint(self, frame: _ShownFrame) -> None:
        """Write the lines of a frame."""
        remark = frame.remark
        if self._plain:
            self._timeline.write_plain(self._written, frame.lines, remark)
            for line in frame.lines.below:
                self.add(self.painter.paint(line, _BELOW))
            return
        for line, hang in self._timeline.assembled(frame.lines):
            self.add(self.painter.paint(line, hang, remark))
            remark = ""

    def found(self, findings: list[Finding]) -> None:
        """These findings are complete."""
        for finding in findings:
            if weight(finding) != "note" and finding.connection in self._shown:
                self._put_finding(finding)

    def _put_finding(self, finding: Finding) -> None:
        """Put a finding below its frame, and the answer below the frame that gives it."""
        from amqpscope.report.verdict import answer, headline  # brings what shows findings

        spot, connection = finding.spot, finding.connection
        direction = int(spot.direction)
        place = (connection, direction, int(spot.offset), spot.name)
        index = self._index
        if index is None:
            index = self._index = _Index(self._past, self._held + self._frames)
        at = index.places.get(place) or index.ends.get(place)
        if at is None:
            if spot.name != END_OF_STREAM and place not in index.past:
                return  # its frame was not asked for
            at = self._before(int(spot.packet))
            if at is None or at.on.connection is not connection:
                self.below(at, [heading(connection)])
        if finding.rule.partition("/")[2] not in (_NO_CODES if at is None else at.codes):
            self.below(at, [[("problem", "  !! "), *headline(finding)]])
        reaction = finding.reaction
        if is_objection(reaction):
            answered = index.packets.get((connection, 1 - direction, int(reaction.packet)), at)
            self._answer(
                answered, f"packet {finding.packet}, {kind(finding)} {finding.rule}", answer(finding)
            )

    def _answer(self, at: _ShownFrame | None, finding: str, text: str) -> None:
        """Put an answer below a frame, once for all findings of one kind in one packet."""
        line, times = at.answered.get(finding + text, (-1, 0)) if at is not None else (-1, 0)
        often = f", {times + 1} times" if times else ""
        painted = self.painter.paint([("note", "  -> "), ("", f"{finding}{often}: {text}")], _BELOW)
        if at is None:
            self.add(painted)
        elif times:
            at.below[line] = painted
            at.put_answer(finding + text, line, times + 1)
        else:
            at.put_answer(finding + text, len(at.below), 1)
            at.put_below([painted])

    def _before(self, packet: int) -> _ShownFrame | None:
        """The last frame, of those not written yet, that does not come after a packet."""
        newest: _ShownFrame | None = None
        for frames in (self._frames, self._held):
            for one in reversed(frames):
                if one.packet <= packet:
                    return one
                newest = newest or one
        return newest

    def below(self, at: _ShownFrame | None, lines: list[Line]) -> None:
        """Put lines below a frame, or None: below what was written."""
        texts = [self.painter.paint(line, _BELOW) for line in lines]
        if at is None:
            for text in texts:
                self.add(text)
        else:
            at.put_below(texts)

    def add(self, text: str) -> None:
        """A line that is written behind what was written."""
        self._written.append(f"{text}\n".encode("utf-8", "backslashreplace"))

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""
        self._timeline.forget(connection)
        self._shown.pop(connection, None)
        self._newest = None

    def flush(self) -> None:
        """What is not held back is to be seen."""
        if not self._holds:
            self.write_all()

    def _write_older(self) -> None:
        older, self._held, self._frames = self._held, self._frames, []
        self._write(older, int(self._held[-1].packet))

    def _write(self, frames: list[_ShownFrame], newest: int) -> None:
        """Write frames. newest: headings have the names that were said before this packet; 0 for all names.

        What is shown does not depend on how many frames are read at once, but for standard input.
        """
        index = self._index
        for frame in frames:
            if frame.headed:
                self._head(frame.on, newest if self._holds else int(frame.packet))
            self._paint(frame)
            for text in frame.below:
                self.add(text)
            if frame.begins:
                frame.on.begun.pop(int(frame.begins), None)
            if index is None:
                self._past.append(frame)
            else:
                index.wrote(frame)
            frame.written()
        if self._written:
            self._write_out()

    def _write_out(self) -> None:
        """Write what is to be written, as octets if standard output takes UTF-8 as it is.

        Piece by piece: what Ctrl-C keeps from being written is written by the next call, and nothing twice.
        """
        output = sys.stdout
        octets = b"".join(self._written)
        if not (output.encoding == "utf-8" and os.linesep == "\n" and hasattr(output, "buffer")):
            self._written = []
            output.write(octets.decode("utf-8"))
            output.flush()
            return
        output.flush()
        self._written = [octets[at : at + _PIECE] for at in range(0, len(octets), _PIECE)]
        self._written.reverse()
        try:
            while self._written:
                output.buffer.write(self._written[-1])
                del self._written[-1]
        finally:
            self._written.reverse()
        output.flush()

    def write_all(self) -> None:
        """Write what is held back, too."""
        frames = self._held + self._frames
        self._held, self._frames = [], []
        self._write(frames, 0)

    def _head(self, on: _ShownConnection, packet: int) -> None:
        """Write a heading, unless it would be the same again."""
        text = self.painter.paint(heading(on.connection, packet), INDENT)
        if text != on.heading:
            on.heading = text
            self.add(text)
