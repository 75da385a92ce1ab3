"""A capture of a test, held against the rules: whether the test fails for it, and the words that say why."""

import io
import shlex
from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console

from amqpscope.finding import Finding
from amqpscope.limits import MAX_TEST_FINDINGS
from amqpscope.policy import Hearer, Outcome, Policy
from amqpscope.policy import judge as judge_under
from amqpscope.reading import Capture, together
from amqpscope.report.line import Line
from amqpscope.report.notes import note_lines
from amqpscope.report.outcome import nothing_to, outcome
from amqpscope.report.painter import Painter
from amqpscope.report.printable import printable
from amqpscope.report.timeline import Clock
from amqpscope.report.verdict import Tally, Verdicts, headline

__all__ = ["Judgement", "judge"]

_WIDTH: Final = 118
"""Columns of a report: CI servers show that many, and pytest puts two in front."""

_MOST: Final = 3
"""Findings of one rule by one peer of a connection that a report has in full."""


class Judgement:
    """What is to be said of a capture.

    findings: the first of all that were found, as `amqpscope.check` gives them. failed: whether a test fails
    for it: for a finding that counts, or because there was nothing to check or the capture cannot be read.
    text: the report; its first line says the worst of it.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.failed = False
        self.text = ""


def judge(
    source: str | Sequence[str], policy: Policy, allowed: Callable[[Finding], bool], hint: str
) -> Judgement:
    """Read a capture to its end: a file, or several that are one.

    allowed: whether a finding that counts by the policy is let pass. hint: what to look after if there is
    nothing to check.
    """
    report = _Report(policy, allowed)
    one = source if isinstance(source, str) else _Together(source)
    (judged,) = judge_under([one], policy, hearer=report, gather=False).captures
    told = Judgement()
    told.findings = report.findings
    told.failed = bool(report.counting.tally.counts) or judged.outcome in (Outcome.failure, Outcome.empty)
    told.text = report.text(judged.outcome is Outcome.empty, hint, isinstance(source, str))
    return told


class _Together:
    """Several files that are one capture."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self.name = together(list(paths)) if paths else "no files"

    def open(
        self, *, keep: bool, records: bool, judge: bool, context: bool, profile: str, spec: str
    ) -> Capture:
        return Capture(
            self._paths,
            keep=keep,
            records=records,
            judge=judge,
            context=context,
            profile=profile,
            spec=spec,
        )


class _Report(Hearer):
    """Takes what is found in one capture, and puts it in words: in full what counts, the rest in numbers."""

    context = True

    def __init__(self, policy: Policy, allowed: Callable[[Finding], bool]) -> None:
        self.findings: list[Finding] = []
        self._policy = policy
        self._allowed = allowed
        self._name = ""
        self._reason = ""
        self._capture: Capture | None = None
        self._clock = Clock("r")
        self._worst: Finding | None = None
        self.counting = Verdicts(self._clock, _MOST)
        self._all = Tally()
        self._suppressed = Tally()
        self._others = Tally()
        self._ignored = 0

    def begin(self, path: str) -> None:
        self._name = path

    def opened(self, capture: Capture) -> None:
        self._capture = capture
        self._name = capture.name

    def take(self, findings: list[Finding]) -> None:
        for finding in findings:
            self._all.add(finding)
            if len(self.findings) < MAX_TEST_FINDINGS:
                self.findings.append(finding)
            if finding.suppressed_by:
                self._suppressed.add(finding)
            elif not self._policy.counts(finding):
                self._others.add(finding)
            elif self._allowed(finding):
                self._suppressed.add(finding)
            else:
                self.counting.add(finding)
                self._worst = self._worst or finding

    def ignore(self, count: int) -> None:
        self._ignored += count

    def fail(self, reason: str) -> None:
        self._reason = printable(reason.removeprefix(f"{self._name}: "))

    def text(self, empty: bool, hint: str, alone: bool) -> str:
        """All of it. empty: for there being nothing to check; alone: the capture is one file."""
        name, capture, worst = printable(self._name), self._capture, self._worst
        parts = []
        if worst is not None:
            counted = sum(self.counting.tally.counts.values())
            more = f" (and {counted - 1} more)" if counted > 1 else ""
            parts.append(_painted([([*headline(worst), ("", more)], 4)]))
        elif self._reason:
            parts.append(f"{name}: {self._reason}")
        elif empty and capture is not None:
            parts.append(f"{printable(nothing_to(capture, 'check'))}{hint}")
        if capture is not None:
            self._clock.start(capture.began)
            parts.append(f"{name}: {outcome(capture, self._all, self._reason)}")
            lines = [*self.counting.lines(), ([], -1)]
            for tally, words in (
                (self._others, "for which the test does not fail"),
                (self._suppressed, "allowed here"),
            ):
                if tally.counts:
                    lines.append(([("", f"{tally.text()} {words}")], 4))
            if self._ignored:
                lines.append(([("", f"{self._ignored} ignored by the configuration")], 4))
            lines += [([("note", f"note: {printable(one)}")], 6) for one in note_lines(capture.notes)]
            parts.append(_painted(lines).rstrip())
        if worst is not None and alone:
            # Whole, whatever its length: it is there to be copied.
            parts.append(f"\nWhat led to it: amqpscope why {shlex.quote(name)} {worst.packet}")
        return "\n".join(part for part in parts if part)


def _painted(lines: list[tuple[Line, int]]) -> str:
    console = Console(file=io.StringIO(), color_system=None, markup=False, highlight=False, emoji=False)
    painter = Painter(console, _WIDTH)
    return "\n".join(painter.paint(line, hang) for line, hang in lines)
