"""The forms in which `amqpscope read` shows frames to people: a timeline with findings, or ladders."""

import sys
from collections.abc import Sequence
from typing import Any, Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.capture.traced import TracedMessage
from amqpscope.cli.writers import FrameWriter
from amqpscope.errors import CaptureError
from amqpscope.input.capture import Capture
from amqpscope.limits import MAX_LADDER_FRAMES, MAX_SEALED_SHOWN
from amqpscope.model.finding import Finding
from amqpscope.model.records import END_OF_STREAM, Connection, FrameRecord
from amqpscope.report.frames_around import FramesAround
from amqpscope.report.held_timeline import HeldTimeline
from amqpscope.report.line import Line
from amqpscope.report.links import LinkNames
from amqpscope.report.notes import note_lines, notes_about
from amqpscope.report.painter import painter
from amqpscope.report.printable import printable
from amqpscope.report.settlements import SettlementLog
from amqpscope.report.summary_text import connection_lines
from amqpscope.report.traced_text import TraceLines
from amqpscope.rules.profiles import weight
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wording import count

__all__ = ["LadderWriter", "TimelineWriter"]

_WIDEST: Final = 100
"""Columns of a ladder on a terminal that has more."""


class TimelineWriter(FrameWriter):
    """One line a frame, for people, with each finding below its frame and the answer to it.

    holds: the newest frames are held back, so that findings that need later frames stand in their places
    (`HeldTimeline`). A frame that answers messages names their packets, and they name its packet if they are
    still held back.
    """

    links = True
    traces = True

    def __init__(self, time_format: str, verbosity: int, several: bool, verdicts: bool, holds: bool) -> None:
        self.judges = verdicts
        self._several = several
        self._timeline = HeldTimeline(time_format, verbosity, verdicts, holds)
        # Connections in TLS of which no frame was read.
        self._sealed = 0
        self._verbosity = verbosity
        self._traces = TraceLines(verbosity)

    def begin(self, capture: Capture, names: LinkNames, log: SettlementLog) -> None:
        self._timeline.begin(names, log)
        self._sealed = 0
        self._traces = TraceLines(self._verbosity)
        if self._several:
            self._add([("rule", f"══ {printable(capture.name)}")], -1)

    def start(self, time: int) -> None:
        self._timeline.start(time)

    def block(self, records: list[FrameRecord]) -> None:
        self._timeline.block(records)

    @property
    def shares(self) -> bool:
        return True

    def make(self, records: list[FrameRecord]) -> Sequence[object]:
        return self._timeline.make(records)

    def put(self, made: list[tuple[Connection, Any]]) -> None:
        for connection, one in made:
            self._timeline.put(connection, one)

    def frame(self, record: FrameRecord, link: Link | None) -> None:
        self._timeline.frame(record, link)

    def found(self, findings: list[Finding]) -> None:
        self._timeline.found(findings)

    def over(self, analysis: ConnectionAnalysis) -> None:
        if analysis.connection.tls is None or analysis.connection.frames:
            return
        self._sealed += 1
        if self._sealed <= MAX_SEALED_SHOWN:
            self._timeline.below(None, connection_lines(analysis, None, None))

    def forget(self, connection: Connection) -> None:
        self._timeline.forget(connection)

    def traced(self, message: TracedMessage) -> None:
        for line, hang in self._traces.lines(message):
            self._add(line, hang)

    def flush(self) -> None:
        self._timeline.flush()

    def finish(self, capture: Capture) -> None:
        self._timeline.write_all()
        if self._sealed > MAX_SEALED_SHOWN:
            more = f"and {self._sealed - MAX_SEALED_SHOWN} more connections in TLS (summary --all shows them)"
            self._timeline.add(more)
        for one in note_lines(notes_about(capture.notes, self.about)):
            self._add([(one.style, f"note: {printable(one.text)}")], one.hang)
        self._timeline.write_all()

    def fail(self, name: str, reason: str) -> None:
        self._timeline.write_all()

    def _add(self, line: Line, hang: int) -> None:
        self._timeline.add(self._timeline.painter.paint(line, hang))


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
        from amqpscope.report.ladder import WIDTH, ladder  # the other writer of this file draws none

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
