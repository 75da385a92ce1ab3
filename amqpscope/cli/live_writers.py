"""The forms in which `amqpscope sniff` writes what it sees: a timeline with verdicts in it, or JSON.

A verdict stands below the frame that it is about, as soon as there is one;
what the other peer did then follows when it has. Text goes through a
`NonBlockingOutput`: what a slow reader does not take in time is left out and
counted. Frames are left out too while the capture has more than can be
written; verdicts are not, until the outlet is full.
"""

import json
import os
from abc import abstractmethod

from amqpscope.cli.live_view import LiveView
from amqpscope.cli.nonblocking_output import NonBlockingOutput
from amqpscope.cli.output import say
from amqpscope.cli.selection import Selection
from amqpscope.input.live import Batch
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.report.diagnosis_text import diagnosis_line
from amqpscope.report.finding_counts import kind
from amqpscope.report.findings import decided_object
from amqpscope.report.json_form import FrameForm
from amqpscope.report.line import INDENT, Line
from amqpscope.report.links import LinkNames
from amqpscope.report.moment import iso
from amqpscope.report.painter import painter
from amqpscope.report.printable import printable
from amqpscope.report.rule_counts import RuleCounts
from amqpscope.report.suppressed import justification
from amqpscope.report.timeline import Clock, Timeline, heading
from amqpscope.report.verdict import answer, headline
from amqpscope.report.who import ends
from amqpscope.rules.overdue import Overdue
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wording import count

__all__ = ["LiveJson", "LiveText", "LiveWriter"]

_SECOND = 1_000_000_000


class LiveWriter(LiveView):
    """Writes lines through an outlet. name: of the source. quiet: no frames."""

    def __init__(self, name: str, selection: Selection, quiet: bool, outlet: NonBlockingOutput) -> None:
        super().__init__()
        self.name = name
        self.outlet = outlet
        self._selection = selection
        self._quiet = quiet
        self._names = LinkNames()
        self._skipped = 0  # frames, since the last line

    @property
    def gone(self) -> bool:
        return self.outlet.error is not None

    def write(self, batch: Batch, behind: bool) -> None:
        below: dict[tuple[int, int, int], list[Finding]] = {}
        for finding in batch.found:
            below.setdefault(_place(finding), []).append(finding)
        for record in batch.records:
            self._record(record, below, behind)
        for findings in below.values():
            for finding in findings:
                self._verdict(self.verdict_text(finding))
        for finding in batch.amended:
            self._verdict(self.amended_text(finding))
        for overdue in batch.overdue:
            self._verdict(self.overdue_text(overdue))
        for diagnosis in batch.diagnosed:
            self._verdict(self.diagnosis_text(diagnosis))
        for diagnosis in batch.lasting:
            self._verdict(self.lasting_text(diagnosis))
        for note in batch.notes:
            self._verdict(self.note_text(note))
        for event in batch.events:
            self.tell(event)
        for analysis in batch.ended:
            self._names.forget(analysis.connection)
            self._selection.forget(analysis.connection)
            self.forget(analysis.connection)

    def _record(
        self, record: FrameRecord, below: dict[tuple[int, int, int], list[Finding]], behind: bool
    ) -> None:
        place = (id(record.connection), int(record.direction), int(record.frame.offset))
        findings = below.pop(place, []) if below else []
        if not self._quiet:
            link = self._names.of(record)
            if self._selection.takes(record, link):
                text = ""
                if not behind and self.outlet.room:
                    text = self.frame_text(record, link)
                if text and self._skipped:
                    self._verdict(self.skipped_text(self._skipped))
                    self._skipped = 0
                if not text or not self.outlet.offer(text):
                    self._skipped += 1
                    self.left_out += 1
        for finding in findings:
            self._verdict(self.verdict_text(finding))

    def _verdict(self, text: str) -> None:
        if text and not self.outlet.offer(text):
            self.verdicts_left_out += 1

    def end(self, conclusion: str, counts: RuleCounts) -> None:
        if self._skipped:
            self._verdict(self.skipped_text(self._skipped))
            self._skipped = 0
        self.report(conclusion, counts)
        self.outlet.close()

    @abstractmethod
    def report(self, conclusion: str, counts: RuleCounts) -> None:
        """At the end: what there was, and the findings counted."""

    @abstractmethod
    def forget(self, connection: Connection) -> None:
        """A connection is over."""

    @abstractmethod
    def frame_text(self, record: FrameRecord, link: Link | None) -> str:
        """A frame of this link, with its line end."""

    @abstractmethod
    def verdict_text(self, finding: Finding) -> str:
        """A finding just made."""

    @abstractmethod
    def amended_text(self, finding: Finding) -> str:
        """A finding made before, now that the other peer has reacted to it."""

    @abstractmethod
    def overdue_text(self, overdue: Overdue) -> str:
        """A peer that is silent for too long."""

    def lasting_text(self, diagnosis: Diagnosis) -> str:
        """Who waits for whom, and still does."""
        return self.diagnosis_text(diagnosis)

    @abstractmethod
    def diagnosis_text(self, diagnosis: Diagnosis) -> str:
        """Who waited for whom, or what else is diagnosed."""

    @abstractmethod
    def note_text(self, note: Note) -> str:
        """Something about the capture."""

    @abstractmethod
    def skipped_text(self, number: int) -> str:
        """So many frames were left out."""


