"""The timeline of `amqpscope read` as text: a line a frame, with each finding below its frame.

Findings may need later frames. The newest frames are therefore held back, and written when more of them have
come than MAX_HELD_FRAMES: then such findings stand in their places. Later ones are shown where they come.
"""

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
from amqpscope.report.settlements import Place, SettledBy, SettlementLog
from amqpscope.report.timeline import Clock, FrameParts, Timeline, heading
from amqpscope.report.verdict import answer, headline
from amqpscope.rules.peer_error import is_objection
from amqpscope.rules.profiles import weight
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wire import i64

__all__ = ["HeldTimeline", "MadeFrame"]

_BELOW: Final = INDENT + 4
"""Columns before the continuation of what stands below a frame's line."""

_Place = tuple[Connection, int, int, str]

_Settled = list[tuple[Place, str, int, int]]

MadeFrame = tuple[FrameParts, bool, tuple[int, int, int, str, int, list[str]], str, _Settled]
"""What is shown of a frame, whatever is shown of others.

In order: its parts; whether a heading stands above it; its direction, where it begins and ends in its stream,
its name, packet and problems; what stands behind its line; the frames of messages that it answers, with the
packet that settles these and how long (ns) they were open.
"""

_NO_CODES: Final[list[str]] = []
_NONE_SETTLED: Final[_Settled] = []
_NO_LINES: Final[list[tuple[Line, int]]] = []
_NOTHING: Final[list[str]] = []
_UNANSWERED: Final[dict[str, tuple[int, int]]] = {}


class _About:
    """A frame: where it begins and ends in its stream, its name, packet, and problems."""

    def __init__(self, connection: Connection, about: tuple[int, int, int, str, int, list[str]]) -> None:
        self.connection: Connection = connection
        self.direction, start, self.end, self.name, self.packet, self.codes = about
        self.place: _Place = (connection, self.direction, start, self.name)

    def behind(self) -> _Place:
        """Where the frame ends."""
        return self.connection, self.direction, self.end, self.name


class _Heading:
    """The heading of a connection. text: as it was last written, "" if it was not."""

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection = connection
        self.text: str = ""


class _ShownFrame:
    """The lines of a frame, and what is found at it, which is shown below it.

    text: the first line, if only its text matters. lines: the others; else all.
    """

    def __init__(self, about: _About, text: str, lines: list[tuple[Line, int]], remark: str) -> None:
        self.about: _About = about
        self.text: str = text
        self.lines: list[tuple[Line, int]] = lines
        # What stands behind its first line.
        self.remark: str = remark
        # What stands above it, unless it was written before with the same names.
        self.heading: _Heading | None = None
        # mypyc: nearly all have nothing below, and share these.
        self.below: list[str] = _NOTHING
        # Findings that have the same answer here: the line of the answer in `below`, and how many they are.
        self.answered: dict[str, tuple[int, int]] = _UNANSWERED

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


