"""Text for people: findings by weight, when their capture has ended, and a tally of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TextIO

from amqpscope.input.capture import Capture
from amqpscope.model.finding import Finding
from amqpscope.model.records import FrameRecord, FrameRef
from amqpscope.policy.config_finding import RunConclusion
from amqpscope.report.finding_counts import STYLES, FindingCounts
from amqpscope.report.forms import ReportForm, ReportOptions
from amqpscope.report.line import Line
from amqpscope.report.notes import note_lines
from amqpscope.report.painter import painter_of
from amqpscope.report.printable import printable
from amqpscope.report.rule_counts import RuleCounts
from amqpscope.report.shell import shell_word
from amqpscope.report.suppressed import Suppressed, fixed_lines
from amqpscope.report.writer import FindingWriter
from dissectors.wording import count

if TYPE_CHECKING:
    from amqpscope.report.timeline import Clock
    from amqpscope.report.verdict import Verdicts

__all__ = ["FORM"]

_LONG = 10
"""Findings from which on the tally stands before them, too: they take more than a screen."""


class TextWriter(FindingWriter):
    """Findings for people: by connection, the worst first, when the capture has ended.

    What counts for the exit status is always shown; what else is shown, and not only counted, the options
    say.
    """

    context = True
    diagnoses = True
    streaming = False

    def __init__(self, out: TextIO, options: ReportOptions) -> None:
        super().__init__()
        self._out = out
        self._painter = painter_of(out)
        self._options = options
        self._begin_capture("")
        # Over all captures.
        self._captures = 0
        self._with_findings = 0
        self._empty = 0
        self._failed = 0
        self._total = FindingCounts()
        self._others = Suppressed()
        self._ignored = 0
        # Those that are only counted.
        self._folded = FindingCounts()

    def around(self, spot: FrameRef, records: Sequence[FrameRecord], links: Sequence[object]) -> object:
        from amqpscope.report.verdict import frames_around

        return frames_around(spot, records, links)

    def begin(self, path: str) -> None:
        super().begin(path)
        self._begin_capture("")

    def opened(self, capture: Capture) -> None:
        super().opened(capture)
        self._begin_capture(shell_word(capture.path) if capture.path else "")

    def _begin_capture(self, file: str) -> None:
        """file: how a command names the capture, "" if no command can read it again."""
        self._file = file
        # The findings that are shown, and what shows their times; None before the first one.
        self._clock: Clock | None = None
        self._verdicts: Verdicts | None = None
        self._counts = RuleCounts(folds=not self._options.detail.notes)

    def add(self, finding: Finding) -> None:
        if finding.assessment.suppressed_by:
            return
        self._counts.add(finding)
        detail = self._options.detail
        if detail.opens(finding) or (self._options.terms.counts(finding) and not detail.quiet):
            self._show(finding)
        else:
            self._folded.add(finding)

    def _show(self, finding: Finding) -> None:
        """One more finding that is shown, and not only counted."""
        if self._verdicts is None:
            from amqpscope.report.timeline import Clock
            from amqpscope.report.verdict import Verdicts

            options = self._options
            self._clock = Clock("r")
            self._verdicts = Verdicts(self._clock, options.most, options.detail.full, self._file)
        self._verdicts.add(finding)

    def close(self, nothing: str, reason: str) -> None:
        self._failed += bool(reason)
        capture = self.capture
        if capture is not None and (capture.frames or not reason):
            self._empty += bool(nothing) and not (self.tally.counts or reason)
            self._write(capture, reason)
        else:
            self._captures += 1

    def _write(self, capture: Capture, reason: str) -> None:
        """All of one capture. reason: why it was not read to its end, or ""."""
        if self._captures:
            self._print([], 0)
        self._captures += 1
        if self._clock is not None:
            self._clock.start(capture.began)
        self._total.merge(self.tally)
        self._others.merge(self.set_aside.numbers)
        self._ignored += self.ignored
        self._with_findings += bool(self.tally.counts)
        self._print([("rule", f"{printable(self.name)}: {self.outcome(reason)}")], 4)
        verdicts = self._verdicts
        shown = 0 if verdicts is None else sum(verdicts.tally.counts.values())
        tally = self._tally()
        of_several = verdicts is not None and verdicts.of_several
        if shown > _LONG or of_several:
            self._print_all(tally)
        if verdicts is not None:
            for line, hang in verdicts.lines():
                self._print(line, hang)
        if shown < sum(self.tally.counts.values()) or len(tally) > _ONE_ROW:
            if shown > _LONG or not of_several:
                self._print_all(tally)
            packet = self._counts.first_packet
            if packet and self._file:
                self._print([("key", "next: "), ("", f"amqpscope why {self._file} {packet}")], 6)
        lines = self.diagnosis_list.lines()
        if lines:
            self._print([("rule", "who has to act, and why (this accuses nobody):")], 4)
        self._print_all(lines)
        if lines and self._file and not self._counts.first_packet and self.diagnosis_list.first_packet:
            packet = self.diagnosis_list.first_packet
            self._print([("key", "next: "), ("", f"amqpscope why {self._file} {packet}")], 6)
        for excused in self.set_aside.lines():
            self._print([("note", printable(excused))], 6)
        for one in note_lines(self.notes):
            self._print([(one.style, f"note: {printable(one.text)}")], one.hang)
        self._out.flush()

    def _tally(self) -> list[Line]:
        """How often each rule was broken, behind an empty line."""
        lines = self._counts.lines(self._painter.width)
        return [[], *lines] if lines else []

    def _print_all(self, lines: list[Line]) -> None:
        for line in lines:
            self._print(line, 4)

    def conclude(self, closing: RunConclusion) -> None:
        if closing.remarks or closing.fixed:
            self._print([], 0)
        for text in fixed_lines(closing):
            self._print([("note", printable(text))], 6)
        for remark in closing.remarks:
            line = [
                (STYLES[remark.severity], f"{remark.severity} {remark.rule}"),
                ("", printable(f" in {remark.place}: {remark.message}")),
            ]
            self._print(line, 4)
        self._out.flush()

    def end(self) -> None:
        kinds = " ".join(self._folded.counts)
        options = [name for name, word in (("--possible", "possible"), ("--notes", "note")) if word in kinds]
        if options and not self._options.detail.quiet:
            shows = "shows" if len(options) == 1 else "show"
            self._print([("dim", f"{' and '.join(options)} {shows} what is only counted here")], 4)
        if self._captures > 1:
            self._print_total()
        self._out.flush()

    def _print_total(self) -> None:
        """What there is in all captures."""
        clean = "nothing to check" if self._empty == self._captures else "nothing wrong found"
        parts = [self._total.text() or clean]
        if self._with_findings:
            parts[0] += f" in {self._with_findings} of them"
        parts += self._others.parts()
        if self._ignored:
            parts.append(f"{count(self._ignored, 'finding')} ignored")
        if 0 < self._empty < self._captures:
            parts.append(f"{self._empty} without AMQP 1.0 or 0-9-1 to check")
        if self._failed:
            parts.append(f"{self._failed} not read, or not to the end")
        self._print([], 0)
        self._print([("rule", f"{count(self._captures, 'capture')}: {'; '.join(parts)}")], 4)

    def _print(self, line: Line, hang: int) -> None:
        self._out.write(self._painter.paint(line, hang) + "\n")


_ONE_ROW = 3
"""Lines of a tally of one row: an empty line, the headings, the row."""

FORM: Final = ReportForm("for people", TextWriter, (".txt",), shows_fixed=True)