class LiveText(LiveWriter):
    """Lines for people.

    time_format, verbosity: as of `Timeline`.
    """

    def __init__(
        self,
        name: str,
        selection: Selection,
        quiet: bool,
        outlet: NonBlockingOutput,
        time_format: str,
        verbosity: int,
    ) -> None:
        super().__init__(name, selection, quiet, outlet)
        self._clock = Clock(time_format)
        self._timeline = Timeline(self._clock, verbosity, self._names)
        self._painter, self._width = painter()
        self._headed: Connection | None = None
        # The numbers of the open connections by their ids.
        self._numbers: dict[str, int] = {}

    def write(self, batch: Batch, behind: bool) -> None:
        self._look_at_width()
        before: Connection | None = None
        for record in batch.records:
            if record.connection is not before:
                before = record.connection
                self._numbers[before.id] = int(before.stream)
        super().write(batch, behind)

    def forget(self, connection: Connection) -> None:
        self._timeline.forget(connection)
        self._numbers.pop(connection.id, None)
        if self._headed is connection:
            self._headed = None

    def report(self, conclusion: str, counts: RuleCounts) -> None:
        lines: list[tuple[Line, int]] = [([], -1), ([("rule", printable(conclusion))], 4)]
        lines += [(line, 4) for line in counts.lines(self._width)]
        self._verdict(self._paint(lines))

    def frame_text(self, record: FrameRecord, link: Link | None) -> str:
        self._headed = record.connection
        above = self._timeline.introduction(record)
        lines = self._timeline.lines(record, link)
        return self._paint(lines if above is None else [(above, INDENT), *lines])

    def verdict_text(self, finding: Finding) -> str:
        lines: list[tuple[Line, int]] = []
        if self._headed is not finding.connection:
            # Without its frame it would not be known whose verdict it is.
            self._headed = finding.connection
            lines.append((heading(finding.connection), INDENT))
        line = [("problem", "  !! "), *headline(finding)]
        if finding.assessment.suppressed_by:
            line = [("dim", "  ok "), *headline(finding), ("dim", f" ({printable(justification(finding))})")]
        lines.append((line, INDENT + 4))
        return self._paint(lines)

    def amended_text(self, finding: Finding) -> str:
        text = f"packet {finding.packet}, {kind(finding)} {finding.rule}: {answer(finding)}"
        return self._paint([([("note", "  -> "), ("", text)], INDENT + 4)])

    def overdue_text(self, overdue: Overdue) -> str:
        text = (
            f"connection {overdue.connection.stream}: the {overdue.peer} has said nothing since "
            f"{self._clock.show(int(overdue.since))}, {overdue.agreed / _SECOND:g} s are agreed "
            f"({overdue.rule}, if it goes on)"
        )
        return self._paint([([("problem", "  !! "), ("note", "overdue "), ("", text)], INDENT + 4)])

    def diagnosis_text(self, diagnosis: Diagnosis) -> str:
        number = self._numbers.get(diagnosis.connection)
        which = ("", f"connection {ends(diagnosis.connection) if number is None else number}: ")
        return self._paint([([("note", "  ?? "), which, *diagnosis_line(diagnosis)], INDENT + 4)])

    def note_text(self, note: Note) -> str:
        where = f"packet {note.packet}: " if note.packet else ""
        which = "" if note.connection is None else f"connection {note.connection.stream}: "
        text = f"note: {note.code}: {where}{which}{printable(note.detail)}"
        return self._paint([([("note", text)], INDENT)])

    def skipped_text(self, number: int) -> str:
        text = f"... {count(number, 'frame')} not shown: frames come faster than they can be written"
        return self._paint([([("note", text)], INDENT)])

    def _paint(self, lines: list[tuple[Line, int]]) -> str:
        paint = self._painter.paint
        return "".join([paint(line, hang) + "\n" for line, hang in lines])

    def _look_at_width(self) -> None:
        """The terminal may have been made wider or narrower."""
        if self._width is None:
            return
        try:
            width = os.get_terminal_size(1).columns
        except OSError:
            return
        if width != self._width:
            self._painter, self._width = painter()


