"""The forms in which `amqpscope read` shows frames to people: a timeline with findings, or ladders."""

import sys
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.cli.writers import FrameWriter
from amqpscope.errors import CaptureError
from amqpscope.input.capture import Capture
from amqpscope.limits import MAX_HELD_FRAMES, MAX_LADDER_FRAMES, MAX_PLACED_FRAMES, MAX_SEALED_SHOWN
from amqpscope.model.finding import Finding
from amqpscope.model.records import END_OF_STREAM, Connection, FrameRecord
from amqpscope.report.frames_around import FramesAround
from amqpscope.report.ladder import WIDTH, ladder
from amqpscope.report.line import INDENT, Line
from amqpscope.report.links import LinkNames
from amqpscope.report.notes import note_lines, notes_about
from amqpscope.report.painter import painter
from amqpscope.report.printable import printable
from amqpscope.report.settlements import Place, SettledBy, SettlementLog
from amqpscope.report.summary_text import connection_lines
from amqpscope.report.timeline import Clock, FrameParts, Timeline, heading
from amqpscope.report.verdict import answer, headline, kind
from amqpscope.rules.peer_error import is_objection
from amqpscope.rules.profiles import weight
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wording import count

__all__ = ["LadderWriter", "TimelineWriter"]

_WIDEST: Final = 100
"""Columns of a ladder on a terminal that has more."""

_Place = tuple[Connection, int, int, str]


