"""A capture of a test, compared with the rules: whether the test fails for it, and the words that say why."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from amqpscope.capture.source import shown_name
from amqpscope.errors import OutputError
from amqpscope.input.ahead import size_of
from amqpscope.input.capture import Capture, CaptureOptions, together
from amqpscope.layers.secrets import Secrets
from amqpscope.limits import MAX_TEST_FINDINGS
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord, FrameRef
from amqpscope.policy import CaptureOutcome, Policy
from amqpscope.policy import judge as judge_under
from amqpscope.policy.config_finding import EXPIRED, RunConclusion
from amqpscope.policy.policy import ALLOW
from amqpscope.policy.replacement import replace_text
from amqpscope.report.diagnosis_text import diagnosis_line
from amqpscope.report.finding_counts import Detail, FindingCounts
from amqpscope.report.forms import ReportOptions
from amqpscope.report.line import Line
from amqpscope.report.painter import Painter
from amqpscope.report.printable import printable
from amqpscope.report.shell import shell_word
from amqpscope.report.timeline import Clock
from amqpscope.report.verdict import Verdicts, frames_around, headline
from amqpscope.report.writer import FindingWriter

__all__ = ["CaptureOfTest", "Judgement", "judge"]

_WIDTH: Final = 118
"""Columns of a report: CI servers show that many, and pytest puts two in front."""

_MOST: Final = 3
"""Findings of one rule by one peer of a connection that a report has in full."""


class Judgement:
    """What is to be said of a capture.

    findings: the first of all that were found, as `amqpscope.check` gives them. failed: whether a test fails
    for it: for a finding or a diagnosis that counts, or because there was nothing to check or the capture
    cannot be read.
    text: the report; its first line says the worst of it. expired: what is to be said of entries of the
    allow-list that have.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.failed = False
        self.text = ""
        self.expired: list[str] = []


def judge(
    source: "CaptureOfTest",
    policy: Policy,
    allowed: Callable[[Finding], bool],
    hint: str,
    page: Path,
    jobs: int,
) -> Judgement:
    """Read a capture to its end, and draw it if a test fails for what was found.

    allowed: whether a finding is let pass, beside those that the policy does. hint: what to look after if
    there is nothing to check. page: the file into which the capture is drawn. jobs: how many processes may
    read the capture. The remarks on entries of an
    allow-list that fitted nothing are left out: one test does not do everything that they are for.
    """
    report = _Report(policy, allowed)
    (judged,) = judge_under([source], policy, hearer=report, gather=False, jobs=jobs).captures
    reported = Judgement()
    reported.findings = report.findings
    reported.expired = report.expired
    reported.failed = (
        report.worst is not None
        or report.failing is not None
        or judged.outcome in (CaptureOutcome.failure, CaptureOutcome.empty)
    )
    reported.text = report.text(hint, source.alone)
    if judged.outcome is CaptureOutcome.findings:
        reported.text += f"\n{_drawn(source, policy, allowed, page)}"
    return reported


def _drawn(source: "CaptureOfTest", policy: Policy, allowed: Callable[[Finding], bool], page: Path) -> str:
    """Draw a capture as a page, and say where the page is."""
    from amqpscope.draw.report import PageWriter  # only tests that fail need it

    class Page(PageWriter):
        """The page, without what the test allows."""

        def take(self, findings: list[Finding]) -> None:
            _let_pass(findings, allowed)
            super().take(findings)

    text = io.StringIO()
    options = ReportOptions(policy.terms, _MOST, Detail(), [source])
    judge_under([source], policy, hearer=Page(text, options), gather=False)
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        replace_text(str(page), text.getvalue())
    except (OSError, OutputError) as error:
        return f"The page could not be written: {printable(str(error))}"
    return f"To see it in a browser: {printable(str(page))}"


def _let_pass(findings: list[Finding], allowed: Callable[[Finding], bool]) -> None:
    """Suppress the findings that a test allows."""
    for finding in findings:
        assessment = finding.assessment
        if not assessment.suppressed_by and allowed(finding):
            finding.assessment = assessment.by_policy(assessment.level, ALLOW, "the test says so")