class LiveJson(LiveWriter):
    """One JSON object a line: frames as `read` writes them, findings as `check` does.

    A finding that was written before comes again with `"amended": true` when the other peer has reacted.
    bodies: with the bodies of messages.
    """

    def __init__(
        self, name: str, selection: Selection, quiet: bool, outlet: NonBlockingOutput, bodies: bool
    ) -> None:
        super().__init__(name, selection, quiet, outlet)
        self._form = FrameForm(name, bodies, self._names)

    def forget(self, connection: Connection) -> None:
        pass

    def report(self, conclusion: str, counts: RuleCounts) -> None:
        say(conclusion)

    def frame_text(self, record: FrameRecord, link: Link | None) -> str:
        return self._form.line(record, link) + "\n"

    def verdict_text(self, finding: Finding) -> str:
        return json.dumps(decided_object(finding, self.name)) + "\n"

    def amended_text(self, finding: Finding) -> str:
        return json.dumps({**decided_object(finding, self.name), "amended": True}) + "\n"

    def overdue_text(self, overdue: Overdue) -> str:
        silent = {
            "rule": overdue.rule,
            "connection": overdue.connection.id,
            "peer": overdue.peer,
            "since": iso(int(overdue.since)),
            "agreed_seconds": int(overdue.agreed) / _SECOND,
        }
        return json.dumps({"overdue": silent}) + "\n"

    def lasting_text(self, diagnosis: Diagnosis) -> str:
        return json.dumps({"lasting": diagnosis.json()}) + "\n"

    def diagnosis_text(self, diagnosis: Diagnosis) -> str:
        return json.dumps({"diagnosis": diagnosis.json()}) + "\n"

    def note_text(self, note: Note) -> str:
        connection = None if note.connection is None else note.connection.id
        reported = {
            "code": note.code,
            "packet": int(note.packet),
            "connection": connection,
            "detail": note.detail,
        }
        return json.dumps({"note": reported}) + "\n"

    def skipped_text(self, number: int) -> str:
        return json.dumps({"not_shown": {"frames": number}}) + "\n"


def _place(finding: Finding) -> tuple[int, int, int]:
    """The frame that a finding is about: connection, direction, offset."""
    return id(finding.connection), int(finding.spot.direction), int(finding.offset)