class _Heading:
    """The heading of a connection. text: as it was last written, "" if it was not."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.text = ""


class _ShownFrame:
    """The text of a frame, and what is found at it, which is shown below it."""

    def __init__(
        self, connection: Connection, about: tuple[Any, ...], texts: list[str], line: tuple[Line, int]
    ) -> None:
        direction, offset, behind, name, self.packet, self.codes = about
        self.place: _Place = (connection, direction, offset, name)
        # A rule that learns of a fault later knows of the frame where it ends.
        self.end: _Place = (connection, direction, behind, name)
        # Its lines, the first of them as it was before it was painted.
        self.texts = texts
        self.line = line
        # What stands above it, unless it was written before with the same names; and what stands below it.
        self.heading: _Heading | None = None
        self.below: list[str] = []
        # Findings that have the same answer here: the line of the answer in `below`, and how many they are.
        self.answered: dict[str, tuple[int, int]] = {}


class TimelineWriter(FrameWriter):
    """One line a frame, for people, with each finding below its frame and the answer to it.

    Findings may need later frames. holds: the newest frames are held back until more frames come than
    MAX_HELD_FRAMES, so that such findings stand in their places. Later ones are shown where they come.
    A frame that answers messages names their packets, and they name its packet if they are still held back.
    """

    links = True

    def __init__(self, time_format: str, verbosity: int, several: bool, verdicts: bool, holds: bool) -> None:
        self.judges = verdicts
        self._holds = verdicts and holds
        self._painter, _ = painter()
        self._time_format = time_format
        self._verbosity = verbosity
        self._several = several
        self._held: list[_ShownFrame] = []
        self._frames: list[_ShownFrame] = []
        self._lines: list[str] = []
        # Where findings go: the frames that are not written yet, by their places, ends and packets.
        self._places: dict[_Place, _ShownFrame] = {}
        self._ends: dict[_Place, _ShownFrame] = {}
        self._packets: dict[tuple[Connection, int, int], _ShownFrame] = {}
        # Places and ends of the newest frames that are written: a late finding may be about one of them.
        self._written: OrderedDict[_Place, None] = OrderedDict()
        self._shown: set[Connection] = set()
        self._headings: dict[Connection, _Heading] = {}
        # Connections in TLS of which no frame was read.
        self._sealed = 0
        self._clock = Clock(time_format)
        self._log = SettlementLog(LinkNames(), {})
        self._timeline = Timeline(self._clock, verbosity, LinkNames())

    def begin(self, capture: Capture, names: LinkNames, log: SettlementLog) -> None:
        self._clock = Clock(self._time_format)
        self._log = log
        self._timeline = Timeline(self._clock, self._verbosity, names)
        self._shown = set()
        self._headings = {}
        self._sealed = 0
        if self._several:
            self._lines.append(self._painter.paint([("rule", f"══ {printable(capture.name)}")]))

    def start(self, time: int) -> None:
        self._clock.start(time)

    def block(self, records: list[FrameRecord]) -> None:
        for record in records:
            self.frame(record, self._log.of(record))

    @property
    def shares(self) -> bool:
        return True

    def make(self, records: list[FrameRecord]) -> Sequence[object]:
        made = []
        bare = self._painter.bare
        for record in records:
            (columns, reported, below), above, about, remark, answered = self._made(
                record, self._log.of(record)
            )
            if bare:
                reported = [("", "".join([text for _, text in reported]))]
            settled = [(place, name, tuple(by)) for place, name, by in answered]
            made.append(((columns, reported, below), above, about, remark, settled))
        return made

    def put(self, made: list[tuple[Connection, Any]]) -> None:
        for connection, one in made:
            self._show(connection, *one)

    def frame(self, record: FrameRecord, link: Link | None) -> None:
        self._show(record.connection, *self._made(record, link))

    def _made(
        self, record: FrameRecord, link: Link | None
    ) -> tuple[FrameParts, bool, tuple[Any, ...], str, Iterable[tuple[Place, str, tuple[Any, ...]]]]:
        """What `_show` takes of a frame behind its connection. None of it depends on other connections."""
        timeline = self._timeline
        above = timeline.heading(record) or timeline.introduction(record)
        answered = self._log.answered
        settled: Iterable[tuple[Place, str, tuple[Any, ...]]] = ()
        if answered is not None:
            remark = answered.text
            if self.judges:
                settled = answered.settled
        else:
            settled_by = self._log.settled_by(record)
            remark = "" if settled_by is None else settled_by.text
        frame = record.frame
        about = (
            int(record.direction),
            int(frame.offset),
            int(frame.offset + frame.size),
            frame.name,
            int(record.packet),
            [problem.code for problem in frame.problems],
        )
        return timeline.frame_parts(record, link), above is not None, about, remark, settled

    def _show(
        self,
        connection: Connection,
        parts: FrameParts,
        headed: bool,
        about: tuple[Any, ...],
        remark: str,
        settled: Iterable[tuple[Place, str, tuple[Any, ...]]],
    ) -> None:
        """The next frame. headed: a heading stands above it. about: see `_ShownFrame`. remark: behind its
        line. settled: the frames that it answers.
        """
        first, *rest = self._timeline.assembled(parts)
        texts = [self._painter.paint(*first, remark)]
        texts += [self._painter.paint(line, hang) for line, hang in rest]
        if not self.judges:
            if headed:
                self._lines.append(self._painter.paint(heading(connection, about[4]), INDENT))
            self._lines += texts
            return
        shown = _ShownFrame(connection, about, texts, first)
        if headed:
            shown.heading = self._headings.setdefault(connection, _Heading(connection))
        self._keep(shown)
        for (_, direction, offset), name, by in settled:
            # Named at those that are not written yet.
            at = self._places.get((connection, direction, offset, name))
            if at is not None:
                at.texts[0] = self._painter.paint(*at.line, SettledBy(*by).text)

    def _keep(self, frame: _ShownFrame) -> None:
        if len(self._frames) >= MAX_HELD_FRAMES:
            self._write_older()
        self._frames.append(frame)
        self._shown.add(frame.place[0])
        self._places[frame.place] = frame
        self._ends[frame.end] = frame
        self._packets.setdefault((*frame.place[:2], frame.packet), frame)

    def found(self, findings: list[Finding]) -> None:
        for finding in findings:
            if weight(finding) != "note" and finding.connection in self._shown:
                self._put(finding)

    def _put(self, finding: Finding) -> None:
        """Put a finding below its frame, and the answer below the frame that gives it."""
        spot, connection = finding.spot, finding.connection
        direction = int(spot.direction)
        place = (connection, direction, int(spot.offset), spot.name)
        at = self._places.get(place) or self._ends.get(place)
        if at is None:
            if spot.name != END_OF_STREAM and place not in self._written:
                return  # its frame was not asked for
            at = self._before(int(spot.packet))
            if at is None or at.place[0] is not connection:
                self._below(at, heading(connection))
        if finding.rule.partition("/")[2] not in (at.codes if at is not None else ()):
            self._below(at, [("problem", "  !! "), *headline(finding)])
        reaction = finding.reaction
        if is_objection(reaction):
            answered = self._packets.get((connection, 1 - direction, int(reaction.packet)), at)
            self._answer(
                answered, f"packet {finding.packet}, {kind(finding)} {finding.rule}", answer(finding)
            )

    def _answer(self, at: _ShownFrame | None, finding: str, text: str) -> None:
        """Put an answer below a frame, once for all findings of one kind in one packet."""
        line, times = at.answered.get(finding + text, (-1, 0)) if at is not None else (-1, 0)
        often = f", {times + 1} times" if times else ""
        painted = self._painter.paint([("note", "  -> "), ("", f"{finding}{often}: {text}")], INDENT + 4)
        if at is None:
            self._lines.append(painted)
        elif times:
            at.below[line] = painted
            at.answered[finding + text] = line, times + 1
        else:
            at.answered[finding + text] = len(at.below), 1
            at.below.append(painted)

    def _before(self, packet: int) -> _ShownFrame | None:
        """The last frame, of those not written yet, that does not come after a packet."""
        frames = [*reversed(self._frames), *reversed(self._held)]
        return next((one for one in frames if one.packet <= packet), frames[0] if frames else None)

    def _below(self, at: _ShownFrame | None, *lines: Line) -> None:
        texts = [self._painter.paint(line, INDENT + 4) for line in lines]
        if at is None:
            self._lines += texts
        else:
            at.below += texts

    def over(self, analysis: ConnectionAnalysis) -> None:
        if analysis.connection.tls is None or analysis.connection.frames:
            return
        self._sealed += 1
        if self._sealed <= MAX_SEALED_SHOWN:
            self._below(None, *connection_lines(analysis, None, None))

    def forget(self, connection: Connection) -> None:
        self._timeline.forget(connection)
        self._shown.discard(connection)
        self._headings.pop(connection, None)

    def flush(self) -> None:
        if not self._holds:
            self._write_all()

    def _write_older(self) -> None:
        self._held, self._frames, older = self._frames, [], self._held
        self._write(older, self._held[-1].packet)

    def _write(self, frames: Iterable[_ShownFrame], newest: int) -> None:
        """Write frames. newest: headings have the names that were said before this packet; 0 for all names.

        What is shown does not depend on how many frames are read at once, but for standard input.
        """
        for frame in frames:
            if frame.heading is not None:
                self._head(frame.heading, newest if self._holds else frame.packet)
            self._lines += [*frame.texts, *frame.below]
            self._written[frame.place] = self._written[frame.end] = None
            self._places.pop(frame.place, None)
            self._ends.pop(frame.end, None)
            self._packets.pop((*frame.place[:2], frame.packet), None)
        while len(self._written) > MAX_PLACED_FRAMES:
            self._written.popitem(last=False)
        if self._lines:
            sys.stdout.write("\n".join(self._lines) + "\n")
            sys.stdout.flush()
            self._lines = []

    def _write_all(self) -> None:
        frames, self._held, self._frames = self._held + self._frames, [], []
        self._write(frames, 0)

    def _head(self, above: _Heading, packet: int) -> None:
        """Write a heading, unless it would be the same again."""
        text = self._painter.paint(heading(above.connection, packet), INDENT)
        if text != above.text:
            above.text = text
            self._lines.append(text)

    def finish(self, capture: Capture) -> None:
        self._write_all()
        if self._sealed > MAX_SEALED_SHOWN:
            more = f"and {self._sealed - MAX_SEALED_SHOWN} more connections in TLS (summary --all shows them)"
            self._lines.append(more)
        for text, style, hang in note_lines(notes_about(capture.notes, self.about)):
            self._lines.append(self._painter.paint([(style, f"note: {printable(text)}")], hang))
        self._write_all()

    def fail(self, name: str, reason: str) -> None:
        self._write_all()


class LadderWriter(FrameWriter):
    """The frames that were asked for, as arrows between client and server, each connection for itself.

    around: a packet; only the frames next to it on its connection are drawn. 0 for all frames.
    """

    judges = True
    streaming = False

    def __init__(self, around: int = 0) -> None:
        self._around = around
        self._near = FramesAround(around)
        self._records: list[FrameRecord] = []
        self._findings: list[Finding] = []
        self._left_out = 0

    def begin(self, capture: Capture, names: LinkNames, log: SettlementLog) -> None:
        self._records, self._findings, self._left_out = [], [], 0
        self._near = FramesAround(self._around)

    def block(self, records: list[FrameRecord]) -> None:
        for record in records:
            self.frame(record, None)

    def frame(self, record: FrameRecord, link: Link | None) -> None:
        if self._around:
            self._near.add(record, link)
            self._records = [one for one, _ in self._near.kept]
        elif len(self._records) < MAX_LADDER_FRAMES:
            self._records.append(record)
        else:
            self._left_out += 1

    def found(self, findings: list[Finding]) -> None:
        connections = {record.connection for record in self._records}
        self._findings += [one for one in findings if weight(one) != "note" and one.connection in connections]

    def finish(self, capture: Capture) -> None:
        if self._around and not self._records:
            raise CaptureError(f"{capture.name}: --around {self._around}: no frame begins in this packet")
        paint, width = painter()
        places = {
            (record.connection, record.peer, int(record.packet), record.frame.name)
            for record in self._records
        }
        findings = [
            one
            for one in self._findings
            if one.frame == END_OF_STREAM or (one.connection, one.peer, int(one.packet), one.frame) in places
        ]
        for line in ladder(self._records, findings, WIDTH if width is None else min(width, _WIDEST)):
            print(paint.paint(line))
        if self._left_out:
            text = (
                f"{count(self._left_out, 'more frame')} not drawn; --connection, --from and --to choose fewer"
            )
            print(paint.paint([("note", text)]))
        sys.stdout.flush()
