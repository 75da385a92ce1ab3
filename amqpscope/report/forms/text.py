"""Text for people: the findings of each connection, when its capture has ended."""

from typing import Final, TextIO

from amqpscope.input.capture import Capture
from amqpscope.model.finding import Finding
from amqpscope.policy.config_finding import RunConclusion
from amqpscope.report.forms import ReportForm, ReportOptions
from amqpscope.report.painter import painter_of
from amqpscope.report.printable import printable
from amqpscope.report.summary_text import count
from amqpscope.report.suppressed import Suppressed, fixed_lines
from amqpscope.report.timeline import Clock
from amqpscope.report.verdict import STYLES, FindingCounts, Verdicts
from amqpscope.report.writer import FindingWriter

__all__ = ["FORM"]


class TextWriter(FindingWriter):
    """Findings for people: by connection, when the capture has ended."""

    context = True
    streaming = False

    def __init__(self, out: TextIO, options: ReportOptions) -> None:
        super().__init__()
        self._out = out
        self._painter = painter_of(out)
        self._most = options.most
        self._clock = Clock("r")
        self._verdicts = Verdicts(self._clock, options.most)
        # Over all captures.
        self._captures = 0
        self._with_findings = 0
        self._empty = 0
        self._failed = 0
        self._total = FindingCounts()
        self._others = Suppressed()
        self._ignored = 0

    def begin(self, path: str) -> None:
        super().begin(path)
        self._clock = Clock("r")
        self._verdicts = Verdicts(self._clock, self._most)

    def add(self, finding: Finding) -> None:
        if not finding.assessment.suppressed_by:
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
        self._clock.start(capture.began)
        self._total.merge(self.tally)
        self._others.merge(self.set_aside.numbers)
        self._ignored += self.ignored
        self._with_findings += bool(self.tally.counts)
        self._print([("rule", f"{printable(self.name)}: {self.outcome(reason)}")], 4)
        for line, hang in self._verdicts.lines():
            self._print(line, hang)
        for text in self.remarks():
            self._print([("note", printable(text))], 6)
        self._out.flush()

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
        if self._captures < 2:
            return
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
        self._out.flush()

    def _print(self, line: list[tuple[str, str]], hang: int) -> None:
        self._out.write(self._painter.paint(line, hang) + "\n")


FORM: Final = ReportForm("for people", TextWriter, (".txt",), shows_fixed=True)