class CaptureOfTest:
    """A file, or several that are one capture. alone: it is one file.

    dialect: of AMQP 1.0 that all peers speak, "" to find out by the frames. secrets: what TLS is
    decrypted with.
    """

    def __init__(
        self, source: str | Sequence[str], dialect: str = "", secrets: Secrets | None = None
    ) -> None:
        self.alone = isinstance(source, str)
        paths = [source] if isinstance(source, str) else list(source)
        self.name = together(list(map(shown_name, paths))) if paths else "no files"
        self._source = source
        self._dialect = dialect
        self._secrets = secrets

    @property
    def size(self) -> int:
        """Octets of its files, 0 if it is unknown."""
        return size_of([self._source] if isinstance(self._source, str) else self._source)

    def open(self, options: CaptureOptions) -> Capture:
        """The capture. Raises CaptureError."""
        return Capture(self._source, options._replace(dialect=self._dialect, secrets=self._secrets))


class _Report(FindingWriter):
    """Takes what is found in one capture, and puts it in words: in full what counts, the rest in numbers."""

    context = True
    diagnoses = True

    def __init__(self, policy: Policy, allowed: Callable[[Finding], bool]) -> None:
        super().__init__()
        self.findings: list[Finding] = []
        self.worst: Finding | None = None
        # The first diagnosis for which the test fails, if the configuration has `fail-on-diagnosis`.
        self.failing: Diagnosis | None = None
        self.expired: list[str] = []
        self._policy = policy
        self._allowed = allowed
        self._nothing = self._reason = ""
        self._clock = Clock("r")
        self._counting = Verdicts(self._clock, _MOST)
        self._others = FindingCounts()

    def around(self, spot: FrameRef, records: Sequence[FrameRecord], links: Sequence[object]) -> object:
        return frames_around(spot, records, links)

    def take(self, findings: list[Finding]) -> None:
        _let_pass(findings, self._allowed)
        super().take(findings)

    def add(self, finding: Finding) -> None:
        if len(self.findings) < MAX_TEST_FINDINGS:
            self.findings.append(finding)
        if self._policy.counts(finding):
            self._counting.add(finding)
            self.worst = self.worst or finding
        elif not finding.assessment.suppressed_by:
            self._others.add(finding)

    def diagnosed(self, found: list[Diagnosis], order: int, connection: Connection | None) -> None:
        super().diagnosed(found, order, connection)
        counting = [one for one in found if self._policy.fails_for(one.code)]
        self.failing = self.failing or next(iter(counting), None)

    def close(self, nothing: str, reason: str) -> None:
        self._nothing, self._reason = nothing, printable(reason)

    def conclude(self, closing: RunConclusion) -> None:
        expired = [remark for remark in closing.remarks if remark.rule == EXPIRED]
        self.expired = [printable(f"{remark.place}: {remark.message}") for remark in expired]

    def text(self, hint: str, alone: bool) -> str:
        """All of it. alone: the capture is one file."""
        name, capture, worst = printable(self.name), self.capture, self.worst
        parts = []
        if worst is not None:
            counted = sum(self._counting.tally.counts.values())
            more = f" (and {counted - 1} more)" if counted > 1 else ""
            parts.append(_painted([([*headline(worst), ("", more)], 4)]))
        elif self.failing is not None:
            parts.append(_painted([(diagnosis_line(self.failing), 4)]))
        elif self._reason:
            parts.append(f"{name}: {self._reason}")
        elif self._nothing:
            parts.append(f"{printable(self._nothing)}{hint}")
        if capture is not None:
            self._clock.start(capture.began)
            parts.append(f"{name}: {self.outcome(self._reason)}")
            lines = [*self._counting.lines(), ([], -1)]
            if self._others.counts:
                text = f"{self._others.text()} for which the test does not fail"
                options = "--possible --notes"
                lines.append(([("", f"{text} (amqpscope check {options} shows them)")], 4))
            lines += [([("", printable(one))], 4) for one in self.remarks()]
            parts.append(_painted(lines).rstrip())
        if worst is not None and alone:
            # Whole, whatever its length: it is there to be copied.
            parts.append(f"\nWhat led to it: amqpscope why {shell_word(self.name)} {worst.packet}")
        return "\n".join(part for part in parts if part)


def _painted(lines: list[tuple[Line, int]]) -> str:
    console = Console(file=io.StringIO(), color_system=None, markup=False, highlight=False, emoji=False)
    painter = Painter(console, _WIDTH)
    return "\n".join(painter.paint(line, hang) for line, hang in lines)