class _Index:
    """Where findings go that name the end of a frame, its packet, or a frame that is written.

    past: the newest frames that are written, the oldest first. shown: those that are not written yet.
    """

    def __init__(self, past: deque[_About], shown: list[_ShownFrame]) -> None:
        # Frames that are not written yet. A rule that learns of a fault later knows where the frame ends.
        self.ends: dict[_Place, _ShownFrame] = {}
        self.packets: dict[tuple[Connection, int, int], _ShownFrame] = {}
        # Places and ends of the newest frames that are written.
        self.written: OrderedDict[_Place, None] = OrderedDict()
        for about in past:
            self._place(about)
        for frame in shown:
            self.shown(frame)

    def shown(self, frame: _ShownFrame) -> None:
        """A frame that is not written yet."""
        about = frame.about
        self.ends[about.behind()] = frame
        self.packets.setdefault((about.connection, about.direction, about.packet), frame)

    def wrote(self, frame: _ShownFrame) -> None:
        """The frame is written now."""
        about = frame.about
        self._place(about)
        self.ends.pop(about.behind(), None)
        self.packets.pop((about.connection, about.direction, about.packet), None)

    def _place(self, about: _About) -> None:
        self.written[about.place] = None
        self.written[about.behind()] = None
        while len(self.written) > MAX_PLACED_FRAMES:
            self.written.popitem(last=False)


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
        self._lines: list[str] = []
        # The frames that are not written yet, by their places.
        self._places: dict[_Place, _ShownFrame] = {}
        # The newest frames that are written: a late finding may be about one of them.
        self._past: deque[_About] = deque(maxlen=MAX_PLACED_FRAMES // 2)
        # Where else a finding may belong. Most captures have none, so None before the first one.
        self._index: _Index | None = None
        self._shown: set[Connection] = set()
        # Of these, that of the newest frame.
        self._newest: Connection | None = None
        self._headings: dict[Connection, _Heading] = {}
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
        self._shown = set()
        self._newest = None
        self._headings = {}

    def start(self, time: int) -> None:
        """The capture's first frame, shown or not, has this time."""
        self._clock.start(time)

    def block(self, records: list[FrameRecord]) -> None:
        """The next frames. The log has not been asked for their links."""
        for record in records:
            self.frame(record, self._log.of(record))

    def frame(self, record: FrameRecord, link: Link | None) -> None:
        """The next frame. The log has just been asked for its link."""
        self.put(record.connection, self.made(record, link))

    def make(self, records: list[FrameRecord]) -> list[MadeFrame]:
        """What another process can `put` of the next frames: plain values."""
        return [self.made(record, self._log.of(record)) for record in records]

    def made(self, record: FrameRecord, link: Link | None) -> MadeFrame:
        """What is shown of the next frame. None of it depends on other connections."""
        timeline = self._timeline
        above = timeline.heading(record) or timeline.introduction(record)
        answered = self._log.answered
        settled: _Settled = _NONE_SETTLED
        remark = ""
        if answered is not None:
            remark = answered.text
            if self._judges:
                packet = answered.packet
                settled = [(place, name, packet, waited) for place, name, waited in answered.settled]
        else:
            settled_by = self._log.settled_by(record)
            if settled_by is not None:
                remark = settled_by.text
        frame = record.frame
        offset: i64 = frame.offset
        codes = _NO_CODES
        if frame.problems:
            codes = [problem.code for problem in frame.problems]
        about = (
            int(record.direction),
            int(offset),
            int(offset + frame.size),
            frame.name,
            int(record.packet),
            codes,
        )
        return timeline.frame_parts(record, link), above is not None, about, remark, settled

    def put(self, connection: Connection, made: MadeFrame) -> None:
        """Take the next frame of a connection."""
        parts, headed, about, remark, settled = made
        text = ""
        lines = _NO_LINES
        if not self._plain:
            lines = self._timeline.assembled(parts)
        else:
            text = self._timeline.plain_line(parts)
            if parts[2]:
                lines = [(line, _BELOW) for line in parts[2]]
        if not self._judges:
            if headed:
                self._lines.append(self.painter.paint(heading(connection, about[4]), INDENT))
            self._paint(text, lines, remark)
            return
        shown = _ShownFrame(_About(connection, about), text, lines, remark)
        if headed:
            above = self._headings.get(connection)
            if above is None:
                above = self._headings[connection] = _Heading(connection)
            shown.heading = above
        self._keep(shown)
        for place, name, packet, waited in settled:
            # Named at those that are not written yet.
            at = self._places.get((connection, place[1], place[2], name))
            if at is not None:
                at.remark = SettledBy(packet, waited).text

    def _paint(self, text: str, lines: list[tuple[Line, int]], remark: str) -> None:
        """Write the lines of a frame. text: the first, if it is plain. remark: stands behind the first."""
        if self._plain:
            self._lines.append(self.painter.plain(text, remark))
            remark = ""
        for line, hang in lines:
            self._lines.append(self.painter.paint(line, hang, remark))
            remark = ""

    def _keep(self, frame: _ShownFrame) -> None:
        if len(self._frames) >= MAX_HELD_FRAMES:
            self._write_older()
        self._frames.append(frame)
        about = frame.about
        if about.connection is not self._newest:
            self._newest = about.connection
            self._shown.add(about.connection)
        self._places[about.place] = frame
        if self._index is not None:
            self._index.shown(frame)

    def found(self, findings: list[Finding]) -> None:
        """These findings are complete."""
        for finding in findings:
            if weight(finding) != "note" and finding.connection in self._shown:
                self._put_finding(finding)

    def _put_finding(self, finding: Finding) -> None:
        """Put a finding below its frame, and the answer below the frame that gives it."""
        spot, connection = finding.spot, finding.connection
        direction = int(spot.direction)
        place = (connection, direction, int(spot.offset), spot.name)
        index = self._index
        if index is None:
            index = self._index = _Index(self._past, self._held + self._frames)
        at = self._places.get(place) or index.ends.get(place)
        if at is None:
            if spot.name != END_OF_STREAM and place not in index.written:
                return  # its frame was not asked for
            at = self._before(int(spot.packet))
            if at is None or at.about.connection is not connection:
                self.below(at, [heading(connection)])
        if finding.rule.partition("/")[2] not in (_NO_CODES if at is None else at.about.codes):
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
            self._lines.append(painted)
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
                if one.about.packet <= packet:
                    return one
                newest = newest or one
        return newest

    def below(self, at: _ShownFrame | None, lines: list[Line]) -> None:
        """Put lines below a frame, or None: below what was written."""
        texts = [self.painter.paint(line, _BELOW) for line in lines]
        if at is None:
            self._lines += texts
        else:
            at.put_below(texts)

    def add(self, text: str) -> None:
        """A line that is written behind what was written."""
        self._lines.append(text)

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""
        self._timeline.forget(connection)
        self._shown.discard(connection)
        if self._newest is connection:
            self._newest = None
        self._headings.pop(connection, None)

    def flush(self) -> None:
        """What is not held back is to be seen."""
        if not self._holds:
            self.write_all()

    def _write_older(self) -> None:
        older, self._held, self._frames = self._held, self._frames, []
        self._write(older, self._held[-1].about.packet)

    def _write(self, frames: list[_ShownFrame], newest: int) -> None:
        """Write frames. newest: headings have the names that were said before this packet; 0 for all names.

        What is shown does not depend on how many frames are read at once, but for standard input.
        """
        lines = self._lines
        index = self._index
        for frame in frames:
            if frame.heading is not None:
                self._head(frame.heading, newest if self._holds else frame.about.packet)
            self._paint(frame.text, frame.lines, frame.remark)
            if frame.below:
                lines += frame.below
            self._places.pop(frame.about.place, None)
            if index is None:
                self._past.append(frame.about)
            else:
                index.wrote(frame)
        if lines:
            sys.stdout.write("\n".join(lines) + "\n")
            sys.stdout.flush()
            self._lines = []

    def write_all(self) -> None:
        """Write what is held back, too."""
        frames = self._held + self._frames
        self._held, self._frames = [], []
        self._write(frames, 0)

    def _head(self, above: _Heading, packet: int) -> None:
        """Write a heading, unless it would be the same again."""
        text = self.painter.paint(heading(above.connection, packet), INDENT)
        if text != above.text:
            above.text = text
            self._lines.append(text)
